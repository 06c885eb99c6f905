"""The serving loop beside a browser whose pages end in what nobody foresaw: each costs itself (CASES B15; DESIGN 4, 7)."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from browser_sidecar.rhythm import Rhythm
from lanes.core.answer import Trouble
from lanes.core.pages import NotShown, PageAsked
from lanes.errors import DatabaseAway
from tests.browser.rows import Rows, until
from tests.browser.serving import PAGE, Scripted, held, serving


def test_a_request_that_was_written_late_is_noted_when_it_is_answered(rows: Rows) -> None:
    """CASES B15."""
    gate = threading.Event()
    with serving(rows, Scripted(held(gate), later=4.0)):
        token = rows.asked("http://site.test/")
        page = rows.until(token, lambda page: page is not None and page.sent_at is not None)
        gate.set()
        assert rows.opened(token) == PAGE
        answered = rows.look(token)
        assert page is not None
        assert page.sent_at is not None
        assert answered is not None
        assert answered.sent_at == page.sent_at + timedelta(seconds=4)


def test_a_bug_after_a_page_was_sent_is_a_failure_of_its_series_and_costs_no_other(
    rows: Rows, caplog: pytest.LogCaptureFixture
) -> None:
    gate, fates = threading.Event(), [KeyError("a bug"), PAGE]

    def deed(_: PageAsked) -> object:
        assert gate.wait(60)
        if isinstance(fate := fates.pop(0), Exception):
            raise fate
        return fate

    with serving(rows, Scripted(deed)) as at_work:
        token = rows.asked("http://site.test/")
        rows.until(token, lambda page: page is not None and page.sent_at is not None)
        queued = rows.asked("http://site.test/", "other")
        gate.set()
        assert rows.opened(token) == NotShown(Trouble.FRAMING, "a fault of ours: KeyError")
        assert rows.opened(queued) == PAGE
        assert rows.lost_until is None
        assert at_work.count("browser_pages_total", outcome="framing") == 1
    assert "a bug ended a page" in caplog.text


@pytest.mark.parametrize(
    "unstorable",
    [
        replace(PAGE, status=99_999),
        replace(PAGE, headers={"x-odd": "a\ud800"}),
        replace(PAGE, headers={"x-odd": "a\x00"}),
        replace(PAGE, url="http://site.test/\ud800"),
        NotShown(Trouble.RESET, "a\x00b"),
    ],
    ids=["status", "a surrogate", "NUL", "URL", "detail"],
)
def test_an_answer_that_no_row_holds_is_a_failure_of_its_series(rows: Rows, unstorable: object) -> None:
    """Put back it would be asked for again at once, and again."""
    with serving(rows, Scripted(lambda asked: unstorable if asked.url.endswith("1") else PAGE)):
        came = rows.opened(rows.asked("http://site.test/1", "one"))
        assert isinstance(came, NotShown)
        assert came.trouble is Trouble.FRAMING
        assert came.detail.startswith("a fault of ours: ")
        assert rows.opened(rows.asked("http://site.test/2", "two")) == PAGE
        assert rows.lost_until is None


def test_a_bug_before_a_page_is_sent_says_so_and_takes_nothing_for_a_minute(rows: Rows) -> None:
    """It would end the next page too."""
    with serving(rows, Scripted(fault=OSError("no space left"))) as at_work:
        token = rows.asked("http://site.test/")
        page = rows.until(token, lambda page: page is None or page.browser.trouble is not None)
        assert page is not None
        assert page.browser.trouble == "the browser is down: a fault of ours: OSError"
        assert page.browser.wait is not None
        assert timedelta(0) < page.browser.wait <= timedelta(minutes=1)
        assert (page.sent_at, page.opened) == (None, None)
        assert at_work.browser.opened == ["http://site.test/"]
        assert rows.lost_until is None


def test_a_page_that_is_done_in_its_time_is_no_loss_however_long_its_answer_waits_for_postgres(rows: Rows) -> None:
    gate = threading.Event()
    with serving(rows, Scripted(held(gate)), Rhythm(beat=0.05, patience=2.0)) as at_work:
        token = rows.asked("http://site.test/")
        rows.until(token, lambda page: page is not None and page.sent_at is not None)
        with psycopg.connect(rows.url) as another:
            another.execute("SELECT FROM lanes.browser_pages FOR UPDATE")
            gate.set()
            until(lambda: at_work.count("browser_pages_total", outcome="shown") == 1)
            over = time.monotonic() + 2.0
            until(lambda: time.monotonic() > over)
            rows.tell("UPDATE lanes.browser SET heartbeat_at = '2000-01-01'")
            rows.wait_for("SELECT FROM lanes.browser WHERE heartbeat_at > '2001-01-01'")
            assert (rows.lost_until, at_work.browser.ended) == (None, 0)
        assert rows.opened(token) == PAGE
        assert at_work.count("browser_lost_total") == 0


def test_a_page_that_was_not_sent_says_why_and_costs_no_other(rows: Rows) -> None:
    browser = Scripted(fault=DatabaseAway("no answer"))
    with serving(rows, browser) as at_work:
        token = rows.asked("http://site.test/", "one")
        page = rows.until(token, lambda page: page is not None and page.stopped is not None)
        assert page is not None
        assert page.stopped is not None
        assert (page.stopped.trouble, page.opened) == ("Postgres was away while its page was in a tab", None)
        browser.fault = None
        assert rows.opened(rows.asked("http://site.test/", "two")) == PAGE
        assert len(at_work.browser.opened) == 2


def test_one_that_was_granted_too_late_counts_as_sent_and_is_put_back(rows: Rows) -> None:
    with serving(rows, Scripted(lambda _: None)) as at_work:
        token = rows.asked("http://site.test/")
        page = rows.until(token, lambda page: page is not None and page.sent_at is not None and not page.taken)
        assert page is not None
        assert (page.opened, page.left) == (
            None,
            "when its request might be written, too little of its page's time was left",
        )
        assert at_work.count("browser_pages_total", outcome="unwanted") == 1
        assert rows.lost_until is None
