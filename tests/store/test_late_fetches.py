"""A fetch in hand that is late: nothing is written after its lease, inside a wait, or on a slot that another took (DESIGN 4, Sent); and
what it brings after the clock went back silences nobody."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from datetime import timedelta
from uuid import UUID

import pytest

from lanes.core.answer import Answer, Sent
from lanes.core.claim import Claim
from lanes.core.outcome import PutBack
from lanes.core.pace import ADDRESS_PACE
from lanes.fetch.permits import Wait
from lanes.hand import Hand
from lanes.store.polls import PollStore
from lanes.store.pool import Database, connect
from lanes.store.settled import Trail
from tests.answers import a_response
from tests.fix_database import Clock
from tests.rows import HOUR, LEASE, MINUTE, Rows, open_rows, settle, take

ADDRESS = "192.0.2.1"
ANOTHER = UUID(int=7)
LATE = 2.0
"""Seconds after its claim: past SENT_LATE, so that the buckets are asked again."""


@pytest.fixture
def claim(rows: Rows, store: PollStore) -> Claim:
    """A Poll in hand, on a host of a known address."""
    rows.series(rows.host("one.test", address=ADDRESS), rest=10 * MINUTE)
    claim = take(store)
    assert claim is not None
    return claim


def hand_of(store: PollStore, claim: Claim, seconds: float = LATE, stop: threading.Event | None = None) -> Hand:
    """The permits of a Poll that was claimed so many seconds ago."""
    return Hand(store, claim, time.monotonic() - seconds, LEASE, stop)


def refuses_to_write(hand: Hand) -> bool:
    """Whether nothing may be written, nor counts as written."""
    return isinstance(hand.sending("one.test", ADDRESS), Wait) and hand.trail(None).requests == ()


def test_a_late_request_whose_host_is_open_is_written(store: PollStore, claim: Claim) -> None:
    """What the others are measured against."""
    assert not refuses_to_write(hand_of(store, claim))


def test_nothing_is_written_after_the_lease_by_the_workers_own_clock(store: PollStore, claim: Claim) -> None:
    assert refuses_to_write(hand_of(store, claim, 91))


def test_nothing_is_written_after_the_lease_by_the_databases_clock(
    store: PollStore, claim: Claim, clock: Clock
) -> None:
    """A machine that slept: its monotonic clock stood still."""
    clock.advance(LEASE + timedelta(seconds=1))
    assert refuses_to_write(hand_of(store, claim))


def test_nothing_is_written_into_a_wait_that_another_worker_was_told(
    rows: Rows, store: PollStore, claim: Claim
) -> None:
    rows.set_host(claim.host_id, not_before=rows.now() + HOUR, not_before_reason="Retry-After")
    before = rows.the_host(claim.host_id)
    assert refuses_to_write(hand_of(store, claim))
    assert rows.the_host(claim.host_id) == before


def test_nothing_is_written_to_a_host_in_another_leases_hand(rows: Rows, store: PollStore, claim: Claim) -> None:
    rows.set_host(claim.host_id, busy_token=ANOTHER, busy_until=rows.now() + LEASE)
    assert refuses_to_write(hand_of(store, claim))


def test_no_further_host_is_entered_after_the_lease(rows: Rows, store: PollStore, claim: Claim, clock: Clock) -> None:
    target = rows.host("two.test", address="192.0.2.2")
    before = rows.the_host(target)
    clock.advance(LEASE + timedelta(seconds=1))
    assert isinstance(hand_of(store, claim).hop("two.test", "http://two.test"), Wait)
    assert rows.the_host(target) == before


def test_no_further_host_is_entered_when_the_series_is_another_leases(
    rows: Rows, store: PollStore, claim: Claim
) -> None:
    rows.host("two.test")
    rows.set_series(claim.series_id, lease_token=ANOTHER)
    assert isinstance(hand_of(store, claim).hop("two.test", "http://two.test"), Wait)


def another_took_the_slots(rows: Rows, until: timedelta) -> None:
    rows("UPDATE lanes.addresses SET next_at = lanes.now() + %s, used_by = %s", until, ANOTHER)


def test_a_slot_that_is_hours_ahead_is_not_slept_for_nor_spent(rows: Rows, store: PollStore, claim: Claim) -> None:
    another_took_the_slots(rows, 2 * HOUR)
    opens_at = rows.one("SELECT next_at FROM lanes.addresses")
    host = rows.the_host(claim.host_id)
    answer = hand_of(store, claim).sending("one.test", ADDRESS)
    assert isinstance(answer, Wait)
    assert abs(answer.delay - 2 * HOUR) < MINUTE
    assert rows.one("SELECT next_at FROM lanes.addresses") == opens_at
    assert rows.the_host(claim.host_id) == host


def test_a_slot_a_few_seconds_ahead_is_waited_for_unless_the_process_stops(
    rows: Rows, store: PollStore, claim: Claim
) -> None:
    another_took_the_slots(rows, timedelta(seconds=LATE + 4))
    stop = threading.Event()
    stop.set()
    assert refuses_to_write(hand_of(store, claim, stop=stop))


def test_a_slot_just_ahead_is_waited_for_and_spent(rows: Rows, store: PollStore, claim: Claim) -> None:
    another_took_the_slots(rows, timedelta(seconds=LATE + 0.2))
    opens_at = rows.one("SELECT next_at FROM lanes.addresses")
    sent_at = hand_of(store, claim).sending("one.test", ADDRESS)
    assert not isinstance(sent_at, Wait)
    assert sent_at >= opens_at
    assert rows.one("SELECT next_at FROM lanes.addresses") == opens_at + ADDRESS_PACE


def answered(claim: Claim) -> Trail:
    """Where a Poll went that wrote its one request two seconds after its claim."""
    at = claim.claimed_at + timedelta(seconds=LATE)
    return Trail(
        claim.host_id, (claim.host_id,), (at,), (Sent(claim.url, claim.host, ADDRESS, at),), (claim.host_pace,)
    )


def the_clock_goes_back(store: PollStore, clock: Clock) -> None:
    store.keep_house()
    clock.advance(-8 * HOUR)
    assert store.shift_back() is not None


@pytest.mark.parametrize(
    ("answer", "longest"),
    [
        (a_response(404), HOUR),
        (a_response(429, retry_after="600"), HOUR),
        (a_response(503, retry_after="600"), HOUR),
        (a_response(500), HOUR),
    ],
    ids=lambda value: str(getattr(value, "status", "")),
)
def test_what_a_poll_brings_after_the_clock_went_back_silences_nobody(
    rows: Rows, store: PollStore, claim: Claim, clock: Clock, answer: Answer, longest: timedelta
) -> None:
    """CASES A13, with the Poll in hand."""
    the_clock_goes_back(store, clock)
    assert settle(store, claim, answer, on=answered(claim))
    series, host, t = rows.the_series(claim.series_id), rows.the_host(claim.host_id), rows.now()
    latest = max(
        *(series.next_check_at, series.latest_checked_at, series.claimable_at, series.not_before or t),
        *(host.next_at, host.sent_at, host.not_before, host.ready_at, host.busy_until),
    )
    assert latest - t <= longest
    clock.advance(longest)
    again = take(store)
    assert again is not None
    assert again.series_id == claim.series_id


def test_a_wait_that_a_poll_brings_after_the_clock_went_back_is_obeyed(
    rows: Rows, store: PollStore, claim: Claim, clock: Clock
) -> None:
    the_clock_goes_back(store, clock)
    settle(store, claim, a_response(429, retry_after="3600"), on=answered(claim))
    assert abs(rows.the_host(claim.host_id).not_before - rows.now() - HOUR) < MINUTE


def test_a_wait_settled_before_anybody_shifted_is_obeyed_after_the_shift(
    rows: Rows, store: PollStore, claim: Claim, clock: Clock
) -> None:
    store.keep_house()
    clock.advance(-8 * HOUR)
    settle(store, claim, a_response(429, retry_after="3600"), on=answered(claim))
    store.shift_back()
    assert abs(rows.the_host(claim.host_id).not_before - rows.now() - HOUR) < MINUTE


def test_a_poll_put_back_after_the_clock_went_back_goes_on_at_once(
    rows: Rows, store: PollStore, claim: Claim, clock: Clock
) -> None:
    the_clock_goes_back(store, clock)
    store.put_back(claim, PutBack("an obstacle", timedelta(0), None, None), answered(claim))
    host = rows.the_host(claim.host_id)
    assert max(host.next_at, host.sent_at, host.ready_at) - rows.now() < MINUTE
    clock.advance(MINUTE)
    assert take(store) is not None


def test_a_hop_after_the_clock_went_back_holds_its_host_no_longer_than_the_lease(
    rows: Rows, store: PollStore, claim: Claim, clock: Clock
) -> None:
    target = rows.host("two.test")
    the_clock_goes_back(store, clock)
    hand_of(store, claim).hop("two.test", "http://two.test")
    assert rows.the_host(target).busy_until - rows.now() <= LEASE


def test_a_late_request_after_the_clock_went_back_spends_no_slot_hours_ahead(
    rows: Rows, store: PollStore, claim: Claim, clock: Clock
) -> None:
    the_clock_goes_back(store, clock)
    hand_of(store, claim).sending("one.test", ADDRESS)
    assert rows.one("SELECT next_at FROM lanes.addresses") - rows.now() < MINUTE
    assert rows.the_host(claim.host_id).next_at - rows.now() < MINUTE


def test_two_hours_are_two_hours_on_the_night_when_the_clocks_change(database_url: str) -> None:
    """On a database whose own TimeZone is Berlin's, where 02:00 of that night does not exist."""
    with open_rows(database_url) as rows:
        rows(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET TimeZone = ''Europe/Berlin''', current_database()); END $$"
        )
    with open_rows(database_url) as rows, closing(Database(database_url)) as database:
        assert rows.one("SHOW TimeZone") == "Europe/Berlin"
        rows(
            "UPDATE lanes.clock SET latest_seen = '-infinity', test_offset = '2027-03-28 01:59+01' - statement_timestamp()"
        )
        store = PollStore(database, "feeds", "here")
        rows.series()
        claim = take(store)
        assert claim is not None
        assert claim.claimed_at.utcoffset() == timedelta(0)
        settle(store, claim, a_response(429, retry_after="7200"))
        held = rows.one("SELECT extract(epoch FROM not_before - %s) FROM lanes.hosts", claim.claimed_at)
        assert held == 7200


def test_no_session_waits_without_end_and_instants_are_utc(database: Database, database_url: str) -> None:
    expected = {"TimeZone": "UTC", "lock_timeout": "10s", "idle_in_transaction_session_timeout": "1min"}
    with database.connection() as pooled, connect(database_url) as alone:
        for connection in (pooled, alone):
            shown = {name: connection.execute(f"SHOW {name}".encode()).fetchone() for name in expected}
            assert {name: row and row[0] for name, row in shown.items()} == expected


@pytest.mark.parametrize(
    ("address", "bucket"),
    [
        ("192.0.2.1", "192.0.2.1/32"),
        ("64:ff9b::c000:201", "192.0.2.1/32"),
        ("64:ff9b::ffff:ffff", "255.255.255.255/32"),
        ("64:ff9b::1:0:0", "64:ff9b::/64"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
    ],
)
def test_the_bucket_of_an_address(rows: Rows, address: str, bucket: str) -> None:
    found = rows.one("SELECT host(b) || '/' || masklen(b) FROM lanes.bucket(%s::inet) b", address)
    assert found == bucket


def test_an_address_behind_nat64_and_the_address_that_is_meant_share_their_pace(rows: Rows, store: PollStore) -> None:
    meant, behind = rows.host(address="192.0.2.1"), rows.host(address="64:ff9b::c000:201")
    rows.series(meant)
    rows.series(behind)
    assert take(store) is not None
    assert take(store) is None
    assert rows.one("SELECT count(*) FROM lanes.addresses") == 1
