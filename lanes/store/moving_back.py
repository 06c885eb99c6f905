"""Consequences of a Poll in hand while the clock went back: what they bring is moved back with all that is stored.

Owns which of them bring an instant.  Refuses to own: by how much (`lanes.gone_back`), and writing them (`consequences`).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from lanes.core.consequences import Consequence, Gather, Heed, Learn


def moved_back(consequence: Consequence, back: timedelta) -> Consequence:
    """The same, every instant earlier by `back`."""
    match consequence:
        case Heed(read=read, learnt=learnt):
            read = replace(read, sent_at=read.sent_at - back)
            return Heed(read, replace(learnt, at=learnt.at - back))
        case Learn(refused=refused):
            return Learn(replace(refused, at=refused.at - back))
        case Gather(moving=moving) if moving is not None:
            return Gather(replace(moving, since=moving.since - back))
        case _:
            return consequence
