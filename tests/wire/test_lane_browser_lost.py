"""Browser Lanes while the browser is lost, down, asleep or merely slow: nobody is charged, plain Lanes do not notice (DESIGN 5.6, 7)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from lanes.core.pages import LATE, LOST, OTHERS_FIRST, PATIENCE
from lanes.store.asking import AskStore, LaneState
from tests.fix_browser import Fate, MakePageLane, Sidecar, page_site, pages_of, shown
from tests.fix_database import Clock
from tests.fix_lane import LaneAtWork, MakeLane
from tests.smallnet import Smallnet
from tests.wire.comics import comics, open_at, titles_of
from tests.wire.days import told
from tests.wire.tabs import asked_for, passing, seen_in_tab

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)

PUT_BACK = {"retry_at", "retry_reason", "claimable_at", "turn", "earlier_checked_at"}
"""What a Poll that was put back changes of its Series, whether or not a request was sent; the last is the claim's note of the stamp."""
STAMPED = {"latest_checked_at"}
COUNTED = {"abandoned"}
"""What the first loss with its page in a tab adds up to: a failure, once it has lost the browser three times in a row."""
SPENT = {"next_at", "sent_at", "ready_at", "pending_at"}
"""What a claim, and a request, change of a host: its pace is spent, and is the same pace."""


def facts(lane: LaneAtWork, table: str) -> dict[int, dict[str, Any]]:
    """Whole rows of the Lane's Site by id."""
    rows = lane.all(f"SELECT * FROM lanes.{table} WHERE site = %s ORDER BY id", lane.site.name)
    return {row.id: row._asdict() for row in rows}


def changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def state(lane: LaneAtWork) -> LaneState:
    return AskStore(lane.database, {lane.site.name: lane.site.rest}, polling=True).lane(lane.site.name)


def why(lane: LaneAtWork, key: str) -> tuple[str, Any]:
    """What `lanes why` says, and until when."""
    said = AskStore(lane.database, {lane.site.name: lane.site.rest}, polling=True).one(key).why
    return said.reason, said.until


def lost_until(lane: LaneAtWork) -> Any:
    return lane.one("SELECT browser_lost_until AS it FROM lanes.browser").it


@pytest.mark.parametrize("fate", [Fate.LOST_UNSENT, Fate.LOST, Fate.GONE_UNSENT, Fate.GONE])
@pytest.mark.parametrize("failing", [False, True])
def test_a_page_that_is_lost_in_hand_is_put_back_and_charges_nobody(
    sidecar: Sidecar, make_page_lane: MakePageLane, fate: Fate, failing: bool
) -> None:
    """CASES H5: every column of every Series and host is as before, but for when it is tried again, and the stamp of what was sent."""
    lane, (key, *_) = make_page_lane("panels", 3)
    lane.tell(
        "UPDATE lanes.series SET latest_checked_at = lanes.now() - interval '2 days', next_check_at = lanes.now() - interval '1 day'"
    )
    if failing:
        lane.tell("UPDATE lanes.series SET failures = 3, failing_since = lanes.now() - interval '3 days', refusals = 0")
    series, hosts = facts(lane, "series"), facts(lane, "hosts")
    sidecar.script("http://panels.test/0", fate)
    with sidecar.serving():
        assert lane.run_once() == 1
    after = facts(lane, "series")
    moved = {row["key"]: changed(series[row_id], row) for row_id, row in after.items()}
    stamped = set() if fate.unsent else STAMPED
    lost = fate in (Fate.LOST, Fate.LOST_UNSENT)
    assert moved.pop(key) <= PUT_BACK | stamped | (COUNTED if lost else set())
    assert set().union(*moved.values()) == set(), "the others stay unstamped and due"
    paced = {row["name"]: changed(hosts[row_id], row) for row_id, row in facts(lane, "hosts").items()}
    assert paced.pop("panels.test") <= SPENT
    assert set().union(*paced.values()) <= {"ready_at"}, "the claim found that nobody is there to poll"
    row = lane.series(key)
    (record,) = lane.polls(key)
    assert record.outcome == "put back"
    if fate.unsent:
        assert record.sent_at is None
        assert row.latest_checked_at == series[row.id]["latest_checked_at"]
    else:
        assert abs(record.sent_at - sidecar.sends[0].at) < SECOND
        assert row.latest_checked_at == record.claimed_at
    assert lane.all("SELECT FROM lanes.incidents") == []
    assert row.retry_reason == ("the browser is lost" if lost else "the browser's sidecar ended with it")
    assert (lost_until(lane) is not None) is lost
    assert lane.all("SELECT FROM lanes.browser_pages") == []


