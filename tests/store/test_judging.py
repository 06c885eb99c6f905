"""The last answers of a host: whoever is not polled there any more says nothing about it, and its incident ends all the same."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

from lanes.core.claim import Claim
from lanes.store.following import FollowStore
from lanes.store.owning import OwnStore
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from lanes.store.upkeep import UpkeepStore
from lanes.upkeep import ageing
from tests.answers import a_response
from tests.fix_database import Clock
from tests.rows import DAY, HOUR, MINUTE, Rows, settle, take

NOT_MODIFIED = replace(a_response(304), conditional=True)


def taken(store: PollStore) -> Claim:
    claim = take(store)
    assert claim is not None
    return claim


def a_host_that_fails(rows: Rows, store: PollStore, clock: Clock, **facts: object) -> tuple[int, list[int]]:
    """A host whose three Series were not found, and its incident."""
    host = rows.host("home.test")
    series = [rows.series(host, bookmarks=0, **facts) for _ in range(3)]
    for each in series:
        rows.bookmark(each)
    for _ in series:
        settle(store, taken(store), a_response(404))
        clock.advance(timedelta(seconds=2))
    assert rows.the_host(host).failing == "404"
    return host, series


def open_incidents(rows: Rows) -> list[str]:
    return [row.whose for row in rows("SELECT whose FROM lanes.incidents WHERE ended_at IS NULL")]


def judge(database: Database) -> int:
    return sum(ageing.judge(UpkeepStore(database)))


def test_an_incident_can_end_right_after_the_clock_went_back(rows: Rows, store: PollStore, clock: Clock) -> None:
    """CASES F: its begin is not shifted, so it ends when it began at the earliest."""
    host, _ = a_host_that_fails(rows, store, clock)
    store.keep_house()
    clock.advance(-8 * HOUR)
    assert store.shift_back() is not None
    for _ in range(12):
        clock.advance(30 * MINUTE)
        if (claim := take(store)) is not None:
            settle(store, claim, NOT_MODIFIED)
    assert rows.the_host(host).failing is None
    assert open_incidents(rows) == []


def test_what_nobody_follows_any_more_keeps_no_incident_open(
    rows: Rows, store: PollStore, clock: Clock, database: Database
) -> None:
    host, series = a_host_that_fails(rows, store, clock)
    left, deleted, stays = (rows.the_series(each).key for each in series)
    following = FollowStore(database)
    following.drop_bookmark(left)
    following.purge(deleted)
    assert [each[0] for each in rows.the_host(host).answers] == [series[2]]
    clock.advance(2 * HOUR)
    claim = taken(store)
    assert claim.key == stays
    settle(store, claim, NOT_MODIFIED)
    assert rows.the_host(host).failing is None
    assert open_incidents(rows) == []


def test_a_site_is_judged_by_the_rest_once_what_fails_there_is_paused(
    rows: Rows, store: PollStore, clock: Clock, database: Database
) -> None:
    host, series = a_host_that_fails(rows, store, clock)
    clock.advance(2 * HOUR)
    good = taken(store)
    settle(store, good, NOT_MODIFIED)
    assert open_incidents(rows) == ["site"]
    failing = [each for each in series if each != good.series_id]
    FollowStore(database).pause(rows.the_series(failing[0]).key)
    assert open_incidents(rows) == [], "one of two is not more than half"
    assert [each[0] for each in rows.the_host(host).answers] == [failing[1], good.series_id]


def test_upkeep_sees_whoever_left_a_failing_host_by_any_other_way(
    rows: Rows, store: PollStore, clock: Clock, database: Database
) -> None:
    host, series = a_host_that_fails(rows, store, clock)
    clock.advance(2 * HOUR)
    good = taken(store)
    settle(store, good, NOT_MODIFIED)
    assert judge(database) == 0
    elsewhere = rows.host("elsewhere.test")
    for each in series:
        if each != good.series_id:
            rows.set_series(each, host_id=elsewhere)
    assert judge(database) == 1
    assert open_incidents(rows) == []
    assert rows.the_host(host).answers == [[good.series_id, None, None]]


def test_what_was_given_up_while_a_poll_was_in_hand_stays_forgotten(
    rows: Rows, store: PollStore, database: Database
) -> None:
    host = rows.host("home.test")
    one, two, three = (rows.series(host, latest_checked_at=rows.now() - DAY, next_check_at="infinity") for _ in "123")
    rows.set_series(three, next_check_at="-infinity")
    since = rows.now() - 40 * DAY
    rows.set_host(
        host, answers=json.dumps([[each, "404", since.isoformat()] for each in (one, two, three)]), failing="404"
    )
    rows(
        "INSERT INTO lanes.incidents (whose, site, host_id, kind, started_at) VALUES ('site', 'feeds', %s, '404', %s)",
        host, since,
    )  # fmt: skip
    claim = taken(store)
    owner = OwnStore(database)
    for each in (one, two):
        owner.retire(rows.the_series(each).key, "dead")
    settle(store, claim, NOT_MODIFIED)
    assert rows.the_host(host).answers == [[three, None, None]]
    assert open_incidents(rows) == []


def test_an_outage_is_not_seen_by_what_is_not_polled_there(
    rows: Rows, store: PollStore, clock: Clock, database: Database
) -> None:
    """Two that fail, one of them paused meanwhile, and a third that fails now: that is no outage of three."""
    host = rows.host("home.test")
    series = [rows.series(host) for _ in range(3)]
    for _ in range(2):
        settle(store, taken(store), a_response(404))
        clock.advance(timedelta(seconds=2))
    last = taken(store)
    other = next(each for each in series if each != last.series_id)
    FollowStore(database).pause(rows.the_series(other).key)
    settle(store, last, a_response(404))
    assert open_incidents(rows) == []
    assert rows.the_series(other).failures == 1, "what is not polled there is not given back anything"


def test_what_a_site_gives_back_rests_an_hour_like_any_failure_that_it_spares(
    rows: Rows, store: PollStore, clock: Clock
) -> None:
    """DESIGN 4.4; the Series by which it is seen among them."""
    _, series = a_host_that_fails(rows, store, clock, rest="10 minutes")
    for each in series:
        row = rows.the_series(each)
        assert row.failures == 0
        assert row.next_check_at - row.latest_checked_at >= HOUR
