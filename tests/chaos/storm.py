"""The storm: everything that can go wrong does, at random, for some time.

Owns what happens how often.  Refuses to own: what it means.  Must never break: all chance comes from the one seeded generator, and what
was begun (a suspended Lane, a stopped Postgres, bad weather) is over when the storm is.
"""

from __future__ import annotations

import heapq
import itertools
import signal
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from random import Random

import psycopg

from lanes.errors import DatabaseAway
from lanes.store.following import FollowStore
from lanes.store.pool import Database

from . import weather
from .clock import move
from .crew import Crew, Member
from .events import Events
from .weather import Heal
from .world import World

TICK = 0.05
"""Seconds between two looks at the processes."""


@dataclass(frozen=True, slots=True)
class Often:
    """Mean seconds between two events of a kind, in the whole installation."""

    publish: float
    weather: float
    kill: float
    end: float
    suspend: float
    postgres: float
    terminate: float
    check_now: float
    clock: float | None = None


class Impatient:
    """The owner, pressing Check now.  In a thread of its own, because the press waits where Postgres is away."""

    def __init__(self, url: str, world: World, seed: float, every: float) -> None:
        self._url, self._world, self._random, self._every = url, world, Random(seed), every
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._press, name="owner")
        self._thread.start()

    def close(self) -> None:
        self._left.set()
        self._thread.join()

    def _press(self) -> None:
        with closing(Database(self._url, largest=1, application="the owner")) as database:
            store = FollowStore(database)
            while not self._left.wait(self._random.expovariate(1 / self._every)):
                with suppress(DatabaseAway):
                    store.check_now(self._random.choice(self._world.followed).url)


class Storm:
    """One storm; `longest` is how many seconds bad weather or a suspension lasts at most."""

    def __init__(self, world: World, crew: Crew, events: Events, random: Random, often: Often, longest: float) -> None:
        self._world, self._crew, self._events, self._random = world, crew, events, random
        self._often, self._longest = often, longest
        self._plan: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._directions = itertools.cycle((1, -1))
        self._weather: dict[str, Heal] = {}

    def rage(self, seconds: float) -> None:
        """Returns when everything is healed and every process runs."""
        ends = time.monotonic() + seconds
        often = self._often
        for every, strike in (
            (often.publish, self._world.publish),
            (often.weather, self._strike_host),
            (often.kill, self._kill),
            (often.end, lambda: self._worker().end()),
            (often.suspend, self._suspend),
            (often.postgres, self._strike_postgres),
            (often.terminate, self._terminate),
            (often.clock, self._jump),
        ):
            if every is not None:
                self._again(every, strike)
        with closing(Impatient(self._crew.url, self._world, self._random.random(), often.check_now)):
            while time.monotonic() < ends:
                self._crew.mind()
                self._do_what_is_due()
                time.sleep(TICK)
            self._heal()

    def _again(self, every: float, strike: Callable[[], None]) -> None:
        def now_and_later() -> None:
            strike()
            self._again(every, strike)

        self._after(self._random.expovariate(1 / every), now_and_later)

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._plan, (time.monotonic() + seconds, next(self._order), act))

    def _do_what_is_due(self) -> None:
        while self._plan and self._plan[0][0] <= time.monotonic():
            heapq.heappop(self._plan)[2]()

    def _worker(self) -> Member:
        """A Lane mostly, upkeep now and then."""
        return self._random.choice(self._crew.lanes) if self._random.random() < 0.9 else self._crew.upkeep

    def _strike_host(self) -> None:
        host = self._random.choice(self._world.hosts)
        if host.key in self._weather:
            return
        kind = weather.pick(self._random)
        seconds = self._random.uniform(1, self._longest)
        self._events.note("weather", f"{host.key} {kind} for {seconds:.1f} s")
        self._weather[host.key] = weather.KINDS[kind][1](self._world, host)
        self._after(seconds, lambda: self._clear_up(host.key))

    def _clear_up(self, host: str) -> None:
        heal = self._weather.pop(host, None)
        if heal is not None:
            heal()
            self._events.note("healed", host)

    def _kill(self) -> None:
        """Mostly one that has something to lose, however long a busy machine takes to start it."""
        worker = self._worker()
        if worker.is_up or self._random.random() < 0.2:
            worker.kill()

    def _suspend(self) -> None:
        worker = self._worker()
        seconds = 100.0 if self._longest > 60 and self._random.random() < 0.15 else self._random.uniform(1, 15)
        if worker.suspend():
            self._after(seconds, worker.wake)

    def _strike_postgres(self) -> None:
        """Killed, or stopped at once, and away for a moment or for some seconds."""
        postgres = self._crew.postgres
        postgres.wanted = False
        if self._random.random() < 0.5:
            postgres.kill()
        else:
            postgres.end(signal.SIGINT)
        self._after(self._random.choice((0.0, 2.0, 6.0)), self._restore_postgres)

    def _restore_postgres(self) -> None:
        postgres = self._crew.postgres
        if postgres.running is None and not postgres.wanted:
            self._events.note("start", postgres.name)
            postgres.start()
        postgres.wanted = True

    def _terminate(self) -> None:
        """One to five connections end under whoever has them."""
        with suppress(psycopg.Error), psycopg.connect(self._crew.url, connect_timeout=2, autocommit=True) as connection:
            ended = connection.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY random() LIMIT %s) AS unlucky",
                [self._random.randint(1, 5)],
            ).fetchone()
            self._events.note("terminate", str(ended))

    def _jump(self) -> None:
        """A clock set wrong, forward and back in turn, by seconds or by an hour."""
        with suppress(psycopg.Error), psycopg.connect(self._crew.url, connect_timeout=2, autocommit=True) as connection:
            move(connection, self._events, next(self._directions) * self._random.choice((8, 90, 3600)))

    def _heal(self) -> None:
        self._plan.clear()
        for host in list(self._weather):
            self._clear_up(host)
        for worker in (*self._crew.lanes, self._crew.upkeep):
            worker.wake()
        self._restore_postgres()
        self._events.note("calm")
