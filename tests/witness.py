"""The laws of pace, judged from what a scripted origin saw, by a clock that never goes back.

Owns the laws, each in plain words and numbers of its own.  Refuses to own: driving anything (`tests.histories`), and every row: what the
program believes is not asked.  Instants are seconds of the world's own time: lanes.now() plus all that it ever went back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from tests.moods import (
    ASKS_TO_WAIT,
    CRAWL_DELAY,
    GOOD,
    LEADS_ON,
    REFUSES,
    RETRY_AFTER,
    ROBOTS_RETRY_AFTER,
    Given,
    Mood,
    Robots,
)

SLACK = 0.05
"""Seconds by which the scheduling of two processes may move an arrival."""
HOST_INTERVAL, ADDRESS_INTERVAL = 1.0, 0.4
LEASE = 90.0
WINDOW = 900.0
"""Of a refusal: the shortest there is, of a URL alone or of its host."""
BUSY_WAIT = 90.0
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
TWO_URLS = 9.5 * MINUTE
"""503 from two URLs of a host within this: the host waits (10 min; less here, for its settle comes after it)."""


@dataclass(slots=True)
class Arrival:
    """One request as its host saw it.  `series` is whose Poll it was; `late`: its worker has not said yet what came of it.  A host that
    was stalled saw it late: it was `written` then, by the poll record."""

    host: str
    address: str
    site: str
    series: str
    given: Given
    at: float
    ended: float
    written: float
    late: bool = False

    def __str__(self) -> str:
        return f"{self.at:.3f} {self.host}{self.given.path} {self.given.mood.value} ({self.series})"


@dataclass(frozen=True, slots=True)
class Wait:
    """Nobody asks there from `since` until `until`."""

    why: str
    since: float
    until: float


@dataclass(slots=True)
class Witness:
    """What every host saw, and the waits that follow from it.  Places are hosts, Sites and Series, by name."""

    gaps: dict[str, float]
    arrivals: list[Arrival] = field(default_factory=list)
    waits: dict[str, list[Wait]] = field(default_factory=lambda: defaultdict(list))
    slowed: dict[str, float] = field(default_factory=dict)
    """By the owner, now: seconds between two starts at a host or Site."""
    closed: dict[str, str] = field(default_factory=dict)
    """By the owner, now: a host, Site or Series, and how."""
    _last: dict[str, Arrival] = field(default_factory=dict)
    _robots: dict[str, Arrival] = field(default_factory=dict)
    _read: dict[str, Arrival] = field(default_factory=dict)
    _refused: dict[str, Arrival] = field(default_factory=dict)
    _unavailable: dict[str, Arrival] = field(default_factory=dict)

    def see(self, arrivals: Iterable[Arrival]) -> None:
        """Judges new arrivals in their order.  Raises: AssertionError with the last that was seen."""
        for arrival in sorted(arrivals, key=lambda each: each.at):
            for offence in self._offences(arrival):
                seen = "\n".join(map(str, self.arrivals[-25:]))
                raise AssertionError(f"{offence}: {arrival}; before it came\n{seen}")
            self._note(arrival)

    def took(self, host: str, token: UUID, now: float, claimed: float) -> None:
        """A worker has claimed a Poll there, and says nothing from now on."""
        self.wait(host, Wait(f"it is in hand of {token}", now, claimed + LEASE))

    def let_go(self, token: UUID) -> None:
        """It has said what came of it."""
        for waits in self.waits.values():
            waits[:] = [each for each in waits if not each.why.endswith(str(token))]

    def wait(self, place: str, wait: Wait) -> None:
        self.waits[place].append(wait)

    def settled(self, arrival: Arrival, now: float) -> None:
        """What a late worker was told counts from now on."""
        arrival.late = False
        self._learn(arrival, now)

    def _offences(self, new: Arrival) -> Iterable[str]:
        for place in (new.host, new.site, new.series):
            if place in self.closed:
                yield f"{place}: asked although it is {self.closed[place]}"
            for wait in self.waits[place]:
                if wait.since <= new.at < wait.until - SLACK:
                    yield f"{place}: asked {wait.until - new.at:.3f} s too soon: {wait.why}"
        yield from self._too_close(new, new.host, max(HOST_INTERVAL, self._crawl_delay(new), self._slowed(new.host)))
        yield from self._too_close(new, new.site, max(self.gaps.get(new.site, 0.0), self._slowed(new.site)))
        yield from self._too_close(new, new.address, ADDRESS_INTERVAL)
        last, read = self._last.get(new.host), self._read.get(new.host)
        if last is not None and new.at < last.ended:
            yield f"{new.host}: two at once"
        is_page = new.site in self.gaps and new.series.startswith(new.host) and not isinstance(new.given.mood, Robots)
        if is_page and read is not None and read.given.mood is Robots.DISALLOW:
            yield f"{new.host}: its robots.txt does not allow it"

    def _too_close(self, new: Arrival, place: str, needed: float) -> Iterable[str]:
        last = self._last.get(place)
        if last is not None and new.at - last.written < needed - SLACK:
            yield f"{place}: {new.at - last.written:.3f} s after {last}, and {needed} s were needed"

    def _slowed(self, place: str) -> float:
        return self.slowed.get(place, 0.0)

    def _crawl_delay(self, new: Arrival) -> float:
        """What the robots.txt that was read last demands: for a day, or while it gives no answer since, for an hour after that."""
        read, asked = self._read.get(new.host), self._robots.get(new.host)
        if read is None or asked is None:
            return 0.0
        fresh = new.at - asked.at < (DAY if asked is read else HOUR)
        return CRAWL_DELAY.get(Robots(read.given.mood), 0.0) if fresh else 0.0

    def _note(self, arrival: Arrival) -> None:
        self.arrivals.append(arrival)
        for place in (arrival.host, arrival.site, arrival.address):
            self._last[place] = arrival
        mood = arrival.given.mood
        if isinstance(mood, Robots):
            self._robots[arrival.host] = arrival
            if mood not in (Robots.ERROR, Robots.BUSY):
                self._read[arrival.host] = arrival
            if mood is Robots.BUSY:
                until = arrival.ended + ROBOTS_RETRY_AFTER
                self.wait(arrival.host, Wait("its robots.txt asked to wait", arrival.ended, until))
        elif mood in GOOD or mood in LEADS_ON:
            self._refused.pop(arrival.host, None)
        if not arrival.late:
            self._learn(arrival, arrival.ended)

    def _learn(self, arrival: Arrival, since: float) -> None:
        mood = arrival.given.mood
        if isinstance(mood, Robots):
            return
        if mood in RETRY_AFTER and (place := self._told_to_wait(arrival)) is not None:
            self.wait(place, Wait(f"Retry-After of {arrival}", since, arrival.ended + RETRY_AFTER[mood]))
        elif mood is Mood.BUSY:
            self.wait(arrival.host, Wait(f"429 of {arrival}", since, arrival.ended + BUSY_WAIT))
        if mood in (Mood.UNAVAILABLE, Mood.UNAVAILABLE_FOR):
            self._unavailable[arrival.host] = arrival
        if mood in REFUSES:
            self._learn_refusal(arrival, since)

    def _learn_refusal(self, arrival: Arrival, since: float) -> None:
        self.wait(arrival.series, Wait(f"refused: {arrival}", since, arrival.ended + WINDOW))
        if since > arrival.ended:
            return  # said late: whose read was between is not known here
        last = self._refused.get(arrival.host)
        if last is not None and last.series != arrival.series:
            self.wait(arrival.host, Wait(f"two refused reads, the last {arrival}", since, arrival.ended + WINDOW))
        self._refused[arrival.host] = arrival

    def _told_to_wait(self, arrival: Arrival) -> str | None:
        """Host or Series; None: where two 503 came by way of a redirect, it may be either."""
        mood, last = arrival.given.mood, self._unavailable.get(arrival.host)
        if mood in (Mood.BUSY_FOR, Mood.BUSY_FOR_A_DAY):
            return arrival.host
        if mood is not Mood.UNAVAILABLE_FOR or last is None or last.given.path == arrival.given.path:
            return arrival.series
        if arrival.at - last.at > TWO_URLS + MINUTE:
            return arrival.series
        straight = all(each.series == f"{each.host}{each.given.path}" for each in (last, arrival))
        return arrival.host if straight and arrival.at - last.at < TWO_URLS else None


def costs_nothing(given: Given) -> bool:
    """Whether no failure of its Series may follow from an answer: a refusal, or a wait."""
    return isinstance(given.mood, Robots) or given.mood in REFUSES or given.mood in ASKS_TO_WAIT
