"""Which items are the same Chapter, and which new ones are news, through whole Polls."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from tests.fix_lane import LaneAtWork
from tests.smallnet import Smallnet, ok
from tests.smallnet.feeds import Kind
from tests.wire.documents import chapters, item, rss

YEAR = timedelta(days=365)
INVALID = "Invalid Date"
DAY = "Mon, 01 Jan 2024 00:00:00 GMT"


def followed(net: Smallnet, lane: LaneAtWork, *documents: str) -> str:
    """A Series whose consecutive Polls got these documents, one each."""
    host = net.host("127.1.0.5")
    host.script("/feed", [ok(document) for document in documents])
    key = lane.follow(host.url("/feed"))
    for _ in documents:
        assert lane.poll(key).status == 200
    return key


def test_items_that_share_link_and_date_are_told_apart_by_title(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES F1."""
    six = [item(f"Part {n}", link="http://serial.example/", date=DAY) for n in range(6)]
    key = followed(net, lane, rss(six), rss(six, "<!-- again -->"))
    assert len(lane.chapters(key)) == 6
    assert lane.outcomes(key) == ["new", "unchanged"]


def test_one_guid_on_items_without_dates_adds_nothing_on_the_second_poll(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES F2."""
    three = [item(f"Part {n}", guid="home", link="http://serial.example/", date=INVALID) for n in range(3)]
    key = followed(net, lane, rss(three), rss(three, "<!-- again -->"))
    assert lane.titles(key) == ["Part 0", "Part 1", "Part 2"]
    assert lane.outcomes(key) == ["new", "unchanged"]


def test_a_date_that_moves_each_time_makes_no_new_chapter(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES F3."""
    days = [f"Mon, {day:02d} Jan 2024 00:00:00 GMT" for day in (1, 8, 15)]
    key = followed(net, lane, *(rss([item("One", link="http://serial.example/1", date=day)]) for day in days))
    assert len(lane.chapters(key)) == 1


def test_a_guid_that_changes_under_the_same_link_and_title_is_the_same_chapter(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES F4."""
    documents = [rss([item("One", guid=f"?p={n}", link="http://serial.example/1")]) for n in (1, 2)]
    key = followed(net, lane, *documents)
    assert len(lane.chapters(key)) == 1


def test_guids_that_differ_only_in_case_are_two_chapters(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES F5."""
    key = followed(net, lane, rss([item("One", guid="aB3"), item("Two", guid="Ab3")]))
    assert lane.titles(key) == ["One", "Two"]


def test_chapters_pruned_here_are_not_announced_again(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES F6."""
    hundred = rss(chapters(1, 100))
    host = net.host("127.1.0.5")
    host.script("/feed", [ok(hundred), ok(hundred + "<!-- again -->")])
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    lane.tell("DELETE FROM lanes.chapters WHERE id IN (SELECT id FROM lanes.chapters ORDER BY id LIMIT 50)")
    assert lane.poll(key).outcome == "unchanged"
    assert len(lane.chapters(key)) == 50
    assert lane.announced(key) == []


def test_older_items_than_any_known_are_stored_and_not_announced(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES F7."""
    key = followed(net, lane, rss(chapters(41, 50)), rss(chapters(1, 50)))
    assert len(lane.chapters(key)) == 50
    assert lane.announced(key) == []


def test_a_date_in_the_future_hides_no_later_chapter_and_sorts_by_first_sight(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES F9."""
    now = datetime.now(UTC)
    ahead = item("Ahead", guid="a", date=format_datetime(now + timedelta(days=30)))
    normal = item("Normal", guid="n", date=format_datetime(now))
    key = followed(net, lane, rss([ahead]), rss([normal, ahead]))
    assert lane.announced(key) == ["Normal"]
    first, second = lane.chapters(key)
    assert (first.title, first.sort_at) == ("Ahead", first.found_at)
    assert first.sort_at < second.found_at


def test_a_new_blog_engine_that_changes_every_guid_tells_nobody(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES F10."""
    documents = [
        rss([item(f"Part {n}", guid=f"{engine}-{n}", link=f"http://serial.example/{n}", date=DAY) for n in range(50)])
        for engine in ("old", "new")
    ]
    key = followed(net, lane, *documents)
    assert len(lane.chapters(key)) == 50
    assert lane.announced(key) == []


def test_an_item_dated_between_two_known_ones_is_announced(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES F12."""
    newest, between, oldest = chapters(1, 3)
    key = followed(net, lane, rss([newest, oldest]), rss([newest, between, oldest]))
    assert lane.announced(key) == ["Chapter 2"]


def test_where_every_item_has_one_guid_each_title_is_a_chapter_and_a_new_one_is_told_once(
    net: Smallnet, lane: LaneAtWork
) -> None:
    """CASES F13."""

    def home(count: int) -> str:
        return rss([item(f"Part {n}", guid="http://serial.example/", date=DAY) for n in range(count)])

    key = followed(net, lane, home(3), home(4), home(4) + "<!-- again -->")
    assert lane.titles(key) == ["Part 0", "Part 1", "Part 2", "Part 3"]
    assert lane.announced(key) == ["Part 3"]


def test_a_guid_that_once_lied_is_never_trusted_alone_again(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES F13."""

    def part(n: int) -> str:
        return item(f"Part {n}", guid="home", date=DAY)

    key = followed(net, lane, rss([part(2), part(1)]), rss([part(3)]))
    assert lane.announced(key) == ["Part 3"]


def test_a_year_without_a_reader_is_stored_and_not_announced(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES F14."""
    host = net.host("127.1.0.5")
    host.script("/feed", [ok(rss(chapters(1, 3))), ok(rss(chapters(1, 9))), ok(rss(chapters(1, 10)))])
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    lane.unbookmark(key)
    lane.move_to(lane.now() + YEAR)
    assert lane.run_once() == 0
    assert lane.follow(host.url("/feed")) == key
    lane.poll(key)
    assert (len(lane.chapters(key)), lane.announced(key)) == (9, [])
    lane.poll(key)
    assert lane.announced(key) == ["Chapter 10"]


def test_a_second_volumes_part_1_is_announced(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES F15."""
    first = item("Part 1", guid="v1-1", link="http://serial.example/v1/1", date=DAY)
    second = item("Part 1", guid="v2-1", link="http://serial.example/v2/1", date="Tue, 02 Jan 2024 00:00:00 GMT")
    key = followed(net, lane, rss([first]), rss([second, first]))
    assert lane.announced(key) == ["Part 1"]


def test_undated_items_are_news(net: Smallnet, lane: LaneAtWork) -> None:
    key = followed(net, lane, rss([item("One", guid="1")]), rss([item("Two", guid="2"), item("One", guid="1")]))
    assert lane.announced(key) == ["Two"]


@pytest.mark.parametrize("kind", ["rss", "atom", "json"])
def test_each_kind_of_feed_is_read_whole(net: Smallnet, lane: LaneAtWork, kind: Kind) -> None:
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One", "Two"], kind=kind)
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    assert lane.titles(key) == ["One", "Two"]
    assert [row.published_at for row in lane.chapters(key)] == [
        datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in (1, 2)
    ]


def test_at_most_two_thousand_items_of_a_document_are_read(net: Smallnet, lane: LaneAtWork) -> None:
    key = followed(net, lane, rss([item(f"Part {n}", guid=str(n)) for n in range(2_500)]))
    assert len(lane.chapters(key)) == 2_000
