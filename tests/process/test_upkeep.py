"""The process `lanes upkeep`: one at a time, outliving what fails around it, its duties isolated from each other."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import psycopg
import pytest
from prometheus_client import generate_latest
from psycopg import sql

from lanes.settings import process_numbers
from lanes.store import schema
from lanes.store.pool import Database
from lanes.store.turn import Turn
from lanes.store.upkeep import UpkeepStore
from lanes.upkeep import DUTIES, MINUTE, Duty, Upkeep
from lanes.upkeep.metrics import UpkeepMetrics
from tests.fix_lane import Owner
from tests.process.fix_supervisor import Start, free_metrics_base, start
from tests.waiting import until

__all__ = ["start"]

STALE_INCIDENT = (
    "INSERT INTO lanes.incidents (whose, site, started_at, ended_at) "
    "VALUES ('refusal', 'feeds', lanes.now() - '500 days'::interval, lanes.now() - '400 days'::interval)"
)


@pytest.fixture
def rows(database_url: str) -> Iterator[Owner]:
    with closing(Owner(database_url)) as owner:
        owner.tell("INSERT INTO lanes.lanes (site) VALUES ('feeds')")
        yield owner


def health(base: int) -> dict[str, Any]:
    """What /health says; empty where nobody listens."""
    try:
        with build_opener(ProxyHandler({})).open(
            f"http://127.0.0.1:{base + process_numbers()['upkeep']}/health"
        ) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except OSError:
        return {}


def test_a_second_upkeep_stands_by_and_takes_over_when_the_first_is_killed(rows: Owner, start: Start) -> None:
    first = start("upkeep", LANES_DATABASE_URL=rows.url)
    first.says("this upkeep is at work")
    base = free_metrics_base()
    second = start("upkeep", LANES_DATABASE_URL=rows.url, LANES_METRICS_PORT=str(base))
    second.says("another upkeep is at work, this one stands by")
    assert "this upkeep is at work" not in second.said
    assert until(lambda: health(base), lambda: second.said)["state"] == "standing by: another upkeep is at work"
    rows.tell(STALE_INCIDENT)
    assert rows.one("SELECT count(*) AS n FROM lanes.incidents").n == 1
    first.kill()
    second.says("this upkeep is at work")
    rows.wait_for("SELECT WHERE NOT EXISTS (SELECT FROM lanes.incidents)")
    found = until(lambda: health(base).get("state") == "at work" and health(base), lambda: second.said)
    assert (found["ok"], found["process"]) == (True, "upkeep")
    assert second.ends() == 0
    second.says("upkeep ends")


def test_upkeep_waits_for_a_database_that_is_not_there_and_for_its_schema(postgres_server: str, start: Start) -> None:
    parts = urlsplit(postgres_server)
    name = f"lanes_test_late_{socket.gethostname()}_{free_metrics_base()}".lower()
    url = f"{parts.scheme}://{parts.netloc}/{name}" + (f"?{parts.query}" if parts.query else "")
    upkeep = start("upkeep", LANES_DATABASE_URL=url)
    upkeep.says("Postgres does not answer")
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        upkeep.says("The database is not ready")
        schema.migrate(url)
        upkeep.says("this upkeep is at work")
        assert upkeep.ends() == 0
    finally:
        upkeep.kill()
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def test_an_upkeep_whose_session_is_ended_has_lost_its_turn(rows: Owner, start: Start) -> None:
    base = free_metrics_base()
    upkeep = start("upkeep", LANES_DATABASE_URL=rows.url, LANES_METRICS_PORT=str(base))
    until(lambda: health(base).get("last_pass"), lambda: upkeep.said)  # its round is over, it sleeps
    ended = rows.all(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND starts_with(application_name, 'upkeep')"
    )
    assert ended
    second = start("upkeep", LANES_DATABASE_URL=rows.url)
    second.says("this upkeep is at work")
    assert upkeep.ends() == second.ends() == 0


def broken(store: UpkeepStore) -> Iterator[int]:
    yield 1
    raise ZeroDivisionError


def locked_out(store: UpkeepStore) -> Iterator[int]:
    with store._database.connection() as connection:
        connection.execute("SET lock_timeout = '10ms'")
        connection.execute("UPDATE lanes.lanes SET seen_at = lanes.now()")
    yield 1


def sample(metrics: UpkeepMetrics, name: str, duty: str) -> float | None:
    return metrics.registry.get_sample_value(f"lanes_upkeep_{name}", {"duty": duty})


@contextmanager
def a_turn(url: str) -> Iterator[Turn]:
    turn = Turn(url, "upkeep")
    try:
        yield turn
    finally:
        turn.leave()


def test_a_duty_that_fails_costs_that_duty_alone(rows: Owner, database: Database) -> None:
    duties = (
        Duty("broken", MINUTE, broken), Duty("locked-out", MINUTE, locked_out), Duty("sound", MINUTE, lambda _: iter([2, 3])),
    )  # fmt: skip
    metrics = UpkeepMetrics(duty.name for duty in duties)
    with a_turn(rows.url) as turn:
        assert turn.take()
        upkeep = Upkeep(UpkeepStore(database), turn, metrics, duties)
        with psycopg.connect(rows.url) as other:
            other.execute("SELECT FROM lanes.lanes FOR UPDATE")
            assert upkeep.run_once() == 1
    assert [sample(metrics, "failures_total", duty.name) for duty in duties] == [1, 1, 0]
    assert [sample(metrics, "runs_total", duty.name) for duty in duties] == [1, 1, 1]
    assert sample(metrics, "done_total", "sound") == 5


def test_a_duty_is_done_at_its_time_and_not_at_every_round(rows: Owner, database: Database) -> None:
    metrics = UpkeepMetrics(["often", "seldom"])
    duties = (Duty("often", 0, lambda _: iter([1])), Duty("seldom", 10 * MINUTE, lambda _: iter([1])))
    with a_turn(rows.url) as turn:
        upkeep = Upkeep(UpkeepStore(database), turn, metrics, duties)
        assert [upkeep.run_once() for _ in range(3)] == [2, 1, 1]


def test_one_session_at_a_time_has_the_turn_and_the_next_gets_it_when_that_ends(rows: Owner) -> None:
    with a_turn(rows.url) as first, a_turn(rows.url) as second:
        assert (first.take(), second.take(), first.take()) == (True, False, True)
        first.leave()
        until(second.take, lambda: "the turn was not free")
        assert not first.take()


def test_what_is_owed_is_told_to_whoever_watches(rows: Owner, database: Database) -> None:
    rows.tell("SELECT lanes.tell_owner('incident', 'incident:1', '{}')")
    rows.tell("UPDATE lanes.clock SET test_offset = '1 hour'")
    metrics = UpkeepMetrics(duty.name for duty in DUTIES)
    with a_turn(rows.url) as turn:
        assert Upkeep(UpkeepStore(database), turn, metrics).run_once() == len(DUTIES)
    assert metrics.registry.get_sample_value("lanes_notices_owed") == 1
    oldest = metrics.registry.get_sample_value("lanes_notices_oldest_seconds")
    assert oldest is not None
    assert 3600 <= oldest < 3700


def test_every_duty_has_its_series_from_the_start() -> None:
    metrics = UpkeepMetrics(duty.name for duty in DUTIES)
    for duty in DUTIES:
        for name in ("runs_total", "failures_total", "done_total"):
            assert sample(metrics, name, duty.name) == 0
        assert sample(metrics, "seconds_since_success", duty.name) is not None
    assert b"_created" not in generate_latest(metrics.registry)
