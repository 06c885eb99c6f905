"""A Poll that could not be carried out through no fault of its Series (DESIGN 4, Put back; 4.3, Hops)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from lanes.core.answer import Resume, Sent
from lanes.core.claim import Claim, Trigger
from lanes.core.outcome import PutBack
from lanes.store.owning import OwnStore
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from lanes.store.settled import Trail
from tests.answers import a_response
from tests.fix_database import Clock
from tests.rows import DAY, HOUR, LEASE, MINUTE, NEVER, Rows, open_rows, settle, take, trail

NOT_MODIFIED = replace(a_response(304), conditional=True)
RESUME = Resume("https://target.test/next", 2, permanent=True, cookies=(("target.test", "a", "b"),), seen=("x",))


def taken(store: PollStore) -> Claim:
    claim = take(store)
    assert claim is not None
    return claim


def obstacle(wait: timedelta = timedelta(0), address: str | None = None, resume: Resume | None = None) -> PutBack:
    return PutBack("an obstacle", wait, address, resume)


def sent(claim: Claim, at: datetime) -> Trail:
    request = Sent(claim.url, claim.host, "192.0.2.1", at)
    return Trail(claim.host_id, (claim.host_id,), (at,), (request,), (claim.host_pace,))


def test_the_earlier_stamp_returns_and_nothing_is_counted(rows: Rows, store: PollStore) -> None:
    earlier = rows.now() - DAY
    series = rows.series(latest_checked_at=earlier, failures=2, failing_since=earlier, rest=10 * MINUTE)
    before = rows.the_series(series)
    claim = taken(store)
    assert store.put_back(claim, obstacle(MINUTE), trail(claim))
    row = rows.the_series(series)
    assert row.latest_checked_at == earlier
    assert (row.failures, row.rest, row.next_check_at) == (2, before.rest, before.next_check_at)
    assert row.lease_token is None
    assert row.retry_reason == "an obstacle"


def test_a_series_never_looked_at_is_never_looked_at_again(rows: Rows, store: PollStore) -> None:
    series = rows.series()
    claim = taken(store)
    store.put_back(claim, obstacle(), trail(claim))
    assert rows.the_series(series).latest_checked_at == NEVER


def test_the_stamp_stands_when_a_request_was_sent(rows: Rows, store: PollStore) -> None:
    series = rows.series(latest_checked_at=rows.now() - DAY)
    claim = taken(store)
    store.put_back(claim, obstacle(), sent(claim, claim.claimed_at + timedelta(seconds=1)))
    assert rows.the_series(series).latest_checked_at == claim.claimed_at


def test_a_request_not_attempted_is_pending_again(rows: Rows, store: PollStore) -> None:
    now = rows.now()
    host = rows.host(pending_at=now)
    rows.series(host, latest_checked_at=now - MINUTE, next_check_at=now + DAY, force_poll_at=now)
    claim = taken(store)
    store.put_back(claim, obstacle(), trail(claim))
    assert rows.the_host(host).pending_at is not None
    rows.set_host(host, next_at=rows.now())
    rows("UPDATE lanes.hosts SET ready_at = lanes.now()")
    assert taken(store).trigger is Trigger.PENDING


def test_it_is_due_again_when_its_obstacle_ends_rest_notwithstanding(
    rows: Rows, store: PollStore, clock: Clock
) -> None:
    rows.series(rest=HOUR, latest_checked_at=rows.now() - DAY)
    claim = taken(store)
    store.put_back(claim, obstacle(5 * MINUTE), sent(claim, claim.claimed_at))
    clock.advance(5 * MINUTE - timedelta(seconds=5))
    assert take(store) is None
    clock.advance(timedelta(seconds=6))
    assert taken(store).trigger is Trigger.PUT_BACK


def test_the_next_claim_clears_the_obstacle(rows: Rows, store: PollStore, clock: Clock) -> None:
    series = rows.series(retry_at=rows.now(), retry_reason="an obstacle", retry_address="192.0.2.9")
    assert taken(store).dial == "192.0.2.9"
    row = rows.the_series(series)
    assert (row.retry_at, row.retry_reason, row.retry_address) == (None, None, None)


def test_its_host_is_free_and_its_bucket_stays_spent(rows: Rows, store: PollStore) -> None:
    host = rows.host(pace=timedelta(seconds=20))
    rows.series(host)
    claim = taken(store)
    store.put_back(claim, obstacle(), trail(claim))
    row = rows.the_host(host)
    assert row.busy_token is None
    assert row.next_at == claim.claimed_at + timedelta(seconds=20)
    assert row.ready_at <= claim.claimed_at + timedelta(seconds=20)


def test_it_is_recorded_with_its_reason(rows: Rows, store: PollStore) -> None:
    rows.series()
    claim = taken(store)
    store.put_back(claim, obstacle(), trail(claim))
    (row,) = rows.polls()
    assert (row.outcome, row.detail, row.sent_at) == ("put back", "an obstacle", None)


# In the middle of a redirect chain


@pytest.fixture
def target(rows: Rows) -> int:
    """The host of a chain's next hop, which has nothing of its own to do."""
    return rows.host("target.test", ready_at="infinity")


