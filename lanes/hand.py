"""The permits of one claimed Poll in hand, and the trail of where it went.

Owns what a fetch is told when it asks whether it may dial, hop or write (`lanes.fetch.permits`), and the Poll's own Postgres time.
Refuses to own: the order of a Poll's steps (`poll`) and the buckets (rows).  Must never break: nothing is written after the lease ended,
and what was written is told, whatever became of it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from lanes.core.answer import Answer, Sent
from lanes.core.blame import proof
from lanes.core.claim import Claim
from lanes.core.pace import LATE_WAIT, SENT_LATE, HostPace
from lanes.fetch.permits import Go, Wait
from lanes.fetch.robots import Look
from lanes.store.polls import PollStore
from lanes.store.settled import Trail

_LEASE_ENDED = Wait(timedelta(0), "its lease has ended, or its host was told to wait meanwhile")


@dataclass(frozen=True, slots=True)
class Visit:
    """A host that a Poll entered: when its buckets were spent, its interval with all lower bounds, the Gap of its Site, if any, and
    whether it has a refused read, or a window, on its record."""

    host_id: int
    pace: HostPace
    spent_at: datetime
    interval: timedelta
    gap: timedelta | None
    refusing: bool


class Hand:
    """The permits of one claimed Poll, and the trail of where it went."""

    def __init__(
        self,
        store: PollStore,
        claim: Claim,
        asked: float,
        lease: timedelta,
        stop: threading.Event | None = None,
        site_of: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self._store, self._claim, self._asked, self._site_of = store, claim, asked, site_of
        self._stop = stop or threading.Event()
        self.lease_until = claim.claimed_at + lease
        own = Visit(claim.host_id, claim.pace, claim.claimed_at, claim.host_pace, claim.gap, claim.memory.refusing)
        self._entered = {claim.host: own}
        self._where = claim.host
        self._sent: list[Sent] = []
        self._paces: list[timedelta] = []
        self._gaps: list[timedelta | None] = []
        self.look = Look()
        self.wants_robots: Callable[[str, datetime], bool] | None = None

    def now(self) -> datetime:
        """Postgres time: the claim's instant plus monotonic time since before it was asked for, so never early."""
        return self._claim.claimed_at + timedelta(seconds=time.monotonic() - self._asked)

    def dial(self, host: str, address: str) -> Go | Wait:
        wait = self._store.take_address(self._entered[host].host_id, address, self._claim.token)
        return Go(address) if wait is None else Wait(wait, "the interval of its address")

    def hop(self, host: str, origin: str) -> Go | Wait:
        asked_at = self.now()
        if self.wants_robots is not None and self.wants_robots(origin, asked_at):
            return Wait(timedelta(0), "the robots.txt there is asked for first", in_slot=False)
        last = max((sent.sent_at for sent in self._sent if sent.host == host), default=None)
        if last is not None and (wait := last + self._entered[host].interval - asked_at) > timedelta(0):
            return Wait(wait, "the interval of its host")  # a chain inside one host: no settle has moved its bucket yet
        entered = self._store.enter(host, self._claim, self.lease_until, site=self._site_of(host))
        if entered.wait is not None:
            return Wait(entered.wait, entered.reason)
        self._entered[host] = Visit(
            entered.host_id, entered.pace, asked_at, entered.interval, entered.gap, entered.refusing
        )
        self._where = host
        return Go(entered.address)

    def sending(self, host: str, address: str) -> datetime | Wait:
        visit = self._entered[host]
        sent_at = self.now()
        if sent_at >= self.lease_until:
            return _LEASE_ENDED
        if sent_at - visit.spent_at > SENT_LATE or visit.gap is not None:
            place = self._store.move_buckets(visit.host_id, address, sent_at, self._claim.token)
            if place is None:
                return _LEASE_ENDED
            if place - sent_at > LATE_WAIT:
                return Wait(place - sent_at, "the interval of its address or the Gap of its Site")
            while (
                sent_at := self.now()
            ) < place:  # another host of this address or Site took the slot that we were late for
                if self._stop.wait((place - sent_at).total_seconds()):
                    return Wait(timedelta(0), "stopping")
        self._sent.append(Sent("", host, address, sent_at))
        self._paces.append(visit.interval)
        self._gaps.append(visit.gap)
        return sent_at

    def was_sent(self, sent: Sent) -> None:
        """A request of this Poll, at a host that it entered, was written by the browser, which spent the pace itself."""
        visit = self._entered[sent.host]
        self._sent.append(sent)
        self._paces.append(visit.interval)
        self._gaps.append(visit.gap)

    def lease_renewed(self, lease: timedelta) -> None:
        """The lease ends so long from now."""
        self.lease_until = self.now() + lease

    @property
    def token(self) -> UUID:
        """The lease."""
        return self._claim.token

    @property
    def host_id(self) -> int:
        """The host that the claim entered."""
        return self._claim.host_id

    @property
    def series_id(self) -> int | None:
        """The Series of the Poll; None: a URL that is tried."""
        return self._claim.series_id or None

    @property
    def suspect(self) -> bool:
        """Whether its last Poll took down whoever carried it."""
        return self._claim.abandoned > 0

    @property
    def where(self) -> str:
        """The host where the Poll is."""
        return self._where

    def pace(self) -> HostPace:
        """The pace of the host where the Poll is."""
        return self._entered[self._where].pace

    def interval(self) -> timedelta:
        """The interval in force of the host where the Poll is."""
        return self._entered[self._where].interval

    def passed(self, requests: tuple[Sent, ...]) -> tuple[tuple[int, HostPace], ...]:
        """The hosts that answered on the way, by a redirect, and their pace."""
        led = {sent.host for sent in requests if sent.status is not None and 300 <= sent.status < 400} - {self._where}
        return tuple((visit.host_id, visit.pace) for host, visit in self._entered.items() if host in led)

    def is_refusing(self) -> bool:
        """Whether the host where the Poll is has refused us lately, or the claim's Lane has."""
        return self._entered[self._where].refusing or self._claim.memory.refusing

    def trail(self, answer: Answer | None) -> Trail:
        """`answer` None: Postgres went away in mid fetch; what was sent until then goes into the record all the same."""
        look = self.look
        own = self._sent[len(look.requests) :] if answer is None else answer.requests
        requests = (*look.requests, *own)
        hosts = tuple(sorted({visit.host_id for visit in self._entered.values()}))
        proofs = {look.proof, None if answer is None else proof(answer)} - {None}
        last = {self._entered[sent.host].host_id: sent.sent_at for sent in requests}
        return Trail(
            self._entered[self._where].host_id,
            hosts,
            tuple(last.get(each) for each in hosts),
            requests,
            tuple(self._paces),
            any(proofs) if proofs else None,
            len(look.requests),
            look.wait_until,
            tuple(self._gaps),
            look.silence,
        )
