"""Two claims at once never take the same host, and neither waits for the other (DESIGN 4.1)."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lanes.core.claim import Claim
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from tests.rows import LEASE, Rows, open_rows, take, take_all

CLAIM = "SELECT verdict, series_id FROM lanes.claim('feeds', NULL, '90 seconds', 'there', '0.5 seconds', '-infinity')"
IMPATIENT = "SET lock_timeout = '5s'"


def test_a_claim_steps_over_a_host_that_another_is_just_claiming(
    rows: Rows, store: PollStore, database_url: str
) -> None:
    first, second = rows.series(rows.host(ready_at=rows.now())), rows.series(rows.host())
    with open_rows(database_url) as other:
        with other.connection.transaction():
            assert other(CLAIM) == [("claimed", second)]
            claim = take(store)
            assert claim is not None
            assert claim.series_id == first
        assert take(store) is None


def test_a_claim_that_is_undone_leaves_its_series_to_the_next(rows: Rows, store: PollStore, database_url: str) -> None:
    series = rows.series()
    with open_rows(database_url) as other:
        other("BEGIN")
        assert other(CLAIM) == [("claimed", series)]
        assert take(store) is None
        other("ROLLBACK")
    claim = take(store)
    assert claim is not None
    assert claim.series_id == series


def test_a_series_paused_while_it_is_being_claimed_is_paused_after_it(rows: Rows, database_url: str) -> None:
    """A verb that changed the Series between the claim's snapshot and its lock is seen: `due` is asked of the locked row."""
    series = rows.series()
    with open_rows(database_url) as other, ThreadPoolExecutor(1) as thread:
        other(IMPATIENT)
        with rows.connection.transaction():
            rows.set_series(series, bookmarks=0)
            claimed = thread.submit(other, CLAIM)
            _await_a_lock(database_url)
        assert claimed.result()[0].verdict != "claimed"
    assert rows.the_series(series).lease_token is None


def test_two_claims_of_an_address_nobody_used_lately_never_start_together(rows: Rows, database_url: str) -> None:
    """CASES B16: the bucket's row is gone (idle for an hour), and two hosts of the address are claimed in the same instant."""
    for _ in range(2):
        rows.series(rows.host(address="192.0.2.1"))
    with open_rows(database_url) as other, ThreadPoolExecutor(1) as thread:
        other(IMPATIENT)
        with rows.connection.transaction():
            assert rows(CLAIM)[0].verdict == "claimed"
            second = thread.submit(other, CLAIM)
            _await_a_lock(database_url)
        assert second.result()[0].verdict == "booked"


def test_a_hop_and_a_claim_of_an_address_nobody_used_lately_never_start_together(
    rows: Rows, store: PollStore, database_url: str
) -> None:
    rows.series()
    rows.host("target.test", address="192.0.2.1", ready_at="infinity")
    in_hand = take(store)
    assert in_hand is not None
    rows.series(rows.host(address="192.0.2.1"))
    with ThreadPoolExecutor(1) as thread:
        with rows.connection.transaction():
            assert rows(CLAIM)[0].verdict == "claimed"
            hop = thread.submit(store.enter, "target.test", in_hand, in_hand.claimed_at + LEASE)
            _await_a_lock(database_url)
        assert hop.result().wait is not None


def test_many_claims_at_once_take_each_host_once(rows: Rows, database_url: str) -> None:
    for _ in range(30):
        host = rows.host()
        for _ in range(3):
            rows.series(host)
    databases = [Database(database_url, application=f"claimer {n}") for n in range(4)]
    try:
        with ThreadPoolExecutor(4) as threads:
            taken = threads.map(_claim_all, databases)
        claims = [claim for each in taken for claim in each]
    finally:
        for database in databases:
            database.close()
    assert len(claims) == 30
    assert Counter(claim.host_id for claim in claims).most_common(1)[0][1] == 1
    assert rows.one("SELECT count(*) FROM lanes.series WHERE lease_token IS NOT NULL") == 30


def _claim_all(database: Database) -> list[Claim]:
    return take_all(PollStore(database, "feeds", "here"))


def _await_a_lock(url: str) -> Any:
    """Until some session of this database waits for a lock: the server itself says so."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with open_rows(url) as watcher:
        for _ in range(2000):
            if watcher.one(waiting):
                return
            watcher("SELECT pg_sleep(0.005)")
    raise AssertionError("nobody came to wait for the lock")
