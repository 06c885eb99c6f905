"""Moving lanes.now().

Owns the one statement that does it.  Must never break: every move is in the log of events with the instants around it.
"""

from __future__ import annotations

import time
from typing import Any

import psycopg

from .events import Events


def move(connection: psycopg.Connection[Any], events: Events, seconds: float) -> None:
    """Forward, or back where negative; and the Lanes are woken, for they sleep by the real clock."""
    asked = time.time()
    row = connection.execute(
        "UPDATE lanes.clock SET test_offset = test_offset + make_interval(secs => %s) "
        "RETURNING extract(epoch FROM test_offset)::float8",
        [seconds],
    ).fetchone()
    assert row is not None
    events.moved(asked, time.time(), row[0])
    connection.execute("NOTIFY lanes_feeds")
