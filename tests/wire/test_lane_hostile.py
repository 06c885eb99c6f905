"""What no honest server sends and no healthy program meets: it costs its own Series at most, and the Lane goes on."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from lanes import lane as lanes_lane
from lanes.core.chapters import Reading
from lanes.sites import FEEDS, Site
from lanes.store import schema
from tests.fix_lane import LaneAtWork, MakeLane
from tests.process.fix_supervisor import until
from tests.smallnet import AS_USUAL, Smallnet, ok, redirect, status
from tests.wire.documents import chapters, rss
from tests.wire.test_lane_chains import bugs

FEED = rss(chapters(1, 2))
TITLES = ["Chapter 1", "Chapter 2"]


def tags_asked(net: Smallnet, path: str = "/feed") -> list[str | None]:
    """The If-None-Match of each request to a path."""
    return [visit.headers.get("if-none-match") for visit in net.record.of(path=path)]


@pytest.mark.parametrize(
    "etag", ['"a\0b"', '"\x01\x02"', '"\x1b[2J"', '"' + "x" * 20_000 + '"'], ids=["NUL", "control", "escape", "20 KB"]
)
def test_a_tag_that_cannot_be_kept_costs_nothing(
    net: Smallnet, lane: LaneAtWork, caplog: pytest.LogCaptureFixture, etag: str
) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", ok(FEED, headers={"ETag": etag}))
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    lane.poll(key)
    assert lane.outcomes(key) == ["new", "unchanged"]
    assert lane.titles(key) == TITLES
    assert lane.series(key).etag is None
    assert tags_asked(net) == [None, None]
    assert bugs(caplog) == []


@pytest.mark.parametrize(
    "cookies",
    [
        ["a=\x01\x02", "b=\0", "c=\x1b[2J", "d=1"],
        [f"c{n}=1" for n in range(90)],
        ["a=" + "x" * 10_000, "d=1"],
        ["a=\xe9; Path=/\x01", "d=1"],
    ],
    ids=["control", "many", "long", "odd"],
)
def test_cookies_that_cannot_be_kept_over_a_put_back_cost_nothing(
    net: Smallnet, lane: LaneAtWork, caplog: pytest.LogCaptureFixture, cookies: list[str]
) -> None:
    host, other = net.host("127.1.0.5"), net.host("127.1.0.6")
    step = redirect(other.url("/real"), 302).with_headers(tuple(("Set-Cookie", cookie) for cookie in cookies))
    host.script("/feed", step)
    other.feed("/real", ["One"])
    lane.follow(other.url("/unrelated"))
    lane.run_once()
    lane.tell("UPDATE lanes.hosts SET next_at = lanes.now() + '20 seconds' WHERE name = '127.1.0.6'")
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    kept = lane.series(key).resume["cookies"]
    assert len(kept) <= 50
    assert all("".join(cookie).isprintable() for cookie in kept)
    assert lane.poll(key).outcome == "new"
    assert lane.outcomes(key) == ["put back", "new"]
    assert lane.titles(key) == ["One"]
    assert bugs(caplog) == []


def test_a_thousand_cookies_are_a_failure_of_their_series_at_most(
    net: Smallnet, lane: LaneAtWork, caplog: pytest.LogCaptureFixture
) -> None:
    host = net.host("127.1.0.5")
    hop = redirect("/real", 302).with_headers(tuple(("Set-Cookie", f"c{n}=1") for n in range(1_000)))
    host.script("/feed", [hop, AS_USUAL])
    host.feed("/feed", ["One"])
    host.feed("/real", ["One"])
    key = lane.follow(host.url("/feed"))
    assert lane.poll(key).outcome in ("failed", "new")
    lane.poll(key)
    assert lane.titles(key) == ["One"]
    assert bugs(caplog) == []


def unreadable(body: bytes, content_type: str | None, url: str, at: datetime) -> Reading:
    """A reader with a bug that one document finds."""
    if b"poison" in body:
        raise RecursionError("too deep")
    return FEEDS.read(body, content_type, url, at)


BUGGY: Site = replace(FEEDS, read=unreadable)


def test_a_reader_that_raises_is_a_failure_of_its_series_and_the_others_go_on(
    net: Smallnet, make_lane: MakeLane, caplog: pytest.LogCaptureFixture
) -> None:
    lane = make_lane(site=BUGGY)
    bad, good = net.host("127.1.0.5"), net.host("127.1.0.6")
    bad.script("/feed", [ok("poison"), ok(FEED)])
    good.feed("/feed", ["One"])
    poisoned, healthy = lane.follow(bad.url("/feed")), lane.follow(good.url("/feed"))
    assert lane.run_once() == 2
    row = lane.series(poisoned)
    assert (row.failures, row.lease_token, row.abandoned) == (1, None, 0)
    assert "RecursionError" in row.failure
    assert row.next_check_at > lane.now()
    assert lane.host("127.1.0.5").busy_token is None
    assert lane.titles(healthy) == ["One"]
    assert [record.outcome for record in lane.polls(poisoned)] == ["failed"]
    assert lane.polls(poisoned)[0].sent_at is not None
    assert any("a bug ended a Poll" in message for message in bugs(caplog))
    assert lane.poll(poisoned).outcome == "new"


def test_a_validator_that_the_server_cannot_stand_is_sent_once(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    tagged = ok(FEED, headers={"ETag": '"a"'})
    host.script("/feed", [tagged, status(431), tagged])
    key = lane.follow(host.url("/feed"))
    for _ in range(3):
        lane.poll(key)
    assert tags_asked(net) == [None, '"a"', None]
    assert lane.outcomes(key) == ["new", "failed", "unchanged"]


def test_the_same_bytes_with_a_new_tag_are_asked_for_by_the_new_tag(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", [ok(FEED, headers={"ETag": f'"{tag}"'}) for tag in "abc"])
    key = lane.follow(host.url("/feed"))
    for _ in range(3):
        lane.poll(key)
    assert tags_asked(net) == [None, '"a"', '"b"']
    assert lane.outcomes(key) == ["new", "unchanged", "unchanged"]
    assert lane.series(key).etag == '"c"'


@pytest.mark.parametrize("known", [True, False], ids=["a feed before", "added just now"])
def test_a_pages_words_are_for_the_owner_and_in_no_log_nor_record(
    net: Smallnet, lane: LaneAtWork, caplog: pytest.LogCaptureFixture, known: bool
) -> None:
    caplog.set_level(logging.DEBUG)
    host = net.host("127.1.0.5")
    page = ok("<html><title>Hello Jane</title><p>Your secret is 42</p></html>", "text/html")
    host.script("/feed", [ok(FEED), page] if known else [page])
    key = lane.follow(host.url("/feed"))
    if known:
        lane.poll(key)
    record = lane.poll(key)
    assert record.outcome == "failed"
    assert "Jane" in lane.series(key).failure
    assert record.detail == "this is a web page, not a feed"
    assert "a Poll ended" in caplog.text
    assert "Jane" not in caplog.text
    assert lane.all("SELECT FROM lanes.polls p WHERE p::text LIKE '%%Jane%%'") == []


def has_its_turn(lane: LaneAtWork, key: str, before: timedelta) -> None:
    """The host of this Series has been ready that long: the longest goes first."""
    lane.tell(
        "UPDATE lanes.hosts SET ready_at = lanes.now() - %s WHERE id = (SELECT host_id FROM lanes.series WHERE key = %s)",
        before,
        key,
    )


def abandoned(lane: LaneAtWork, key: str, times: int = 2) -> None:
    """So many workers in a row died with this Series, the last just now; its turn is first."""
    lane.tell(
        "UPDATE lanes.series SET abandoned = %s, lease_until = lanes.now(), lease_token = gen_random_uuid(), lease_machine = 'dead', "
        "lease_trigger = 'its time', latest_checked_at = lanes.now() - interval '90 seconds' WHERE key = %s",
        times - 1,
        key,
    )
    has_its_turn(lane, key, before=timedelta(hours=1))


def test_a_series_that_must_be_fetched_alone_gives_way_where_another_fetch_does_not_end(
    net: Smallnet, lane: LaneAtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes_lane, "ALONE_AFTER", 0.1)
    endless, poison, third = net.many(3)
    for host in (endless, poison, third):
        host.feed("/feed", ["One"])
    hold = endless.hold("/feed")
    first, key, other = [lane.follow(host.url("/feed")) for host in (endless, poison, third)]
    abandoned(lane, key)
    has_its_turn(lane, first, before=timedelta(hours=2))
    with lane.running():
        lane.wait_for("SELECT FROM lanes.series WHERE key = %s AND retry_at IS NOT NULL", key)
        lane.wait_for("SELECT FROM lanes.series WHERE key = %s AND good_at IS NOT NULL", other)
        row = lane.series(key)
        assert 0 < (row.retry_at - lane.now()).total_seconds() <= 10
        assert "alone" in row.retry_reason
        assert len(net.record.of(poison)) == 0
        hold.release()
        lane.tell("UPDATE lanes.clock SET test_offset = test_offset + '11 seconds'")
        lane.wait_for("SELECT FROM lanes.series WHERE key = %s AND good_at IS NOT NULL", key)


def test_nothing_is_started_beside_a_series_that_is_fetched_alone(net: Smallnet, lane: LaneAtWork) -> None:
    poison, *others = net.many(4)
    for host in (poison, *others):
        host.feed("/feed", ["One"])
    poison.script("/feed", AS_USUAL.after(0.5))
    key, *_ = [lane.follow(host.url("/feed")) for host in (poison, *others)]
    abandoned(lane, key)
    assert lane.run_once() == 4
    (alone,) = net.record.of(poison)
    assert alone.ended is not None
    assert all(visit.arrived > alone.ended for host in others for visit in net.record.of(host))
    assert sum(len(net.record.of(host)) for host in others) == 3


def test_a_page_that_ended_three_workers_is_a_failure_of_its_series_and_the_others_go_on(
    net: Smallnet, lane: LaneAtWork
) -> None:
    """CASES H2"""
    poison, other = net.many(2)
    for host in (poison, other):
        host.feed("/feed", ["One"])
    key, healthy = [lane.follow(host.url("/feed")) for host in (poison, other)]
    lane.tell("UPDATE lanes.series SET rest = '10 minutes' WHERE key = %s", key)
    waits = []
    for _ in range(3):
        abandoned(lane, key, times=3)
        lane.run_once()
        waits.append(lane.open_at(key) - lane.now())
        lane.move_to(lane.open_at(key))
    assert len(net.record.of(poison)) == 0
    assert lane.series(healthy).good_at is not None
    row = lane.series(key)
    assert (row.failures, row.abandoned, row.lease_token) == (3, 0, None)
    assert (row.failure, row.failure_kind) == ("abandoned three times in a row", "abandoned")
    assert waits[0] < waits[1] < waits[2]
    record = lane.polls(key)[-1]
    assert (record.outcome, record.sent_at) == ("failed", None)
    assert record.changed["failures"] == [2, 3]


def test_a_page_that_has_ended_workers_for_good_is_given_up_and_told(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES H2"""
    poison = net.host("127.1.0.5")
    poison.feed("/feed", ["One"])
    key = lane.follow(poison.url("/feed"))
    lane.tell(
        "UPDATE lanes.series SET failures = 60, failing_since = lanes.now() - interval '60 days' WHERE key = %s", key
    )
    abandoned(lane, key, times=3)
    lane.run_once()
    row = lane.series(key)
    assert row.failures == 61
    assert "abandoned three times in a row" in row.retired_reason
    assert [notice.kind for notice in lane.all("SELECT kind FROM lanes.notices")] == ["stopped"]


