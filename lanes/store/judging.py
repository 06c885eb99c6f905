"""A host judged by what its Series answered last, from its locked row.

Owns keeping those answers and the end of a Site's incident.  Refuses to own: the rule (`lanes.core.blame`), and the begin of an incident
(`lanes.store.consequences`).  Must never break: a Series that is not polled there any more says nothing about its host.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from lanes.core import blame, notices
from lanes.core.blame import Answered, SiteHeals
from lanes.core.notices import Kind
from lanes.store.pool import Connection, named_sql

_SQL = named_sql("judging")


@dataclass(frozen=True, slots=True)
class Standing:
    """What still counts of a host's last answers, oldest first, whether any other was dropped, and in which kind its Site fails."""

    answers: tuple[Answered, ...]
    dropped: bool
    failing: str | None


def standing(connection: Connection, host_id: int) -> Standing:
    """The answers of Series that are polled at this host, whose row is locked."""
    row = _SQL.standing(connection, host_id=host_id)
    answers = tuple(Answered(series_id, kind, _instant(since)) for series_id, kind, since in row.standing)
    return Standing(answers, row.standing != row.answers, row.failing)


def hear(connection: Connection, host_id: int, series_id: int, kind: str | None, claimed_at: datetime) -> None:
    """One more answer (`kind` None: a good one), added to what stands by now and not to what a claim saw."""
    now = standing(connection, host_id)
    _keep(connection, host_id, blame.answers_after(now.answers, series_id, kind, claimed_at), now.failing)


def by_the_rest(connection: Connection, host_id: int) -> bool:
    """Drops the answers of Series that are not polled there any more: where the rest answers, the Site's incident is over (CASES A16).
    Whether anything changed."""
    now = standing(connection, host_id)
    if now.dropped:
        _keep(connection, host_id, now.answers, now.failing)
        return True
    return _heal(connection, host_id, now.answers, now.failing)


def _keep(connection: Connection, host_id: int, answers: tuple[Answered, ...], failing: str | None) -> None:
    _SQL.remember(connection, host_id=host_id, answers=Jsonb([_row(each) for each in answers]))
    _heal(connection, host_id, answers, failing)


def _heal(connection: Connection, host_id: int, answers: tuple[Answered, ...], failing: str | None) -> bool:
    """Of no answer at all nothing follows: an incident where nobody is left to ask is deserted, which upkeep sees to."""
    if not answers or failing is None or not isinstance(blame.site(answers, failing), SiteHeals):
        return False
    over = _SQL.site_heals(connection, host_id=host_id)
    if over is not None:
        body = {"whose": "site", "site": over.site, "host": over.host, "kind": over.kind, "spared": over.spared}
        event = notices.incident_over(over.id)
        _SQL.tell_owner(connection, kind=Kind.INCIDENT_OVER.value, event=event, body=Jsonb(body))
    return True


def _row(answered: Answered) -> list[Any]:
    return [answered.series_id, answered.kind, answered.since and answered.since.isoformat()]


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
