"""Pages that a Lane does not wait for to the end: what it knows then of their requests, and what it says (DESIGN 4, 7)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lanes.core.pages import LATE, LEASE, PATIENCE, PageAsked
from lanes.store.browsing import AskingStore
from lanes.store.polls import PollStore
from tests.fix_browser import MakePageLane, Sidecar, shown
from tests.fix_lane import LaneAtWork, Owner
from tests.rows import open_rows, take
from tests.wire.days import told
from tests.wire.tabs import asked_for, looked_at, passing, seen_in_tab

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
SEND = "SELECT lanes.send_page(token, '10 s') FROM lanes.browser_pages"
ITS_OWN = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'machine-1'"


def taken(lane: LaneAtWork, sidecar: Sidecar) -> PageAsked:
    """The page that the Lane has asked for, in a tab."""
    asked_for(lane, 1)
    asked = sidecar.take()
    assert asked is not None
    return asked


def test_a_page_that_is_sent_while_its_lane_gives_it_up_was_sent(
    sidecar: Sidecar, make_page_lane: MakePageLane, owner: Owner, database_url: str
) -> None:
    """The Lane looked, the tab wrote, the Lane withdrew: the stamp stays, and the record has the request."""
    lane, (key,) = make_page_lane("panels", 1)
    with open_rows(database_url) as tab, lane.running():
        taken(lane, sidecar)
        with tab.connection.transaction():
            tab(SEND)
            lane.lane.stop()
            lane.http.interrupt()
            with open_rows(database_url) as watch:
                watch.wait_for_lock()
    (record,), row = owner.polls(key), owner.series(key)
    assert (record.outcome, record.detail) == ("put back", "stopping")
    assert record.sent_at is not None
    assert row.latest_checked_at == record.claimed_at
    assert owner.host("panels.test").sent_at == record.sent_at


@pytest.mark.parametrize("sent", [False, True])
def test_a_page_that_was_lost_with_postgres_was_sent_if_its_host_says_so(
    sidecar: Sidecar, make_page_lane: MakePageLane, database_url: str, sent: bool
) -> None:
    """Rows of pages are not kept over a crash of Postgres; what was spent of a host's pace is."""
    lane, (key,) = make_page_lane("panels", 1)
    stamp = lane.series(key).latest_checked_at
    with passing(lane), open_rows(database_url) as tab:
        taken(lane, sidecar)
        with tab.connection.transaction():
            if sent:
                tab(SEND)
            tab("TRUNCATE lanes.browser_pages")
    (record,), row = lane.polls(key), lane.series(key)
    assert (record.outcome, record.detail) == ("put back", "the browser's sidecar ended with it")
    assert (record.sent_at is not None) is sent
    assert (row.latest_checked_at == stamp) is not sent
    assert lane.host("panels.test").sent_at == (record.sent_at or record.claimed_at)


def test_of_a_page_that_its_tab_gave_up_after_it_might_be_sent_the_tabs_own_reason_is_told(
    sidecar: Sidecar, make_page_lane: MakePageLane
) -> None:
    """It counts as sent: its pace is spent."""
    lane, (key,) = make_page_lane("panels", 1)
    with passing(lane):
        asked = taken(lane, sidecar)
        assert sidecar.send(asked)
        sidecar.store.leave(asked.token, "too little of its time was left")
    (record,) = lane.polls(key)
    assert (record.outcome, record.detail) == ("put back", "too little of its time was left")
    assert record.sent_at is not None
    assert lane.series(key).retry_reason == record.detail


def test_a_page_outlives_the_connections_of_its_lane(
    sidecar: Sidecar, make_page_lane: MakePageLane, database_url: str
) -> None:
    """CASES H3: nothing is asked twice because Postgres was away for a moment."""
    lane, (key,) = make_page_lane("panels", 1)
    with passing(lane), open_rows(database_url) as other:
        asked = taken(lane, sidecar)
        before = {row.pid for row in other(ITS_OWN)}
        other("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY (%s)", list(before))
        lane.wait_for(ITS_OWN + " AND pid <> ALL (%s)", list(before))
        assert sidecar.send(asked)
        sidecar.store.answer(asked.token, shown(asked))
    assert lane.outcomes(key) == ["new"]
    assert len(sidecar.sends) == 1


