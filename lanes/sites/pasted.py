"""A URL as a Reader pastes it, taken apart for the Site that recognises it.

Owns host, path and parameters, and how a Site's refusal of a URL is worded.  Refuses to own: which URL means what (each Site's).  Must
never break: a URL at a Site's own host is that Site's or nobody's, since a host has one Site; nothing here raises but BadUrl.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from lanes.core.urls import shown, split
from lanes.errors import BadUrl

MOST_PARAMETERS: Final = 100

UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_NUMBER: Final = re.compile(r"0*([1-9][0-9]{0,17})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Pasted:
    """`path` has the segments that are not empty, escaped as given; `parameters` are decoded, those without a value left out."""

    url: str
    host: str
    path: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...]

    def has(self, *path: str | re.Pattern[str]) -> bool:
        """Whether the path begins with these segments; a pattern must match its segment whole."""
        return len(self.path) >= len(path) and all(
            segment == wanted if isinstance(wanted, str) else wanted.fullmatch(segment)
            for segment, wanted in zip(self.path, path, strict=False)
        )

    def values(self, *names: str) -> list[str]:
        """What the parameters of these names say, in their order."""
        return [value for name, value in self.parameters if name in names]

    def value(self, *names: str) -> str:
        """What the first parameter of these names says, or ""."""
        return next(iter(self.values(*names)), "")

    def refused(self, why: str) -> BadUrl:
        """To be raised: a URL of this Site that cannot be followed, and what to do instead.  Its query may be a secret, and is not told."""
        return BadUrl(shown(self.url), why)


def taken_apart(url: str) -> Pasted | None:
    """A URL taken apart, or None where it is none that can be asked."""
    parts = split(url)
    if parts is None:
        return None
    path, _, query = parts.target.partition("?")
    try:
        parameters = tuple(parse_qsl(query, max_num_fields=MOST_PARAMETERS))
    except ValueError:
        parameters = ()
    return Pasted(url, parts.host, tuple(segment for segment in path.split("/") if segment), parameters)


def pasted(url: str, hosts: Collection[str]) -> Pasted | None:
    """A URL taken apart, or None where its host (port and scheme do not count) is none of these."""
    found = taken_apart(url)
    return found if found is not None and found.host in hosts else None


def number(text: str) -> str | None:
    """A whole number from 1 up as an identity in a URL: without leading zeros; None for anything else."""
    found = _NUMBER.fullmatch(text)
    return found[1] if found else None


def hosts_at(origin: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """The hosts of a Site that is fetched from `origin`: those known of it, or, at a stand-in, that one's alone."""
    parts = split(origin)
    own = parts.host if parts else ""
    return known if own in known else (own,)


def recogniser(origin: str, known: tuple[str, ...], place: Callable[[Pasted], str]) -> Callable[[str], str | None]:
    """The `recognise` of a Site of one host.  `place` gives path and query at `origin` of what is to be fetched, or raises BadUrl."""
    hosts = frozenset((*known, *hosts_at(origin, known)))

    def recognise(url: str) -> str | None:
        found = pasted(url, hosts)
        return None if found is None else origin + place(found)

    return recognise
