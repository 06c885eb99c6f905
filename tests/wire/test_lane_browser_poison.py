"""Pages that lose the browser each time, and a Chrome that loses every page (CASES H2, H5; DESIGN 4, 10): the one costs itself, the
other nobody."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from lanes.core.pages import LOST, OTHERS_FIRST
from tests.fix_browser import Fate, MakePageLane, Sidecar, pages_of
from tests.fix_lane import LaneAtWork
from tests.wire.days import told
from tests.wire.tabs import asked_for, passing, seen_in_tab

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
POISON = "its page lost the browser three times in a row"

NEXT = (
    "SELECT min(greatest(lanes.due_at(s, '1 hour'), s.added_at, s.not_before, h.next_at, l.next_at, "
    "(SELECT browser_lost_until FROM lanes.browser))) + interval '10 ms' AS it "
    "FROM lanes.series s JOIN lanes.hosts h ON h.id = s.queue_host_id JOIN lanes.lanes l ON l.site = s.site"
)


def go_by(sidecar: Sidecar, span: timedelta, *lanes: LaneAtWork) -> None:
    """So much time goes by, the Lanes and the sidecar at work: from each instant at which something may be polled to the next."""
    ends = lanes[0].now() + span
    with sidecar.serving():
        while (now := lanes[0].now()) < ends:
            lanes[0].move_to(min(max(lanes[0].one(NEXT).it, now + 10 * SECOND), ends))
            sidecar.beat()
            for lane in lanes:
                lane.run_once()


def series(lane: LaneAtWork) -> list[Any]:
    return lane.all("SELECT * FROM lanes.series ORDER BY id")


def test_a_page_that_loses_the_browser_each_time_costs_itself_a_failure_and_the_others_are_polled(
    sidecar: Sidecar, make_page_lane: MakePageLane
) -> None:
    """Every hour the others show that Chrome works; each time it is lost after that counts."""
    (panels, (poison, *_)), (strips, _) = make_page_lane("panels", 4), make_page_lane("strips", 3)
    sidecar.script("http://panels.test/0", Fate.LOST)
    go_by(sidecar, 2.5 * HOUR, panels, strips)
    *lost, failed = panels.polls(poison)
    assert {(record.outcome, record.detail) for record in lost} == {("put back", "the browser is lost")}
    assert (failed.outcome, failed.detail, failed.sent_at) == ("failed", POISON, None), "it is not asked once more"
    row, *others = series(panels)
    assert (row.failures, row.failure, row.abandoned) == (1, POISON, 0)
    assert row.next_check_at >= row.latest_checked_at + 2 * HOUR
    assert {(other.failures, other.abandoned) for other in others} == {(0, 0)}
    for other in others:
        good = [record.sent_at for record in panels.polls(other.key) if record.outcome in ("new", "unchanged")]
        assert len(good) >= 2
        assert max(later - earlier for earlier, later in pairwise(good)) < 1.1 * HOUR + LOST + 5 * MINUTE
    for earlier, later in pairwise(lost):
        assert later.sent_at - earlier.sent_at >= LOST + OTHERS_FIRST


def test_its_next_attempt_comes_a_minute_after_its_loss_is_over(sidecar: Sidecar, make_page_lane: MakePageLane) -> None:
    lane, (key,) = make_page_lane("panels", 1)
    sidecar.script("http://panels.test/0", Fate.LOST)
    with sidecar.serving():
        assert lane.run_once() == 1
    until = lane.one("SELECT browser_lost_until AS it FROM lanes.browser").it
    row = lane.series(key)
    assert abs(row.retry_at - (until + OTHERS_FIRST)) < 5 * SECOND
    assert (row.abandoned, row.failures) == (1, 0)


def test_a_page_in_the_queue_of_a_lost_browser_comes_when_that_is_over(
    sidecar: Sidecar, make_page_lane: MakePageLane
) -> None:
    (panels, (panel,)), (strips, (strip,)) = make_page_lane("panels", 1), make_page_lane("strips", 1)
    with passing(panels):
        asked_for(panels, 1)
        assert sidecar.take() is not None
        with passing(strips):
            asked_for(strips, 2)
            sidecar.store.lose()
    until = panels.one("SELECT browser_lost_until AS it FROM lanes.browser").it
    assert (panels.series(panel).abandoned, strips.series(strip).abandoned) == (1, 0)
    assert abs(strips.series(strip).retry_at - until) < 5 * SECOND


def test_a_chrome_that_loses_every_page_charges_nobody(sidecar: Sidecar, make_page_lane: MakePageLane) -> None:
    (panels, _), (strips, _) = make_page_lane("panels", 3), make_page_lane("strips", 2)
    for row in series(panels):
        sidecar.script(row.url, Fate.LOST)
    go_by(sidecar, 4 * HOUR, panels, strips)
    assert len(sidecar.sends) > 10
    assert {record.outcome for record in panels.polls()} == {"put back"}
    assert {row.failures for row in series(panels)} == {0}
    assert max(row.abandoned for row in series(panels)) == 1
    assert told(panels, None) == ["browser lost"]
    gaps = [later.at - earlier.at for earlier, later in pairwise(sidecar.sends)]
    assert min(gaps) >= LOST


def test_where_it_is_the_only_one_due_it_is_not_charged(sidecar: Sidecar, make_page_lane: MakePageLane) -> None:
    """Nobody else shows whether it is the page or Chrome; when somebody does, it counts."""
    lane, (poison,) = make_page_lane("panels", 1)
    sidecar.script("http://panels.test/0", Fate.LOST)
    go_by(sidecar, 2 * HOUR, lane)
    assert len(sidecar.sends) > 4
    row = lane.series(poison)
    assert (row.failures, row.abandoned) == (0, 1)
    pages_of(lane, 2, first=1)
    go_by(sidecar, HOUR, lane)
    assert lane.series(poison).abandoned > 1 or lane.series(poison).failures == 1


def test_two_such_pages_of_two_lanes_do_not_hide_behind_each_other(
    sidecar: Sidecar, make_page_lane: MakePageLane
) -> None:
    (panels, _), (strips, _) = make_page_lane("panels", 3), make_page_lane("strips", 3)
    poison = {"http://panels.test/0", "http://strips.test/0"}
    for url in poison:
        sidecar.script(url, Fate.LOST)
    go_by(sidecar, 3.5 * HOUR, panels, strips)
    rows = series(panels)
    assert {row.url for row in rows if row.failures} == poison
    assert {row.failure for row in rows if row.failures} == {POISON}
    assert all(row.good_at is not None for row in rows if row.url not in poison)


def test_a_page_that_was_lost_beside_such_a_page_is_soon_cleared(
    sidecar: Sidecar, make_page_lane: MakePageLane
) -> None:
    """Two tabs: whoever was beside it is opened alone, and answers."""
    (panels, (poison,)), (strips, (strip,)) = make_page_lane("panels", 1), make_page_lane("strips", 1)
    sidecar.script("http://panels.test/0", Fate.LOST)
    with passing(panels, strips):
        asked_for(panels, 2)
        tabs = [sidecar.take(), sidecar.take()]
        assert all(tabs)
        sidecar.store.lose()
    assert [panels.series(key).abandoned for key in (poison, strip)] == [1, 1]
    go_by(sidecar, HOUR, strips, panels)
    row = panels.series(strip)
    assert (row.abandoned, row.failures) == (0, 0)
    assert row.good_at is not None
    assert panels.series(poison).abandoned > 1 or panels.series(poison).failures == 1


@pytest.mark.parametrize("fate", [Fate.GONE, Fate.GONE_UNSENT])
def test_whose_page_was_in_a_tab_of_a_sidecar_that_ended_lets_others_go_first(
    sidecar: Sidecar, make_page_lane: MakePageLane, fate: Fate
) -> None:
    """Perhaps it was the page."""
    lane, (key,) = make_page_lane("panels", 1)
    with passing(lane):
        asked_for(lane, 1)
        asked = sidecar.take()
        assert asked is not None
        seen_in_tab(lane)
        if not fate.unsent:
            assert sidecar.send(asked)
        sidecar.store.begin(None)
        sidecar.beat()
    row = lane.series(key)
    assert (row.retry_reason, row.abandoned, row.failures) == ("the browser's sidecar ended with it", 0, 0)
    assert OTHERS_FIRST - 5 * SECOND < row.retry_at - lane.now() <= OTHERS_FIRST
