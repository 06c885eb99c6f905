"""A Site of one host: whose Gap is spent and where it stands, and which of its Series is next (DESIGN 4, 4.1, 4.3, 5.1)."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from lanes.core.answer import Sent
from lanes.core.claim import Claim
from lanes.core.outcome import PutBack
from lanes.fetch.permits import Go, Wait
from lanes.hand import Hand
from lanes.store.polls import Entered, Nothing, PollStore
from lanes.store.pool import Database
from lanes.store.settled import Trail
from tests.fix_database import Clock
from tests.one_host import GAP, NOT_MODIFIED, REST, SITE, a_lane, a_lane_of, a_series
from tests.rows import HOUR, LEASE, MINUTE, NEVER, Rows, open_rows, settle, take, trail

ADDRESS = "192.0.2.1"


@pytest.fixture
def lane(database: Database, rows: Rows) -> PollStore:
    """The Lane of a Site of one host on this machine, its Gap in force."""
    return a_lane(database, rows, "here")


def next_at(rows: Rows) -> Any:
    return rows.one("SELECT next_at FROM lanes.lanes WHERE site = %s", SITE)


def sent(claim: Claim, after: timedelta) -> Trail:
    """A Poll that wrote one request, so long after its claim."""
    at = claim.claimed_at + after
    return Trail(
        claim.host_id,
        (claim.host_id,),
        (at,),
        (Sent("", claim.host, ADDRESS, at, 304),),
        (claim.host_pace,),
        gaps=(GAP,),
    )


# Where the Gap stands, and who spends it


def test_a_claim_spends_the_gap_in_the_lanes_row_and_carries_it(rows: Rows, lane: PollStore) -> None:
    a_series(rows, rows.host(site=SITE))
    claim = take(lane, REST)
    assert claim is not None
    assert claim.gap == GAP
    assert next_at(rows) == claim.claimed_at + GAP


def test_a_second_process_finds_the_gap_spent_and_sleeps_until_it_opens(
    rows: Rows, lane: PollStore, database: Database, clock: Clock
) -> None:
    """CASES B12"""
    for _ in range(2):
        a_series(rows, rows.host(site=SITE))
    other = a_lane(database, rows, "there")
    assert take(lane, REST) is not None
    turn = other.claim(LEASE, REST, None)
    assert isinstance(turn, Nothing)
    assert turn.wait is not None
    assert GAP - timedelta(seconds=5) < turn.wait <= GAP
    clock.advance(GAP)
    assert take(other, REST) is not None
    assert take(lane, REST) is None


def test_two_claims_at_the_same_instant_take_one_poll(rows: Rows, lane: PollStore, database_url: str) -> None:
    """Both wait for the Lane's row, and the second finds it spent."""
    for _ in range(2):
        a_series(rows, rows.host(site=SITE))
    with closing(Database(database_url)) as there, ThreadPoolExecutor(2) as threads, open_rows(database_url) as holder:
        with holder.connection.transaction():
            holder("SELECT FROM lanes.lanes WHERE site = %s FOR NO KEY UPDATE", SITE)
            found = [threads.submit(take, store, REST) for store in (lane, a_lane_of(there))]
            _await_locks(rows, 2)
        assert sorted(each.result() is None for each in found) == [False, True]


def _await_locks(rows: Rows, count: int) -> None:
    until = time.monotonic() + 20
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    while rows.one(waiting) < count:
        assert time.monotonic() < until, f"{rows.one(waiting)} wait for a lock instead of {count}"


def test_the_owners_word_makes_a_gap_longer_never_shorter(rows: Rows, lane: PollStore, clock: Clock) -> None:
    host = rows.host(site=SITE)
    a_series(rows, host)
    a_series(rows, host)
    rows.enrol(SITE, owner_gap=MINUTE)
    first = take(lane, REST)
    assert first is not None
    assert next_at(rows) == first.claimed_at + MINUTE
    settle(lane, first, NOT_MODIFIED)
    rows.enrol(SITE, owner_gap=timedelta(seconds=1))
    clock.advance(MINUTE)
    second = take(lane, REST)
    assert second is not None
    assert next_at(rows) == second.claimed_at + GAP


def test_a_slower_host_binds_more_than_the_gap(rows: Rows, lane: PollStore, clock: Clock) -> None:
    host = rows.host(site=SITE, crawl_delay=MINUTE)
    a_series(rows, host)
    a_series(rows, host)
    claim = take(lane, REST)
    assert claim is not None
    settle(lane, claim, NOT_MODIFIED)
    clock.advance(GAP)
    assert take(lane, REST) is None
    clock.advance(MINUTE - GAP)
    assert take(lane, REST) is not None


