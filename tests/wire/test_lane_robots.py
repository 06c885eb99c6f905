"""robots.txt as the Sites see it: asked first and seldom, its crawl delay kept, its word about pages obeyed."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
import trustme

from lanes.core.outcome import Label
from lanes.fetch.limits import LIMITS
from lanes.sites import FEEDS
from tests.fix_lane import LaneAtWork, MakeLane, Row
from tests.smallnet import AS_USUAL, Host, Smallnet, Step, endless, never, ok, redirect, reset, status

SLACK = 0.05
"""Seconds by which two processes' scheduling may move an arrival."""
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ROBOTS = "/robots.txt"
FORBIDDING = "User-agent: *\nDisallow: /\n"
PAGES = replace(FEEDS, name="pages", many_hosts=False, feed=False, gap=timedelta(seconds=1), slots=1)
"""A Site of one host, whose documents are pages."""
AUTHORITY = trustme.CA()
"""Signs for this run alone."""


@pytest.fixture
def pages(make_lane: MakeLane) -> LaneAtWork:
    """The Lane of a Site of one host."""
    return make_lane(site=PAGES)


def a_host(net: Smallnet, robots: str | bytes | None = None) -> Host:
    """A host with a feed; `robots` None: its robots.txt is 404."""
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One"])
    if robots is not None:
        host.robots(robots)
    return host


def asked(net: Smallnet) -> list[str]:
    return [visit.path for visit in net.record]


def poll_after(lane: LaneAtWork, key: str, span: timedelta) -> Row:
    """Polls a Series once that much time has passed."""
    lane.move_to(lane.now() + span)
    return lane.poll(key)


def spacings(rows: list[Row]) -> list[timedelta]:
    """From one written request to the next, as Postgres' clock has it."""
    sents = [row.sent_at for row in rows if row.sent_at is not None]
    return [later - earlier for earlier, later in pairwise(sents)]