@pytest.fixture
def home(rows: Rows) -> int:
    return rows.host("home.test")


@pytest.fixture
def series(rows: Rows, home: int, target: int) -> int:
    return rows.series(home, rest=10 * MINUTE, latest_checked_at=rows.now() - DAY)


@pytest.fixture
def resumed(store: PollStore, series: int, target: int, clock: Clock) -> Claim:
    """The claim that goes on, a minute later, where a first one was put back."""
    first = taken(store)
    store.put_back(first, obstacle(MINUTE, resume=RESUME), sent(first, first.claimed_at), target)
    clock.advance(MINUTE + timedelta(seconds=1))
    return taken(store)


def test_it_queues_under_the_next_hops_host_and_goes_on_there(resumed: Claim, series: int, target: int) -> None:
    assert resumed.series_id == series
    assert (resumed.host_id, resumed.host) == (target, "target.test")
    assert resumed.resume == RESUME
    assert resumed.trigger is Trigger.PUT_BACK


def test_going_on_spends_the_next_hops_host_and_not_its_own(rows: Rows, resumed: Claim, home: int, target: int) -> None:
    assert rows.the_host(target).busy_token == resumed.token
    assert rows.the_host(home).busy_token is None


def test_settled_it_queues_under_its_own_host_again_and_is_found_there(
    rows: Rows, store: PollStore, resumed: Claim, series: int, home: int, clock: Clock
) -> None:
    settle(store, resumed, NOT_MODIFIED)
    row = rows.the_series(series)
    assert (row.queue_host_id, row.resume) == (home, None)
    assert rows.late_hints() == []
    clock.advance(DAY)
    again = taken(store)
    assert (again.series_id, again.host_id, again.resume) == (series, home, None)


def test_put_back_again_without_a_place_to_go_on_it_is_found_under_its_own_host(
    rows: Rows, store: PollStore, resumed: Claim, series: int, home: int, clock: Clock
) -> None:
    store.put_back(resumed, obstacle(MINUTE), trail(resumed))
    assert rows.late_hints() == []
    clock.advance(HOUR)
    again = taken(store)
    assert (again.series_id, again.host_id) == (series, home)


def test_abandoned_while_going_on_it_goes_on_again(
    store: PollStore, resumed: Claim, series: int, target: int, clock: Clock
) -> None:
    clock.advance(LEASE + timedelta(seconds=1))
    again = taken(store)
    assert (again.series_id, again.host_id, again.resume) == (series, target, RESUME)


def test_where_to_go_on_is_forgotten_after_an_hour(
    rows: Rows, store: PollStore, series: int, home: int, target: int, clock: Clock
) -> None:
    first = taken(store)
    store.put_back(first, obstacle(2 * HOUR, resume=RESUME), sent(first, first.claimed_at), target)
    clock.advance(2 * HOUR + MINUTE)
    again = taken(store)
    assert (again.series_id, again.host_id, again.resume) == (series, home, None)


