"""What the owner does by hand to a Series that stopped or moved: given up, taken back, returned to its old URL."""

from __future__ import annotations

import pytest

from lanes.core.notices import Kind
from lanes.errors import UnknownSeries
from lanes.store.asking import AskStore
from lanes.store.owning import NoWayBack, OwnStore
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from tests.answers import a_response, an_item
from tests.fix_database import Clock
from tests.rows import DAY, HOUR, MINUTE, NEVER, Rows, settle, settle_read, take


@pytest.fixture
def owner(database: Database) -> OwnStore:
    return OwnStore(database)


@pytest.fixture
def asking(database: Database) -> AskStore:
    return AskStore(database, {"feeds": None}, polling=True)


def bookmarks(rows: Rows, series_id: int) -> int:
    """As the column counts them, which is how many there are."""
    (row,) = rows(
        "SELECT bookmarks, (SELECT count(*) FROM lanes.bookmarks WHERE series_id = s.id) AS rows FROM lanes.series s WHERE id = %s",
        series_id,
    )
    assert row.bookmarks == row.rows
    return int(row.bookmarks)


def notices(rows: Rows, series_id: int) -> list[tuple[str, str, dict[str, object]]]:
    found = rows(
        "SELECT r.name, n.kind, n.body FROM lanes.notices n JOIN lanes.readers r ON r.id = n.reader_id WHERE series_id = %s ORDER BY n.id",
        series_id,
    )
    return [tuple(each) for each in found]


def test_a_series_given_up_by_hand_is_told_with_its_reason_to_whoever_has_not_muted_it(
    owner: OwnStore, asking: AskStore, rows: Rows, store: PollStore
) -> None:
    series = rows.series(key="moss", bookmarks=0, latest_checked_at=rows.now() - DAY)
    for reader in ("owner", "mira", "ada"):
        rows.bookmark(series, reader)
    rows("UPDATE lanes.bookmarks SET muted = true WHERE reader_id = (SELECT id FROM lanes.readers WHERE name = 'ada')")
    assert owner.retire("moss", "its author ended it")[1]
    assert not owner.retire("moss", "again")[1]
    told = ("stopped", {"reason": "its author ended it"})
    assert notices(rows, series) == [("owner", *told), ("mira", *told)]
    assert take(store) is None
    why = asking.one("moss").why
    assert why.reason == "retired (its author ended it), with a weekly look left"
    assert why.until == rows.the_series(series).latest_checked_at + 7 * DAY


@pytest.mark.parametrize(("by_owner", "lives"), [(True, False), (False, True)])
def test_a_good_weekly_look_revives_what_failed_and_not_what_its_owner_gave_up(
    owner: OwnStore, rows: Rows, store: PollStore, clock: Clock, by_owner: bool, lives: bool
) -> None:
    series = rows.series(key="moss", latest_checked_at=rows.now() - DAY)
    owner.retire("moss", "enough")
    rows.set_series(series, retired_by_owner=by_owner)
    clock.advance(7 * DAY)
    claim = take(store)
    assert claim is not None
    settle_read(store, claim, an_item("One"))
    assert (rows.the_series(series).retired_at is None) == lives


def test_a_poll_that_was_put_back_is_not_carried_out_once_its_series_is_given_up(
    owner: OwnStore, rows: Rows, store: PollStore
) -> None:
    rows.series(key="moss", retry_at=rows.now(), retry_reason="the interval of its host", latest_checked_at=rows.now())
    owner.retire("moss", "enough")
    assert take(store) is None


def test_a_series_that_is_taken_back_begins_at_zero_and_one_failure_does_not_end_it_again(
    owner: OwnStore, rows: Rows, store: PollStore
) -> None:
    """CASES A8."""
    now = rows.now()
    series = rows.series(
        key="moss", bookmarks=0, retired_at=now, retired_reason="gone", failures=20, failing_since=now - 5 * DAY, failure="410",
        failure_kind="410", refusals=3, refused_since=now - DAY, gone_at=now - 2 * DAY, latest_checked_at=now - MINUTE,
        next_check_at=now + HOUR,
    )  # fmt: skip
    rows.bookmark(series)
    assert owner.revive("moss").changed
    row = rows.the_series(series)
    assert (row.retired_at, row.retired_reason, row.failures, row.failing_since, row.failure) == (
        None,
        None,
        0,
        None,
        None,
    )
    assert (row.refusals, row.refused_since, row.gone_at, row.spared_by, row.failure_kind) == (
        0,
        None,
        None,
        None,
        None,
    )
    assert row.revived_at >= now
    assert notices(rows, series) == [("owner", Kind.BACK_AGAIN.value, {})]
    claim = take(store)
    assert claim is not None
    settle(store, claim, a_response(410))
    row = rows.the_series(series)
    assert (row.retired_at, row.failures) == (None, 1)


def test_what_was_not_given_up_is_left_as_it_is(owner: OwnStore, rows: Rows) -> None:
    series = rows.series(key="moss", failures=2, failing_since=rows.now())
    before = rows.the_series(series)
    assert not owner.revive("moss").changed
    assert rows.the_series(series) == before