def test_robots_is_asked_first_and_its_delay_binds_the_very_next_request(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES B8."""
    split = b"\xef\xbb\xbfUser-agent: lanes\nCrawl-delay: 2.5\n\nUser-agent:\nDisallow: /feed\n\nUser-agent: Lanes\nDisallow: /x\n"
    host = a_host(net, split)
    host.feed("/other", ["One"])
    keys = [lane.follow(host.url(path), robots=True) for path in ("/feed", "/other")]
    with lane.running():
        net.wait_for_visits(3, host)
        for key in keys:
            lane.wait_for("SELECT FROM lanes.series WHERE key = %s AND good_at IS NOT NULL", key)
    assert asked(net)[0] == ROBOTS
    assert sorted(asked(net)) == ["/feed", "/other", ROBOTS]
    assert not net.record.spacing_offences(2.5, host, slack=SLACK)
    assert lane.host("127.1.0.5").crawl_delay == timedelta(seconds=2.5)


def test_robots_is_asked_once_a_day_whoever_polls(net: Smallnet, make_lane: MakeLane) -> None:
    lane, other = make_lane("machine-1"), make_lane("machine-2")
    key = lane.follow(a_host(net, "User-agent: *\nDisallow: /private\n").url(), robots=True)
    assert lane.poll(key).outcome == "new"
    other.poll(key)
    lane.poll(key)
    assert asked(net) == [ROBOTS, "/feed", "/feed", "/feed"]
    poll_after(other, key, DAY)
    poll_after(lane, key, HOUR)
    assert asked(net)[4:] == [ROBOTS, "/feed", "/feed"]


def test_the_request_for_robots_is_in_the_poll_record(net: Smallnet, lane: LaneAtWork) -> None:
    key = lane.follow(a_host(net, "User-agent: *\nCrawl-delay: 2\n").url(), robots=True)
    lane.poll(key)
    robots, own = lane.polls(key)
    assert [(row.outcome, row.status, row.hop) for row in (robots, own)] == [("robots", 200, 0), ("new", 200, 1)]
    assert (robots.claimed_at, robots.token) == (own.claimed_at, own.token)
    assert [row.host_pace.total_seconds() for row in (robots, own)] == [1, 2]
    assert own.sent_at - robots.sent_at >= timedelta(seconds=2)
    assert robots.wire_bytes > 0


def test_a_long_delay_puts_the_poll_back_and_counts_nothing(net: Smallnet, lane: LaneAtWork) -> None:
    key = lane.follow(a_host(net, "User-agent: *\nCrawl-delay: 120\n").url(), robots=True)
    assert lane.poll(key).outcome == "put back"
    row = lane.series(key)
    assert (row.failures, row.lease_token) == (0, None)
    assert timedelta(seconds=110) < row.retry_at - lane.now() <= timedelta(seconds=120)
    for _ in range(3):
        lane.poll(key)
    assert lane.outcomes(key) == ["robots", "put back", "new", "unchanged", "unchanged"]
    assert min(spacings(lane.polls(key))) >= timedelta(seconds=120)
    assert asked(net) == [ROBOTS, "/feed", "/feed", "/feed"]


def test_no_delay_is_longer_than_an_hour(net: Smallnet, lane: LaneAtWork) -> None:
    key = lane.follow(a_host(net, "User-agent: *\nCrawl-delay: 86400\n").url(), robots=True)
    lane.poll(key)
    assert lane.host("127.1.0.5").crawl_delay == HOUR
    assert lane.poll(key).outcome == "new"
    assert min(spacings(lane.polls(key))) >= HOUR


def test_a_relaxed_robots_brings_the_host_back_to_its_own_interval_within_a_day(
    net: Smallnet, lane: LaneAtWork
) -> None:
    """CASES B9."""
    host = a_host(net, "User-agent: *\nCrawl-delay: 30\n")
    key = lane.follow(host.url(), robots=True)
    lane.poll(key)
    lane.poll(key)
    host.robots("User-agent: *\nDisallow:\n")
    assert poll_after(lane, key, HOUR).host_pace == timedelta(seconds=30)
    poll_after(lane, key, DAY - HOUR)
    assert lane.host("127.1.0.5").crawl_delay is None
    lane.poll(key)
    assert lane.polls(key)[-1].host_pace == timedelta(seconds=1)


@pytest.fixture
def secure_net() -> Iterator[Smallnet]:
    """The https side of the same addresses."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert("a.test").configure_cert(server)
    with Smallnet(tls=server) as net:
        yield net


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    AUTHORITY.configure_trust(context)
    return context


@pytest.mark.parametrize("robots_moves", [False, True], ids=["robots stays", "robots moves as well"])
def test_a_hop_to_https_at_a_host_with_a_long_delay_is_polled_later_and_then_asked_directly(
    net: Smallnet, secure_net: Smallnet, make_lane: MakeLane, robots_moves: bool
) -> None:
    """CASES B13."""
    lane = make_lane(tls=trusting())
    plain, secure = net.host("127.1.0.5", "a.test"), secure_net.host("127.1.0.5", "a.test")
    plain.script("/feed", redirect(secure.url("/feed"), 301))
    secure.feed("/feed", ["One"])
    for host in (plain, secure):
        host.robots("User-agent: *\nCrawl-delay: 60\n")
    if robots_moves:
        plain.script(ROBOTS, redirect(secure.url(ROBOTS), 301))
        lane.follow(plain.url("/unrelated"))
        lane.tell("UPDATE lanes.hosts SET crawl_delay = '60 seconds'")
        lane.tell("UPDATE lanes.robots SET again_at = lanes.now()")
    key = lane.follow(plain.url("/feed"), robots=True)
    lane.tell("UPDATE lanes.series SET paused_at = lanes.now() WHERE key <> %s", key)
    for _ in range(8):
        lane.poll(key)
    record = lane.polls(key)
    assert {row.outcome for row in record} == {"robots", "put back", "new", "unchanged"}
    assert min(spacings(record)) >= timedelta(seconds=60)
    assert (lane.series(key).failures, lane.series(key).retired_at) == (0, None)
    assert lane.series(key).url == secure.url("/feed")
    assert asked(net) == [ROBOTS, "/feed"]
    robots_of_secure = 2 if robots_moves else 1
    assert asked(secure_net).count(ROBOTS) == robots_of_secure
    assert asked(secure_net).count("/feed") >= 3


@pytest.mark.parametrize("code", [400, 401, 403, 404, 410, 451])
def test_no_robots_allows_everything_and_names_no_delay(net: Smallnet, pages: LaneAtWork, code: int) -> None:
    host = a_host(net)
    host.script(ROBOTS, status(code, FORBIDDING + "Crawl-delay: 60\n"))
    key = pages.follow(host.url(), robots=True, site=PAGES)
    assert pages.poll(key).outcome == "new"
    assert pages.host("127.1.0.5").crawl_delay is None
    assert pages.series(key).refusals == 0


SILENCES: dict[str, Callable[[], Step]] = {"500": lambda: status(500), "503": lambda: status(503), "a reset": reset}


@pytest.mark.parametrize("silence", SILENCES)
def test_a_feed_waits_for_no_robots_that_gives_no_answer(net: Smallnet, lane: LaneAtWork, silence: str) -> None:
    host = a_host(net)
    host.script(ROBOTS, SILENCES[silence]())
    key = lane.follow(host.url(), robots=True)
    assert lane.poll(key).outcome == "new"
    lane.poll(key)
    assert asked(net) == [ROBOTS, "/feed", "/feed"]
    poll_after(lane, key, HOUR)
    assert asked(net)[3:] == [ROBOTS, "/feed"]
    assert lane.series(key).failures == 0


def test_a_host_whose_robots_never_ends_answering_still_has_its_feed_polled(net: Smallnet, make_lane: MakeLane) -> None:
    lane = make_lane(limits=replace(LIMITS, read=1.0))
    host = a_host(net)
    host.script(ROBOTS, never())
    key = lane.follow(host.url(), robots=True)
    assert lane.poll(key).outcome == "new"


def test_a_robots_without_end_is_cut_and_what_came_first_holds(net: Smallnet, lane: LaneAtWork) -> None:
    host = a_host(net)
    host.script(ROBOTS, replace(endless(), status=200))
    key = lane.follow(host.url(), robots=True)
    assert lane.poll(key).outcome == "new"
    assert lane.polls(key)[0].wire_bytes < 2 * 2**20
    long = b"User-agent: *\nCrawl-delay: 2\n" + b"# a long comment\n" * 40_000 + b"Crawl-delay: 99\n"
    host.script(ROBOTS, ok(long, "text/plain"))
    poll_after(lane, key, DAY)
    assert lane.host("127.1.0.5").crawl_delay == timedelta(seconds=2)
    assert lane.outcomes(key) == ["robots", "new", "robots", "unchanged"]


@pytest.mark.parametrize(("code", "wait"), [(429, 1_500), (503, 1_500), (429, None)])
def test_a_robots_that_asks_to_wait_holds_its_host(
    net: Smallnet, lane: LaneAtWork, code: int, wait: int | None
) -> None:
    host = a_host(net)
    host.script(ROBOTS, [status(code) if wait is None else status(code, retry_after=wait), AS_USUAL])
    key = lane.follow(host.url(), robots=True)
    other = lane.follow(host.url("/other"), robots=True)
    lane.tell("UPDATE lanes.series SET retry_at = lanes.now() + '1 hour', retry_reason = 'later' WHERE key = %s", other)
    assert lane.poll(key).outcome == "put back"
    lane.tell("UPDATE lanes.series SET retry_at = NULL, retry_reason = NULL WHERE key = %s", other)
    span = timedelta(seconds=wait or 90)
    held = lane.polls(key)[0].host_wait_until
    assert lane.host("127.1.0.5").not_before == held
    assert span - timedelta(seconds=5) < held - lane.now() <= span
    lane.check_now(other)
    lane.move_to(lane.now() + span - timedelta(seconds=10))
    assert lane.run_once() == 0
    assert asked(net) == [ROBOTS]
    lane.unbookmark(other)
    lane.poll(key)
    assert lane.outcomes(key) == ["robots", "put back", "new"]
    assert lane.series(key).failures == 0


def test_a_disallowed_feed_is_polled_all_the_same(net: Smallnet, lane: LaneAtWork) -> None:
    key = lane.follow(a_host(net, FORBIDDING).url(), robots=True)
    assert lane.poll(key).outcome == "new"


def test_a_disallowed_page_is_not_used_to_discover_its_feed_until_it_is_allowed(
    net: Smallnet, lane: LaneAtWork
) -> None:
    host = a_host(net, FORBIDDING)
    host.page("/", '<link rel="alternate" type="application/rss+xml" href="/feed">')
    key = lane.follow(host.url("/"), robots=True)
    record = lane.poll(key)
    assert (record.outcome, record.detail) == (Label.DISALLOWED, "robots.txt does not allow it")
    row = lane.series(key)
    assert (row.failures, row.not_before_reason, row.url) == (0, "robots.txt does not allow it", host.url("/"))
    assert row.not_before - lane.now() > DAY - timedelta(minutes=1)
    host.robots("User-agent: *\nDisallow: /private\n")
    assert lane.poll(key).outcome == "feed found"
    assert lane.poll(key).outcome == "new"
    assert asked(net) == [ROBOTS, "/", ROBOTS, "/", "/feed"]


def test_discovery_waits_while_robots_has_never_answered(net: Smallnet, lane: LaneAtWork) -> None:
    host = a_host(net)
    host.script(ROBOTS, [status(500), AS_USUAL])
    host.page("/", '<link rel="alternate" type="application/rss+xml" href="/feed">')
    key = lane.follow(host.url("/"), robots=True)
    record = lane.poll(key)
    assert (record.outcome, record.detail) == ("put back", "robots.txt gave no answer: status 500")
    assert lane.series(key).failures == 0
    assert lane.poll(key).outcome == "feed found"


def test_a_disallowed_page_is_never_asked_for(net: Smallnet, pages: LaneAtWork) -> None:
    host = a_host(net, "User-agent: Lanes\nDisallow: /feed\n")
    host.feed("/other", ["Two"])
    key = pages.follow(host.url(), robots=True, site=PAGES)
    other = pages.follow(host.url("/other"), robots=True, site=PAGES)
    pages.run_once()
    for _ in range(3):
        pages.move_to(pages.now() + 2 * HOUR)
        pages.run_once()
    assert "/feed" not in asked(net)
    assert pages.outcomes(key)[-1] == Label.DISALLOWED
    assert [row.outcome for row in pages.polls(key)].count(Label.DISALLOWED) == 1
    assert asked(net).count("/other") >= 2
    assert pages.series(key).not_before_reason == "robots.txt does not allow it"
    assert pages.series(key).failures == 0
    assert pages.outcomes(other)[-1] == "unchanged"
    host.robots("User-agent: Lanes\nDisallow:\n")
    pages.move_to(pages.now() + DAY)
    pages.run_once()
    assert pages.outcomes(key)[-1] == "new"


def test_pages_wait_for_a_robots_that_never_answered_for_thirty_days_at_most(net: Smallnet, pages: LaneAtWork) -> None:
    host = a_host(net)
    host.script(ROBOTS, status(500))
    key = pages.follow(host.url(), robots=True, site=PAGES)
    pages.run_once()
    for _ in range(3):
        pages.move_to(pages.open_at(key))
        pages.run_once()
    assert asked(net) == [ROBOTS] * 4
    row = pages.series(key)
    assert (row.failures, row.retry_reason) == (0, "robots.txt gave no answer: status 500")
    assert min(spacings(pages.polls(key))) >= HOUR
    pages.move_to(pages.now() + 30 * DAY)
    pages.run_once()
    assert pages.outcomes(key)[-1] == "new"
    assert pages.chapters(key)


@pytest.mark.parametrize(
    ("asked_of", "cause"),
    [
        (status(500), "status 500"),
        (reset(), "reset: 127.1.0.5: "),
        (never(), "timeout: 127.1.0.5: "),
        (endless().with_headers({"Content-Encoding": "gzip"}), "encoding: "),
    ],
)
def test_a_page_that_waits_for_robots_and_the_record_of_that_request_name_the_cause(
    net: Smallnet, make_lane: MakeLane, asked_of: Step, cause: str
) -> None:
    lane = make_lane(site=PAGES, limits=replace(LIMITS, read=0.3))
    host = a_host(net)
    host.script(ROBOTS, asked_of)
    key = lane.follow(host.url(), robots=True, site=PAGES)
    lane.run_once()
    (asked, put_back) = lane.polls(key)
    assert (asked.outcome, put_back.outcome) == (Label.ROBOTS, "put back")
    assert asked.detail.startswith(cause)
    assert put_back.detail == f"robots.txt gave no answer: {asked.detail}"
    assert lane.series(key).retry_reason == put_back.detail


def told_to_wait(lane: LaneAtWork, url: str) -> str:
    """Why a page at that URL waits, by its row and by its record, which agree."""
    key = lane.follow(url, robots=True, site=PAGES)
    lane.move_to(lane.now() + timedelta(minutes=1))
    lane.run_once()
    reason: str = lane.series(key).retry_reason
    assert lane.polls(key)[-1].detail == reason
    return reason


def test_where_nobody_could_be_asked_for_robots_the_cause_is_named_too(net: Smallnet, pages: LaneAtWork) -> None:
    nameless, down = net.host("127.1.0.6", "nameless.test"), a_host(net)
    net.resolver.fail(socket.EAI_NONAME, "nameless.test")
    down.down()
    said = "robots.txt gave no answer: "
    assert told_to_wait(pages, nameless.url()).startswith(f"{said}dns: nameless.test: ")
    assert told_to_wait(pages, down.url()).startswith(f"{said}connect: 127.1.0.5: ")


def test_a_certificate_that_nobody_trusts_is_named_where_it_keeps_robots_away(
    net: Smallnet, secure_net: Smallnet, pages: LaneAtWork
) -> None:
    net.host("127.1.0.5", "a.test")
    host = secure_net.host("127.1.0.5", "a.test")
    assert told_to_wait(pages, host.url()).startswith("robots.txt gave no answer: tls: a.test: TLS: ")


def test_who_comes_after_a_silent_robots_is_told_its_cause_without_asking_again(
    net: Smallnet, pages: LaneAtWork
) -> None:
    host = a_host(net)
    host.script(ROBOTS, status(500))
    first = pages.follow(host.url(), robots=True, site=PAGES)
    second = pages.follow(host.url("/other"), robots=True, site=PAGES)
    for _ in range(2):
        pages.run_once()
        pages.move_to(pages.now() + timedelta(minutes=2))
    assert asked(net) == [ROBOTS]
    reasons = {pages.series(key).retry_reason for key in (first, second)}
    assert reasons == {"robots.txt gave no answer: status 500"}


def test_pages_go_on_by_the_last_copy_while_robots_is_silent(net: Smallnet, pages: LaneAtWork) -> None:
    host = a_host(net, "User-agent: *\nDisallow: /private\n")
    host.feed("/private", ["Two"])
    key = pages.follow(host.url(), robots=True, site=PAGES)
    pages.run_once()
    host.script(ROBOTS, status(500))
    pages.move_to(pages.now() + 2 * DAY)
    private = pages.follow(host.url("/private"), robots=True, site=PAGES)
    for _ in range(3):
        pages.run_once()
        pages.move_to(pages.now() + timedelta(minutes=2))
    assert pages.outcomes(key)[-1] == "unchanged"
    assert pages.outcomes(private)[-1] == Label.DISALLOWED
    assert "/private" not in asked(net)


def test_a_robots_that_moves_to_another_host_is_followed_there(net: Smallnet, lane: LaneAtWork) -> None:
    host, other = a_host(net), net.host("127.1.0.6")
    host.script(ROBOTS, redirect(other.url(ROBOTS), 302))
    other.robots("User-agent: *\nCrawl-delay: 2\n")
    key = lane.follow(host.url(), robots=True)
    assert lane.poll(key).outcome == "new"
    assert [(row.host, row.outcome) for row in lane.polls(key)] == [
        ("127.1.0.5", "robots"),
        ("127.1.0.6", "robots"),
        ("127.1.0.5", "new"),
    ]
    assert lane.host("127.1.0.5").crawl_delay == timedelta(seconds=2)
    assert lane.host("127.1.0.6").crawl_delay is None
    assert not net.record.spacing_offences(2.0, host, slack=SLACK)


def test_a_robots_whose_next_host_is_closed_goes_on_there_later(net: Smallnet, lane: LaneAtWork) -> None:
    host, other = a_host(net), net.host("127.1.0.6")
    host.script(ROBOTS, redirect(other.url(ROBOTS), 302))
    other.robots("User-agent: *\nCrawl-delay: 2\n")
    other.feed("/feed", ["Two"])
    elsewhere = lane.follow(other.url())
    lane.poll(elsewhere)
    lane.tell("UPDATE lanes.hosts SET next_at = lanes.now() + '20 seconds' WHERE name = '127.1.0.6'")
    key = lane.follow(host.url(), robots=True)
    lane.run_once()
    assert lane.outcomes(key) == ["robots", "put back"]
    assert lane.poll(key).outcome == "new"
    assert [visit.path for visit in net.record.of(host)] == [ROBOTS, "/feed"]
    assert [visit.path for visit in net.record.of(other)].count(ROBOTS) == 1
    assert lane.host("127.1.0.5").crawl_delay == timedelta(seconds=2)
    row = lane.series(key)
    assert (row.queue_host_id, row.resume) == (row.host_id, None)


def test_a_robots_that_leads_in_a_circle_is_as_good_as_none(net: Smallnet, pages: LaneAtWork) -> None:
    host = a_host(net)
    host.script(ROBOTS, redirect(ROBOTS, 302))
    key = pages.follow(host.url(), robots=True, site=PAGES)
    assert pages.poll(key).outcome == "new"


def test_a_forbidden_address_is_not_even_asked_for_its_robots(net: Smallnet, lane: LaneAtWork) -> None:
    trap = net.host("127.2.0.9", forbidden=True)
    trap.feed("/feed", ["Secret"])
    key = lane.follow(trap.url(), robots=True)
    assert lane.poll(key).outcome == "blocked"
    assert not net.dialled("127.2.0.9")


def test_a_robots_request_carries_no_secret_of_its_series(net: Smallnet, lane: LaneAtWork) -> None:
    host = a_host(net)
    key = lane.follow(host.url().replace("http://", "http://me:secret@"), robots=True)
    lane.poll(key)
    robots, own = net.record.visits
    assert "authorization" not in robots.headers
    assert "authorization" in own.headers


def test_the_robots_of_a_redirects_target_is_asked_in_that_hosts_turn_and_binds(
    net: Smallnet, lane: LaneAtWork
) -> None:
    """Crawl delay always binds, also at a host that is only ever reached through another's redirects."""
    one, two = net.host("127.1.0.5"), net.host("127.1.0.6")
    two.robots("User-agent: *\nCrawl-delay: 30\n")
    lane.asks_robots.add(two.key)
    for path in ("/a", "/b"):
        one.script(path, redirect(two.url(path), 302))
        two.feed(path, [f"One of {path}"])
    keys = [lane.follow(one.url(path)) for path in ("/a", "/b")]
    for _ in range(6):
        lane.run_once()
        lane.move_to(lane.now() + timedelta(seconds=30))
    assert [lane.titles(key) for key in keys] == [["One of /a"], ["One of /b"]]
    there = [visit.path for visit in net.record.of(two)]
    assert there[0] == ROBOTS
    assert sorted(there[1:]) == ["/a", "/b"], "asked once for both, and nothing before it"
    sent = [row.sent_at for row in lane.polls() if row.host == two.key and row.sent_at is not None]
    assert min(later - earlier for earlier, later in pairwise(sorted(sent))) >= timedelta(seconds=30)
    assert [visit.path for visit in net.record.of(one)] == ["/a", "/b"], "a chain goes on where it was put back"


def test_a_page_that_a_redirect_led_to_is_not_used_for_discovery_where_its_own_origin_forbids_it(
    net: Smallnet, lane: LaneAtWork
) -> None:
    one, two = net.host("127.1.0.5"), net.host("127.1.0.6")
    two.robots("User-agent: *\nDisallow: /\n")
    lane.asks_robots.add(two.key)
    one.script("/", redirect(two.url("/"), 302))
    two.page("/", '<html><link rel="alternate" type="application/rss+xml" href="/feed"></html>')
    two.feed("/feed", ["One"])
    key = lane.follow(one.url("/"))
    outcomes = [lane.poll(key).outcome for _ in range(3) if lane.series(key).not_before is None]
    assert outcomes[-1] == "disallowed"
    assert lane.series(key).url == one.url("/")
