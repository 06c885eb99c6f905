"""The line of one machine, in its row and the poll record: judged after an attempt without proof, and after a probe.

Owns reading what the judgement needs, and writing what follows from it.  Refuses to own: the judgement (`lanes.core.line`).  Must never
break: the machine's row is locked first, then hosts, then Series; a Poll that proved its line costs no statement here.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any, assert_never

from psycopg.types.json import Jsonb

from lanes.core import notices
from lanes.core.line import ANSWERED_LATELY, ASKS, LOOK_BACK, Ask, Attempt, Excused, Line, Proved, Us, judge, probed
from lanes.core.notices import Kind
from lanes.store.pool import Connection, Database, named_sql, ring

log = logging.getLogger("lanes.line")

MOST_ATTEMPTS = 1_000  # read back: the doubts of ten minutes at full speed are fewer
MOST_SHOWN = 10  # attempts that an incident keeps as its evidence

_SQL = named_sql("line")


class LineStore:
    """The row of one machine, for every Lane that polls there."""

    def __init__(self, database: Database, machine: str) -> None:
        self._database, self._machine = database, machine

    def enrol(self, connection: Connection) -> None:
        """The machine has its row: upkeep may have forgotten it meanwhile."""
        _SQL.enrol(connection, machine=self._machine)

    def shaken(self, at: datetime | None = None) -> None:
        """Notes that the database was away, or that the clock jumped before `at` (None: now): what fails next may be our own line."""
        with self._database.connection() as connection:
            _SQL.shaken(connection, machine=self._machine, at=at)

    def judge(self) -> None:
        """An attempt ended without proof: asks another host, or finds the line down, or neither."""
        with self._database.transaction() as connection:
            self.enrol(connection)
            row = _SQL.machine(connection, machine=self._machine)
            verdict = judge(self._line(connection, row), row.now)
            match verdict:
                case Ask(otherwise=us):
                    if not self._ask(connection, us):
                        self._cut_off(connection, us, new=True)
                case Us():
                    self._cut_off(connection, verdict, new=row.us_since is None)
                case Proved():
                    self._over(connection, verdict)
                case None:
                    pass
                case _:
                    assert_never(verdict)

    def probed(self, *, proved: bool) -> None:
        """A Poll that was claimed as a probe ended, and proved the line or did not."""
        with self._database.transaction() as connection:
            self.enrol(connection)
            row = _SQL.machine(connection, machine=self._machine)
            verdict = probed(row.us_since, row.now, proved=proved, only_host=row.only_host)
            if verdict is not None:
                self._over(connection, verdict)

    def _line(self, connection: Connection, row: Any) -> Line:
        since = row.now - LOOK_BACK
        proved_at = _SQL.proved_at(connection, machine=self._machine, since=since)
        unproved = _SQL.unproved(connection, machine=self._machine, since=proved_at or since, most=MOST_ATTEMPTS)
        elsewhere = row.asked_at is not None and _SQL.asked_elsewhere(
            connection, machine=self._machine, series_id=row.asked_series, asked_at=row.asked_at
        )
        return Line(
            tuple(Attempt(*each) for each in unproved),
            proved_at,
            row.only_host,
            row.shaken_at,
            row.asked_at,
            row.asked_series,
            elsewhere,
            row.us_since,
            row.excused_at,
        )

    def _ask(self, connection: Connection, us: Us) -> bool:
        """False: nobody else answered lately.  One that is in hand anyway is not asked: its answer says as much."""
        found = _SQL.askable(
            connection,
            machine=self._machine,
            apart_from=list(us.hosts),
            lately=ANSWERED_LATELY,
            most=MOST_ATTEMPTS,
        )
        if found is None or found.in_hand:
            return found is not None
        _SQL.lock_host(connection, host_id=found.host_id)
        if _SQL.ask(connection, series_id=found.id, reason=ASKS) is not None:
            _SQL.hurry(connection, host_id=found.host_id)
            ring(connection, f"lanes_{found.site}")
        _SQL.asked(connection, machine=self._machine, series_id=found.id)
        log.info("it may be our own line, one Series is asked machine=%s series=%s", self._machine, found.id)
        return True

    def _cut_off(self, connection: Connection, us: Us, *, new: bool) -> None:
        series = sorted({attempt.series_id for attempt in us.attempts})
        _SQL.cut_off(connection, machine=self._machine, since=us.since)
        spared = _SQL.give_back(connection, series_ids=series, sinces=[us.since] * len(series), machine=self._machine)
        _SQL.withdraw(connection, series_ids=series, since=us.since)
        incident = _SQL.incident(
            connection, machine=self._machine, since=us.since, spared=spared, evidence=Jsonb(_evidence(us))
        )
        if not new:
            return
        _SQL.tell_owner(
            connection,
            kind=Kind.INCIDENT.value,
            event=notices.incident(incident.id),
            body=Jsonb({"whose": "us", "machine": self._machine, "spared": spared}),
        )
        log.warning(
            "our own line is down machine=%s since=%s hosts=%s spared=%s",
            self._machine,
            us.since,
            len(us.hosts),
            spared,
        )

    def _over(self, connection: Connection, how: Proved | Excused) -> None:
        (_SQL.excuse if isinstance(how, Excused) else _SQL.restore)(connection, machine=self._machine)
        ended = _SQL.incident_over(connection, machine=self._machine)
        if ended is None:
            return
        _SQL.tell_owner(
            connection,
            kind=Kind.INCIDENT_OVER.value,
            event=notices.incident_over(ended.id),
            body=Jsonb({"whose": "us", "machine": self._machine, "spared": ended.spared}),
        )
        if isinstance(how, Excused):
            log.warning("a day without a proof of our line, the only host is blamed machine=%s", self._machine)
        else:
            log.warning("our own line works again machine=%s", self._machine)


def _evidence(us: Us) -> dict[str, object]:
    """The hosts, and the attempts that showed it, oldest first."""
    shown = us.attempts[-MOST_SHOWN:]
    attempts = [
        {"at": each.claimed_at.isoformat(), "host": each.host, "detail": each.detail} for each in reversed(shown)
    ]
    return {"hosts": list(us.hosts[:MOST_SHOWN]), "attempts": attempts}
