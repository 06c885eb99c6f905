"""Feeds that a web page names.

Owns finding them in the page's bytes.  Refuses to own: fetching either.  Must never break: no bytes raise, and only absolute http(s)
URLs come out.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from html.parser import HTMLParser

from lanes.sites import feed_text
from lanes.sites.feed_bytes import to_utf8

PREFIX = 256 << 10
"""Bytes of a page that are looked at: a head is rarely longer than 100 KiB."""

MOST = 50
"""Feeds of one page that are kept."""

_KINDS = {
    "application/rss+xml": "rss",
    "application/rdf+xml": "rss",
    "application/atom+xml": "atom",
    "application/feed+json": "json",
}
_COMMENTS = re.compile(r"\bcomments?\b|comments?[/-]feed", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FeedLink:
    """One feed as a page announces it: `kind` is rss, atom or json; `title` is cleaned, "" where there is none."""

    url: str
    title: str
    kind: str


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.base: str | None = None
        self.links: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("base", "link") or len(self.links) >= MOST:
            return
        found = {name: value or "" for name, value in reversed(attrs)}
        if tag == "link":
            self.links.append(found)
        elif self.base is None and found.get("href"):
            self.base = found["href"]


def _kind(link: dict[str, str]) -> str | None:
    rels = link.get("rel", "").lower().split()
    kind = link.get("type", "").partition(";")[0].strip().lower()
    if kind == "application/json" and "feed" in (link.get("title", "") + link.get("href", "")).lower():
        kind = "application/feed+json"  # JSON Feed 1.0 had no type of its own
    return _KINDS.get(kind) if "alternate" in rels or "feed" in rels else None


def discover(body: bytes, content_type: str | None, url: str) -> tuple[FeedLink, ...]:
    """The feeds that the page at the final `url` announces in its links, in page order, feeds of comments last; each URL once."""
    page = _Page()
    with suppress(
        AssertionError, ValueError
    ):  # html.parser gives up on some declarations: what came before them counts
        page.feed(to_utf8(body[:PREFIX], content_type).decode("utf-8", "replace"))
    base = feed_text.link(page.base or "", url) or url
    found: dict[str, FeedLink] = {}
    for link in page.links:
        kind, target = _kind(link), feed_text.link(link.get("href", ""), base)
        if kind and target:
            found.setdefault(target, FeedLink(target, feed_text.title(link.get("title", ""), markup=False), kind))
    return tuple(sorted(found.values(), key=lambda feed: bool(_COMMENTS.search(feed.url + " " + feed.title))))
