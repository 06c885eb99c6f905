"""Which Series is next on a Site of one host, what is held there, and the gauges of its Lane (DESIGN 4.1, 4.2, 9)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from lanes.core.schedule import phase
from lanes.store.polls import Nothing, PollStore
from lanes.store.pool import Database
from tests.fix_database import Clock
from tests.one_host import GAP, NOT_MODIFIED, REST, SITE, a_lane, a_series
from tests.rows import DAY, HOUR, LEASE, MINUTE, Rows, settle, take


@pytest.fixture
def lane(database: Database, rows: Rows) -> PollStore:
    """The Lane of a Site of one host on this machine, its Gap in force."""
    return a_lane(database, rows, "here")


def order(rows: Rows, lane: PollStore, clock: Clock, count: int) -> list[int]:
    """The next Series, each settled and its Gap waited out."""
    taken = []
    for _ in range(count):
        claim = take(lane, REST)
        assert claim is not None
        taken.append(claim.series_id)
        settle(lane, claim, NOT_MODIFIED)
        clock.advance(GAP)
    return taken


def test_pending_goes_first_then_put_back_then_the_overdue_then_most_bookmarks_then_longest_unchecked(
    rows: Rows, lane: PollStore, clock: Clock
) -> None:
    now = rows.now()
    host = rows.host(site=SITE)
    known: dict[str, Any] = {"added_at": now - 9 * DAY}
    plain = a_series(rows, host, latest_checked_at=now - 1.5 * HOUR, **known)
    longer = a_series(rows, host, latest_checked_at=now - 1.6 * HOUR, **known)
    never = a_series(rows, host, bookmarked_at=now - MINUTE, **known)
    liked = a_series(rows, host, latest_checked_at=now - 1.4 * HOUR, bookmarks=9, **known)
    overdue = a_series(rows, host, latest_checked_at=now - 3 * HOUR, **known)
    longest = a_series(rows, host, latest_checked_at=now - 4 * HOUR, **known)
    put_back = a_series(
        rows, host, latest_checked_at=now - MINUTE, retry_at=now - MINUTE, retry_reason="a hop", **known
    )
    asked = a_series(rows, host, latest_checked_at=now - HOUR, force_poll_at=now - MINUTE, **known)
    asked_before = a_series(rows, host, latest_checked_at=now - MINUTE, force_poll_at=now - 0.5 * MINUTE, **known)
    rows.set_series(asked_before, latest_checked_at=now - 3 * MINUTE, force_poll_at=now - 2 * MINUTE)
    expected = [asked_before, asked, put_back, longest, overdue, liked, never, longer, plain]
    assert order(rows, lane, clock, 9) == expected


def test_what_nobody_likes_is_not_starved_by_what_everybody_does(rows: Rows, lane: PollStore, clock: Clock) -> None:
    """More Series than the Gap can serve within their Rest: each still gets its turn."""
    host = rows.host(site=SITE)
    gap = REST / 4
    rows.enrol(SITE, gap=gap)
    liked = {a_series(rows, host, bookmarks=100) for _ in range(6)}
    unloved = a_series(rows, host, bookmarks=1)
    taken = []
    for _ in range(24):
        claim = take(lane, REST)
        assert claim is not None
        taken.append(claim.series_id)
        settle(lane, claim, NOT_MODIFIED)
        clock.advance(gap)
    assert taken.count(unloved) >= 2
    assert min(taken.count(each) for each in liked) >= 2


def test_the_series_of_a_site_with_nothing_due_let_its_lane_sleep_until_the_first_is(
    rows: Rows, lane: PollStore
) -> None:
    """Their Rest is the registry's, so what the rows say of when they may be claimed is only a lower bound."""
    now = rows.now()
    host = rows.host(site=SITE)
    stamp = now - 30 * MINUTE
    ids = [a_series(rows, host, latest_checked_at=stamp) for _ in range(3)]
    assert take(lane, REST) is None
    turn = lane.claim(LEASE, REST, None)
    assert isinstance(turn, Nothing)
    assert turn.wait is not None
    first = min(stamp + REST * (1 + phase(each) / 10) for each in ids)
    assert abs(rows.now() + turn.wait - first) < timedelta(seconds=5)


