"""What `lanes upkeep` says to the database: who is told, what is given up, what goes.

Owns those verbs, each a short transaction or a row of them.  Refuses to own: how old is old (`core.retirement`, `lanes.upkeep`).  Must
never break: hosts are locked before Series, by id, and never more than a batch of either.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from lanes.core import notices
from lanes.core.notices import Kind
from lanes.store import judging
from lanes.store.pool import Connection, Database, named_sql

BATCH = 100  # Series, or rows that go, in one transaction: what it locks is free again within milliseconds
PAGE = 1000  # hosts that are only looked at, at a time
PATIENCE = "1s"  # for the poll record to be free: meanwhile every Lane's record queues behind us

_SQL = named_sql("upkeep")
_CONSEQUENCES = named_sql("consequences")


@dataclass(frozen=True, slots=True)
class Trouble:
    """An incident of a Site, or a refusal window, of a host or (`host` None) a whole Site."""

    incident_id: int
    whose: str
    site: str
    host: str | None
    kind: str | None
    since: datetime
    age: timedelta
    owner_told: bool

    @property
    def body(self) -> dict[str, Any]:
        """What a Notice says about it."""
        return {
            "whose": self.whose,
            "site": self.site,
            "host": self.host,
            "kind": self.kind,
            "since": self.since.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class Day:
    """A day's partition of the poll record; `size` in bytes, indices included."""

    name: str
    day: date
    size: int


@dataclass(frozen=True, slots=True)
class Record:
    """The poll record by days, oldest first; `strays` is the size of what has no partition of its own, in bytes."""

    days: tuple[Day, ...]
    strays: int = 0

    @property
    def size(self) -> int:
        """All together, in bytes."""
        return self.strays + sum(day.size for day in self.days)


@dataclass(frozen=True, slots=True)
class Owed:
    """How many Notices wait for delivery, and for how long the oldest has."""

    count: int
    oldest: timedelta | None


