"""A Site of one host for store tests: its Lane, its Gap in force, its Series.

Owns these rows' defaults.  Refuses to own: what is right about them.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from lanes.store.polls import PollStore
from lanes.store.pool import Database
from tests.answers import a_response
from tests.rows import HOUR, Rows

SITE = "comics"
GAP = timedelta(seconds=10)
REST = HOUR
NOT_MODIFIED = replace(a_response(304), conditional=True)


def a_lane(database: Database, rows: Rows, machine: str) -> PollStore:
    store = a_lane_of(database, machine)
    store.enrol()
    rows.enrol(SITE, gap=GAP)
    return store


def a_lane_of(database: Database, machine: str = "there") -> PollStore:
    return PollStore(database, SITE, machine, many_hosts=False)


def a_series(rows: Rows, host: int, **facts: Any) -> int:
    return rows.series(host, SITE, **({"rest": None} | facts))