def test_a_lost_browser_gates_every_browser_lane_and_nobody_else(
    net: Smallnet, sidecar: Sidecar, make_page_lane: MakePageLane, make_lane: MakeLane
) -> None:
    """CASES H5."""
    panels, (panel, *_) = make_page_lane("panels", 3)
    strips, strip_keys = make_page_lane("strips", 6)
    plain = make_lane(site=comics("127.1.0.5", gap=10), slots=1)
    comic_keys = titles_of(net.host("127.1.0.5"), plain, 2)
    sidecar.script("http://panels.test/0", Fate.LOST)
    with sidecar.serving():
        assert panels.run_once() == 1
        until = lost_until(panels)
        assert LOST - MINUTE < until - panels.now() <= LOST
        before = facts(strips, "series"), facts(panels, "series")
        for left in (14 * MINUTE, 7 * MINUTE, MINUTE):
            panels.move_to(until - left)
            assert (panels.run_once(), strips.run_once()) == (0, 0)
        assert (facts(strips, "series"), facts(panels, "series")) == before
        assert plain.run_once() == 1
        open_at(plain)
        assert plain.run_once() == 1
    assert len(sidecar.sends) == 1
    assert [plain.outcomes(key) for key in comic_keys] == [["new"], ["new"]]
    assert why(strips, strip_keys[0]) == ("the browser is lost", until)
    reason, told_until = why(panels, panel)
    assert reason == "put back: the browser is lost"
    assert abs(told_until - (until + OTHERS_FIRST)) < 5 * SECOND
    assert (state(strips).gauges.held, state(strips).gauges.behind) == (6, None)
    assert state(plain).gauges.held == 0
    assert told(panels, None) == ["browser lost"]


def test_after_fifteen_minutes_the_first_request_is_the_probe_and_only_that(
    sidecar: Sidecar, make_page_lane: MakePageLane
) -> None:
    lanes = [make_page_lane(name, 1)[0] for name in ("panels", "strips", "novels")]
    sidecar.store.lose()
    lanes[0].move_to(lost_until(lanes[0]) - 5 * SECOND)
    assert [lane.run_once() for lane in lanes] == [0, 0, 0]
    lanes[0].move_to(lost_until(lanes[0]))
    with passing(*lanes):
        asked_for(lanes[0], 3)
        probe = sidecar.take()
        assert probe is not None
        assert sidecar.send(probe)
        assert sidecar.take() is None
        assert len(sidecar.sends) == 1
        sidecar.store.answer(probe.token, shown(probe))
        assert lost_until(lanes[0]) is None
        while sidecar.serve_one():
            pass
    assert len(sidecar.sends) == 3
    assert {record.outcome for record in lanes[0].polls()} == {"new"}


def test_a_probe_that_is_lost_puts_everybody_back_for_another_fifteen_minutes(
    sidecar: Sidecar, make_page_lane: MakePageLane
) -> None:
    lanes = [make_page_lane(name, 1)[0] for name in ("panels", "strips", "novels")]
    sidecar.store.lose()
    first = lost_until(lanes[0])
    lanes[0].move_to(first)
    before = [facts(lane, "series") for lane in lanes]
    for lane in lanes:
        (url,) = (row["url"] for row in facts(lane, "series").values())
        sidecar.script(url, Fate.LOST_UNSENT)
    with passing(*lanes):
        asked_for(lanes[0], 3)
        assert sidecar.serve_one()
        assert not sidecar.serve_one()
    assert lost_until(lanes[0]) - first > LOST - MINUTE
    assert sidecar.sends == []
    for lane, was in zip(lanes, before, strict=True):
        ((row_id, row),) = facts(lane, "series").items()
        assert changed(was[row_id], row) <= PUT_BACK
    assert told(lanes[0], None) == ["browser lost"]


