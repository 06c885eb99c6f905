"""What the owner's `lanes try` says to the database: enter a host as a claim does, leave it as a settle does.

Owns these two verbs.  Refuses to own: what happens in between (`lanes.trying`), and any decision.  Must never break: nothing of a Series is
written but a wait that its Site named, and every request is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from psycopg.types.json import Jsonb

from lanes.core.claim import TRIED, Claim, Trigger, Unavailable
from lanes.core.outcome import Label
from lanes.core.pace import ADDRESS_PACE, HostPace
from lanes.core.settlement import Wait
from lanes.store.claimed import text
from lanes.store.pool import Database, named_sql
from lanes.store.settled import Trail, hops_of

_SQL = named_sql("trying")


@dataclass(frozen=True, slots=True)
class Shut:
    """A gate that is closed, in the words of lanes.gate: until when, and how long that is from now; None: until somebody opens it."""

    reason: str
    until: datetime | None
    wait: timedelta | None


@dataclass(frozen=True, slots=True)
class Said:
    """What a tried URL's answer comes to for the rows: how it ended, the host's pace from now on, and who waits."""

    label: Label
    detail: str | None
    pace: timedelta
    host_wait: Wait | None = None
    url_wait: Wait | None = None


class TryStore:
    """The rows of one Site, as its owner on one machine tries URLs there; `gap` is the registry's."""

    def __init__(self, database: Database, site: str, machine: str, *, gap: timedelta | None, browser: bool) -> None:
        self._database, self._site, self._machine, self._gap, self._browser = database, site, machine, gap, browser

    def enrol(self) -> None:
        """The Site has its row, whether its Lane ever ran or not."""
        with self._database.connection() as connection:
            _SQL.enrol(connection, site=self._site, browser=self._browser)

    def visit(self, url: str, host_id: int, host: str, lease: timedelta, dial: str | None) -> Claim | Shut:
        """Enters a host for a URL there, all that a claim spends spent; else the first gate that is closed."""
        with self._database.connection() as connection:
            row = _SQL.visit(
                connection,
                site=self._site,
                machine=self._machine,
                gap=self._gap,
                host_id=host_id,
                dial=dial,
                lease=lease,
                address_pace=ADDRESS_PACE,
            )
        if row.stop is not None:
            return Shut(row.stop, row.stop_until, row.wait)
        return Claim(
            series_id=TRIED,
            key="",
            token=row.token,
            trigger=Trigger.TRIED,
            claimed_at=row.claimed_at,
            url=url,
            host_id=host_id,
            host=host,
            host_pace=row.host_pace,
            pace=HostPace(row.pace, row.latency, row.backoffs),
            gap=row.lane_gap,
            address=text(row.address),
            dial=dial,
            unavailable=None if row.unavailable_url is None else Unavailable(row.unavailable_url, row.unavailable_at),
        )

    def leave(self, claim: Claim, trail: Trail, said: Said) -> None:
        """Leaves every host that it entered, and records its requests."""
        with self._database.connection() as connection:
            _SQL.leave(
                connection,
                site=self._site,
                token=claim.token,
                claimed_at=claim.claimed_at,
                machine=self._machine,
                trigger=claim.trigger.value,
                hosts=list(trail.hosts),
                host_sents=list(trail.sent),
                host_id=trail.host_id,
                pace=said.pace,
                wait_until=said.host_wait and said.host_wait.until,
                wait_reason=said.host_wait and said.host_wait.reason,
                url=claim.url,
                url_wait_until=said.url_wait and said.url_wait.until,
                url_wait_reason=said.url_wait and said.url_wait.reason,
                address_pace=ADDRESS_PACE,
                hops=Jsonb(hops_of(claim, trail)),
                outcome=said.label.value,
                detail=said.detail,
            )
