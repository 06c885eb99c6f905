"""Whether an answer is a challenge, a block or a log-in page, whatever its status says (DESIGN 4.3, 5.4).

Owns the signs, each a header or a landmark of the page.  Refuses to own: what follows (`outcome`, `refusal`).  Must never break: a
phrase in running text proves nothing, a recognised document is never asked about its body, and no page costs more than its length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from lanes.core.urls import split

LOOKED_AT: Final = 65_536
"""Bytes of a page that are looked at: challenge pages are short, and put their landmarks first."""

_HEADERS: Final[tuple[tuple[str, frozenset[str]], ...]] = (
    ("cf-mitigated", frozenset({"challenge"})),
    ("x-amzn-waf-action", frozenset({"challenge", "captcha"})),
)
_TAG: Final = 1_000
"""Characters of a tag that are looked at: honest ones have a few hundred."""
_PASSWORD: Final = re.compile(r"type\s*=\s*[\"']?password")
_ROBOTS: Final = re.compile(r"name=[\"']?robots")
_LOG_IN: Final = frozenset({"login", "log-in", "signin", "sign-in", "wp-login.php", "logon"})


@dataclass(frozen=True, slots=True)
class Sign:
    """A kind of page: its title (lower-case) and a mark in it must both be there, or `path` in the URL it was shown at.

    `clears`: in a browser that merely waits it makes room for the page by itself, mostly."""

    what: str
    title: re.Pattern[str]
    marked: Callable[[str], object]
    clears: bool = False
    path: str | None = None


def _tags(page: str, name: str) -> Iterator[str]:
    """The opening tags of this name, in lower case, each as far as it is looked at: a pattern would try all others again from each."""
    page = page.lower()
    at = page.find(f"<{name}")
    while at >= 0:
        end = page.find(">", at, at + _TAG)
        end = at + _TAG if end < 0 else end
        yield page[at:end]
        at = page.find(f"<{name}", end)


def _unlisted(page: str) -> bool:
    """Whether it asks search engines to leave it out."""
    return any("noindex" in tag and _ROBOTS.search(tag) for tag in _tags(page, "meta"))


_PAGES: Final = (
    Sign(
        "a Cloudflare challenge",
        re.compile("just a moment"),
        re.compile(r"_cf_chl_opt|/cdn-cgi/challenge-platform/(?!scripts/jsd/)").search,
        clears=True,
    ),
    Sign("a Cloudflare block", re.compile("attention required!.*cloudflare"), re.compile("").search),
    Sign(
        "a DDoS-Guard captcha",
        re.compile("ddos-guard$"),
        re.compile(r"/\.well-known/ddos-guard/ddg-captcha-page/|h-captcha", re.IGNORECASE).search,
    ),
    Sign(
        "a DDoS-Guard challenge",
        re.compile("ddos-guard$"),
        re.compile(r"/\.well-known/ddos-guard/|link-ddg", re.IGNORECASE).search,
        clears=True,
    ),
    Sign(
        "a security check",
        re.compile("security check$"),
        _unlisted,
        path="/@waf/",
    ),
    Sign("a block page", re.compile("blocked$"), re.compile("blocked by network security").search),
)


def by_header(headers: Mapping[str, str]) -> str | None:
    """What a header says that this answer is, in words, or None.  Holds on any status, 200 included."""
    for name, values in _HEADERS:
        if headers.get(name, "").strip().lower() in values:
            return f"a challenge ({name}: {headers[name].strip().lower()})"
    return None


def by_page(body: bytes, content_type: str | None, url: str = "") -> str | None:
    """What the landmarks of a page, and the URL it was shown at, say that it is, in words, or None.  Only for a body that no reader
    recognised."""
    sign = sign_of(body, content_type, url)
    return None if sign is None else sign.what


def sign_of(body: bytes, content_type: str | None, url: str = "") -> Sign | None:
    """The same, with what else is known of such pages."""
    if not _is_page(body, content_type):
        return None
    page = body[:LOOKED_AT].decode("utf-8", "replace")
    title = _title(page)
    parts = split(url)
    path = parts.target.partition("?")[0] if parts else ""
    for sign in _PAGES:
        if (sign.path and sign.path in path) or (sign.title.match(title) and sign.marked(page)):
            return sign
    return None


def wants_log_in(body: bytes, content_type: str | None, asked: str, answered: str) -> bool:
    """Whether a page that no reader recognised asks to log in: we were led to a log-in path, or it has a password field."""
    if not _is_page(body, content_type):
        return False
    parts = split(answered)
    path = parts.target.partition("?")[0] if parts else ""
    led_there = asked != answered and not _LOG_IN.isdisjoint(path.lower().strip("/").split("/"))
    return led_there or asks_for_password(body[:LOOKED_AT].decode("utf-8", "replace"))


def asks_for_password(page: str) -> bool:
    """Whether a page has a password field."""
    return any(_PASSWORD.search(tag) for tag in _tags(page, "input"))


def _title(page: str) -> str:
    """Its first title, in lower case, white space single; "" where there is none."""
    page = page.lower()
    _, _, after = page.partition("<title")
    _, _, after = after.partition(">")
    words, end, _ = after.partition("</title")
    return " ".join(words.split()) if end else ""


def _is_page(body: bytes, content_type: str | None) -> bool:
    return "html" in (content_type or "").lower() or body[:1024].lstrip().lower().startswith(
        (b"<!doctype html", b"<html")
    )
