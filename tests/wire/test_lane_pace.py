"""Pace as the Sites see it: asserted from the instants at which requests arrived.

Host intervals pass in real time, so every test here asks few hosts few times.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from datetime import timedelta

import pytest

from tests.fix_lane import LaneAtWork, MakeLane
from tests.smallnet import AS_USUAL, Host, Smallnet, ok, status
from tests.wire.documents import chapters, rss

SLACK = 0.05
"""Seconds by which two processes' scheduling may move an arrival."""


def feeds_of(host: Host, lane: LaneAtWork, count: int) -> list[str]:
    """Series of one host, all new and due at once."""
    for n in range(count):
        host.feed(f"/feed{n}", ["One"])
    return [lane.follow(host.url(f"/feed{n}")) for n in range(count)]


def test_feeds_of_one_host_that_are_due_at_once_are_fetched_an_interval_apart_while_others_proceed(
    net: Smallnet, lane: LaneAtWork
) -> None:
    """CASES B7, B11."""
    crowded, *others = net.many(11)
    feeds_of(crowded, lane, 30)
    for host in others:
        feeds_of(host, lane, 1)
    with lane.running():
        net.wait_for_visits(4, crowded)
    first, *_, third = net.record.arrivals(crowded)[:3]
    assert not net.record.spacing_offences(1.0, crowded, slack=SLACK)
    assert not net.record.overlaps(crowded)
    assert all(net.record.arrivals(host)[0] < third for host in others), "the crowded host held up the others"
    assert first < third


