"""What a claim does: which Series, what it stamps, leases and spends (DESIGN 4.1)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lanes.core.claim import Trigger
from lanes.store.polls import Nothing, PollStore
from lanes.store.pool import Database
from tests.answers import a_response
from tests.fix_database import Clock
from tests.rows import DAY, HOUR, LEASE, MINUTE, NEVER, Rows, settle, take, take_all

NOT_MODIFIED = replace(a_response(304), conditional=True)


# What it takes


def test_a_new_series_is_claimed_at_once(rows: Rows, store: PollStore) -> None:
    series = rows.series()
    claim = take(store)
    assert claim is not None
    assert claim.series_id == series
    assert claim.trigger is Trigger.ITS_TIME


def test_with_nothing_there_the_lane_may_sleep(store: PollStore) -> None:
    assert store.claim(LEASE, None, None) == Nothing(None)


def test_the_lane_may_sleep_until_the_next_series_is_due_and_no_longer(rows: Rows, store: PollStore) -> None:
    due_at = rows.now() + HOUR
    rows.series(rows.host(ready_at=due_at), next_check_at=due_at, latest_checked_at=rows.now())
    turn = store.claim(LEASE, None, None)
    assert isinstance(turn, Nothing)
    assert turn.wait is not None
    assert 59 * MINUTE < turn.wait <= HOUR


def test_a_claimed_poll_carries_what_its_fetch_and_its_decision_need(rows: Rows, store: PollStore) -> None:
    now = rows.now()
    host = rows.host(
        "named.test",
        address="192.0.2.7",
        pace=timedelta(seconds=2),
        crawl_delay=timedelta(seconds=7),
        latency=timedelta(seconds=0.3),
    )
    rows.series(
        host,
        url="https://named.test/feed",
        etag='"a"',
        validators_url="https://named.test/feed",
        failures=3,
        failing_since=now - DAY,
        hint_every=3 * HOUR,
        hint_skip_hours=0b101,
        hint_skip_days=0b1000010,
        guid_alone=False,
        news_from=now - DAY,
    )
    claim = take(store)
    assert claim is not None
    assert (claim.host, claim.address, claim.url) == ("named.test", "192.0.2.7", "https://named.test/feed")
    assert claim.host_pace == timedelta(seconds=7)
    assert claim.pace.pace == timedelta(seconds=2)
    assert claim.pace.latency == timedelta(seconds=0.3)
    assert claim.validators is not None
    assert claim.validators.etag == '"a"'
    assert claim.failures == 3
    assert claim.hints.every == 3 * HOUR
    assert claim.hints.skip_hours == {0, 2}
    assert claim.hints.skip_days == {1, 6}
    assert not claim.guid_alone
    assert claim.news_from == now - DAY
    assert claim.rest == 2 * MINUTE


@pytest.mark.parametrize(
    "facts",
    [{"bookmarks": 0}, {"url": ""}, {"tier": "push", "next_check_at": None}],
    ids=["no Bookmark", "no URL", "push"],
)
def test_what_is_never_due_is_never_claimed(rows: Rows, store: PollStore, facts: dict[str, Any]) -> None:
    """CASES A9"""
    rows.series(**facts, force_poll_at=rows.now())
    assert take(store) is None


def test_a_series_without_bookmarks_is_picked_up_where_it_was(rows: Rows, store: PollStore) -> None:
    """CASES A9"""
    series = rows.series(
        bookmarks=0, etag='"a"', validators_url="https://host.test/", latest_checked_at=rows.now() - DAY
    )
    assert take(store) is None
    rows.bookmark(series)
    rows("UPDATE lanes.hosts SET ready_at = lanes.now()")
    claim = take(store)
    assert claim is not None
    assert claim.validators is not None
    assert claim.validators.etag == '"a"'


def test_another_sites_series_are_not_this_lanes(rows: Rows, store: PollStore) -> None:
    rows.series(site="elsewhere")
    assert take(store) is None


# What it writes and spends


def test_a_claim_stamps_and_leases_its_series(rows: Rows, store: PollStore) -> None:
    earlier = rows.now() - DAY
    series = rows.series(latest_checked_at=earlier)
    claim = take(store)
    assert claim is not None
    row = rows.the_series(series)
    assert row.latest_checked_at == claim.claimed_at
    assert row.lease_until == claim.claimed_at + LEASE
    assert row.lease_token == claim.token
    assert (row.lease_machine, row.lease_trigger) == ("here", "its time")
    assert row.earlier_checked_at == earlier


def test_a_claim_spends_the_host_bucket_and_takes_its_host(rows: Rows, store: PollStore) -> None:
    host = rows.host(pace=timedelta(seconds=3))
    rows.series(host)
    claim = take(store)
    assert claim is not None
    row = rows.the_host(host)
    assert row.next_at == claim.claimed_at + timedelta(seconds=3)
    assert row.busy_until == claim.claimed_at + LEASE
    assert row.busy_token == claim.token
    assert row.ready_at <= claim.claimed_at + LEASE


@pytest.mark.parametrize(
    "bound",
    [{"crawl_delay": timedelta(seconds=30)}, {"owner_pace": timedelta(seconds=30)}],
    ids=["crawl delay", "owner's word"],
)
def test_every_lower_bound_of_a_host_is_spent(rows: Rows, store: PollStore, bound: dict[str, Any]) -> None:
    host = rows.host(**bound)
    rows.series(host)
    claim = take(store)
    assert claim is not None
    assert claim.host_pace == timedelta(seconds=30)
    assert rows.the_host(host).next_at == claim.claimed_at + timedelta(seconds=30)


def test_a_crawl_delay_wins_over_the_ceiling_of_five_minutes(rows: Rows, store: PollStore) -> None:
    rows.series(rows.host(crawl_delay=HOUR, pace=5 * MINUTE))
    claim = take(store)
    assert claim is not None
    assert claim.host_pace == HOUR


def test_a_lower_bound_never_speeds_a_slow_host(rows: Rows, store: PollStore) -> None:
    rows.series(rows.host(crawl_delay=timedelta(seconds=2), owner_pace=timedelta(seconds=2), pace=MINUTE))
    claim = take(store)
    assert claim is not None
    assert claim.host_pace == MINUTE


def test_a_host_is_fetched_by_one_at_a_time(rows: Rows, store: PollStore, clock: Clock) -> None:
    host = rows.host()
    rows.series(host)
    rows.series(host)
    claim = take(store)
    assert claim is not None
    clock.advance(timedelta(seconds=30))
    assert take(store) is None
    settle(store, claim, NOT_MODIFIED)
    assert take(store) is not None


def test_a_hosts_next_fetch_waits_for_its_bucket(rows: Rows, store: PollStore, clock: Clock) -> None:
    host = rows.host(pace=MINUTE)
    rows.series(host)
    rows.series(host)
    claim = take(store)
    assert claim is not None
    settle(store, claim, NOT_MODIFIED)
    assert take(store) is None
    clock.advance(MINUTE)
    assert take(store) is not None


def test_two_processes_share_one_pace(rows: Rows, store: PollStore, database: Database, clock: Clock) -> None:
    host = rows.host(pace=MINUTE)
    rows.series(host)
    rows.series(host)
    other = PollStore(database, "feeds", "there")
    claim = take(store)
    assert claim is not None
    settle(store, claim, NOT_MODIFIED)
    assert take(other) is None
    clock.advance(MINUTE)
    assert take(other) is not None
    assert take(store) is None


# Gates


def test_a_paused_lane_claims_nothing_not_even_what_is_pending(rows: Rows, store: PollStore) -> None:
    rows.series(force_poll_at=rows.now())
    rows.enrol(paused_at=rows.now())
    assert take(store) is None
    rows.enrol(paused_at=None)
    assert take(store) is not None


def test_nothing_opens_a_hosts_wait_early(rows: Rows, store: PollStore, clock: Clock) -> None:
    """CASES B2, B6"""
    host = rows.host(not_before=rows.now() + DAY, not_before_reason="Retry-After")
    rows.series(host, force_poll_at=rows.now())
    rows.set_host(host, pending_at=rows.now())
    assert take(store) is None
    clock.advance(DAY - MINUTE)
    assert take(store) is None
    clock.advance(MINUTE)
    assert take(store) is not None


def test_a_series_that_waits_leaves_its_neighbours_alone(rows: Rows, store: PollStore) -> None:
    """CASES B1"""
    host = rows.host()
    rows.series(host, not_before=rows.now() + HOUR, not_before_reason="Retry-After")
    neighbour = rows.series(host)
    claim = take(store)
    assert claim is not None
    assert claim.series_id == neighbour


# Which Series of a host, and whose turn


def test_on_a_host_pending_goes_first_then_put_back_then_the_longest_due(
    rows: Rows, store: PollStore, clock: Clock
) -> None:
    now = rows.now()
    host = rows.host()
    longest = rows.series(host, latest_checked_at=now - DAY, next_check_at=now - 9 * HOUR)
    younger = rows.series(host, latest_checked_at=now - DAY, next_check_at=now - 8 * HOUR)
    put_back = rows.series(host, latest_checked_at=now - DAY, retry_at=now - MINUTE, retry_reason="an obstacle")
    pending = rows.series(host, latest_checked_at=now - HOUR, force_poll_at=now, next_check_at=now + DAY)
    order = []
    for _ in range(4):
        claim = take(store)
        assert claim is not None
        order.append(claim.series_id)
        settle(store, claim, NOT_MODIFIED)
        clock.advance(timedelta(seconds=1))
    assert order == [pending, put_back, longest, younger]


def test_the_oldest_request_is_the_first(rows: Rows, store: PollStore) -> None:
    now = rows.now()
    host = rows.host()
    rows.series(host, latest_checked_at=now - DAY, force_poll_at=now - MINUTE)
    oldest = rows.series(host, latest_checked_at=now - DAY, force_poll_at=now - HOUR)
    claim = take(store)
    assert claim is not None
    assert claim.series_id == oldest
    assert claim.trigger is Trigger.PENDING


def test_a_host_with_something_pending_goes_before_one_that_is_ready_longer(rows: Rows, store: PollStore) -> None:
    now = rows.now()
    rows.series(rows.host(ready_at=now - DAY))
    asked = rows.series(
        rows.host(ready_at=now - MINUTE, pending_at=now), latest_checked_at=now - HOUR, force_poll_at=now
    )
    claim = take(store)
    assert claim is not None
    assert claim.series_id == asked


def test_hosts_take_turns_by_how_long_they_have_been_ready(rows: Rows, store: PollStore) -> None:
    now = rows.now()
    ready = {age: rows.series(rows.host(ready_at=now - age * MINUTE)) for age in (5, 9, 3, 7)}
    assert [claim.series_id for claim in take_all(store)] == [ready[age] for age in (9, 7, 5, 3)]


def test_a_host_with_two_thousand_due_series_starves_nobody(rows: Rows, store: PollStore) -> None:
    """CASES B11"""
    now = rows.now()
    big = rows.host(ready_at=now - DAY)
    rows(
        "INSERT INTO lanes.series (key, site, host_id, queue_host_id, url, bookmarks, rest) "
        "SELECT 'big-' || n, 'feeds', %s, %s, 'https://big.test/' || n, 1, '2 minutes' FROM generate_series(1, 2000) n",
        big,
        big,
    )
    small = {rows.series(rows.host(ready_at=now - MINUTE)) for _ in range(50)}
    served = set()
    for _ in range(51):
        claim = take(store)
        assert claim is not None
        served.add(claim.series_id)
        settle(store, claim, NOT_MODIFIED)
    assert small <= served


def test_the_bound_of_the_scan_hides_no_host_that_became_ready_since(rows: Rows, store: PollStore) -> None:
    now = rows.now()
    rows.series(rows.host(ready_at=now - HOUR))
    later = rows.series(rows.host(ready_at=now))
    claim = take(store)
    assert claim is not None
    turn = store.claim(LEASE, None, now - HOUR)
    assert not isinstance(turn, Nothing)
    assert rows.the_series(later).latest_checked_at > NEVER


# Asking


def test_a_pending_request_overrides_rest_schedule_sighting_and_the_finished_clause(
    rows: Rows, store: PollStore
) -> None:
    now = rows.now()
    rows.series(
        latest_checked_at=now - MINUTE,
        next_check_at=now + DAY,
        sighted_at=now,
        lifecycle="finished",
        rest=HOUR,
        force_poll_at=now,
    )
    claim = take(store)
    assert claim is not None
    assert claim.trigger is Trigger.PENDING


def test_the_stamp_clears_the_request(rows: Rows, store: PollStore, clock: Clock) -> None:
    now = rows.now()
    host = rows.host(pending_at=now)
    rows.series(host, latest_checked_at=now - MINUTE, next_check_at=now + DAY, force_poll_at=now)
    claim = take(store)
    assert claim is not None
    settle(store, claim, NOT_MODIFIED)
    assert rows.the_host(host).pending_at is None
    clock.advance(MINUTE)
    assert take(store) is None


def test_nothing_pending_is_asked_of_a_retired_series(rows: Rows, store: PollStore) -> None:
    now = rows.now()
    rows.series(latest_checked_at=now - DAY, force_poll_at=now, retired_at=now - DAY, retired_reason="gone")
    assert take(store) is None


def test_the_retired_and_the_finished_are_looked_at_weekly(rows: Rows, store: PollStore, clock: Clock) -> None:
    now = rows.now()
    rows.series(latest_checked_at=now - 6 * DAY, retired_at=now - 9 * DAY, retired_reason="gone")
    rows.series(latest_checked_at=now - 6 * DAY, lifecycle="finished")
    assert take_all(store) == []
    clock.advance(DAY)
    assert [claim.trigger for claim in take_all(store)] == [Trigger.WEEKLY_LOOK] * 2


def test_a_sighting_younger_than_the_rest_defers_the_poll(rows: Rows, store: PollStore, clock: Clock) -> None:
    rows.series(latest_checked_at=rows.now() - DAY, rest=HOUR, sighted_at=rows.now() - 30 * MINUTE)
    assert take(store) is None
    clock.advance(31 * MINUTE)
    assert take(store) is not None