def test_a_revival_undoes_a_move_to_another_series_but_what_its_readers_changed_since(
    owner: OwnStore, rows: Rows, store: PollStore
) -> None:
    """CASES E4, A15: the copies that are unchanged go, the rest stays; the same redirect does not move it again."""
    old = rows.series(key="moss", bookmarks=0, retired_at=rows.now(), retired_reason="moved to fern")
    new = rows.series(key="fern", bookmarks=0, url="http://fern.test/feed")
    for reader in ("plain", "muted since", "dropped there", "dated anew", "left here"):
        rows.bookmark(old, reader)
    rows.bookmark(new, "its own")
    rows(
        "INSERT INTO lanes.bookmarks (reader_id, series_id, bookmarked_at, muted, copied_from) "
        "SELECT reader_id, %s, bookmarked_at, muted, series_id FROM lanes.bookmarks WHERE series_id = %s",
        new,
        old,
    )
    reader = "reader_id = (SELECT id FROM lanes.readers WHERE name = %s) AND series_id = %s"
    rows(f"UPDATE lanes.bookmarks SET muted = true WHERE {reader}", "muted since", new)
    rows(f"DELETE FROM lanes.bookmarks WHERE {reader}", "dropped there", new)
    rows(
        f"UPDATE lanes.bookmarks SET bookmarked_at = bookmarked_at + '1 s'::interval WHERE {reader}", "dated anew", new
    )
    rows(f"DELETE FROM lanes.bookmarks WHERE {reader}", "left here", old)
    for series in (old, new):
        rows(
            "UPDATE lanes.series SET bookmarks = (SELECT count(*) FROM lanes.bookmarks WHERE series_id = series.id) WHERE id = %s",
            series,
        )
    done = owner.revive("moss")
    assert (done.changed, done.moved_to, done.copies) == (True, "fern", 1)
    assert (bookmarks(rows, old), bookmarks(rows, new)) == (4, 4)
    row = rows.the_series(old)
    assert (row.stays_off, row.moving_to, row.moving_polls) == ("http://fern.test/feed", None, 0)
    claim = next(claim for claim in iter(lambda: take(store), None) if claim.key == "moss")
    assert claim.memory.stays_off == "http://fern.test/feed"


def test_a_revival_survives_that_the_series_it_moved_to_is_gone(owner: OwnStore, rows: Rows) -> None:
    rows.series(key="moss", retired_at=rows.now(), retired_reason="moved to fern")
    done = owner.revive("moss")
    assert (done.changed, done.moved_to, done.copies) == (True, None, 0)


def test_an_unknown_key_is_an_error_for_each_verb(owner: OwnStore) -> None:
    with pytest.raises(UnknownSeries):
        owner.retire("nobody", "x")
    with pytest.raises(UnknownSeries):
        owner.revive("nobody")
    with pytest.raises(UnknownSeries):
        owner.back("nobody")


def test_a_series_goes_back_to_its_old_url_and_stays_off_the_one_it_left(
    owner: OwnStore, rows: Rows, store: PollStore
) -> None:
    new_host = rows.host("b.test")
    series = rows.series(
        new_host, key="moss", url="http://b.test/feed", old_url="http://a.test/feed", etag='"x"', validators_url="http://b.test/feed",
        body_hash=b"x", moving_to="http://c.test/", moving_since=rows.now(), moving_polls=2,
        latest_checked_at=rows.now(), next_check_at=rows.now() + HOUR, discovering=False,
    )  # fmt: skip
    named, left = owner.back("moss")
    assert (named.url, left) == ("http://a.test/feed", "http://b.test/feed")
    row = rows.the_series(series)
    assert (row.url, row.old_url, row.stays_off) == ("http://a.test/feed", None, "http://b.test/feed")
    assert (row.etag, row.validators_url, row.body_hash, row.moving_to, row.moving_polls) == (None, None, None, None, 0)
    assert row.host_id == row.queue_host_id == rows.one("SELECT id FROM lanes.hosts WHERE name = 'a.test'")
    assert rows.the_host(new_host).unused_since is not None
    claim = take(store)
    assert claim is not None
    assert (claim.url, claim.host, claim.validators) == ("http://a.test/feed", "a.test", None)
    assert claim.discovering, "where it was a web page that named its feed, that is found again"


def test_a_poll_in_hand_writes_nothing_to_a_series_that_goes_back_meanwhile(
    owner: OwnStore, rows: Rows, store: PollStore
) -> None:
    host = rows.host("b.test")
    series = rows.series(host, key="moss", url="http://b.test/feed", old_url="http://a.test/feed")
    claim = take(store)
    assert claim is not None
    owner.back("moss")
    assert not settle(store, claim, a_response(404))
    assert rows.the_series(series).failures == 0
    assert rows.the_host(host).busy_until == NEVER


def test_what_never_moved_has_no_way_back(owner: OwnStore, rows: Rows) -> None:
    rows.series(key="moss")
    with pytest.raises(NoWayBack, match="moss has not moved"):
        owner.back("moss")
    rows.series(
        key="fern",
        url="http://a.test/",
        old_url="http://a.test/",
        retired_at=rows.now(),
        retired_reason="moved to moss",
    )
    with pytest.raises(NoWayBack, match="`lanes revive fern`"):
        owner.back("fern")


def test_an_old_url_at_which_another_series_is_followed_is_not_taken_from_it(owner: OwnStore, rows: Rows) -> None:
    series = rows.series(key="moss", url="http://b.test/feed", old_url="http://a.test/feed")
    rows.series(key="fern", url="http://a.test/feed")
    with pytest.raises(NoWayBack, match="fern is followed at its old URL"):
        owner.back("moss")
    assert rows.the_series(series).url == "http://b.test/feed"