def test_check_now_on_many_at_once_opens_no_bucket_early(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES B10."""
    host = net.host("127.1.0.5")
    keys = feeds_of(host, lane, 12)
    for key in keys:
        lane.check_now(key)
    with lane.running():
        net.wait_for_visits(4, host)
    assert not net.record.spacing_offences(1.0, host, slack=SLACK)


def test_check_now_jumps_the_queue_of_its_host(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    keys = feeds_of(host, lane, 6)
    lane.run_once()
    lane.check_now(keys[5])
    lane.move_to(lane.host("127.1.0.5").next_at)
    lane.run_once()
    assert [visit.path for visit in net.record][1] == "/feed5"
    assert lane.polls(keys[5])[0].trigger == "pending"


def test_check_now_overrides_rest_but_no_wait(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One"])
    host.script("/feed", [AS_USUAL, AS_USUAL, status(429, retry_after=600), AS_USUAL])
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    lane.check_now(key)
    lane.move_to(lane.host("127.1.0.5").next_at)
    assert lane.run_once() == 1
    lane.poll(key)
    lane.check_now(key)
    lane.move_to(lane.now() + timedelta(seconds=590))
    assert lane.run_once() == 0


def test_a_slow_name_does_not_bring_two_requests_of_a_host_together(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES B15."""
    host = net.host("127.1.0.5", name="slow.test")
    feeds_of(host, lane, 2)
    net.resolver.delay("slow.test", 1.5)
    with lane.running():
        net.wait_for_visits(2, host)
    assert not net.record.spacing_offences(1.0, host, slack=SLACK)


def test_a_request_a_little_late_moves_the_bucket_by_as_much(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES B15, with a delay too short to be moved before the request is written."""
    host = net.host("127.1.0.5", name="slow.test")
    feeds_of(host, lane, 2)
    net.resolver.delay("slow.test", 0.09)
    with lane.running():
        net.wait_for_visits(2, host)
    assert not net.record.spacing_offences(1.0, host, slack=SLACK)


def test_two_hosts_on_one_address_share_its_pace(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES B16."""
    hosts = [net.host("127.1.0.5", name=f"{n}.test") for n in range(4)]
    for host in hosts:
        feeds_of(host, lane, 1)
    elsewhere = net.host("127.1.0.6")
    feeds_of(elsewhere, lane, 1)
    with lane.running():
        net.wait_until(lambda record: all(record.of(host) for host in hosts) and bool(record.of(elsewhere)))
    assert not net.record.spacing_offences(0.4, slack=SLACK, by_address=True)
    assert net.record.arrivals(elsewhere)[0] < max(net.record.arrivals(host)[0] for host in hosts)


def test_hosts_of_one_known_address_are_booked_and_still_all_polled(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES B16, once the address is known."""
    hosts = [net.host("127.1.0.5", name=f"{n}.test") for n in range(4)]
    keys = [feeds_of(host, lane, 1)[0] for host in hosts]
    lane.tell("UPDATE lanes.hosts SET address = '127.1.0.5', bucket = lanes.bucket('127.1.0.5')")
    with lane.running():
        net.wait_until(lambda record: all(record.of(host) for host in hosts))
    assert not net.record.spacing_offences(0.4, slack=SLACK, by_address=True)
    assert all(lane.outcomes(key) == ["new"] for key in keys)


def test_two_lanes_share_one_pace_and_poll_each_series_once(net: Smallnet, make_lane: MakeLane) -> None:
    crowded, *others = net.many(9)
    one, two = make_lane("machine-1"), make_lane("machine-2")
    keys = feeds_of(crowded, one, 3) + [key for host in others for key in feeds_of(host, one, 1)]
    with ExitStack() as both:
        both.enter_context(one.running())
        both.enter_context(two.running())
        net.wait_for_visits(3, crowded)
        net.wait_until(lambda record: all(record.of(host) for host in others))
    assert [one.outcomes(key) for key in keys] == [["new"]] * len(keys)
    assert not net.record.spacing_offences(1.0, slack=SLACK)
    assert not net.record.overlaps()


def test_a_host_is_fetched_by_one_slot_at_a_time_of_all_lanes_however_long_that_takes(
    net: Smallnet, make_lane: MakeLane
) -> None:
    slow, witness = net.many(2)
    one, two = make_lane("machine-1"), make_lane("machine-2")
    keys = feeds_of(slow, one, 3)
    with slow.hold("*") as hold, ExitStack() as both:
        both.enter_context(one.running())
        both.enter_context(two.running())
        assert hold.arrived.wait(10)
        for key in keys:
            one.check_now(key)  # which lowers the hint that its host is ready
        feeds_of(witness, one, 3)
        net.wait_for_visits(3, witness)
        assert len(net.record.of(slow)) == 1
        hold.release()
    assert not net.record.overlaps()


def test_one_slow_host_costs_the_others_nothing(net: Smallnet, lane: LaneAtWork) -> None:
    slow, *others = net.many(6)
    feeds_of(slow, lane, 1)
    for host in others:
        feeds_of(host, lane, 1)
    with slow.hold("/feed0") as hold, lane.running():
        assert hold.arrived.wait(10)
        net.wait_until(lambda record: all(record.of(host) for host in others))
        assert lane.wait_for("SELECT FROM lanes.polls WHERE outcome = 'new' HAVING count(*) = 5") is not None
        hold.release()


def test_a_host_that_fails_is_asked_half_as_often_each_time_and_recovers(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", [status(500)] * 3 + [ok(rss(chapters(1, 1)))])
    key = lane.follow(host.url("/feed"))
    seen = []
    for _ in range(4):
        lane.poll(key)
        seen.append(lane.host("127.1.0.5").pace.total_seconds())
    assert seen == pytest.approx([2, 4, 8, 7.2])


def test_a_paused_lane_claims_nothing_until_it_is_resumed(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    feeds_of(host, lane, 1)
    lane.tell("UPDATE lanes.lanes SET paused_at = lanes.now() WHERE site = 'feeds'")
    assert lane.run_once() == 0
    lane.tell("UPDATE lanes.lanes SET paused_at = NULL WHERE site = 'feeds'")
    assert lane.run_once() == 1


def test_a_bookmark_made_while_the_lane_sleeps_wakes_it(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One"])
    with lane.running():
        lane.wait_for(
            "SELECT FROM pg_stat_activity WHERE application_name LIKE '%% bell' AND datname = current_database()"
        )
        key = lane.follow(host.url("/feed"))
        lane.wait_for("SELECT FROM lanes.series WHERE key = %s AND good_at IS NOT NULL", key)


def test_a_stopped_lane_claims_no_more_and_finishes_what_is_in_hand(net: Smallnet, lane: LaneAtWork) -> None:
    host, other = net.many(2)
    (key,) = feeds_of(host, lane, 1)
    with host.hold("/feed0") as hold, lane.running():
        assert hold.arrived.wait(10)
        lane.lane.stop()
        late = feeds_of(other, lane, 1)
        threading.Timer(0, hold.release).start()
    assert lane.outcomes(key) == ["new"]
    assert lane.polls(late[0]) == []


def test_an_interrupted_fetch_is_put_back_and_counts_for_nothing(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    (key,) = feeds_of(host, lane, 1)
    with host.hold("/feed0") as hold, lane.running():
        assert hold.arrived.wait(10)
        lane.lane.stop()
        lane.http.interrupt()
    row = lane.series(key)
    assert lane.outcomes(key) == ["put back"]
    assert (row.failures, row.lease_token, row.latest_checked_at) == (0, None, lane.polls(key)[0].claimed_at)


def test_a_finished_poll_that_cannot_be_written_holds_no_process_back_and_is_abandoned(
    net: Smallnet, make_lane: MakeLane
) -> None:
    host = net.host("127.1.0.5")
    lane, later = make_lane("machine-1", slots=1), make_lane("machine-2")
    (key,) = feeds_of(host, lane, 1)
    with host.hold("/feed0") as hold:
        polling = threading.Thread(target=lane.run_once)
        polling.start()
        assert hold.arrived.wait(10)
        lane.database.close()  # as good as a server that is gone
    net.quiet()
    lane.lane.stop()
    lane.http.interrupt()
    assert lane.lane.finish(10)
    polling.join(10)
    assert later.series(key).lease_token is not None
    later.move_to(later.now() + timedelta(seconds=91))
    later.run_once()
    assert later.outcomes(key) == ["abandoned", "new"]
