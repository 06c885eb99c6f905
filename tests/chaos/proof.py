"""One run, from start to verdict.

Owns the order of things and the figures.  Refuses to own: each thing.  Must never break: whatever happens, no process is left behind, and
the log of events stays where it was asked for.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from lanes.store.following import FollowStore
from lanes.store.pool import Database
from tests.fix_database import _quick_place
from tests.process.fix_supervisor import until
from tests.smallnet import Smallnet, write_opml

from . import books, origin
from .calm import Calm
from .crew import Crew
from .events import Events
from .seen import ROWS, Row, laid_side_by_side
from .storm import Often, Storm
from .world import World


@dataclass(frozen=True, slots=True)
class Plan:
    """How long, how large, how often.  `events` is the file of the log."""

    seed: int
    seconds: float
    series: int
    hosts: int
    often: Often
    longest: float
    patience: float
    events: Path


@dataclass(slots=True)
class Outcome:
    """`faults` in words: there must be none.  `figures` in order."""

    faults: list[str] = field(default_factory=list)
    figures: dict[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        width = max(map(len, self.figures), default=0)
        lines = [f"{name:{width}}  {value}" for name, value in self.figures.items()]
        return "\n".join([*lines, "", *(f"FAULT: {fault}" for fault in self.faults), f"{len(self.faults)} faults"])


@contextmanager
def _place() -> Iterator[Path]:
    """A directory that the server's user can reach, too."""
    place = Path(tempfile.mkdtemp(prefix="lanes-chaos-", dir=_quick_place()))
    place.chmod(0o755)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def prove(plan: Plan) -> Outcome:
    """The whole proof."""
    random = Random(plan.seed)
    plan.events.write_text("")
    events, outcome = Events(plan.events), Outcome()
    with _place() as place, Smallnet(keep_headers=False) as net:
        world = World(net, random, plan.series, plan.hosts)
        crew = Crew(place, events)
        try:
            _live_through(plan, net, world, crew, events, random, outcome)
        finally:
            crew.destroy()
            for member in crew.members:
                _keep(member.log, plan.events)
    return outcome


def _live_through(
    plan: Plan, net: Smallnet, world: World, crew: Crew, events: Events, random: Random, outcome: Outcome
) -> None:
    opml = plan.events.with_suffix(".opml")
    write_opml(opml, world.outlines)
    crew.open(opml)
    with psycopg.connect(crew.url, autocommit=True) as connection:
        books.seat_readers(connection)
    crew.start()
    began = time.monotonic()
    Storm(world, crew, events, random, plan.often, plan.longest).rage(plan.seconds)
    stormed = time.monotonic()
    requests = len(net.record)
    unmoved_storm = not events.moves
    with _connected(crew) as connection, closing(Database(crew.url, largest=1)) as database:
        calm = Calm(crew, events, connection, FollowStore(database))
        calm.until_read(plan.patience)
        calmed = time.monotonic()
        crew.finish_workers()
        outcome.faults += books.faults(connection, world, unmoved_storm=unmoved_storm)
        outcome.figures |= {
            "seed": plan.seed,
            "Series, hosts": f"{plan.series}, {plan.hosts}",
            "storm, calm": f"{stormed - began:.0f} s, {calmed - stormed:.0f} s with {calm.leaps} leaps",
            "requests": f"{len(net.record)}, of them in the storm {requests}",
            "by status": _counted(net.record.statuses()),
            "Chapters published": world.chapters,
        }
        outcome.figures |= _row_figures(connection)
        _judge_origin(connection, net, world, events, outcome)
    audit = crew.ask("audit")
    outcome.figures["lanes audit"] = f"exit {audit.returncode}: {' '.join(audit.stdout.split())}"
    if audit.returncode != 0:
        outcome.faults.append(f"lanes audit: {audit.stdout}{audit.stderr}")
    crew.postgres.finish()
    outcome.figures["events"] = _counted(events.counts)
    outcome.faults += [*events.faults, *_logged(crew)]


@contextmanager
def _connected(crew: Crew) -> Iterator[psycopg.Connection[Any]]:
    """To Postgres, once it is up again."""

    def connect() -> psycopg.Connection[Any] | None:
        crew.mind()
        with suppress(psycopg.OperationalError):
            return psycopg.connect(crew.url, autocommit=True)
        return None

    with until(connect, crew.postgres.tail, 60) as connection:
        yield connection


def _judge_origin(
    connection: psycopg.Connection[Any], net: Smallnet, world: World, events: Events, outcome: Outcome
) -> None:
    rows = [Row(*row) for row in connection.execute(ROWS).fetchall()]
    hosts, lost = laid_side_by_side(net.record.visits, rows, events)
    verdict = origin.judged(hosts, world.told, world.crawl_delays, events)
    delays = sorted(verdict.delays)
    outcome.faults += verdict.offences
    outcome.figures |= {
        "the origin judged": _counted(verdict.counts),
        "sent, and never seen by a host": lost,
        "delivery, ms": ", ".join(
            f"{name} {1000 * delays[min(len(delays) - 1, int(share * len(delays)))]:.1f}"
            for name, share in (("least", 0.0), ("median", 0.5), ("99 %", 0.99), ("99.9 %", 0.999), ("most", 1.0))
        ),
        "most that delivery brought a pair nearer": f"{1000 * verdict.worst_swallowed:.0f} ms",
    }


def _row_figures(connection: psycopg.Connection[Any]) -> dict[str, object]:
    def counted(question: str) -> str:
        return _counted(Counter(dict(connection.execute(question.encode()).fetchall())))

    return {
        "rows by outcome": counted("SELECT outcome, count(*) FROM lanes.polls GROUP BY 1"),
        "too late": counted("SELECT outcome, count(*) FROM lanes.polls WHERE detail LIKE '%%too late' GROUP BY 1"),
        "Chapters": counted(
            "SELECT CASE WHEN announced THEN 'announced' ELSE 'first sight' END, count(*) FROM lanes.chapters GROUP BY 1"
        ),
        "Notices": counted("SELECT kind, count(*) FROM lanes.notices GROUP BY 1"),
        "incidents": counted("SELECT whose, count(*) FROM lanes.incidents GROUP BY 1"),
    }


def _logged(crew: Crew) -> list[str]:
    """Bugs and what Postgres found wrong."""
    found = []
    for member in crew.members:
        lines = member.said.splitlines()
        for number, line in enumerate(lines):
            if line.startswith("Traceback") or "PANIC:" in line or "deadlock detected" in line:
                found.append(f"{member.name} said:\n" + "\n".join(lines[max(0, number - 3) : number + 25]))
    return found[:5]


def _counted(counts: Counter[Any]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))


def _keep(log: Path, events: Path) -> None:
    if log.exists():
        shutil.copy(log, events.with_name(f"{events.stem}.{log.name}"))
