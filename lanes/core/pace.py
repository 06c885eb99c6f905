"""Pace: every number of Gap, host and address, and how an answer moves a host's interval (AIMD with a memory of refusals).

Owns DESIGN 5.1 and 5.3.  Refuses to own: when a Series is next looked at (`schedule`).  Must never break: only a healthy answer narrows,
and never below the default (or, for a host the registry names, its floor), nor below what is remembered of a refusal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

GAP_FLOOR = timedelta(seconds=1)  # however many Series a Site has: more than one page a second is no longer reading
HOST_DEFAULT = timedelta(
    seconds=1
)  # between two starts at a host nobody complained about: what a careful human clicking would do
HOST_FLOOR = timedelta(seconds=0.25)  # the fastest that any host is ever asked, and only one that the registry names
HOST_CEILING = timedelta(minutes=5)  # past this a host is not slow but dead
DEAD_AFTER = 3  # backoffs in a row at the ceiling: a quarter of an hour in which nothing answered ...
DEAD_PROBE = timedelta(hours=1)  # ... and then once an hour, so that it is seen within the hour when it answers again
ADDRESS_PACE = timedelta(
    seconds=0.5
)  # hosts may share a machine: 7,200 fetches an hour is all that one address ever gets
NARROW_STEP = timedelta(seconds=0.1)  # the smallest step back toward the default on a healthy answer
NARROW_SHARE = 0.1  # ... or this share of the interval, where that is more
BACKOFF = 2.0  # 5xx and transport failures: twice as slow, at once
ASKED_TO_WAIT = timedelta(
    seconds=90
)  # 429 without Retry-After: no public rate limit seen has a shorter window that matters
LATENCY_RISE = 1.5  # an answer this many times slower than usual ...
LATENCY_SEEN = timedelta(seconds=0.25)  # ... and slower than this (below it, noise) ...
LATENCY_WIDEN = 1.3  # ... eases us off before the host starts to fail
LATENCY_WEIGHT = 0.25  # of the newest answer in the smoothed latency
SENT_LATE = timedelta(seconds=0.1)  # a request written later than this after its claim moves its buckets first
LATE_WAIT = timedelta(seconds=5)  # ... and waits in its slot for a free one of its address, else it is put back
REFUSED_MARGIN = 1.25  # how far a host is kept from the interval at which it refused us ...
REFUSED_DECAY = 0.9  # ... of which this is left a day later: a limit may have been lifted, and one try finds out ...
REFUSED_MEMORY = timedelta(days=1)
REFUSED_AGAIN_MEMORY = timedelta(days=30)  # ... or only a month later, once a try has found that it stands
TWO_URLS = timedelta(minutes=10)  # 503 from two URLs of a host within this: the host waits, not the Series


class Signal(StrEnum):
    """What one answer says about a host's health."""

    HEALTHY = "healthy"  # it answered, whatever it said about the one Series
    TROUBLED = "troubled"  # 5xx or a transport failure
    TOO_FAST = "too fast"  # 429 without Retry-After
    SILENT = "silent"  # says nothing about the host's health: a wait it named, a first 503, a refusal, the guard


@dataclass(frozen=True, slots=True)
class RefusedPace:
    """The interval at which a host last refused us, when, and how often that has happened."""

    pace: timedelta
    at: datetime
    times: int = 1


@dataclass(frozen=True, slots=True)
class HostPace:
    """A host's adaptive interval, its smoothed latency, how many backoffs in a row ended at the ceiling, and where it last refused us."""

    pace: timedelta = HOST_DEFAULT
    latency: timedelta | None = None
    backoffs: int = 0
    refused: RefusedPace | None = None


@dataclass(frozen=True, slots=True)
class EffectiveGap:
    """The Gap in force of a Site; `floored`: its Series are too many to get all of them their Rest, only the floor holds."""

    gap: timedelta
    floored: bool = False


def effective_gap(gap: timedelta, rest: timedelta, eligible: int) -> EffectiveGap:
    """The Gap, or Rest shared among the eligible Series where that is smaller, never below GAP_FLOOR."""
    wanted = min(gap, rest / max(eligible, 1))
    return EffectiveGap(max(wanted, GAP_FLOOR), floored=wanted < GAP_FLOOR)


def after(
    before: HostPace, signal: Signal, latency: timedelta | None, now: datetime, floor: timedelta = HOST_DEFAULT
) -> HostPace:
    """The host's pace after one answer.  `latency` is None where there was no answer to time.

    Widening clamps at HOST_CEILING; narrowing goes down to `floor` or to what is remembered of a refusal, whichever is slower, and never
    moves a pace that is already below it.  A floor over the default is where its host starts, wherever its row came from.
    """
    if floor > HOST_DEFAULT:
        before = replace(before, pace=max(before.pace, floor))
    refused = before.refused if _stands(before.refused, now, floor) else None
    match signal:
        case Signal.TROUBLED | Signal.TOO_FAST:
            least = ASKED_TO_WAIT if signal is Signal.TOO_FAST else timedelta(0)
            wider = max(before.pace * BACKOFF, least, HOST_DEFAULT)
            at_ceiling = wider >= HOST_CEILING
            pace = min(wider, max(HOST_CEILING, before.pace))
            return HostPace(pace, _smoothed(before.latency, latency), before.backoffs + 1 if at_ceiling else 0, refused)
        case Signal.SILENT:
            return HostPace(before.pace, before.latency, before.backoffs, refused)
        case Signal.HEALTHY:
            lowest = max(floor, HOST_FLOOR)
            least = lowest if refused is None else max(lowest, remembered(refused, now))
            return HostPace(_eased(before, latency, least), _smoothed(before.latency, latency), 0, refused)


def refused_at(before: HostPace, in_force: timedelta, now: datetime, floor: timedelta = HOST_DEFAULT) -> RefusedPace:
    """What is learnt from a 429, or from a refusal window that opens: `in_force` is the host interval with all lower bounds in force at
    that claim.  A refusal never lowers what is remembered of an earlier one that still stands."""
    last = before.refused
    if last is None or not _stands(last, now, floor):
        return RefusedPace(in_force, now)
    return RefusedPace(max(in_force, remembered(last, now) / REFUSED_MARGIN), now, last.times + 1)


def remembered(refused: RefusedPace, now: datetime) -> timedelta:
    """The host's own floor, as it has decayed until `now`."""
    memory = REFUSED_MEMORY if refused.times == 1 else REFUSED_AGAIN_MEMORY
    left = math.pow(REFUSED_DECAY, max(now - refused.at, timedelta(0)) / memory)
    return min(refused.pace * REFUSED_MARGIN * left, HOST_CEILING)


def is_dead(pace: HostPace) -> bool:
    """Whether the host is only probed, every DEAD_PROBE."""
    return pace.backoffs >= DEAD_AFTER


def _stands(refused: RefusedPace | None, now: datetime, floor: timedelta) -> bool:
    return refused is not None and remembered(refused, now) > floor


def _eased(before: HostPace, latency: timedelta | None, least: timedelta) -> timedelta:
    if (
        latency is not None
        and before.latency is not None
        and latency > LATENCY_SEEN
        and latency > before.latency * LATENCY_RISE
    ):
        return min(before.pace * LATENCY_WIDEN, max(HOST_CEILING, before.pace))
    step = max(NARROW_STEP, before.pace * NARROW_SHARE)
    return min(before.pace, max(least, before.pace - step))


def _smoothed(before: timedelta | None, latency: timedelta | None) -> timedelta | None:
    if latency is None or before is None:
        return latency if before is None else before
    return before + (latency - before) * LATENCY_WEIGHT