def test_a_rest_that_the_registry_changes_acts_at_once(rows: Rows, lane: PollStore) -> None:
    a_series(rows, rows.host(site=SITE), latest_checked_at=rows.now() - 30 * MINUTE)
    assert take(lane, REST) is None
    rows("UPDATE lanes.hosts SET ready_at = lanes.now()")
    assert take(lane, 20 * MINUTE) is not None


# Held, and Behind


@pytest.mark.parametrize(
    "hold",
    [
        "UPDATE lanes.lanes SET paused_at = lanes.now()",
        "UPDATE lanes.lanes SET refused_until = lanes.now() + '15 min'",
        "UPDATE lanes.hosts SET not_before = lanes.now() + '1 h', not_before_reason = 'the host does not answer'",
        "UPDATE lanes.hosts SET not_before = 'infinity', not_before_reason = 'blocked'",
        "UPDATE lanes.series SET not_before = lanes.now() + '1 h', not_before_reason = 'its URL was refused'",
    ],
    ids=["paused", "refusing", "a dead host", "the owner's word", "its own wait"],
)
def test_what_is_held_is_counted_by_itself_and_behind_leaves_it_out(rows: Rows, lane: PollStore, hold: str) -> None:
    a_series(rows, rows.host(site=SITE), added_at=rows.now() - DAY, bookmarked_at=rows.now() - DAY)
    free = lane.gauges(REST)
    assert (free.due, free.held, free.oldest_held) == (1, 0, None)
    assert free.behind is not None
    assert abs(free.behind - DAY) < MINUTE
    rows(hold)
    held = lane.gauges(REST)
    assert (held.due, held.held, held.behind) == (0, 1, None)
    assert held.oldest_held is not None
    assert abs(held.oldest_held - DAY) < MINUTE


def test_a_mere_turn_is_not_held(rows: Rows, lane: PollStore) -> None:
    a_series(rows, rows.host(site=SITE, next_at=rows.now() + MINUTE))
    rows.enrol(SITE, next_at=rows.now() + MINUTE)
    assert (lane.gauges(REST).due, lane.gauges(REST).held) == (1, 0)


def test_the_gauges_show_the_last_refusal_window_and_the_open_incidents(rows: Rows, lane: PollStore) -> None:
    now = rows.now()
    a_series(rows, rows.host(site=SITE, refused_until=now + HOUR))
    rows.enrol(SITE, refused_until=now + MINUTE)
    rows(
        "INSERT INTO lanes.incidents (whose, machine, started_at) VALUES ('us', 'here', %s), ('us', 'there', %s)",
        now,
        now,
    )
    rows(
        "INSERT INTO lanes.incidents (whose, site, started_at, ended_at) VALUES ('refusal', %s, %s, %s)", SITE, now, now
    )
    rows("INSERT INTO lanes.incidents (whose, site, started_at) VALUES ('refusal', %s, %s)", SITE, now)
    found = lane.gauges(REST)
    assert (found.refused_until, found.incidents) == (now + HOUR, 2)


def test_eligible_is_what_is_polled_at_all(rows: Rows, lane: PollStore) -> None:
    host = rows.host(site=SITE)
    now = rows.now()
    a_series(rows, host)
    a_series(rows, host, latest_checked_at=now)
    a_series(rows, host, paused_at=now)
    a_series(rows, host, lifecycle="finished")
    a_series(rows, host, retired_at=now, retired_reason="gone")
    a_series(rows, host, bookmarks=0)
    a_series(rows, host, url="")
    a_series(rows, host, tier="push", next_check_at=None)
    assert (lane.eligible(), lane.gauges(REST).eligible) == (2, 2)


def test_the_gap_is_written_for_whoever_fetches_there(rows: Rows, lane: PollStore) -> None:
    lane.set_gap(timedelta(seconds=4))
    a_series(rows, rows.host(site=SITE))
    claim = take(lane, REST)
    assert claim is not None
    assert claim.gap == timedelta(seconds=4)
