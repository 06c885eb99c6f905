"""Why a Series is not being polled just now, or that it is about to be: one reason, one instant, and what is true beside it.

Owns the words and their fixed order (DESIGN 4.2).  Refuses to own: when a Series is due and what gates there are (the rules in
store/sql/rules).  Must never break: a reason comes from the same `due` and `gate` that the claim uses, never from a second opinion.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

BLOCKED: Final = "the owner blocked it"
REFUSES: Final = "the host refuses"
"""Why a host waits, as `hosts.not_before_reason` says it."""

_BY_HAND: Final = frozenset({"polling is switched off", "the Lane is paused"})
"""Gates of a whole Lane that somebody's hand closed, in the words of lanes.gate."""
_GAP, _INTERVAL = "the Gap of its Site", "the interval of its host"
_ASLEEP: Final = "Chrome sleeps: fewer than 5 are due, none for 15 minutes"
_DOWN: Final = "the browser is down: "
NO_SIDECAR: Final = _DOWN + "its sidecar does not run"
STOPPED: Final = "its sidecar was stopped"
"""What a sidecar that ends leaves as its trouble."""
_REMEDIES: Final = {
    "the browser is lost": "nothing is charged for that, and it is tried again by itself",
    NO_SIDECAR: "`make run` starts it",
    _DOWN + STOPPED: "`.venv/bin/supervisorctl start browser` starts it",
    _ASLEEP: "a Check now wakes Chrome",
}
"""The way out of a gate of the browser, in the words of lanes.browser_trouble and lanes.browser_asleep."""
IN_HAND: Final = "its host is being fetched"
TURNS: Final = frozenset({_GAP, _INTERVAL, "the interval of its address", IN_HAND, _ASLEEP})
"""Gates of mere pace, in the words of lanes.gate and lanes.browser_asleep: whoever waits there is in turn, not held (DESIGN 2)."""


LONGEST_DETAIL = 120
"""Characters of a failure that a reason quotes."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A closed gate, and until when; None: until somebody opens it."""

    reason: str
    until: datetime | None


def browser_remedy(gate: Stop) -> str | None:
    """The way out of a gate of the browser: what its owner can do, or that it opens by itself.  None: it is another gate.

    Beyond the fixed ones a sidecar says itself why it cannot serve, with what mends it; it looks again by itself."""
    if not gate.reason.startswith(_DOWN):
        return _REMEDIES.get(gate.reason)
    again = "it is found within a minute then" if gate.until is None else "it is tried again by itself"
    return _REMEDIES.get(gate.reason, again)


def with_remedy(gate: Stop) -> str:
    """What closed it, and, of a gate of the browser, its way out."""
    remedy = browser_remedy(gate)
    return gate.reason if remedy is None else f"{gate.reason}; {remedy}"


@dataclass(frozen=True, slots=True)
class Standing:
    """A Series as it stands at `now`: why it is due (None: it is not), from when it will be, and the first gate that speaks.

    `us_since`: the line of every machine that polls is down.  `gap_bound`, `interval_bound`: which lower bound decides the Gap of its
    Site, the interval of its host (None: its own pace).  `sighted`: a Sighting is what puts its next check off.  `spared`: the kind of
    failure in which its Site fails, where that spares it.  `waits`: it has a wait of its own.  `has_site` False: its Site is in the
    registry no more, so no Lane takes it.
    """

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
    waits: bool
    us_since: datetime | None = None
    gap_bound: str | None = None
    interval_bound: str | None = None
    spared: str | None = None
    refused_since: datetime | None = None
    distrusted_at: datetime | None = None
    distrusted_reason: str | None = None
    moving_to: str | None = None
    moving_since: datetime | None = None
    old_url: str | None = None
    has_site: bool = True


@dataclass(frozen=True, slots=True)
class Why:
    """The one reason, fit to be read by the owner, and the instant at which it ends; None where that is nobody's to say."""

    reason: str
    until: datetime | None
    held: bool = False
    """Due, or waiting by itself, and kept from being polled by more than its turn."""
    is_next: bool = False
    """`until` is when it is looked at next; else how long the reason lasts."""


