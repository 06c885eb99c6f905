"""Feeds that a web page names.

Owns finding them in the page's bytes.  Refuses to own: fetching either.  Must never break: no bytes raise, and only absolute http(s)
URLs come out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from lanes.sites import feed_text, recognisers
from lanes.sites.page import Element, parse, text_of_page

PREFIX = 2 << 20
"""Bytes of a page that are looked at: a head is rarely longer than 100 KiB, but some begin with their scripts and styles."""

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


def _kind(link: Element) -> str | None:
    rels = link.get("rel").lower().split()
    kind = link.get("type").partition(";")[0].strip().lower()
    if kind == "application/json" and "feed" in (link.get("title") + link.get("href")).lower():
        kind = "application/feed+json"  # JSON Feed 1.0 had no type of its own
    return _KINDS.get(kind) if "alternate" in rels or "feed" in rels else None


def _announced(page: Element, url: str) -> dict[str, FeedLink]:
    """The feeds that its links name."""
    base = next((href for each in page.each("base") if (href := each.get("href"))), "")
    seen_from = feed_text.link(base, url) or url
    found: dict[str, FeedLink] = {}
    for link in islice(page.each("link"), MOST):
        kind, target = _kind(link), feed_text.link(link.get("href"), seen_from)
        if kind and target:
            found.setdefault(target, FeedLink(target, feed_text.title(link.get("title"), markup=False), kind))
    return found


def discover(body: bytes, content_type: str | None, url: str) -> tuple[FeedLink, ...]:
    """The feeds that the page at the final `url` announces in its links, in page order, feeds of comments last; each URL once.  Before them
    the one that a publisher's page names in a way of its own."""
    page = parse(text_of_page(body[:PREFIX], content_type))
    publisher = recognisers.of(url)
    named = (feed for each in page.each("meta") if publisher and (feed := publisher.named_by(each.get("content"))))
    own = tuple(FeedLink(feed, "", "rss") for feed in islice(named, 1))
    found = _announced(page, url).values()
    return *own, *sorted(found, key=lambda feed: bool(_COMMENTS.search(feed.url + " " + feed.title)))
