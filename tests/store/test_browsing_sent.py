"""When the request of a page may be written, what that spends, and what whoever asked learns where it may not (DESIGN 4, 7)."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from lanes.core.claim import Claim
from lanes.core.pages import LEASE, LOST, PATIENCE, PLACE
from lanes.store.browsing import ServingStore
from lanes.store.pool import Database
from tests.fix_database import Clock
from tests.one_host import GAP
from tests.page_rows import PAGE, SECOND, a_page_lane, pass_by
from tests.rows import HOUR, MINUTE, Rows, take


def test_a_request_that_was_written_later_than_noted_counts_from_then(
    rows: Rows, database: Database, serving: ServingStore
) -> None:
    """CASES B15: the browser resolves and dials after the instant that was noted."""
    lane = a_page_lane(database, rows)
    claim = lane.asked()
    serving.take()
    serving.sending(claim.token)
    noted = rows.one("SELECT sent_at FROM lanes.browser_pages")
    serving.answer(claim.token, PAGE, 4 * SECOND)
    page = lane.asking.look(claim.token)
    assert page is not None
    assert page.sent_at == noted + 4 * SECOND


def test_a_page_whose_polls_lease_ends_in_the_tab_may_not_be_sent_any_more(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    lane = a_page_lane(database, rows)
    claim = lane.asked()
    serving.take()
    pass_by(clock, serving, LEASE + SECOND)
    before = paces(rows)
    assert serving.sending(claim.token) is None
    assert paces(rows) == before
    assert rows("SELECT FROM lanes.browser_pages WHERE sent_at IS NOT NULL") == []


def test_a_page_that_was_withdrawn_in_the_tab_may_not_be_sent(
    rows: Rows, database: Database, serving: ServingStore
) -> None:
    lane = a_page_lane(database, rows)
    claim = lane.asked()
    serving.take()
    assert lane.asking.withdraw(claim.token, claim.host_id, claim.claimed_at) is None
    before = paces(rows)
    assert serving.sending(claim.token) is None
    assert paces(rows) == before
    serving.answer(claim.token, PAGE)
    assert rows.one("SELECT count(*) FROM lanes.browser_pages") == 0


def paces(rows: Rows) -> list[object]:
    """Where the paces of every Lane and host stand."""
    return rows(
        "SELECT h.id, h.next_at, h.sent_at, l.next_at AS gap_at FROM lanes.hosts h JOIN lanes.lanes l USING (site) ORDER BY h.id"
    )


def test_a_page_spends_its_hosts_and_its_lanes_pace_at_the_sent_instant(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    lane = a_page_lane(database, rows)
    claim = lane.asked()
    pass_by(clock, serving, timedelta(seconds=40))
    serving.take()
    earliest = rows.now()
    assert serving.sending(claim.token) == timedelta(0)
    latest = rows.now()
    page = lane.asking.look(claim.token)
    assert page is not None
    assert page.sent_at is not None
    assert earliest <= page.sent_at <= latest
    host = rows.the_host(claim.host_id)
    assert host.sent_at == page.sent_at
    assert host.next_at == page.sent_at + SECOND
    assert rows.one("SELECT next_at FROM lanes.lanes WHERE site = 'panels'") == page.sent_at + GAP


@pytest.mark.parametrize(("crawl_delay", "owner_pace"), [(30, None), (None, 40)])
def test_a_page_spends_every_lower_bound_of_its_host(
    rows: Rows, database: Database, serving: ServingStore, crawl_delay: int | None, owner_pace: int | None
) -> None:
    lane = a_page_lane(database, rows)
    rows(
        "UPDATE lanes.hosts SET crawl_delay = %s * interval '1 s', owner_pace = %s * interval '1 s'",
        crawl_delay,
        owner_pace,
    )
    claim = lane.asked()
    serving.take()
    serving.sending(claim.token)
    host = rows.the_host(claim.host_id)
    assert host.next_at - host.sent_at == timedelta(seconds=crawl_delay or owner_pace or 0)


def test_a_late_page_waits_for_its_place_in_the_gap_and_moves_it_on(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    """Its Site's other host was asked by another process while it queued."""
    lane = a_page_lane(database, rows, hosts=2)
    late = lane.asked()
    pass_by(clock, serving, timedelta(seconds=30))
    other = a_page_lane(database, rows, machine="there", hosts=0).in_hand()
    assert other.host_id != late.host_id
    pass_by(clock, serving, timedelta(seconds=3))
    serving.take()
    wait = serving.sending(late.token)
    assert wait is not None
    assert timedelta(seconds=5) < wait <= timedelta(seconds=7)
    assert rows.the_host(late.host_id).sent_at == other.claimed_at + GAP
    assert rows.one("SELECT next_at FROM lanes.lanes WHERE site = 'panels'") == other.claimed_at + 2 * GAP


