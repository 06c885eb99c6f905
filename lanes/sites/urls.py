"""The one spelling of a URL under which it is followed.

Owns telling a URL that can be fetched from one that cannot, and its canonical form.  Refuses to own: which Site it belongs to.  Must
never break: the canonical form asks the same thing of the same host; path and query stay as they were given.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from lanes.errors import BadUrl

LONGEST = 4_096
"""Characters; servers commonly refuse more than 8,000."""

_DEFAULT_PORTS = {"http": 80, "https": 443}
_FEED_SCHEME = re.compile(r"feed:(?://)?(?=https?:)", re.IGNORECASE)
_UNSENDABLE = re.compile(r"[\x00-\x20\x7f\ud800-\udfff]")
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*\.?")


def _host(parts: SplitResult, given: str) -> str:
    name = parts.hostname or ""
    if not name:
        raise BadUrl(given, "it names no host.")
    if "[" in parts.netloc:
        try:
            return f"[{ipaddress.IPv6Address(name).compressed}]"
        except ValueError:
            raise BadUrl(given, "its host is no IPv6 address.") from None
    try:
        name = name.encode("ascii" if name.isascii() else "idna").decode("ascii").lower()
    except UnicodeError:
        raise BadUrl(given, "its host is no domain name.") from None
    if not _NAME.fullmatch(name) or len(name) > 253:
        raise BadUrl(given, "its host is no domain name.")
    return name


def canonical(given: str) -> str:
    """Scheme and host in lower case, the host in ASCII (IDNA), no default port, no fragment, at least "/" as path; `feed:` is http.

    Raises BadUrl for anything that is not http(s), has no host or a bad port, or cannot be written into a request.
    """
    text = _FEED_SCHEME.sub("", given.strip())
    if text[:7].lower() == "feed://":
        text = "http" + text[4:]
    if len(text) > LONGEST:
        raise BadUrl(given[:80] + "…", f"it is longer than {LONGEST:,} characters.")
    if _UNSENDABLE.search(text):
        raise BadUrl(given, "there is white space or a control character inside; write a space as %20.")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise BadUrl(given, "its host or port is malformed.") from None
    if parts.scheme not in _DEFAULT_PORTS:
        raise BadUrl(given, "only http:// and https:// URLs can be.")
    if port == 0:
        raise BadUrl(given, "its host or port is malformed.")
    user, at, _ = parts.netloc.rpartition("@")
    place = _host(parts, given) + (f":{port}" if port and port != _DEFAULT_PORTS[parts.scheme] else "")
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{user}{at}{place}{parts.path or '/'}{query}"
