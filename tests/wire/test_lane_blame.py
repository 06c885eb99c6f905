"""Whose fault a failure is, over days and weeks: what is spared, what retires, and what lives on."""

from __future__ import annotations

import socket
from datetime import timedelta
from itertools import pairwise

import pytest

from lanes.store.owning import OwnStore
from tests.fix_lane import LaneAtWork, Row
from tests.smallnet import AS_USUAL, Host, Post, Smallnet, ok, redirect, status
from tests.wire.days import DAILY, DAY, HOUR, bookmark, days_pass, incidents, notices, pass_by, pass_until, told
from tests.wire.documents import chapters, rss

GOOD = ok(rss(chapters(1, 3)))
NOT_FOUND = status(404, "<html><title>Not found</title>")


def a_healthy_feed(net: Smallnet, lane: LaneAtWork) -> str:
    """Of another host, polled once a day: it proves that our own line works."""
    host = net.host("127.1.0.99")
    host.feed("/feed", ["One"], channel=DAILY)
    return lane.follow(host.url("/feed"))


def sent(lane: LaneAtWork, key: str) -> list[Row]:
    """The requests of a Series, oldest first."""
    return [row for row in lane.polls(key) if row.sent_at is not None]


def spacings(lane: LaneAtWork, key: str, *, after: int = 0) -> list[timedelta]:
    """Between the requests of a Series, from number `after` on."""
    return [later.sent_at - earlier.sent_at for earlier, later in pairwise(sent(lane, key)[after:])]


def shrunk(spans: list[timedelta]) -> list[tuple[timedelta, timedelta]]:
    """Neighbours of which the later is shorter, by more than the jitter of a tenth."""
    return [(earlier, later) for earlier, later in pairwise(spans) if later < earlier * 0.9]