@pytest.mark.parametrize("fate", [Fate.SILENT, Fate.SILENT_UNSENT])
def test_a_tab_that_stays_silent_past_its_time_is_a_loss_that_its_lane_writes_once(
    sidecar: Sidecar, make_page_lane: MakePageLane, fate: Fate
) -> None:
    """CASES H5."""
    (panels, (panel,)), (strips, _) = make_page_lane("panels", 1), make_page_lane("strips", 1)
    before = facts(panels, "series"), facts(strips, "series")
    sidecar.script("http://panels.test/0", fate)
    with passing(panels):
        asked_for(panels, 1)
        assert sidecar.serve_one()
        seen_in_tab(panels)
        with passing(strips):  # queues behind it
            asked_for(panels, 2)
            sidecar.pass_by(PATIENCE)
            assert lost_until(panels) is None
            sidecar.pass_by(LATE + SECOND)
            panels.wait_for("SELECT FROM lanes.browser WHERE browser_lost_until IS NOT NULL")
            until = lost_until(panels)
    assert lost_until(panels) == until
    assert told(panels, None) == ["browser lost"]
    for lane, was, allowed in (
        (panels, before[0], PUT_BACK | COUNTED | (STAMPED if fate is Fate.SILENT else set())),
        (strips, before[1], PUT_BACK),
    ):
        ((row_id, row),) = facts(lane, "series").items()
        assert changed(was[row_id], row) <= allowed
    assert (panels.series(panel).latest_checked_at.year == 1) is (fate is Fate.SILENT_UNSENT)
    assert panels.all("SELECT FROM lanes.browser_pages") == []


def test_six_pages_before_one_slow_tab_are_a_queue_and_no_loss(sidecar: Sidecar, make_page_lane: MakePageLane) -> None:
    """CASES H10: 30 s each, 180 s in all: longer than one page's time, and than a lease."""
    names = ("panels", "strips", "novels", "essays", "plays", "songs")
    lanes = [make_page_lane(name, 1)[0] for name in names]
    one = lanes[0]
    with passing(*lanes):
        asked_for(one, 6)
        waiting = [row.site for row in one.all("SELECT site FROM lanes.browser_pages ORDER BY asked_at")]
        for left in range(5, -1, -1):
            asked = sidecar.take()
            assert asked is not None
            assert asked.site == waiting[5 - left]
            assert sidecar.send(asked)
            sidecar.pass_by(30 * SECOND)
            one.wait_for(
                "SELECT FROM lanes.series s JOIN lanes.hosts h ON h.id = s.host_id JOIN lanes.browser_pages p ON p.token = s.lease_token "
                "WHERE p.taken_at IS NULL AND least(s.lease_until, h.busy_until) > lanes.now() + interval '2 minutes' HAVING count(*) = %s",
                left,
            )
            assert one.all("SELECT FROM lanes.series WHERE lease_until < lanes.now()") == [], "no lease lapses"
            sidecar.store.answer(asked.token, shown(asked))
    assert [record.outcome for record in one.polls()] == ["new"] * 6
    assert {(row.abandoned, row.failures) for row in one.all("SELECT * FROM lanes.series")} == {(0, 0)}
    assert [page.site for page in sidecar.sends] == waiting
    assert lost_until(one) is None
    assert told(one, None) == []


def test_a_lease_outlives_the_time_of_a_page_that_is_taken_just_before_its_renewal(
    sidecar: Sidecar, make_page_lane: MakePageLane
) -> None:
    """A page's time stands well inside its lease, however long it queued (DESIGN 4)."""
    lane, (key,) = make_page_lane("panels", 1)
    with passing(lane):
        asked_for(lane, 1)
        sidecar.pass_by(28 * SECOND)
        asked = sidecar.take()
        assert asked is not None
        assert sidecar.send(asked)
        seen_in_tab(lane)
        sidecar.store.answer(asked.token, shown(asked))
    assert lane.outcomes(key) == ["new"]


