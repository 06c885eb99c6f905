"""What is typed, as values: numbers, durations, hosts.

Owns what may be typed there and what is said where it is not that.  Refuses to own: which command takes what (`parser`).
"""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from datetime import timedelta
from typing import Final

from lanes.core.urls import split

LONGEST_WORD: Final = timedelta(hours=24)
"""Of an owner's word: whoever is to be asked less than once a day is better blocked, or no longer followed."""

_SITE = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_DURATION = re.compile(r"(?:([0-9]{1,6})d)?(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6})s)?")


def seconds(text: str) -> float:
    """A whole number of seconds."""
    if not text.isdecimal() or not text.isascii() or len(text) > 6:
        raise ArgumentTypeError(f"{text!r} is not a whole number of seconds")
    return float(text)


def count(text: str) -> int:
    """A number from 1 to 1,000,000."""
    if not text.isdecimal() or not text.isascii() or not 0 < int(text[:9]) <= 1_000_000:
        raise ArgumentTypeError(f"{text!r} is not a number from 1 to 1000000")
    return int(text[:9])


def duration(text: str) -> timedelta:
    """Whole days, hours, minutes and seconds, in this order, such as 2d, 1h30m or 90s; more than nothing."""
    found = _DURATION.fullmatch(text)
    parts = [int(part or 0) for part in found.groups()] if found else []
    if not any(parts):
        raise ArgumentTypeError(f"{text!r} is not a duration such as 90s, 2m30s, 12h or 2d")
    days, hours, minutes, rest = parts
    return timedelta(days, rest, minutes=minutes, hours=hours)


def word(text: str) -> timedelta:
    """A duration that a host or a Site may be slowed to: 24 h at most."""
    asked = duration(text)
    if asked > LONGEST_WORD:
        raise ArgumentTypeError(f"{text!r} is longer than 24h: `lanes block HOST` asks there no more at all")
    return asked


def site_name(text: str) -> str:
    """The name of a Site."""
    if not _SITE.fullmatch(text):
        raise ArgumentTypeError(f"{text!r} is not a name of 1 to 40 of the characters a-z, 0-9 and -, such as lantern")
    return text


def host(text: str) -> str:
    """A host's name in its one spelling, from a name, an address, or a URL there."""
    url = (
        text if "://" in text else f"http://[{text}]/" if text.count(":") > 1 and "[" not in text else f"http://{text}/"
    )
    parts = split(url)
    if parts is None or parts.userinfo is not None or ("://" not in text and parts.target != "/"):
        raise ArgumentTypeError(f"{text!r} is not a host such as serial.example.org")
    return parts.host
