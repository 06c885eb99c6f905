"""When a Series is next looked at: the adaptive Rest of `feeds`, failures, publisher hints, jitter.

Owns DESIGN 5.2.  Refuses to own: hosts (`pace`) and what an answer means (`outcome`).  Must never break: hints and failures only slow;
jitter only delays; the interval never leaves its band.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lanes.core.chapters import Hints

FLOOR = timedelta(seconds=60)  # the liveliest feed is looked at once a minute
CEILING = timedelta(hours=1)  # the promise: new Chapters are noticed within about an hour
INITIAL = timedelta(minutes=2)  # a new Series: lively enough to show it works, a few cheap requests from its own pace
SHORTEN = 0.5  # something new
LENGTHEN = 1.5  # nothing new
FAILURE_CEILING = timedelta(hours=6)  # a failing Series is still looked at four times a day
JITTER = 0.1  # phase and chance together, later only, so that nothing piles up at a clamp
REFUSED_FIRST = timedelta(minutes=15)  # a URL refused alone waits by itself ...
REFUSED_CEILING = timedelta(hours=4)  # ... doubling up to this
DISALLOWED = timedelta(hours=24)  # a forbidden address or robots' no is looked at again after this
SKIPPED_AT_MOST = timedelta(days=7)  # skipHours and skipDays that leave no hour free are no hint
_HOUR = timedelta(hours=1)


def shortened(rest: timedelta) -> timedelta:
    """The interval after something new was found."""
    return max(FLOOR, min(CEILING, rest * SHORTEN))


def lengthened(rest: timedelta) -> timedelta:
    """The interval after nothing new was found."""
    return max(FLOOR, min(CEILING, rest * LENGTHEN))


def after_failure(rest: timedelta, failures: int) -> timedelta:
    """How long a Series rests after its `failures`-th failure in a row; `rest` itself stays as it is."""
    return min(rest * (1 << min(failures, 20)), max(FAILURE_CEILING, rest))


def after_refusal(refusals: int) -> timedelta:
    """How long a URL that was refused alone waits, after the `refusals`-th time in a row."""
    return min(REFUSED_FIRST * (1 << min(refusals - 1, 20)), REFUSED_CEILING)


def phase(series_id: int) -> float:
    """A Series' fixed place in the jitter band, 0 to 1 (the same as in SQL's lanes.rest_of)."""
    return (series_id * 7919 % 1000) / 1000


def next_check(stamp: datetime, rest: timedelta, hints: Hints, *, series_id: int, chance: float) -> datetime:
    """The next check: stamp + rest or the publisher's longer wish, jittered later by at most 10 %, outside skipped hours and days.

    `chance` is a random number, 0 to 1.
    """
    wish = max(rest, hints.every) if hints.every is not None else rest
    jitter = JITTER * (phase(series_id) + chance) / 2
    return _unskipped(stamp + wish * (1 + jitter), hints)


def _unskipped(instant: datetime, hints: Hints) -> datetime:
    if not hints.skip_hours and not hints.skip_days:
        return instant
    place = instant.astimezone(UTC)
    while place - instant < SKIPPED_AT_MOST:
        if place.hour not in hints.skip_hours and place.weekday() not in hints.skip_days:
            return place
        into_hour = timedelta(minutes=place.minute, seconds=place.second, microseconds=place.microsecond)
        place += _HOUR - into_hour
    return instant
