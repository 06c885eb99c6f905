"""The wake gate: Chrome stays asleep for the few that have not waited long, Lane by Lane (DESIGN 5.6)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from lanes.core.claim import Trigger
from lanes.core.outcome import PutBack
from lanes.store.asking import AskStore
from lanes.store.browsing import ServingStore
from lanes.store.following import FollowStore
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from tests.fix_database import Clock
from tests.one_host import REST
from tests.page_rows import SECOND, PageLane, a_page_lane
from tests.rows import DAY, MINUTE, Rows, take, trail


@pytest.fixture
def serving(database: Database) -> ServingStore:
    """The sidecar's side: it lives, and Chrome sleeps."""
    serving = ServingStore(database)
    serving.begin("Chrome/1")
    return serving


def due_for(rows: Rows, lane: PageLane, *ages: timedelta) -> list[Any]:
    """Series of a Lane's one host, due for so long."""
    (host,) = rows("SELECT id FROM lanes.hosts WHERE site = %s", lane.site)
    now = rows.now()
    ids = [rows.series(host.id, lane.site, rest=None, added_at=now - age, bookmarked_at=now - age) for age in ages]
    return [rows.the_series(each) for each in ids]


ZERO, ALMOST = timedelta(0), 15 * MINUTE - 5 * SECOND


@pytest.mark.parametrize(
    ("ages", "wakes"),
    [
        ([], False),
        ([ZERO], False),
        ([ALMOST], False),
        ([ALMOST] * 4, False),
        ([ZERO] * 5, True),
        ([15 * MINUTE], True),
        ([ZERO, DAY], True),
    ],
)
def test_chrome_sleeps_while_fewer_than_five_are_due_and_none_for_fifteen_minutes(
    rows: Rows, database: Database, serving: ServingStore, ages: list[timedelta], wakes: bool
) -> None:
    lane = a_page_lane(database, rows, series=0)
    rested = due_for(rows, lane, *[DAY] * 10)
    rows("UPDATE lanes.series SET latest_checked_at = lanes.now()")
    due_for(rows, lane, *ages)
    before = rows("SELECT * FROM lanes.series ORDER BY id")
    claim = take(lane.store, REST)
    assert (claim is not None) is wakes
    if claim is None:
        assert rows("SELECT * FROM lanes.series ORDER BY id") == before
    else:
        assert claim.series_id not in {each.id for each in rested}


def test_the_sleep_of_chrome_is_each_lanes_own(rows: Rows, database: Database, serving: ServingStore) -> None:
    panels, strips = (a_page_lane(database, rows, site, series=0) for site in ("panels", "strips"))
    due_for(rows, panels, *[ZERO] * 5)
    due_for(rows, strips, *[ZERO] * 4)
    assert take(strips.store, REST) is None
    assert take(panels.store, REST) is not None


def test_what_is_paused_or_finished_does_not_wake_chrome(rows: Rows, database: Database, serving: ServingStore) -> None:
    lane = a_page_lane(database, rows, series=0)
    paused, finished, deserted, *_ = due_for(rows, lane, *[ZERO] * 7)
    rows.set_series(paused.id, paused_at=rows.now())
    rows.set_series(finished.id, lifecycle="finished", latest_checked_at=rows.now())
    rows.set_series(deserted.id, bookmarks=0)
    assert take(lane.store, REST) is None


def test_a_sleeping_chrome_says_when_it_wakes_and_holds_nobody(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    lane = a_page_lane(database, rows, series=0)
    younger, oldest = due_for(rows, lane, 3 * MINUTE, 4 * MINUTE)
    why = AskStore(database, {"panels": REST}, polling=True).one(younger.key).why
    assert why.reason == "Chrome sleeps: fewer than 5 are due, none for 15 minutes"
    assert why.until == oldest.bookmarked_at + 15 * MINUTE
    assert not why.held
    clock.advance(11 * MINUTE + SECOND)
    serving.beat(awake=False, version=None)
    assert take(lane.store, REST) is not None


def test_where_nothing_is_due_nobody_is_told_that_he_waits_for_chrome(
    rows: Rows, database: Database, serving: ServingStore
) -> None:
    lane = a_page_lane(database, rows, series=0)
    (rested,) = due_for(rows, lane, DAY)
    rows.set_series(rested.id, latest_checked_at=rows.now())
    why = AskStore(database, {"panels": REST}, polling=True).one(rested.key).why
    assert "Chrome" not in str(why.reason)
    assert take(lane.store, REST) is None


def test_a_check_now_wakes_chrome(rows: Rows, database: Database, serving: ServingStore) -> None:
    lane = a_page_lane(database, rows, series=0)
    (series,) = due_for(rows, lane, DAY)
    rows.set_series(series.id, latest_checked_at=rows.now())
    assert take(lane.store, REST) is None
    FollowStore(database).check_now(series.key)
    claim = take(lane.store, REST)
    assert claim is not None
    assert claim.trigger is Trigger.PENDING


def test_what_was_put_back_wakes_chrome_when_its_obstacle_ends(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    """It had its turn: it waits for its obstacle, a lost browser or a Gap, and not for another quarter of an hour (DESIGN 4)."""
    lane = a_page_lane(database, rows, series=0)
    (series,) = due_for(rows, lane, 16 * MINUTE)
    claim = lane.in_hand()
    lane.store.put_back(claim, PutBack("the browser is lost", 10 * SECOND, None, None), trail(claim))
    assert take(lane.store, REST) is None
    clock.advance(11 * SECOND)
    serving.beat(awake=False, version=None)
    again = take(lane.store, REST)
    assert again is not None
    assert (again.series_id, again.trigger) == (series.id, Trigger.PUT_BACK)


def test_chrome_once_awake_takes_whatever_is_due(rows: Rows, database: Database, serving: ServingStore) -> None:
    lane = a_page_lane(database, rows, series=0)
    due_for(rows, lane, ZERO)
    assert take(lane.store, REST) is None
    serving.beat(awake=True, version=None)
    assert take(lane.store, REST) is not None


def test_a_lane_of_a_plain_site_never_waits_for_chrome(rows: Rows, store: PollStore, serving: ServingStore) -> None:
    rows.series()
    assert take(store) is not None
