"""The Site kagane: one series of its API, which holds all its books, opened in the browser.

Owns its addresses and the shape of its answer (SITES 4).  Refuses to own: its pages, whose markup nobody knows.  Must never break: the
identity is the book's own id.  The API has moved three times: its address stands in `_place`, once.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from lanes.core.chapters import MAX_ITEMS, Document, Item, Lifecycle, Reading
from lanes.sites import feed_text
from lanes.sites.feed_dates import read_date
from lanes.sites.identified import identified
from lanes.sites.json_text import entries_of, entry_of, text_of, value_of
from lanes.sites.number_tokens import decimal
from lanes.sites.numbers import with_numbers
from lanes.sites.page import not_recognised, parse, text_of_page
from lanes.sites.pasted import UUID, Pasted, hosts_at, recogniser, taken_apart
from lanes.sites.site import Certainty, Evidence, Rendering, Site

HOSTS: Final = ("kagane.to", "www.kagane.to", "kagane.org", "www.kagane.org")

_STATUS: Final = {
    "ONGOING": Lifecycle.ONGOING,
    "HIATUS": Lifecycle.HIATUS,
    "COMPLETED": Lifecycle.FINISHED,
    "ABANDONED": Lifecycle.FINISHED,
}


def _place(asked: Pasted) -> str:
    for before in (("series",), ("api", "v2", "series")):
        if asked.has(*before, UUID):
            return f"/api/v2/series/{asked.path[len(before)].lower()}"
    if asked.path[:1] == ("series",) and len(asked.path) == 2:
        raise asked.refused(
            "its id must be the long one: 8-4-4-4-12 hexadecimal digits, as its page's own address has it."
        )
    raise asked.refused("this is no series; paste an address that begins with https://kagane.to/series/.")


def _json(text: str) -> dict[str, Any]:
    """Bare, or as a browser shows it: a page that has one <pre> and nothing else to be read."""
    if not text.startswith("<"):
        return entry_of(value_of(text))
    body = parse(text).first("body")
    shown = list(body.each("pre")) if body else []
    if body is None or len(shown) != 1 or body.source.strip() != shown[0].source.strip():
        return {}
    return entry_of(value_of(shown[0].source))


def _item(raw: dict[str, Any], series: str | None, url: str) -> Item:
    identity = feed_text.guid(text_of(raw.get("book_id")))
    number = decimal(text_of(raw.get("chapter_no")))
    moment, approximate = read_date(text_of(raw.get("created_at")))
    return Item(
        guid=identity,
        title=feed_text.title(text_of(raw.get("title")), markup=False),
        link=feed_text.link(f"/series/{series}/reader/{identity}", url) if series and identity else None,
        published_at=moment,
        approximate=approximate,
        number=number,
        volume=decimal(text_of(raw.get("volume_no"))),
        label="chapter" if number else "",
    )


def read(body: bytes, content_type: str | None, url: str, _at: datetime) -> Reading:
    """All books of a series, oldest first."""
    text = text_of_page(body, content_type)
    found = _json(text)
    if not isinstance(found.get("series_books"), list) or not text_of(found.get("title")):
        return not_recognised("this is no series of its API", text)
    asked = taken_apart(url)
    series = asked.path[-1] if asked and asked.path and UUID.fullmatch(asked.path[-1]) else None
    books = entries_of(found["series_books"])[-MAX_ITEMS:]
    document = Document(
        items=with_numbers(tuple(_item(raw, series, url) for raw in books)),
        title=feed_text.title(text_of(found.get("title")), markup=False) or None,
        home=feed_text.link(f"/series/{series}", url) if series else None,
        lifecycle=_STATUS.get(text_of(found.get("upload_status")).upper()),
    )
    return identified(document, body, content_type)


def site(origin: str = "https://kagane.to") -> Site:
    """The Site at `origin`.  Rest and Gap are every Site's: its readers ask up to 3 times a second, and since July 2026 it limits them."""
    return Site(
        name="kagane",
        recognise=recogniser(origin, HOSTS, _place),
        read=read,
        accept="application/json",
        rendering=Rendering(landmark="pre"),
        hosts=hosts_at(origin, HOSTS),
        republishes=True,
        evidence=Evidence("the source of two current readers", Certainty.SURE, "2026-08"),
        experimental=True,
    )


SITE: Final = site()
