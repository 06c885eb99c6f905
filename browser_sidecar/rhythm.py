"""When the sidecar beats, and when Chrome wakes, sleeps and is started afresh (DESIGN 7).

Owns the numbers, each with its reason.  Refuses to own: what is done about them (`sidecar`).  Must never break: none of them is a setting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lanes.core.pages import BEAT, LOST, PATIENCE


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Seconds, pages and bytes."""

    beat: float = BEAT.total_seconds()
    idle: float = 300.0
    """After which Chrome sleeps: what it would cost to wake it for the next page is 2 s."""
    patience: float = PATIENCE.total_seconds()
    retry: float = LOST.total_seconds()
    """After which a Chrome that did not start is tried again."""
    pages: int = 200
    """After which Chrome is started afresh: it grows by a megabyte a page."""
    weigh: float = 60.0
    """Between two weighings, which take a tenth of a second."""
    memory: int = 900 * 2**20
    """Bytes past which it is started afresh: half as much again as it takes after so many pages; for each further tab a quarter more."""


RHYTHM: Final = Rhythm()
