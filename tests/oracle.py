"""When a Series is due, what stands in its way and whose turn it is, in plain Python, written from DESIGN 4.1 and 4.2 alone and never
from the SQL.

Owns the expectation that `lanes.due`, `lanes.due_at`, `lanes.gate`, `lanes.is_held` and the claim are held to.  Refuses to own: rows
(`tests.rows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

LONG_AGO = datetime.min.replace(tzinfo=UTC)
"""Postgres' -infinity: never."""

NEVER = datetime.max.replace(tzinfo=UTC)
"""Postgres' infinity."""

WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class SeriesFacts:
    """A Series' own facts.  `rest` is its Rest in force, phase included; `lease_until` set means that no settle ended the lease."""

    rest: timedelta
    latest_checked_at: datetime = LONG_AGO
    next_check_at: datetime | None = LONG_AGO
    poll_tier: bool = True
    has_url: bool = True
    bookmarks: int = 1
    paused: bool = False
    retired: bool = False
    finished: bool = False
    force_poll_at: datetime | None = None
    retry_at: datetime | None = None
    lease_until: datetime | None = None
    sighted_at: datetime | None = None
    bookmarked_at: datetime | None = None
    revived_at: datetime | None = None
    not_before: datetime | None = None
    not_before_reason: str | None = None


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What a host's row says: `not_before` is the one place for every wait of a host."""

    not_before: datetime = LONG_AGO
    not_before_reason: str | None = None
    next_at: datetime = LONG_AGO
    busy_until: datetime = LONG_AGO
    address_next: datetime | None = None


@dataclass(frozen=True, slots=True)
class BrowserFacts:
    """What the browser's row says: its last heartbeat, whether Chrome runs, until when it is lost, and why it cannot serve."""

    heard_at: datetime
    awake: bool = False
    lost_until: datetime | None = None
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class LaneFacts:
    """What a Lane's row and the kill switch say.  `browser` None: it needs none.  `asleep_until`: how long Chrome sleeps on for it."""

    polling: bool = True
    paused: bool = False
    refused_until: datetime | None = None
    next_at: datetime = LONG_AGO
    browser: BrowserFacts | None = None
    asleep_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """The first gate that speaks: which, and until when (None: until somebody opens it)."""

    gate: str
    until: datetime | None


def due(series: SeriesFacts, now: datetime) -> str | None:
    """Why the Series is due, or None.  A put back Series whose obstacle still stands is not due (its `retry_at` says when it ends)."""
    if not series.poll_tier or not series.has_url or series.bookmarks == 0 or series.paused:
        return None
    if series.lease_until is not None and series.lease_until > now:
        return None
    if series.retry_at is not None and series.retry_at > now:
        return None
    if is_pending(series):
        return "pending"
    if series.retry_at is not None:
        return "put back"
    if series.lease_until is not None:
        return "abandoned"
    if _its_time(series, now):
        return "its time"
    return "weekly look" if later(series.latest_checked_at, WEEK) <= now else None


def is_pending(series: SeriesFacts) -> bool:
    """A request not yet attempted: derived from two stamps, never stored, and not for a retired Series."""
    return series.force_poll_at is not None and series.force_poll_at > series.latest_checked_at and not series.retired


def due_at(series: SeriesFacts) -> datetime:
    """The due instant: the latest of next check, stamp + Rest, Sighting + Rest, and when it was last bookmarked or revived."""
    return max(
        series.next_check_at or LONG_AGO,
        later(series.latest_checked_at, series.rest),
        later(series.sighted_at or LONG_AGO, series.rest),
        series.bookmarked_at or LONG_AGO,
        series.revived_at or LONG_AGO,
    )