def test_a_lane_that_is_never_idle_keeps_house_and_ends_its_passes(
    net: Smallnet, make_lane: MakeLane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes_lane, "RESCAN", 0.0)
    lane = make_lane(slots=1)
    hosts = net.many(4)
    for host in hosts:
        host.feed("/feed", ["One"])
        lane.follow(host.url("/feed"))
    hold = hosts[2].hold("/feed")
    lane.tell("UPDATE lanes.clock SET latest_seen = '-infinity'")
    with lane.running():
        assert hold.arrived.wait(20)
        lane.wait_for("SELECT FROM lanes.clock WHERE latest_seen > '-infinity'")
        assert lane.all("SELECT FROM lanes.series WHERE good_at IS NULL AND lease_until IS NULL")  # more is due
        until(
            lambda: lane.metrics.health().last_pass, lambda: "no Pass ended", timeout=10
        )  # the fetch would time out after 20 s
        hold.release()


def test_rules_replaced_under_a_running_lane_are_waited_out_and_it_says_what_to_do(
    net: Smallnet, lane: LaneAtWork, caplog: pytest.LogCaptureFixture
) -> None:
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One"])
    with lane.running():
        lane.tell("DROP FUNCTION lanes.claim")
        lane.tell("UPDATE lanes.rules SET edition = 'another'")
        until(lambda: "another edition of Lanes, restart this process" in caplog.text, lambda: caplog.text)
        assert not lane.metrics.health().ok
        assert bugs(caplog) == []
        schema.migrate(lane.url)
        key = lane.follow(host.url("/feed"))
        lane.wait_for("SELECT FROM lanes.series WHERE key = %s AND good_at IS NOT NULL", key)
        until(lambda: lane.metrics.health().ok, lambda: str(lane.metrics.health()))
    assert lane.titles(key) == ["One"]


