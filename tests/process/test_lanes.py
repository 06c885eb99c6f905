"""The process `lanes lane feeds`: how it starts, waits, is killed and ends."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import psycopg
import pytest
from psycopg import sql

from lanes.store import schema
from tests.fix_lane import Owner
from tests.process.fix_supervisor import NUMBER, ROOT, Start, free_metrics_base, lanes_environ, start
from tests.smallnet import Host, Smallnet, drip
from tests.waiting import until

__all__ = ["start"]

SLACK = 0.05
"""Seconds by which the scheduling of two processes may move an arrival."""


def feeds_of(host: Host, owner: Owner, count: int) -> list[str]:
    """Series of one host, all new and due at once."""
    for n in range(count):
        host.feed(f"/feed{n}", ["One", "Two"])
    return [owner.follow(host.url(f"/feed{n}")) for n in range(count)]


def health(base: int) -> dict[str, Any] | None:
    """What /health says, None where nobody listens."""
    try:
        with build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{base + NUMBER}/health", timeout=5) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except OSError:
        return None


def said(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """A `lanes` command run to its end."""
    return subprocess.run(
        [sys.executable, "-m", "lanes", *words],
        cwd=ROOT,
        env=lanes_environ(**environ),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_kill_in_mid_fetch_leaves_the_stamp_and_the_series_due_when_the_lease_ends(
    net: Smallnet, owner: Owner, start: Start
) -> None:
    """CASES H1."""
    host = net.host("127.1.0.5")
    (key,) = feeds_of(host, owner, 1)
    hold = host.hold("/feed0")
    lane = start("lane", "feeds", LANES_DATABASE_URL=owner.url)
    assert hold.arrived.wait(30), lane.said
    lane.kill()
    hold.release()
    row = owner.series(key)
    assert row.latest_checked_at > row.added_at
    assert row.lease_until - row.latest_checked_at == timedelta(seconds=90)
    assert owner.chapters(key) == []
    again = start("lane", "feeds", LANES_DATABASE_URL=owner.url)
    again.says("the Lane starts")
    other = feeds_of(net.host("127.1.0.6"), owner, 1)[0]
    owner.wait_for("SELECT FROM lanes.series WHERE key = %s AND good_at IS NOT NULL", other)
    assert len(net.record.of(host)) == 1
    owner.tell("UPDATE lanes.clock SET test_offset = test_offset + '91 seconds'")
    owner.wait_for("SELECT FROM lanes.series WHERE key = %s AND good_at IS NOT NULL", key)
    assert owner.outcomes(key) == ["abandoned", "new"]
    assert len(owner.chapters(key)) == 2
    assert owner.series(key).abandoned == 0
    first, second = owner.polls(key)
    assert second.sent_at - first.claimed_at >= timedelta(seconds=90)


def test_a_lane_that_is_killed_all_the_time_asks_no_host_faster_than_its_interval(
    net: Smallnet, owner: Owner, start: Start
) -> None:
    """CASES B12.  Killed as soon as anything arrives, or as soon as anything was answered, whichever comes first or second."""
    hosts = net.many(3)
    for host in hosts:
        feeds_of(host, owner, 10)
    for generation in range(8):
        seen, ended = len(net.record), len(net.record.finished)
        lane = start("lane", "feeds", LANES_DATABASE_URL=owner.url)
        if generation % 2:
            net.wait_until(lambda record, ended=ended: len(record.finished) > ended, 30)  # type: ignore[misc]
        else:
            net.wait_until(lambda record, seen=seen: len(record) > seen, 30)  # type: ignore[misc]
        lane.kill()
        # What a dead worker holds is free when its lease ends; that time passes, the hosts' own interval does not.
        owner.tell("UPDATE lanes.series SET lease_until = lanes.now() WHERE lease_until IS NOT NULL")
        owner.tell(
            "UPDATE lanes.hosts SET busy_until = lanes.now(), ready_at = lanes.now() WHERE busy_token IS NOT NULL"
        )
    assert not net.record.spacing_offences(1.0, slack=SLACK)
    assert max(len(net.record.of(host)) for host in hosts) > 2


def test_two_lanes_poll_each_series_once_a_round_and_share_one_pace(net: Smallnet, owner: Owner, start: Start) -> None:
    crowded, *others = net.many(13)
    keys = feeds_of(crowded, owner, 3) + [key for host in others for key in feeds_of(host, owner, 1)]
    for machine in ("one", "two"):
        start("lane", "feeds", LANES_DATABASE_URL=owner.url, LANES_MACHINE=machine).says("the Lane starts")
    owner.wait_for("SELECT WHERE NOT EXISTS (SELECT FROM lanes.series WHERE good_at IS NULL)")
    assert [owner.outcomes(key) for key in keys] == [["new"]] * len(keys)
    assert not net.record.spacing_offences(1.0, slack=SLACK)
    second_round = time.monotonic()  # moved time lets no real time pass between the rounds
    owner.tell("UPDATE lanes.clock SET test_offset = test_offset + '4 minutes'")
    owner.wait_for("SELECT WHERE (SELECT count(*) FROM lanes.polls WHERE outcome = 'unchanged') >= %s", len(keys))
    assert [owner.outcomes(key) for key in keys] == [["new", "unchanged"]] * len(keys)
    assert not net.record.spacing_offences(1.0, slack=SLACK, since=second_round)
    assert not net.record.overlaps()
    audited = said("audit", LANES_DATABASE_URL=owner.url)
    assert audited.returncode == 0, audited.stdout + audited.stderr


def test_sigterm_lets_a_fetch_in_hand_finish_claims_nothing_more_and_exits_0(
    net: Smallnet, owner: Owner, start: Start
) -> None:
    host = net.host("127.1.0.5")
    key, late = feeds_of(host, owner, 2)
    hold = host.hold("*")
    lane = start("lane", "feeds", LANES_DATABASE_URL=owner.url)
    assert hold.arrived.wait(30), lane.said
    lane.process.send_signal(signal.SIGTERM)
    hold.release()
    assert lane.ends(None) == 0
    lane.says("the Lane ends")
    assert sorted(owner.outcomes(key) + owner.outcomes(late)) == ["new"]
    assert owner.all("SELECT FROM lanes.series WHERE lease_token IS NOT NULL") == []


def test_sigterm_puts_a_fetch_back_that_does_not_end_and_exits_0_in_time(
    net: Smallnet, owner: Owner, start: Start
) -> None:
    host = net.host("127.1.0.5")
    (key,) = feeds_of(host, owner, 1)
    host.script("/feed0", drip("<rss>" + " " * 1_000, every=2))
    lane = start("lane", "feeds", LANES_DATABASE_URL=owner.url)
    net.wait_for_visits(1, host, timeout=30)
    assert lane.ends() == 0
    row = owner.series(key)
    assert owner.outcomes(key) == ["put back"]
    assert (row.lease_token, row.failures, owner.host("127.1.0.5").busy_token) == (None, 0, None)


def test_a_taken_metrics_port_costs_the_metrics_alone_until_it_is_free(
    net: Smallnet, owner: Owner, start: Start
) -> None:
    base = free_metrics_base()
    with socket.create_server(("127.0.0.1", base + NUMBER)):
        lane = start("lane", "feeds", LANES_DATABASE_URL=owner.url, LANES_METRICS_PORT=str(base))
        lane.says("the port of the metrics is taken")
        (key,) = feeds_of(net.host("127.1.0.5"), owner, 1)
        owner.wait_for("SELECT FROM lanes.series WHERE key = %s AND good_at IS NOT NULL", key)
    lane.says("the port of the metrics became free")
    found = until(lambda: health(base), lambda: lane.said)
    assert found["ok"] is True
    assert found["site"] == "feeds"


def test_a_lane_waits_for_a_database_that_is_not_there_and_for_its_schema(
    net: Smallnet, postgres_server: str, start: Start
) -> None:
    parts = urlsplit(postgres_server)
    name = f"lanes_test_late_{net.port}"
    url = f"{parts.scheme}://{parts.netloc}/{name}" + (f"?{parts.query}" if parts.query else "")
    lane = start("lane", "feeds", LANES_DATABASE_URL=url)
    lane.says("Postgres does not answer")
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        lane.says("The database is not ready")
        schema.migrate(url)
        with closing(Owner(url)) as owner:
            (key,) = feeds_of(net.host("127.1.0.5"), owner, 1)
            owner.wait_for("SELECT FROM lanes.series WHERE key = %s AND good_at IS NOT NULL", key)
        assert lane.ends() == 0
    finally:
        lane.kill()
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LANES_CONTACT", ""),
        ("LANES_FETCH_SLOTS", "many"),
        ("LANES_HOST_INTERVAL", "0.1"),
        ("LATEST_CHAPTER_POLL_STAGGER", "20s"),
    ],
)
def test_wrong_settings_end_the_process_at_once_by_name(database_url: str, name: str, value: str) -> None:
    """CASES B17, its second half."""
    ended = said("lane", "feeds", **{"LANES_DATABASE_URL": database_url, name: value})
    assert ended.returncode not in (0, None)
    assert name in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("switch", ["LANES_POLL_ENABLED", "LATEST_CHAPTER_POLL_ENABLED"])
def test_the_kill_switch_stops_all_polling_and_why_says_so(
    net: Smallnet, owner: Owner, start: Start, switch: str
) -> None:
    """CASES B17."""
    environ = {"LANES_DATABASE_URL": owner.url, switch: "false"}
    lane = start("lane", "feeds", **environ)
    lane.says("polling is switched off")
    (key,) = feeds_of(net.host("127.1.0.5"), owner, 1)
    owner.check_now(key)
    why = said("why", key, **environ)
    assert "switched off" in why.stdout, why.stdout + why.stderr
    assert lane.ends() == 0
    assert len(net.record) == 0
    assert owner.polls(key) == []
