"""Why a Series is not being polled just now, or that it is about to be: one reason, one instant.

Owns the words and their fixed order (DESIGN 4.2).  Refuses to own: when a Series is due and what gates there are (the rules in
store/sql/rules).  Must never break: a reason comes from the same `due` and `gate` that the claim uses, never from a second opinion.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

_TURNS = frozenset(
    {"the Gap of its Site", "the interval of its host", "the interval of its address", "its host is being fetched"}
)
"""Gates of mere pace, in the words of lanes.gate: whoever waits at one is waiting its turn, not held (DESIGN 2)."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A closed gate, and until when; None: until somebody opens it."""

    reason: str
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Standing:
    """A Series as it stands at `now`: why it is due (None: it is not), from when it will be, and the first gate that speaks."""

    now: datetime
    due: str | None
    due_at: datetime | None
    gate: Stop | None
    tier: str
    has_url: bool
    bookmarks: int
    paused_at: datetime | None
    retired_at: datetime | None
    retired_reason: str | None
    lifecycle: str
    lease_until: datetime | None
    lease_machine: str | None
    retry_at: datetime | None
    retry_reason: str | None
    failures: int
    failure: str | None
    sighted: bool
    """A Sighting is what puts its next check off."""
    waits: bool
    """It has a wait of its own: a Retry-After, a refused URL, robots, an address that is not public."""


@dataclass(frozen=True, slots=True)
class Why:
    """The one reason, fit to be read by the owner, and the instant at which it ends; None where that is nobody's to say."""

    reason: str
    until: datetime | None
    held: bool = False
    """Due, or waiting by itself, and kept from being polled by more than its turn."""


def why(series: Standing) -> Why:
    """The first reason that speaks: never polled; a gate without an end; in hand; not due yet; a gate; nothing."""
    never = _never(series)
    if never is not None:
        return Why(never, None)
    gate, due = series.gate, series.due is not None
    held = gate is not None and gate.reason not in _TURNS and (due or series.waits)
    if gate is not None and gate.until is None:
        return Why(gate.reason, None, held=held)
    if series.lease_until is not None and series.lease_until > series.now:
        return Why(f"being polled now, by {series.lease_machine}", None)
    if gate is not None and (due or _outlasts(gate, series.due_at)):
        return Why(gate.reason, gate.until, held=held)
    if not due:
        return Why(_not_yet(series), series.due_at)
    return Why(f"due ({series.due}): its Lane takes it at its turn", None)


def beyond_check_now(series: Standing) -> str | None:
    """Why no Check now leads to a Poll, or None: what is never polled, and what is retired."""
    if series.retired_at is not None:
        return _never(series) or f"it is retired ({series.retired_reason})"
    return _never(series)


def _never(series: Standing) -> str | None:
    if series.tier != "poll":
        return "its hub pushes it: it is not polled"
    if not series.has_url:
        return "it has no URL"
    if series.bookmarks == 0:
        return "nobody has bookmarked it"
    if series.paused_at is not None:
        return "it is paused"
    return None


def _outlasts(gate: Stop, due_at: datetime | None) -> bool:
    return gate.until is not None and due_at is not None and gate.until > due_at


def _not_yet(series: Standing) -> str:
    if series.retry_at is not None and series.retry_at > series.now:
        return f"put back: {series.retry_reason}"
    if series.retired_at is not None:
        return f"retired ({series.retired_reason}), with a weekly look left"
    if series.lifecycle == "finished":
        return "finished, with a weekly look left"
    if series.failures:
        times = "once" if series.failures == 1 else f"{series.failures} times in a row"
        return f"it failed {times} ({series.failure or 'no detail'}) and is tried again"
    return "a Reader saw it lately" if series.sighted else "it rests until its next check"
