"""Fixture: a Lane of `feeds` in this process, on a database and a small internet of the test's own.

`lane.follow(url)` bookmarks a Series for the owner, `lane.poll(key)` moves time to where it may be polled and runs one Pass; rows
come back as values.  Politeness is asserted from `net.record`, never from rows alone.
"""

from __future__ import annotations

import os
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.rows import namedtuple_row
from psycopg.types.datetime import TimestamptzLoader

from lanes.browser import Browser
from lanes.core.schedule import INITIAL
from lanes.fetch.guard import Guard, Resolver
from lanes.fetch.http import Http
from lanes.fetch.limits import LIMITS, Limits
from lanes.fetch.robots import origin_of
from lanes.lane import Lane
from lanes.metrics import LaneMetrics
from lanes.poll import Poller, lease_of, rows_of
from lanes.sites import FEEDS, Site
from lanes.store.audit import audit
from lanes.store.browsing import AskingStore
from lanes.store.following import FollowStore, Wanted
from lanes.store.pool import Database
from tests.smallnet import ALLOWED, Smallnet

AGENT = "Lanes/test (+https://example.org; you@example.org)"
IMPATIENT = replace(LIMITS, connect=2.0, read=1.0, whole=3.0)
"""Deadlines for tests of what never ends."""
UNBOUND = sys.maxsize
"""Bytes: a Lane here is a thread of the whole test run, and what that holds is not its own."""


_ENDS = {b"-infinity": datetime.min.replace(tzinfo=UTC), b"infinity": datetime.max.replace(tzinfo=UTC)}


class _Instants(TimestamptzLoader):
    """Postgres' infinities as the ends of Python's time."""

    def load(self, data: Any) -> datetime:
        return _ENDS.get(bytes(data)) or super().load(data)


Row = Any  # a named tuple of psycopg, with the table's own column names