def test_a_clock_that_jumps_forward_loses_no_browser(sidecar: Sidecar, make_page_lane: MakePageLane) -> None:
    """Whether a page is overdue is said by how long its Lane has waited, not by what time it is: rows cannot tell a leap from a loss."""
    lane, (key,) = make_page_lane("panels", 1)
    with passing(lane):
        asked = taken(lane, sidecar)
        assert sidecar.send(asked)
        seen_in_tab(lane)
        sidecar.leap(PATIENCE + MINUTE)
        looked_at(lane)
        sidecar.store.answer(asked.token, shown(asked))
    assert lane.one("SELECT browser_lost_until AS it FROM lanes.browser").it is None
    assert told(lane, None) == []
    assert lane.outcomes(key) == ["new"]


def test_a_sidecar_that_does_not_live_is_down_and_not_lost_however_long_it_had_a_page(
    sidecar: Sidecar, make_page_lane: MakePageLane, database_url: str
) -> None:
    lane, (key,) = make_page_lane("panels", 1)
    with passing(lane), open_rows(database_url) as other, open_rows(database_url) as watch:
        taken(lane, sidecar)
        seen_in_tab(lane)
        with other.connection.transaction():
            other("LOCK TABLE lanes.browser_pages")
            watch.wait_for_lock()  # both are found by one look
            other("UPDATE lanes.browser SET heartbeat_at = heartbeat_at - interval '1 minute'")
            sidecar.ticks.ahead += (PATIENCE + LATE + SECOND).total_seconds()
    assert lane.series(key).retry_reason == "the browser is down: its sidecar does not run"
    assert lane.one("SELECT browser_lost_until AS it FROM lanes.browser").it is None


def test_a_page_whose_host_was_told_to_wait_meanwhile_is_put_back_until_then_with_that_reason(
    sidecar: Sidecar, make_page_lane: MakePageLane
) -> None:
    lane, (key,) = make_page_lane("panels", 1)
    with passing(lane):
        asked = taken(lane, sidecar)
        lane.tell(
            "UPDATE lanes.hosts SET not_before = lanes.now() + '10 min', not_before_reason = '429 too many requests'"
        )
        assert not sidecar.send(asked)
    row = lane.series(key)
    assert (lane.outcomes(key), row.retry_reason, row.abandoned) == (["put back"], "429 too many requests", 0)
    assert 9 * MINUTE < row.retry_at - lane.now() <= 10 * MINUTE
    assert lane.all("SELECT FROM lanes.browser_pages") == []


@pytest.mark.parametrize("state", ["queued", "taken", "sent"])
def test_a_lane_that_is_told_to_end_puts_the_page_in_hand_back(
    sidecar: Sidecar, make_page_lane: MakePageLane, owner: Owner, state: str
) -> None:
    lane, (key,) = make_page_lane("panels", 1)
    stamp = lane.series(key).latest_checked_at
    with lane.running():
        lane.wait_for("SELECT FROM lanes.browser_pages")
        asked = None if state == "queued" else sidecar.take()
        if state == "sent":
            assert asked is not None
            assert sidecar.send(asked)
        lane.lane.stop()
        lane.http.interrupt()
    row = owner.series(key)
    assert (row.lease_token, row.failures, row.retry_reason) == (None, 0, "stopping")
    assert (row.latest_checked_at == stamp) is (state != "sent")
    assert [record.outcome for record in owner.polls(key)] == ["put back"]
    assert (owner.polls(key)[0].sent_at is not None) is (state == "sent")
    assert owner.one("SELECT count(*) AS n FROM lanes.browser_pages").n == 0
    assert owner.one("SELECT browser_lost_until AS it FROM lanes.browser").it is None


def test_a_lane_that_was_killed_leaves_a_page_that_keeps_nobody(sidecar: Sidecar, make_page_lane: MakePageLane) -> None:
    """CASES H1: its lease runs out, the Series is due then, and the page that nobody came back for is in nobody's way."""
    lane, (key,) = make_page_lane("panels", 1)
    dead = PollStore(lane.database, "panels", "machine-2", many_hosts=False, browser=True)
    claim = take(dead, lane.site.rest)
    assert claim is not None
    asked = PageAsked(claim.token, "panels", claim.url, lane.site.hosts, "main")
    AskingStore(lane.database, "panels").ask(asked, claim.host_id)
    with sidecar.serving():
        assert lane.run_once() == 0
        lane.wait_for("SELECT FROM lanes.browser_pages WHERE answered_at IS NOT NULL")
        sidecar.pass_by(LEASE)
        assert lane.run_once() == 1
    assert lane.outcomes(key)[-1] == "new"
    assert len(sidecar.sends) == 2
