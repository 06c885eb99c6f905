"""The serving loop beside a browser that does what a test says: rows, heartbeat, loss, sleep (CASES H5, H10; DESIGN 7)."""

from __future__ import annotations

import threading
from datetime import timedelta

import psycopg
import pytest

from browser_sidecar.chrome import HOW_TO_INSTALL, NotStarted
from browser_sidecar.metrics import SidecarMetrics
from browser_sidecar.page import Lost
from browser_sidecar.rhythm import Rhythm
from lanes.core.answer import Trouble
from lanes.core.pages import LOST, NotShown, PageAsked, Shown
from tests.browser.rows import Rows, until
from tests.browser.serving import PAGE, Scripted, Serving, held, serving
from tests.fix_database import Clock


def test_a_page_is_taken_sent_and_answered(rows: Rows) -> None:
    with serving(rows, Scripted()) as at_work:
        token = rows.asked("http://site.test/")
        assert rows.opened(token) == PAGE
        page = rows.look(token)
        assert page is not None
        assert page.sent_at is not None
        assert at_work.count("browser_pages_total", outcome="shown") == 1
        assert at_work.count("browser_received_bytes_total") == 10


def test_what_a_page_came_to_is_told_as_it_is(rows: Rows) -> None:
    failed = NotShown(Trouble.CONNECT, "127.2.0.7 may not be dialled", "127.2.0.7", line_proved=True)
    with serving(rows, Scripted(lambda _: failed)) as at_work:
        assert rows.opened(rows.asked("http://site.test/")) == failed
        assert at_work.count("browser_pages_total", outcome="forbidden") == 1


def test_the_heart_beats_while_a_page_is_in_hand(rows: Rows) -> None:
    gate = threading.Event()
    with serving(rows, Scripted(held(gate))):
        rows.until(rows.asked("http://site.test/"), lambda page: page is not None and page.taken)
        rows.tell("UPDATE lanes.browser SET heartbeat_at = '2000-01-01'")
        found = rows.wait_for("SELECT awake, version FROM lanes.browser WHERE heartbeat_at > '2001-01-01' AND awake")
        assert (found.awake, found.version) == (True, "156.0")
        gate.set()


def test_six_pages_queue_before_one_tab_and_nothing_is_lost(rows: Rows, clock: Clock) -> None:
    """CASES H10: each has its time from when the tab takes it."""
    taken = threading.Semaphore(0)
    go_on = threading.Semaphore(0)

    def slow(_: PageAsked) -> Shown:
        taken.release()
        assert go_on.acquire(timeout=60)
        return PAGE

    with serving(rows, Scripted(slow)) as at_work:
        tokens = [rows.asked(f"http://site.test/{n}", f"site-{n}") for n in range(6)]
        for token in tokens:
            assert taken.acquire(timeout=60)
            clock.advance(timedelta(seconds=30))  # as Postgres counts
            go_on.release()
            assert rows.opened(token) == PAGE  # before so much time is over that a row nobody fetched goes
        assert at_work.browser.opened == [f"http://site.test/{n}" for n in range(6)]
        assert rows.lost_until is None
        assert at_work.count("browser_lost_total") == 0


def test_as_many_pages_are_open_as_there_are_tabs(rows: Rows) -> None:
    gate = threading.Event()
    with serving(rows, Scripted(held(gate)), tabs=2) as at_work:
        tokens = [rows.asked("http://site.test/", f"site-{n}") for n in range(3)]
        for token in tokens[:2]:
            rows.until(token, lambda page: page is not None and page.taken)
        page = rows.look(tokens[2])
        assert page is not None
        assert not page.taken
        gate.set()
        assert rows.opened(tokens[2]) == PAGE
        assert len(at_work.browser.opened) == 3


def test_a_lost_page_is_written_once_chrome_is_ended_and_nothing_is_taken_until_the_probe(
    rows: Rows, clock: Clock
) -> None:
    """CASES H5."""
    fates = iter([Lost("the tab crashed"), PAGE])
    with serving(rows, Scripted(lambda _: next(fates))) as at_work:
        token = rows.asked("http://site.test/")
        rows.wait_for("SELECT FROM lanes.browser WHERE browser_lost_until IS NOT NULL")
        lost_until = rows.lost_until
        assert timedelta(minutes=14) < lost_until - rows.one("SELECT lanes.now() AS it").it <= LOST
        assert at_work.browser.ended == 1
        until(lambda: at_work.count("browser_lost_until_timestamp_seconds") == lost_until.timestamp())
        until(lambda: not at_work.metrics.health().ok)  # told after that, in the same round
        assert at_work.metrics.health().state.startswith(f"the browser is lost until {lost_until:%Y-%m-%dT%H:%M:%S}")
        until(lambda: at_work.count("browser_up") == 0)
        page = rows.look(token)
        assert page is not None
        assert page.opened is None
        assert page.browser.trouble == "the browser is lost"
        assert rows.ask("http://site.test/", "other")[1].trouble == "the browser is lost"
        clock.advance(LOST + timedelta(seconds=1))
        rows.tell("DELETE FROM lanes.browser_pages")  # whoever asked for it has put its Poll back
        rows.tell("UPDATE lanes.browser SET heartbeat_at = lanes.now()")
        assert rows.opened(rows.asked("http://site.test/")) == PAGE
        rows.wait_for("SELECT FROM lanes.browser WHERE browser_lost_until IS NULL")
        assert (at_work.count("browser_lost_total"), at_work.browser.ended) == (1, 1)
        until(lambda: at_work.count("browser_lost_until_timestamp_seconds") == 0)
        until(lambda: at_work.metrics.health().ok)
        until(lambda: at_work.count("browser_up") == 1)


