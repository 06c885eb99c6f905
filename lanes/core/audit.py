"""Was anybody ever asked too soon?  The rules of pace, proved from the sent instants of all processes (DESIGN 4, 5.3, 9).

Owns what counts as an offence.  Refuses to own: reading the poll record, and every stored bucket or spacing.  Must never break: a rule
looks at what was really sent and answered, never at what the claim believed, so that a fault of the claim cannot hide itself.

A further rule of pace is one more `Rule` in the table of the place at which it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from heapq import heappop, heappush
from itertools import groupby
from typing import Final, Protocol

from lanes.core.claim import LEASE
from lanes.core.pace import ADDRESS_PACE, SENT_LATE

TOLERANCE: Final = timedelta(milliseconds=2)
"""A sent instant is the database's clock plus a worker's monotonic time: within one fetch the two drift apart by less than this."""

ADDRESS_PROMISED: Final = ADDRESS_PACE - SENT_LATE
"""Between two starts at one address: a bucket moves by ADDRESS_PACE from the claim, and a request is SENT_LATE after it at most."""


class Kind(StrEnum):
    """The kinds of offence.  Closed."""

    HOST = "host"
    ADDRESS = "address"
    RETRY_AFTER = "Retry-After"
    TWO_AT_ONCE = "two at once on a host"


class Place(StrEnum):
    """That which the requests of one group have in common."""

    HOST = "host"
    ADDRESS = "address"
    SERIES = "series"


@dataclass(frozen=True, slots=True)
class Request:
    """One request that was written, as the poll record has it.  `place` is the host, the address bucket or the Series looked at.

    `token` names its Poll.  `ended_at` is when that Poll ended.  `host_wait_until` and `series_wait_until` are the waits that its
    answer laid.
    """

    place: str
    host: str
    series_id: int
    machine: str
    token: str
    claimed_at: datetime
    sent_at: datetime
    ended_at: datetime | None
    host_pace: timedelta
    host_wait_until: datetime | None = None
    series_wait_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Offence:
    """One request that came too soon: `found` after `earlier_at` instead of `needed`.  Who sent it: `series_id`, by `machine`."""

    kind: Kind
    place: str
    earlier_at: datetime
    later_at: datetime
    needed: timedelta
    found: timedelta
    series_id: int
    machine: str

    def __str__(self) -> str:
        what = {
            Kind.HOST: "two starts at one host, closer than its interval",
            Kind.ADDRESS: "two starts at one address, closer than is promised",
            Kind.RETRY_AFTER: "asked again before the wait that it had asked for was over",
            Kind.TWO_AT_ONCE: "asked while another fetch there was in hand",
        }[self.kind]
        return (
            f"{self.kind}: {self.place}: {what}: {_seconds(self.found)} from {self.earlier_at.isoformat()} "
            f"to {self.later_at.isoformat()}, and {_seconds(self.needed)} were needed "
            f"(Series {self.series_id}, machine {self.machine})"
        )


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
    """No request while a wait is ahead that an answer laid which had ended before the request was sent."""

    until: Callable[[Request], datetime | None]
    coming: list[tuple[datetime, datetime]] = field(default_factory=list)
    laid: tuple[datetime, datetime] | None = None

    def see(self, request: Request) -> Offence | None:
        while self.coming and self.coming[0][0] <= request.sent_at:
            wait = heappop(self.coming)
            if self.laid is None or wait[1] > self.laid[1]:
                self.laid = wait
        until = self.until(request)
        if until is not None and request.ended_at is not None:
            heappush(self.coming, (request.ended_at, until))
        return None if self.laid is None else _too_soon(Kind.RETRY_AFTER, request, *self.laid)


RULES: Final[Mapping[Place, Callable[[], tuple[Rule, ...]]]] = {
    Place.HOST: lambda: (
        Spacing(Kind.HOST, lambda request: request.host_pace),
        OneAtATime(),
        Waits(lambda request: request.host_wait_until),
    ),
    Place.ADDRESS: lambda: (Spacing(Kind.ADDRESS, lambda _: ADDRESS_PROMISED),),
    Place.SERIES: lambda: (Waits(lambda request: request.series_wait_until),),
}
"""Which rules hold where; each group of requests gets its own."""


def offences(place: Place, requests: Iterable[Request]) -> Iterator[Offence]:
    """Every offence at one kind of place.  `requests` come grouped by `place`, in each by `sent_at`; memory does not grow with them."""
    for _, group in groupby(requests, key=lambda request: request.place):
        rules = RULES[place]()
        for request in group:
            yield from (offence for rule in rules if (offence := rule.see(request)) is not None)


def _too_soon(kind: Kind, request: Request, earlier_at: datetime, not_before: datetime) -> Offence | None:
    if request.sent_at + TOLERANCE >= not_before:
        return None
    place = request.place if kind is not Kind.RETRY_AFTER else _who_asked(request)
    found, needed = request.sent_at - earlier_at, not_before - earlier_at
    return Offence(kind, place, earlier_at, request.sent_at, needed, found, request.series_id, request.machine)


def _who_asked(request: Request) -> str:
    return request.host if request.place == request.host else f"Series {request.series_id} at {request.host}"


def _seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():.3f} s"
