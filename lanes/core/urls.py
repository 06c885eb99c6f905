"""URLs as a poller needs them: taken apart, followed, and shown without their secrets.

Owns which text is a URL that can be asked, and the one spelling of its host.  Refuses to own: asking it.  Must never break: no text
raises, and whatever `split` returns can be written into a request line and a Host header as it stands.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, urldefrag, urljoin, urlsplit, urlunsplit

LONGEST_URL = 8_192
"""Characters.  Web servers refuse longer request lines, so a longer one leads nowhere."""

PORTS = {"http": 80, "https": 443}

_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_-])?|[0-9a-f:]*:[0-9a-f:.]*")


@dataclass(frozen=True, slots=True)
class Parts:
    """A URL taken apart.  `host` is lower-case ASCII without a trailing dot or brackets; `target` goes into the request line;
    `userinfo` is "user:password" as written, or None."""

    scheme: str
    host: str
    port: int
    target: str
    userinfo: str | None = None

    @property
    def authority(self) -> str:
        """For the Host header: no userinfo, the port only where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port, in one spelling (RFC 6454)."""
        return f"{self.scheme}://{self.authority}"


@lru_cache(maxsize=256)  # a Poll takes its URL apart in several places
def split(url: str) -> Parts | None:
    """The parts of an absolute http or https URL, or None where nobody can be asked by it."""
    try:
        bits = urlsplit(url)
        port = PORTS.get(bits.scheme, 0) if (written := bits.port) is None else written
        host = (bits.hostname or "").removesuffix(".")
        if not host.isascii():
            host = host.encode("idna").decode("ascii")
    except ValueError:  # UnicodeError too: a label that no name may have
        return None
    if not port or bits.scheme not in PORTS or len(url) > LONGEST_URL or not _is_host(host):
        return None
    userinfo = bits.netloc.rpartition("@")[0] or None
    target = _written(bits.path or "/") + (f"?{_written(bits.query)}" if bits.query else "")
    return Parts(bits.scheme, host, port, target, userinfo)


def follow(base: str, location: str) -> str | None:
    """Where a `Location` header at `base` leads, without fragment, or None where it leads nowhere that can be asked.

    `location` is the header as latin-1 text; its bytes are kept, escaped.  Credentials in `base` go along within one host, and from
    http to https, never elsewhere.
    """
    location = location.strip()
    if not location or len(location) > LONGEST_URL:
        return None
    try:
        url = urldefrag(urljoin(base, _written(location.encode("latin-1", "replace")))).url
    except ValueError:
        return None
    here, there = split(base), split(url)
    if here is None or there is None:
        return None
    if here.userinfo and not there.userinfo and _may_know(here, there):
        bits = urlsplit(url)
        url = urlunsplit(bits._replace(netloc=f"{here.userinfo}@{bits.netloc}"))
    return url


def shown(url: str) -> str:
    """The URL without userinfo, query and fragment, fit for a log line; "(no URL)" where it is none."""
    parts = split(url)
    if parts is None:
        return "(no URL)"
    path, asked, _ = parts.target.partition("?")
    return f"{parts.scheme}://{parts.authority}{path}{'?...' if asked else ''}"


def is_same_place(one: str, other: str) -> bool:
    """Whether two URLs differ in nothing but scheme, last slash and www: the same place inside one host (DESIGN 4.3 Hops)."""
    here, there = split(one), split(other)
    if here is None or there is None or (here.scheme == there.scheme and here.port != there.port):
        return False
    return _plain(here) == _plain(there)


def _plain(parts: Parts) -> tuple[str, str, str | None]:
    """What is left of a URL without its scheme (and the port of that), its last slash and its www."""
    return parts.host.removeprefix("www."), parts.target.rstrip("/"), parts.userinfo


def _is_host(host: str) -> bool:
    labels = host.split(".")
    return len(host) <= 253 and _NAME.fullmatch(host) is not None and all(0 < len(label) < 64 for label in labels)


def _may_know(here: Parts, there: Parts) -> bool:
    """Whether `there` may be given the credentials of `here`."""
    upgraded = (here.scheme, here.port, there.scheme, there.port) == ("http", 80, "https", 443)
    return here.host == there.host and (upgraded or (here.scheme, here.port) == (there.scheme, there.port))


def _written(text: str | bytes) -> str:
    """Escape only what a request line cannot hold: blanks, controls and what is not ASCII."""
    return quote(text, safe=string.punctuation)
