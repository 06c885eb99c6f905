"""How the demo tells its Lanes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lanes.cli.demo_story import lanes_told
from lanes.store.asking import Hosts, LaneState
from lanes.store.browsing import BrowserState
from lanes.store.polls import Gauges

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def lane(site: str, held: int) -> LaneState:
    return LaneState(site, Gauges(3, 0, held, None, None, None), Hosts(1, 0, 0, 0, 0), seen_at=NOW)


def test_a_lane_that_waits_for_the_browser_is_not_told_as_idle() -> None:
    lost = BrowserState(False, None, NOW, "the browser is lost", NOW + timedelta(minutes=12), 0)
    told = lanes_told((lane("comix", 2), lane("feeds", 0)), lost, NOW)
    assert told == "comix waits for the browser; feeds idle: nothing is due"
