"""A URL that the owner tries, as its Site sees it: in turn, at the pace of a Poll, and nothing of it stored but its requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from lanes.core.chapters import Document, NotRecognised, Reading
from lanes.core.claim import LEASE
from lanes.core.outcome import AskedToWait, Blocked, Disallowed, Failed, Read, Refused
from lanes.fetch.guard import Guard
from lanes.fetch.http import Http
from lanes.sites import FEEDS, Site
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from lanes.store.trying import Shut, TryStore
from lanes.trying import Tried, Trier
from tests.fix_lane import AGENT, LaneAtWork, MakeLane
from tests.smallnet import ALLOWED, Smallnet, redirect, status
from tests.wire.comics import Seen, comics, open_at, titles_of

SLACK = 0.05
"""Seconds by which the scheduling of two threads may move an arrival."""
NO_PATIENCE = timedelta(0)

MakeTrier = Callable[..., Trier]


@pytest.fixture
def trier(net: Smallnet, database_url: str) -> Iterator[MakeTrier]:
    """Makes the owner's `lanes try` of a Site, `feeds` unless another is given."""
    with ExitStack() as stack:

        def make(site: Site = FEEDS) -> Trier:
            database = Database(database_url, application="the owner tries")
            http = Http(AGENT, Guard([str(ALLOWED)], net.resolver))
            stack.callback(database.close)
            stack.callback(http.close)
            rows = TryStore(database, site.name, "machine-1", gap=site.gap, browser=False)
            return Trier(
                site, rows, PollStore(database, site.name, "machine-1", many_hosts=site.many_hosts), http, LEASE
            )

        yield make


def meaning(tried: Tried | Shut) -> object:
    assert isinstance(tried, Tried), tried
    return tried.judged.meaning


def stored(lane: LaneAtWork) -> tuple[int, ...]:
    """How many Series, Chapters and Notices there are."""
    row = lane.one(
        "SELECT (SELECT count(*) FROM lanes.series) AS s, (SELECT count(*) FROM lanes.chapters) AS c, "
        "(SELECT count(*) FROM lanes.notices) AS n"
    )
    return (row.s, row.c, row.n)


def test_what_is_tried_is_read_and_nothing_of_it_is_stored_but_its_request(
    net: Smallnet, lane: LaneAtWork, trier: MakeTrier
) -> None:
    host = net.host("127.1.0.5")
    host.feed("/feed", ["Two", "One"])
    lane.has_no_robots(host.url())
    tried = trier().attempt(host.url("/feed"), NO_PATIENCE)
    assert isinstance(meaning(tried), Read)
    assert isinstance(tried, Tried)
    assert isinstance(tried.reading, Document)
    assert sorted(item.title for item in tried.reading.items) == ["One", "Two"]
    assert stored(lane) == (0, 0, 0)
    (record,) = lane.all("SELECT * FROM lanes.polls")
    assert (record.series_id, record.trigger, record.outcome, record.status) == (0, "tried", "unchanged", 200)
    row = lane.host("127.1.0.5")
    assert row.busy_token is None
    assert row.next_at >= record.sent_at + timedelta(seconds=1)


def test_beside_a_running_lane_what_is_tried_never_comes_closer_than_the_gap(
    net: Smallnet, make_lane: MakeLane, trier: MakeTrier
) -> None:
    hosts = net.many(2)
    site = comics(*(host.address for host in hosts), gap=1)
    lane = make_lane(site=site, slots=1)
    for host in hosts:
        titles_of(host, lane, 3)
    one = trier(site)
    with lane.running():
        net.wait_for_visits(1)
        for host in hosts:
            assert isinstance(meaning(one.attempt(host.url("/0"), timedelta(seconds=60))), Read)
        net.wait_for_visits(5)
    arrivals = [visit.arrived for visit in net.record]
    assert all(later - earlier >= 1 - SLACK for earlier, later in pairwise(arrivals))
    assert len(lane.all("SELECT FROM lanes.polls WHERE trigger = 'tried' AND sent_at IS NOT NULL")) == 2


