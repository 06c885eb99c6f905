"""The Site ao3: the index of one work's chapters, and the feed of a tag.

Owns its addresses and the landmarks of its pages (SITES 6).  Refuses to own: reading feeds (`feeds`).  Must never break: the identity is
the chapter's own number; positions shift when a chapter is inserted, and are for showing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lanes.core.chapters import MAX_ITEMS, Document, Item, Lifecycle, Reading
from lanes.sites import feed_text, feeds
from lanes.sites.feed_dates import read_date
from lanes.sites.feed_raw import RawFeed
from lanes.sites.identified import identified
from lanes.sites.number_tokens import decimal
from lanes.sites.page import Element, not_recognised, parse, text_of_page
from lanes.sites.pasted import Pasted, hosts_at, number, recogniser, taken_apart
from lanes.sites.site import Certainty, Evidence, Site

HOSTS: Final = (
    "archiveofourown.org",
    "www.archiveofourown.org",
    "download.archiveofourown.org",
    "archiveofourown.com",
    "www.archiveofourown.com",
    "archiveofourown.net",
    "www.archiveofourown.net",
    "archiveofourown.gay",
    "www.archiveofourown.gay",
    "ao3.org",
    "www.ao3.org",
    "archive.transformativeworks.org",
)

_ID: Final = re.compile(r"[0-9]+")
_CHAPTER: Final = re.compile(r"/chapters/0*([1-9][0-9]{0,17})(?![0-9])")
_POSITION: Final = re.compile(r"([0-9]{1,6})\.\s*(.*)", re.DOTALL)
_DAY: Final = re.compile(r"\(\s*([0-9]{4}-[0-9]{2}-[0-9]{2})\s*\)")
_COUNTED: Final = re.compile(r"([0-9,]{1,9})/(?:([0-9,]{1,9})|\?)")
_ERROR: Final = re.compile(r"Error ([45])([0-9]{2})\b")
_HEADING: Final = "Chapter Index for"


def _place(asked: Pasted) -> str:
    if asked.has("tags", _ID, "feed.atom"):
        return f"/tags/{number(asked.path[1])}/feed.atom"  # its host is this Site's, so no other Lane may ask for it
    if asked.has("chapters"):
        raise asked.refused(
            "it does not say which work it belongs to; open it and paste the address behind Entire Work."
        )
    if asked.has("tags"):
        raise asked.refused("only a tag's feed can be; paste the address of its RSS Feed button, /tags/ and a number.")
    if asked.has("series") or asked.has("users"):
        raise asked.refused("it has many works; paste the address of each work: /works/ and a number.")
    path = asked.path[2:] if asked.has("collections") else asked.path
    work = number(path[1]) if len(path) > 1 and path[0] in ("works", "downloads") else None
    if work is None:
        raise asked.refused("this is no work; paste an address such as https://archiveofourown.org/works/12345.")
    return f"/works/{work}/navigate"


def _by_updates(raw: RawFeed) -> None:
    """In a tag's feed `updated` is the news: `published` is the day on which a work began (SITES 15)."""
    for item in raw.items:
        item.published = item.updated or item.published


def _entry(line: Element, url: str) -> Item | None:
    anchor = line.first("a")
    link = feed_text.link(anchor.get("href"), url) if anchor else None
    named, said = _CHAPTER.search(link or ""), _POSITION.fullmatch(anchor.text if anchor else "")
    if anchor is None or named is None:
        return None
    written = line.first("span", cls="datetime")
    day = _DAY.search(written.text if written else "")
    moment, approximate = read_date(day[1] if day else None)
    position = decimal(said[1]) if said else None
    return Item(
        guid=named[1],
        title=said[2] if said else anchor.text,
        link=link,
        published_at=moment,
        approximate=approximate,
        number=position,
        label="chapter" if position else "",
    )


def _index(page: Element, url: str) -> Document | None:
    """The page of a work that lists its chapters."""
    headings = (each for each in page.each("h2", cls="heading") if each.text.startswith(_HEADING))
    heading = next(headings, None)
    listed = page.first("ol", cls="chapter index")
    if heading is None or listed is None:
        return None
    work = heading.first("a")
    items = [item for line in listed.each("li") if (item := _entry(line, url))]
    return Document(
        items=tuple(items[-MAX_ITEMS:]),
        title=(work.text if work else "") or None,
        home=feed_text.link(work.get("href"), url) if work else None,
    )


def _work(page: Element, url: str) -> Document | None:
    """The page of a work itself: "4/?" chapters, or "10/10", which is all of them."""
    stats = page.first("dl", cls="stats")
    told = stats.first("dd", cls="chapters") if stats else None
    counted = _COUNTED.fullmatch(told.text) if told else None
    title = page.first("h2", cls="title")
    if counted is None or title is None:
        return None
    lifecycle = Lifecycle.FINISHED if counted[1] == counted[2] else Lifecycle.ONGOING
    return Document(items=(), title=title.text or None, home=feed_text.link(url, url), lifecycle=lifecycle)


def _says(page: Element) -> Iterator[tuple[str, str]]:
    """Headings and paragraphs of the page's own part, where the Site speaks for itself."""
    main = page.first(ident="main") or page
    return ((tag, each.text) for tag in ("h2", "h3", "p") for each in main.each(tag))


def _other(page: Element, text: str) -> Reading:
    """Every other page that the Site answers with."""
    caution = page.first("p", cls="caution")
    if caution is not None and any("view_adult=true" in link.get("href") for link in page.each("a")):
        return not_recognised("it asks whether the Reader is an adult", text, "age")
    for tag, said in _says(page):
        if tag in ("h2", "h3") and (error := _ERROR.match(said)):
            kind = "5xx" if error[1] == "5" else error[1] + error[2]
            return not_recognised(f"the page says: {said[:80]}", text, kind)
        if "only available to registered users" in said:
            return not_recognised("only for members of the Site", text, "log-in")
        if "couldn't find the work" in said.replace("\u2019", "'"):
            return not_recognised("this work is not there (any more)", text, "404")
        if "part of an ongoing challenge and will be revealed soon" in said:
            return Document(items=())
    return not_recognised("this is no index of a work's chapters", text)


def read(body: bytes, content_type: str | None, url: str, _at: datetime) -> Reading:
    """All chapters of a work, in their order; the works of a tag's feed."""
    asked = taken_apart(url)
    if asked and asked.has("tags"):
        found = feeds.read(body, content_type, url, adapt=_by_updates)
        return identified(found, body, content_type) if isinstance(found, Document) else found
    text = text_of_page(body, content_type)
    page = parse(text)
    return _index(page, url) or _work(page, url) or _other(page, text)


def site(origin: str = "https://archiveofourown.org") -> Site:
    """The Site at `origin`.  Rest and Gap are every Site's: 20 pages a minute are safe there, 10 s is a third of that.  Its Lane is not
    started by default: the archive is run by volunteers, and is often under attack."""
    return Site(
        name="ao3",
        recognise=recogniser(origin, HOSTS, _place),
        read=read,
        accept="text/html, application/atom+xml;q=0.9",
        hosts=hosts_at(origin, HOSTS),
        evidence=Evidence("the source of the software that runs it", Certainty.SURE, "2026-07"),
        starts=False,
        example="https://archiveofourown.org/works/10057010",
    )


SITE: Final = site()
