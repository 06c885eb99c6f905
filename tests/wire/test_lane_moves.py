"""Redirects, pages that name a feed, and addresses that are never dialled, through whole Polls."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest

from tests.fix_lane import LaneAtWork
from tests.smallnet import AS_USUAL, Request, Smallnet, Step, ok, redirect, status
from tests.wire.documents import chapters, rss

SLACK = 0.05
"""Seconds by which the scheduling of two threads may move an arrival."""


def test_a_permanent_move_to_a_maintenance_page_is_never_adopted(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES E1."""
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One"])
    host.page("/maintenance", "<html><title>Back tomorrow</title><p>We are moving house.</p>")
    host.script("/feed", [AS_USUAL, redirect("/maintenance"), redirect("/maintenance"), AS_USUAL])
    key = lane.follow(host.url("/feed"))
    for _ in range(4):
        lane.poll(key)
    assert lane.outcomes(key) == ["new", "failed", "failed", "unchanged"]
    assert lane.series(key).url == host.url("/feed")
    assert lane.series(key).failures == 0


def test_a_chain_with_a_temporary_hop_leaves_the_url_alone(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES E3."""
    host, other = net.host("127.1.0.5"), net.host("127.1.0.6")
    host.script("/feed", redirect(other.url("/b"), 302))
    other.script("/b", redirect("/c", 301))
    other.feed("/c", ["One"])
    key = lane.follow(host.url("/feed"))
    for _ in range(4):
        lane.poll(key)
        lane.move_to(lane.now() + timedelta(hours=13))
    assert lane.outcomes(key) == ["new", "unchanged", "unchanged", "unchanged"]
    assert lane.series(key).url == host.url("/feed")
    assert len(net.record.of(host, "/feed")) == 4


@pytest.mark.parametrize(
    "where", ["http://127.2.0.9:{port}/", "http://[::ffff:127.2.0.9]:{port}/", "http://trap.test:{port}/"]
)
def test_a_hop_to_a_forbidden_address_is_never_dialled(net: Smallnet, lane: LaneAtWork, where: str) -> None:
    """CASES E5."""
    host = net.host("127.1.0.5")
    trap = net.host("127.2.0.9", name="trap.test", forbidden=True)
    trap.feed("/", ["Secret"])
    host.script("/feed", redirect(where.format(port=net.port), 302))
    key = lane.follow(host.url("/feed"))
    record = lane.poll(key)
    assert record.outcome == "blocked"
    assert not net.dialled("127.2.0.9")
    assert lane.chapters(key) == []
    assert lane.series(key).url == host.url("/feed")
    assert lane.open_at(key) - lane.now() > timedelta(hours=23)


def test_a_hop_to_a_file_is_refused_at_that_hop(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES E5."""
    host = net.host("127.1.0.5")
    host.script("/feed", redirect("file:///etc/passwd", 302))
    key = lane.follow(host.url("/feed"))
    assert lane.poll(key).outcome == "failed"
    assert lane.chapters(key) == []
    assert len(net.record) == 1


def test_a_series_at_a_forbidden_address_is_never_dialled(net: Smallnet, lane: LaneAtWork) -> None:
    net.host("127.2.0.9", forbidden=True).feed("/feed", ["Secret"])
    key = lane.follow(f"http://127.2.0.9:{net.port}/feed")
    record = lane.poll(key)
    assert (record.outcome, record.sent_at) == ("blocked", None)
    assert not net.dialled("127.2.0.9")
    assert lane.series(key).failures == 0


def test_a_redirect_to_itself_is_a_loop_at_once(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES E6."""
    host = net.host("127.1.0.5")
    host.script("/feed", redirect("/feed", 307))
    key = lane.follow(host.url("/feed"))
    record = lane.poll(key)
    assert record.outcome == "failed"
    assert "loop" in record.detail
    assert len(net.record) == 1


def test_a_way_back_with_a_cookie_is_no_loop(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES E6."""
    host = net.host("127.1.0.5")
    host.feed("/real", ["One"])

    def first(request: Request) -> Step:
        return ok(host.feeds["/real"].body) if "seen=1" in request.headers.get("cookie", "") else redirect("/b", 302)

    host.answer_with("/a", first)
    host.script("/b", redirect("/a", 302, cookie="seen=1"))
    key = lane.follow(host.url("/a"))
    assert lane.poll(key).outcome == "new"
    assert [visit.path for visit in net.record] == ["/a", "/b", "/a"]
    assert not net.record.spacing_offences(1.0, host, slack=SLACK)


def test_a_chain_whose_next_host_is_closed_is_put_back_and_goes_on_from_there(net: Smallnet, lane: LaneAtWork) -> None:
    host, other = net.host("127.1.0.5"), net.host("127.1.0.6")
    host.script("/feed", redirect(other.url("/real"), 302, cookie="c=1"))
    other.feed("/real", ["One"])
    lane.follow(other.url("/unrelated"))
    lane.run_once()
    lane.tell("UPDATE lanes.hosts SET next_at = lanes.now() + '20 seconds' WHERE name = '127.1.0.6'")
    key = lane.follow(host.url("/feed"))
    lane.run_once()
    assert lane.outcomes(key) == ["put back"]
    row = lane.series(key)
    assert row.failures == 0
    assert timedelta(seconds=15) < row.retry_at - lane.now() <= timedelta(seconds=20)
    assert lane.one("SELECT name FROM lanes.hosts WHERE id = %s", row.queue_host_id).name == "127.1.0.6"
    assert lane.poll(key).outcome == "new"
    assert len(net.record.of(host, "/feed")) == 1
    assert len(net.record.of(other, "/real")) == 1
    row = lane.series(key)
    assert (row.queue_host_id, row.resume) == (row.host_id, None)


def test_where_to_go_on_is_forgotten_after_an_hour(net: Smallnet, lane: LaneAtWork) -> None:
    host, other = net.host("127.1.0.5"), net.host("127.1.0.6")
    host.script("/feed", redirect(other.url("/real"), 302))
    other.feed("/real", ["One"])
    lane.follow(other.url("/unrelated"))
    lane.run_once()
    lane.tell("UPDATE lanes.hosts SET next_at = lanes.now() + '2 hours' WHERE name = '127.1.0.6'")
    key = lane.follow(host.url("/feed"))
    lane.run_once()
    assert lane.poll(key).outcome == "new"
    assert len(net.record.of(host, "/feed")) == 2


def test_a_short_wait_at_a_hop_is_waited_out_and_keeps_the_hosts_interval(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", redirect("/b", 302))
    host.feed("/b", ["One"])
    key = lane.follow(host.url("/feed"))
    assert lane.poll(key).outcome == "new"
    assert not net.record.spacing_offences(1.0, host, slack=SLACK)
    assert not net.record.overlaps(host)


def test_a_permanent_hop_inside_a_host_with_a_long_delay_is_polled_later_and_then_asked_directly(
    net: Smallnet, lane: LaneAtWork
) -> None:
    """CASES B13 (a slash in the place of the other scheme)."""
    host = net.host("127.1.0.5")
    host.script("/feed", redirect("/feed/", 301))
    host.feed("/feed/", ["One"])
    key = lane.follow(host.url("/feed"))
    lane.tell("UPDATE lanes.hosts SET crawl_delay = '60 seconds'")
    assert lane.poll(key).outcome == "put back"
    assert lane.poll(key).outcome == "new"
    assert lane.series(key).failures == 0
    claims = [row.sent_at for row in lane.polls(key)]
    assert claims[1] - claims[0] >= timedelta(seconds=60)
    lane.poll(key)
    assert [visit.path for visit in net.record] == ["/feed", "/feed/", "/feed/"]


def test_more_than_ten_hops_are_a_failure(net: Smallnet, lane: LaneAtWork) -> None:
    hosts = net.many(12)
    for here, there in pairwise(hosts):
        here.script("/feed", redirect(there.url("/feed"), 302))
    hosts[-1].feed("/feed", ["One"])
    key = lane.follow(hosts[0].url("/feed"))
    assert lane.poll(key).outcome == "failed"
    assert len(net.record) == 11


def test_a_web_page_that_was_added_leads_to_the_feed_it_names(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    host.page("/", '<html><head><link rel="alternate" type="application/rss+xml" href="/feed"></head>')
    host.feed("/feed", ["One"])
    key = lane.follow(host.url("/"))
    assert lane.poll(key).outcome == "feed found"
    assert lane.series(key).url == host.url("/feed")
    assert lane.poll(key).outcome == "new"
    assert lane.titles(key) == ["One"]
    host.publish("/feed", "Two")
    lane.poll(key)
    assert lane.announced(key) == ["Two"]


def test_a_page_whose_feed_is_followed_already_retires_in_its_favour(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    host.page("/", '<link rel="alternate" type="application/rss+xml" href="/feed">')
    host.feed("/feed", ["One"])
    feed, page = lane.follow(host.url("/feed")), lane.follow(host.url("/"))
    lane.poll(feed)
    lane.poll(page)
    assert lane.series(page).retired_reason == f"moved to {feed}"
    assert lane.series(feed).bookmarks == 1


def test_a_web_page_that_names_no_feed_is_a_failure(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    host.page("/", "<html><title>Just words</title>")
    key = lane.follow(host.url("/"))
    assert lane.poll(key).outcome == "failed"


def test_a_gone_url_is_a_failure_and_not_yet_a_retirement(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES A6, its first half."""
    host = net.host("127.1.0.5")
    host.script("/feed", [status(410), ok(rss(chapters(1, 2)))])
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    assert (lane.series(key).retired_at, lane.series(key).failures) == (None, 1)
    lane.poll(key)
    assert (lane.series(key).gone_at, len(lane.chapters(key))) == (None, 2)
