"""The Site comix: the page of one title, as its scripts leave it in the browser.

Owns its addresses and the landmarks of its pages (SITES 5).  Refuses to own: its signed API.  Must never break: the identity is the id in a
row's link, never a number; a page without rows yields its newest number alone, which is that of all groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any, Final

from lanes.core.chapters import LIST_MISSING, MAX_ITEMS, Document, Item, Lifecycle, Reading
from lanes.sites import feed_text
from lanes.sites.json_text import entry_of, text_of, value_of
from lanes.sites.number_tokens import decimal
from lanes.sites.numbers import numbered
from lanes.sites.page import Element, not_recognised, parse, text_of_page
from lanes.sites.pasted import Pasted, hosts_at, number, recogniser, taken_apart
from lanes.sites.site import Certainty, Evidence, Rendering, Site
from lanes.sites.words_of_time import relative

HOSTS: Final = ("comix.to", "www.comix.to", "comix.ws", "www.comix.ws")

_TITLE: Final = re.compile(r"([A-Za-z0-9]{1,40})(?:-.*)?")
_CHAPTER: Final = re.compile(r"/title/[^/?#]+/([0-9]{1,18})(?![0-9])")
_STATUS: Final = {
    "releasing": Lifecycle.ONGOING,
    "on_hiatus": Lifecycle.HIATUS,
    "finished": Lifecycle.FINISHED,
    "discontinued": Lifecycle.FINISHED,
}


def _place(asked: Pasted) -> str:
    named = _TITLE.fullmatch(asked.path[1]) if asked.has("title", _TITLE) else None
    if named is None:
        raise asked.refused("this is no title; paste an address that begins with https://comix.to/title/.")
    group = asked.value("group_id")
    if group and number(group) is None:
        raise asked.refused("its group_id is no number; paste the address without it to follow every group.")
    return f"/title/{named[1]}" + (f"?group_id={number(group)}" if group else "")


def _detail(page: Element) -> dict[str, Any]:
    """What the page's own script starts from; {} where there is nothing of it."""
    script = page.first("script", ident="initial-data")
    queries = entry_of(entry_of(value_of(script.source) if script else None).get("queries"))
    for key, value in queries.items():
        parts = value_of(key)
        if isinstance(parts, list) and parts[:2] == ["manga", "detail"]:
            found = entry_of(value)
            return entry_of(found.get("data")) or found
    return {}


def _beside(row: Element, primary: Element) -> Iterator[str]:
    """The texts of a row that are not of its link."""
    inside = {id(each) for each in primary.elements()}
    for each in row.elements():
        if id(each) not in inside and not any(isinstance(part, Element) for part in each.inside):
            yield each.text


def _row(row: Element, url: str, at: datetime) -> Item | None:
    primary = row.first("a", cls="mchap-row__primary")
    link = feed_text.link(primary.get("href"), url) if primary else None
    named = _CHAPTER.search(link or "")
    if primary is None or named is None:
        return None
    says, title = primary.first(cls="mchap-row__ch"), primary.first(cls="mchap-row__title")
    said = numbered(says.text) if says else None
    # The class of the date is not known: it is the first text beside the link that is one (SITES 5).
    dates = (when for text in _beside(row, primary) if (when := relative(text, at))[0])
    moment, approximate = next(dates, (None, False))
    return Item(
        guid=named[1],
        title=title.text if title else "",
        link=link,
        published_at=moment,
        approximate=approximate,
        number=said.number if said else None,
        volume=said.volume if said else None,
        label="chapter" if said and said.number else "",
    )


def read(body: bytes, content_type: str | None, url: str, at: datetime) -> Reading:
    """The newest Chapters of a title, each group's own, or its newest number where the rows are not there this time."""
    text = text_of_page(body, content_type)
    page = parse(text)
    detail = _detail(page)
    rows = (_row(row, url, at) for row in islice(page.each(cls="mchap-item"), MAX_ITEMS))
    items = tuple(filter(None, rows))
    latest = decimal(text_of(detail.get("latestChapter")))
    if not items and latest is None and detail.get("hasChapters") is not False:
        return not_recognised("this is no title's page with its list of Chapters", text)
    asked = taken_apart(url)
    if not items and latest is not None and asked and asked.value("group_id"):
        reason = f"its list of Chapters was not there this time, and number {latest} may be another group's"
        return not_recognised(reason, text, LIST_MISSING)
    return Document(
        items=items,
        title=feed_text.title(text_of(detail.get("title")), markup=False) or None,
        home=feed_text.link("/" + "/".join(asked.path), url) if asked and asked.has("title") else None,
        lifecycle=_STATUS.get(text_of(detail.get("status")).lower()),
        latest=None if items else latest,
    )


def site(origin: str = "https://comix.to") -> Site:
    """The Site at `origin`.  Rest and Gap are every Site's: it names no limit, and a page opens requests of its own."""
    return Site(
        name="comix",
        recognise=recogniser(origin, HOSTS, _place),
        read=read,
        accept="text/html",
        rendering=Rendering(landmark=".mchap-item", settles_for="script#initial-data"),
        hosts=hosts_at(origin, HOSTS),
        named_numbers=True,
        evidence=Evidence("the source of three current readers", Certainty.LIKELY, "2026-08"),
        experimental=True,
    )


SITE: Final = site()
