"""How the browser is told, and what starts a Lane."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lanes.cli.silent import how_to_start
from lanes.cli.status import browser_told
from lanes.core.why import NO_SIDECAR, STOPPED
from lanes.store.browsing import BrowserState

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
AWAKE = BrowserState(True, "156.0.8078.114", NOW, None, None, 2)
ASLEEP = replace(AWAKE, awake=False, pages=0)
NEVER = BrowserState(False, None, None, NO_SIDECAR, None, 0)
MISSING = "the browser is down: Chrome is not installed: `apt install chromium`"


@pytest.mark.parametrize(
    ("browser", "eligible", "told"),
    [
        (AWAKE, 3, ["The browser is awake (Chrome 156.0.8078.114): 2 pages asked for or in a tab."]),
        (ASLEEP, 3, ["The browser sleeps (Chrome 156.0.8078.114): the first page wakes it."]),
        (replace(ASLEEP, version=None), 0, ["The browser sleeps: the first page wakes it."]),
        (NEVER, 0, []),
        (
            NEVER,
            1,
            ["The browser is down: its sidecar does not run; `make run` starts it. 1 Series of browser Sites waits for it."],
        ),
        (replace(NEVER, heartbeat_at=NOW), 0, ["The browser is down: its sidecar does not run; `make run` starts it."]),
        (
            replace(NEVER, trouble=f"the browser is down: {STOPPED}"),
            0,
            ["The browser is down: its sidecar was stopped; `.venv/bin/supervisorctl start browser` starts it."],
        ),
        (
            replace(ASLEEP, not_held="it runs elsewhere, where nothing keeps WebSockets from private addresses"),
            0,
            [
                "The browser sleeps (Chrome 156.0.8078.114): the first page wakes it.",
                "It runs elsewhere, where nothing keeps WebSockets from private addresses.",
            ],
        ),
        (
            replace(NEVER, trouble=MISSING),
            2,
            [
                "The browser is down: Chrome is not installed: `apt install chromium`; it is found within a minute then. "
                "2 Series of browser Sites wait for it."
            ],
        ),
    ],
)  # fmt: skip
def test_the_browser_is_told_where_anybody_needs_it_with_what_to_do(
    browser: BrowserState, eligible: int, told: list[str]
) -> None:
    assert list(browser_told(browser, eligible, NOW)) == told


def test_a_lost_browser_is_told_until_when() -> None:
    lost = replace(AWAKE, awake=False, trouble="the browser is lost", until=NOW + timedelta(minutes=12))
    (told,) = browser_told(lost, 4, NOW)
    assert told.startswith("The browser is lost, until 2026-01-31 ")
    assert told.endswith(
        " (in 12 min); nothing is charged for that, and it is tried again by itself. 4 Series of browser Sites wait for it."
    )


def test_of_a_browser_that_cannot_serve_it_is_told_that_it_is_tried_again_by_itself() -> None:
    down = replace(NEVER, trouble="the browser is down: no Chrome answers", until=NOW + timedelta(minutes=1))
    (told,) = browser_told(down, 0, NOW)
    assert told.endswith("); it is tried again by itself.")


def test_what_starts_a_lane_is_said_of_each_kind_of_site() -> None:
    assert how_to_start("feeds", any_runs=False) == "`make run` starts it"
    assert how_to_start("feeds", any_runs=True) == "`.venv/bin/supervisorctl start lane-feeds` starts it"
    assert how_to_start("ao3", any_runs=True) == "`.venv/bin/supervisorctl start lane-ao3` starts it"
    assert how_to_start("my-own", any_runs=True) == "`lanes sites --supervisord my-own` prints its section"
