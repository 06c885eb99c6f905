"""Numbers and dates from a Site's headers: the one bounded parser (DESIGN 4.4).

Owns Retry-After, the freshness of Cache-Control and Expires, and Keep-Alive.  Refuses to own: what they mean for pace
(`lanes.core.pace`).  Must never break: no input raises, and no number leaves here outside its range.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from itertools import pairwise

LONGEST_DELAY = timedelta(days=30)
"""A wait that a Site asks for is obeyed up to here; longer ones are cut, not ignored (DESIGN 4.3)."""

LONGEST_HINT = timedelta(hours=24)
"""A hint about pace over 24 h is no hint (DESIGN 5.2)."""

_LONGEST_VALUE = 1_024
"""Characters of a header value that are read: a longer one says nothing sensible."""

_UNIX_TIMES = 1_000_000_000
"""From here on a number cannot be seconds to wait: it would be 30 years."""

_ZERO = re.compile(r"0+(?:\.0*)?")
_UNSIGNED = re.compile(r"([0-9]{1,10})(?:\.[0-9]{0,9})?")
_DIGITS = re.compile(r"[0-9]+")
_DATE = re.compile(r"[A-Za-z0-9 ,:+-]{10,40}")
_KEEP_ALIVE = re.compile(r"(?:^|[\s,])timeout=([0-9]+)", re.IGNORECASE)


def delay(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """How long `Retry-After`, or the Unix time of `X-RateLimit-Retry-After`, asks to wait: above zero, at most 30 days; None where it says
    nothing usable.

    Names in `headers` are lower-case.  A date counts from the server's own `Date`, else from `now` (CASES B5).  Of several values the
    longest counts.  "0" and a date gone by are None: the Site's word may slow us, never speed us.
    """
    found = _readings(headers.get("retry-after", ""), headers, now)
    found += _reset(headers.get("x-ratelimit-retry-after", ""), headers, now)
    return min(max(found), LONGEST_DELAY) if found else None


def used_up(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """How long until a host gives again, where its `X-RateLimit-Remaining` is zero: above zero, at most 24 h, else None.

    `X-RateLimit-Reset` is in seconds or a Unix time, whichever it can be.
    """
    if not _ZERO.fullmatch(headers.get("x-ratelimit-remaining", "").strip(" \t")):
        return None
    found = _reset(headers.get("x-ratelimit-reset", ""), headers, now)
    return min(found[0], LONGEST_HINT) if found else None


def date(headers: Mapping[str, str]) -> datetime | None:
    """The server's own instant of its answer, or None."""
    return _date(headers.get("date", "")[:_LONGEST_VALUE])


def max_age(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """How long the answer stays fresh by `Cache-Control: max-age`, else by `Expires`: above zero, at most 24 h, else None.

    `no-cache` and `no-store` say that freshness means nothing here: None (RFC 9111 5.2.2).
    """
    directives = [part.strip(" \t").lower() for part in headers.get("cache-control", "")[:_LONGEST_VALUE].split(",")]
    if "no-cache" in directives or "no-store" in directives:
        return None
    ages = [directive[8:].strip('"') for directive in directives if directive.startswith("max-age=")]
    found = [age for age in map(_seconds, ages) if age is not None]
    if not ages:
        found = _readings(headers.get("expires", ""), headers, now)
    hint = max(found, default=None)
    return hint if hint is not None and timedelta(0) < hint <= LONGEST_HINT else None


def keep_alive(headers: Mapping[str, str]) -> timedelta | None:
    """How long the server says that it keeps an idle connection, or None."""
    found = _KEEP_ALIVE.search(headers.get("keep-alive", "")[:_LONGEST_VALUE])
    return _seconds(found[1]) if found else None


def _readings(value: str, headers: Mapping[str, str], now: datetime) -> list[timedelta]:
    """Every way to read a value that may be several joined by a comma, although a date holds a comma itself."""
    if not value:
        return []
    parts = value[:_LONGEST_VALUE].split(",")
    dates = [_date(part) for part in (*parts, *(f"{day},{rest}" for day, rest in pairwise(parts)))]
    since = date(headers) or now
    found = [_seconds(part) for part in parts] + [date - since for date in dates if date is not None]
    return [wait for wait in found if wait is not None and wait > timedelta(0)]


def _reset(value: str, headers: Mapping[str, str], now: datetime) -> list[timedelta]:
    """A number of seconds, or the Unix time that a larger one must be."""
    found = _UNSIGNED.fullmatch(value.strip(" \t"))
    if found is None:
        return []
    number = int(found[1])
    wait = timedelta(seconds=number)
    if number >= _UNIX_TIMES:
        wait = datetime.fromtimestamp(number, UTC) - (date(headers) or now)
    return [wait] if wait > timedelta(0) else []


def _seconds(text: str) -> timedelta | None:
    """ASCII digits alone; a number past every range is cut to 30 days before any arithmetic."""
    digits = text.strip(" \t")
    if not _DIGITS.fullmatch(digits):
        return None
    digits = digits.lstrip("0")
    return LONGEST_DELAY if len(digits) > 7 else min(timedelta(seconds=int(digits or "0")), LONGEST_DELAY)


def _date(text: str) -> datetime | None:
    """An HTTP-date in any form that the mail parser knows; without a zone it is UTC."""
    text = text.strip(" \t")
    if not _DATE.fullmatch(text):
        return None
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)
