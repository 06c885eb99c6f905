"""A worker paused past its lease: of what it brings, only what slows counts (DESIGN 4, step 5; CASES B14)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from lanes.core.answer import NoResponse, Trouble
from lanes.core.claim import Claim
from lanes.core.outcome import PutBack
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from tests.answers import a_response
from tests.fix_database import Clock
from tests.rows import HOUR, LEASE, MINUTE, Rows, settle, take, trail

NOT_MODIFIED = replace(a_response(304), conditional=True)


@pytest.fixture
def series(rows: Rows) -> int:
    return rows.series(rest=10 * MINUTE, news_from=rows.now())


@pytest.fixture
def late(store: PollStore, series: int, clock: Clock) -> Claim:
    """A claim whose lease has run out."""
    claim = take(store)
    assert claim is not None
    clock.advance(LEASE + timedelta(seconds=1))
    return claim


@pytest.fixture
def holder(database: Database, late: Claim) -> Claim:
    """Another machine's claim of the same Series, after it."""
    claim = take(PollStore(database, "feeds", "there"))
    assert claim is not None
    assert claim.series_id == late.series_id
    return claim


def test_a_late_wait_counts_and_nothing_else(
    rows: Rows, store: PollStore, series: int, late: Claim, holder: Claim
) -> None:
    """CASES B14"""
    before = rows.the_series(series)
    assert not settle(store, late, a_response(429, retry_after="3600"))
    assert rows.the_host(late.host_id).not_before == late.claimed_at + HOUR
    assert rows.the_series(series) == before


def test_the_holder_settles_as_if_nobody_else_had_come(
    rows: Rows, store: PollStore, series: int, late: Claim, holder: Claim
) -> None:
    settle(store, late, a_response(404))
    assert settle(store, holder, NOT_MODIFIED)
    row = rows.the_series(series)
    assert row.failures == 0
    assert row.lease_token is None
    assert row.rest == 15 * MINUTE


def test_a_late_settle_leaves_the_host_in_its_holders_hand(
    rows: Rows, store: PollStore, late: Claim, holder: Claim
) -> None:
    settle(store, late, NOT_MODIFIED)
    host = rows.the_host(late.host_id)
    assert host.busy_token == holder.token
    assert host.busy_until == holder.claimed_at + LEASE


def test_a_late_wait_outlives_the_holders_good_answer(rows: Rows, store: PollStore, late: Claim, holder: Claim) -> None:
    settle(store, late, a_response(429, retry_after="3600"))
    settle(store, holder, NOT_MODIFIED)
    assert rows.the_host(late.host_id).not_before == late.claimed_at + HOUR


def test_a_late_wait_of_the_series_outlives_the_holders_good_answer(
    rows: Rows, store: PollStore, series: int, late: Claim, holder: Claim
) -> None:
    settle(store, late, a_response(503, retry_after="3600"))
    settle(store, holder, NOT_MODIFIED)
    assert rows.the_series(series).not_before == late.claimed_at + HOUR


def test_a_late_wider_interval_outlives_the_holders_good_answer(
    rows: Rows, store: PollStore, late: Claim, holder: Claim
) -> None:
    """A good answer narrows by a tenth at most; it does not undo what was learnt while it was on its way."""
    settle(store, late, a_response(429))
    assert rows.the_host(late.host_id).pace == timedelta(seconds=90)
    settle(store, holder, NOT_MODIFIED)
    assert rows.the_host(late.host_id).pace >= timedelta(seconds=81)


def test_a_late_good_answer_never_narrows(rows: Rows, store: PollStore, late: Claim, holder: Claim) -> None:
    settle(store, holder, NoResponse(Trouble.TIMEOUT, "silent"))
    slow = rows.the_host(late.host_id).pace
    settle(store, late, NOT_MODIFIED)
    assert rows.the_host(late.host_id).pace == slow


def test_a_late_shorter_wait_never_shortens(rows: Rows, store: PollStore, late: Claim, holder: Claim) -> None:
    settle(store, holder, a_response(429, retry_after="7200"))
    settle(store, late, a_response(429, retry_after="60"))
    assert rows.the_host(late.host_id).not_before == holder.claimed_at + 2 * HOUR


def test_a_late_settle_is_recorded_as_too_late(rows: Rows, store: PollStore, late: Claim, holder: Claim) -> None:
    settle(store, late, a_response(404))
    records = [row for row in rows.polls() if row.token == late.token]
    assert records
    assert all(row.detail is None or "too late" in row.detail or row.outcome == "abandoned" for row in records)


def test_a_late_put_back_changes_nothing(rows: Rows, store: PollStore, series: int, late: Claim, holder: Claim) -> None:
    before = rows.the_series(series)
    assert not store.put_back(late, PutBack("SIGTERM", timedelta(0), None, None), trail(late))
    assert rows.the_series(series) == before
    assert rows.the_host(late.host_id).busy_token == holder.token


def test_a_lease_that_ran_out_unnoticed_still_settles_whole(
    rows: Rows, store: PollStore, series: int, late: Claim
) -> None:
    """The fence is the token: while nobody else claimed the Series, what was found is kept."""
    assert settle(store, late, NOT_MODIFIED)
    assert rows.the_series(series).good_at is not None
