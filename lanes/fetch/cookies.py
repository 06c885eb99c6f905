"""The cookies of one redirect chain, thrown away after it (DESIGN 4.3).

Owns keeping, sending and carrying them over a put back, by the standard library's rules.  Refuses to own: keeping any for another Poll.
Must never break: a cookie never goes to a host, path or scheme that it was not set for.
"""

from __future__ import annotations

from http.cookiejar import Cookie, CookieJar, DefaultCookiePolicy
from urllib.parse import urlsplit
from urllib.request import Request as Asked

from urllib3.response import HTTPResponse as Reply

from lanes.core.urls import Parts

MOST, LONGEST = 50, 4_096
"""Cookies carried over a put back, and characters of each: a row's worth."""

Carried = tuple[tuple[str, str, str], ...]
"""Scope as a URL (https for cookies that are secure, a leading dot for those of a whole domain), name, value."""


class Cookies:
    def __init__(self, carried: Carried = ()) -> None:
        self._jar = CookieJar(DefaultCookiePolicy(strict_domain=True))
        for scope, name, value in carried:
            self._jar.set_cookie(_cookie(scope, name, value))

    def keep(self, parts: Parts, reply: Reply) -> None:
        """Those that the answer from there sets."""
        if "set-cookie" in reply.headers:
            self._jar.extract_cookies(reply, _asked(parts))  # type: ignore[arg-type]  # it asks for `info()` alone

    def header(self, parts: Parts) -> str | None:
        """The Cookie header for a request there."""
        asked = _asked(parts)
        self._jar.add_cookie_header(asked)
        return asked.get_header("Cookie")

    def carried(self) -> Carried:
        scopes = (
            (("https" if cookie.secure else "http") + f"://{cookie.domain}{cookie.path}", cookie)
            for cookie in self._jar
        )
        found = [(scope, cookie.name, cookie.value or "") for scope, cookie in scopes]
        return tuple(each for each in found if sum(map(len, each)) <= LONGEST and "".join(each).isprintable())[:MOST]


def _asked(parts: Parts) -> Asked:
    return Asked(f"{parts.scheme}://{parts.authority}{parts.target}")  # noqa: S310 - never opened: it is what a jar looks at


def _cookie(scope: str, name: str, value: str) -> Cookie:
    scheme, domain, path, *_ = urlsplit(scope)
    whole = domain.startswith(".")
    return Cookie(
        0, name, value, None, False, domain, whole, whole, path, True, scheme == "https", None, True, None, None, {}
    )
