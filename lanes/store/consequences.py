"""What else follows from a Poll, written: one arm for each consequence, in the transaction that settles it.

Owns the writing of `lanes.core.consequences`.  Refuses to own: which of them follow.  Must never break: the rows it changes are locked
by the settle before, and what a refusal window does is decided by `lanes.core.refusal` from the locked row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, assert_never

from psycopg.types.json import Jsonb

from lanes.core import blame, notices, pace, refusal
from lanes.core.blame import SiteFails, SiteHeals
from lanes.core.claim import Claim
from lanes.core.consequences import (
    Adopt,
    Bury,
    Consequence,
    Distrust,
    Ease,
    Forbid,
    Gather,
    Heed,
    Learn,
    OfHost,
    OfSeries,
    Remember,
    Retire,
    Revive,
    Spare,
)
from lanes.core.notices import Kind
from lanes.core.pace import RefusedPace
from lanes.core.refusal import Window
from lanes.store import judging
from lanes.store.pool import Connection, named_sql

_SQL = named_sql("consequences")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a Poll was claimed and answered: its Site and whether that has many hosts, the host it was claimed at, the one that
    answered."""

    site: str
    many_hosts: bool
    host_id: int
    answered_by: int


def write(connection: Connection, claim: Claim, place: Place, followed: Sequence[Consequence], now: datetime) -> None:
    """Writes them all.  The Poll is settled and recorded already, and its lease had held."""
    for consequence in followed:
        if isinstance(consequence, OfSeries):
            _of_series(connection, claim, place, consequence, now)
        else:
            _of_host(connection, claim, place, consequence, now)
    if any(isinstance(each, Adopt | Revive | SiteFails) for each in followed):
        for host_id in sorted({place.host_id, place.answered_by}):
            _SQL.renew_hint(connection, host_id=host_id)


def keep_news(connection: Connection, claim: Claim, chapter_ids: list[int]) -> None:
    """One Notice to each Reader for the Chapters that a Poll found."""
    event = notices.new_chapters(claim.series_id, claim.claimed_at)
    _SQL.keep_news(
        connection,
        series_id=claim.series_id,
        kind=Kind.NEW_CHAPTERS.value,
        event=event,
        chapter_ids=chapter_ids,
    )


def _of_series(connection: Connection, claim: Claim, place: Place, consequence: OfSeries, now: datetime) -> None:
    series = claim.series_id
    match consequence:
        case Retire(reason=reason):
            _SQL.retire(connection, series_id=series, reason=reason)
            judging.by_the_rest(connection, place.host_id)
            _tell_readers(connection, claim, Kind.STOPPED, notices.stopped(series, now), {"reason": reason})
        case Revive(led_to=led_to):
            other_id = _SQL.merged_into(connection, series_id=series)
            if _SQL.revive(connection, series_id=series, led_to=list(led_to)) is not None:
                _SQL.drop_copies(connection, series_id=series, other_id=other_id)
                _tell_readers(connection, claim, Kind.BACK_AGAIN, notices.back_again(series, now), {})
        case Gather(moving=moving):
            to, since, polls = (None, None, 0) if moving is None else (moving.to, moving.since, moving.polls)
            _SQL.gather(connection, series_id=series, moving_to=to, moving_since=since, moving_polls=polls)
        case Adopt(url=url):
            _adopt(connection, claim, place, url, now)
        case Distrust(reason=reason):
            _SQL.distrust(connection, series_id=series, reason=reason)
        case Forbid(detail=detail):
            event = notices.disallowed(series, claim.good_at)
            _tell_readers(connection, claim, Kind.DISALLOWED, event, {"reason": detail})
            _tell_owner(connection, Kind.DISALLOWED, event, {"reason": detail, "key": claim.key}, claim.series_id)
        case _:
            assert_never(consequence)


def _of_host(connection: Connection, claim: Claim, place: Place, consequence: OfHost, now: datetime) -> None:
    match consequence:
        case Remember(answers=answers):
            judging.hear(connection, place.host_id, claim.series_id, answers[-1].kind, claim.claimed_at)
        case SiteFails():
            _site_fails(connection, place)
        case SiteHeals():
            judging.by_the_rest(connection, place.host_id)
        case Spare():
            _SQL.spare(connection, series_id=claim.series_id, host_id=place.host_id)
        case Heed():
            _heed(connection, claim, place, consequence, now)
        case Learn(refused=refused):
            _learn(connection, place, refused)
        case Ease(host_id=host_id, before=before, after=after):
            _SQL.ease(connection, host_id=host_id, before=before.pace, pace=after.pace, backoffs=after.backoffs)
        case Bury(dead=dead):
            _SQL.bury(connection, host_id=place.answered_by, dead=dead)
        case _:
            assert_never(consequence)


