"""The Site `feeds`: RSS, Atom, RDF, JSON Feed and podcasts, as they are in the wild.

Owns the way from an answer's bytes to a Reading, and its words for what is no feed.  Refuses to own: the readers (`feed_*`).  Must never
break: no bytes raise, and a page, an error or nothing at all is never an empty feed (DESIGN 4.3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from urllib.parse import urlsplit

from lanes.core.challenge import asks_for_password
from lanes.core.chapters import Document, NotRecognised, Reading
from lanes.sites import feed_text, recognisers
from lanes.sites.feed_bytes import to_utf8
from lanes.sites.feed_fast import read_fast
from lanes.sites.feed_json import read_json
from lanes.sites.feed_prolog import EntityBomb, root
from lanes.sites.feed_raw import RawFeed, document
from lanes.sites.feed_tolerant import read_tolerant

ACCEPT = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml;q=0.9, "
    "application/xml;q=0.8, text/xml;q=0.8, application/json;q=0.7, */*;q=0.1"
)

START = 200
"""Characters of what was no feed that are kept for the owner (CASES D6)."""

PAGE = 256 << 10
"""Characters of a page in which a password field is looked for."""

_CONTROLS = bytes({*range(32)} - set(b"\t\n\r"))
"""Control characters that XML does not allow, and that writers paste into titles all the same (CASES G2)."""

_LOG_IN_PATHS = (
    "/login",
    "/log-in",
    "/signin",
    "/sign-in",
    "/account/login",
    "/users/login",
    "/users/sign_in",
    "/wp-login.php",
)


def _refused(reason: str, text: str) -> NotRecognised:
    return NotRecognised(reason, feed_text.line(text[: START * 4])[:START])


def _page(text: str, url: str) -> NotRecognised:
    try:
        path = urlsplit(url).path.rstrip("/").lower()
    except ValueError:
        path = ""
    log_in = path.endswith(_LOG_IN_PATHS) or asks_for_password(text[:PAGE])
    return _refused("this is a log-in page, not a feed" if log_in else "this is a web page, not a feed", text)


def _tolerant(text: str, url: str) -> RawFeed | NotRecognised:
    kind, name = root(text)
    if kind is None:
        if name == "html":
            return _page(text, url)
        return _refused(
            f"this is XML, but not a feed (its root is <{name[:40]}>)" if name else "this is text, not a feed", text
        )
    found: RawFeed | None
    try:
        found = read_tolerant(text, kind)
    except EntityBomb:
        return _refused("its entities expand without end", text)
    except Exception as error:  # noqa: BLE001 - feedparser raises what its parts raise on bytes nobody foresaw
        return _refused(f"this feed is broken past reading ({type(error).__name__})", text)
    return found or _refused(f"this is XML, but not a feed (its root is <{name}>)", text)


def _xml(data: bytes, url: str) -> RawFeed | NotRecognised:
    if fast := read_fast(data):
        return fast
    legal = data.translate(None, _CONTROLS)
    if len(legal) < len(data) and (
        fast := read_fast(legal)
    ):  # else one stray character would bound what is read of a long archive
        return fast
    return _tolerant(data.decode("utf-8", "replace"), url)


def recognise(url: str) -> str | None:
    """Any URL may be that of a feed: the canonical URL as it stands; that of a publisher's feed where its pages lead there."""
    publisher = recognisers.of(url)
    return url if publisher is None else publisher.recognise(url)


def read(
    body: bytes,
    content_type: str | None,
    url: str,
    _at: datetime | None = None,
    *,
    adapt: Callable[[RawFeed], object] = lambda _: None,
) -> Reading:
    """What the document at the final `url` holds.  Never raises.

    `content_type` is the answer's header or None; only its charset counts, and only where the bytes are not UTF-8.  `adapt` may change what
    an XML feed said before anything is made of it: for Sites that mean something else by it.
    """
    data = to_utf8(body, content_type)
    if not data.strip(b"\0 \t\r\n"):
        return NotRecognised("the answer is empty")
    if data[:1] in (b"{", b"["):
        text = data.decode("utf-8", "replace")
        found: Document | None = read_json(text, url)
        return found or _refused("this is JSON, but not a JSON Feed", text)
    raw = _xml(data, url)
    if isinstance(raw, NotRecognised):
        return raw
    adapt(raw)
    return _identified(document(raw, url), url)


def _identified(found: Document, url: str) -> Document:
    """A publisher that is known more of says by what its items are known."""
    publisher = recognisers.of(url)
    return found if publisher is None else replace(found, items=tuple(map(publisher.identify, found.items)))
