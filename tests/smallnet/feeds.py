"""Feeds that the small internet publishes, with honest validators.

Owns documents and their conditional answers.  Refuses to own: dishonest ones (scripts do that).  Must never break: the same posts give
the same bytes and the same validators, in every run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import blake2b
from html import escape
from pathlib import Path
from typing import Literal

from .steps import Headers, SomeHeaders, Step, pairs

Kind = Literal["rss", "atom", "json"]
FIRST_POST_AT = datetime(2024, 1, 1, tzinfo=UTC)
TYPES: dict[Kind, str] = {
    "rss": "application/rss+xml; charset=utf-8",
    "atom": "application/atom+xml; charset=utf-8",
    "json": "application/feed+json",
}


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked.  `headers` have lower-case names, repeated ones joined by ", "; `path` includes the query."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Post:
    """One item.  What is None is made up from its number: link, guid (the link), date (an hour after the one before)."""

    title: str
    guid: str | None = None
    link: str | None = None
    at: datetime | None = None
    text: str = ""


def conditional(request: Request, body: bytes, headers: Headers, etag: str | None, last_modified: str | None) -> Step:
    """304 where the request names the current validator (If-None-Match goes before If-Modified-Since, RFC 9110), else the body."""
    validators = tuple(
        (name, value) for name, value in (("ETag", etag), ("Last-Modified", last_modified)) if value is not None
    )
    if is_current(request, etag, last_modified):
        return Step(304, b"", validators)
    return Step(200, body, headers + validators)


def is_current(request: Request, etag: str | None, last_modified: str | None) -> bool:
    """Whether the asker already has the version with these validators, by comparing strings, as many servers do."""
    named = request.headers.get("if-none-match")
    if named is not None:
        return etag is not None and (
            named == "*" or etag in (tag.strip().removeprefix("W/") for tag in named.split(","))
        )
    return last_modified is not None and request.headers.get("if-modified-since") == last_modified


class Page:
    """Bytes at a path, with the validators given (or none) and proper 304s."""

    def __init__(
        self,
        body: bytes | str,
        content_type: str,
        *,
        etag: str | None = None,
        last_modified: str | None = None,
        headers: SomeHeaders = (),
    ) -> None:
        self.body = body.encode() if isinstance(body, str) else body
        self.etag, self.last_modified = etag, last_modified
        self._headers: Headers = (("Content-Type", content_type), *pairs(headers))

    def __call__(self, request: Request) -> Step:
        return conditional(request, self.body, self._headers, self.etag, self.last_modified)


class Feed:
    """A feed at a URL: newest post first, at most `keep` of them.  Rendered once per version."""

    def __init__(
        self,
        url: str,
        posts: Iterable[Post | str] = (),
        *,
        kind: Kind = "rss",
        title: str = "A Serial",
        etag: bool = True,
        last_modified: bool = True,
        keep: int = 1_000,
        channel: str = "",
        headers: SomeHeaders = (),
    ) -> None:
        self.url, self.kind, self.title = url, kind, title
        self.version = 0
        self._count = 0
        self._keep, self._channel = keep, channel
        self._wants = (etag, last_modified)
        self._headers = pairs(headers)
        self.posts: list[Post] = []
        self._page: tuple[int, Page] | None = None
        for post in posts:
            self.publish(post)

    def publish(self, post: Post | str, at: datetime | None = None) -> Post:
        """Add a post, the newest, and return it with everything filled in."""
        self._count += 1
        post = Post(post, at=at) if isinstance(post, str) else post
        link = post.link or f"{self.url}/{self._count}"
        when = post.at or FIRST_POST_AT + timedelta(hours=self._count)
        whole = replace(post, link=link, guid=link if post.guid is None else post.guid, at=when)
        self.posts = [whole, *self.posts][: self._keep]
        self.version += 1
        return whole

    def __call__(self, request: Request) -> Step:
        if self._page is None or self._page[0] != self.version:
            self._page = (self.version, self._rendered())
        return self._page[1](request)

    @property
    def body(self) -> bytes:
        """The document as it is now."""
        return render(self.kind, self.url, self.title, self.posts, self._channel)

    def _rendered(self) -> Page:
        body = self.body
        tag = f'"{blake2b(body, digest_size=8).hexdigest()}"' if self._wants[0] else None
        changed_at = (
            format_datetime(FIRST_POST_AT + timedelta(seconds=self.version), usegmt=True) if self._wants[1] else None
        )
        return Page(body, TYPES[self.kind], etag=tag, last_modified=changed_at, headers=self._headers)


def render(kind: Kind, url: str, title: str, posts: Sequence[Post], channel: str = "") -> bytes:
    """One document of this kind.  Every post has a link, guid and date."""
    if kind == "json":
        items = [
            {"id": p.guid, "url": p.link, "title": p.title, "date_published": _stamp(p), "content_text": p.text}
            for p in posts
        ]
        return json.dumps(
            {"version": "https://jsonfeed.org/version/1.1", "title": title, "feed_url": url, "items": items}
        ).encode()
    if kind == "atom":
        head = (
            f'<feed xmlns="http://www.w3.org/2005/Atom"><title>{escape(title)}</title><id>{escape(url)}</id>{channel}'
        )
        items_xml = "".join(
            f'<entry><title>{escape(p.title)}</title><id>{escape(p.guid or "")}</id><link href="{escape(p.link or "")}"/>'
            f"<updated>{_stamp(p)}</updated><summary>{escape(p.text)}</summary></entry>"
            for p in posts
        )
        return f'<?xml version="1.0" encoding="utf-8"?>\n{head}{items_xml}</feed>\n'.encode()
    head = (
        f'<rss version="2.0"><channel><title>{escape(title)}</title><link>{escape(url)}</link><description/>{channel}'
    )
    items_xml = "".join(
        f'<item><title>{escape(p.title)}</title><link>{escape(p.link or "")}</link><guid isPermaLink="false">{escape(p.guid or "")}</guid>'
        f"<pubDate>{format_datetime(p.at or FIRST_POST_AT, usegmt=True)}</pubDate><description>{escape(p.text)}</description></item>\n"
        for p in posts
    )
    return f'<?xml version="1.0" encoding="utf-8"?>\n{head}\n{items_xml}</channel></rss>\n'.encode()


def _stamp(post: Post) -> str:
    return (post.at or FIRST_POST_AT).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_opml(path: Path, outlines: Iterable[tuple[str, str]], title: str = "The small internet") -> None:
    """Write (title, url) pairs as the OPML that readers exchange."""
    rows = "".join(f'<outline type="rss" text="{escape(name)}" xmlUrl="{escape(url)}"/>\n' for name, url in outlines)
    head = f'<?xml version="1.0" encoding="utf-8"?>\n<opml version="2.0"><head><title>{escape(title)}</title></head>'
    path.write_text(f"{head}<body>\n{rows}</body></opml>\n", encoding="utf-8")
