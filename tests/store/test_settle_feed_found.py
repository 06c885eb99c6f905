"""A web page that names its feed: its Series follows the feed from then on, or gives way to the one that does already."""

from __future__ import annotations

from lanes.core.claim import Claim, Trigger
from lanes.store.polls import PollStore
from tests.fix_database import Clock
from tests.rows import DAY, LEASE, MINUTE, Rows, take, trail

FEED = "https://feeds.test/one"


def taken(store: PollStore) -> Claim:
    claim = take(store)
    assert claim is not None
    return claim


def test_the_series_of_a_page_follows_its_feed_and_is_polled_there_at_once(
    rows: Rows, store: PollStore, clock: Clock
) -> None:
    series = rows.series(rows.host("page.test"), url="https://page.test/")
    claim = taken(store)
    assert store.follow_feed(claim, FEED, trail(claim))
    row = rows.the_series(series)
    assert (row.url, row.old_url, row.discovering, row.lease_token) == (FEED, "https://page.test/", False, None)
    again = taken(store)
    assert (again.series_id, again.host, again.url) == (series, "feeds.test", FEED)
    assert again.trigger is Trigger.PUT_BACK


def test_a_page_whose_feed_is_followed_already_gives_way_to_it(rows: Rows, store: PollStore) -> None:
    page = rows.series(rows.host("page.test"), url="https://page.test/", bookmarks=0)
    feed = rows.series(
        rows.host("feeds.test", ready_at="infinity"),
        url=FEED,
        key="the-feed",
        bookmarks=0,
        bookmarked_at=rows.now() - 300 * DAY,
        latest_checked_at=rows.now() - DAY,
        next_check_at=rows.now() - DAY,
        news_from=rows.now() - 300 * DAY,
    )
    rows.bookmark(page)
    claim = taken(store)
    assert claim.series_id == page
    assert store.follow_feed(claim, FEED, trail(claim))
    row, other = rows.the_series(page), rows.the_series(feed)
    assert row.retired_at is not None
    assert row.retired_reason == "moved to the-feed"
    assert other.bookmarks == 1
    assert rows("SELECT series_id, copied_from FROM lanes.bookmarks ORDER BY 1") == [(page, None), (feed, page)]
    assert other.bookmarked_at >= claim.claimed_at, "it is due from now on, not since it was left a year ago"
    assert other.news_from is None, "what came while nobody followed it is no news (CASES F14)"
    assert rows.late_hints() == []
    assert taken(store).series_id == feed


def a_page_and_its_feed(rows: Rows, **feed: object) -> tuple[int, int]:
    """A page that somebody follows, and a Series that was followed at the feed that it names."""
    page = rows.series(rows.host("page.test"), url="https://page.test/", bookmarks=0)
    rows.bookmark(page)
    facts = {"bookmarks": 0, "latest_checked_at": rows.now() - DAY, "next_check_at": "infinity"}
    return page, rows.series(rows.host("feeds.test", ready_at="infinity"), url=FEED, key="the-feed", **facts | feed)


def kinds(rows: Rows) -> list[tuple[str, int, dict[str, object]]]:
    return [tuple(row) for row in rows("SELECT kind, series_id, body FROM lanes.notices ORDER BY id")]


def test_readers_of_a_page_that_gives_way_are_told_where_it_is_followed(rows: Rows, store: PollStore) -> None:
    page, _ = a_page_and_its_feed(rows)
    claim = taken(store)
    assert store.follow_feed(claim, FEED, trail(claim))
    assert kinds(rows) == [("moved", page, {"to": "the-feed", "merged": True})]


def test_a_feed_that_was_given_up_lives_again_when_a_page_that_somebody_follows_names_it(
    rows: Rows, store: PollStore
) -> None:
    facts = {
        "retired_at": rows.now() - DAY,
        "retired_reason": "gone",
        "failures": 20,
        "failing_since": rows.now() - 9 * DAY,
    }
    page, feed = a_page_and_its_feed(rows, **facts)
    claim = taken(store)
    assert store.follow_feed(claim, FEED, trail(claim))
    row = rows.the_series(feed)
    assert (row.retired_at, row.retired_reason, row.failures, row.bookmarks) == (None, None, 0, 1)
    assert rows.the_series(page).retired_reason == "moved to the-feed"
    assert rows.late_hints() == []
    assert taken(store).series_id == feed


def test_what_its_owner_gave_up_is_not_brought_back_by_a_page_that_names_it(rows: Rows, store: PollStore) -> None:
    facts = {"retired_at": rows.now() - DAY, "retired_reason": "of no use", "retired_by_owner": True}
    page, feed = a_page_and_its_feed(rows, **facts)
    claim = taken(store)
    assert store.follow_feed(claim, FEED, trail(claim))
    row = rows.the_series(page)
    assert (row.retired_at, row.url, row.discovering, row.lease_token) == (None, "https://page.test/", False, None)
    assert (rows.the_series(feed).retired_reason, rows.the_series(feed).bookmarks) == ("of no use", 0)
    assert kinds(rows) == []
    assert rows.late_hints() == []


def test_what_a_late_worker_found_moves_nothing(rows: Rows, store: PollStore, clock: Clock) -> None:
    """CASES B14"""
    series = rows.series(rows.host("page.test"), url="https://page.test/")
    late = taken(store)
    clock.advance(LEASE + MINUTE)
    taken(store)
    assert not store.follow_feed(late, FEED, trail(late))
    assert rows.the_series(series).url == "https://page.test/"