def gate(series: SeriesFacts, host: HostFacts, lane: LaneFacts, now: datetime) -> Stop | None:
    """The first gate that speaks, in the order in which DESIGN 4.2 names them."""
    if not lane.polling:
        return Stop("kill switch", None)
    if lane.paused:
        return Stop("Lane paused", None)
    if lane.refused_until is not None and lane.refused_until > now:
        return Stop("Lane refusing", lane.refused_until)
    if lane.browser is not None:
        if (stop := browser_trouble(lane.browser, now)) is not None:
            return stop
        if lane.asleep_until is not None:
            return Stop("Chrome asleep", lane.asleep_until)
    waits: tuple[tuple[str, datetime | None], ...] = (
        (f"Series: {series.not_before_reason}", series.not_before),
        (f"host: {host.not_before_reason}", host.not_before),
        ("Gap", lane.next_at),
        ("host bucket", host.next_at),
        ("address bucket", host.address_next),
        ("host in hand", host.busy_until),
    )
    return next((Stop(name, until) for name, until in waits if until is not None and until > now), None)


def browser_trouble(browser: BrowserFacts, now: datetime) -> Stop | None:
    """Why the browser cannot be asked: unable, without a heartbeat for 30 s, which is as if there were none, or lost (DESIGN 7)."""
    if browser.trouble is not None or now - browser.heard_at > timedelta(seconds=30):
        return Stop("browser down", None)
    if browser.lost_until is not None and browser.lost_until > now:
        return Stop("browser lost", browser.lost_until)
    return None


def asleep_until(site: Sequence[SeriesFacts], browser: BrowserFacts, now: datetime) -> datetime | None:
    """Chrome stays asleep while fewer than 5 Series are due and the oldest has waited under 15 minutes and nothing is pending, or was
    put back and waits for its obstacle alone; None: it is awake, or may wake, or has nobody to wake for (DESIGN 4, 5.6)."""
    ready = [each for each in site if due(each, now) and not (each.not_before and each.not_before > now)]
    oldest = min(map(_due_since, ready), default=None)
    in_turn = any(is_pending(each) or each.retry_at is not None for each in ready)
    if browser.awake or oldest is None or len(ready) >= 5 or in_turn:
        return None
    return oldest + timedelta(minutes=15) if now - oldest < timedelta(minutes=15) else None


def is_eligible(series: SeriesFacts) -> bool:
    """Poll tier, with a URL and a Bookmark, not paused, finished or retired (DESIGN 2)."""
    unpolled = series.paused or series.finished or series.retired
    return series.poll_tier and series.has_url and series.bookmarks > 0 and not unpolled


def is_held(series: SeriesFacts, host: HostFacts, lane: LaneFacts, now: datetime) -> bool:
    """Kept from being polled by a pause, a refusal, a lost browser, a wait, a dead host or the owner's word; not by its mere turn."""
    waits = (lane.refused_until, host.not_before, series.not_before)
    lost = lane.browser is not None and browser_trouble(lane.browser, now) is not None
    return lane.paused or lost or any(until is not None and until > now for until in waits)


def place(series: SeriesFacts, now: datetime) -> tuple[int, datetime, int, datetime]:
    """Where a due Series of a Site of one host stands in line, smallest first (DESIGN 4.1): pending, oldest request first; put back;
    what has waited more than one further Rest, longest first; then most Bookmarks; then longest unchecked."""
    liked, stamp = -series.bookmarks, series.latest_checked_at
    if is_pending(series):
        assert series.force_poll_at is not None
        return 0, series.force_poll_at, liked, stamp
    if series.retry_at is not None:
        return 1, series.retry_at, liked, stamp
    since = _due_since(series)
    return 2, since if now - since > series.rest else NEVER, liked, stamp


def _due_since(series: SeriesFacts) -> datetime:
    """The instant at which it became due."""
    if series.lease_until is not None:
        return series.lease_until
    since = later(series.latest_checked_at, WEEK)
    if not series.retired and not series.finished:
        since = min(since, due_at(replace(series, bookmarked_at=None, revived_at=None)))
    return max(since, series.bookmarked_at or LONG_AGO, series.revived_at or LONG_AGO)


def later(instant: datetime, duration: timedelta) -> datetime:
    """`instant` + `duration`, where never stays never."""
    return instant if instant == LONG_AGO else instant + duration


def _its_time(series: SeriesFacts, now: datetime) -> bool:
    return (
        not series.retired
        and not series.finished
        and series.next_check_at is not None
        and series.next_check_at <= now
        and later(series.latest_checked_at, series.rest) <= now
        and later(series.sighted_at or LONG_AGO, series.rest) <= now
    )
