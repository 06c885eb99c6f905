"""Whether an answer is a challenge, a block or a log-in page, whatever its status says (DESIGN 4.3, 5.4).

Owns the signs, each a header or a landmark of the page.  Refuses to own: what follows (`outcome`, `refusal`).  Must never break: a
phrase in running text proves nothing, and a recognised document is never asked about its body.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lanes.core.urls import split

LOOKED_AT: Final = 65_536
"""Bytes of a page that are looked at: challenge pages are short, and put their landmarks first."""

_HEADERS: Final[tuple[tuple[str, frozenset[str]], ...]] = (
    ("cf-mitigated", frozenset({"challenge"})),
    ("x-amzn-waf-action", frozenset({"challenge", "captcha"})),
)
_TITLE: Final = re.compile(r"<title[^>]*>\s*(.*?)\s*</title", re.IGNORECASE | re.DOTALL)
_PASSWORD: Final = re.compile(r"<input[^>]+type\s*=\s*[\"']?password", re.IGNORECASE)
_LOG_IN: Final = frozenset({"login", "log-in", "signin", "sign-in", "wp-login.php", "logon"})


@dataclass(frozen=True, slots=True)
class Sign:
    """A kind of page: its title (lower-case) and a mark of its text must both be there, or `path` in the URL it was shown at.

    `clears`: in a browser that merely waits it makes room for the page by itself, mostly."""

    what: str
    title: re.Pattern[str]
    mark: re.Pattern[str]
    clears: bool = False
    path: str | None = None


_PAGES: Final = (
    Sign(
        "a Cloudflare challenge",
        re.compile("just a moment"),
        re.compile(r"_cf_chl_opt|/cdn-cgi/challenge-platform/(?!scripts/jsd/)"),
        clears=True,
    ),
    Sign("a Cloudflare block", re.compile("attention required!.*cloudflare"), re.compile("")),
    Sign(
        "a DDoS-Guard captcha",
        re.compile("ddos-guard$"),
        re.compile(r"/\.well-known/ddos-guard/ddg-captcha-page/|h-captcha", re.IGNORECASE),
    ),
    Sign(
        "a DDoS-Guard challenge",
        re.compile("ddos-guard$"),
        re.compile(r"/\.well-known/ddos-guard/|link-ddg", re.IGNORECASE),
        clears=True,
    ),
    Sign(
        "a security check",
        re.compile("security check$"),
        re.compile(r"<meta(?=[^>]*name=[\"']?robots)[^>]*noindex", re.IGNORECASE),
        path="/@waf/",
    ),
    Sign("a block page", re.compile("blocked$"), re.compile("blocked by network security")),
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
    found = _TITLE.search(page)
    title = " ".join(found[1].lower().split()) if found else ""
    parts = split(url)
    path = parts.target.partition("?")[0] if parts else ""
    for sign in _PAGES:
        if (sign.path and sign.path in path) or (sign.title.match(title) and sign.mark.search(page)):
            return sign
    return None


def wants_log_in(body: bytes, content_type: str | None, asked: str, answered: str) -> bool:
    """Whether a page that no reader recognised asks to log in: we were led to a log-in path, or it has a password field."""
    if not _is_page(body, content_type):
        return False
    parts = split(answered)
    path = parts.target.partition("?")[0] if parts else ""
    led_there = asked != answered and not _LOG_IN.isdisjoint(path.lower().strip("/").split("/"))
    return led_there or _PASSWORD.search(body[:LOOKED_AT].decode("utf-8", "replace")) is not None


def _is_page(body: bytes, content_type: str | None) -> bool:
    return "html" in (content_type or "").lower() or body[:1024].lstrip().lower().startswith(
        (b"<!doctype html", b"<html")
    )