class Owner:
    """The owner's verbs, and every row of a database, asked and told by plain SQL so that a test does not lean on what it judges."""

    def __init__(self, url: str, application: str = "the owner") -> None:
        self.url = url
        self.database = Database(url, application=application)
        self._verbs = FollowStore(self.database)
        self._connection = psycopg.connect(url, autocommit=True, row_factory=namedtuple_row)
        self._connection.adapters.register_loader("timestamptz", _Instants)
        self.asks_robots: set[str] = set()
        """Hosts whose robots.txt is asked for, because the test is about it."""

    def close(self) -> None:
        """Ends with an audit of all that was ever sent."""
        self.database.close()
        self._connection.close()
        with closing(Database(self.url)) as database:  # a new one: a test may have ended the server's old connections
            report = audit(database)
        assert report.clean, str(report.first_offence)

    def all(self, statement: str, *values: object) -> list[Row]:
        return self._connection.execute(statement.encode(), values).fetchall()

    def one(self, statement: str, *values: object) -> Row:
        (row,) = self.all(statement, *values)
        return row

    def tell(self, statement: str, *values: object) -> None:
        self._connection.execute(statement.encode(), values)

    def wait_for(self, statement: str, *values: object, timeout: float = 20.0) -> Row:
        """The first row of a query, once there is one.  Raises: AssertionError with the whole poll record."""
        deadline = time.monotonic() + timeout
        while not (rows := self.all(statement, *values)):
            if time.monotonic() > deadline:
                seen = self.all(
                    "SELECT series_id, outcome, status, detail, sent_at FROM lanes.polls ORDER BY claimed_at"
                )
                raise AssertionError(f"not within {timeout} s: {statement} {values}; the poll record: {seen}")
            time.sleep(0.02)
        return rows[0]

    def follow(self, url: str, *, robots: bool = False, site: Site = FEEDS) -> str:
        """The owner bookmarks a URL of a Site; returns the key of its Series.  Its origin is known to have no robots.txt, so that a Poll
        is one request; with `robots` nothing is known, and its first Poll asks."""
        host = urlsplit(url).hostname or ""
        key = f"series-{self.one('SELECT count(*) AS n FROM lanes.series').n + 1}"
        if robots:
            self.asks_robots.add(host)
            self.tell(
                "DELETE FROM lanes.robots WHERE origin = %s AND again_at > lanes.now() + interval '5 years'",
                origin_of(url),
            )
        else:
            self.has_no_robots(url, site)
        wanted = Wanted(site.name, url, host, key, rest=INITIAL if site.many_hosts else None)
        (followed,) = self._verbs.follow([wanted])
        return followed.series.key

    def has_no_robots(self, url: str, site: Site = FEEDS) -> None:
        """The origin of this URL, of a Site, is known to have no robots.txt."""
        origin, host = origin_of(url), urlsplit(url).hostname or ""
        self.tell("INSERT INTO lanes.lanes (site) VALUES (%s) ON CONFLICT DO NOTHING", site.name)
        self.tell(
            "INSERT INTO lanes.hosts (site, name, ready_at) VALUES (%s, %s, 'infinity') ON CONFLICT DO NOTHING",
            site.name, host,
        )  # fmt: skip
        self.tell(
            "INSERT INTO lanes.robots (origin, host_id, asked_at, again_at, status, text, read_at) "
            "SELECT %s, id, lanes.now(), lanes.now() + '10 years', 404, '', lanes.now() FROM lanes.hosts WHERE name = %s "
            "ON CONFLICT DO NOTHING",
            origin, host,
        )  # fmt: skip

    def unbookmark(self, key: str) -> None:
        """Nobody follows the Series any more."""
        self._verbs.drop_bookmark(key)

    def check_now(self, key: str) -> None:
        """The owner asks for one Poll sooner."""
        self._verbs.check_now(key)

    def series(self, key: str) -> Row:
        return self.one("SELECT * FROM lanes.series WHERE key = %s", key)

    def host(self, name: str) -> Row:
        return self.one("SELECT * FROM lanes.hosts WHERE name = %s", name)

    def polls(self, key: str | None = None) -> list[Row]:
        """The poll record, oldest first, one row a request."""
        return self.all(
            "SELECT p.*, s.key FROM lanes.polls p JOIN lanes.series s ON s.id = p.series_id "
            "WHERE %s::text IS NULL OR s.key = %s ORDER BY p.claimed_at, p.hop",
            key, key,
        )  # fmt: skip

    def outcomes(self, key: str) -> list[str]:
        return [row.outcome for row in self.polls(key) if row.outcome != "redirected"]

    def chapters(self, key: str) -> list[Row]:
        """In the order in which they were found."""
        return self.all(
            "SELECT c.* FROM lanes.chapters c JOIN lanes.series s ON s.id = c.series_id WHERE s.key = %s ORDER BY c.id",
            key,
        )

    def titles(self, key: str) -> list[str]:
        """Of its Chapters, sorted."""
        return sorted(row.title for row in self.chapters(key))

    def announced(self, key: str) -> list[str]:
        """Titles of the Chapters its Readers are told of, sorted."""
        return sorted(row.title for row in self.chapters(key) if row.announced)

    def now(self) -> datetime:
        found: datetime = self.one("SELECT lanes.now() AS now").now
        return found


