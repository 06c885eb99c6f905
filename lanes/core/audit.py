"""Was anybody ever asked too soon?  The rules of pace, proved from the sent instants of all processes (DESIGN 4, 5, 8).

Owns what counts as an offence.  Refuses to own: reading the poll record, and every stored bucket or spacing.  Must never break: a rule
looks at what was really sent, answered and demanded, never at what the claim believed, so that a fault of the claim cannot hide itself.

Where the clock went back, what was sent before comes with its instants shifted as the stored pace was.  What is lost by that: the Polls
that were in hand at that moment are not judged.

A further rule of pace is one more `Rule` in the table of the place at which it holds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby
from typing import Final, Protocol

from lanes.core.claim import LEASE
from lanes.core.outcome import Label
from lanes.core.pace import ADDRESS_PACE, SENT_LATE

TOLERANCE: Final = timedelta(milliseconds=2)
"""A sent instant is the database's clock plus a worker's monotonic time: within one fetch the two drift apart by less than this."""

COMMITTED: Final = timedelta(seconds=0.1)
"""What was said or answered binds who claimed this much later: until then its transaction may not have been committed."""

ADDRESS_PROMISED: Final = ADDRESS_PACE - SENT_LATE
"""Between two starts at one address: a bucket moves by ADDRESS_PACE from the claim, and a request is SENT_LATE after it at most."""

_GOOD: Final = frozenset({Label.NEW, Label.UNCHANGED, Label.FEED_FOUND})
_NOTHING: Final = timedelta(0)


class Kind(StrEnum):
    """The kinds of offence.  Closed."""

    HOST = "host"
    ADDRESS = "address"
    GAP = "Gap"
    CRAWL_DELAY = "crawl delay"
    RETRY_AFTER = "Retry-After"
    REFUSAL = "refusal"
    OWNERS_WORD = "owner's word"
    TWO_AT_ONCE = "two at once on a host"


class Place(StrEnum):
    """That which the requests of one group have in common.  A request is of the Site whose host it went to."""

    HOST = "host"
    ADDRESS = "address"
    SITE = "site"
    SERIES = "series"


@dataclass(frozen=True, slots=True)
class Request:
    """One request that was written, as the poll record has it.  `place` is the host, the address bucket, the Site or the Series.

    `token` names its Poll.  `ended_at` is when that Poll ended, `outcome` the Label it ended with.  `host_pace` and `lane_gap` are what was
    in force when it took its place.  `host_wait_until`, `lane_wait_until` and `series_wait_until` are the waits that its answer laid.
    """

    place: str
    host: str
    series_id: int
    machine: str
    token: str
    claimed_at: datetime
    sent_at: datetime
    ended_at: datetime | None
    outcome: str
    host_pace: timedelta
    lane_gap: timedelta | None = None
    host_wait_until: datetime | None = None
    lane_wait_until: datetime | None = None
    series_wait_until: datetime | None = None

    @property
    def refused(self) -> bool:
        return self.outcome == Label.REFUSED

    @property
    def good(self) -> bool:
        return self.outcome in _GOOD


@dataclass(frozen=True, slots=True)
class Demand:
    """What robots.txt or the owner demands at a host or a Site: starts `at_least` so far apart, or (None) none at all.

    It binds what was claimed after `since` and sent before `until` (None: it is in force).
    """

    place: str
    kind: Kind
    since: datetime
    until: datetime | None
    at_least: timedelta | None

    def binds(self, request: Request) -> bool:
        return request.claimed_at >= self.since + COMMITTED and (self.until is None or request.sent_at < self.until)


@dataclass(frozen=True, slots=True)
class Offence:
    """One request that came too soon: `found` after `earlier_at` instead of `needed` (None: instead of never).  Who sent it: `series_id`,
    by `machine`."""

    kind: Kind
    place: str
    earlier_at: datetime
    later_at: datetime
    needed: timedelta | None
    found: timedelta
    series_id: int
    machine: str

    def __str__(self) -> str:
        return self.words(datetime.isoformat)

    def words(self, instant: Callable[[datetime], str]) -> str:
        """All of it on one line; `instant` says how the two are written."""
        needed = "none was allowed" if self.needed is None else f"{_seconds(self.needed)} were needed"
        return (
            f"{self.kind}: {self.place}: {_WHAT[self.kind]}: {_seconds(self.found)} from {instant(self.earlier_at)} "
            f"to {instant(self.later_at)}, and {needed} (Series {self.series_id}, machine {self.machine})"
        )


_WHAT: Final = {
    Kind.HOST: "two starts at one host, closer than its interval",
    Kind.ADDRESS: "two starts at one address, closer than is promised",
    Kind.GAP: "two starts at one Site, closer than its Gap",
    Kind.CRAWL_DELAY: "two starts at one host, closer than its robots.txt demands",
    Kind.RETRY_AFTER: "asked again before the wait that it had asked for was over",
    Kind.REFUSAL: "asked again before the window of a refusal was over",
    Kind.OWNERS_WORD: "asked sooner than the owner had said",
    Kind.TWO_AT_ONCE: "asked while another fetch there was in hand",
}


@dataclass(frozen=True, slots=True)
class Report:
    """What an audit found.  `first_offence` is the earliest of all kinds; `offences` has every kind, mostly at 0."""

    requests: int
    hosts: int
    addresses: int
    first_offence: Offence | None
    offences: Mapping[Kind, int]

    @property
    def clean(self) -> bool:
        return self.first_offence is None


class Rule(Protocol):
    """Sees the requests of one place in the order of their sent instants, each once, and says which came too soon."""

    def see(self, request: Request) -> Offence | None: ...


@dataclass(slots=True)
class Spacing:
    """Two starts are at least as far apart as `needed` says of the later one."""

    kind: Kind
    needed: Callable[[Request], timedelta]
    last: datetime | None = None

    def see(self, request: Request) -> Offence | None:
        last, self.last = self.last, request.sent_at
        return None if last is None else _too_soon(self.kind, request, last, last + self.needed(request))


@dataclass(slots=True)
class OneAtATime:
    """No request while one of another Poll is in hand.  The hops of one Poll follow one another, and so offend nobody."""

    in_hand: dict[str, tuple[datetime, datetime]] = field(default_factory=dict)

    def see(self, request: Request) -> Offence | None:
        self.in_hand = {token: hand for token, hand in self.in_hand.items() if hand[1] > request.sent_at}
        others = [hand for token, hand in self.in_hand.items() if token != request.token]
        # No longer than its lease: a worker that was suspended says late what ended long ago.
        ended = min(request.ended_at or request.sent_at, request.claimed_at + LEASE)
        self.in_hand[request.token] = (request.sent_at, ended)
        if not others:
            return None
        sent_at, until = max(others, key=lambda hand: hand[1])
        return _too_soon(Kind.TWO_AT_ONCE, request, sent_at, until)


@dataclass(slots=True)
class Waits:
    """No request while a wait is ahead that it could know: one whose answer had ended before `known_by`.

    A good read ends, when it ends itself, what began before it was sent (DESIGN 5.4), where that `heals`.  `laid` has for each wait when
    it began and when it is over: only those that are not over yet, of which none began after and is over before another.
    """

    kind: Kind
    until: Callable[[Request], datetime | None]
    known_by: Callable[[Request], datetime]
    heals: bool = False
    laid: list[tuple[datetime, datetime]] = field(default_factory=list)

    def see(self, request: Request) -> Offence | None:
        del self.laid[: bisect_right(self.laid, request.sent_at, key=_over)]
        known = bisect_right(self.laid, self.known_by(request), key=_began)
        offence = _too_soon(self.kind, request, *self.laid[known - 1]) if known else None
        until = self.until(request)
        if until is not None and request.ended_at is not None:
            self._lay(request.ended_at, until)
        if self.heals and request.good and request.ended_at is not None:
            before = bisect_right(self.laid, request.sent_at, key=_began)
            self.laid[:before] = [(began, min(over, request.ended_at)) for began, over in self.laid[:before]]
        return offence

    def _lay(self, began: datetime, over: datetime) -> None:
        place = bisect_right(self.laid, began, key=_began)
        if place and self.laid[place - 1][1] >= over:
            return
        self.laid[place : bisect_right(self.laid, over, lo=place, key=_over)] = [(began, over)]


@dataclass(frozen=True, slots=True)
class Closed:
    """No request at all where the owner said so."""

    demand: Demand

    def see(self, request: Request) -> Offence | None:
        return (
            _too_soon(self.demand.kind, request, self.demand.since, self.demand.until)
            if self.demand.binds(request)
            else None
        )


def _asked_to_wait(until: Callable[[Request], datetime | None]) -> Waits:
    return Waits(
        Kind.RETRY_AFTER,
        until=lambda request: None if request.refused else until(request),
        known_by=lambda request: request.sent_at,
    )


def _refused(until: Callable[[Request], datetime | None]) -> Waits:
    return Waits(
        Kind.REFUSAL,
        until=lambda request: until(request) if request.refused else None,
        known_by=lambda request: request.claimed_at - COMMITTED,
        heals=True,
    )


RULES: Final[Mapping[Place, Callable[[], tuple[Rule, ...]]]] = {
    Place.HOST: lambda: (
        Spacing(Kind.HOST, lambda request: request.host_pace),
        OneAtATime(),
        _asked_to_wait(lambda request: request.host_wait_until),
        _refused(lambda request: request.host_wait_until),
    ),
    Place.ADDRESS: lambda: (Spacing(Kind.ADDRESS, lambda _: ADDRESS_PROMISED),),
    Place.SITE: lambda: (
        Spacing(Kind.GAP, lambda request: request.lane_gap or _NOTHING),
        _refused(lambda request: request.lane_wait_until),
    ),
    Place.SERIES: lambda: (
        _asked_to_wait(lambda request: request.series_wait_until),
        _refused(lambda request: request.series_wait_until),
    ),
}
"""Which rules hold where; each group of requests gets its own.  What is demanded there comes on top."""


def offences(place: Place, requests: Iterable[Request], demands: Iterable[Demand] = ()) -> Iterator[Offence]:
    """Every offence at one kind of place.  `requests` come grouped by `place`, in each by `sent_at`; `demands` in the same order of
    places.  Memory does not grow with either."""
    coming = iter(demands)
    ahead = next(coming, None)
    for name, group in groupby(requests, key=lambda request: request.place):
        rules = list(RULES[place]())
        while ahead is not None and ahead.place <= name:
            if ahead.place == name:
                rules.append(_rule(ahead))
            ahead = next(coming, None)
        for request in group:
            yield from (offence for rule in rules if (offence := rule.see(request)) is not None)


def _rule(demand: Demand) -> Rule:
    at_least = demand.at_least
    if at_least is None:
        return Closed(demand)
    return Spacing(demand.kind, lambda request: at_least if demand.binds(request) else _NOTHING)


def _too_soon(kind: Kind, request: Request, earlier_at: datetime, not_before: datetime | None) -> Offence | None:
    """`not_before` None: never."""
    if not_before is not None and request.sent_at + TOLERANCE >= not_before:
        return None
    found, needed = request.sent_at - earlier_at, None if not_before is None else not_before - earlier_at
    return Offence(
        kind, _named(request), earlier_at, request.sent_at, needed, found, request.series_id, request.machine
    )


def _named(request: Request) -> str:
    number = str(request.series_id)
    return f"Series {number} at {request.host}" if request.place == number != request.host else request.place


def _began(wait: tuple[datetime, datetime]) -> datetime:
    return wait[0]


def _over(wait: tuple[datetime, datetime]) -> datetime:
    return wait[1]


def _seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():.3f} s"