class UpkeepStore:
    """The verbs of the duties.  Each raises DatabaseAway when the server is gone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def troubles(self) -> tuple[Trouble, ...]:
        """The incidents of Sites and the refusal windows that go on, oldest first."""
        with self._database.connection() as connection:
            return _troubles(_SQL.troubles(connection))

    def ended(self) -> tuple[Trouble, ...]:
        """Those that are over, of which Readers were told, and nobody yet that they are over."""
        with self._database.connection() as connection:
            return _troubles(_SQL.ended(connection))

    def tell_readers_of(self, trouble: Trouble, age: timedelta, kind: Kind) -> int:
        """Owes each Reader of Series that are silent in it for `age` one Notice; who bookmarks later is not told.  How many were."""
        with self._database.connection() as connection:
            told: int = _SQL.tell_of_trouble(
                connection,
                incident_id=trouble.incident_id,
                age=age,
                kind=kind.value,
                event=notices.incident(trouble.incident_id),
                body=Jsonb(trouble.body),
                most_named=notices.MOST_NAMED,
            )
            return told

    def tell_owner_of(self, trouble: Trouble) -> None:
        """Owes the owner word of a refusal window; of its end whoever settles that Poll tells."""
        with self._database.transaction() as connection:
            _SQL.mark_owner_told(connection, incident_id=trouble.incident_id)
            _SQL.tell_owner(
                connection,
                kind=Kind.REFUSED_FOR_AN_HOUR.value,
                event=notices.incident(trouble.incident_id),
                body=Jsonb(trouble.body),
            )

    def tell_of_end(self, trouble: Trouble) -> int:
        """Owes each Reader who was told of it, and still follows what it was about, one Notice that it is over.  How many were."""
        with self._database.connection() as connection:
            told: int = _SQL.tell_of_end(
                connection,
                incident_id=trouble.incident_id,
                event_told=notices.incident(trouble.incident_id),
                kind=Kind.BACK_AGAIN.value,
                event=notices.incident_over(trouble.incident_id),
                body=Jsonb(trouble.body),
                most_named=notices.MOST_NAMED,
            )
            return told

    def tell_of_refused_alone(self, age: timedelta) -> int:
        """Owes the Readers of Series whose own URL has been refused for `age` one Notice each; how many that were."""
        with self._database.connection() as connection:
            told: int = _SQL.tell_of_refused_alone(connection, age=age, kind=Kind.REFUSED.value)
            return told

    def tell_of_taken_back(self) -> int:
        """Owes those who were told that a URL is refused alone one Notice that it is read again; how many that were."""
        with self._database.connection() as connection:
            told: int = _SQL.tell_of_taken_back(connection, kind=Kind.BACK_AGAIN.value)
            return told

    def give_up(self, trouble: Trouble, age: timedelta, reason: str) -> int:
        """Retires a batch of the Series that are silent in it for `age`, their Readers told; how many that were."""
        with self._database.transaction() as connection:
            found = _SQL.given_up(connection, incident_id=trouble.incident_id, age=age, most=BATCH)
            return _retire(connection, list(found), age, reason)

    def give_up_refused_alone(self, age: timedelta, reason: str) -> int:
        """Retires a batch of the Series whose own URL has been refused for `age`, their Readers told; how many that were."""
        with self._database.transaction() as connection:
            return _retire(connection, list(_SQL.refused_alone(connection, age=age, most=BATCH)), age, reason)

    def deserted(self) -> tuple[Trouble, ...]:
        """Those that go on at a place where no Series is eligible any more."""
        with self._database.connection() as connection:
            return _troubles(_SQL.deserted(connection))

    def end_deserted(self, trouble: Trouble) -> int:
        """Ends one of them; the owner is told, if of its beginning too.  1, or 0 where something is polled there again."""
        with self._database.transaction() as connection:
            _SQL.hold_lane(connection, incident_id=trouble.incident_id)
            _SQL.hold_place(connection, incident_id=trouble.incident_id)
            ended = _SQL.end_deserted(connection, incident_id=trouble.incident_id)
            if ended is None:
                return 0
            kind = Kind.INCIDENT_OVER if trouble.whose == "site" else Kind.REFUSAL_OVER
            _CONSEQUENCES.tell_owner_over(
                connection,
                kind=kind.value,
                event=notices.incident_over(trouble.incident_id),
                body=Jsonb({**trouble.body, "deserted": True}),
                told_event=notices.incident(trouble.incident_id),
            )
            return 1

    def judge_by_the_rest(self, trouble: Trouble) -> int:
        """Drops what Series said that are not polled at its host any more; 1, or 0 where that changed nothing."""
        with self._database.transaction() as connection:
            host_id = _SQL.hold_place(connection, incident_id=trouble.incident_id)
            return 0 if host_id is None else int(judging.by_the_rest(connection, host_id))

    def lost_machines(self, silent: timedelta) -> tuple[str, ...]:
        """Machines whose line went down, and which have not asked for so long whether it works again."""
        with self._database.connection() as connection:
            return tuple(row.machine for row in _SQL.lost_machines(connection, silent=silent))

    def end_us(self, machine: str, silent: timedelta) -> int:
        """Nothing is known of the line of such a machine any more, and the owner is told; 1, or 0 where it is there again."""
        with self._database.transaction() as connection:
            ended = _SQL.end_us(connection, machine=machine, silent=silent)
            if ended is None:
                return 0
            _CONSEQUENCES.tell_owner_over(
                connection,
                kind=Kind.INCIDENT_OVER.value,
                event=notices.incident_over(ended.id),
                body=Jsonb({"whose": "us", "machine": machine, "spared": ended.spared, "deserted": True}),
                told_event=notices.incident(ended.id),
            )
            return 1

    def owed(self) -> Owed:
        """The Notices that wait for delivery."""
        with self._database.connection() as connection:
            row = _SQL.owed(connection)
            return Owed(row.owed, row.oldest)

    def now(self) -> datetime:
        """The one clock."""
        with self._database.connection() as connection:
            now: datetime = _SQL.now(connection)
            return now

    def record(self) -> Record:
        """The poll record's partitions."""
        with self._database.connection() as connection:
            rows = list(_SQL.record_days(connection))
        days = tuple(Day(row.name, row.day, row.bytes) for row in rows if row.day is not None)
        return Record(days, sum(row.bytes for row in rows if row.day is None))

    def oldest_stray(self) -> date | None:
        """The day of the oldest record without a partition of its own."""
        with self._database.connection() as connection:
            day: date | None = _SQL.oldest_stray(connection)
            return day

    def drop(self, day: Day) -> bool:
        """Drops a partition of the poll record; False where somebody reads the record: a later run does it."""
        return self._briefly(sql.SQL("DROP TABLE {}").format(sql.Identifier("lanes", day.name)))

    def empty_strays(self) -> bool:
        """Gives the room of strays that are all gone back to the disk; False where somebody reads them."""
        return self._briefly(sql.SQL("TRUNCATE lanes.polls_stray"))

    def _briefly(self, statement: sql.SQL | sql.Composed) -> bool:
        with self._database.transaction() as connection:
            connection.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(PATIENCE))
            try:
                with connection.transaction():
                    connection.execute(statement)
            except psycopg.errors.LockNotAvailable:
                return False
            return True

    def prune_strays(self, before: datetime) -> int:
        """Deletes a batch of records that have no partition and were claimed `before`; how many."""
        return self._prune(_SQL.prune_strays, before=before, most=PAGE)

    def prune_addresses(self, idle: timedelta) -> int:
        """Forgets a batch of address buckets that nobody has used for `idle`; how many."""
        return self._prune(_SQL.prune_addresses, idle=idle, most=BATCH)

    def note_unused(self, after: int) -> int | None:
        """Notes of the next hosts by id whether a Series points to them; the last id, None at the end."""
        with self._database.connection() as connection:
            last: int | None = _SQL.note_unused(connection, after=after, most=PAGE)
            return last

    def prune_hosts(self, unused_for: timedelta, named: Iterable[str]) -> int:
        """Forgets a batch of hosts to which no Series has pointed for so long, but not of those `named`; how many."""
        with self._database.transaction() as connection:
            held = [
                row.id for row in _SQL.hold_unused(connection, unused_for=unused_for, named=list(named), most=BATCH)
            ]
            pruned: int = _SQL.prune_hosts(connection, host_ids=held) if held else 0
            return pruned

    def prune_machines(self, unused_for: timedelta) -> int:
        """Forgets a batch of machines that polled nothing for so long; how many."""
        return self._prune(_SQL.prune_machines, unused_for=unused_for, most=BATCH)

    def prune_incidents(self, kept: timedelta) -> int:
        """Forgets a batch of incidents that ended so long ago; how many."""
        return self._prune(_SQL.prune_incidents, kept=kept, most=BATCH)

    def prune_notices(self, kept: timedelta) -> int:
        """Forgets a batch of Notices that were delivered so long ago; how many."""
        return self._prune(_SQL.prune_notices, kept=kept, most=PAGE)

    def _prune(self, statement: Any, **words: Any) -> int:
        with self._database.connection() as connection:
            pruned: int = statement(connection, **words)
            return pruned


def _troubles(rows: Iterable[Any]) -> tuple[Trouble, ...]:
    return tuple(
        Trouble(row.id, row.whose, row.site, row.host, row.kind, row.started_at, row.age, row.owner_told)
        for row in rows
    )


def _retire(connection: Connection, found: list[Any], age: timedelta, reason: str) -> int:
    """Retires those of these Series that are still silent, and lets their hosts be judged by the rest."""
    if not found:
        return 0
    hosts = list(_SQL.hold_hosts(connection, host_ids=[row.host_id for row in found]))
    rows = list(
        _SQL.hold_silent(connection, series_ids=[row.id for row in found], sinces=[row.since for row in found], age=age)
    )
    at = _SQL.now(connection)
    _SQL.retire(connection, series_ids=[row.id for row in rows], at=at, reason=reason)
    for row in rows:
        body = Jsonb({"reason": reason, "since": row.since.isoformat()})
        event = notices.stopped(row.id, at)
        _SQL.tell_readers(connection, series_id=row.id, kind=Kind.STOPPED.value, event=event, body=body)
    for host in hosts:
        judging.by_the_rest(connection, host.id)
    return len(rows)