def test_the_hour_is_counted_from_the_first_put_back(
    rows: Rows, store: PollStore, resumed: Claim, series: int, target: int
) -> None:
    first_until = rows.the_series(series).resume_until
    store.put_back(resumed, obstacle(MINUTE, resume=RESUME), trail(resumed), target)
    assert rows.the_series(series).resume_until == first_until


def test_paused_at_its_own_host_it_is_still_found_when_its_wait_is_over(
    rows: Rows, store: PollStore, series: int, target: int, clock: Clock
) -> None:
    """The hints of both hosts are right after a put back into another queue."""
    first = taken(store)
    store.put_back(first, obstacle(MINUTE, resume=RESUME), sent(first, first.claimed_at), target)
    assert rows.late_hints() == []
    assert rows.the_host(target).ready_at <= rows.the_series(series).retry_at


def test_it_locks_every_host_before_its_series(
    rows: Rows, store: PollStore, series: int, target: int, database_url: str
) -> None:
    """Lock order: host before Series. While the target's row is locked, the put back holds nothing of the Series."""
    first = taken(store)
    with ThreadPoolExecutor(1) as thread, open_rows(database_url) as watcher:
        with rows.connection.transaction():
            rows("SELECT FROM lanes.hosts WHERE id = %s FOR UPDATE", target)
            put = thread.submit(store.put_back, first, obstacle(MINUTE, resume=RESUME), trail(first), target)
            watcher.wait_for_lock()
            assert watcher("SELECT id FROM lanes.series WHERE id = %s FOR UPDATE SKIP LOCKED", series)
        assert put.result()


@pytest.mark.parametrize("blocked", ["before", "while it queues"])
def test_a_closed_host_on_the_way_keeps_nobody_for_ever(
    rows: Rows, store: PollStore, database: Database, series: int, home: int, target: int, clock: Clock, blocked: str
) -> None:
    owner = OwnStore(database)
    claim = taken(store)
    if blocked == "before":
        owner.block("feeds", "target.test")
    store.put_back(claim, obstacle(30 * DAY, resume=RESUME), sent(claim, claim.claimed_at), target)
    if blocked != "before":
        owner.block("feeds", "target.test")
    assert rows.late_hints() == []
    clock.advance(DAY)
    store.keep_house()
    again = taken(store)
    assert (again.series_id, again.host_id, again.resume) == (series, home, None)


def test_an_abandoned_chain_comes_home_from_a_closed_host_and_stays_in_the_record(
    rows: Rows, store: PollStore, database: Database, resumed: Claim, home: int, clock: Clock
) -> None:
    OwnStore(database).block("feeds", "target.test")
    clock.advance(2 * HOUR)
    store.keep_house()
    again = taken(store)
    assert (again.host_id, again.resume, again.abandoned) == (home, None, 1)
    (record,) = [row for row in rows.polls() if row.outcome == "abandoned"]
    assert (record.token, record.host) == (resumed.token, "target.test")


@pytest.mark.usefixtures("series")
@pytest.mark.parametrize("queue", ["target.test", "home.test"])
def test_a_chain_that_is_forgotten_takes_its_address_with_it(
    rows: Rows, store: PollStore, clock: Clock, home: int, target: int, queue: str
) -> None:
    """Home is never dialled at the address of a hop."""
    rows.set_host(home, address="192.0.2.1", bucket="192.0.2.1")
    claim = taken(store)
    why = PutBack("the interval of its address", MINUTE, "198.51.100.99", RESUME)
    store.put_back(claim, why, sent(claim, claim.claimed_at), target if queue == "target.test" else home)
    clock.advance(2 * HOUR)
    again = taken(store)
    assert (again.host_id, again.resume, again.dial) == (home, None, None)
    assert rows("SELECT FROM lanes.addresses WHERE address = '198.51.100.99'") == []
