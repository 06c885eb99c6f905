"""Hosts, Series and Bookmarks in a test's database, said in domain words with good defaults.

Owns writing and reading rows for tests.  Refuses to own: what is right about them (`tests.oracle`, the tests themselves).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import namedtuple_row
from psycopg.types.datetime import TimestamptzLoader

from lanes.core.answer import Answer
from lanes.core.chapters import Item, distinct, guids_lie
from lanes.core.claim import Claim
from lanes.core.settlement import Settlement
from lanes.store.polls import AskAgain, Claimed, PollStore
from lanes.store.settled import Trail
from tests.answers import a_document, a_response, settled

NEVER = datetime.min.replace(tzinfo=UTC)
FOREVER = datetime.max.replace(tzinfo=UTC)
LEASE = timedelta(seconds=90)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

_numbers = count(1)


class _Instant(TimestamptzLoader):
    """Reads Postgres' infinities as the ends of Python's time."""

    def load(self, data: Any) -> datetime:
        match bytes(data):
            case b"-infinity":
                return NEVER
            case b"infinity":
                return FOREVER
            case _:
                return super().load(data)


class Rows:
    """One database's rows.  Whatever is not said is a healthy, bookmarked Series that was never looked at and so is due."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    def __call__(self, statement: str, *values: Any) -> list[Any]:
        """Runs one statement; returns its rows."""
        cursor = self.connection.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []

    def one(self, statement: str, *values: Any) -> Any:
        """The only value of the only row."""
        ((value,),) = self(statement, *values)
        return value

    def now(self) -> datetime:
        instant: datetime = self.one("SELECT lanes.now()")
        return instant

    def enrol(self, site: str = "feeds", **facts: Any) -> None:
        self("INSERT INTO lanes.lanes (site) VALUES (%s) ON CONFLICT DO NOTHING", site)
        for name, value in facts.items():
            self(f"UPDATE lanes.lanes SET {name} = %s WHERE site = %s", value, site)

    def host(self, name: str | None = None, site: str = "feeds", **facts: Any) -> int:
        """A host with an open bucket, ready at once, on an address of nobody yet."""
        self.enrol(site)
        if facts.get("address") is not None:
            facts["bucket"] = bucket_of(facts["address"])
        return self._insert("hosts", facts | {"site": site, "name": name or f"host{next(_numbers)}.test"})

    def series(self, host_id: int | None = None, site: str = "feeds", **facts: Any) -> int:
        """A Series on `host_id`, or on a host of its own."""
        number = next(_numbers)
        host_id = self.host(site=site) if host_id is None else host_id
        plain: dict[str, Any] = {
            "key": f"series-{number}",
            "site": site,
            "host_id": host_id,
            "queue_host_id": host_id,
            "url": f"https://host.test/{number}",
            "bookmarks": 1,
            "bookmarked_at": datetime(2020, 1, 1, tzinfo=UTC),
            "rest": 2 * MINUTE,
        }
        return self._insert("series", plain | facts)

    def bookmark(self, series_id: int, reader: str = "owner") -> None:
        self("INSERT INTO lanes.readers (name) VALUES (%s) ON CONFLICT DO NOTHING", reader)
        self(
            "INSERT INTO lanes.bookmarks (reader_id, series_id) SELECT id, %s FROM lanes.readers WHERE name = %s",
            series_id,
            reader,
        )
        self("UPDATE lanes.series SET bookmarks = bookmarks + 1 WHERE id = %s", series_id)

    def set_host(self, host_id: int, **facts: Any) -> None:
        self._update("hosts", host_id, facts)

    def set_series(self, series_id: int, **facts: Any) -> None:
        self._update("series", series_id, facts)

    def the_host(self, host_id: int) -> Any:
        return self._read("hosts", host_id)

    def the_series(self, series_id: int) -> Any:
        return self._read("series", series_id)

    def polls(self) -> list[Any]:
        return self("SELECT * FROM lanes.polls ORDER BY claimed_at, hop")

    def wait_for_lock(self) -> None:
        """Returns once somebody in this database waits for a lock."""
        for _ in range(2000):
            if self.one(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            ):
                return
            self("SELECT pg_sleep(0.005)")
        raise AssertionError("nobody waited for a lock")

    def late_hints(self, slack: timedelta = timedelta(milliseconds=50)) -> list[Any]:
        """The hosts whose `ready_at` is later than the instant from which a claim could take something there."""
        return self(
            """SELECT name, ready_at, possible_at FROM (
                   SELECT h.name, h.ready_at,
                          greatest(h.busy_until, h.next_at, h.not_before, min(s.claimable_at), lanes.now()) AS possible_at
                   FROM lanes.hosts h JOIN lanes.series s ON s.queue_host_id = h.id AND s.claimable_at IS NOT NULL
                   GROUP BY h.id) x
               WHERE ready_at > possible_at + %s""",
            slack,
        )

    def _insert(self, table: str, facts: dict[str, Any]) -> int:
        statement = sql.SQL("INSERT INTO {} ({}) VALUES ({}) RETURNING id").format(
            sql.Identifier("lanes", table),
            sql.SQL(", ").join(map(sql.Identifier, facts)),
            sql.SQL(", ").join(sql.Placeholder() * len(facts)),
        )
        ((row_id,),) = self.connection.execute(statement, list(facts.values()))
        return int(row_id)

    def _update(self, table: str, row_id: int, facts: dict[str, Any]) -> None:
        statement = sql.SQL("UPDATE {} SET {} WHERE id = %s").format(
            sql.Identifier("lanes", table),
            sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in facts),
        )
        self.connection.execute(statement, [*facts.values(), row_id])

    def _read(self, table: str, row_id: int) -> Any:
        (row,) = self(f"SELECT * FROM lanes.{table} WHERE id = %s", row_id)
        return row


