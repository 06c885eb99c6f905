"""The line of one machine goes down and comes back: nobody is blamed for it, and nobody told (DESIGN 4.4, Us)."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest

from lanes.errors import DatabaseAway, DatabaseBusy
from lanes.store.line import LineStore
from lanes.store.polls import PollStore, Turn
from tests.fix_lane import IMPATIENT, LaneAtWork, MakeLane, Row
from tests.smallnet import Smallnet
from tests.smallnet.resolver import Resolver
from tests.smallnet.steps import never, status

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def named(net: Smallnet, lane: LaneAtWork, count: int, *, first: int = 5) -> list[str]:
    """Series on hosts of names of their own, each read once."""
    keys = []
    for n in range(first, first + count):
        host = net.host(f"127.1.0.{n}", f"host{n}.test")
        host.feed("/feed", ["One"])
        keys.append(lane.follow(host.url("/feed")))
    for key in keys:
        if not lane.polls(key):
            lane.poll(key)
    return keys


def cut_off(net: Smallnet, resolver: Resolver | None = None) -> None:
    """No name resolves any more, and no connection that was kept lives on."""
    (resolver or net.resolver).fail(socket.EAI_AGAIN)
    for host in net.hosts:
        host.hang_up()


def pass_when_open(lane: LaneAtWork, keys: Iterable[str]) -> int:
    """A Pass at an instant when every Series is due."""
    lane.move_to(max(lane.open_at(key) for key in keys))
    return lane.run_once()


def incidents(lane: LaneAtWork) -> list[Row]:
    return lane.all("SELECT * FROM lanes.incidents ORDER BY id")


def us_since(lane: LaneAtWork, machine: str = "machine-1") -> object:
    rows = lane.all("SELECT us_since FROM lanes.machines WHERE machine = %s", machine)
    return rows[0].us_since if rows else None


def assert_nobody_is_blamed(lane: LaneAtWork, keys: Iterable[str]) -> None:
    rows = [lane.series(key) for key in keys]
    assert [(row.failures, row.failure, row.failure_kind, row.retired_at) for row in rows] == [
        (0, None, None, None) for _ in rows
    ]
    hosts = lane.all("SELECT name, pace, backoffs, dead_since FROM lanes.hosts WHERE name LIKE 'host%%' ORDER BY id")
    assert {(row.pace, row.backoffs, row.dead_since) for row in hosts} == {(timedelta(seconds=1), 0, None)}, hosts
    assert lane.all("SELECT * FROM lanes.notices WHERE series_id IS NOT NULL AND kind <> 'new chapters'") == []


def test_a_resolver_that_is_away_for_three_rounds_is_our_own_line(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES A1."""
    keys = named(net, lane, 5)
    cut_off(net)
    for _ in range(3):
        pass_when_open(lane, keys)
        assert us_since(lane) is not None
        assert_nobody_is_blamed(lane, keys)
    net.resolver.heal()
    lane.move_to(lane.now() + 2 * MINUTE)
    assert lane.run_once() >= 1
    assert us_since(lane) is None
    pass_when_open(lane, keys)
    assert {lane.outcomes(key)[-1] for key in keys} == {"unchanged"}
    assert_nobody_is_blamed(lane, keys)
    (incident,) = incidents(lane)
    assert (incident.whose, incident.machine) == ("us", "machine-1")
    assert incident.started_at < incident.ended_at
    assert incident.spared >= 2
    assert len(incident.evidence["hosts"]) >= 2
    kinds = [row.kind for row in lane.all("SELECT kind FROM lanes.notices WHERE reader_id IS NULL ORDER BY id")]
    assert kinds == ["incident", "incident over"]


