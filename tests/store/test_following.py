"""The owner's verbs: what they write, and that the claim sees it at once."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from lanes.core import schedule
from lanes.errors import UnknownSeries
from lanes.store.following import BATCH, FollowStore, Wanted, Was
from lanes.store.polls import Claimed, PollStore
from lanes.store.pool import Database
from tests.fix_database import Clock
from tests.rows import Rows

URL = "http://a.test/feed"


def wanted(url: str = URL, **other: Any) -> Wanted:
    host = url.split("/")[2]
    facts = {"site": "feeds", "host": host, "key": host.replace(".", "-"), "rest": schedule.INITIAL} | other
    return Wanted(url=url, **facts)


@pytest.fixture
def following(database: Database) -> FollowStore:
    return FollowStore(database)


def series(database: Database, key: str = "a-test") -> Any:
    """The row as JSON has it (an instant may be '-infinity'), or None."""
    with database.connection() as connection:
        row = connection.execute("SELECT to_jsonb(s) FROM lanes.series s WHERE key = %s", (key,)).fetchone()
    return row and SimpleNamespace(**row[0])


def host(database: Database, name: str = "a.test") -> Any:
    with database.connection() as connection:
        row = connection.execute(
            "SELECT to_jsonb(h) || jsonb_build_object('ready', ready_at <= lanes.now()) FROM lanes.hosts h WHERE name = %s",
            (name,),
        ).fetchone()
    return row and SimpleNamespace(**row[0])


def put_off(database_url: str, key: str = "a-test") -> None:
    """As after a Poll: the Series rests, and its host's hint says so."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "UPDATE lanes.series SET latest_checked_at = lanes.now(), next_check_at = lanes.now() + interval '5 hours', "
            "news_from = lanes.now() WHERE key = %s",
            (key,),
        )
        connection.execute("UPDATE lanes.hosts SET ready_at = lanes.now() + interval '5 hours'")


def claimable(database: Database) -> str | None:
    """The key that a Lane gets when it asks now."""
    turn = PollStore(database, "feeds", "here").claim(timedelta(seconds=90), None, None)
    return turn.claim.key if isinstance(turn, Claimed) else None


def test_a_url_is_followed_and_may_be_claimed_at_once(database: Database, following: FollowStore) -> None:
    [followed] = following.follow([wanted(title="The Lantern Road")])
    assert (followed.was, followed.series.key) == (Was.NEW, "a-test")
    row = series(database)
    assert (row.title, row.rest, row.bookmarks, row.news_from) == ("The Lantern Road", "00:02:00", 1, None)
    assert claimable(database) == "a-test"


def test_following_twice_changes_nothing_and_says_so(
    database: Database, following: FollowStore, database_url: str
) -> None:
    following.follow([wanted()])
    put_off(database_url)
    before, hint = series(database), host(database)
    [again] = following.follow([wanted(title="Another name")])
    assert again.was is Was.FOLLOWED
    assert series(database) == before
    assert host(database) == hint


def test_two_alike_in_one_call_are_one_series(following: FollowStore) -> None:
    first, second = following.follow([wanted(), wanted()])
    assert (first.was, second.was) == (Was.NEW, Was.FOLLOWED)
    assert first.series == second.series


def test_a_taken_key_gets_a_mark_that_stays_the_same(following: FollowStore) -> None:
    first, second = following.follow([wanted("http://a.test/1"), wanted("http://a.test/2")])
    assert first.series.key == "a-test"
    assert second.series.key.startswith("a-test-")
    assert following.follow([wanted("http://a.test/2")])[0].series.key == second.series.key


def test_a_series_without_any_bookmark_is_not_claimed_and_bookmarked_again_begins_with_a_first_sight(
    database: Database, following: FollowStore, database_url: str, clock: Clock
) -> None:
    """CASES A9, F14: picked up where it was; what came out meanwhile is told to nobody."""
    following.follow([wanted()])
    put_off(database_url)
    assert following.drop_bookmark("a-test")[1]
    clock.advance(timedelta(days=365))
    assert claimable(database) is None
    [again] = following.follow([wanted()])
    assert again.was is Was.KNOWN
    row = series(database)
    assert (row.bookmarks, row.news_from) == (1, None)
    assert row.latest_checked_at < row.bookmarked_at
    assert claimable(database) == "a-test"