def test_rules_replaced_while_a_poll_is_in_hand_lose_nothing_once_they_are_back(
    net: Smallnet, lane: LaneAtWork, caplog: pytest.LogCaptureFixture
) -> None:
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One"])
    hold = host.hold("/feed")
    key = lane.follow(host.url("/feed"))
    with lane.running():
        assert hold.arrived.wait(20)
        lane.tell("DROP FUNCTION lanes.settle")
        lane.tell("UPDATE lanes.rules SET edition = 'another'")
        hold.release()
        until(lambda: "a finished Poll waits to be written" in caplog.text, lambda: caplog.text)
        schema.migrate(lane.url)
        lane.wait_for("SELECT FROM lanes.series WHERE key = %s AND good_at IS NOT NULL", key)
    assert lane.outcomes(key) == ["new"]
    assert len(net.record.of(host)) == 1


def test_a_lane_that_has_grown_past_its_bound_ends_to_be_started_afresh(
    make_lane: MakeLane, caplog: pytest.LogCaptureFixture
) -> None:
    """DESIGN 12: it may exit cleanly to be restarted past a bound."""
    lane = make_lane(memory_bound=1)
    with caplog.at_level(logging.WARNING, "lanes.lane"), lane.running():
        until(lambda: lane.lane.stopping, lambda: "the Lane runs on")
    assert "ends to be started afresh" in caplog.text
