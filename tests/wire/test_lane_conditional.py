"""Consecutive Polls of one Series: what is new, what is the same, and what goes back to the server."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.fix_lane import LaneAtWork
from tests.smallnet import Page, Request, Smallnet, Step, not_modified, ok, redirect, status
from tests.wire.documents import chapters, rss


def asked_with(net: Smallnet, path: str = "/feed") -> list[dict[str, str | None]]:
    """The validators of each request to a path."""
    names = ("if-none-match", "if-modified-since")
    return [{name: visit.headers.get(name) for name in names} for visit in net.record.of(path=path)]


def test_a_chapter_that_appears_is_found_once_and_announced(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One", "Two"])
    key = lane.follow(host.url("/feed"))
    assert lane.poll(key).outcome == "new"
    assert lane.titles(key) == ["One", "Two"]
    assert lane.announced(key) == []
    host.publish("/feed", "Three")
    record = lane.poll(key)
    assert (record.outcome, record.status, record.new_chapters) == ("new", 200, 1)
    assert lane.announced(key) == ["Three"]
    assert lane.poll(key).outcome == "unchanged"
    assert lane.titles(key) == ["One", "Three", "Two"]


def test_one_pass_polls_every_due_series_once_and_the_next_finds_nothing_to_do(net: Smallnet, lane: LaneAtWork) -> None:
    hosts = net.many(20)
    for host in hosts:
        host.feed("/feed", ["One"])
        lane.follow(host.url("/feed"))
    assert lane.run_once() == 20
    assert lane.run_once() == 0
    assert [len(net.record.of(host, "/feed")) for host in hosts] == [1] * 20


def test_an_unchanged_feed_is_asked_with_both_validators_and_answers_304(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One"])
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    rest = lane.series(key).rest
    record = lane.poll(key)
    first, second = asked_with(net)
    assert (record.outcome, record.status) == ("unchanged", 304)
    assert first == {"if-none-match": None, "if-modified-since": None}
    assert None not in second.values()
    assert lane.series(key).rest > rest


def test_every_request_says_who_asks_and_where_to_complain(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One"])
    lane.poll(lane.follow(host.url("/feed")))
    (visit,) = net.record.of(host)
    assert visit.headers["user-agent"].startswith("Lanes/")
    assert "you@example.org" in visit.headers["user-agent"]


def test_a_200_with_the_old_tag_is_read(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES C1."""
    host = net.host("127.1.0.5")
    tag = {"ETag": '"a"'}
    host.script("/feed", [ok(rss(chapters(1, 1)), headers=tag), ok(rss(chapters(1, 2)), headers=tag)])
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    lane.poll(key)
    assert lane.announced(key) == ["Chapter 2"]


def a_week_of_lies(net: Smallnet, lane: LaneAtWork) -> str:
    """A Series whose server says 304 while its body changes, polled until a week after the last whole answer."""
    host = net.host("127.1.0.5")
    body = [rss(chapters(1, 1))]

    def lying(request: Request) -> Step:
        return not_modified() if "if-none-match" in request.headers else ok(body[0], headers={"ETag": '"x"'})

    host.answer_with("/feed", lying)
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    body[0] = rss(chapters(1, 2))
    assert lane.poll(key).status == 304
    lane.move_to(lane.now() + timedelta(days=7))
    assert lane.poll(key).status == 200
    return key


