"""A Site of one host as that Site sees it: one Gap between two fetches, whoever makes them and however often they die (DESIGN 5.1).

Time passes by moving lanes.now(); arrivals are the small internet's own, told in that time.
"""

from __future__ import annotations

import logging
import re
from contextlib import ExitStack
from datetime import timedelta
from itertools import pairwise

import pytest

from tests.fix_lane import LaneAtWork, MakeLane
from tests.smallnet import AS_USUAL, Request, Smallnet, Step, redirect, status
from tests.waiting import until
from tests.wire.comics import Seen, comics, open_at, process, titles_of

SLACK = 0.05
"""Seconds by which the scheduling of two processes may move an arrival."""


def a_lane(
    make_lane: MakeLane, *hosts: str, gap: float, rest: timedelta = timedelta(hours=1), machine: str = "machine-1"
) -> LaneAtWork:
    return make_lane(machine, site=comics(*hosts, gap=gap, rest=rest), slots=1)


def test_a_hundred_check_nows_at_once_are_fetched_one_effective_gap_apart(net: Smallnet, make_lane: MakeLane) -> None:
    """CASES B10: a Rest of 10 min, shared by 100 Series, makes the Gap of 10 s one of 6 s."""
    lane = a_lane(make_lane, "127.1.0.5", gap=10, rest=timedelta(minutes=10))
    keys = titles_of(net.host("127.1.0.5"), lane, 100)
    lane.tell("UPDATE lanes.series SET latest_checked_at = lanes.now()")
    for key in keys:
        lane.check_now(key)
    seen = Seen(net, lane)
    for _ in keys:
        assert lane.run_once() == 1
        seen.look()
        open_at(lane)
    assert seen.paths == [f"/{n}" for n in range(100)]
    assert min(seen.spacings()) >= 6 - SLACK
    assert lane.one("SELECT gap FROM lanes.lanes WHERE site = 'comics'").gap == timedelta(seconds=6)
    assert {row.lane_gap for row in lane.polls()} == {timedelta(seconds=6)}


def test_a_lane_that_is_made_and_killed_again_and_again_asks_no_more_than_its_gap_allows(
    net: Smallnet, make_lane: MakeLane
) -> None:
    """CASES B12: killed in mid fetch, before a fetch, after it; on six hosts, so that the Gap alone can hold it back."""
    hosts = net.many(6)
    site = comics(*(host.address for host in hosts), gap=20)
    lane = make_lane(site=site, slots=1)
    for host in hosts:
        titles_of(host, lane, 1)
    seen = Seen(net, lane)
    for round_ in range(9):
        with ExitStack() as held:
            holds = [host.hold("*") for host in hosts] if round_ % 2 else []
            for hold in holds:
                held.callback(hold.release)
            with process(lane.url, site) as running:
                assert running.stdout is not None
                if (
                    holds
                    and lane.one("SELECT next_at <= lanes.now() AS open FROM lanes.lanes WHERE site = 'comics'").open
                ):
                    net.wait_until(lambda record: bool(record.underway))
                elif not holds:
                    assert running.stdout.readline() == "looked\n"
        net.quiet()
        seen.look()
        lane.move_to(lane.now() + timedelta(seconds=7))
    assert len(seen.at) >= 3
    assert min(seen.spacings()) >= 20 - SLACK


def test_two_machines_share_one_gap(net: Smallnet, make_lane: MakeLane) -> None:
    hosts = net.many(2)
    names = [host.address for host in hosts]
    one = a_lane(make_lane, *names, gap=1)
    two = a_lane(make_lane, *names, gap=1, machine="machine-2")
    for host in hosts:
        titles_of(host, one, 3)
    with ExitStack() as both:
        both.enter_context(one.running())
        both.enter_context(two.running())
        net.wait_for_visits(4)
    arrivals = [visit.arrived for visit in net.record]
    assert all(later - earlier >= 1 - SLACK for earlier, later in pairwise(arrivals))


def test_a_redirect_out_of_a_site_of_one_host_is_not_followed(net: Smallnet, make_lane: MakeLane) -> None:
    host, elsewhere = net.many(2)
    lane = a_lane(make_lane, host.address, gap=10)
    (key,) = titles_of(host, lane, 1)
    elsewhere.feed("/", ["Not ours"])
    host.script("/0", redirect(elsewhere.url("/"), 302))
    assert lane.run_once() == 1
    (record,) = lane.polls(key)
    assert record.outcome == "failed"
    assert "left the Site" in record.detail
    assert lane.series(key).failures == 1
    assert not net.record.of(elsewhere)


