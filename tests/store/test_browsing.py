"""The rows between a Lane and the sidecar: who takes which page, when it may be sent, what comes back (DESIGN 7)."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from lanes.core.answer import Trouble
from lanes.core.claim import Claim
from lanes.core.pages import BEAT, LEASE, LOST, PATIENCE, PLACE, RENEW, SETTLING, NotShown, PageAsked, Shown
from lanes.store.browsing import ServingStore
from lanes.store.pool import Database
from tests.fix_database import Clock
from tests.one_host import GAP
from tests.page_rows import PAGE, SECOND, a_page_lane, pass_by
from tests.rows import HOUR, MINUTE, Rows, open_rows, take


@pytest.fixture
def serving(database: Database) -> ServingStore:
    """The sidecar's side: it lives, and Chrome is awake."""
    serving = ServingStore(database)
    serving.begin("Chrome/1")
    serving.beat(awake=True, version="Chrome/1")
    return serving


def pages(rows: Rows) -> int:
    count: int = rows.one("SELECT count(*) FROM lanes.browser_pages")
    return count


def test_the_times_of_a_page_are_those_of_the_design() -> None:
    """DESIGN 4, 7."""
    assert (PATIENCE, LEASE, RENEW, SETTLING) == (120 * SECOND, 150 * SECOND, 30 * SECOND, 30 * SECOND)
    assert (LOST, BEAT, PLACE) == (15 * MINUTE, 5 * SECOND, 10 * SECOND)


def test_the_sidecar_gets_what_the_lane_asked_for_word_by_word(
    rows: Rows, database: Database, serving: ServingStore
) -> None:
    lane = a_page_lane(database, rows)
    claim = lane.in_hand()
    asked = PageAsked(claim.token, "panels", claim.url, ("a.test", "b.test"), "main > ol li", "p.empty", media=True)
    lane.asking.ask(asked, claim.host_id)
    assert serving.take() == asked


@pytest.mark.parametrize(
    "opened",
    [
        Shown(200, {"content-type": "text/html; charset=utf-8", "x-a": "b, c"}, "https://a.test/end", b"\x00<p>\xff"),
        Shown(403, {}, "https://a.test/", b"", held="a Cloudflare challenge"),
        NotShown(Trouble.TIMEOUT, "the page did not load in time"),
        NotShown(Trouble.CONNECT, "ERR_ADDRESS_UNREACHABLE", forbidden="10.0.0.1", line_proved=True),
        *(NotShown(trouble, "", line_proved=True) for trouble in Trouble),
    ],
)
def test_the_lane_gets_what_the_tab_came_to_word_by_word(
    rows: Rows, database: Database, serving: ServingStore, opened: Shown | NotShown
) -> None:
    lane = a_page_lane(database, rows)
    claim = lane.asked()
    assert serving.take() is not None
    serving.sending(claim.token)
    serving.answer(claim.token, opened)
    page = lane.asking.look(claim.token)
    assert page is not None
    assert page.opened == opened
    lane.asking.withdraw(claim.token)
    assert lane.asking.look(claim.token) is None


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


def test_a_page_that_a_tab_gives_up_costs_no_other(rows: Rows, database: Database, serving: ServingStore) -> None:
    """Whoever asked learns whether it was sent; it is not taken again."""
    unsent, sent, queued = (a_page_lane(database, rows, site) for site in ("novels", "panels", "strips"))
    tokens = [lane.asked().token for lane in (unsent, sent, queued)]
    serving.take()
    serving.take()
    assert serving.sending(tokens[1]) is not None
    for token in tokens[:2]:
        serving.leave(token)
    assert unsent.asking.look(tokens[0]) is None
    page = sent.asking.look(tokens[1])
    assert page is not None
    assert page.sent_at is not None
    assert (page.taken, page.opened) == (False, None)
    taken = serving.take()
    assert taken is not None
    assert taken.token == tokens[2]
    serving.leave(tokens[1])  # once more does no harm
    serving.answer(tokens[2], PAGE)
    serving.leave(tokens[2])
    page = queued.asking.look(tokens[2])
    assert page is not None
    assert page.opened == PAGE, "an answer stays for its reader"