def test_of_several_pages_in_a_lost_browser_the_loss_is_one(rows: Rows) -> None:
    gate = threading.Event()
    with serving(rows, Scripted(held(gate, Lost("Chrome ended"))), tabs=3) as at_work:
        for n in range(3):
            rows.until(
                rows.asked("http://site.test/", f"site-{n}"), lambda page: page is not None and page.sent_at is not None
            )
        gate.set()
        rows.wait_for("SELECT FROM lanes.browser WHERE browser_lost_until IS NOT NULL")
        before = rows.lost_until
        rows.tell("UPDATE lanes.browser SET heartbeat_at = '2000-01-01'")
        rows.wait_for("SELECT FROM lanes.browser WHERE heartbeat_at > '2001-01-01'")
        assert rows.lost_until == before
        assert at_work.count("browser_lost_total") == 1


def test_a_chrome_that_dies_between_pages_is_a_loss_too(rows: Rows) -> None:
    with serving(rows, Scripted()) as at_work:
        rows.opened(rows.asked("http://site.test/"))
        at_work.browser.dead = "Chrome ended"
        rows.wait_for("SELECT FROM lanes.browser WHERE browser_lost_until > lanes.now()")
        assert at_work.browser.ended == 1


def test_a_page_past_its_time_is_a_loss_and_its_chrome_is_ended(rows: Rows) -> None:
    gate = threading.Event()
    rhythm = Rhythm(beat=0.05, patience=0.3)
    with serving(rows, Scripted(held(gate, Lost("its socket closed"))), rhythm) as at_work:
        rows.asked("http://site.test/")
        rows.wait_for("SELECT FROM lanes.browser WHERE browser_lost_until > lanes.now()")
        assert at_work.browser.ended == 1
        gate.set()


def test_chrome_sleeps_after_idle_minutes_and_wakes_with_the_next_page(rows: Rows) -> None:
    with serving(rows, Scripted(), Rhythm(beat=0.05, idle=0.2)) as at_work:
        rows.opened(rows.asked("http://site.test/"))
        until(lambda: at_work.browser.ended == 1)
        rows.wait_for("SELECT FROM lanes.browser WHERE NOT awake")
        rows.tell("DELETE FROM lanes.browser_pages")
        assert rows.opened(rows.asked("http://site.test/")) == PAGE
        assert at_work.count("browser_lost_total") == 0
        assert at_work.count("browser_restarts_total") == 0


def test_chrome_is_started_afresh_after_so_many_pages(rows: Rows) -> None:
    with serving(rows, Scripted(), Rhythm(beat=0.05, pages=3), tabs=2) as at_work:
        for n in range(7):
            assert rows.opened(rows.asked("http://site.test/", f"site-{n}")) == PAGE
        assert (at_work.browser.ended, at_work.count("browser_restarts_total")) == (2, 2)
        assert rows.lost_until is None


def test_a_second_tab_opens_no_page_beyond_those_after_which_chrome_is_started_afresh(rows: Rows) -> None:
    gate = threading.Event()

    def slow_third(asked: PageAsked) -> Shown:
        assert not asked.url.endswith("/2") or gate.wait(60)
        return PAGE

    with serving(rows, Scripted(slow_third), Rhythm(beat=0.05, pages=3), tabs=2) as at_work:
        for n in range(2):
            assert rows.opened(rows.asked(f"http://site.test/{n}", f"site-{n}")) == PAGE
        third, fourth = (rows.asked(f"http://site.test/{n}", f"site-{n}") for n in (2, 3))
        rows.until(third, lambda page: page is not None and page.taken)
        for _ in range(2):  # what a round takes it takes after its beat
            rows.tell("UPDATE lanes.browser SET heartbeat_at = '2000-01-01'")
            rows.wait_for("SELECT FROM lanes.browser WHERE heartbeat_at > '2001-01-01'")
        page = rows.look(fourth)
        assert page is not None
        assert not page.taken
        gate.set()
        assert rows.opened(fourth) == PAGE
        assert (at_work.browser.ended, at_work.count("browser_restarts_total")) == (1, 1)


