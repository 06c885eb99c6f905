"""A settlement, and the trail of its Poll, as the values that lanes.settle and lanes.record take.

Owns that translation.  Refuses to own: every decision, and calling them (`polls`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import repeat
from typing import Any

from psycopg.types.json import Jsonb

from lanes.core.answer import Sent
from lanes.core.claim import Claim
from lanes.core.outcome import Label
from lanes.core.settlement import Settlement


@dataclass(frozen=True, slots=True)
class Trail:
    """Where a Poll went: the host it reached last, all that it entered (ids, in order), the instant of the last request to each (None:
    none was written), the requests, the host interval in force for each of these, and whether the attempt proved our own line (None:
    none was made).  The first `robots` requests were for robots.txt, whose answer asked its host to wait until `robots_wait_until`.
    `gaps` is the Gap of each request's Site, None where it has none.  `silence`: why robots.txt said nothing to go by."""

    host_id: int
    hosts: tuple[int, ...]
    sent: tuple[datetime | None, ...]
    requests: tuple[Sent, ...]
    paces: tuple[timedelta, ...]
    proof: bool | None = None
    robots: int = 0
    robots_wait_until: datetime | None = None
    gaps: tuple[timedelta | None, ...] = ()
    silence: str | None = None


def hops_of(claim: Claim, trail: Trail) -> list[dict[str, Any]]:
    """A row for each request; where the Poll wrote none for itself, one that says where it would have gone."""
    rows: list[dict[str, Any]] = [
        {
            "host": sent.host,
            "address": sent.address,
            "sent_at": sent.sent_at.isoformat(),
            "status": sent.status,
            "wire_bytes": sent.wire_bytes,
            "pace": f"{pace.total_seconds()} s",
            "gap": None if gap is None else f"{gap.total_seconds()} s",
        }
        for sent, pace, gap in zip(trail.requests, trail.paces, trail.gaps or repeat(None), strict=False)
    ]
    for row in rows[: trail.robots]:
        row["outcome"] = Label.ROBOTS.value
    if trail.robots:
        rows[trail.robots - 1]["detail"] = trail.silence
    if trail.robots_wait_until is not None:
        rows[trail.robots - 1]["host_wait_until"] = trail.robots_wait_until.isoformat()
    if len(rows) == trail.robots:
        pace = f"{claim.host_pace.total_seconds()} s"
        rows.append({"host": claim.host, "address": claim.address, "wire_bytes": 0, "pace": pace})
    return rows


def row_of(settled: Settlement, trail: Trail, new: int) -> dict[str, Any]:
    """What lanes.settle and the last row of the poll record take of a settlement that stored `new` Chapters."""
    document, validators, hints = settled.document, settled.validators, settled.hints
    return {
        "host_id": trail.host_id,
        "next_check_at": settled.next_check_at,
        "rest": settled.rest,
        "failures": settled.failures,
        "failure": _failure(settled),
        "failure_kind": settled.kind,
        "refusals": settled.refusals,
        "good": settled.good,
        "gone": settled.gone,
        "validators": "forget" if settled.forget else "replace" if validators else "keep",
        "etag": validators and validators.etag,
        "last_modified": validators and validators.last_modified,
        "validators_url": validators and validators.url,
        "body_hash": settled.body_hash,
        "unconditional": settled.unconditional,
        "hint_every": hints.every,
        "hint_skip_hours": sum(1 << hour for hour in hints.skip_hours),
        "hint_skip_days": sum(1 << day for day in hints.skip_days),
        "found": document is not None,
        "title": document and document.title,
        "home": document and document.home,
        "lifecycle": document and document.lifecycle,
        "guid_alone": settled.guid_alone,
        "url": settled.url,
        "series_wait_until": settled.series_wait and settled.series_wait.until,
        "series_wait_reason": settled.series_wait and settled.series_wait.reason,
        "pace_before": settled.host_before.pace,
        "pace": settled.host.pace,
        "backoffs": settled.host.backoffs,
        "latency": settled.host.latency,
        "unavailable_url": settled.unavailable_url,
        "host_wait_until": settled.host_wait and settled.host_wait.until,
        "host_wait_reason": settled.host_wait and settled.host_wait.reason,
        "outcome": settled.label.value,
        "new_chapters": new,
        "detail": settled.detail,
        "changed": Jsonb(settled.changed),
    }


def _failure(settled: Settlement) -> str | None:
    if settled.kind is None:
        return None
    return f"{settled.detail}: {settled.excerpt}" if settled.excerpt else settled.detail
