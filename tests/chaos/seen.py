"""The origin's record and the poll record, laid side by side.

Owns which request of the one is which row of the other.  Refuses to own: judging.  Must never break: a visit is never given an instant
that the origin did not see or its worker did not write down.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.smallnet.record import Visit

from .events import Events

LEASE = 90.0
EARLY = 10.0
"""Seconds by which a request may arrive before the instant its worker wrote down: that one is never early, and late by as long as its claim
took to reach the database."""
LATE = 30.0
"""Seconds after that instant in which it is looked for."""
ROWS = """
SELECT p.host, p.token::text, s.url, p.hop, p.status, p.outcome, p.detail, extract(epoch FROM p.claimed_at)::float8,
       extract(epoch FROM p.sent_at)::float8, extract(epoch FROM p.ended_at)::float8
FROM lanes.polls p JOIN lanes.series s ON s.id = p.series_id WHERE p.sent_at IS NOT NULL ORDER BY p.sent_at
"""


class Row(NamedTuple):
    """One request of the poll record; instants are lanes.now()."""

    host: str
    token: str
    url: str
    hop: int
    status: int | None
    outcome: str
    detail: str | None
    claimed_at: float
    sent_at: float
    ended_at: float


@dataclass(slots=True)
class Seen:
    """One request as its host saw it, and what its worker wrote down of it, all in wall seconds; None: nobody did, it was killed."""

    visit: Visit
    row: Row | None = None
    claimed: float | None = None
    sent: float | None = None
    settled: float | None = None

    @property
    def arrived(self) -> float:
        return self.visit.wall

    @property
    def ended(self) -> float:
        """When the host had answered, or its connection was gone."""
        return self.visit.wall + ((self.visit.ended or float("inf")) - self.visit.arrived)

    @property
    def began(self) -> float:
        """When it was claimed, at the earliest."""
        return self.arrived - LEASE if self.claimed is None else min(self.claimed, self.arrived)

    @property
    def delay(self) -> float | None:
        """Seconds from the instant its worker wrote down to its arrival."""
        return None if self.sent is None else self.arrived - self.sent


def laid_side_by_side(
    visits: Iterable[Visit], rows: Iterable[Row], events: Events
) -> tuple[dict[str, list[Seen]], int]:
    """The visits of each host in order of arrival, with their rows; and how many rows no visit was found for."""
    hosts: dict[str, list[Seen]] = defaultdict(list)
    for visit in sorted(visits, key=lambda each: each.wall):
        hosts[visit.host].append(Seen(visit))
    lost = 0
    for row in rows:
        lost += not _placed(row, hosts.get(row.host, []), events)
    return hosts, lost


def _placed(row: Row, there: list[Seen], events: Events) -> bool:
    near = [
        (abs(seen.arrived - sent), seen, sent, ahead)
        for sent, ahead in _walls(row, events)
        for seen in there[
            bisect_left(there, sent - EARLY, key=_arrived) : bisect_left(there, sent + LATE, key=_arrived)
        ]
        if seen.row is None and _is_same(row, seen.visit)
    ]
    if not near:
        return False
    _, seen, sent, ahead = min(near, key=lambda each: each[0])
    seen.row, seen.sent, seen.claimed = row, sent, row.claimed_at - ahead
    seen.settled = _ended(row, sent, events)
    return True


def _arrived(seen: Seen) -> float:
    return seen.arrived


def _walls(row: Row, events: Events) -> Iterator[tuple[float, float]]:
    """When it was sent by the wall: its claim was in one of the times between the moves of the clock."""
    for segment in events.segments:
        if segment.begins <= row.claimed_at - segment.ahead <= segment.ends:
            yield row.sent_at - segment.ahead, segment.ahead


def _ended(row: Row, sent: float, events: Events) -> float | None:
    for segment in events.segments:
        ended = row.ended_at - segment.ahead
        if segment.begins <= ended <= segment.ends and ended >= sent - 1:
            return ended
    return None


def _is_same(row: Row, visit: Visit) -> bool:
    if row.status is not None and visit.status is not None and row.status != visit.status:
        return False
    if row.outcome == "robots":
        return visit.path == "/robots.txt"
    return visit.path.endswith(urlsplit(row.url).path)  # so do the mirrors to which it is redirected