def test_a_redirect_between_the_hosts_of_a_site_goes_on_a_gap_later(net: Smallnet, make_lane: MakeLane) -> None:
    host, other = net.many(2)
    lane = a_lane(make_lane, host.address, other.address, gap=10)
    (key,) = titles_of(host, lane, 1)
    host.script("/0", redirect(other.url("/0"), 302))
    other.feed("/0", ["One"])
    seen = Seen(net, lane)
    assert lane.run_once() == 1
    seen.look()
    assert lane.series(key).retry_reason == "the Gap of its Site"
    lane.move_to(lane.series(key).retry_at)
    open_at(lane)  # what was written late has moved the Gap
    assert lane.run_once() == 1
    seen.look()
    assert lane.outcomes(key) == ["put back", "new"]
    assert len(net.record.of(host)) == len(net.record.of(other)) == 1
    assert min(seen.spacings()) >= 10 - SLACK


def test_a_redirect_of_feeds_into_a_sites_host_waits_for_that_sites_gap_and_spends_it(
    net: Smallnet, make_lane: MakeLane
) -> None:
    blog, host = net.many(2)
    lane, feeds = a_lane(make_lane, host.address, gap=10), make_lane("machine-1")
    titles_of(host, lane, 2)
    blog.script("/feed", redirect(host.url("/moved"), 302))
    host.feed("/moved", ["Elsewhere"])
    key = feeds.follow(blog.url("/feed"))
    seen = Seen(net, lane)
    assert lane.run_once() == 1
    assert feeds.run_once() == 1
    assert feeds.series(key).retry_reason == "the Gap of its Site"
    seen.look()
    lane.move_to(feeds.series(key).retry_at)
    assert feeds.run_once() == 1
    assert lane.run_once() == 0
    seen.look()
    open_at(lane)
    assert lane.run_once() == 1
    seen.look()
    assert feeds.titles(key) == ["Elsewhere"]
    there = [at for at, visit in zip(seen.at, net.record, strict=True) if visit.address == host.address]
    assert len(there) == 3
    assert all(later - earlier >= 10 - SLACK for earlier, later in pairwise(there))


def test_the_floor_of_a_gap_is_engaged_loudly_and_counted_once(
    net: Smallnet, make_lane: MakeLane, caplog: pytest.LogCaptureFixture
) -> None:
    lane = a_lane(make_lane, "127.1.0.5", gap=10, rest=timedelta(seconds=4))
    titles_of(net.host("127.1.0.5"), lane, 5)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert lane.run_once() == 1
            open_at(lane)
    said = [record.getMessage() for record in caplog.records if "floor" in record.getMessage()]
    assert len(said) == 1
    assert "eligible=5" in said[0]
    assert lane.one("SELECT gap FROM lanes.lanes WHERE site = 'comics'").gap == timedelta(seconds=1)
    sample = lane.metrics.registry.get_sample_value
    assert sample("lanes_gap_floor_engagements_total", {"site": "comics"}) == 1
    assert sample("lanes_effective_gap_seconds", {"site": "comics"}) == 1


def test_a_gap_that_its_rest_can_bear_engages_no_floor(
    net: Smallnet, make_lane: MakeLane, caplog: pytest.LogCaptureFixture
) -> None:
    lane = a_lane(make_lane, "127.1.0.5", gap=10, rest=timedelta(seconds=5))
    titles_of(net.host("127.1.0.5"), lane, 5)
    with caplog.at_level(logging.WARNING):
        assert lane.run_once() == 1
    assert not [record for record in caplog.records if "floor" in record.getMessage()]


