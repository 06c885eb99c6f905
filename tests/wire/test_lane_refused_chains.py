"""Refusals by a host that is only ever reached through another's redirects: its window opens there, and ends there."""

from __future__ import annotations

from datetime import timedelta

from tests.fix_lane import LaneAtWork
from tests.smallnet import Smallnet, redirect, status
from tests.wire.days import HOUR, incidents, look_after, pass_by, told

PATHS = ("/a", "/b")


def test_good_reads_by_way_of_a_redirect_end_the_window_of_the_host_that_refused(
    net: Smallnet, lane: LaneAtWork
) -> None:
    """DESIGN 5.4: on the many-host Site the window is that of the host that refused, whoever led there."""
    one, two = net.host("127.1.0.5", "one.test"), net.host("127.1.0.6", "two.test")
    for path in PATHS:
        one.script(path, redirect(two.url(path), 302))
        two.feed(path, ["One"])
        two.script(path, status(403))
    keys = [lane.follow(one.url(path)) for path in PATHS]
    assert [lane.poll(key).outcome for key in keys] == ["refused", "refused"]
    assert lane.host("two.test").refused_until is not None
    for path in PATHS:
        two.unscript(path)
    lane.move_to(lane.now() + timedelta(hours=2))
    assert [lane.poll(key).outcome for key in keys] == ["new", "new"]
    assert lane.host("two.test").refused_until is None
    assert lane.all("SELECT id FROM lanes.incidents WHERE ended_at IS NULL") == []


def test_a_refusal_of_a_host_where_nobody_lives_is_one_while_a_series_is_led_there(
    net: Smallnet, lane: LaneAtWork
) -> None:
    one, two = net.host("127.1.0.5", "one.test"), net.host("127.1.0.6", "two.test")
    one.script("/a", redirect(two.url("/a"), 302))
    two.script("/a", status(403))
    key = lane.follow(one.url("/a"))
    for _ in range(48):
        pass_by(lane, HOUR)
        look_after(lane)
    (refusal,) = incidents(lane, "refusal")
    assert (refusal.ended_at, refusal.evidence) == (None, {"series": [lane.series(key).id]})
    assert told(lane, None) == ["refused for an hour"]
    lane.tell("UPDATE lanes.series SET paused_at = lanes.now()")
    look_after(lane)
    assert told(lane, None) == ["refused for an hour", "refusal over"]


def test_the_one_series_that_lives_where_another_is_led_is_not_alone_there(net: Smallnet, lane: LaneAtWork) -> None:
    """One URL that is refused again and again opens no window beside a good one, wherever its Series lives."""
    one, two = net.host("127.1.0.5", "one.test"), net.host("127.1.0.6", "two.test")
    one.script("/a", redirect(two.url("/a"), 302))
    two.script("/a", status(403))
    two.feed("/b", ["One"])
    led, lives = lane.follow(one.url("/a")), lane.follow(two.url("/b"))
    assert lane.poll(lives).outcome == "new"
    assert [lane.poll(led).outcome for _ in range(3)] == ["refused"] * 3
    assert lane.host("two.test").refused_until is None


def test_a_host_that_only_redirects_narrows_again_and_lives(net: Smallnet, lane: LaneAtWork) -> None:
    """It answers; what comes from where it leads says nothing about it."""
    one, two = net.host("127.1.0.5", "one.test"), net.host("127.1.0.6", "two.test")
    one.script("/a", redirect(two.url("/a"), 302))
    two.feed("/a", ["One"])
    key = lane.follow(one.url("/a"))
    lane.tell(
        "UPDATE lanes.hosts SET pace = '5 minutes', backoffs = 3, dead_since = lanes.now() WHERE name = 'one.test'"
    )
    assert lane.poll(key).outcome == "new"
    host = lane.host("one.test")
    assert (host.pace, host.backoffs, host.dead_since) == (timedelta(minutes=4.5), 0, None)