def test_a_request_of_a_site_with_a_gap_moves_it_before_it_is_written_however_little_late(
    rows: Rows, lane: PollStore
) -> None:
    a_series(rows, rows.host(site=SITE, address=ADDRESS))
    claim = take(lane, REST)
    assert claim is not None
    sent_at = Hand(lane, claim, time.monotonic() - 0.05, LEASE).sending(claim.host, ADDRESS)
    assert not isinstance(sent_at, Wait)
    assert sent_at > claim.claimed_at + timedelta(seconds=0.05)
    assert abs(next_at(rows) - sent_at - GAP) < timedelta(seconds=0.05)


def test_settle_and_put_back_move_the_gap_to_what_was_sent(rows: Rows, lane: PollStore, clock: Clock) -> None:
    host = rows.host(site=SITE)
    a_series(rows, host)
    a_series(rows, host)
    late = timedelta(seconds=3)
    first = take(lane, REST)
    assert first is not None
    settle(lane, first, NOT_MODIFIED, on=sent(first, late))
    assert next_at(rows) == first.claimed_at + late + GAP
    clock.advance(late + GAP)
    second = take(lane, REST)
    assert second is not None
    lane.put_back(second, PutBack("stopping", timedelta(0), None, None), sent(second, late))
    assert next_at(rows) == second.claimed_at + late + GAP


def test_a_poll_that_sent_nothing_leaves_the_gap_where_its_claim_put_it(rows: Rows, lane: PollStore) -> None:
    a_series(rows, rows.host(site=SITE))
    claim = take(lane, REST)
    assert claim is not None
    lane.put_back(claim, PutBack("stopping", timedelta(0), None, None), trail(claim))
    assert next_at(rows) == claim.claimed_at + GAP


def test_a_late_worker_moves_the_gap_all_the_same(rows: Rows, lane: PollStore, clock: Clock) -> None:
    a_series(rows, rows.host(site=SITE))
    claim = take(lane, REST)
    assert claim is not None
    clock.advance(LEASE + MINUTE)
    assert take(lane, REST) is not None
    assert not settle(lane, claim, NOT_MODIFIED, on=sent(claim, LEASE + MINUTE + timedelta(seconds=4)))
    assert next_at(rows) == claim.claimed_at + LEASE + MINUTE + timedelta(seconds=4) + GAP


def test_a_request_later_than_the_next_claim_of_its_site_waits_for_the_next_gap(
    rows: Rows, lane: PollStore, database: Database, clock: Clock
) -> None:
    """The name of its host resolved slowly; meanwhile the Gap opened, and another machine took it on another host of the Site."""
    for n in (1, 2):
        a_series(rows, rows.host(site=SITE, address=f"192.0.2.{n}", ready_at=rows.now() - (3 - n) * MINUTE))
    slow = take(lane, REST)
    assert slow is not None
    clock.advance(GAP)
    other = take(a_lane(database, rows, "there"), REST)
    assert other is not None
    assert other.host != slow.host
    answer = Hand(lane, slow, time.monotonic() - 11, LEASE).sending(slow.host, "192.0.2.1")
    assert isinstance(answer, Wait)
    assert timedelta(seconds=8) < answer.delay < timedelta(seconds=10)
    assert next_at(rows) == other.claimed_at + GAP


def test_every_request_of_a_site_with_a_gap_is_recorded_with_it(rows: Rows, lane: PollStore, clock: Clock) -> None:
    host = rows.host(site=SITE)
    a_series(rows, host)
    claim = take(lane, REST)
    assert claim is not None
    settle(lane, claim, NOT_MODIFIED, on=sent(claim, timedelta(0)))
    clock.advance(2 * HOUR)
    assert take(lane, REST) is not None
    clock.advance(2 * HOUR)
    take(lane, REST)
    assert [(row.outcome, row.lane_gap) for row in rows.polls()] == [("unchanged", GAP), ("abandoned", GAP)]


def test_feeds_have_no_gap(rows: Rows, store: PollStore) -> None:
    rows.series()
    rows.series()
    one, other = take(store), take(store)
    assert one is not None
    assert other is not None
    assert (one.gap, other.gap) == (None, None)
    assert rows.one("SELECT next_at FROM lanes.lanes WHERE site = 'feeds'") == NEVER


# A hop of feeds into a host of the Site