class LaneAtWork(Owner):
    """One Lane on one machine, of `feeds` unless another Site is given, and the rows it works on."""

    def __init__(
        self,
        net: Smallnet,
        url: str,
        machine: str,
        limits: Limits,
        *,
        slots: int = 16,
        site: Site = FEEDS,
        resolver: Resolver | None = None,
        memory_bound: int = UNBOUND,
        tls: ssl.SSLContext | None = None,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(url)
        self.site, self.net = site, net
        self._without_robots: set[str] = set()
        self.database = Database(url, application=machine)
        self._owner = FollowStore(self.database)
        store = rows_of(site, self.database, machine)
        store.enrol()
        self.http = Http(AGENT, Guard([str(ALLOWED)], resolver or net.resolver), limits=limits, tls=tls)
        pages = AskingStore(self.database, site.name)
        self.browser = Browser(pages, site, self.http.stop, ticks) if site.browser else None
        poller = Poller(site, store, self.http, lease_of(site), browser=self.browser)
        self.metrics = LaneMetrics(site.name, slots)
        self.lane = Lane(site, store, poller, self.metrics, slots=slots, memory_bound=memory_bound)

    def close(self) -> None:
        self.lane.stop()
        self.http.interrupt()
        self.lane.finish(20)
        self.lane._threads.shutdown()
        for end in (self.lane._woken, self.lane._wake):  # a process has one Lane and ends with it; tests make thousands
            os.close(end)
        if self.browser is not None:
            self.browser.close()
        self.http.close()
        super().close()

    def run_once(self) -> int:
        """One Pass: the number of Polls."""
        self._expect_no_robots()
        return self.lane.run_once()

    def _expect_no_robots(self) -> None:
        """Whatever a redirect may lead to is known to have no robots.txt, unless the test is about just that."""
        for host in self.net.hosts[1:]:  # the first is always there, and nobody follows it
            if host.key not in self.asks_robots and host.key not in self._without_robots:
                self._without_robots.add(host.key)
                self.has_no_robots(host.url(), self.site)

    def poll(self, key: str) -> Row:
        """Moves time to where this Series is due and nothing stands around it, runs a Pass, and returns the last record of its Poll."""
        before = self.one(
            "SELECT max(p.claimed_at) AS at FROM lanes.polls p JOIN lanes.series s ON s.id = p.series_id WHERE key = %s",
            key,
        ).at
        self.move_to(self.open_at(key))
        self.run_once()
        rows = [row for row in self.polls(key) if before is None or row.claimed_at > before]
        assert rows, f"{key} was not polled at {self.now()}: {self.series(key)} {self.all('SELECT * FROM lanes.hosts')}"
        return rows[-1]

    def open_at(self, key: str) -> datetime:
        """When this Series may be polled next, by its own facts and every gate."""
        found: datetime = self.one(
            "SELECT greatest(lanes.due_at(s, NULL), s.not_before, h.not_before, h.next_at, h.busy_until, a.next_at, lanes.now()) AS at "
            "FROM lanes.series s JOIN lanes.hosts h ON h.id = s.queue_host_id "
            "LEFT JOIN lanes.addresses a ON a.address = lanes.bucket(coalesce(s.retry_address, h.address)) WHERE s.key = %s",
            key,
        ).at
        return found

    def move_to(self, instant: datetime) -> None:
        """lanes.now() is at least `instant` from now on; a sidecar that lives has lived until then."""
        self.tell(
            "WITH step AS (SELECT greatest(%s - lanes.now(), '0') AS span), "
            "beat AS (UPDATE lanes.browser SET heartbeat_at = heartbeat_at + span FROM step) "
            "UPDATE lanes.clock SET test_offset = test_offset + span FROM step",
            instant,
        )

    @contextmanager
    def running(self) -> Iterator[None]:
        """The Lane's own loop, in a thread."""
        self._expect_no_robots()
        bell = self.database.bell(f"lanes_{self.site.name}")
        thread = threading.Thread(target=self.lane.run, args=(bell,), name="lane")
        thread.start()
        try:
            yield
        finally:
            self.lane.stop()
            thread.join(30)
            assert not thread.is_alive(), "the Lane did not stop"
            assert self.lane.finish(30), "a Poll did not end"
            bell.close()


@pytest.fixture
def owner(database_url: str) -> Iterator[Owner]:
    """The owner of the test's database, for tests whose Lanes are processes."""
    owner = Owner(database_url)
    yield owner
    owner.close()


MakeLane = Callable[..., LaneAtWork]


@pytest.fixture
def make_lane(net: Smallnet, database_url: str) -> Iterator[MakeLane]:
    """Makes a Lane on a machine of a name, all on the test's one database: `make_lane("machine-2")`; more as of LaneAtWork."""
    with ExitStack() as stack:

        def make(machine: str = "machine-1", limits: Limits = LIMITS, **more: Any) -> LaneAtWork:
            made = LaneAtWork(net, database_url, machine, limits, **more)
            stack.callback(made.close)
            return made

        yield make


@pytest.fixture
def lane(make_lane: MakeLane) -> LaneAtWork:
    """The Lane of the test."""
    return make_lane()
