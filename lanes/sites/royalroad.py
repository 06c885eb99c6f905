"""The Site royalroad: the feed of one fiction, and its page, which has the whole list.

Owns its addresses and the shapes of both documents (SITES 2).  Refuses to own: reading feeds (`feeds`).  Must never break: feed and page
give a Chapter the same identity, its number in the Site's addresses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from lanes.core.chapters import MAX_ITEMS, Document, Item, Lifecycle, Reading
from lanes.sites import feed_text, feeds
from lanes.sites.feed_dates import read_date
from lanes.sites.identified import identified
from lanes.sites.json_text import entries_of, text_of, value_at
from lanes.sites.numbers import with_numbers
from lanes.sites.page import PAGE, Element, not_recognised, parse, text_of_page
from lanes.sites.pasted import Pasted, hosts_at, number, recogniser, taken_apart
from lanes.sites.site import Certainty, Evidence, Site
from lanes.sites.words_of_time import relative

HOSTS: Final = ("www.royalroad.com", "royalroad.com", "www.royalroadl.com", "royalroadl.com")

_ID: Final = re.compile(r"[0-9]+")
_IN_LINK: Final = re.compile(r"/chapter/([0-9]{1,18})(?![0-9])")
_CHAPTERS: Final = re.compile(r"window\.chapters\s{0,20}=\s{0,20}(?=\[)")
_FEW: Final = 4
"""Assignments to it that are looked at: a page has one, but for a word of it in a text."""
_INSTANT: Final = re.compile(r"[0-9]{9,10}")
_STATUS: Final = {
    "ONGOING": Lifecycle.ONGOING,
    "STUB": Lifecycle.ONGOING,  # most of it went into a shop, and it goes on
    "HIATUS": Lifecycle.HIATUS,
    "INACTIVE": Lifecycle.HIATUS,
    "COMPLETED": Lifecycle.FINISHED,
    "DROPPED": Lifecycle.FINISHED,
}


def _place(asked: Pasted) -> str:
    named = ""
    if asked.has("fiction", "syndication"):
        named = asked.path[2] if len(asked.path) == 3 else ""
    elif asked.has("fiction", "chapter"):
        raise asked.refused(
            "it names a Chapter and not its fiction; paste the fiction's address: /fiction/ and a number."
        )
    elif asked.has("fiction", _ID):
        named = asked.path[1]
    fiction = number(named)
    if fiction is None:
        raise asked.refused("this is no fiction; paste an address such as https://www.royalroad.com/fiction/12345.")
    return f"/fiction/syndication/{fiction}"


def _identity(guid: str | None, link: str | None) -> str | None:
    if guid and _ID.fullmatch(guid):
        return guid.lstrip("0") or None
    found = _IN_LINK.search(link or guid or "")
    return found[1].lstrip("0") or None if found else None


def _of_feed(found: Document, url: str) -> Document:
    """Its items say the fiction's title first; without it they are what the page says, numbers included."""
    before = f"{found.title} - "
    items = (
        replace(
            item,
            guid=_identity(item.guid, item.link),
            title=item.title.removeprefix(before),
            volume=None,
            number=None,
            label="",
        )
        for item in found.items
    )
    asked = taken_apart(url)
    fiction = asked.path[2] if asked and asked.has("fiction", "syndication", _ID) else None
    home = found.home or (feed_text.link(f"/fiction/{fiction}", url) if fiction else None)
    return replace(found, items=with_numbers(tuple(items)), home=home)


def _listed(raw: dict[str, Any], url: str) -> Item:
    identity = _identity(text_of(raw.get("id")), text_of(raw.get("url")))
    moment, approximate = read_date(text_of(raw.get("date")))
    return Item(
        guid=identity,
        title=feed_text.title(text_of(raw.get("title")), markup=False),
        link=feed_text.link(text_of(raw.get("url")) or f"/fiction/chapter/{identity}", url) if identity else None,
        published_at=moment,
        approximate=approximate,
        locked=raw.get("isUnlocked") is False or raw.get("visible") in ("0", False),
    )


def _of_script(text: str, url: str) -> list[Item] | None:
    """The array that the page's own script works with; None where there is none."""
    found = (value_at(text, place.end()) for place in islice(_CHAPTERS.finditer(text), _FEW))
    raws = next((value for value in found if isinstance(value, list)), None)
    return None if raws is None else [_listed(raw, url) for raw in entries_of(raws)[-MAX_ITEMS:]]


def _when(time: Element | None, at: datetime) -> tuple[datetime | None, bool]:
    """A row's date: an attribute, which the Site has dropped at times, else words such as "18 hours"."""
    if time is None:
        return None, False
    if _INSTANT.fullmatch(time.get("unixtime")):
        return datetime.fromtimestamp(int(time.get("unixtime")), UTC), False
    moment, approximate = read_date(time.get("datetime"))
    return (moment, approximate) if moment is not None else relative(time.text, at)


def _rows(table: Element, url: str, at: datetime) -> Iterator[Item]:
    for row in table.each("tr", cls="chapter-row"):
        cell = row.first("a")
        link = feed_text.link(row.get("data-url") or (cell.get("href") if cell else ""), url)
        moment, approximate = _when(row.first("time"), at)
        yield Item(_identity(None, link), cell.text if cell else "", link, moment, approximate)


def _lifecycle(page: Element) -> Lifecycle | None:
    return next(
        (_STATUS[words] for label in page.each("span", cls="label") if (words := label.text.upper()) in _STATUS), None
    )


def _of_page(text: str, url: str, at: datetime) -> Reading:
    page = parse(text)
    missing = page.first("div", cls="number")
    if missing is not None and missing.text == "404":
        return not_recognised("this fiction is not there (any more)", text, "404")
    header, table = page.first(cls="fic-header"), page.first("table", ident="chapters")
    heading = header.first("h1") if header else None
    items = _of_script(text[:PAGE], url)
    if heading is None or (items is None and table is None):
        return not_recognised("this is neither a fiction's feed nor its page", text)
    if items is None:
        items = list(_rows(table, url, at))[-MAX_ITEMS:] if table else []
    asked = taken_apart(url)
    home = feed_text.link(f"/fiction/{asked.path[1]}" if asked and asked.has("fiction", _ID) else url, url)
    return Document(with_numbers(tuple(items)), heading.text or None, home, lifecycle=_lifecycle(page))


def read(body: bytes, content_type: str | None, url: str, at: datetime) -> Reading:
    """The newest Chapters of a fiction's feed, or all of its page."""
    found = feeds.read(body, content_type, url)
    known = _of_feed(found, url) if isinstance(found, Document) else _of_page(text_of_page(body, content_type), url, at)
    return identified(known, body, content_type) if isinstance(known, Document) else known


def site(origin: str = "https://www.royalroad.com") -> Site:
    """The Site at `origin`.  Rest and Gap are every Site's: one page in 5 s was reported safe there, and 10 s is half of that."""
    return Site(
        name="royalroad",
        recognise=recogniser(origin, HOSTS, _place),
        read=read,
        accept=feeds.ACCEPT,
        feed=True,
        hosts=hosts_at(origin, HOSTS),
        republishes=True,
        evidence=Evidence("the source of several readers", Certainty.LIKELY, "2026-09"),
        example="https://www.royalroad.com/fiction/21220/mother-of-learning",
    )


SITE: Final = site()