def a_hop(rows: Rows, store: PollStore) -> tuple[Claim, Entered]:
    """A Poll of feeds that is redirected to the host of the Site."""
    rows.series(rows.host("blog.test"))
    claim = take(store)
    assert claim is not None
    return claim, store.enter("comics.test", claim, claim.claimed_at + LEASE)


def test_a_hop_of_feeds_into_another_sites_host_spends_that_sites_gap(
    rows: Rows, lane: PollStore, store: PollStore
) -> None:
    a_series(rows, rows.host("comics.test", SITE))
    _, entered = a_hop(rows, store)
    assert (entered.wait, entered.gap) == (None, GAP)
    assert GAP - MINUTE < next_at(rows) - rows.now() <= GAP
    assert take(lane, REST) is None


@pytest.mark.parametrize(
    ("facts", "reason", "seconds"),
    [
        ("next_at = lanes.now() + '7 s'", "the Gap of its Site", 7),
        ("refused_until = lanes.now() + '90 s'", "the Site refuses", 90),
        ("paused_at = lanes.now()", "the Lane is paused", 3600),
    ],
)
def test_a_hop_of_feeds_waits_for_what_that_sites_own_lane_waits_for(
    rows: Rows, lane: PollStore, store: PollStore, facts: str, reason: str, seconds: int
) -> None:
    a_series(rows, rows.host("comics.test", SITE))
    rows(f"UPDATE lanes.lanes SET {facts} WHERE site = %s", SITE)
    before = next_at(rows)
    _, entered = a_hop(rows, store)
    assert entered.reason == reason
    assert entered.wait is not None
    assert seconds - 5 < entered.wait.total_seconds() <= seconds
    assert next_at(rows) == before


def test_a_chain_that_must_wait_for_another_sites_gap_stays_with_its_own_lane(
    rows: Rows, lane: PollStore, store: PollStore, clock: Clock
) -> None:
    a_series(rows, rows.host("comics.test", SITE))
    claim, entered = a_hop(rows, store)
    assert entered.wait is None
    (series,) = rows("SELECT * FROM lanes.series WHERE site = 'feeds'")
    hosts = tuple(sorted((claim.host_id, entered.host_id)))
    store.put_back(
        claim,
        PutBack("the Gap of its Site", GAP, None, None),
        Trail(entered.host_id, hosts, (None, None), (), ()),
        entered.host_id,
    )
    clock.advance(MINUTE)
    mine = take(lane, REST)
    assert mine is not None
    assert mine.series_id != series.id
    again = take(store)
    assert again is not None
    assert again.series_id == series.id


def test_a_hop_inside_a_site_of_few_hosts_waits_for_its_own_gap(rows: Rows, lane: PollStore) -> None:
    a_series(rows, rows.host("a.test", SITE))
    rows.host("b.test", SITE)
    claim = take(lane, REST)
    assert claim is not None
    answer = Hand(lane, claim, time.monotonic(), LEASE).hop("b.test", "http://b.test")
    assert isinstance(answer, Wait)
    assert answer.reason == "the Gap of its Site"


def test_no_two_sessions_that_lock_a_lane_and_its_hosts_wait_for_each_other(
    rows: Rows, lane: PollStore, database_url: str, clock: Clock
) -> None:
    """Claims, hops, late requests, settles and put backs of one Site from several sessions: a deadlock would surface as an error."""
    for n in range(3):
        host = rows.host(f"{n}.test", SITE, address=f"192.0.2.{n + 1}")
        for _ in range(4):
            a_series(rows, host)
    rows.enrol(SITE, gap=timedelta(milliseconds=1))
    rows("UPDATE lanes.hosts SET pace = '0'")
    faults: list[BaseException] = []

    def work(seed: int) -> None:
        dice = random.Random(seed)
        try:
            with closing(Database(database_url)) as mine:
                store = a_lane_of(mine, f"machine-{seed}")
                for _ in range(25):
                    clock.advance(timedelta(seconds=1))
                    claim = take(store, timedelta(milliseconds=1))
                    if claim is None:
                        continue
                    hand = Hand(store, claim, time.monotonic() - dice.choice((0, 1)), LEASE)
                    hand.sending(claim.host, claim.address or ADDRESS)
                    hopped = hand.hop(f"{(host := dice.randrange(3))}.test", f"http://{host}.test")
                    where = hand.trail(None)
                    if isinstance(hopped, Go) or dice.random() < 0.5:
                        settle(store, claim, NOT_MODIFIED, on=where)
                    else:
                        store.put_back(claim, PutBack("a wait", timedelta(0), None, None), where)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not faults
    assert len(rows.polls()) > 20