def test_a_page_that_chrome_does_not_end_costs_a_start_afresh_and_nobody_the_browser(rows: Rows) -> None:
    """Or a page that keeps Chrome busy would take it from every other Lane for a quarter of an hour, each time that it is read."""
    with serving(rows, Scripted(leaves=True)) as at_work:
        for n in range(2):
            assert rows.opened(rows.asked(f"http://site.test/{n}")) == PAGE
            until(lambda n=n: at_work.browser.ended == n + 1)  # type: ignore[misc]
        assert rows.lost_until is None
        assert (at_work.count("browser_lost_total"), at_work.count("browser_restarts_total")) == (0, 2)


def test_chrome_is_started_afresh_past_its_memory_bound(rows: Rows) -> None:
    rhythm = Rhythm(beat=0.05, weigh=0.0, memory=1_000)
    with serving(rows, Scripted(weight=1_001), rhythm) as at_work:
        assert rows.opened(rows.asked("http://site.test/")) == PAGE
        until(lambda: at_work.browser.ended == 1)
        assert at_work.count("browser_restarts_total") == 1


@pytest.mark.parametrize(("tabs", "ends"), [(1, True), (4, False)])
def test_several_tabs_may_weigh_more(rows: Rows, tabs: int, ends: bool) -> None:
    rhythm = Rhythm(beat=0.05, weigh=0.0, memory=1_000)
    with serving(rows, Scripted(weight=1_700), rhythm, tabs) as at_work:
        rows.opened(rows.asked("http://site.test/"))
        until(lambda: at_work.count("browser_memory_bytes") == 1_700 or at_work.browser.ended == 1)
        rows.opened(rows.asked("http://site.test/", "other"))
        assert bool(at_work.browser.ended) is ends


@pytest.mark.parametrize(
    ("lacking", "well"), [(HOW_TO_INSTALL, True), ("LANES_BROWSER_BINARY names /nowhere, which is no program", False)]
)
def test_without_chrome_the_browser_is_down_and_it_is_said_what_to_do(rows: Rows, lacking: str, well: bool) -> None:
    """Where none is installed and none was asked for, all is as it should be (DESIGN 7)."""
    browser = Scripted(lacking=lacking)
    with serving(rows, browser, Rhythm(beat=0.05, weigh=0.1)) as at_work:
        assert rows.ask("http://site.test/")[1].trouble == f"the browser is down: {lacking}"
        assert rows.one("SELECT heartbeat_at = '-infinity' AS it FROM lanes.browser").it
        health = at_work.metrics.health()
        assert (health.ok, health.state) == (well, lacking)
        assert at_work.count("browser_up") == 0
        browser.lacking = None  # it was installed
        rows.wait_for("SELECT FROM lanes.browser WHERE heartbeat_at > '-infinity' AND trouble IS NULL")
        assert rows.opened(rows.asked("http://site.test/")) == PAGE
        assert at_work.count("browser_up") == 1
        assert at_work.metrics.health().ok


def test_what_nothing_holds_in_a_chrome_elsewhere_is_told_by_its_row_and_its_health(rows: Rows) -> None:
    with serving(rows, Scripted(not_held="it runs elsewhere")) as at_work:
        rows.wait_for("SELECT FROM lanes.browser WHERE not_held = 'it runs elsewhere'")
        until(lambda: at_work.metrics.health().state == "Chrome sleeps; it runs elsewhere")
    with serving(rows, Scripted()):
        rows.wait_for("SELECT FROM lanes.browser WHERE not_held IS NULL")


def test_a_chrome_that_does_not_start_is_down_and_tried_again_later(rows: Rows) -> None:
    refusals = [NotStarted("Chrome ended at once: No usable sandbox")]

    def start(_: PageAsked) -> Shown:
        if refusals:
            raise refusals.pop()
        return PAGE

    with serving(rows, Scripted(start), Rhythm(beat=0.05, retry=0.5)) as at_work:
        rows.asked("http://site.test/")
        rows.wait_for(
            "SELECT FROM lanes.browser WHERE trouble = 'Chrome ended at once: No usable sandbox' "
            "AND trouble_until <= lanes.now() + '0.5 s'"
        )
        assert not at_work.metrics.health().ok
        assert rows.lost_until is None
        rows.tell("DELETE FROM lanes.browser_pages")
        rows.wait_for("SELECT FROM lanes.browser WHERE trouble IS NULL")
        assert rows.opened(rows.asked("http://site.test/")) == PAGE