def test_a_host_that_answers_404_for_hours_each_day_is_one_incident_a_day_and_retires_nothing(
    net: Smallnet, lane: LaneAtWork
) -> None:
    """CASES A3."""
    host = net.host("127.1.0.5")
    for n in range(50):
        host.feed(f"/{n}", ["One"], channel="<ttl>720</ttl>")
    keys = [lane.follow(host.url(f"/{n}")) for n in range(50)]
    began = lane.now()
    for day in range(10):
        pass_until(lane, began + day * DAY + 4 * HOUR)
        lane.move_to(began + day * DAY + 14 * HOUR)
        host.script("*", NOT_FOUND)
        pass_by(lane, 4 * HOUR)
        host.unscript("*")
        host.publish("/7", f"Of day {day}")
    pass_by(lane, DAY)
    found = incidents(lane, "site")
    assert [(row.started_at - began) // DAY for row in found] == list(range(10))
    assert [row.spared for row in found] == [50] * 10
    assert all(row.ended_at - row.started_at < DAY for row in found)
    rows = [lane.series(key) for key in keys]
    assert {(row.retired_at, row.failures, row.failing_since) for row in rows} == {(None, 0, None)}
    assert set(told(lane)) == {"new chapters"}
    assert {notice.key for notice in notices(lane)} == {keys[7]}
    assert told(lane, None) == ["incident", "incident over"] * 10


def test_a_feed_that_is_unavailable_is_asked_ever_slower_and_back_to_normal_once_it_is_there(
    net: Smallnet, lane: LaneAtWork
) -> None:
    """CASES A4."""
    a_healthy_feed(net, lane)
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One"])
    host.script("/feed", [AS_USUAL, *[status(503)] * 3, AS_USUAL])
    key = lane.follow(host.url("/feed"))
    for _ in range(6):
        lane.poll(key)
    assert lane.outcomes(key) == ["new", *["failed"] * 3, "unchanged", "unchanged"]
    first, *slower, normal = spacings(lane, key)
    assert [later / earlier > 1.7 for earlier, later in pairwise([first, *slower])] == [True] * 3
    assert normal < 2 * first
    assert (lane.series(key).failures, told(lane)) == (0, [])


def test_a_timeout_every_other_time_is_nobodys_news(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES A5 (a connection that breaks in the place of one that is silent)."""
    a_healthy_feed(net, lane)
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One"])
    host.script("/feed", [AS_USUAL, GOOD.reset_after(0)] * 6)
    key = lane.follow(host.url("/feed"))
    for _ in range(12):
        lane.poll(key)
    assert lane.outcomes(key)[1:] == ["failed", "unchanged"] * 5 + ["failed"]
    assert (told(lane), told(lane, None), incidents(lane)) == ([], [], [])


@pytest.mark.parametrize(("apart", "retired"), [(timedelta(hours=23), None), (timedelta(hours=25), "gone")])
def test_gone_twice_a_day_apart_is_gone(net: Smallnet, lane: LaneAtWork, apart: timedelta, retired: str | None) -> None:
    """CASES A6."""
    a_healthy_feed(net, lane)
    host = net.host("127.1.0.5")
    host.script("/feed", [GOOD, status(410)])
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    lane.poll(key)
    assert lane.series(key).retired_at is None
    lane.move_to(sent(lane, key)[-1].sent_at + apart)
    lane.run_once()
    assert lane.series(key).retired_reason == retired
    assert told(lane) == ["stopped"] * (retired is not None)
    assert [notice.body for notice in notices(lane)] == [{"reason": "gone"}] * (retired is not None)


def test_gone_a_good_answer_and_gone_again_is_not_gone(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES A6."""
    a_healthy_feed(net, lane)
    host = net.host("127.1.0.5")
    host.script("/feed", [status(410), GOOD, status(410), GOOD])
    key = lane.follow(host.url("/feed"))
    for _ in range(4):
        lane.poll(key)
        lane.move_to(lane.now() + 25 * HOUR)
    assert lane.outcomes(key) == ["failed", "new", "failed", "unchanged"]
    assert (lane.series(key).retired_at, told(lane)) == (None, [])


def test_a_host_that_calls_all_its_feeds_gone_for_two_days_loses_none(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES A3, A6: the Site's fault goes before the Series'."""
    host = net.host("127.1.0.5")
    for n in range(4):
        host.feed(f"/{n}", ["One"], channel=DAILY)
    keys = [lane.follow(host.url(f"/{n}")) for n in range(4)]
    pass_by(lane, 2 * DAY)
    host.script("*", status(410))
    pass_by(lane, 50 * HOUR)
    assert all(lane.outcomes(key).count("failed") >= 2 for key in keys)
    host.unscript("*")
    pass_by(lane, 2 * DAY)
    assert {(row.retired_at, row.failures, row.gone_at) for row in map(lane.series, keys)} == {(None, 0, None)}
    assert (told(lane), told(lane, None)) == ([], ["incident", "incident over"])


def test_what_is_gone_is_looked_at_weekly_and_lives_again_when_it_answers(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One"])
    host.script("/feed", [AS_USUAL, status(410), status(410), status(410), AS_USUAL])
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    lane.poll(key)
    lane.move_to(lane.now() + 25 * HOUR)
    for _ in range(2):
        lane.poll(key)
    assert (lane.series(key).retired_reason, told(lane)) == ("gone", ["stopped"])
    host.publish("/feed", "Two")
    lane.poll(key)
    assert [row.trigger for row in sent(lane, key)][-2:] == ["weekly look"] * 2
    *_, before, look = sent(lane, key)
    assert look.claimed_at - before.claimed_at >= 7 * DAY
    row = lane.series(key)
    assert (row.retired_at, row.failures, row.gone_at) == (None, 0, None)
    assert sorted(told(lane)) == ["back again", "new chapters", "stopped"]


@pytest.mark.parametrize("neighbours", [0, 1, 3])
def test_the_spacing_of_a_feed_that_refuses_for_ever_never_shrinks(
    net: Smallnet, lane: LaneAtWork, neighbours: int
) -> None:
    """CASES A7."""
    a_healthy_feed(net, lane)
    host = net.host("127.1.0.5")
    host.script("/feed", [GOOD, GOOD, status(403)])
    keys = [lane.follow(host.url("/feed"))]
    for n in range(neighbours):
        host.feed(f"/{n}", ["One"], channel=DAILY)
        keys.append(lane.follow(host.url(f"/{n}")))
    pass_by(lane, 3 * DAY)
    after_the_first = spacings(lane, keys[0], after=2)
    assert len(after_the_first) > 10
    assert shrunk(after_the_first) == []
    assert after_the_first[-1] >= 4 * HOUR * 0.99
    assert (lane.series(keys[0]).failures, lane.series(keys[0]).retired_at) == (0, None)
    assert all(lane.series(key).good_at > lane.now() - 2 * DAY for key in keys[1:])


def failed_for_good(net: Smallnet, lane: LaneAtWork) -> tuple[Host, str]:
    """A Series that retired because it failed and failed."""
    a_healthy_feed(net, lane)
    host = net.host("127.1.0.5")
    host.script("/feed", [GOOD, NOT_FOUND])
    key = lane.follow(host.url("/feed"))
    pass_by(lane, 5 * DAY)
    return host, key


def test_twenty_failures_over_three_days_retire_and_its_readers_are_told_once(net: Smallnet, lane: LaneAtWork) -> None:
    _, key = failed_for_good(net, lane)
    row = lane.series(key)
    failures = [poll for poll in lane.polls(key) if poll.outcome == "failed"]
    assert len(failures) == 20
    assert failures[-1].sent_at - failures[0].sent_at >= 3 * DAY
    assert row.retired_at - failures[-1].sent_at < HOUR
    assert "404" in row.retired_reason
    assert told(lane) == ["stopped"]
    assert "404" in notices(lane)[0].body["reason"]


def test_a_revived_series_that_fails_once_lives(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES A8."""
    _, key = failed_for_good(net, lane)
    assert OwnStore(lane.database).revive(key).changed
    assert lane.poll(key).outcome == "failed"
    row = lane.series(key)
    assert (row.retired_at, row.failures) == (None, 1)
    assert told(lane) == ["stopped", "back again"]
    pass_by(lane, 2 * DAY)
    assert lane.series(key).retired_at is None


@pytest.mark.parametrize("error", [socket.EAI_NONAME, socket.EAI_AGAIN], ids=["no such name", "no answer"])
def test_a_lone_feed_whose_domain_lapsed_is_charged_and_given_up_within_a_month(
    net: Smallnet, lane: LaneAtWork, error: int
) -> None:
    """CASES A10."""
    healthy = a_healthy_feed(net, lane)
    host = net.host("127.1.0.5", name="lapsed.test")
    host.feed("/feed", ["One"])
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    net.resolver.fail(error, "lapsed.test")
    host.hang_up()
    days_pass(lane, 10)
    row = lane.series(key)
    assert row.retired_at is not None
    assert "dns" in row.retired_reason
    assert told(lane) == ["stopped"]
    assert incidents(lane) == []
    assert lane.series(healthy).good_at > lane.now() - 2 * DAY


def test_a_host_that_refuses_its_only_feed_is_told_after_three_days_and_given_up_after_thirty(
    net: Smallnet, lane: LaneAtWork
) -> None:
    """CASES A11."""
    a_healthy_feed(net, lane)
    host = net.host("127.1.0.5")
    host.script("/feed", [GOOD, status(403)])
    key = lane.follow(host.url("/feed"))
    bookmark(lane, "ada", key)
    bookmark(lane, "ben", key, muted=True)
    lane.poll(key)
    lane.poll(key)
    days_pass(lane, 2)
    assert (told(lane), told(lane, None)) == ([], ["refused for an hour"])
    days_pass(lane, 2)
    assert (told(lane), told(lane, "ada")) == (["refused"], ["refused"])
    days_pass(lane, 25)
    assert (told(lane), lane.series(key).retired_at, lane.series(key).failures) == (["refused"], None, 0)
    days_pass(lane, 2)
    assert lane.series(key).retired_reason == "site gone"
    assert told(lane) == told(lane, "ada") == ["refused", "stopped"]
    assert told(lane, "ben") == []
    assert told(lane, None) == ["refused for an hour", "refusal over"]


def test_a_host_whose_last_series_was_given_up_while_it_refused_is_no_more_news(
    net: Smallnet, lane: LaneAtWork
) -> None:
    """Its weekly look is refused for ever, and the owner was told once."""
    a_healthy_feed(net, lane)
    host = net.host("127.1.0.5")
    host.script("/feed", [GOOD, status(403)])
    key = lane.follow(host.url("/feed"))
    days_pass(lane, 34)
    assert lane.series(key).retired_reason == "site gone"
    known = told(lane, None)
    assert known == ["refused for an hour", "refusal over"]
    row = lane.host("127.1.0.5")
    assert (row.refusals, row.refused_since, row.refused_at) == (0, None, None)
    days_pass(lane, 22)
    assert told(lane, None) == known
    assert len(incidents(lane, "refusal")) == 1


def test_what_moved_to_another_series_stays_retired_while_it_still_points_there(
    net: Smallnet, lane: LaneAtWork
) -> None:
    """CASES A15."""
    a_healthy_feed(net, lane)
    old, new = net.host("127.1.0.5"), net.host("127.1.0.6")
    new.feed("/feed", ["One", "Two"], channel=DAILY)
    old.script("/feed", redirect(new.url("/feed")))
    successor, key = lane.follow(new.url("/feed")), lane.follow(old.url("/feed"))
    days_pass(lane, 4)
    assert lane.series(key).retired_reason == f"moved to {successor}"
    assert told(lane) == ["moved"]
    asked = len(net.record.of(old, "/feed"))
    days_pass(lane, 22)
    assert len(net.record.of(old, "/feed")) - asked == 3
    assert lane.series(key).retired_reason == f"moved to {successor}"
    assert told(lane) == ["moved"]


def test_what_moved_stays_retired_wherever_its_successor_moves_on_to(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES A15."""
    old, new, third = net.many(3)
    for host in (new, third):
        host.feed("/feed", [Post("One", guid="1"), Post("Two", guid="2")], channel=DAILY)
        lane.has_no_robots(host.url())
    old.script("/feed", redirect(new.url("/feed")))
    successor, key = lane.follow(new.url("/feed")), lane.follow(old.url("/feed"))
    days_pass(lane, 4)
    for answer in (redirect(third.url("/feed"), 302), redirect(third.url("/feed"), 301), AS_USUAL):
        new.script("/feed", answer)
        days_pass(lane, 9)
        assert lane.series(key).retired_reason == f"moved to {successor}"
    assert lane.series(successor).url == third.url("/feed")
    assert told(lane) == ["moved", "moved"]


def test_two_dead_feeds_of_three_retire_and_the_third_lives_on(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES A16."""
    host = net.host("127.1.0.5")
    for path in ("/a", "/b", "/c"):
        host.feed(path, ["One"], channel=DAILY)
    a, b, c = (lane.follow(host.url(path)) for path in ("/a", "/b", "/c"))
    bookmark(lane, "ada", c)
    days_pass(lane, 2)
    host.script("/a", NOT_FOUND)
    host.script("/b", NOT_FOUND)
    days_pass(lane, 6)
    assert [row.ended_at for row in incidents(lane)] == [None]
    assert told(lane) == ["dead"]
    assert notices(lane)[0].body["count"] == 2
    days_pass(lane, 54)
    assert [lane.series(key).retired_reason for key in (a, b, c)] == ["site gone", "site gone", None]
    assert told(lane) == ["dead", "stopped", "stopped"]
    assert (told(lane, "ada"), told(lane, None)) == ([], ["incident", "incident over"])
    assert len(incidents(lane)) == 1
    assert incidents(lane)[0].ended_at is not None
    host.publish("/c", "Two")
    days_pass(lane, 2)
    assert told(lane, "ada") == ["new chapters"]
    assert lane.series(c).failures == 0