def test_while_it_is_us_one_poll_a_minute_looks_whether_the_line_is_back(net: Smallnet, lane: LaneAtWork) -> None:
    keys = named(net, lane, 5)
    cut_off(net)
    pass_when_open(lane, keys)
    assert us_since(lane) is not None
    probes = []
    lane.move_to(lane.now() + 5 * MINUTE)
    for _ in range(6):
        before = len(lane.polls())
        assert lane.run_once() == 1
        assert lane.run_once() == 0
        (probe,) = lane.polls()[before:]
        probes.append((probe.outcome, probe.detail, probe.proof))
        lane.move_to(lane.now() + timedelta(seconds=61))
    assert probes == [("put back", "our own line is down", False)] * 6
    assert len({row.key for row in lane.polls()[-6:]}) > 1


def test_hosts_that_are_unreachable_right_after_the_clock_jumped_are_not_to_blame(
    net: Smallnet, make_lane: MakeLane
) -> None:
    """CASES A2."""
    lane = make_lane(limits=IMPATIENT)
    keys = named(net, lane, 3)
    for n in (5, 6, 7):
        net.host(f"127.1.0.{n}", f"host{n}.test").black_hole()
    lane.move_to(lane.now() + 8 * HOUR)
    lane.run_once()
    assert us_since(lane) is not None
    assert_nobody_is_blamed(lane, keys)
    for n in (5, 6, 7):
        net.host(f"127.1.0.{n}", f"host{n}.test").up()
    lane.move_to(lane.now() + 2 * MINUTE)
    lane.run_once()
    pass_when_open(lane, keys)
    assert {lane.outcomes(key)[-1] for key in keys} == {"unchanged"}
    assert [(row.whose, row.ended_at is not None) for row in incidents(lane)] == [("us", True)]


