"""What a reader finds in a document, and how a Chapter is recognised again.

Owns the values that cross from `lanes.sites` to the rest, and Chapter identity.  Refuses to own: parsing (`lanes.sites`) and what is
stored (`lanes.store`).  Must never break: identity never comes from a position or a date (DESIGN 4.4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import blake2b

MAX_ITEMS = 2_000
"""Items of one document that are read; the rest is ignored (DESIGN 4.4: a feed bomb costs one Series at most)."""

LIST_MISSING = "list missing"
"""The kind of failure of a document that shows all but its Chapters, and does not say enough to do without them."""

IDENTITY_BYTES = 16
"""Length of an identity hash: 128 bits, so that two of a Series' identities never meet by chance, and it fits a `uuid` column."""


@dataclass(frozen=True, slots=True)
class Item:
    """One Chapter as its document gives it, in document order.

    `guid` is the publisher's own identity, case-sensitive and verbatim (stripped of surrounding white space), or None.
    `title` is plain text, one line, never None, "" where there is none.  `link` is absolute http(s), or None.
    `published_at` is aware UTC or None: a bad, absent or impossible date is None, never "now".  `approximate` marks a day-only or
    relative date.  `number` is a decimal as text, `volume` likewise, `label` from the closed set of SITES 14 ("" for none).
    `locked`: early access, not there for everybody yet: no Chapter until it is.
    """

    guid: str | None
    title: str
    link: str | None
    published_at: datetime | None = None
    approximate: bool = False
    number: str | None = None
    volume: str | None = None
    label: str = ""
    locked: bool = False


class Lifecycle(StrEnum):
    """How a Series stands with its publisher (DESIGN 2)."""

    ONGOING = "ongoing"
    HIATUS = "hiatus"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class Hints:
    """The publisher's wish about pace, found in the document: it may slow us, never speed us (DESIGN 5.2).

    `every` is the longest of ttl and sy:update*; None where there is none or where it is over 24 h ("a hint over 24 h is no hint").
    `skip_hours` are hours of the day in UTC (0 to 23), `skip_days` are weekdays (0 is Monday).
    """

    every: timedelta | None = None
    skip_hours: frozenset[int] = frozenset()
    skip_days: frozenset[int] = frozenset()


NO_HINTS = Hints()


@dataclass(frozen=True, slots=True)
class Document:
    """A recognised document: what a Site's reader found.  `items` hold at most MAX_ITEMS, in document order.

    `lifecycle` None: the document does not say.  `latest` is the number of its newest Chapter, where the document names that and shows
    no list this time: nothing new where it is not above what is known, else it could not be read.
    """

    items: tuple[Item, ...]
    title: str | None = None
    home: str | None = None
    hints: Hints = NO_HINTS
    lifecycle: Lifecycle | None = None
    latest: str | None = None
    hub: str | None = None
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class NotRecognised:
    """The bytes are not a document of this Site: `reason` in words, `start` the first characters, cleaned, for the owner.

    `kind` is the kind of failure that this is, by which a Site's own trouble is told from a Series' (DESIGN 4.4).
    """

    reason: str
    start: str = field(default="")
    kind: str = "not recognised"


Reading = Document | NotRecognised

Listed = tuple[tuple[Item, tuple[bytes, ...]], ...]
"""The items of a document, each once, with every identity it goes by."""


def _digest(kind: str, *parts: str) -> bytes:
    text = "\x1f".join((kind, *parts)).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=IDENTITY_BYTES).digest()


def guids_lie(items: tuple[Item, ...]) -> bool:
    """True when one document gives the same guid to two titles: guid alone then stops counting for the Series (CASES F13).

    An item without a title says nothing about its guid.
    """
    titles: dict[str, str] = {}
    return any(item.guid and item.title and titles.setdefault(item.guid, item.title) != item.title for item in items)


def identities(item: Item, *, guid_alone: bool = True) -> tuple[bytes, ...]:
    """Every identity the item has, strongest first; it is known when any one of them is known for its Series.

    guid (unless `guid_alone` is False), guid + title, link + title; a bare title or link only where nothing else is there.
    """
    found: list[bytes] = []
    if item.guid:
        if guid_alone:
            found.append(_digest("guid", item.guid))
        if item.title:
            found.append(_digest("guid+title", item.guid, item.title))
    if item.link and item.title:
        found.append(_digest("link+title", item.link, item.title))
    if not found and (item.guid or item.link or item.title):
        found.append(_digest("only", item.guid or "", item.link or "", item.title))
    return tuple(found)


def distinct(items: tuple[Item, ...], *, guid_alone: bool = True) -> Listed:
    """The items that have an identity, each once, with every identity it goes by.

    A later item that shares any identity with an earlier one is the same Chapter; what else identifies it is kept with the earlier one,
    so that it is still known when only it remains in the document.
    """
    place: dict[bytes, int] = {}
    kept: list[tuple[Item, dict[bytes, None]]] = []
    for item in items[:MAX_ITEMS]:
        ids = identities(item, guid_alone=guid_alone)
        if not ids:
            continue
        index = next((place[identity] for identity in ids if identity in place), len(kept))
        if index == len(kept):
            kept.append((item, {}))
        for identity in ids:
            if place.setdefault(identity, index) == index:
                kept[index][1][identity] = None
    return tuple((item, tuple(ids)) for item, ids in kept)
