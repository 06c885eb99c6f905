"""The audit of the poll record: all rows through the rules of `lanes.core.audit`, in flat memory.

Owns how the record is read.  Refuses to own: what an offence is.  Must never break: it holds no snapshot while it judges (each reading
is laid aside by Postgres first), so that proving our pace slows nobody's claim.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from psycopg.rows import args_row

from lanes.core.audit import Demand, Kind, Offence, Place, Report, Request, offences
from lanes.core.outcome import NOT_PUBLIC
from lanes.store.pool import Connection, Database, named_sql

_REQUESTS: str = named_sql("audit").requests.sql
_DEMANDS: str = named_sql("audit").demands.sql
_AT_ONCE = 2000  # rows that are fetched together


def audit(database: Database, since: datetime | None = None, until: datetime | None = None) -> Report:
    """Proves from what was sent in [since, until) that nobody was asked too soon, or names the first offence and counts them all.

    Raises DatabaseAway.
    """
    found: Counter[Kind] = Counter()
    seen: dict[Place, _Seen] = {}
    first: Offence | None = None
    with database.connection() as connection:
        for place in Place:
            seen[place] = _Seen(since)
            rows = seen[place].each(_requests(connection, place, since, until))
            for offence in offences(place, rows, _demands(connection, place)):
                if since is None or offence.later_at >= since:
                    found[offence.kind] += 1
                    first = offence if first is None else min(first, offence, key=lambda each: each.later_at)
    return Report(
        seen[Place.HOST].requests,
        seen[Place.HOST].places,
        seen[Place.ADDRESS].places,
        first,
        {kind: found[kind] for kind in Kind},
    )


class _Seen:
    """Counts the requests of the period, and the places they went to, while they pass."""

    def __init__(self, since: datetime | None) -> None:
        self._since = since
        self._place = ""
        self.requests, self.places = 0, 0

    def each(self, requests: Iterator[Request]) -> Iterator[Request]:
        for request in requests:
            if self._since is None or request.sent_at >= self._since:
                self.requests += 1
                self.places += request.place != self._place
                self._place = request.place
            yield request


def _requests(
    connection: Connection, place: Place, since: datetime | None, until: datetime | None
) -> Iterator[Request]:
    values = {"place": place.value, "since": since, "until": until, "guard": NOT_PUBLIC}
    with connection.cursor("audit_requests", row_factory=args_row(Request), withhold=True) as cursor:
        cursor.itersize = _AT_ONCE
        yield from cursor.execute(_REQUESTS, values)


def _demands(connection: Connection, place: Place) -> Iterator[Demand]:
    with connection.cursor("audit_demands", row_factory=args_row(_demand), withhold=True) as cursor:
        cursor.itersize = _AT_ONCE
        yield from cursor.execute(_DEMANDS, {"place": place.value})


def _demand(place: str, kind: str, since: datetime, until: datetime | None, at_least: timedelta | None) -> Demand:
    return Demand(place, Kind(kind), since, until, at_least)
