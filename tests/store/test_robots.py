"""The rows of robots.txt, and the crawl delay that they bring in force at their host."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lanes.core.robots import FRESH, Robots, Said, Silent, after
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from lanes.store.robots import RobotsStore
from tests.fix_database import Clock
from tests.rows import HOUR, Rows, take

HTTP, HTTPS = "http://host.test", "https://host.test"
SECOND = timedelta(seconds=1)


@pytest.fixture
def robots(database: Database) -> RobotsStore:
    return RobotsStore(database)


def said(rows: Rows, delay: float | None, origin: str = HTTPS, at: timedelta = timedelta(0)) -> Robots:
    """A robots.txt that was read now, or `at` from now."""
    crawl_delay = None if delay is None else timedelta(seconds=delay)
    return after(None, origin, Said(200, "User-agent: *\n", crawl_delay), rows.now() + at)


def delay_of(rows: Rows, host_id: int) -> timedelta | None:
    found: timedelta | None = rows.the_host(host_id).crawl_delay
    return found


def test_what_is_kept_is_known_as_it_was(rows: Rows, robots: RobotsStore) -> None:
    rows.host("host.test")
    assert robots.known(HTTPS) is None
    first = said(rows, 2.5)
    robots.keep(first, "host.test", None)
    assert robots.known(HTTPS) == first
    silent = after(first, HTTPS, Silent(500, "status 500"), rows.now())
    robots.keep(silent, "host.test", None)
    assert robots.known(HTTPS) == silent


def test_a_delay_is_the_host_interval_and_its_bucket_moves_from_what_was_sent(rows: Rows, robots: RobotsStore) -> None:
    sent_at = rows.now()
    host_id = rows.host("host.test", sent_at=sent_at, next_at=sent_at + SECOND)
    robots.keep(said(rows, 60), "host.test", sent_at)
    assert delay_of(rows, host_id) == 60 * SECOND
    assert rows.the_host(host_id).next_at == sent_at + 60 * SECOND


def test_the_next_claim_waits_for_a_delay_that_its_worker_did_not_live_to_settle(
    rows: Rows, robots: RobotsStore, store: PollStore
) -> None:
    host_id = rows.host("host.test")
    rows.series(host_id)
    rows.series(host_id)
    claim = take(store)
    assert claim is not None
    robots.keep(said(rows, 300), "host.test", claim.claimed_at)
    rows("UPDATE lanes.clock SET test_offset = test_offset + '91 seconds'")
    assert take(store) is None
    rows("UPDATE lanes.clock SET test_offset = test_offset + '210 seconds'")
    again = take(store)
    assert again is not None
    assert again.host_pace == 300 * SECOND


def test_the_largest_delay_of_a_hosts_fresh_origins_is_in_force(rows: Rows, robots: RobotsStore) -> None:
    host_id = rows.host("host.test")
    robots.keep(said(rows, 60, HTTP), "host.test", None)
    robots.keep(said(rows, 5, HTTPS), "host.test", None)
    assert delay_of(rows, host_id) == 60 * SECOND
    rows("UPDATE lanes.clock SET test_offset = test_offset + %s", FRESH)
    robots.keep(said(rows, 5, HTTPS), "host.test", None)
    assert delay_of(rows, host_id) == 5 * SECOND


def test_a_delay_falls_again_but_no_bucket_opens_earlier(rows: Rows, robots: RobotsStore) -> None:
    """CASES B9."""
    host_id = rows.host("host.test")
    sent_at = rows.now()
    robots.keep(said(rows, 30), "host.test", sent_at)
    robots.keep(said(rows, None), "host.test", sent_at + SECOND)
    assert delay_of(rows, host_id) is None
    assert rows.the_host(host_id).next_at == sent_at + 30 * SECOND


def test_a_worker_that_comes_late_with_an_older_answer_changes_nothing(rows: Rows, robots: RobotsStore) -> None:
    host_id = rows.host("host.test")
    robots.keep(said(rows, 30), "host.test", None)
    robots.keep(said(rows, 1, at=-2 * SECOND), "host.test", None)
    assert delay_of(rows, host_id) == 30 * SECOND


def test_silence_keeps_a_delay_in_force(rows: Rows, robots: RobotsStore) -> None:
    host_id = rows.host("host.test")
    first = said(rows, 30)
    robots.keep(first, "host.test", None)
    rows("UPDATE lanes.clock SET test_offset = test_offset + %s", FRESH)
    robots.keep(after(first, HTTPS, Silent(None, "dns: no such name"), rows.now()), "host.test", None)
    assert delay_of(rows, host_id) == 30 * SECOND


def test_a_host_that_is_gone_meanwhile_is_forgotten_in_peace(rows: Rows, robots: RobotsStore) -> None:
    robots.keep(said(rows, 30), "nobody.test", None)
    assert robots.known(HTTPS) is None


@pytest.mark.parametrize(("before", "kept"), [(None, 600), (60, 600), (7_200, 7_200)])
def test_a_host_that_asked_to_wait_is_left_alone_for_the_longest_that_it_asked(
    rows: Rows, robots: RobotsStore, before: float | None, kept: float
) -> None:
    now = rows.now()

    facts = {} if before is None else {"not_before": now + before * SECOND, "not_before_reason": "so far"}
    host_id = rows.host("host.test", **facts)
    robots.hold("host.test", now, 600 * SECOND, "asked")
    host = rows.the_host(host_id)
    assert host.not_before == now + kept * SECOND
    assert host.not_before_reason == ("asked" if kept == 600 else "so far")


def test_what_was_heard_before_the_clock_went_back_is_of_now(
    rows: Rows, store: PollStore, robots: RobotsStore, clock: Clock
) -> None:
    host_id = rows.host("host.test")
    asked_at = rows.now()
    heard = said(rows, 30)
    store.keep_house()
    clock.advance(-8 * HOUR)
    store.shift_back()
    robots.keep(heard, "host.test", asked_at)
    robots.hold("host.test", asked_at, 600 * SECOND, "asked")
    now, host, known = rows.now(), rows.the_host(host_id), robots.known(HTTPS)
    assert known is not None
    assert known.asked_at <= now < known.again_at <= now + FRESH
    assert host.next_at <= now + 30 * SECOND
    assert now < host.not_before <= now + 600 * SECOND