@contextmanager
def open_rows(url: str) -> Iterator[Rows]:
    """The rows of the database at `url`, each statement its own transaction."""
    with psycopg.connect(url, autocommit=True, row_factory=namedtuple_row) as connection:
        connection.adapters.register_loader("timestamptz", _Instant)
        yield Rows(connection)


def take(store: PollStore, rest: timedelta | None = None) -> Claim | None:
    """The next Poll that can be claimed now, asking again as long as the claim says so; None when nothing can."""
    for _ in range(2000):
        turn = store.claim(LEASE, rest, None)
        if isinstance(turn, Claimed):
            return turn.claim
        if not isinstance(turn, AskAgain):
            return None
    raise AssertionError("the claim asked to be asked again 2,000 times")


def take_all(store: PollStore, rest: timedelta | None = None) -> list[Claim]:
    """Claims until nothing is left to claim now."""
    return list(iter(lambda: take(store, rest), None))


def trail(claim: Claim, *further_hosts: int) -> Trail:
    """Where a Poll went that wrote no request: its own host, and further ones it entered."""
    hosts = (claim.host_id, *further_hosts)
    return Trail(claim.host_id, hosts, (None,) * len(hosts), (), ())


def bucket_of(address: str) -> str:
    """The bucket of an address: an IPv4 address by itself (behind NAT64 too), an IPv6 address by its /64 (DESIGN 2)."""
    parsed = ipaddress.ip_address(address)
    if parsed in ipaddress.ip_network("64:ff9b::/96"):
        parsed = ipaddress.ip_address(int(parsed) & 0xFFFF_FFFF)
    return str(ipaddress.ip_network((parsed, 64 if parsed.version == 6 else 32), strict=False))


def settle(store: PollStore, claim: Claim, answer: Answer, *, on: Trail | None = None) -> bool:
    """Ends a Poll with an answer that has nothing to read.  False: its lease had run out."""
    return store.settle(claim, settled(answer, None, claim, now=claim.claimed_at), on or trail(claim))


def settle_read(store: PollStore, claim: Claim, *items: Item, **document: Any) -> Settlement:
    """Ends a Poll with a recognised document of these items."""
    read = a_document(*items, **document)
    guid_alone = claim.guid_alone and not guids_lie(items)
    listed = distinct(items, guid_alone=guid_alone)
    answer = a_response(200, repr(items).encode())
    held, settlement = store.settle_document(
        claim, listed, lambda known: settled(answer, read, claim, known, now=claim.claimed_at), trail(claim)
    )
    assert held
    return settlement