def test_the_page_that_was_asked_for_first_is_taken_first(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    asked = []
    for site in ("strips", "panels", "novels"):
        asked.append(a_page_lane(database, rows, site).asked().token)
        clock.advance(SECOND)
    taken = [serving.take() for _ in range(4)]
    assert [page and page.token for page in taken] == [*asked, None]


def test_a_page_is_taken_by_one_of_two_sidecars(
    rows: Rows, database: Database, serving: ServingStore, database_url: str
) -> None:
    claim = a_page_lane(database, rows).asked()
    with psycopg.connect(database_url) as other:
        other.execute("SELECT * FROM lanes.take_page(%s)", (PATIENCE,))
        assert serving.take() is None, "another has it in a transaction that is still open"
    assert serving.take() is None
    assert rows.one("SELECT taken_at FROM lanes.browser_pages WHERE token = %s", claim.token) is not None


def test_its_time_runs_from_when_a_tab_takes_it(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    lane = a_page_lane(database, rows)
    claim = lane.asked()
    pass_by(clock, serving, timedelta(seconds=140))
    page = lane.asking.look(claim.token)
    assert page is not None
    assert (page.taken, page.overdue, page.sent_at) == (False, False, None)
    serving.take()
    pass_by(clock, serving, PATIENCE - SECOND)
    page = lane.asking.look(claim.token)
    assert page is not None
    assert (page.taken, page.overdue) == (True, False)
    pass_by(clock, serving, 2 * SECOND)
    page = lane.asking.look(claim.token)
    assert page is not None
    assert page.overdue


def test_a_page_whose_polls_lease_is_over_is_not_taken(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    a_page_lane(database, rows, "panels").asked()
    pass_by(clock, serving, timedelta(seconds=60))
    later = a_page_lane(database, rows, "strips").asked()
    pass_by(clock, serving, LEASE - timedelta(seconds=59))
    page = serving.take()
    assert page is not None
    assert page.token == later.token
    assert serving.take() is None


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
    lane.asking.withdraw(claim.token)
    before = paces(rows)
    assert serving.sending(claim.token) is None
    assert paces(rows) == before
    serving.answer(claim.token, PAGE)
    assert pages(rows) == 0


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
    ServingStore(database).leave(claim.token)
    ServingStore(database).begin(None)
    page = lane.asking.look(claim.token)
    assert page is not None
    assert page.stopped is not None, "no successor takes that away"


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


def test_renewing_holds_host_and_series_on_until_the_lease_has_ended(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    lane = a_page_lane(database, rows, series=2)
    claim = lane.asked()
    for _ in range(3):
        pass_by(clock, serving, timedelta(seconds=140))
        earliest = rows.now()
        assert lane.asking.renew(claim.host_id, claim.series_id, claim.token, LEASE)
        series, host = rows.the_series(claim.series_id), rows.the_host(claim.host_id)
        assert series.lease_until == host.busy_until
        assert earliest + LEASE <= host.busy_until <= rows.now() + LEASE
        assert take(lane.store, HOUR) is None, "its host is in hand"
    pass_by(clock, serving, LEASE + SECOND)
    assert not lane.asking.renew(claim.host_id, claim.series_id, claim.token, LEASE)
    assert rows.the_series(claim.series_id).lease_until < rows.now()
    assert rows.the_host(claim.host_id).busy_until < rows.now()
    assert take(lane.store, HOUR) is not None


def test_nobody_renews_anothers_lease(rows: Rows, database: Database, serving: ServingStore) -> None:
    lane = a_page_lane(database, rows)
    claim = lane.asked()
    before = rows.the_host(claim.host_id), rows.the_series(claim.series_id)
    assert not lane.asking.renew(claim.host_id, claim.series_id, uuid4(), LEASE)
    assert (rows.the_host(claim.host_id), rows.the_series(claim.series_id)) == before


def test_what_an_earlier_poll_of_the_lane_left_behind_goes_when_it_asks_again(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    """A Lane that was killed: its lease runs out, and the next claim's page is the only one."""
    lane = a_page_lane(database, rows)
    left = lane.asked()
    pass_by(clock, serving, LEASE + SECOND)
    claim = lane.asked()
    assert lane.asking.look(left.token) is None
    page = serving.take()
    assert page is not None
    assert page.token == claim.token
    assert pages(rows) == 1


def test_a_second_process_of_a_site_does_not_take_the_first_ones_page_away(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    """Whoever comes second is told that there is one, and puts its Poll back (DESIGN 3, 7: one open request per Lane)."""
    lane = a_page_lane(database, rows, hosts=2)
    first = lane.asked()
    serving.take()
    serving.sending(first.token)
    pass_by(clock, serving, GAP)
    second = a_page_lane(database, rows, machine="there", hosts=0)
    standing = second.ask(second.in_hand())
    assert standing.trouble is not None
    page = lane.asking.look(first.token)
    assert page is not None
    assert page.sent_at is not None
    assert pages(rows) == 1


def test_a_page_nobody_came_back_for_goes_a_minute_past_its_time(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    a_page_lane(database, rows).asked()
    serving.take()
    pass_by(clock, serving, PATIENCE + 59 * SECOND)
    assert pages(rows) == 1
    pass_by(clock, serving, 2 * SECOND)
    assert pages(rows) == 0


def test_a_queue_is_not_swept(rows: Rows, database: Database, serving: ServingStore, clock: Clock) -> None:
    lane = a_page_lane(database, rows)
    claim = lane.asked()
    for _ in range(10):
        pass_by(clock, serving, MINUTE)
        assert lane.asking.renew(claim.host_id, claim.series_id, claim.token, LEASE)
    page = serving.take()
    assert page is not None
    assert page.token == claim.token


def test_a_sidecar_that_starts_clears_what_was_asked_of_its_predecessor(
    rows: Rows, database: Database, serving: ServingStore
) -> None:
    queued = a_page_lane(database, rows, "panels")
    claim = queued.asked()
    ServingStore(database).begin(None)
    assert queued.asking.look(claim.token) is None
    assert serving.take() is None
    assert rows("SELECT awake, version FROM lanes.browser") == [(False, None)]


def test_bells_ring_when_a_page_is_asked_for_and_when_it_is_answered(
    rows: Rows, database: Database, serving: ServingStore, database_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as listener:
        listener.execute("LISTEN lanes_browser")
        claim = a_page_lane(database, rows).asked()
        assert [bell.channel for bell in listener.notifies(timeout=10, stop_after=1)] == ["lanes_browser"]
        listener.execute("LISTEN lanes_page_panels")
        listener.execute("LISTEN lanes_page_strips")
        serving.take()
        serving.sending(claim.token)
        serving.answer(claim.token, PAGE)
        assert {bell.channel for bell in listener.notifies(timeout=10, stop_after=1)} == {"lanes_page_panels"}


def ends_or_waits(rows: Rows, future: Future[object]) -> None:
    """Returns once another thread has its answer, or waits for a lock."""
    deadline = time.monotonic() + 20
    while not future.done() and time.monotonic() < deadline:
        if rows.one(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        ):
            return
    assert future.done(), "it neither ended nor waited"


def test_two_tabs_at_one_instant_are_one_probe(
    rows: Rows, database: Database, serving: ServingStore, database_url: str, clock: Clock
) -> None:
    serving.lose()
    pass_by(clock, serving, 16 * MINUTE)
    for site in ("panels", "strips"):
        a_page_lane(database, rows, site).asked()
    with ThreadPoolExecutor(1) as pool, open_rows(database_url) as watch:
        with psycopg.connect(database_url) as other:
            (probe,) = other.execute("SELECT token FROM lanes.take_page(%s)", (PATIENCE,)).fetchall()
            second: Future[object] = pool.submit(serving.take)
            ends_or_waits(watch, second)
        assert second.result(20) is None
    assert rows("SELECT token FROM lanes.browser_pages WHERE taken_at IS NOT NULL") == [probe]