def test_a_page_that_would_wait_longer_than_a_gap_for_its_place_is_not_sent_and_spends_nothing(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    lane = a_page_lane(database, rows, hosts=2)
    late = lane.asked()
    pass_by(clock, serving, timedelta(seconds=30))
    a_page_lane(database, rows, machine="there", hosts=0).in_hand()
    rows("UPDATE lanes.lanes SET next_at = lanes.now() + %s + interval '2 s'", PLACE)
    before = paces(rows)
    serving.take()
    assert serving.sending(late.token) is None
    assert paces(rows) == before
    page = lane.asking.look(late.token)
    assert page is None or page.sent_at is None


def test_a_host_that_was_told_to_wait_meanwhile_is_not_asked(
    rows: Rows, database: Database, serving: ServingStore
) -> None:
    lane = a_page_lane(database, rows)
    claim = lane.asked()
    serving.take()
    rows.set_host(claim.host_id, not_before=rows.now() + HOUR, not_before_reason="Retry-After")
    assert serving.sending(claim.token) is None


def unlucky(rows: Rows, claim: Claim, kind: str) -> None:
    """What came in the way of a page that a tab has taken."""
    match kind:
        case "Gap":
            rows("UPDATE lanes.lanes SET next_at = lanes.now() + interval '12 s'")
        case "told to wait":
            rows.set_host(claim.host_id, not_before=rows.now() + 10 * MINUTE, not_before_reason="429 too many requests")
        case "blocked":
            rows.set_host(claim.host_id, not_before="infinity", not_before_reason="blocked by the owner")
        case _:
            rows.set_host(claim.host_id, busy_until=rows.now())


@pytest.mark.parametrize(
    ("kind", "reason", "wait"),
    [
        ("Gap", "the Gap of its Site", timedelta(seconds=12)),
        ("told to wait", "429 too many requests", 10 * MINUTE),
        ("blocked", "blocked by the owner", HOUR),
        ("lease", "its lease has ended", timedelta(0)),
    ],
)
def test_whoever_asked_learns_why_a_page_may_not_be_sent_and_for_how_long(
    rows: Rows, database: Database, serving: ServingStore, database_url: str, kind: str, reason: str, wait: timedelta
) -> None:
    """A block may be lifted sooner than it ends; its gate stays shut however often the Poll is put back."""
    lane = a_page_lane(database, rows, hosts=2)
    claim = lane.asked()
    serving.take()
    unlucky(rows, claim, kind)
    with psycopg.connect(database_url, autocommit=True) as listener:
        listener.execute("LISTEN lanes_page_panels")
        assert serving.sending(claim.token) is None
        assert list(listener.notifies(timeout=10, stop_after=1)), "whoever asked is woken"
    page = lane.asking.look(claim.token)
    assert page is not None
    assert page.stopped is not None
    assert (page.stopped.trouble, page.sent_at, page.opened) == (reason, None, None)
    assert page.stopped.wait is not None
    assert wait - SECOND < page.stopped.wait <= wait
    serving.leave(claim.token, "its tab gave it up")
    ServingStore(database).begin(None)
    page = lane.asking.look(claim.token)
    assert page is not None
    assert page.stopped is not None, "no successor takes that away"


def test_a_clock_set_back_takes_along_how_long_a_page_may_not_be_sent(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    """CASES A13."""
    lane = a_page_lane(database, rows)
    claim = lane.asked()
    serving.take()
    unlucky(rows, claim, "told to wait")
    serving.sending(claim.token)
    lane.store.keep_house()
    clock.advance(-8 * HOUR)
    lane.store.shift_back()
    page = lane.asking.look(claim.token)
    assert page is not None
    assert page.stopped is not None
    assert page.stopped.wait is not None
    assert page.stopped.wait <= 10 * MINUTE


def test_a_page_that_may_not_be_sent_is_in_nobodys_way(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    serving.lose()
    pass_by(clock, serving, LOST + SECOND)
    first, second = a_page_lane(database, rows, "panels").asked(), a_page_lane(database, rows, "strips").asked()
    serving.take()
    unlucky(rows, first, "told to wait")
    assert serving.sending(first.token) is None
    probe = serving.take()
    assert probe is not None
    assert probe.token == second.token


def test_a_page_in_a_tab_keeps_its_host_and_its_series_for_its_time_whatever_became_of_its_lane(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    """Its Lane was killed with a second of its lease left: nobody else is asked there while the tab works (DESIGN 4.1)."""
    lane = a_page_lane(database, rows, series=2)
    claim = lane.asked()
    pass_by(clock, serving, LEASE - SECOND)
    serving.take()
    assert serving.sending(claim.token) == timedelta(0)
    ends = rows.one("SELECT deadline_at FROM lanes.browser_pages")
    assert rows.the_host(claim.host_id).busy_until == ends
    assert rows.the_series(claim.series_id).lease_until == ends
    pass_by(clock, serving, PATIENCE - SECOND)
    assert take(lane.store, HOUR) is None
    pass_by(clock, serving, 2 * SECOND)
    assert take(lane.store, HOUR) is not None


def test_a_page_that_is_sent_shortens_no_lease(rows: Rows, database: Database, serving: ServingStore) -> None:
    claim = a_page_lane(database, rows).asked()
    serving.take()
    before = rows.the_host(claim.host_id).busy_until, rows.the_series(claim.series_id).lease_until
    serving.sending(claim.token)
    assert (rows.the_host(claim.host_id).busy_until, rows.the_series(claim.series_id).lease_until) == before