def test_where_no_lane_ever_ran_the_gap_of_the_registry_is_obeyed_and_spent(
    net: Smallnet, lane: LaneAtWork, trier: MakeTrier
) -> None:
    host = net.host("127.1.0.5")
    host.feed("/0", ["One"])
    site = comics(host.address, gap=10)
    lane.has_no_robots(host.url(), site)
    one = trier(site)
    assert isinstance(meaning(one.attempt(host.url("/0"), NO_PATIENCE)), Read)
    again = one.attempt(host.url("/0"), NO_PATIENCE)
    assert isinstance(again, Shut)
    assert again.reason == "the Gap of its Site"
    assert again.wait is not None
    assert timedelta(seconds=9) < again.wait <= timedelta(seconds=10)
    assert len(net.record) == 1
    lane.move_to(lane.one("SELECT next_at FROM lanes.lanes WHERE site = 'comics'").next_at)
    assert isinstance(meaning(one.attempt(host.url("/0"), NO_PATIENCE)), Read)


def test_where_another_site_has_series_nothing_is_tried_for_the_wrong_gap_would_be_spent(
    net: Smallnet, lane: LaneAtWork, trier: MakeTrier
) -> None:
    host = net.host("127.1.0.5")
    lane.follow(host.url("/feed"))
    shut = trier(comics(host.key, gap=10)).attempt(host.url("/comic"), timedelta(seconds=1))
    assert isinstance(shut, Shut)
    assert "belongs to the Site feeds" in shut.reason
    assert not net.record.finished


def test_what_was_tried_spends_the_gap_of_the_lane_that_polls_next(
    net: Smallnet, make_lane: MakeLane, trier: MakeTrier
) -> None:
    host = net.host("127.1.0.5")
    lane = make_lane(site=comics(host.address, gap=10), slots=1)
    seen = Seen(net, lane)
    titles_of(host, lane, 1)
    lane.run_once()
    seen.look()
    open_at(lane)
    assert isinstance(meaning(trier(lane.site).attempt(host.url("/0"), NO_PATIENCE)), Read)
    seen.look()
    lane.check_now("series-1")
    assert lane.run_once() == 0
    open_at(lane)
    assert lane.run_once() == 1
    seen.look()
    assert min(seen.spacings()) >= 10 - SLACK


@pytest.mark.parametrize(
    ("statement", "reason", "ends"),
    [
        ("UPDATE lanes.lanes SET paused_at = lanes.now()", "the Lane is paused", False),
        ("UPDATE lanes.lanes SET refused_until = lanes.now() + '15 minutes'", "the Site refuses", True),
        ("UPDATE lanes.lanes SET switched_off = true", "polling is switched off", False),
        (
            "UPDATE lanes.hosts SET not_before = lanes.now() + '1 hour', not_before_reason = 'the owner blocked it'",
            "the owner blocked it",
            True,
        ),
        ("UPDATE lanes.machines SET us_since = lanes.now()", "our own line is down: one Poll a minute", False),
        ("UPDATE lanes.clock SET latest_seen = lanes.now() + '10 seconds'", "the clock went back, which the next", False),
    ],
)  # fmt: skip
def test_a_gate_that_is_closed_to_a_poll_is_closed_to_the_owner_too(
    net: Smallnet, make_lane: MakeLane, trier: MakeTrier, statement: str, reason: str, ends: bool
) -> None:
    host = net.host("127.1.0.5")
    lane = make_lane(site=comics(host.address, gap=10), slots=1)
    titles_of(host, lane, 1)
    lane.tell(statement)
    shut = trier(lane.site).attempt(host.url("/0"), timedelta(seconds=30))
    assert isinstance(shut, Shut)
    assert shut.reason.startswith(reason)
    assert (shut.until is not None) is ends
    assert not net.record


