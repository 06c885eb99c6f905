"""What the owner asks of the store: lists, the poll record, how Lanes and Series stand.

Owns the reads of the CLI and the pages, as values.  Refuses to own: writing, and how any of it is shown.  Must never break: what is
said here about a Series comes from the claim's own `due` and `gate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from lanes.core.why import BLOCKED, REFUSES, Note, Standing, Stop, Why, notes, why
from lanes.errors import UnknownReader, UnknownSeries
from lanes.store.polls import Gauges, PollStore
from lanes.store.pool import Database, named_sql

_SQL = named_sql("asking")


@dataclass(frozen=True, slots=True)
class Listed:
    """One Series as its owner sees it.  `url` is whole: whoever shows it elsewhere hides its secrets."""

    key: str
    site: str
    host: str
    title: str | None
    url: str
    home: str | None
    chapters: int
    newest_at: datetime | None
    checked_at: datetime | None
    good_at: datetime | None
    rest: timedelta | None
    failing_since: datetime | None
    standing: Standing

    @property
    def why(self) -> Why:
        """Why it is not polled just now."""
        return why(self.standing)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What is true beside that."""
        return notes(self.standing)


@dataclass(frozen=True, slots=True)
class ChapterFound:
    """A Chapter that is stored; `announced` False: first sight or back-fill."""

    key: str
    series: str | None
    title: str
    url: str | None
    published_at: datetime | None
    approximate: bool
    found_at: datetime
    announced: bool
    volume: str | None
    number: str | None
    label: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One row of the poll record; `key` is None where the Series was deleted since, `sent_at` where no request was written."""

    key: str | None
    site: str
    host: str
    address: str | None
    machine: str
    trigger: str
    claimed_at: datetime
    hop: int
    sent_at: datetime | None
    ended_at: datetime | None
    outcome: str
    status: int | None
    wire_bytes: int
    new_chapters: int
    detail: str | None
    host_wait_until: datetime | None
    series_wait_until: datetime | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a Poll ended; `kind` is that of a failure."""

    outcome: str
    status: int | None
    new_chapters: int
    detail: str | None
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class FollowedThere:
    """How many Series of a Site are followed, and the key of the one among those that are polled which was lately good."""

    site: str
    series: int
    lately_good: str | None


@dataclass(frozen=True, slots=True)
class Hosts:
    """How the hosts of a Site are: each counts once, as the first of these that it is."""

    known: int
    blocked: int
    dead: int
    refusing: int
    waiting: int


@dataclass(frozen=True, slots=True)
class LaneState:
    """A Lane by its rows; all zero and None where it has never run.  `seen_at`: when it last said that it lives, which it does once a
    minute; `switched_off`: the Lane that started last has the kill switch set; `gap`: the effective Gap; `owner_gap`: the owner's word."""

    site: str
    gauges: Gauges
    hosts: Hosts
    paused_at: datetime | None = None
    refused_until: datetime | None = None
    in_hand: int = 0
    polled_at: datetime | None = None
    seen_at: datetime | None = None
    switched_off: bool = False
    gap: timedelta | None = None
    owner_gap: timedelta | None = None


@dataclass(frozen=True, slots=True)
class LineDown:
    """A machine whose own line is down."""

    machine: str
    us_since: datetime


@dataclass(frozen=True, slots=True)
class Incident:
    """One trouble: of us (`machine`), of a Site or a refusal (of `host`, or of the whole Site).  `ended_at` None: it is open."""

    incident_id: int
    whose: str
    machine: str | None
    site: str | None
    host: str | None
    kind: str | None
    started_at: datetime
    ended_at: datetime | None
    spared: int
    evidence: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """One Notice: to a Reader, or (`reader` None) to the owner.  `delivered_at` None: it is owed."""

    notice_id: int
    reader: str | None
    kind: str
    key: str | None
    series: str | None
    body: dict[str, Any]
    made_at: datetime
    delivered_at: datetime | None


@dataclass(frozen=True, slots=True)
class Totals:
    """The whole installation.  `waiting`: Series that a wait of their own keeps from being polled; `refused`: whose own URL is."""

    now: datetime
    series: int
    bookmarked: int
    never_checked: int
    failing: int
    retired: int
    paused: int
    pending: int
    waiting: int
    refused: int
    distrusted: int
    chapters: int
    database_bytes: int
    postgres: str


