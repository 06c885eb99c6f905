"""A claimed row as the `Claim` of `lanes.core`, and where a chain goes on as jsonb.

Owns that translation.  Refuses to own: asking for the row (`polls`) and every decision.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from lanes.core.answer import Resume
from lanes.core.blame import Answered
from lanes.core.chapters import NO_HINTS, Hints
from lanes.core.claim import NO_MEMORY, Claim, Memory, Moving, Trigger, Unavailable, Validators
from lanes.core.pace import HostPace, RefusedPace


def claim_of(row: Any) -> Claim:
    """The claim in a row of lanes.claim()."""
    validators = None
    if row.validators_url is not None:
        validators = Validators(row.etag, row.last_modified, row.validators_url)
    return Claim(
        series_id=row.series_id,
        key=row.key,
        token=row.token,
        trigger=Trigger(row.trigger),
        claimed_at=row.claimed_at,
        url=row.url,
        host_id=row.host_id,
        host=row.host,
        host_pace=row.host_pace,
        gap=row.lane_gap,
        pace=HostPace(row.pace, row.latency, row.backoffs, _refused_pace(row.memory)),
        address=row.address,
        dial=row.dial,
        resume=None if row.resume is None else _resume_of(row.resume),
        validators=validators,
        body_hash=row.body_hash,
        unconditional_at=row.unconditional_at,
        rest=row.rest,
        failures=row.failures,
        refusals=row.refusals,
        failing_since=row.failing_since,
        good_at=row.good_at,
        news_from=row.news_from,
        guid_alone=row.guid_alone,
        hints=_hints_of(row),
        discovering=row.discovering,
        abandoned=row.abandoned,
        lapsed=row.lapsed,
        unavailable=None if row.unavailable_url is None else Unavailable(row.unavailable_url, row.unavailable_at),
        answers=tuple(Answered(each, kind, _instant(since)) for each, kind, since in row.answers),
        failing=row.failing,
        us=row.us,
        memory=NO_MEMORY if row.memory is None else _memory_of(row.memory),
    )


def _memory_of(memory: dict[str, Any]) -> Memory:
    moving_since = _instant(memory.get("moving_since"))
    return Memory(
        retired="retired" in memory,
        gone_at=_instant(memory.get("gone_at")),
        moving=None if moving_since is None else Moving(memory["moving_to"], moving_since, memory["moving_polls"]),
        stays_off=memory.get("stays_off"),
        distrusted="distrusted" in memory,
        refused_since=_instant(memory.get("refused_since")),
        dead="dead" in memory,
        refusing="refusing" in memory,
    )


def _refused_pace(memory: dict[str, Any] | None) -> RefusedPace | None:
    if memory is None or "refused_pace" not in memory:
        return None
    pace, at = timedelta(seconds=memory["refused_pace"]), datetime.fromisoformat(memory["refused_pace_at"])
    return RefusedPace(pace, at, memory["refused_paces"])


def _instant(written: str | None) -> datetime | None:
    return None if written is None else datetime.fromisoformat(written)


def _hints_of(row: Any) -> Hints:
    if row.hint_every is None and not row.hint_skip_hours and not row.hint_skip_days:
        return NO_HINTS
    hours = frozenset(hour for hour in range(24) if row.hint_skip_hours >> hour & 1)
    days = frozenset(day for day in range(7) if row.hint_skip_days >> day & 1)
    return Hints(row.hint_every, hours, days)


def resume_row(resume: Resume) -> dict[str, Any]:
    """Where a chain goes on, fit for jsonb."""
    return {
        "url": resume.url,
        "hops": resume.hops,
        "permanent": resume.permanent,
        "cookies": [list(cookie) for cookie in resume.cookies],
        "seen": list(resume.seen),
        "robots": resume.robots,
    }


def _resume_of(row: dict[str, Any]) -> Resume:
    cookies = tuple((str(a), str(b), str(c)) for a, b, c in row["cookies"])
    return Resume(row["url"], row["hops"], row["permanent"], cookies, tuple(row["seen"]), row.get("robots", False))


def text(address: Any) -> str | None:
    """An inet as its text."""
    return None if address is None else str(address)