def test_a_server_that_lies_with_304_is_found_out_within_a_week(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES C2."""
    key = a_week_of_lies(net, lane)
    assert lane.announced(key) == ["Chapter 2"]


def test_identical_bytes_under_a_tag_that_never_matches_are_unchanged(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES C3."""
    host = net.host("127.1.0.5")
    host.page("/feed", rss(chapters(1, 3)), "application/rss+xml", headers={"ETag": '"abc-gzip"'})
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    before = lane.series(key).rest
    record = lane.poll(key)
    assert (record.outcome, record.status) == ("unchanged", 200)
    assert asked_with(net)[1]["if-none-match"] == '"abc-gzip"'
    assert lane.series(key).rest > before


@pytest.mark.parametrize("broken", ["cut", "empty"])
def test_the_tag_of_a_body_that_was_not_read_is_never_sent(net: Smallnet, lane: LaneAtWork, broken: str) -> None:
    """CASES C4."""
    host = net.host("127.1.0.5")
    tag = {"ETag": '"x"'}
    whole = ok(rss(chapters(1, 3)), headers=tag)
    host.script("/feed", [whole.cut_after(100) if broken == "cut" else ok(b"", headers=tag), whole])
    key = lane.follow(host.url("/feed"))
    assert lane.poll(key).outcome == "failed"
    assert lane.chapters(key) == []
    lane.poll(key)
    assert asked_with(net)[1] == {"if-none-match": None, "if-modified-since": None}
    assert len(lane.chapters(key)) == 3


def test_after_a_broken_answer_the_earlier_tag_is_not_sent_either(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES C4."""
    host = net.host("127.1.0.5")
    whole = ok(rss(chapters(1, 3)), headers={"ETag": '"w"'})
    host.script("/feed", [whole, ok(rss(chapters(1, 4)), headers={"ETag": '"x"'}).cut_after(100), whole])
    key = lane.follow(host.url("/feed"))
    for _ in range(3):
        lane.poll(key)
    assert [asked["if-none-match"] for asked in asked_with(net)] == [None, '"w"', None]


@pytest.mark.parametrize("odd", ["Sun, 32 Foo 2024 99:99:99 XYZ", "Tue, 01 Jan 2041 00:00:00 GMT", "1700000000"])
def test_last_modified_goes_back_byte_for_byte(net: Smallnet, lane: LaneAtWork, odd: str) -> None:
    """CASES C5."""
    host = net.host("127.1.0.5")
    host.page("/feed", rss(chapters(1, 1)), "application/rss+xml", last_modified=odd)
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    assert lane.poll(key).status == 304
    assert asked_with(net)[1]["if-modified-since"] == odd


def test_validators_go_only_to_the_url_behind_the_hop_that_gave_them(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES C6."""
    host = net.host("127.1.0.5")
    host.feed("/feed/", ["One"])
    host.script("/feed", redirect("/feed/"))
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    record = lane.poll(key)
    assert (record.outcome, record.status) == ("unchanged", 304)
    assert all(asked["if-none-match"] is None for asked in asked_with(net, "/feed"))
    assert asked_with(net, "/feed/")[-1]["if-none-match"] is not None
    assert lane.series(key).failures == 0


def test_the_publishers_wish_outlives_a_304(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES C7."""
    host = net.host("127.1.0.5")
    host.page("/feed", rss(chapters(1, 1), "<ttl>1440</ttl>"), "application/rss+xml", etag='"t"')
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    assert lane.poll(key).status == 304
    row = lane.series(key)
    assert row.next_check_at - row.latest_checked_at >= timedelta(hours=24)


def test_a_title_with_a_nul_is_cleaned_and_costs_no_other_chapter(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES C8."""
    host = net.host("127.1.0.5")
    entries = ",".join(f'{{"id": "{n}", "title": "Part {n}{tail}"}}' for n, tail in ((1, ""), (2, ""), (3, "\\u0000!")))
    feed = f'{{"version": "https://jsonfeed.org/version/1.1", "title": "T\\u0000", "items": [{entries}]}}'
    host.script("/feed", Page(feed, "application/feed+json", etag='"n"'))
    key = lane.follow(host.url("/feed"))
    assert lane.poll(key).outcome == "new"
    assert [title[:6] for title in lane.titles(key)] == ["Part 1", "Part 2", "Part 3"]
    assert lane.poll(key).outcome == "unchanged"


def test_a_list_that_vanishes_and_returns_loses_and_announces_nothing(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES D4."""
    host = net.host("127.1.0.5")
    full = ok(rss(chapters(1, 30)))
    host.script("/feed", [full, ok(rss([])), full])
    key = lane.follow(host.url("/feed"))
    for _ in range(3):
        lane.poll(key)
    assert lane.outcomes(key) == ["new", "suspiciously empty", "unchanged"]
    assert len(lane.chapters(key)) == 30
    assert lane.announced(key) == []


def test_a_page_where_a_feed_was_is_a_failure_that_shows_its_first_words(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES D6."""
    host = net.host("127.1.0.5")
    host.script("/feed", [ok(rss(chapters(1, 3))), ok("<html><title>We will be back soon</title>", "application/json")])
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    record = lane.poll(key)
    assert record.outcome == "failed"
    assert "<html><title>We will be back soon" in lane.series(key).failure
    assert "back soon" not in record.detail, "the record's detail is logged, and a log never holds a body"
    assert "We will be back soon" in lane.series(key).failure
    assert len(lane.chapters(key)) == 3


def test_a_304_to_a_question_without_validators_is_a_failure(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", [not_modified(), ok(rss(chapters(1, 2)))])
    key = lane.follow(host.url("/feed"))
    assert lane.poll(key).outcome == "failed"
    assert lane.poll(key).new_chapters == 2


def test_failures_lengthen_and_a_good_answer_forgets_them(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", [status(404)] * 3 + [ok(rss(chapters(1, 2)))])
    key = lane.follow(host.url("/feed"))
    waits = []
    for _ in range(3):
        lane.poll(key)
        row = lane.series(key)
        waits.append((row.next_check_at - row.latest_checked_at) / row.rest)
    assert [2 ** (k + 1) <= wait <= 2 ** (k + 1) * 1.1 for k, wait in enumerate(waits)] == [True] * 3, waits
    assert lane.series(key).failures == 3
    lane.poll(key)
    assert lane.series(key).failures == 0
