"""Host and address pace: every number, and how an answer moves a host's interval (AIMD).

Owns DESIGN 5.3.  Refuses to own: when a Series is next looked at (`schedule`).  Must never break: only a healthy answer narrows, and
never below the default (or, for a host the registry names, its floor).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

HOST_DEFAULT = timedelta(
    seconds=1
)  # between two starts at a host nobody complained about: what a careful human clicking would do
HOST_CEILING = timedelta(minutes=5)  # past this a host is not slow but dead
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


def after(before: HostPace, signal: Signal, latency: timedelta | None) -> HostPace:
    """The host's pace after one answer.  `latency` is None where there was no answer to time.

    Widening clamps at HOST_CEILING; narrowing never goes below HOST_DEFAULT, nor moves a pace that is already below it.
    """
    match signal:
        case Signal.TROUBLED | Signal.TOO_FAST:
            least = ASKED_TO_WAIT if signal is Signal.TOO_FAST else timedelta(0)
            wider = max(before.pace * BACKOFF, least, HOST_DEFAULT)
            at_ceiling = wider >= HOST_CEILING
            pace = min(wider, max(HOST_CEILING, before.pace))
            return HostPace(pace, _smoothed(before.latency, latency), before.backoffs + 1 if at_ceiling else 0)
        case Signal.SILENT:
            return HostPace(before.pace, before.latency, before.backoffs)
        case Signal.HEALTHY:
            return HostPace(_eased(before, latency), _smoothed(before.latency, latency), 0)


def _eased(before: HostPace, latency: timedelta | None) -> timedelta:
    if (
        latency is not None
        and before.latency is not None
        and latency > LATENCY_SEEN
        and latency > before.latency * LATENCY_RISE
    ):
        return min(before.pace * LATENCY_WIDEN, max(HOST_CEILING, before.pace))
    step = max(NARROW_STEP, before.pace * NARROW_SHARE)
    return min(before.pace, max(HOST_DEFAULT, before.pace - step))


def _smoothed(before: timedelta | None, latency: timedelta | None) -> timedelta | None:
    if latency is None or before is None:
        return latency if before is None else before
    return before + (latency - before) * LATENCY_WEIGHT
