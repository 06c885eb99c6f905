"""Whether the browser can be asked: lost, down, awake, asleep, and what that keeps from being claimed (DESIGN 5.6, 7)."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest

from lanes.core.answer import Trouble
from lanes.core.pages import LEASE, LOST, OTHERS_FIRST, PATIENCE, NotShown, Opened, Shown
from lanes.core.why import STOPPED
from lanes.store import browsing
from lanes.store.asking import AskStore, Listed
from lanes.store.browsing import Loss, ServingStore
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from tests.fix_database import Clock
from tests.one_host import REST
from tests.page_rows import PAGE, SECOND, PageLane, a_page_lane, pass_by
from tests.rows import HOUR, MINUTE, Rows, take

HELD = Shown(403, {}, "https://host.test/", b"", held="a block page")
SILENT = NotShown(Trouble.TIMEOUT, "the page did not load in time")


def lost_until(rows: Rows) -> datetime | None:
    until: datetime | None = rows.one("SELECT browser_lost_until FROM lanes.browser")
    return until


def asked(database: Database, rows: Rows, *sites: str) -> list[tuple[PageLane, Any]]:
    """A page asked for by a Lane of each Site, all at once due."""
    lanes = [a_page_lane(database, rows, site) for site in sites]
    return [(lane, lane.asked()) for lane in lanes]


def owed(rows: Rows) -> int:
    """Notices to the owner that the browser is lost."""
    count: int = rows.one("SELECT count(*) FROM lanes.notices WHERE kind = 'browser lost' AND reader_id IS NULL")
    return count


def seen(database: Database, key: str, site: str = "panels") -> Listed:
    return AskStore(database, {site: REST}, polling=True).one(key)


def test_a_loss_is_written_once_by_ten_who_notice_at_once(
    rows: Rows, database: Database, serving: ServingStore
) -> None:
    """CASES H5."""
    (lane, _), (other, _) = asked(database, rows, "panels", "strips")
    start = threading.Barrier(10)

    def notice(n: int) -> bool:
        start.wait(20)
        return (lane.asking, other.asking, serving)[n % 3].lose()

    earliest = rows.now()
    with ThreadPoolExecutor(10) as pool:
        news = list(pool.map(notice, range(10)))
    until = lost_until(rows)
    assert sorted(news) == [False] * 9 + [True]
    assert until is not None
    assert earliest + LOST <= until <= rows.now() + LOST
    assert owed(rows) == 1
    assert not rows.one("SELECT awake FROM lanes.browser"), "what is lost does not run"


def test_a_loss_that_is_noticed_again_is_not_prolonged(rows: Rows, serving: ServingStore, clock: Clock) -> None:
    serving.lose()
    until = lost_until(rows)
    pass_by(clock, serving, LOST - 5 * SECOND)
    assert not serving.lose()
    assert lost_until(rows) == until
    assert rows.one("SELECT awake FROM lanes.browser"), "a heartbeat says so"


def test_losses_in_a_row_are_one_notice_and_a_new_row_another(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    for _ in range(3):
        assert serving.lose()
        pass_by(clock, serving, LOST + SECOND)
    assert owed(rows) == 1
    ((lane, claim),) = asked(database, rows, "panels")
    assert serving.take() is not None
    serving.answer(claim.token, PAGE)
    assert lost_until(rows) is None
    pass_by(clock, serving, LOST)
    assert lane.asking.lose()
    assert owed(rows) == 2


def test_nothing_is_taken_while_lost_then_one_page_alone_until_it_is_answered_then_all(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    lanes = asked(database, rows, "panels", "strips", "novels")
    serving.lose()
    assert serving.take() is None
    for _ in range(7):
        pass_by(clock, serving, 2 * MINUTE)
        for lane, claim in lanes:
            assert lane.asking.renew(claim.host_id, claim.series_id, claim.token, LEASE)
        assert serving.take() is None
    pass_by(clock, serving, MINUTE)
    probe = serving.take()
    assert probe is not None
    assert serving.take() is None
    serving.sending(probe.token)
    assert serving.take() is None
    serving.answer(probe.token, PAGE)
    rest = [serving.take(), serving.take()]
    assert {page.token for page in (probe, *rest) if page} == {claim.token for _, claim in lanes}


@pytest.mark.parametrize("opened", [PAGE, HELD, SILENT])
def test_whatever_a_probe_comes_to_shows_that_the_browser_works(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock, opened: Opened
) -> None:
    serving.lose()
    pass_by(clock, serving, LOST + SECOND)
    ((_, claim),) = asked(database, rows, "panels")
    serving.take()
    assert lost_until(rows) is not None
    serving.answer(claim.token, opened)
    assert lost_until(rows) is None


def test_an_answer_of_before_does_not_end_a_loss_early(rows: Rows, database: Database, serving: ServingStore) -> None:
    ((_, claim),) = asked(database, rows, "panels")
    serving.take()
    serving.lose()
    until = lost_until(rows)
    serving.answer(claim.token, PAGE)
    assert lost_until(rows) == until


def test_a_probe_that_is_lost_loses_the_browser_anew(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    serving.lose()
    pass_by(clock, serving, LOST + SECOND)
    ((lane, _),) = asked(database, rows, "panels")
    serving.take()
    pass_by(clock, serving, PATIENCE + SECOND)
    assert lane.asking.lose()
    until = lost_until(rows)
    assert until is not None
    assert until > rows.now() + LOST - SECOND


def test_a_page_in_hand_can_still_be_read_of_after_its_loss(
    rows: Rows, database: Database, serving: ServingStore
) -> None:
    """Whether its request was sent decides whether the stamp of its Series stays: whoever asked must learn it (DESIGN 4)."""
    ((lane, claim),) = asked(database, rows, "panels")
    serving.take()
    serving.sending(claim.token)
    serving.lose()
    page = lane.asking.look(claim.token)
    assert page is not None
    assert page.sent_at is not None
    assert page.browser.trouble == "the browser is lost"


def test_what_was_sent_by_a_sidecar_that_died_is_known_to_whoever_asked(
    rows: Rows, database: Database, serving: ServingStore
) -> None:
    ((lane, claim),) = asked(database, rows, "panels")
    serving.take()
    serving.sending(claim.token)
    successor = ServingStore(database)
    successor.begin(None)
    successor.beat(awake=True, version=None)
    page = lane.asking.look(claim.token)
    assert page is not None
    assert page.sent_at is not None
    assert (page.taken, page.opened) == (False, None)
    assert successor.take() is None
    serving.answer(claim.token, PAGE)
    page = lane.asking.look(claim.token)
    assert page is not None
    assert page.opened is None, "it comes too late"


def test_while_the_browser_is_lost_whoever_asks_is_told_until_when(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    lane = a_page_lane(database, rows)
    claim = lane.in_hand()
    serving.lose()
    pass_by(clock, serving, MINUTE)
    standing = lane.ask(claim)
    assert standing.trouble == "the browser is lost"
    assert standing.wait is not None
    assert 13 * MINUTE < standing.wait <= 14 * MINUTE
    assert rows.one("SELECT count(*) FROM lanes.browser_pages") == 0


@pytest.mark.parametrize(("silent_for", "down"), [(29, False), (31, True)])
def test_a_sidecar_without_a_heartbeat_for_thirty_seconds_is_down(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock, silent_for: int, down: bool
) -> None:
    lane = a_page_lane(database, rows)
    claim = lane.in_hand()
    serving.beat(awake=True, version=None)
    clock.advance(silent_for * SECOND)
    standing = lane.ask(claim)
    assert (standing.trouble is not None) is down
    assert standing.wait is None
    if down:
        assert standing.trouble == "the browser is down: its sidecar does not run"
    assert rows.one("SELECT count(*) FROM lanes.browser_pages") == (0 if down else 1)


def test_where_no_sidecar_ever_ran_the_browser_is_down(rows: Rows, database: Database) -> None:
    lane = a_page_lane(database, rows)
    assert take(lane.store, REST) is None
    (key,) = rows("SELECT key FROM lanes.series")
    why = seen(database, key.key).why
    assert (why.reason, why.until, why.held) == ("the browser is down: its sidecar does not run", None, True)
    assert not lane.asking.lose()
    assert owed(rows) == 0


def test_a_sidecar_that_cannot_serve_says_why_until_it_can(
    rows: Rows, database: Database, serving: ServingStore
) -> None:
    lane = a_page_lane(database, rows)
    serving.unable("Chrome is not installed: apt install chromium")
    assert take(lane.store, REST) is None
    (key,) = rows("SELECT key FROM lanes.series")
    assert seen(database, key.key).why.reason == "the browser is down: Chrome is not installed: apt install chromium"
    serving.beat(awake=True, version=None)
    assert take(lane.store, REST) is not None


def test_a_sidecar_that_cannot_serve_from_its_first_moment_says_why(rows: Rows, database: Database) -> None:
    lane = a_page_lane(database, rows)
    ServingStore(database).unable("Chrome is not installed: apt install chromium")
    assert take(lane.store, REST) is None
    assert rows.one("SELECT trouble FROM lanes.browser") == "Chrome is not installed: apt install chromium"


def test_when_it_tries_again_is_told_until_then(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    lane = a_page_lane(database, rows)
    (key,) = rows("SELECT key FROM lanes.series")
    serving.unable("no Chrome answers", MINUTE)
    why = seen(database, key.key).why
    assert (why.reason, why.until) == (
        "the browser is down: no Chrome answers",
        rows.one("SELECT trouble_until FROM lanes.browser"),
    )
    clock.advance(MINUTE)
    assert seen(database, key.key).why.until is None
    assert take(lane.store, REST) is None
    serving.beat(awake=True, version=None)
    assert rows.one("SELECT trouble_until FROM lanes.browser") is None
    assert take(lane.store, REST) is not None


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        ("silent", "the browser is down: its sidecar does not run"),
        ("stopped", "the browser is down: its sidecar was stopped"),
        ("without Chrome", "the browser is down: Chrome is not installed: apt install chromium"),
    ],
)
def test_what_does_not_mend_itself_is_said_before_a_loss_that_does(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock, trouble: str, told: str
) -> None:
    ((lane, claim),) = asked(database, rows, "panels")
    serving.take()
    serving.lose()
    match trouble:
        case "silent":
            clock.advance(31 * SECOND)
        case "stopped":
            serving.unable(STOPPED)
        case _:
            serving.unable("Chrome is not installed: apt install chromium")
    standing = browsing.browser(database)
    assert (standing.trouble, standing.until) == (told, None)
    page = lane.asking.look(claim.token)
    assert page is not None
    assert (page.browser.trouble, page.browser.lost) == (told, True)
    assert page.browser.wait is not None
    assert page.browser.wait > LOST - MINUTE, "what is put back waits for the loss as well"


def test_a_sidecar_that_starts_again_still_waits_for_the_end_of_a_loss(
    rows: Rows, database: Database, serving: ServingStore
) -> None:
    lane = a_page_lane(database, rows)
    serving.lose()
    serving.unable(STOPPED)
    successor = ServingStore(database)
    successor.begin(None)
    standing = browsing.browser(database)
    assert (standing.trouble, standing.until) == ("the browser is lost", lost_until(rows))
    assert successor.take() is None
    assert take(lane.store, REST) is None


@pytest.mark.parametrize("wait", [MINUTE, 20 * MINUTE])
def test_a_trouble_with_an_end_never_ends_before_the_loss_beside_it(
    rows: Rows, database: Database, serving: ServingStore, wait: timedelta
) -> None:
    serving.lose()
    serving.unable("no Chrome answers", wait)
    standing = browsing.browser(database)
    assert standing.trouble == "the browser is down: no Chrome answers"
    assert standing.until == max(lost_until(rows), rows.one("SELECT trouble_until FROM lanes.browser"))


def test_the_heartbeat_tells_until_when_it_is_lost(rows: Rows, serving: ServingStore, clock: Clock) -> None:
    assert serving.beat(awake=True, version=None) is None
    serving.lose()
    assert serving.beat(awake=True, version=None) == Loss(lost_until(rows), over=False)
    clock.advance(LOST)
    assert serving.beat(awake=True, version=None) == Loss(lost_until(rows), over=True)


@pytest.mark.parametrize("trouble", ["lost", "down", "unable"])
def test_a_browser_that_cannot_be_asked_gates_browser_lanes_and_stamps_nothing(
    rows: Rows, database: Database, serving: ServingStore, store: PollStore, clock: Clock, trouble: str
) -> None:
    panels, strips = a_page_lane(database, rows, "panels", series=6), a_page_lane(database, rows, "strips", series=6)
    rows.series()
    match trouble:
        case "lost":
            serving.lose()
        case "down":
            clock.advance(31 * SECOND)
        case _:
            serving.unable("Chrome is not installed")
    before = rows("SELECT * FROM lanes.series WHERE site <> 'feeds' ORDER BY id")
    assert take(panels.store, REST) is None
    assert take(strips.store, REST) is None
    assert take(store) is not None
    assert rows("SELECT * FROM lanes.series WHERE site <> 'feeds' ORDER BY id") == before


def test_a_gated_series_says_that_the_browser_is_lost_and_until_when(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    lane = a_page_lane(database, rows)
    serving.lose()
    pass_by(clock, serving, MINUTE)
    (key,) = rows("SELECT key FROM lanes.series")
    why = seen(database, key.key).why
    assert (why.reason, why.until, why.held) == ("the browser is lost", lost_until(rows), True)
    pass_by(clock, serving, LOST)
    assert "due" in seen(database, key.key).why.reason
    assert take(lane.store, REST) is not None


def test_a_check_now_does_not_open_what_a_lost_browser_closes(
    rows: Rows, database: Database, serving: ServingStore
) -> None:
    lane = a_page_lane(database, rows)
    rows("UPDATE lanes.series SET force_poll_at = lanes.now()")
    rows("UPDATE lanes.hosts SET pending_at = lanes.now()")
    serving.lose()
    assert take(lane.store, REST) is None


def test_a_clock_set_back_takes_the_browser_and_its_pages_along(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    """CASES A13: nobody is silenced, no page is overdue or immortal for it."""
    ((lane, claim),) = asked(database, rows, "panels")
    serving.take()
    serving.sending(claim.token)
    serving.lose()
    rows("UPDATE lanes.browser SET trouble_until = browser_lost_until")
    lane.store.keep_house()
    before = rows("SELECT * FROM lanes.browser_pages"), rows("SELECT * FROM lanes.browser")
    clock.advance(-8 * HOUR)
    back = lane.store.shift_back()
    assert back is not None
    ((page,), (browser,)), ((was,), (stood,)) = (
        (rows("SELECT * FROM lanes.browser_pages"), rows("SELECT * FROM lanes.browser")),
        before,
    )
    for name in ("asked_at", "taken_at", "deadline_at", "sent_at"):
        assert getattr(page, name) == getattr(was, name) - back, name
    assert browser.browser_lost_until == browser.trouble_until == stood.browser_lost_until - back
    assert browser.heartbeat_at == stood.heartbeat_at - back
    assert browser.others_until == stood.others_until - back == browser.browser_lost_until + OTHERS_FIRST
    assert abs(back - 8 * HOUR) < MINUTE
