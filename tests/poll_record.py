"""The poll record, the owner's words and robots.txt as rows, written as the processes of any machine would have left them.

Owns writing them for tests of the audit.  Refuses to own: what is an offence.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from lanes.core.audit import Kind, Report
from lanes.store.audit import audit
from lanes.store.pool import Database

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True)
class PollRecord:
    """Writes rows as the Lanes of any machine would."""

    database: Database

    def write(self, sent: float | None, took: float = 0.1, **given: Any) -> None:
        """A Poll of one request, claimed when it was sent; `sent` None: it wrote none."""
        row = {
            "claimed_at": at(sent or 0), "token": uuid4(), "hop": 0, "series_id": 7, "site": "feeds", "host": "one.example",
            "address": "127.1.0.1", "machine": "attic", "trigger": "its time", "sent_at": None if sent is None else at(sent),
            "ended_at": at((sent or 0) + took), "outcome": "unchanged", "host_pace": timedelta(seconds=1),
            "address_pace": timedelta(seconds=0.5), "lane_gap": None, "host_wait_until": None, "lane_wait_until": None,
            "series_wait_until": None,
        } | given  # fmt: skip
        names, places = ", ".join(row), ", ".join(f"%({name})s" for name in row)
        with self.database.connection() as connection:
            connection.execute(f"INSERT INTO lanes.polls ({names}) VALUES ({places})".encode(), row)

    def said(self, at_least: float | None, since: float, until: float | None = None, **about: Any) -> None:
        """The owner's word, as its row is left behind."""
        word = {
            "host_id": None, "site": None, "at_least": None if at_least is None else timedelta(seconds=at_least),
            "said_at": at(since), "ended_at": None if until is None else at(until),
        } | about  # fmt: skip
        with self.database.connection() as connection:
            connection.execute(
                b"""INSERT INTO lanes.words (host_id, site, at_least, said_at, ended_at)
                    VALUES (%(host_id)s, %(site)s, %(at_least)s, %(said_at)s, %(ended_at)s)""",
                word,
            )

    def read_robots(self, host_id: int, origin: str, crawl_delay: float | None, since: float) -> None:
        """A robots.txt as its row is left behind."""
        delay = None if crawl_delay is None else timedelta(seconds=crawl_delay)
        with self.database.connection() as connection:
            connection.execute(
                b"""INSERT INTO lanes.robots (origin, host_id, asked_at, again_at, status, crawl_delay, crawl_delay_since)
                    VALUES (%s, %s, %s, %s, 200, %s, %s)""",
                (origin, host_id, at(since), at(since + 86400), delay, None if delay is None else at(since)),
            )

    def audit(self, since: float | None = None, until: float | None = None) -> Report:
        return audit(self.database, None if since is None else at(since), None if until is None else at(until))


def counted(report: Report) -> dict[Kind, int]:
    """The kinds of offence that were found, and how often."""
    return {kind: count for kind, count in report.offences.items() if count}