def test_a_line_that_is_down_holds_what_is_tried_on_its_machine_alone_and_leaves_the_probe_to_a_poll(
    net: Smallnet, make_lane: MakeLane, trier: MakeTrier
) -> None:
    host = net.host("127.1.0.5")
    lane = make_lane("machine-2", site=comics(host.address, gap=10), slots=1)
    titles_of(host, lane, 1)
    one = trier(lane.site)
    lane.tell("INSERT INTO lanes.machines (machine, us_since, probe_at) VALUES ('machine-1', lanes.now(), lanes.now())")
    assert isinstance(one.attempt(host.url("/0"), NO_PATIENCE), Shut)
    assert lane.one("SELECT probe_at <= lanes.now() AS free FROM lanes.machines WHERE machine = 'machine-1'").free
    lane.tell("UPDATE lanes.machines SET us_since = CASE machine WHEN 'machine-2' THEN lanes.now() END")
    assert isinstance(meaning(one.attempt(host.url("/0"), NO_PATIENCE)), Read)
    assert len(net.record) == 1


def test_robots_txt_is_asked_first_and_keeps_a_page_from_being_tried(
    net: Smallnet, lane: LaneAtWork, trier: MakeTrier
) -> None:
    host = net.host("127.1.0.5")
    host.robots("User-agent: *\nDisallow: /private")
    host.feed("/private/0", ["One"])
    host.feed("/public/0", ["One"])
    site = replace(comics(host.address, gap=1), feed=False)
    told: list[str] = []
    one = trier(site)
    one._told = lambda reason, _: told.append(reason)
    assert isinstance(meaning(one.attempt(host.url("/private/0"), timedelta(seconds=30))), Disallowed)
    assert isinstance(meaning(one.attempt(host.url("/public/0"), timedelta(seconds=30))), Read)
    assert [visit.path for visit in net.record] == ["/robots.txt", "/public/0"]
    assert told == ["the Gap of its Site"]
    arrivals = [visit.arrived for visit in net.record]
    assert arrivals[1] - arrivals[0] >= 1 - SLACK


def test_the_url_is_asked_once_however_long_the_gap_keeps_it_after_its_robots_txt(
    net: Smallnet, lane: LaneAtWork, trier: MakeTrier
) -> None:
    host = net.host("127.1.0.5")
    host.robots("User-agent: *\nCrawl-delay: 7")
    host.feed("/0", ["One"])
    tried = trier(replace(comics(host.address, gap=1), feed=False)).attempt(host.url("/0"), timedelta(seconds=30))
    assert isinstance(meaning(tried), Read)
    assert [visit.path for visit in net.record] == ["/robots.txt", "/0"]
    arrivals = [visit.arrived for visit in net.record]
    assert arrivals[1] - arrivals[0] >= 7 - SLACK


def test_a_redirect_is_followed_at_the_pace_of_each_host(net: Smallnet, lane: LaneAtWork, trier: MakeTrier) -> None:
    host, other = net.many(2)
    host.script("/0", redirect(other.url("/1"), 302))
    other.feed("/1", ["One"])
    for each in (host, other):
        lane.has_no_robots(each.url())
    lane.tell("UPDATE lanes.hosts SET next_at = lanes.now() + '6 seconds' WHERE name = %s", other.address)
    tried = trier().attempt(host.url("/0"), timedelta(seconds=30))
    assert isinstance(meaning(tried), Read)
    assert [visit.path for visit in net.record] == ["/0", "/1"]
    arrivals = [visit.arrived for visit in net.record]
    assert arrivals[1] - arrivals[0] >= 5.5
    assert [row.outcome for row in lane.all("SELECT outcome FROM lanes.polls ORDER BY claimed_at, hop")] == [
        "put back",
        "unchanged",
    ]


def test_a_wait_that_the_host_asks_for_holds_its_lane(net: Smallnet, make_lane: MakeLane, trier: MakeTrier) -> None:
    """CASES B6: Retry-After is obeyed by the next request of any process."""
    host = net.host("127.1.0.5")
    lane = make_lane(site=comics(host.address, gap=1), slots=1)
    (key,) = titles_of(host, lane, 1)
    host.script("/tried", status(429, headers={"Retry-After": "3600"}))
    tried = trier(lane.site).attempt(host.url("/tried"), NO_PATIENCE)
    assert isinstance(meaning(tried), AskedToWait)
    row = lane.host(host.address)
    assert row.not_before > lane.now() + timedelta(minutes=59)
    lane.move_to(lane.now() + timedelta(minutes=50))
    assert lane.run_once() == 0
    lane.move_to(row.not_before)
    assert lane.run_once() == 1
    assert lane.outcomes(key) == ["new"]


