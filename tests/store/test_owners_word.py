"""The owner's word, and what the owner does by hand: what they write, and that the claim obeys at once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lanes.store.asking import AskStore
from lanes.store.following import FollowStore
from lanes.store.owning import OwnStore
from lanes.store.polls import Claimed, PollStore
from lanes.store.pool import Database
from tests.answers import a_response
from tests.fix_database import Clock
from tests.rows import DAY, FOREVER, HOUR, MINUTE, NEVER, Rows, settle, take

SECOND = timedelta(seconds=1)


@pytest.fixture
def owner(database: Database) -> OwnStore:
    return OwnStore(database)


@pytest.fixture
def asking(database: Database) -> AskStore:
    return AskStore(database, {"feeds": None}, polling=True)


def test_a_slowed_host_waits_from_its_last_request_on_and_everybody_sees_it(
    owner: OwnStore, asking: AskStore, rows: Rows, store: PollStore, clock: Clock
) -> None:
    host = rows.host("a.test", sent_at=rows.now() - MINUTE, next_at=rows.now() - MINUTE + SECOND)
    rows.series(host, key="moss")
    done = owner.slow_host("feeds", "a.test", HOUR)
    assert (done.changed, done.word, done.in_force, done.series) == (True, HOUR, HOUR, 1)
    row = rows.the_host(host)
    assert (row.owner_pace, row.next_at) == (HOUR, row.sent_at + HOUR)
    why = asking.one("moss").why
    assert (why.reason, why.until) == ("the interval of its host (the owner's word)", row.next_at)
    assert take(store) is None
    clock.advance(HOUR)
    assert take(store) is not None


def test_a_word_that_is_shorter_than_the_one_in_force_changes_nothing(owner: OwnStore, rows: Rows) -> None:
    host = rows.host("a.test")
    owner.slow_host("feeds", "a.test", HOUR)
    before = rows.the_host(host)
    done = owner.slow_host("feeds", "a.test", MINUTE)
    assert (done.changed, done.word) == (False, HOUR)
    assert rows.the_host(host) == before
    assert [each.at_least for each in owner.words()] == [HOUR]


def test_a_longer_word_takes_the_place_of_a_shorter_and_both_are_kept(owner: OwnStore, rows: Rows) -> None:
    rows.host("a.test")
    owner.slow_host("feeds", "a.test", MINUTE)
    assert owner.slow_host("feeds", "a.test", HOUR).changed
    assert [each.at_least for each in owner.words()] == [HOUR]
    kept = rows("SELECT at_least, ended_at IS NULL AS in_force FROM lanes.words ORDER BY id")
    assert [(each.at_least, each.in_force) for each in kept] == [(MINUTE, False), (HOUR, True)]


def test_a_word_never_hastens_a_host_that_is_slower_for_another_reason(owner: OwnStore, rows: Rows) -> None:
    at = rows.now()
    host = rows.host("a.test", crawl_delay=HOUR, sent_at=at, next_at=at + HOUR)
    done = owner.slow_host("feeds", "a.test", MINUTE)
    assert (done.changed, done.word, done.in_force) == (True, MINUTE, HOUR)
    assert rows.the_host(host).next_at == at + HOUR
    assert owner.free_host("a.test").in_force == HOUR
    assert rows.the_host(host).next_at == at + HOUR


def test_an_undone_word_lets_the_host_be_asked_as_soon_as_its_own_pace_allows(
    owner: OwnStore, rows: Rows, store: PollStore
) -> None:
    host = rows.host("a.test", sent_at=rows.now() - MINUTE)
    rows.series(host)
    owner.slow_host("feeds", "a.test", HOUR)
    assert take(store) is None
    done = owner.free_host("a.test")
    assert (done.word, done.in_force) == (HOUR, SECOND)
    assert rows.the_host(host).owner_pace is None
    assert take(store) is not None
    assert owner.free_host("a.test").word is None


def test_a_host_that_is_not_known_yet_gets_its_row_and_keeps_the_word_when_it_is_followed(
    owner: OwnStore, rows: Rows, database: Database
) -> None:
    assert not owner.knows("a.test")
    assert owner.slow_host("feeds", "a.test", HOUR).series == 0
    (row,) = rows("SELECT * FROM lanes.hosts")
    assert (row.site, row.name, row.owner_pace) == ("feeds", "a.test", HOUR)
    assert row.unused_since is not None
    assert owner.free_host("nowhere.test").word is None
    assert not owner.knows("nowhere.test")


def test_an_interval_without_end_is_never_stored(owner: OwnStore, rows: Rows) -> None:
    rows.series(rows.host("a.test"), key="moss")
    owner.block("feeds", "a.test")
    assert rows("SELECT FROM lanes.hosts WHERE owner_pace IS NOT NULL") == []
    assert [each.at_least for each in owner.words()] == [None]


def test_a_slowed_site_waits_from_its_last_request_on(owner: OwnStore, rows: Rows) -> None:
    at = rows.now()
    rows.enrol("moss", gap=10 * SECOND, next_at=at + 10 * SECOND)
    rows.host("moss.test", site="moss", sent_at=at)
    done = owner.slow_lane("moss", MINUTE)
    assert (done.changed, done.in_force) == (True, MINUTE)
    (lane,) = rows("SELECT * FROM lanes.lanes WHERE site = 'moss'")
    assert (lane.owner_gap, lane.next_at) == (MINUTE, at + MINUTE)
    assert not owner.slow_lane("moss", SECOND).changed
    assert [(each.about, each.is_site) for each in owner.words()] == [("moss", True)]
    assert owner.free_lane("moss", 10 * SECOND).word == MINUTE
    (lane,) = rows("SELECT * FROM lanes.lanes WHERE site = 'moss'")
    assert (lane.owner_gap, lane.next_at) == (None, at + 10 * SECOND)
    assert owner.free_lane("moss", 10 * SECOND).word is None


def test_the_owners_word_on_the_many_host_site_spaces_all_its_hosts(
    owner: OwnStore, rows: Rows, store: PollStore, clock: Clock
) -> None:
    rows.series()
    rows.series()
    owner.slow_lane("feeds", HOUR)
    assert take(store) is None
    clock.advance(HOUR)
    assert take(store) is not None
    assert take(store) is None
    owner.free_lane("feeds", None)
    assert take(store) is not None


def test_nothing_is_claimed_at_a_blocked_host_from_that_moment_on(
    owner: OwnStore, asking: AskStore, rows: Rows, store: PollStore, database: Database, clock: Clock
) -> None:
    host = rows.host("a.test")
    rows.series(host, key="moss")
    rows.series(key="fern")
    done = owner.block("feeds", "a.test")
    assert (done.changed, done.series) == (True, 1)
    assert not owner.block("feeds", "a.test").changed
    claim = take(store)
    assert claim is not None
    assert claim.key == "fern"
    assert take(store) is None
    clock.advance(30 * DAY)
    FollowStore(database).check_now("moss")
    turn = take(store)
    assert turn is None or turn.key == "fern"
    why = asking.one("moss").why
    assert (why.reason, why.until, why.held) == ("the owner blocked its host", None, True)
    assert asking.lane("feeds").hosts.blocked == 1


def test_an_undone_block_lets_the_host_be_asked_at_once(owner: OwnStore, rows: Rows, store: PollStore) -> None:
    host = rows.host("a.test")
    rows.series(host)
    owner.block("feeds", "a.test")
    assert take(store) is None
    done = owner.unblock("a.test")
    assert (done.changed, done.until) == (True, None)
    row = rows.the_host(host)
    assert (row.not_before, row.not_before_reason) == (NEVER, None)
    assert take(store) is not None
    assert not owner.unblock("a.test").changed
    assert not owner.unblock("nowhere.test").changed


def test_an_undone_block_gives_back_the_wait_that_is_still_ahead(owner: OwnStore, rows: Rows, clock: Clock) -> None:
    until = rows.now() + DAY
    host = rows.host("a.test", not_before=until, not_before_reason="the host asked to wait: 429")
    owner.block("feeds", "a.test")
    assert rows.the_host(host).not_before == FOREVER
    assert (owner.unblock("a.test").until, rows.the_host(host).not_before) == (until, until)
    owner.block("feeds", "a.test")
    clock.advance(2 * DAY)
    assert owner.unblock("a.test").until is None
    assert rows.the_host(host).not_before == NEVER


def test_a_wait_that_a_poll_in_hand_brought_after_the_block_stands_once_it_is_undone(
    owner: OwnStore, rows: Rows, store: PollStore
) -> None:
    """CASES B14: a late wait still counts."""
    host = rows.host("a.test")
    rows.series(host)
    claim = take(store)
    assert claim is not None
    owner.block("feeds", "a.test")
    assert settle(store, claim, a_response(429, retry_after="3600"))
    assert rows.the_host(host).not_before == FOREVER
    done = owner.unblock("a.test")
    assert done.until is not None
    assert done.until >= claim.claimed_at + HOUR - MINUTE
    assert (done.reason or "").startswith("the host asked to wait")


def test_an_undone_block_leaves_a_refusal_window_in_force(owner: OwnStore, rows: Rows) -> None:
    until = rows.now() + HOUR
    host = rows.host("a.test", refused_until=until, refused_since=rows.now(), refusals=3)
    owner.block("feeds", "a.test")
    assert (owner.unblock("a.test").until, rows.the_host(host).not_before_reason) == (until, "the host refuses")


def test_whoever_names_a_domain_is_told_of_its_hosts(owner: OwnStore, rows: Rows) -> None:
    rows.series(rows.host("www.a.test"))
    rows.host("unused.a.test")
    rows.series(rows.host("nota.test"))
    assert owner.hosts_below("a.test") == ("www.a.test",)


def test_the_bell_of_its_lane_rings_when_a_word_is_undone(owner: OwnStore, rows: Rows, store: PollStore) -> None:
    rows.series(rows.host("a.test"))
    rows("LISTEN lanes_feeds")
    owner.slow_host("feeds", "a.test", HOUR)
    owner.block("feeds", "a.test")
    assert list(rows.connection.notifies(timeout=0.1)) == []
    owner.unblock("a.test")
    owner.free_host("a.test")
    heard = list(rows.connection.notifies(timeout=10, stop_after=2))
    assert [each.channel for each in heard] == ["lanes_feeds", "lanes_feeds"]
    assert isinstance(store.claim(MINUTE, None, None), Claimed)


def test_a_word_can_be_undone_right_after_the_clock_went_back(owner: OwnStore, rows: Rows, clock: Clock) -> None:
    """CASES A13."""
    rows.host("a.test")
    owner.slow_host("feeds", "a.test", HOUR)
    owner.block("feeds", "a.test")
    clock.advance(-8 * HOUR)
    assert owner.free_host("a.test").word == HOUR
    assert owner.unblock("a.test").changed
    assert owner.words() == ()