def test_a_page_whose_poll_is_over_is_not_opened_and_nothing_is_written(rows: Rows) -> None:
    gate = threading.Event()
    sent: list[str] = []

    def note(asked: PageAsked) -> Shown:
        sent.append(asked.url)
        assert gate.wait(60)
        return PAGE

    with serving(rows, Scripted(note)) as at_work:
        rows.until(rows.asked("http://site.test/1", "one"), lambda page: page is not None and page.sent_at is not None)
        token = rows.asked("http://site.test/2", "two")
        rows.tell("UPDATE lanes.hosts SET busy_until = lanes.now() WHERE site = 'two'")
        third = rows.asked("http://site.test/3", "three")
        gate.set()
        assert rows.opened(third) == PAGE
        assert sent == ["http://site.test/1", "http://site.test/3"]
        page = rows.look(token)
        assert page is None or page.sent_at is None
        assert at_work.count("browser_lost_total") == 0


def test_a_second_sidecar_stands_by_and_takes_over(rows: Rows) -> None:
    with serving(rows, Scripted()) as first, serving(rows, Scripted()) as second:
        for n in range(3):
            rows.opened(rows.asked("http://site.test/", f"site-{n}"))
        assert len(first.browser.opened) + len(second.browser.opened) == 3
        working, waiting = (first, second) if first.browser.opened else (second, first)
        assert waiting.browser.opened == []
        assert waiting.metrics.health().state.startswith("standing by")
        assert (working.browser.taken_over, waiting.browser.taken_over) == (1, 0)
        working.stop()
        rows.wait_for("SELECT FROM lanes.browser WHERE trouble IS NULL")
        assert rows.opened(rows.asked("http://site.test/", "last")) == PAGE
        assert len(waiting.browser.opened) == waiting.browser.taken_over == 1


def test_what_a_predecessor_left_is_put_back(rows: Rows) -> None:
    with serving(rows, Scripted()):
        pass
    rows.tell("UPDATE lanes.browser SET heartbeat_at = lanes.now(), trouble = NULL")
    unsent, sent = rows.asked("http://site.test/1", "one"), rows.asked("http://site.test/2", "two")
    rows.tell("UPDATE lanes.browser_pages SET taken_at = lanes.now(), deadline_at = lanes.now() + '2 minutes'")
    rows.tell("UPDATE lanes.browser_pages SET sent_at = lanes.now() WHERE token = %s", sent)
    with serving(rows, Scripted()) as at_work:
        rows.until(unsent, lambda page: page is None)
        page = rows.until(sent, lambda page: page is not None and not page.taken)
        assert page is not None
        assert page.sent_at is not None
        assert at_work.browser.opened == []


def test_while_postgres_is_away_the_sidecar_waits_and_an_answer_is_not_lost(rows: Rows) -> None:
    gate = threading.Event()
    with serving(rows, Scripted(held(gate))) as at_work:
        token = rows.asked("http://site.test/")
        rows.until(token, lambda page: page is not None and page.sent_at is not None)
        with psycopg.connect(rows.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name LIKE ANY (ARRAY['the sidecar%', 'browser turn'])"
            )
        gate.set()
        assert rows.opened(token) == PAGE
        assert rows.opened(rows.asked("http://site.test/", "other")) == PAGE
        assert len(at_work.browser.opened) == 2


def test_when_it_stops_its_pages_are_put_back_and_no_loss_is_written(rows: Rows) -> None:
    gate = threading.Event()
    browser = Scripted(held(gate, Lost("closed")))
    at_work = Serving(rows.url, browser)
    rows.wait_for("SELECT FROM lanes.browser WHERE heartbeat_at > '-infinity'")
    token = rows.asked("http://site.test/")
    rows.until(token, lambda page: page is not None and page.sent_at is not None)
    browser.ends = gate  # with Chrome its pages end
    at_work.stop()
    page = rows.look(token)
    assert page is not None
    assert page.opened is None
    assert page.browser.trouble == "the browser is down: its sidecar was stopped"
    assert rows.lost_until is None
    assert browser.is_awake is False


def test_every_outcome_has_its_series_from_the_start() -> None:
    metrics = SidecarMetrics(2)
    for outcome in ("shown", "held", "forbidden", "lost", "unwanted", *(trouble.value for trouble in Trouble)):
        assert metrics.registry.get_sample_value("browser_pages_total", {"outcome": outcome}) == 0
    for name in (
        "browser_up",
        "browser_awake",
        "browser_restarts_total",
        "browser_lost_total",
        "browser_lost_until_timestamp_seconds",
        "browser_memory_bytes",
    ):
        assert metrics.registry.get_sample_value(name) == 0
    assert metrics.registry.get_sample_value("browser_tabs") == 2
    assert metrics.health().ok is False