@dataclass(frozen=True, slots=True)
class Note:
    """What is true beside the reason: since when and until when, where that is known, the way out, and the URL it is about (whole: whoever
    shows it hides secrets)."""

    words: str
    since: datetime | None = None
    url: str | None = None
    until: datetime | None = None
    remedy: str | None = None


def why(series: Standing) -> Why:
    """The first reason that speaks: never polled; no Site; the kill switch; its Lane paused; our line; any other gate without an end; in
    hand; a gate, in the order of lanes.gate, where it is due or the gate outlasts its rest; not due yet; nothing."""
    never = _never(series)
    if never is not None:
        return Why(never, None)
    if not series.has_site:
        return Why("its Site is not in the registry: `lanes sites` tells what is left out, and why", None, held=True)
    gate, due = series.gate, series.due is not None
    held = gate is not None and gate.reason not in TURNS and (due or series.waits)
    if gate is not None and gate.reason in _BY_HAND:
        return Why(gate.reason, None, held=held)
    if due and series.us_since is not None:
        return Why("our own line is down: one Poll a minute until it is back", None)
    if gate is not None and gate.until is None:
        return Why(_gate(series, gate), None, held=held)
    if series.lease_until is not None and series.lease_until > series.now:
        return Why(f"being polled now, by {series.lease_machine}", None)
    if gate is not None and (due or _outlasts(gate, series.due_at)):
        return Why(_gate(series, gate), gate.until, held=held)
    if not due and series.retry_at is not None and series.retry_at > series.now:
        return Why(f"put back: {series.retry_reason}", series.due_at)
    if not due:
        return Why(_not_yet(series), series.due_at, is_next=True)
    return Why(f"due ({series.due}): its Lane takes it at its turn", None)


def notes(series: Standing) -> tuple[Note, ...]:
    """What its owner should know beside the one reason, in a fixed order; mostly nothing."""
    found: list[Note] = []
    if series.gate is not None and (remedy := browser_remedy(series.gate)) is not None:
        words = f"its pages are read through the browser, and {series.gate.reason}"
        found.append(Note(words, until=series.gate.until, remedy=remedy))
    if series.us_since is not None:
        found.append(Note("our own line is down", series.us_since))
    if series.refused_since is not None:
        found.append(Note("its URL is refused", series.refused_since))
    if series.moving_to is not None:
        found.append(
            Note(
                "its Site redirects it for good; followed there once that has proved true",
                series.moving_since,
                series.moving_to,
            )
        )
    if series.old_url is not None:
        found.append(Note("it moved from there; `lanes back` returns", None, series.old_url))
    if series.distrusted_at is not None:
        found.append(Note(f"its validators are not trusted ({series.distrusted_reason})", series.distrusted_at))
    return tuple(found)


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


def _gate(series: Standing, gate: Stop) -> str:
    if gate.reason == BLOCKED:
        return "the owner blocked its host"
    bound = {_GAP: series.gap_bound, _INTERVAL: series.interval_bound}.get(gate.reason)
    return gate.reason if bound is None else f"{gate.reason} ({bound})"


def _outlasts(gate: Stop, due_at: datetime | None) -> bool:
    return gate.until is not None and due_at is not None and gate.until > due_at


def _short(detail: str) -> str:
    """Without most of how a document began that was none: the poll record has all of it."""
    return detail if len(detail) <= LONGEST_DETAIL else detail[:LONGEST_DETAIL].rstrip() + " ..."


def _not_yet(series: Standing) -> str:
    if series.retired_at is not None:
        return f"retired ({series.retired_reason}), with a weekly look left"
    if series.lifecycle == "finished":
        return "finished, with a weekly look left"
    if series.spared is not None:
        return f"its Site is failing ({series.spared}): that is not charged to it, and it is looked at once an hour"
    if series.failures:
        times = "once" if series.failures == 1 else f"{series.failures} times in a row"
        return f"it failed {times} ({_short(series.failure or 'no detail')}) and is tried again"
    return "a Reader saw it lately" if series.sighted else "it rests until its next check"
