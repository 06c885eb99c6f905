"""A worker that dies leaves a lease that runs out: found, counted, and after three in a row charged (DESIGN 4; CASES H1, H2)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from lanes.core.claim import Claim, Trigger
from lanes.core.outcome import PutBack
from lanes.store.polls import PollStore
from tests.answers import a_response
from tests.fix_database import Clock
from tests.rows import DAY, LEASE, MINUTE, Rows, settle, take, trail

NOT_MODIFIED = replace(a_response(304), conditional=True)
SECOND = timedelta(seconds=1)


def taken(store: PollStore) -> Claim:
    claim = take(store)
    assert claim is not None
    return claim


def abandon(store: PollStore, clock: Clock, times: int) -> None:
    """So many workers in a row claim and die."""
    for _ in range(times):
        taken(store)
        clock.advance(LEASE + SECOND)


def test_a_lapsed_lease_makes_its_series_due_rest_notwithstanding(rows: Rows, store: PollStore, clock: Clock) -> None:
    """CASES H1"""
    series = rows.series(rest=timedelta(hours=1), latest_checked_at=rows.now() - DAY)
    first = taken(store)
    clock.advance(LEASE - SECOND)
    assert take(store) is None
    clock.advance(2 * SECOND)
    again = taken(store)
    assert again.series_id == series
    assert again.trigger is Trigger.ABANDONED
    assert again.token != first.token


def test_the_next_request_is_at_least_an_interval_later(rows: Rows, store: PollStore, clock: Clock) -> None:
    """CASES H1: a host slower than a lease stays as slow."""
    rows.series(rows.host(pace=5 * MINUTE))
    first = taken(store)
    clock.advance(LEASE + SECOND)
    assert take(store) is None
    clock.advance(5 * MINUTE - LEASE)
    assert taken(store).claimed_at >= first.claimed_at + 5 * MINUTE


def test_the_claim_that_finds_a_lapsed_lease_counts_and_records_it(rows: Rows, store: PollStore, clock: Clock) -> None:
    rows.series()
    first = taken(store)
    clock.advance(LEASE + SECOND)
    assert taken(store).abandoned == 1
    (record,) = rows.polls()
    assert record.outcome == "abandoned"
    assert record.token == first.token
    assert record.claimed_at == first.claimed_at
    assert record.machine == "here"
    assert record.sent_at is None


def test_after_two_in_a_row_the_claim_says_so_that_it_is_fetched_alone(
    rows: Rows, store: PollStore, clock: Clock
) -> None:
    rows.series()
    abandon(store, clock, 2)
    assert taken(store).abandoned == 2


def test_after_three_in_a_row_the_claim_says_so_that_it_is_not_fetched_at_all(
    rows: Rows, store: PollStore, clock: Clock
) -> None:
    """CASES H2"""
    rows.series()
    abandon(store, clock, 3)
    assert taken(store).abandoned == 3
    assert [poll.outcome for poll in rows.polls()] == ["abandoned"] * 3


def test_a_settle_ends_the_row(rows: Rows, store: PollStore, clock: Clock) -> None:
    series = rows.series()
    abandon(store, clock, 2)
    settle(store, taken(store), NOT_MODIFIED)
    assert rows.the_series(series).abandoned == 0


def test_a_put_back_ends_the_row(rows: Rows, store: PollStore, clock: Clock) -> None:
    series = rows.series()
    abandon(store, clock, 2)
    claim = taken(store)
    store.put_back(claim, PutBack("SIGTERM", timedelta(0), None, None), trail(claim))
    assert rows.the_series(series).abandoned == 0


def test_an_abandoned_poll_sets_its_host_free(rows: Rows, store: PollStore, clock: Clock) -> None:
    host = rows.host()
    rows.series(host)
    rows.series(host)
    taken(store)
    clock.advance(LEASE + SECOND)
    claim = taken(store)
    settle(store, claim, NOT_MODIFIED)
    assert rows.the_host(host).busy_token is None
