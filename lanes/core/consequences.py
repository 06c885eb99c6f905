"""What else follows from a Poll, beyond schedule, counters and Chapters: a closed union, rare by nature.

Owns their shapes.  Refuses to own: deciding them (`settlement`, `moving`, `retirement`, `blame`, `refusal`) and writing them
(`lanes.store`).  Must never break: each is written in the transaction that settles its Poll, fenced on the same lease.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanes.core.blame import Answered, SiteFails, SiteHeals
from lanes.core.claim import Moving
from lanes.core.pace import RefusedPace
from lanes.core.refusal import Read


@dataclass(frozen=True, slots=True)
class Retire:
    """The Series is given up; its Readers are told why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Revive:
    """A retired Series gave a good answer to its weekly look: counters zeroed, its Readers told."""


@dataclass(frozen=True, slots=True)
class Gather:
    """What is known of a move so far; None: nothing any more."""

    moving: Moving | None


@dataclass(frozen=True, slots=True)
class Adopt:
    """The Series moves to `url`; where that is a Series already, this one retires and its Bookmarks are copied."""

    url: str


@dataclass(frozen=True, slots=True)
class Distrust:
    """The Series' validators lied or never match, in words; None: they are trusted again."""

    reason: str | None


@dataclass(frozen=True, slots=True)
class Remember:
    """The last answers of distinct Series of the host that answered."""

    answers: tuple[Answered, ...]


@dataclass(frozen=True, slots=True)
class Spare:
    """The open incident of its Site spares the Series this failure."""


@dataclass(frozen=True, slots=True)
class Heed:
    """A read that may open, double or reset the refusal window of its host, or of its Lane on a Site of one host."""

    read: Read


@dataclass(frozen=True, slots=True)
class Learn:
    """The interval at which the host refused us, to be kept from for a long time."""

    refused: RefusedPace


@dataclass(frozen=True, slots=True)
class Bury:
    """The host is dead, or (`dead` False) answers again."""

    dead: bool


Consequence = (
    Retire | Revive | Gather | Adopt | Distrust | Remember | SiteFails | SiteHeals | Spare | Heed | Learn | Bury
)
