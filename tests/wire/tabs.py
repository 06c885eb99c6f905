"""Passes of Lanes that run in threads, while the test is what a tab does for them.

Owns their threads and the waiting for what they ask.  Refuses to own: the tab (`tests.fix_browser`).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from lanes.core.pages import LEASE
from tests.fix_lane import LaneAtWork


@contextmanager
def passing(*lanes: LaneAtWork) -> Iterator[list[Any]]:
    """A Pass of each of these Lanes, at once, in threads; each has one Poll at most, and ends."""
    with ThreadPoolExecutor(len(lanes)) as pool:
        passes = [pool.submit(lane.run_once) for lane in lanes]
        yield passes
        for each in passes:
            each.result(60)


def asked_for(lane: LaneAtWork, count: int) -> None:
    """Waits until so many pages are asked for."""
    lane.wait_for("SELECT FROM lanes.browser_pages HAVING count(*) = %s", count)


def seen_in_tab(lane: LaneAtWork) -> None:
    """Waits until a Lane knows that a tab has its page: then it renews its lease."""
    lane.wait_for(
        "SELECT FROM lanes.browser_pages p JOIN lanes.series s ON s.lease_token = p.token JOIN lanes.hosts h ON h.id = s.host_id "
        "WHERE least(s.lease_until, h.busy_until) >= p.taken_at + %s",
        LEASE,
    )


def looked_at(lane: LaneAtWork) -> None:
    """Waits until a Lane of machine-1 has looked at its page once more, and is done with that."""
    since = lane.one("SELECT clock_timestamp() AS it").it
    lane.wait_for(
        "SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'machine-1' "
        "AND query LIKE '%%browser_pages%%' AND query_start > %s AND state = 'idle'",
        since,
    )
