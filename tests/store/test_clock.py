"""The one clock, and what happens when it goes back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta

from lanes.core.consequences import Heed, Learn
from lanes.core.pace import RefusedPace
from lanes.core.refusal import Read
from lanes.store.polls import AskAgain, Nothing, PollStore
from tests.answers import a_response, settled
from tests.fix_database import Clock
from tests.rows import DAY, HOUR, LEASE, MINUTE, Rows, open_rows, settle, take, trail

NOT_MODIFIED = replace(a_response(304), conditional=True)
SECOND = timedelta(seconds=1)


def test_the_clock_is_the_servers_plus_an_offset_that_tests_set(rows: Rows) -> None:
    rows("UPDATE lanes.clock SET test_offset = '2 hours'")
    assert rows.one("SELECT lanes.now() - statement_timestamp()") == 2 * HOUR


def test_time_goes_on_within_a_transaction(rows: Rows) -> None:
    with rows.connection.transaction():
        earlier = rows.now()
        assert rows.now() > earlier


def test_the_latest_instant_seen_never_goes_back(rows: Rows, store: PollStore, clock: Clock) -> None:
    seen = rows.one("SELECT latest_seen FROM lanes.clock")
    clock.advance(-HOUR)
    store.keep_house()
    assert rows.one("SELECT latest_seen FROM lanes.clock") == seen
    clock.advance(3 * HOUR)
    store.keep_house()
    assert rows.one("SELECT latest_seen FROM lanes.clock") >= seen + HOUR


def test_a_clock_a_few_seconds_back_changes_nothing(rows: Rows, store: PollStore, clock: Clock) -> None:
    series = rows.series()
    clock.advance(-timedelta(seconds=2))
    claim = take(store)
    assert claim is not None
    assert claim.series_id == series
    assert store.shift_back() is None


def test_a_clock_that_nobody_saw_yet_has_not_gone_back(rows: Rows) -> None:
    """Postgres 16 and older cannot subtract an infinity."""
    rows("UPDATE lanes.clock SET latest_seen = '-infinity'")
    assert rows.one("SELECT lanes.shift_back()") is None


def test_after_the_clock_went_back_nothing_is_claimed_until_all_is_shifted(
    rows: Rows, store: PollStore, clock: Clock
) -> None:
    """CASES A13"""
    rows.series()
    clock.advance(-8 * HOUR)
    assert store.claim(LEASE, None, None) == AskAgain(clock_went_back=True)
    shifted = store.shift_back()
    assert shifted is not None
    assert abs(shifted - 8 * HOUR) < MINUTE
    assert store.shift_back() is None
    assert take(store) is not None


def test_a_clock_set_back_silences_nobody(rows: Rows, store: PollStore, clock: Clock) -> None:
    """CASES A13: what was due within the hour is due within the hour."""
    series = rows.series()
    claim = take(store)
    assert claim is not None
    store.settle(claim, settled(a_response(404), None, claim, now=claim.claimed_at), trail(claim))
    left = rows.the_series(series).next_check_at - rows.now()
    store.keep_house()
    clock.advance(-8 * HOUR)
    store.shift_back()
    assert abs(rows.the_series(series).next_check_at - rows.now() - left) < 10 * MINUTE
    assert isinstance(store.claim(LEASE, None, None), Nothing)
    clock.advance(left + 10 * MINUTE)
    again = take(store)
    assert again is not None
    assert again.series_id == series


def test_a_wait_is_as_long_after_the_shift_as_before(rows: Rows, store: PollStore, clock: Clock) -> None:
    until = rows.now() + DAY
    host = rows.host(not_before=until, not_before_reason="Retry-After", next_at=until, ready_at=until)
    series = rows.series(host, not_before=until, not_before_reason="Retry-After", retry_at=until, retry_reason="x")
    rows("INSERT INTO lanes.addresses (address, next_at, used_at) VALUES ('192.0.2.1', %s, lanes.now())", until)
    store.keep_house()
    clock.advance(-8 * HOUR)
    gap = store.shift_back()
    assert gap is not None
    the_host, the_series = rows.the_host(host), rows.the_series(series)
    address_next = rows.one("SELECT next_at FROM lanes.addresses")
    for instant in (
        *(the_host.not_before, the_host.next_at, the_host.ready_at),
        *(the_series.not_before, the_series.retry_at, the_series.claimable_at, address_next),
    ):
        assert instant == until - gap


def test_a_request_pending_stays_pending_after_the_shift(rows: Rows, store: PollStore, clock: Clock) -> None:
    host = rows.host()
    rows.series(host, latest_checked_at=rows.now() - MINUTE, force_poll_at=rows.now(), next_check_at=rows.now() + HOUR)
    rows.set_host(host, pending_at=rows.now())
    store.keep_house()
    clock.advance(-8 * HOUR)
    store.shift_back()
    claim = take(store)
    assert claim is not None
    assert claim.trigger == "pending"


def test_never_stays_never(rows: Rows, store: PollStore, clock: Clock) -> None:
    series = rows.series()
    before = rows.the_series(series)
    clock.advance(-8 * HOUR)
    store.shift_back()
    after = rows.the_series(series)
    assert (after.latest_checked_at, after.next_check_at) == (before.latest_checked_at, before.next_check_at)


def test_an_incident_that_began_before_the_clock_went_back_ends_with_the_next_good_answers(
    rows: Rows, store: PollStore, clock: Clock
) -> None:
    """CASES A13"""
    host = rows.host("home.test")
    for _ in range(3):
        rows.series(host)
    for _ in range(3):
        claim = take(store)
        assert claim is not None
        settle(store, claim, a_response(404))
        clock.advance(2 * SECOND)
    assert rows.the_host(host).failing == "404"
    began, since = rows.one("SELECT started_at FROM lanes.incidents"), rows.the_host(host).answers[0][2]
    store.keep_house()
    clock.advance(-8 * HOUR)
    back = store.shift_back()
    assert back is not None
    assert rows.one("SELECT started_at FROM lanes.incidents") == began - back
    assert datetime.fromisoformat(rows.the_host(host).answers[0][2]) == datetime.fromisoformat(since) - back
    for _ in range(8):
        clock.advance(30 * MINUTE)
        if (claim := take(store)) is not None:
            settle(store, claim, NOT_MODIFIED)
    assert rows.the_host(host).failing is None
    assert rows.one("SELECT ended_at FROM lanes.incidents") <= rows.now()


def test_a_shift_waits_for_a_host_before_it_locks_a_series(
    rows: Rows, store: PollStore, clock: Clock, database_url: str
) -> None:
    first, host = rows.host(), rows.host()
    series = rows.series(first)
    rows("UPDATE lanes.hosts SET pace = '3 seconds' WHERE id = %s", first)  # its row is the last one of the heap
    store.keep_house()
    clock.advance(-8 * HOUR)
    with ThreadPoolExecutor(1) as thread, open_rows(database_url) as watcher:
        with rows.connection.transaction():
            rows("SELECT FROM lanes.hosts WHERE id = %s FOR NO KEY UPDATE", first)
            shifted = thread.submit(store.shift_back)
            watcher.wait_for_lock()
            assert watcher("SELECT id FROM lanes.hosts WHERE id = %s FOR NO KEY UPDATE SKIP LOCKED", host)
            assert watcher("SELECT id FROM lanes.series WHERE id = %s FOR NO KEY UPDATE SKIP LOCKED", series)
        assert shifted.result() is not None


def test_a_refusal_heard_before_the_clock_went_back_is_of_now(rows: Rows, store: PollStore, clock: Clock) -> None:
    host = rows.host()
    rows.series(host)
    claim = take(store)
    assert claim is not None
    store.keep_house()
    clock.advance(-8 * HOUR)
    store.shift_back()
    refused = RefusedPace(MINUTE, claim.claimed_at, 1)
    heed = Heed(Read(True, b"its URL", claim.claimed_at), refused)
    answered = settled(a_response(403), None, claim, now=claim.claimed_at)
    store.settle(claim, replace(answered, consequences=(heed, Learn(refused))), trail(claim))
    row = rows.the_host(host)
    assert rows.now() - MINUTE < row.refused_at <= rows.now() + 5 * SECOND
    assert rows.now() - MINUTE < row.refused_pace_at <= rows.now() + 5 * SECOND