class AskStore:
    """The reads.  `rests` is the registry's Rest of each Site (None: its Series keep their own), `polling` the kill switch here."""

    def __init__(self, database: Database, rests: Mapping[str, timedelta | None], *, polling: bool) -> None:
        self._database, self._rests, self._polling = database, rests, polling

    def now(self) -> datetime:
        """lanes.now()."""
        with self._database.connection() as connection:
            now: datetime = _SQL.now(connection)
            return now

    def series(self, *, site: str | None = None, words: str | None = None, failing: bool = False) -> tuple[Listed, ...]:
        """The Series, by key: all, or of a Site, with `words` in key, title or URL, or failing ones."""
        return self._standings(key=None, site=site, words=words, failing=failing)

    def one(self, key: str) -> Listed:
        """The Series of this key.  Raises UnknownSeries."""
        for series in self._standings(key=key, site=None, words=None, failing=False):
            return series
        raise UnknownSeries(key)

    def _standings(self, **wanted: Any) -> tuple[Listed, ...]:
        with self._database.connection() as connection:
            rows = _SQL.standings(
                connection,
                sites=list(self._rests),
                rests=list(self._rests.values()),
                polling=self._polling,
                **wanted,
            )
            return tuple(_listed(row) for row in rows)

    def chapters(self, series_id: int | None, most: int) -> tuple[ChapterFound, ...]:
        """The newest Chapters, of one Series or of all."""
        with self._database.connection() as connection:
            return tuple(ChapterFound(*row) for row in _SQL.chapters(connection, series_id=series_id, most=most))

    def attempts(self, series_id: int | None, most: int) -> tuple[Attempt, ...]:
        """The poll record, newest first, of one Series or of all."""
        with self._database.connection() as connection:
            return tuple(Attempt(*row) for row in _SQL.attempts(connection, series_id=series_id, most=most))

    def first_outcome(self, series_id: int, since: datetime) -> Outcome | None:
        """How the first Poll of a Series that was claimed since then ended; None: not yet."""
        with self._database.connection() as connection:
            row = _SQL.first_outcome(connection, series_id=series_id, since=since)
        return None if row is None else Outcome(*row)

    def followed(self) -> dict[str, FollowedThere]:
        """What is followed of each Site, by its name; a Site of which nothing ever was may be missing."""
        with self._database.connection() as connection:
            return {row.site: FollowedThere(*row) for row in _SQL.followed(connection)}

    def lane(self, site: str) -> LaneState:
        """How a Lane stands."""
        gauges = PollStore(self._database, site, "").gauges(self._rests.get(site))
        with self._database.connection() as connection:
            hosts = Hosts(*_SQL.hosts(connection, site=site, blocked=BLOCKED, refuses=REFUSES))
            row = _SQL.lane(connection, site=site)
        return LaneState(site, gauges, hosts) if row is None else LaneState(site, gauges, hosts, *row)

    def lines_down(self) -> tuple[LineDown, ...]:
        """The machines whose own line is down, longest first."""
        with self._database.connection() as connection:
            return tuple(LineDown(*row) for row in _SQL.lines_down(connection))

    def incidents(self, most: int | None, *, only_open: bool = False) -> tuple[Incident, ...]:
        """The troubles: open ones first, then the newest, at most `most` (None: all)."""
        with self._database.connection() as connection:
            return tuple(Incident(*row) for row in _SQL.incidents(connection, most=most, open=only_open))

    def notices(self, most: int, *, reader: str | None = None, owed: bool = False) -> tuple[Told, ...]:
        """The Notices, newest first: all, or of one Reader, or those that are owed.  Raises UnknownReader."""
        with self._database.connection() as connection:
            if reader is not None and not _SQL.has_reader(connection, name=reader):
                raise UnknownReader(reader)
            return tuple(Told(*row) for row in _SQL.notices(connection, reader=reader, owed=owed, most=most))

    def totals(self) -> Totals:
        """The whole installation in numbers."""
        with self._database.connection() as connection:
            return Totals(*_SQL.totals(connection))


_STANDING = tuple(field.name for field in fields(Standing) if field.name != "gate")


def _listed(row: Any) -> Listed:
    gate = None if row.gate_reason is None else Stop(row.gate_reason, row.gate_until)
    return Listed(
        key=row.key,
        site=row.site,
        host=row.host,
        title=row.title,
        url=row.url,
        home=row.home,
        chapters=row.chapters,
        newest_at=row.newest_at,
        checked_at=row.checked_at,
        good_at=row.good_at,
        rest=row.rest,
        failing_since=row.failing_since,
        standing=Standing(gate=gate, **{name: getattr(row, name) for name in _STANDING}),
    )