def test_dropping_a_bookmark_that_is_not_there_counts_nothing(database: Database, following: FollowStore) -> None:
    following.follow([wanted()])
    assert following.drop_bookmark("a-test")[1]
    assert not following.drop_bookmark("a-test")[1]
    assert series(database).bookmarks == 0


def test_a_second_reader_leaves_first_sight_and_news_as_they_were(
    database: Database, following: FollowStore, database_url: str
) -> None:
    """CASES F11."""
    following.follow([wanted()])
    put_off(database_url)
    before = series(database)
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO lanes.readers (name) VALUES ('mira')")
    [followed] = FollowStore(database, "mira").follow([wanted()])
    assert followed.was is Was.KNOWN
    row = series(database)
    assert (row.bookmarks, row.news_from, row.bookmarked_at) == (2, before.news_from, before.bookmarked_at)


def test_check_now_makes_a_resting_series_pending_and_the_claim_finds_it(
    database: Database, following: FollowStore, database_url: str
) -> None:
    following.follow([wanted()])
    put_off(database_url)
    assert claimable(database) is None
    following.check_now("a-test")
    assert host(database).pending_at is not None
    assert claimable(database) == "a-test"
    assert series(database).lease_trigger == "pending"


def test_check_now_of_a_paused_series_waits_for_its_resume(
    database: Database, following: FollowStore, database_url: str
) -> None:
    following.follow([wanted()])
    put_off(database_url)
    assert following.pause("a-test")[1]
    following.check_now("a-test")
    assert host(database).pending_at is None
    assert claimable(database) is None
    assert following.resume("a-test")[1]
    assert claimable(database) == "a-test"
    assert series(database).lease_trigger == "pending"


def test_check_now_of_a_put_back_poll_wakes_the_host_it_queues_under(
    database: Database, following: FollowStore, database_url: str
) -> None:
    following.follow([wanted(), wanted("http://b.test/feed")])
    put_off(database_url)
    put_off(database_url, "b-test")
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "UPDATE lanes.series SET queue_host_id = (SELECT id FROM lanes.hosts WHERE name = 'b.test') WHERE key = 'a-test'"
        )
    following.check_now("a-test")
    assert host(database, "b.test").ready
    assert not host(database, "a.test").ready


def test_pausing_and_resuming_twice_says_that_nothing_changed(following: FollowStore) -> None:
    following.follow([wanted()])
    assert [following.pause("a-test")[1], following.pause("a-test")[1]] == [True, False]
    assert [following.resume("a-test")[1], following.resume("a-test")[1]] == [True, False]


def test_a_paused_lane_claims_nothing_until_it_is_resumed(database: Database, following: FollowStore) -> None:
    following.follow([wanted()])
    assert following.pause_lane("feeds")
    assert not following.pause_lane("feeds")
    assert claimable(database) is None
    assert following.resume_lane("feeds")
    assert claimable(database) == "a-test"


def test_a_purge_deletes_series_and_chapters_and_marks_the_host_unused(
    database: Database, following: FollowStore, database_url: str
) -> None:
    [followed] = following.follow([wanted()])
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO lanes.chapters (series_id, title, found_at, announced) VALUES (%s, 'One', lanes.now(), false)",
            (followed.series.series_id,),
        )
    assert following.purge("a-test")[1]
    assert series(database) is None
    assert host(database).unused_since is not None
    following.follow([wanted()])
    assert host(database).unused_since is None


def test_a_purge_leaves_a_series_that_others_hold(
    database: Database, following: FollowStore, database_url: str
) -> None:
    following.follow([wanted()])
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO lanes.readers (name) VALUES ('mira')")
    FollowStore(database, "mira").follow([wanted()])
    assert not following.purge("a-test")[1]
    assert series(database).bookmarks == 1


