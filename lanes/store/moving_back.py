"""Consequences of a Poll in hand while the clock went back: what they bring is moved back with all that is stored.

Owns which instants they have.  Refuses to own: by how much (`lanes.gone_back`), and writing them (`consequences`).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from lanes.core.blame import SiteFails
from lanes.core.consequences import Consequence, Gather, Heed, Learn, Remember


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
        case Remember(answers=answers):
            return Remember(tuple(replace(each, since=_earlier(each.since, back)) for each in answers))
        case SiteFails(spared=spared):
            return replace(consequence, spared=tuple((series, since - back) for series, since in spared))
        case _:
            return consequence


def _earlier(instant: datetime | None, back: timedelta) -> datetime | None:
    return None if instant is None else instant - back
