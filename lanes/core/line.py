"""Us: whether the line of one machine works, judged from its own last attempts (DESIGN 4.4).

Owns the judgement and its numbers.  Refuses to own: what proves a line (`blame.proof`), and giving back what was charged
(rules/5_give_back.sql).  Must never break: a proof ends us, and without one nothing does, unless a single host is all that is followed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

ATTEMPTS: Final = 3
"""Attempts in a row without proof: two may be two hosts that died at once, with a third the one line they share is the likelier cause."""
HOSTS: Final = 2
"""... of this many hosts: a single one that is silent says nothing about the way there."""
ANSWERED_LATELY: Final = timedelta(hours=24)
"""Whoever answered within a day would most likely answer now: worth one question ahead of its Rest."""
ASK_AT_MOST_EVERY: Final = timedelta(minutes=10)
"""Between two such questions: a few dead hosts among many must not make a nuisance of us at the healthy ones."""
PROBE_EVERY: Final = timedelta(minutes=1)
"""While it is us, one due Poll a minute looks whether the line is back: soon enough, and next to nothing for anybody."""
ALONE_AT_MOST: Final = timedelta(hours=24)
"""With only one host followed, a host that is dead looks like a line that is down; nobody's line is down for long and its owner unaware."""
LOOK_BACK: Final = timedelta(hours=24)
"""Attempts that are older say nothing about now."""
LEAP: Final = timedelta(seconds=60)
"""The clock ran ahead of our own by more than this between two claims: the machine slept, and wakes before its network does."""

ASKS: Final = "asks whether our line is up"
"""Why a Series is looked at ahead of its Rest, in words."""
DOWN: Final = "our own line is down"
"""Why the Poll of a cut-off machine is put back, in words."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that ended without proof.  `charged`: it cost its Series or its host something that was not given back yet."""

    claimed_at: datetime
    series_id: int
    host: str
    detail: str | None = None
    charged: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """What is known of the line of one machine.

    `unproved` are its attempts since `proved_at`, newest first.  `only_host`: a single host is all that is followed.  `shaken_at`: the
    database was away, or the clock jumped.  `asked_elsewhere`: another machine took the question that was asked at `asked_at`.
    `us_since` is the first attempt of the outage; `excused_at`: us ended without a proof.
    """

    unproved: tuple[Attempt, ...] = ()
    proved_at: datetime | None = None
    only_host: bool = False
    shaken_at: datetime | None = None
    asked_at: datetime | None = None
    asked_series: int | None = None
    asked_elsewhere: bool = False
    us_since: datetime | None = None
    excused_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Us:
    """The line is down, since the last of these attempts; what they charged is to be given back."""

    attempts: tuple[Attempt, ...]

    @property
    def since(self) -> datetime:
        return self.attempts[-1].claimed_at

    @property
    def hosts(self) -> tuple[str, ...]:
        """Each once, in the order in which they fell silent."""
        return tuple(dict.fromkeys(attempt.host for attempt in reversed(self.attempts)))


@dataclass(frozen=True, slots=True)
class Ask:
    """One Series of another host than these, one that answered lately, is looked at ahead of its Rest; where there is none, it is us."""

    otherwise: Us


@dataclass(frozen=True, slots=True)
class Proved:
    """The line works, whatever was thought of it."""


@dataclass(frozen=True, slots=True)
class Excused:
    """A day is over and only one host is followed: from now on its failures are its own, until a proof comes."""


def judge(line: Line, now: datetime) -> Us | Ask | Proved | None:
    """What an attempt without proof says about its machine; None: nothing yet, or nothing new."""
    if line.us_since is not None:
        if line.proved_at is not None and line.proved_at >= line.us_since:
            return Proved()
        return Us(line.unproved) if any(each.charged for each in line.unproved) else None
    if not line.unproved or _is_excused(line):
        return None
    us = Us(line.unproved)
    several = len(us.hosts) >= HOSTS
    if several and _is_shaken(line):
        return us
    if len(line.unproved) < ATTEMPTS or not (several or line.only_host):
        return None
    if _was_asked(line) and _asked_in_vain(line):
        return us
    if line.asked_at is not None and now - line.asked_at < ASK_AT_MOST_EVERY:
        return None
    return Ask(otherwise=us)


def probed(us_since: datetime | None, now: datetime, *, proved: bool, only_host: bool) -> Proved | Excused | None:
    """What the probe of a machine that was cut off when it was claimed says about it; None: it still is, or is no longer."""
    if us_since is None:
        return None
    if proved:
        return Proved()
    return Excused() if only_host and now - us_since >= ALONE_AT_MOST else None


def leapt(ahead_before: float | None, ahead: float) -> bool:
    """Whether the clock jumped forward between two claims; `ahead` is by how many seconds it was ahead of monotonic time at each."""
    return ahead_before is not None and ahead - ahead_before > LEAP.total_seconds()


def _is_excused(line: Line) -> bool:
    proved_since = line.excused_at is not None and line.proved_at is not None and line.proved_at >= line.excused_at
    return line.only_host and line.excused_at is not None and not proved_since


def _is_shaken(line: Line) -> bool:
    """No proof has come since the database was away or the clock jumped: two silent hosts are enough, and nobody is asked."""
    return line.shaken_at is not None and (line.proved_at is None or line.proved_at < line.shaken_at)


def _was_asked(line: Line) -> bool:
    """The question belongs to these attempts, and not to doubts that a proof has dispelled since."""
    return line.asked_at is not None and line.unproved[-1].claimed_at <= line.asked_at


def _asked_in_vain(line: Line) -> bool:
    """The Series that was asked did not answer either; where another machine took it, whoever came next stands for it."""
    later = (each for each in line.unproved if line.asked_at is not None and each.claimed_at > line.asked_at)
    return any(each.series_id == line.asked_series or line.asked_elsewhere for each in later)
