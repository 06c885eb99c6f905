"""The rows between a Lane and the sidecar: who takes which page, when it may be sent, what comes back (DESIGN 7)."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from lanes.core.answer import Trouble
from lanes.core.pages import BEAT, LEASE, LOST, PATIENCE, PLACE, RENEW, SETTLING, NotShown, PageAsked, Shown
from lanes.store.browsing import ServingStore
from lanes.store.pool import Database
from tests.fix_database import Clock
from tests.one_host import GAP
from tests.page_rows import PAGE, SECOND, a_page_lane, ends_or_waits, pass_by
from tests.rows import HOUR, MINUTE, Rows, open_rows, take


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
    asked = PageAsked(claim.token, "panels", claim.url, ("a.test", "b.test"), "main > ol li", "p.empty")
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
    sent_at = page.sent_at
    assert lane.asking.withdraw(claim.token, claim.host_id, claim.claimed_at) == sent_at
    assert lane.asking.look(claim.token) is None


def test_a_page_that_a_tab_gives_up_costs_no_other(rows: Rows, database: Database, serving: ServingStore) -> None:
    """Whoever asked learns whether it was sent; it is not taken again."""
    unsent, sent, queued = (a_page_lane(database, rows, site) for site in ("novels", "panels", "strips"))
    tokens = [lane.asked().token for lane in (unsent, sent, queued)]
    serving.take()
    serving.take()
    assert serving.sending(tokens[1]) is not None
    for token in tokens[:2]:
        serving.leave(token, "Chrome took too long to start")
    page = unsent.asking.look(tokens[0])
    assert page is not None
    assert page.stopped is not None
    assert page.stopped.trouble == "Chrome took too long to start"
    assert (page.sent_at, page.opened) == (None, None)
    page = sent.asking.look(tokens[1])
    assert page is not None
    assert page.sent_at is not None
    assert (page.taken, page.opened, page.left) == (False, None, "Chrome took too long to start")
    taken = serving.take()
    assert taken is not None
    assert taken.token == tokens[2]
    serving.answer(tokens[2], PAGE)
    serving.leave(tokens[2], "too late")
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
    assert (page.taken, page.sent_at) == (False, None)
    earliest = rows.now()
    serving.take()
    page = lane.asking.look(claim.token)
    assert page is not None
    assert page.taken
    assert earliest + PATIENCE <= rows.one("SELECT deadline_at FROM lanes.browser_pages") <= rows.now() + PATIENCE


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