def test_a_browser_that_is_down_holds_browser_lanes_and_nobody_else(
    net: Smallnet, sidecar: Sidecar, make_page_lane: MakePageLane, make_lane: MakeLane, clock: Clock
) -> None:
    panels, (panel, *_) = make_page_lane("panels", 6)
    plain = make_lane(site=comics("127.1.0.5", gap=10), slots=1)
    (comic,) = titles_of(net.host("127.1.0.5"), plain, 1)
    before = facts(panels, "series")
    clock.advance(31 * SECOND)
    assert (panels.run_once(), plain.run_once()) == (0, 1)
    assert facts(panels, "series") == before
    assert (state(panels).gauges.held, state(panels).gauges.behind) == (6, None)
    assert why(panels, panel) == ("the browser is down: its sidecar does not run", None)
    assert plain.outcomes(comic) == ["new"]
    sidecar.beat()
    with sidecar.serving():
        assert panels.run_once() == 1
    assert lost_until(panels) is None


def test_a_sidecar_that_dies_with_pages_in_its_queue_is_down_and_they_are_put_back(
    sidecar: Sidecar, make_page_lane: MakePageLane, clock: Clock
) -> None:
    lane, (key,) = make_page_lane("panels", 1)
    before = facts(lane, "series")
    with passing(lane):
        asked_for(lane, 1)
        clock.advance(31 * SECOND)
    ((row_id, row),) = facts(lane, "series").items()
    assert changed(before[row_id], row) <= PUT_BACK
    assert row["retry_reason"] == "the browser is down: its sidecar does not run"
    assert lane.outcomes(key) == ["put back"]
    assert lost_until(lane) is None
    sidecar.beat()
    open_at(lane)
    with sidecar.serving():
        assert lane.run_once() == 1
    assert lane.outcomes(key) == ["put back", "new"]


def test_what_was_put_back_by_a_loss_is_polled_when_the_browser_is_back_rest_notwithstanding(
    sidecar: Sidecar, make_page_lane: MakePageLane
) -> None:
    lane, (key,) = make_page_lane("panels", 1)
    sidecar.script("http://panels.test/0", Fate.LOST, shown)
    with sidecar.serving():
        assert lane.run_once() == 1
        lane.move_to(lost_until(lane) + OTHERS_FIRST + 5 * SECOND)
        assert lane.run_once() == 1
    assert lane.outcomes(key) == ["put back", "new"]
    assert sidecar.spacings("panels")[0] >= LOST.total_seconds() - 1


def test_chrome_is_woken_by_five_by_age_or_by_a_check_now(sidecar: Sidecar, make_page_lane: MakePageLane) -> None:
    lane, (key,) = make_page_lane("panels", 1)
    sidecar.beat(awake=False)
    with sidecar.serving():
        assert lane.run_once() == 0
        assert why(lane, key)[0] == "Chrome sleeps: fewer than 5 are due, none for 15 minutes"
        lane.check_now(key)
        assert lane.run_once() == 1
        lane.move_to(lane.now() + 11 * SECOND)
        sidecar.beat(awake=False)
        pages_of(lane, 4, first=1)
        assert lane.run_once() == 0
        pages_of(lane, 1, first=5)
        assert lane.run_once() == 1, "five are due"
        sidecar.beat(awake=False)
        lane.move_to(lane.now() + 14 * MINUTE)
        assert lane.run_once() == 0
        lane.move_to(lane.now() + MINUTE)
        assert lane.run_once() == 1, "the oldest has waited 15 minutes"
        for _ in range(3):
            open_at(lane)
            assert lane.run_once() == 1, "it is awake"
        sidecar.beat(awake=False)
        open_at(lane)
        assert lane.run_once() == 0
    assert len(sidecar.sends) == 6


def test_a_check_now_whose_robots_txt_must_be_asked_first_goes_on_with_its_page_a_gap_later(
    net: Smallnet, sidecar: Sidecar, make_lane: MakeLane
) -> None:
    """Chrome sleeps: what the Poll was put back for is the Gap, and nothing else may keep it then."""
    host = net.host("127.1.0.5")
    host.robots("User-agent: *\nDisallow: /private\n")
    lane = make_lane(site=page_site("panels", "127.1.0.5"), slots=1)
    key = lane.follow(host.url("/0"), robots=True, site=lane.site)
    sidecar.beat(awake=False)
    lane.check_now(key)
    with sidecar.serving():
        assert lane.run_once() == 1
        assert lane.outcomes(key)[-1] == "put back"
        open_at(lane)
        assert lane.run_once() == 1
    assert lane.outcomes(key)[-1] == "new"
