"""Hosts that share an address share its bucket; booking spreads the hints and never opens a bucket (DESIGN 4.1)."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from lanes.store.polls import AskAgain, PollStore
from tests.answers import a_response
from tests.fix_database import Clock
from tests.rows import HOUR, LEASE, MINUTE, Rows, bucket_of, settle, take, take_all

ADDRESS = "192.0.2.1"
HALF = timedelta(seconds=0.5)


def close(rows: Rows, until: datetime, address: str = ADDRESS) -> None:
    rows(
        "INSERT INTO lanes.addresses (address, next_at, used_at) VALUES (%s, %s, lanes.now())",
        bucket_of(address),
        until,
    )


def crowd(rows: Rows, size: int, address: str = ADDRESS) -> list[int]:
    """So many hosts at one address, each with a due Series, the first ready longest."""
    now = rows.now()
    hosts = [rows.host(address=address, ready_at=now - (size - n) * MINUTE) for n in range(size)]
    for host in hosts:
        rows.series(host)
    return hosts


def test_a_claim_spends_the_bucket_of_its_address(rows: Rows, store: PollStore) -> None:
    crowd(rows, 1)
    claim = take(store)
    assert claim is not None
    assert rows("SELECT address::text, next_at FROM lanes.addresses") == [(f"{ADDRESS}/32", claim.claimed_at + HALF)]


def test_a_claim_of_a_host_never_dialled_spends_no_address(rows: Rows, store: PollStore) -> None:
    rows.series()
    assert take(store) is not None
    assert rows("SELECT FROM lanes.addresses") == []


def test_a_second_host_of_the_address_starts_half_a_second_after_the_first(
    rows: Rows, store: PollStore, clock: Clock
) -> None:
    """CASES B16, at decision level"""
    hosts = crowd(rows, 2)
    first = take(store)
    assert first is not None
    clock.advance(HALF)
    second = take(store)
    assert second is not None
    assert {first.host_id, second.host_id} == set(hosts)
    assert second.claimed_at - first.claimed_at >= HALF


def test_ipv6_neighbours_of_one_64_share_a_bucket(rows: Rows, store: PollStore) -> None:
    close(rows, rows.now() + HOUR, "2001:db8::1")
    rows.series(rows.host(address="2001:db8::ffff"))
    elsewhere = rows.series(rows.host(address="2001:db8:0:1::1"))
    assert [claim.series_id for claim in take_all(store)] == [elsewhere]


def test_a_closed_address_gives_its_ready_hosts_places_half_a_second_apart(rows: Rows, store: PollStore) -> None:
    opens = rows.now() + MINUTE
    close(rows, opens)
    hosts = crowd(rows, 5)
    assert store.claim(LEASE, None, None) == AskAgain()
    assert [rows.the_host(host).ready_at for host in hosts] == [opens + n * HALF for n in range(5)]
    assert take(store) is None


def test_later_comers_are_placed_behind_those_that_have_a_place(rows: Rows, store: PollStore) -> None:
    opens = rows.now() + MINUTE
    close(rows, opens)
    early = crowd(rows, 3)
    assert take(store) is None
    late = crowd(rows, 2)
    assert take(store) is None
    assert max(rows.the_host(host).ready_at for host in early) < min(rows.the_host(host).ready_at for host in late)


def test_what_is_pending_gets_the_very_next_instant(rows: Rows, store: PollStore) -> None:
    opens = rows.now() + MINUTE
    close(rows, opens)
    crowd(rows, 4)
    now = rows.now()
    asked = rows.host(address=ADDRESS, ready_at=now, pending_at=now)
    rows.series(asked, latest_checked_at=now - HOUR, force_poll_at=now)
    assert take(store) is None
    assert rows.the_host(asked).ready_at == opens


def test_places_reach_at_most_ten_minutes_ahead(rows: Rows, store: PollStore) -> None:
    close(rows, rows.now() + MINUTE)
    rows.enrol()
    rows(
        "WITH h AS (INSERT INTO lanes.hosts (site, name, address, bucket, ready_at) "
        "SELECT 'feeds', 'h' || n || '.test', %s, %s, lanes.now() FROM generate_series(1, 1300) n RETURNING id) "
        "INSERT INTO lanes.series (key, site, host_id, queue_host_id, url, bookmarks, rest) "
        "SELECT 's-' || id, 'feeds', id, id, 'https://h.test/' || id, 1, '2 minutes' FROM h",
        ADDRESS,
        bucket_of(ADDRESS),
    )
    asked = 0
    while isinstance(store.claim(LEASE, None, None), AskAgain):
        asked += 1
    assert asked == 3, "up to 500 hosts are placed at a time"
    assert rows.one("SELECT max(ready_at) - lanes.now() FROM lanes.hosts") <= 10 * MINUTE
    assert rows.one("SELECT count(*) FROM lanes.hosts WHERE ready_at <= lanes.now()") == 0


def test_a_closed_address_leaves_other_addresses_alone(rows: Rows, store: PollStore) -> None:
    """CASES B16"""
    close(rows, rows.now() + HOUR)
    crowd(rows, 3)
    elsewhere = rows.series(rows.host(address="198.51.100.1"))
    assert [claim.series_id for claim in take_all(store)] == [elsewhere]


def test_a_place_whose_time_has_come_opens_no_closed_bucket(rows: Rows, store: PollStore, clock: Clock) -> None:
    close(rows, rows.now() + MINUTE)
    crowd(rows, 2)
    assert take(store) is None
    rows("UPDATE lanes.addresses SET next_at = next_at + interval '1 hour'")
    clock.advance(2 * MINUTE)
    assert take(store) is None


def test_whoever_comes_first_takes_the_slot_of_a_missed_place(rows: Rows, store: PollStore, clock: Clock) -> None:
    close(rows, rows.now() + MINUTE)
    hosts = crowd(rows, 3)
    assert take(store) is None
    clock.advance(9 * MINUTE)
    newcomer = rows.series(
        rows.host(address=ADDRESS, ready_at=rows.now(), pending_at=rows.now()), force_poll_at=rows.now()
    )
    claim = take(store)
    assert claim is not None
    assert claim.series_id == newcomer
    assert claim.host_id not in hosts


def test_a_closed_address_never_makes_a_claim_ask_for_ever(rows: Rows, store: PollStore) -> None:
    """A put back Poll may wait for another address than the one its host was dialled at last."""
    now = rows.now()
    close(rows, now + HOUR, "198.51.100.9")
    host = rows.host(address=ADDRESS)
    rows.series(host, retry_at=now, retry_reason="its address", retry_address="198.51.100.9")
    assert take(store) is None
    assert rows.the_host(host).ready_at > now


def test_a_put_back_poll_dials_the_address_it_waited_for(rows: Rows, store: PollStore) -> None:
    now = rows.now()
    rows.series(rows.host(address=ADDRESS), retry_at=now, retry_reason="its address", retry_address="198.51.100.9")
    claim = take(store)
    assert claim is not None
    assert claim.dial == "198.51.100.9"
    assert rows.one("SELECT next_at FROM lanes.addresses WHERE address = '198.51.100.9'") == claim.claimed_at + HALF


# On the way


def test_a_new_address_takes_a_slot_before_it_is_dialled(rows: Rows, store: PollStore) -> None:
    host = rows.host()
    rows.series(host)
    claim = take(store)
    assert claim is not None
    assert store.take_address(host, ADDRESS, claim.token) is None
    assert rows.one("SELECT next_at > lanes.now() FROM lanes.addresses")
    assert str(rows.the_host(host).address) == ADDRESS


def test_a_new_address_that_is_closed_says_how_long(rows: Rows, store: PollStore) -> None:
    close(rows, rows.now() + HOUR)
    host = rows.host()
    rows.series(host)
    claim = take(store)
    assert claim is not None
    wait = store.take_address(host, ADDRESS, claim.token)
    assert wait is not None
    assert 59 * MINUTE < wait <= HOUR
    assert str(rows.the_host(host).address) == ADDRESS, "the next claim dials it without asking DNS again"


def test_a_hop_spends_the_buckets_of_its_host_and_address(rows: Rows, store: PollStore) -> None:
    rows.series()
    target = rows.host("target.test", address=ADDRESS, pace=timedelta(seconds=9))
    claim = take(store)
    assert claim is not None
    entered = store.enter("target.test", claim, claim.claimed_at + LEASE)
    assert entered.wait is None
    row = rows.the_host(target)
    assert row.busy_token == claim.token
    assert row.busy_until == claim.claimed_at + LEASE
    assert row.next_at >= claim.claimed_at + timedelta(seconds=9)
    assert rows.one("SELECT next_at FROM lanes.addresses WHERE address = %s", ADDRESS) >= claim.claimed_at + HALF


@pytest.mark.parametrize(
    "closed",
    ["next_at = lanes.now() + '1 minute'", "not_before = lanes.now() + '1 minute', not_before_reason = 'Retry-After'"],
)
def test_a_hop_waits_for_its_hosts_gates(rows: Rows, store: PollStore, closed: str) -> None:
    rows.series()
    rows.host("target.test")
    rows(f"UPDATE lanes.hosts SET {closed} WHERE name = 'target.test'")
    claim = take(store)
    assert claim is not None
    entered = store.enter("target.test", claim, claim.claimed_at + LEASE)
    assert entered.wait is not None
    assert timedelta(seconds=30) < entered.wait <= MINUTE
    assert rows.one("SELECT busy_token FROM lanes.hosts WHERE name = 'target.test'") is None


def test_a_hop_waits_while_its_host_is_in_another_hand(rows: Rows, store: PollStore) -> None:
    rows.series(rows.host("one.test"))
    rows.series(rows.host("two.test"))
    one, two = take_all(store)
    assert store.enter(two.host, one, one.claimed_at + LEASE).wait is not None
    assert rows.the_host(two.host_id).busy_token == two.token


def test_a_hop_to_a_host_nobody_knew_makes_it_and_takes_it(rows: Rows, store: PollStore) -> None:
    rows.series()
    claim = take(store)
    assert claim is not None
    entered = store.enter("unknown.test", claim, claim.claimed_at + LEASE)
    assert entered.wait is None
    assert rows.the_host(entered.host_id).busy_token == claim.token
    settle(store, claim, a_response(404))


def test_a_late_request_moves_its_buckets_to_its_own_instant_and_never_back(rows: Rows, store: PollStore) -> None:
    """CASES B15, at decision level"""
    host = rows.host(address=ADDRESS, pace=timedelta(seconds=3))
    rows.series(host)
    claim = take(store)
    assert claim is not None
    late = claim.claimed_at + timedelta(seconds=4)
    store.move_buckets(host, ADDRESS, late, claim.token)
    assert rows.the_host(host).next_at == late + timedelta(seconds=3)
    assert rows.one("SELECT next_at FROM lanes.addresses") >= late + HALF
    store.move_buckets(host, ADDRESS, claim.claimed_at, claim.token)
    assert rows.the_host(host).next_at == late + timedelta(seconds=3)