def test_how_far_behind_a_lane_is_is_logged_after_a_pass_that_fetched_and_once_a_minute_at_most(
    net: Smallnet, make_lane: MakeLane, caplog: pytest.LogCaptureFixture
) -> None:
    lane = a_lane(make_lane, "127.1.0.5", gap=10)
    first, _ = titles_of(net.host("127.1.0.5"), lane, 2)

    def said() -> list[str]:
        return [each.getMessage() for each in caplog.records if "behind=" in each.getMessage()]

    with caplog.at_level(logging.INFO):
        assert lane.run_once() == 1
        lane.tell(
            "UPDATE lanes.series SET added_at = added_at - interval '2 hours', bookmarked_at = bookmarked_at - interval '2 hours'"
        )
        with lane.running():
            until(said, lambda: caplog.text)
            open_at(lane)
            lane.wait_for("SELECT WHERE NOT EXISTS (SELECT FROM lanes.series WHERE good_at IS NULL)")
            open_at(lane)
            lane.check_now(first)
            lane.wait_for("SELECT FROM lanes.polls GROUP BY series_id HAVING count(*) = 2")
    (once,) = said()
    assert re.fullmatch(r"this Lane polled polls=1 behind=2:00:\d\d(\.\d+)? due=1 held=0", once)


def test_a_lane_that_fetched_nothing_does_not_say_how_far_behind_it_is(
    net: Smallnet, make_lane: MakeLane, caplog: pytest.LogCaptureFixture
) -> None:
    lane = a_lane(make_lane, "127.1.0.5", gap=10)
    titles_of(net.host("127.1.0.5"), lane, 1)
    lane.tell("UPDATE lanes.series SET latest_checked_at = lanes.now()")
    sample = lane.metrics.registry.get_sample_value
    with caplog.at_level(logging.INFO):
        assert lane.run_once() == 0
        with lane.running():
            until(lambda: sample("lanes_eligible", {"site": "comics"}) == 1)
    assert not [each for each in caplog.records if "behind=" in each.getMessage()]


def test_a_host_that_refuses_whatever_comes_within_a_minute_teaches_its_interval_over_a_restart(
    net: Smallnet, make_lane: MakeLane
) -> None:
    """CASES B3: a third offence would be answered 403 for an hour; there is none until all that was learnt is taken away."""
    host = net.host("127.1.0.5")
    lane = make_lane()
    last, offences = -1e9, 0

    def strict(_: Request) -> Step:
        nonlocal last, offences
        now = lane_time()
        too_soon, last = now - last < 60, now
        offences += too_soon
        return status(403) if offences >= 3 else status(429) if too_soon else status(304)

    def lane_time() -> float:
        return offset + net.record[-1].wall

    for n in range(3):
        host.feed(f"/{n}", ["One"])
    keys = [lane.follow(host.url(f"/{n}")) for n in range(3)]
    offset = 0.0
    lane.run_once()
    host.script("*", strict)
    for n in range(30):
        if n == 15:
            lane = make_lane("machine-2")
        lane.check_now(keys[n % 3])
        open_host(lane)
        offset = float(lane.one("SELECT extract(epoch FROM test_offset) AS it FROM lanes.clock").it)
        assert lane.run_once() == 1
    assert offences == 2
    assert lane.host("127.1.0.5").pace > timedelta(seconds=60)
    assert lane.host("127.1.0.5").refused_paces == 2
    lane.tell(
        "UPDATE lanes.hosts SET pace = '1 s', refused_pace = NULL, refused_pace_at = NULL, refused_paces = 0, "
        "next_at = lanes.now(), ready_at = lanes.now()"
    )
    lane.check_now(keys[0])
    lane.move_to(lane.now() + timedelta(seconds=2))
    assert lane.run_once() == 1
    assert lane.outcomes(keys[0])[-1] == "refused"
    assert lane.series(keys[0]).failures == 0


def test_a_host_that_names_its_wait_teaches_its_interval_all_the_same(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES B3's kind: 1.25 times the interval at which it refused, and no healthy answer brings it below that."""
    host = net.host("127.1.0.5")
    host.feed("/0", ["One"])
    host.script("/0", [status(429, retry_after=60), AS_USUAL])
    key = lane.follow(host.url("/0"))
    for _ in range(3):
        lane.poll(key)
        assert lane.host("127.1.0.5").pace.total_seconds() == pytest.approx(1.25, abs=0.001)


def open_host(lane: LaneAtWork) -> None:
    """Moves time to where the one host that is followed may be asked."""
    host = lane.host("127.1.0.5")
    lane.move_to(max(filter(None, (host.next_at, host.not_before, host.busy_until))))