def test_after_a_clock_jump_two_silent_hosts_are_enough(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES A2, where nobody else is left to ask or to fail."""
    keys = named(net, lane, 2)
    cut_off(net)
    lane.move_to(lane.now() + 8 * HOUR)
    lane.run_once()
    assert us_since(lane) is not None
    assert_nobody_is_blamed(lane, keys)


def test_dead_hosts_among_others_are_asked_about_and_blamed_for_themselves(net: Smallnet, lane: LaneAtWork) -> None:
    keys = named(net, lane, 6)
    dead, healthy = keys[:3], keys[3:]
    for n in (5, 6, 7):
        net.resolver.fail(socket.EAI_AGAIN, f"host{n}.test")
        net.host(f"127.1.0.{n}", f"host{n}.test").hang_up()
    lane.tell("UPDATE lanes.series SET next_check_at = lanes.now() + '1 hour' WHERE key = ANY (%s)", dead)
    pass_when_open(lane, healthy)
    before = len(lane.polls())
    lane.tell("UPDATE lanes.series SET next_check_at = lanes.now() WHERE key = ANY (%s)", dead)
    lane.tell(
        "UPDATE lanes.hosts SET ready_at = lanes.now() WHERE name = ANY (%s)", [f"host{n}.test" for n in (5, 6, 7)]
    )
    lane.run_once()
    lane.move_to(lane.now() + timedelta(seconds=2))
    lane.run_once()
    polls = lane.polls()[before:]
    assert sorted(row.key for row in polls if row.key in dead) == dead
    assert [(row.outcome, row.trigger) for row in polls if row.key in healthy] == [("unchanged", "put back")]
    assert {lane.series(key).failures for key in dead} == {1}
    assert (us_since(lane), incidents(lane)) == (None, [])


def test_one_of_two_machines_is_cut_off_for_four_days(net: Smallnet, make_lane: MakeLane) -> None:
    """CASES A12."""
    cut = Resolver()
    lane, other = make_lane(), make_lane("machine-2", resolver=cut)
    for n in range(5, 11):
        cut.set(f"host{n}.test", f"127.1.0.{n}")
    keys = named(net, lane, 6)
    lane.move_to(max(lane.open_at(key) for key in keys))
    assert other.run_once() == 6
    cut_off(net, cut)
    good = []
    for _ in range(16):
        lane.move_to(lane.now() + 6 * HOUR)
        other.run_once()
        lane.move_to(lane.now() + 2 * MINUTE)
        lane.run_once()
        good.append(len([row for row in lane.polls() if row.machine == "machine-1" and row.outcome == "unchanged"]))
        assert_nobody_is_blamed(lane, keys)
    assert good == sorted(set(good)), "the other goes on"
    assert us_since(lane, "machine-2") is not None
    assert us_since(lane) is None
    assert [(row.whose, row.machine) for row in incidents(lane)] == [("us", "machine-2")]


def test_three_hosts_are_unreachable_for_four_days_because_our_line_is_down(net: Smallnet, make_lane: MakeLane) -> None:
    """CASES A14."""
    lane = make_lane()
    keys = named(net, lane, 3)
    cut_off(net)
    pass_when_open(lane, keys)
    for _ in range(16):
        lane.move_to(lane.now() + 6 * HOUR)
        lane.run_once()
        assert us_since(lane) is not None
        assert_nobody_is_blamed(lane, keys)
    net.resolver.heal()
    lane.move_to(lane.now() + 2 * MINUTE)
    lane.run_once()
    pass_when_open(lane, keys)
    assert {lane.outcomes(key)[-1] for key in keys} == {"unchanged"}
    (incident,) = incidents(lane)
    assert incident.ended_at - incident.started_at > 4 * DAY


def test_several_series_of_a_host_that_fail_with_our_line_are_no_incident_of_their_site(
    net: Smallnet, lane: LaneAtWork
) -> None:
    """CASES A1: one incident "us"."""
    keys = named(net, lane, 2)
    host = net.host("127.1.0.5", "host5.test")
    for path in ("/b", "/c", "/d"):
        host.feed(path, ["One"])
        keys.append(lane.follow(host.url(path)))
        lane.poll(keys[-1])
    cut_off(net)
    for _ in range(4):
        pass_when_open(lane, keys)
    assert [row.whose for row in incidents(lane)] == ["us"]
    assert_nobody_is_blamed(lane, keys)
    assert [row.failing for row in lane.all("SELECT failing FROM lanes.hosts WHERE failing IS NOT NULL")] == []


def test_the_only_host_followed_is_blamed_after_a_day(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES A10, until its charges count."""
    (key,) = named(net, lane, 1)
    cut_off(net)
    for _ in range(3):
        pass_when_open(lane, [key])
    assert us_since(lane) is not None
    assert_nobody_is_blamed(lane, [key])
    lane.move_to(lane.now() + 25 * HOUR)
    lane.run_once()
    assert us_since(lane) is None
    for n in range(1, 6):
        pass_when_open(lane, [key])
        assert lane.series(key).failures == n
    assert [(row.whose, row.ended_at is None) for row in incidents(lane)] == [("us", False)]
    net.resolver.heal()
    lane.poll(key)
    assert lane.series(key).failures == 0


def test_a_single_host_that_is_silent_every_other_time_is_nobodys_news(net: Smallnet, make_lane: MakeLane) -> None:
    """CASES A5."""
    lane = make_lane(limits=IMPATIENT)
    (key,) = named(net, lane, 1)
    host = net.host("127.1.0.5", "host5.test")
    for n in range(8):
        if n % 2 == 0:
            host.black_hole() if n % 4 == 0 else host.script("/feed", [never()])
        else:
            host.up()
            host.unscript("/feed")
        lane.poll(key)
    assert lane.outcomes(key) == ["new", *["failed", "unchanged"] * 4]
    assert incidents(lane) == []
    assert lane.all("SELECT * FROM lanes.notices WHERE kind <> 'new chapters'") == []


def test_an_answer_that_says_no_proves_the_line(net: Smallnet, lane: LaneAtWork) -> None:
    keys = named(net, lane, 3)
    for n in (5, 6, 7):
        net.host(f"127.1.0.{n}", f"host{n}.test").script("/feed", [status(404)])
    pass_when_open(lane, keys)
    assert {lane.series(key).failures for key in keys} == {1}
    assert lane.all("SELECT * FROM lanes.machines WHERE us_since IS NOT NULL OR asked_at IS NOT NULL") == []


def test_a_clock_that_goes_back_while_it_is_us_silences_nobody(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES A13."""
    lane.move_to(lane.now() + 8 * HOUR)
    keys = named(net, lane, 3)
    cut_off(net)
    pass_when_open(lane, keys)
    assert us_since(lane) is not None
    lane.tell("SELECT lanes.see_clock()")
    lane.tell("UPDATE lanes.clock SET test_offset = test_offset - interval '8 hours'")
    before = len(lane.polls())
    lane.run_once()
    lane.move_to(lane.now() + 3 * MINUTE)
    lane.run_once()
    assert len(lane.polls()) > before, "the probes go on"
    assert_nobody_is_blamed(lane, keys)
    net.resolver.heal()
    lane.move_to(lane.now() + 2 * MINUTE)
    lane.run_once()
    pass_when_open(lane, keys)
    assert us_since(lane) is None
    assert {lane.series(key).good_at > lane.now() - HOUR for key in keys} == {True}
    assert [(row.whose, row.ended_at is None) for row in incidents(lane)] == [("us", False)]


def test_a_database_that_was_away_puts_the_line_in_doubt(net: Smallnet, lane: LaneAtWork) -> None:
    named(net, lane, 1)
    with lane.running():
        lane.wait_for("SELECT 1 FROM lanes.lanes WHERE seen_at IS NOT NULL")
        ended = lane.all(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name ~ '^machine-1'"
        )
        assert ended
        lane.wait_for("SELECT 1 FROM lanes.machines WHERE machine = 'machine-1' AND shaken_at IS NOT NULL")


def test_a_poll_is_carried_out_where_its_leap_of_the_clock_cannot_be_noted(
    net: Smallnet, lane: LaneAtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One"])
    key = lane.follow(host.url("/feed"))
    lane.run_once()

    def shaken(_: LineStore, at: datetime | None = None) -> None:
        raise DatabaseAway("gone")

    monkeypatch.setattr(LineStore, "shaken", shaken)
    lane.move_to(lane.open_at(key) + timedelta(hours=2))
    with pytest.raises(DatabaseAway):
        lane.run_once()
    assert lane.lane.finish(20)
    assert lane.outcomes(key) == ["new", "unchanged"]


@pytest.mark.parametrize(("trouble", "noted"), [(DatabaseBusy, False), (DatabaseAway, True)])
def test_only_a_database_that_was_away_makes_our_own_line_doubtful(
    net: Smallnet, lane: LaneAtWork, monkeypatch: pytest.MonkeyPatch, trouble: type[DatabaseAway], noted: bool
) -> None:
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One"])
    key = lane.follow(host.url("/feed"))
    claim, troubles = PollStore.claim, iter([trouble("for once")])

    def once_in_trouble(store: PollStore, lease: timedelta, rest: timedelta | None, after: datetime | None) -> Turn:
        for each in troubles:
            raise each
        return claim(store, lease, rest, after)

    monkeypatch.setattr(PollStore, "claim", once_in_trouble)
    with lane.running():
        lane.wait_for("SELECT FROM lanes.series WHERE key = %s AND good_at IS NOT NULL", key)
    assert (lane.one("SELECT shaken_at FROM lanes.machines").shaken_at is not None) is noted


def test_a_clock_that_leapt_ahead_for_seconds_and_came_back_silences_nobody(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES A13: what was stamped in between is shifted although no minute passed."""
    hosts = net.many(3)
    for host in hosts:
        host.feed("/feed", ["One"])
    keys = [lane.follow(host.url()) for host in hosts]
    lane.run_once()
    lane.tell("UPDATE lanes.clock SET test_offset = test_offset + '20 days'")
    lane.run_once()
    lane.tell("UPDATE lanes.clock SET test_offset = test_offset - interval '20 days'")
    lane.run_once()
    now = lane.now()
    assert max(lane.series(key).next_check_at for key in keys) < now + timedelta(hours=2)
    assert max(lane.host(host.key).next_at for host in hosts) < now + timedelta(hours=2)
