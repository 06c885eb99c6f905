"""The calm after the storm: everything answers, and time leaps to wherever something is waited for, until every Series was read again.

Owns when to leap and how far.  Refuses to own: whether it was in order that anything waited.  Must never break: it ends, and says what is
missing where it does not end well.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

from lanes.store.following import FollowStore

from .clock import move
from .crew import Crew
from .events import Events

STUCK = 30.0
"""Real seconds in which at least one more Series is read or the clock leaps, while there is nothing in the way."""
FURTHER = 600.0
"""Seconds that a leap goes at most beyond the first host that is waited for: to half of them, so that leaps are few."""
QUIET = 2.0
"""Seconds to wait until no Poll is in hand, before a leap; what still is belongs to a worker that was killed."""
SURE = 3
"""So many looks in a row find none, for a claim may have been under way when its Lane was paused."""

MISSING = "s.bookmarks > 0 AND s.retired_at IS NULL AND coalesce(s.good_at, '-infinity') < %s"
HOW_LONG = f"""
SELECT coalesce(sum(missing), 0)::integer, min(wait), least(percentile_disc(0.5) WITHIN GROUP (ORDER BY wait), min(wait) + {FURTHER})
FROM (
    SELECT count(*) AS missing, extract(epoch FROM min(greatest(
        coalesce(s.claimable_at, lanes.now()), s.not_before, h.next_at, h.not_before, h.busy_until)) - lanes.now())::float8 AS wait
    FROM lanes.series s JOIN lanes.hosts h ON h.id = s.queue_host_id WHERE {MISSING} GROUP BY h.id
) AS waiting
"""
IN_HAND = "SELECT lease_token FROM lanes.series WHERE lease_until > lanes.now()"
CUT_OFF = """
SELECT extract(epoch FROM min(probe_at) - lanes.now())::float8 FROM lanes.machines HAVING bool_and(us_since IS NOT NULL)
"""


class Calm:
    """`leaps` is how many it took."""

    def __init__(self, crew: Crew, events: Events, connection: psycopg.Connection[Any], following: FollowStore) -> None:
        self._crew, self._events, self._connection, self._following = crew, events, connection, following
        self._of_the_dead: set[UUID] = set()
        self.leaps = 0

    def until_read(self, deadline: float) -> None:
        """Every Series that is followed was read again and no incident is open.  A shortfall is a fault in the log of events."""
        healed: datetime = self._one("SELECT lanes.now()")[0]
        ends = time.monotonic() + deadline
        moved, left = time.monotonic(), -1
        while time.monotonic() < ends:
            self._crew.mind()
            missing, first, leap = self._one(HOW_LONG, healed)
            incidents = self._one("SELECT count(*) FROM lanes.incidents WHERE ended_at IS NULL")[0]
            if not missing and not incidents:
                return
            if not missing:
                first = leap = 120.0  # something of that host or that machine is due by then
            if missing + incidents != left:
                moved, left = time.monotonic(), missing + incidents
            if first <= 0:
                first = leap = self._cut_off_for()
            if first > 0:
                self._leap(leap)
                moved = time.monotonic()
            elif time.monotonic() - moved > STUCK:
                break
            time.sleep(0.1)
        self._tell(healed)

    def _leap(self, wait: float) -> None:
        """Between Polls: one in hand would measure the pause between two of its requests by two clocks."""
        self._following.pause_lane("feeds")
        ends, looks = time.monotonic() + QUIET, 0
        while looks < SURE and time.monotonic() < ends:
            in_hand = {token for (token,) in self._connection.execute(IN_HAND).fetchall()} - self._of_the_dead
            looks = 0 if in_hand else looks + 1
            time.sleep(0.01)
        self._of_the_dead |= {token for (token,) in self._connection.execute(IN_HAND).fetchall()}
        move(self._connection, self._events, wait + 0.1)
        self._following.resume_lane("feeds")
        self.leaps += 1

    def _cut_off_for(self) -> float:
        """Seconds until any machine may ask anybody, where all think that their own line is down."""
        row = self._connection.execute(CUT_OFF).fetchone()
        return 0.0 if row is None or row[0] is None else float(row[0])

    def _tell(self, healed: datetime) -> None:
        rows = self._connection.execute(
            f"SELECT s.key FROM lanes.series s WHERE {MISSING} ORDER BY s.id LIMIT 5",
            [healed],
        ).fetchall()
        missing = self._one(HOW_LONG, healed)[0]
        said = "\n".join(self._crew.ask("why", key).stdout for (key,) in rows)
        self._events.fault(f"{missing} Series were not read again after the storm, the first of them:\n{said}")
        incidents = self._connection.execute(
            "SELECT whose, coalesce(h.name, machine, i.site), kind, i.started_at, i.evidence FROM lanes.incidents i "
            "LEFT JOIN lanes.hosts h ON h.id = i.host_id WHERE ended_at IS NULL ORDER BY i.id LIMIT 5"
        ).fetchall()
        if incidents:
            self._events.fault(f"incidents are open still: {incidents}")

    def _one(self, statement: str, *values: object) -> Any:
        row = self._connection.execute(statement.encode(), values).fetchone()
        assert row is not None
        return row