def test_a_series_is_found_by_its_key_or_its_url(following: FollowStore) -> None:
    following.follow([wanted()])
    assert following.find("a-test") == following.find(URL)
    with pytest.raises(UnknownSeries):
        following.find("nobody")


def test_the_web_page_by_which_a_feed_was_found_is_followed_already(following: FollowStore, database_url: str) -> None:
    following.follow([wanted("http://a.test/")])
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE lanes.series SET old_url = url, url = 'http://a.test/feed'")
    assert following.stand([wanted("http://a.test/")]) == (Was.FOLLOWED,)
    [again] = following.follow([wanted("http://a.test/")])
    assert (again.was, again.series.url) == (Was.FOLLOWED, "http://a.test/feed")


def test_a_series_is_found_by_the_web_page_that_named_its_feed(following: FollowStore, database_url: str) -> None:
    following.follow([wanted("http://a.test/")])
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE lanes.series SET old_url = url, url = 'http://a.test/feed'")
    assert following.find("http://a.test/").url == "http://a.test/feed"
    assert following.pause("http://a.test/")[1]
    with pytest.raises(UnknownSeries):
        following.find("http://a.test/other")


def test_a_url_that_is_followed_itself_is_found_before_one_that_had_it_once(
    following: FollowStore, database_url: str
) -> None:
    following.follow([wanted("http://b.test/"), wanted()])
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE lanes.series SET old_url = %s WHERE key = 'b-test'", (URL,))
    assert following.find(URL).key == "a-test"


def test_an_import_is_committed_batch_by_batch_in_the_order_of_hosts(
    following: FollowStore, database: Database
) -> None:
    batches: list[int] = []
    many = [wanted(f"http://h{number % 7}.test/{number}", key=f"s{number}") for number in range(BATCH * 2 + 5)]
    followed = following.follow(many, batches.append)
    assert batches == [BATCH, BATCH, 5]
    assert [each.wanted for each in followed] == many
    assert {each.was for each in followed} == {Was.NEW}
    assert following.stand(many) == (Was.FOLLOWED,) * len(many)
    with database.connection() as connection:
        rows = connection.execute("SELECT host_id FROM lanes.series ORDER BY id").fetchall()
    hosts = [row.host_id for row in rows]
    first, second, third = hosts[:BATCH], hosts[BATCH : 2 * BATCH], hosts[2 * BATCH :]
    assert max(first) <= min(second)
    assert max(second) <= min(third)


def test_the_bookmark_counter_is_that_of_the_rows(
    following: FollowStore, database: Database, database_url: str
) -> None:
    following.follow([wanted(f"http://a.test/{number}", key=f"s{number}") for number in range(5)])
    following.drop_bookmark("s1")
    following.follow([wanted("http://a.test/1", key="s1"), wanted("http://a.test/2", key="s2")])
    with database.connection() as connection:
        wrong = connection.execute(
            "SELECT key FROM lanes.series s WHERE bookmarks <> (SELECT count(*) FROM lanes.bookmarks WHERE series_id = s.id)"
        ).fetchall()
    assert wrong == []


@pytest.mark.parametrize(("by_owner", "looked_at"), [(False, True), (True, False)])
def test_what_was_given_up_is_looked_at_once_when_somebody_bookmarks_it_anew(
    rows: Rows, database: Database, by_owner: bool, looked_at: bool
) -> None:
    now = rows.now()
    series = rows.series(
        key="moss", bookmarks=0, latest_checked_at=now, retired_at=now, retired_reason="gone", retired_by_owner=by_owner
    )
    row = rows.the_series(series)
    FollowStore(database).follow([Wanted(row.site, row.url, "host.test", row.key)])
    assert rows.one("SELECT lanes.due(s, NULL, lanes.now()) IS NOT NULL FROM lanes.series s") == looked_at