def test_a_wait_of_one_url_is_that_of_the_series_followed_there(
    net: Smallnet, make_lane: MakeLane, trier: MakeTrier
) -> None:
    host = net.host("127.1.0.5")
    lane = make_lane(site=comics(host.address, gap=1), slots=1)
    one, two = titles_of(host, lane, 2)
    host.script("/0", status(503, headers={"Retry-After": "600"}))
    assert meaning(trier(lane.site).attempt(host.url("/0"), NO_PATIENCE)) == AskedToWait(
        "503 unavailable", whole_host=False
    )
    assert lane.series(one).not_before > lane.now() + timedelta(minutes=9)
    assert lane.series(two).not_before is None
    assert lane.series(one).failures == 0


def test_an_error_slows_its_host_and_a_good_answer_speeds_nothing(
    net: Smallnet, lane: LaneAtWork, trier: MakeTrier
) -> None:
    host = net.host("127.1.0.5")
    lane.has_no_robots(host.url())
    host.script("/broken", status(500))
    host.feed("/feed", ["One"])
    failed = meaning(trier().attempt(host.url("/broken"), NO_PATIENCE))
    assert isinstance(failed, Failed)
    assert failed.detail == "500 from the server"
    assert lane.host(host.address).pace == timedelta(seconds=2)
    lane.move_to(lane.host(host.address).next_at)
    assert isinstance(meaning(trier().attempt(host.url("/feed"), NO_PATIENCE)), Read)
    assert lane.host(host.address).pace == timedelta(seconds=2)


def test_a_refused_try_stops_no_lane_and_is_no_failure_of_a_series(
    net: Smallnet, make_lane: MakeLane, trier: MakeTrier
) -> None:
    host = net.host("127.1.0.5")
    lane = make_lane(site=comics(host.address, gap=1), slots=1)
    (key,) = titles_of(host, lane, 1)
    host.script("*", status(403))
    for path in ("/0", "/1"):
        assert isinstance(meaning(trier(lane.site).attempt(host.url(path), timedelta(seconds=30))), Refused)
    assert lane.one("SELECT refused_until FROM lanes.lanes WHERE site = 'comics'").refused_until is None
    assert (lane.series(key).failures, lane.series(key).refusals) == (0, 0)


def test_an_address_that_is_not_public_is_never_dialled(net: Smallnet, lane: LaneAtWork, trier: MakeTrier) -> None:
    """CASES E5."""
    assert isinstance(meaning(trier().attempt("http://127.200.0.1/feed", NO_PATIENCE)), Blocked)
    assert not net.record.dials


def test_a_reader_that_raises_is_told_with_its_line_and_lets_the_host_go(
    net: Smallnet, lane: LaneAtWork, trier: MakeTrier
) -> None:
    def read(*_: object) -> Reading:
        raise KeyError("chapters")

    host = net.host("127.1.0.5")
    host.feed("/0", ["One"])
    site = replace(comics(host.address, gap=1), read=read)
    lane.has_no_robots(host.url(), site)
    failed = meaning(trier(site).attempt(host.url("/0"), NO_PATIENCE))
    assert isinstance(failed, Failed)
    assert failed.detail.startswith("its reader failed: KeyError: 'chapters' (")
    assert "test_trying.py, line " in failed.detail
    assert lane.host(host.address).busy_token is None


def test_a_page_where_a_feed_was_tried_is_not_recognised(net: Smallnet, lane: LaneAtWork, trier: MakeTrier) -> None:
    host = net.host("127.1.0.5")
    host.page("/", "<html><title>A blog</title></html>")
    lane.has_no_robots(host.url())
    tried = trier().attempt(host.url("/"), NO_PATIENCE)
    assert isinstance(meaning(tried), Failed)
    assert isinstance(tried, Tried)
    assert isinstance(tried.reading, NotRecognised)
