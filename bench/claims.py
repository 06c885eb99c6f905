"""Claims alone: how many a second, and CPU of each, in the shapes of DESIGN 12.  Does a claim stay flat?

Owns tables filled by SQL and a loop of claims on one connection.  Refuses to own: Polls; nothing is fetched.
"""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import psycopg

from bench.server import ServerCpu, database, server
from bench.world import follow_shape
from lanes.store.polls import Claimed, Nothing, PollStore
from lanes.store.pool import Database

LEASE = timedelta(hours=10)
WARM, COUNTED = 200, 1_500


@dataclass(frozen=True, slots=True)
class Shape:
    """What the tables hold.  `addresses` 0: each host has its own.  `giant`: one host owns a fifth of all Series, all due.
    `closed`: and its bucket is closed.  `snapshot`: another session holds a snapshot meanwhile."""

    name: str
    series: int
    hosts: int
    addresses: int = 0
    giant: bool = False
    closed: bool = False
    snapshot: bool = False


def shapes(series: int) -> tuple[Shape, ...]:
    """10,000 Series over 2,000 hosts as the base, then the large ones."""
    hosts = series // 5
    return (
        Shape("base", 10_000, 2_000),
        Shape("large", series, hosts),
        Shape("large, one host owns a fifth, all due", series, hosts, giant=True),
        Shape("large, that host's bucket is closed", series, hosts, giant=True, closed=True),
        Shape("large, 10,000 hosts share one address", series, hosts, addresses=-10_000),
        Shape("large, a snapshot is held", series, hosts, snapshot=True),
    )


def main(series: int) -> None:
    """Prints the table; ratios are to the base."""
    print(f"\nclaims, {COUNTED} counted after {WARM}, one connection")
    print(f"{'shape':<42}{'client ms':>11}{'database ms':>13}{'claims/s':>10}{'asked':>8}{'ratio':>7}")
    base = 0.0
    with server() as admin:
        for shape in shapes(series):
            client, server_cpu, rate, asked = _measured(admin, shape)
            base = base or client + server_cpu
            ratio = (client + server_cpu) / base
            print(f"{shape.name:<42}{client:>11.2f}{server_cpu:>13.2f}{rate:>10.0f}{asked:>8}{ratio:>7.2f}", flush=True)


def _measured(admin: str, shape: Shape) -> tuple[float, float, float, int]:
    with database(admin) as url:
        db = Database(url)
        store = PollStore(db, "feeds", "bench")
        store.enrol()
        follow_shape(url, shape.series, shape.hosts, addresses=shape.addresses, giant=shape.giant)
        with psycopg.connect(url, autocommit=True) as connection:
            if shape.closed:
                connection.execute(
                    "UPDATE lanes.hosts SET next_at = lanes.now() + interval '1 hour', ready_at = lanes.now() - interval '2 hours' "
                    "WHERE id = (SELECT min(id) FROM lanes.hosts)"
                )
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")
        claimer = _Claimer(store)
        claimer.claim(WARM)
        cpu = ServerCpu(url)
        with _snapshot(url, held=shape.snapshot):
            own, theirs, began = _own(), cpu.seconds(), time.monotonic()
            asked = claimer.claim(COUNTED)
            wall = time.monotonic() - began
            result = (_own() - own) / COUNTED * 1000, (cpu.seconds() - theirs) / COUNTED * 1000, COUNTED / wall, asked
        db.close()
    return result


class _Claimer:
    """Claims as a Lane does: its scan starts where the last one ended, and from the very first host once a second."""

    def __init__(self, store: PollStore) -> None:
        self._store = store
        self._after: datetime | None = None
        self._rescan_at = 0.0

    def claim(self, wanted: int) -> int:
        asked = got = 0
        while got < wanted:
            now = time.monotonic()
            if now >= self._rescan_at:
                self._after, self._rescan_at = None, now + 1.0
            turn = self._store.claim(LEASE, None, self._after)
            asked += 1
            if isinstance(turn, Claimed):
                self._after = turn.ready_at
                got += 1
            elif isinstance(turn, Nothing) and self._after is None:
                raise RuntimeError(f"nothing left to claim after {got}")
            elif isinstance(turn, Nothing):
                self._after = None
        return asked


@contextmanager
def _snapshot(url: str, *, held: bool) -> Iterator[None]:
    if not held:
        yield
        return
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with psycopg.connect(url) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.execute("SELECT count(*) FROM lanes.lanes")
            taken.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _own() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