def _learn(connection: Connection, place: Place, refused: RefusedPace) -> None:
    floor = pace.remembered(refused, refused.at)
    _SQL.learn(connection, host_id=place.answered_by, floor=floor, **asdict(refused))


def _tell_readers(connection: Connection, claim: Claim, kind: Kind, event: str, body: dict[str, object]) -> None:
    _SQL.tell_readers(connection, series_id=claim.series_id, kind=kind.value, event=event, body=Jsonb(body))


def _tell_owner(
    connection: Connection, kind: Kind, event: str, body: dict[str, object], series_id: int | None = None
) -> None:
    _SQL.tell_owner(connection, series_id=series_id, kind=kind.value, event=event, body=Jsonb(body))


def _adopt(connection: Connection, claim: Claim, place: Place, url: str, now: datetime) -> None:
    done = _SQL.adopt(connection, series_id=claim.series_id, url=url, host_id=place.answered_by)
    if done.key is None:
        return
    judging.by_the_rest(connection, place.host_id)
    body: dict[str, object] = {"to": done.key, "merged": done.merged}
    _tell_readers(connection, claim, Kind.MOVED, notices.moved(claim.series_id, now), body)


def _site_fails(connection: Connection, place: Place) -> None:
    """Judged anew by what stands now: who left the host since the claim is neither counted nor spared."""
    now = judging.standing(connection, place.host_id)
    fails = blame.site(now.answers, now.failing)
    if not isinstance(fails, SiteFails):
        return
    ids, sinces = [series for series, _ in fails.spared], [since for _, since in fails.spared]
    evidence = Jsonb({"series": ids, "since": [since.isoformat() for since in sinces]})
    opened = _SQL.site_fails(
        connection, host_id=place.host_id, kind=fails.kind, series_ids=ids, sinces=sinces, evidence=evidence
    )
    _SQL.give_back(connection, series_ids=ids, sinces=sinces)
    body: dict[str, object] = {
        "whose": "site",
        "site": opened.site,
        "host": opened.host,
        "kind": fails.kind,
        "spared": len(ids),
    }
    _tell_owner(connection, Kind.INCIDENT, notices.incident(opened.id), body)


def _heed(connection: Connection, claim: Claim, place: Place, heed: Heed, now: datetime) -> None:
    """The window is that of the host on the many-host Site, else of the Lane."""
    host_id = place.answered_by if place.many_hosts else None
    where: dict[str, Any] = {"site": place.site} if host_id is None else {"host_id": host_id}
    row = (_SQL.lane_window if host_id is None else _SQL.host_window)(connection, **where, series_id=claim.series_id)
    before = Window(
        row.refusals, row.refused_since, row.refused_until, row.refused_url, row.refused_at, row.good_sent_at
    )
    after = refusal.after(before, heed.read, now, only_one=row.only_one)
    if after == before:
        return
    (_SQL.set_lane_window if host_id is None else _SQL.set_host_window)(connection, **where, **asdict(after))
    incident: dict[str, Any] = {"site": place.site, "host_id": host_id}
    if after.until is not None and after.until != before.until:
        lane_until, host_until = (after.until, None) if host_id is None else (None, after.until)
        _SQL.note_window(
            connection, claimed_at=claim.claimed_at, token=claim.token, host_until=host_until, lane_until=lane_until
        )
        _SQL.refusing(connection, **incident, since=after.since, series_id=claim.series_id, most=notices.MOST_NAMED)
        if before.until is None:
            _learn(connection, place, heed.learnt)
    elif before.until is not None and after.until is None:
        ended = _SQL.refused_no_more(connection, **incident)
        if ended is not None:
            _SQL.tell_owner_over(
                connection,
                kind=Kind.REFUSAL_OVER.value,
                event=notices.incident_over(ended.id),
                body=Jsonb({"site": place.site, "host": claim.host}),
                told_event=notices.incident(ended.id),
            )
