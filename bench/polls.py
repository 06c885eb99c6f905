"""CPU of one Poll from claim to settle, on loopback: unchanged (304), first, and nine unchanged to one with a new item.

Owns one Lane in this process against a small internet in another.  Refuses to own: judging the figures.
"""

from __future__ import annotations

import logging
import os
import resource
import time
from dataclasses import dataclass
from datetime import timedelta

import psycopg

from bench.server import ServerCpu, database, server
from bench.world import follow_all
from lanes.core.claim import LEASE
from lanes.fetch.guard import Guard
from lanes.fetch.http import Http
from lanes.lane import Lane
from lanes.metrics import LaneMetrics
from lanes.poll import Poller
from lanes.sites import by_name
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from tests.smallnet.outside import Outside

SLOTS = 16


@dataclass(frozen=True, slots=True)
class Round:
    """One round over all feeds.  CPU in milliseconds a Poll: of this process, and of the database."""

    name: str
    polls: int
    program: float
    database: float
    wall: float


def run(hosts: int, feeds: int) -> list[Round]:
    """Three rounds over hosts x feeds feeds of 53 KB and 35 items: first Polls, all unchanged, one in ten with a new item."""
    logging.getLogger("lanes").setLevel(logging.WARNING)
    with server() as admin, database(admin) as url, Outside("bench", hosts=hosts, feeds=feeds) as world:
        cpu = ServerCpu(url)
        db = Database(url)
        store = PollStore(db, "feeds", "bench")
        store.enrol()
        follow_all(url, hosts, feeds, world.port)
        site = by_name("feeds")
        http = Http("Lanes/bench (+https://lanes.example; bench@example.org)", Guard(["127.1.0.0/16"]))
        lane = Lane(site, store, Poller(site, store, http, LEASE), LaneMetrics(site.name, SLOTS), slots=SLOTS)
        rounds = [_round("first", lane, db, cpu, hosts * feeds)]
        rounds.append(_round("unchanged (304)", lane, db, cpu, hosts * feeds))
        world.ask("share", value=0.1)
        rounds.append(_round("mix 90/10", lane, db, cpu, hosts * feeds))
        http.close()
        db.close()
    return rounds


def _round(name: str, lane: Lane, db: Database, cpu: ServerCpu, wanted: int) -> Round:
    _make_all_due(db)
    before, database_before, began = _own(), cpu.seconds(), time.monotonic()
    polled = 0
    while polled < wanted:
        polled += lane.run_once()
        if polled < wanted:
            time.sleep(0.02)
    own, database_cpu, wall = _own() - before, cpu.seconds() - database_before, time.monotonic() - began
    return Round(name, polled, own / polled * 1000, database_cpu / polled * 1000, wall)


def _make_all_due(db: Database) -> None:
    with db.connection() as connection:
        connection.execute("UPDATE lanes.clock SET test_offset = test_offset + %s", (timedelta(hours=8),))
        connection.execute("UPDATE lanes.hosts SET ready_at = lanes.now()")
        connection.execute("VACUUM ANALYZE")


def _own() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(hosts: int, feeds: int) -> None:
    """Prints the table."""
    print(f"{hosts} hosts x {feeds} feeds, {SLOTS} slots, Python process {os.getpid()}, psycopg {psycopg.__version__}")
    print(f"{'round':<18}{'Polls':>8}{'program ms':>12}{'database ms':>13}{'wall s':>9}")
    for each in run(hosts, feeds):
        print(f"{each.name:<18}{each.polls:>8}{each.program:>12.2f}{each.database:>13.2f}{each.wall:>9.1f}")
