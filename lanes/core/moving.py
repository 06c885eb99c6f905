"""When a Series follows its permanent redirect for good (DESIGN 4.3; CASES E1 to E4).

Owns the evidence for a move.  Refuses to own: following one redirect (`lanes.fetch`) and writing the new URL.  Must never break: no URL
is adopted that did not serve Chapters the Series had before.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from lanes.core.claim import Moving

POLLS = 3  # Polls in a row that must agree: one mistake of an administrator is undone by then ...
LASTING = timedelta(hours=24)  # ... and over this time, which a maintenance page rarely outlives


def after(before: Moving | None, to: str, now: datetime, *, shares: bool) -> Moving:
    """The evidence once a good Poll was led to `to`; `shares`: what came from there was known already.

    A target whose first document shares nothing stays at 0 Polls for as long as it is the target: what is known later came from itself.
    """
    if before is None or before.to != to:
        return Moving(to, now, 1 if shares else 0)
    return before if before.polls == 0 else Moving(to, before.since, before.polls + 1)


def is_proved(moving: Moving, now: datetime) -> bool:
    """Whether the Series moves."""
    return moving.polls >= POLLS and now - moving.since >= LASTING
