"""A whole installation under supervisord with the embedded Postgres: what one program's end costs the others."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from tests.fix_lane import Owner
from tests.process.fix_supervisor import Supervised, supervised
from tests.smallnet import Smallnet
from tests.waiting import until

__all__ = ["supervised"]

GOOD = "SELECT FROM lanes.series WHERE key = %s AND good_at IS NOT NULL"


@pytest.fixture
def owner(supervised: Supervised) -> Iterator[Owner]:
    """The owner of the supervised installation; what earlier tests followed is nobody's any more."""
    with closing(Owner(supervised.database_url)) as owner:
        for row in owner.all("SELECT key FROM lanes.series WHERE bookmarks > 0"):
            owner.unbookmark(row.key)
        yield owner


def test_restarting_one_program_leaves_every_other_pid_alone(
    net: Smallnet, supervised: Supervised, owner: Owner
) -> None:
    before = {name: pid for name, (_, pid) in supervised.states().items()}
    supervised.ctl("restart", "lane-feeds")
    supervised.pid("lane-feeds")
    after = {name: pid for name, (_, pid) in supervised.states().items()}
    assert {name for name in before if before[name] != after[name]} == {"lane-feeds"}
    host = net.host("127.1.0.5")
    host.feed("/restarted", ["One"])
    owner.wait_for(GOOD, owner.follow(host.url("/restarted")))


def test_a_lane_that_is_killed_is_started_again_and_shares_the_earlier_pace(
    net: Smallnet, supervised: Supervised, owner: Owner
) -> None:
    """CASES H1, under supervisord."""
    host = net.host("127.1.0.6")
    for n in range(3):
        host.feed(f"/killed{n}", ["One"])
    keys = [owner.follow(host.url(f"/killed{n}")) for n in range(3)]
    postgres, lane = supervised.pid("postgres"), supervised.pid("lane-feeds")
    net.wait_for_visits(1, host)
    os.kill(lane, signal.SIGKILL)
    until(lambda: supervised.pid("lane-feeds") != lane, supervised.told)
    owner.tell("UPDATE lanes.clock SET test_offset = test_offset + '91 seconds'")
    moved = time.monotonic()  # moved time lets no real time pass
    for key in keys:
        owner.wait_for(GOOD, key)
    assert supervised.pid("postgres") == postgres
    assert not net.record.spacing_offences(1.0, host, slack=0.05, since=moved)


def test_postgres_stopped_and_started_leaves_the_lane_its_pid_and_nothing_is_lost_or_stored_twice(
    net: Smallnet, supervised: Supervised, owner: Owner
) -> None:
    """CASES H3, its first half: one fetch is in hand while the server is away."""
    host, other = net.host("127.1.0.7"), net.host("127.1.0.8")
    host.feed("/stopped", ["One", "Two", "Three"])
    other.feed("/after", ["One"])
    lane = supervised.pid("lane-feeds")
    hold = host.hold("/stopped")
    key = owner.follow(host.url("/stopped"))
    assert hold.arrived.wait(30), supervised.told()
    seen = len(supervised.log("lane-feeds"))
    supervised.ctl("stop", "postgres")
    hold.release()
    supervised.says("lane-feeds", "a finished Poll waits to be written", after=seen)
    supervised.ctl("start", "postgres")
    with closing(until(lambda: connected(supervised), supervised.told)) as again:
        again.wait_for(GOOD, key)
        assert again.outcomes(key) == ["new"]
        assert again.titles(key) == ["One", "Three", "Two"]
        again.wait_for(GOOD, again.follow(other.url("/after")))
    assert supervised.pid("lane-feeds") == lane
    assert len(net.record.of(host)) == 1


def test_every_connection_terminated_at_once_is_survived(net: Smallnet, supervised: Supervised, owner: Owner) -> None:
    """CASES H3."""
    host = net.host("127.1.0.9")
    lane = supervised.pid("lane-feeds")
    for n in range(3):
        host.feed(f"/cut{n}", ["One"])
        with host.hold(f"/cut{n}") as hold:
            key = owner.follow(host.url(f"/cut{n}"))
            assert hold.arrived.wait(30), supervised.told()
            owner.tell(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'lane-feeds%%'"
            )
        owner.wait_for(GOOD, key)
        assert (owner.outcomes(key), len(owner.chapters(key))) == (["new"], 1)
    assert supervised.pid("lane-feeds") == lane
    assert not net.record.spacing_offences(1.0, host, slack=0.05)


def connected(supervised: Supervised) -> Owner | None:
    """The owner, where the server answers."""
    try:
        return Owner(supervised.database_url)
    except psycopg.OperationalError:
        return None
