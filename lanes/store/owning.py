"""The owner's word: slow, block, and what the owner does by hand to a Series that stopped or moved.

Owns those verbs, each one short transaction.  Refuses to own: polling, which reads what is written here.  Must never break: a word can
only slow, and undoing it opens nothing that something else keeps closed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from psycopg.types.json import Jsonb

from lanes.core import notices
from lanes.core.notices import Kind
from lanes.core.urls import split
from lanes.core.why import BLOCKED, REFUSES
from lanes.errors import LanesError
from lanes.store import judging
from lanes.store.following import Named, find_series
from lanes.store.pool import Connection, Database, named_sql, ring

MOVED_TO: Final = "moved to "
"""How the reason of a retirement begins that was a move to a Series followed already; its key follows."""

_SQL = named_sql("owning")


class NoWayBack(LanesError):
    """A Series cannot return to its old URL."""


@dataclass(frozen=True, slots=True)
class Word:
    """What the owner said about a host or (`is_site`) a Site, in force; `at_least` None: blocked.  `series` are asked there."""

    about: str
    is_site: bool
    at_least: timedelta | None
    said_at: datetime
    series: int


@dataclass(frozen=True, slots=True)
class Slowed:
    """What became of "at least this long between two requests".  `word` is the owner's in force, `in_force` what binds in all, as far as
    it is known; `changed` False: the word in force is as slow already."""

    about: str
    changed: bool
    word: timedelta
    in_force: timedelta | None
    series: int


@dataclass(frozen=True, slots=True)
class Freed:
    """The word that ended (None: there was none), and what binds from now on, as far as it is known."""

    about: str
    word: timedelta | None
    in_force: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A host that is blocked (`changed` False: it was already), and how many Series are asked there."""

    host: str
    changed: bool
    series: int


@dataclass(frozen=True, slots=True)
class Unblock:
    """The end of a block (`changed` False: there was none), and the wait that stands there all the same."""

    host: str
    changed: bool
    until: datetime | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Revived:
    """A Series that lives again (`changed` False: it was not retired).  Where it had moved to another Series: that one's key, and how many
    Bookmarks that were copied to it are gone again."""

    series: Named
    changed: bool
    moved_to: str | None = None
    copies: int = 0


class OwnStore:
    """The verbs of the owner alone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def words(self) -> tuple[Word, ...]:
        """What is in force, oldest first."""
        with self._database.connection() as connection:
            return tuple(Word(*row) for row in _SQL.words(connection))

    def knows(self, host: str) -> bool:
        """Whether there is a row of this host."""
        with self._database.connection() as connection:
            return _SQL.host(connection, name=host) is not None

    def hosts_below(self, domain: str) -> tuple[str, ...]:
        """Hosts under a domain that Series are followed at, twenty at most."""
        with self._database.connection() as connection:
            return tuple(row.name for row in _SQL.hosts_below(connection, name=domain))

    def slow_host(self, site: str, host: str, at_least: timedelta) -> Slowed:
        """At least this long between two requests to a host, its last one included; a host not known yet becomes one of `site`."""
        with self._database.transaction() as connection:
            row = _made(connection, site, host)
            word = _SQL.slow_word(connection, host_id=row.id, site=None)
            if word is not None and word >= at_least:
                return Slowed(host, False, word, None, row.series)
            _SQL.end_slow_word(connection, host_id=row.id, site=None)
            _SQL.say(connection, host_id=row.id, site=None, at_least=at_least)
            in_force = _SQL.slow_host(connection, host_id=row.id, at_least=at_least)
            return Slowed(host, True, at_least, in_force, row.series)

    def free_host(self, host: str) -> Freed:
        """Ends that; the host's next request comes as early as its other bounds allow."""
        with self._database.transaction() as connection:
            row = _SQL.host(connection, name=host)
            word = row and _SQL.end_slow_word(connection, host_id=row.id, site=None)
            if word is None:
                return Freed(host, None)
            _SQL.free_host(connection, host_id=row.id)
            in_force = _SQL.hasten_host(connection, host_id=row.id)
            ring(connection, f"lanes_{row.site}")
            return Freed(host, word, in_force)

    def slow_lane(self, site: str, at_least: timedelta) -> Slowed:
        """At least this long between two requests of a Lane, its last one included."""
        with self._database.transaction() as connection:
            _SQL.enrol_site(connection, site=site)
            row = _SQL.lane(connection, site=site)
            word = _SQL.slow_word(connection, host_id=None, site=site)
            if word is not None and word >= at_least:
                return Slowed(site, False, word, None, row.series)
            _SQL.end_slow_word(connection, host_id=None, site=site)
            _SQL.say(connection, host_id=None, site=site, at_least=at_least)
            in_force = _SQL.slow_lane(connection, site=site, at_least=at_least)
            return Slowed(site, True, at_least, in_force, row.series)

    def free_lane(self, site: str, gap: timedelta | None) -> Freed:
        """Ends that; `gap` is the registry's, None where it has none."""
        with self._database.transaction() as connection:
            _SQL.enrol_site(connection, site=site)
            _SQL.lane(connection, site=site)
            word = _SQL.end_slow_word(connection, host_id=None, site=site)
            if word is not None:
                _SQL.free_lane(connection, site=site, gap=gap)
                ring(connection, f"lanes_{site}")
            return Freed(site, word)

    def block(self, site: str, host: str) -> Block:
        """Nothing is claimed at this host any more; a host not known yet becomes one of `site`."""
        with self._database.transaction() as connection:
            row = _made(connection, site, host)
            return Block(host, _SQL.block(connection, host_id=row.id, reason=BLOCKED) is not None, row.series)

    def unblock(self, host: str) -> Unblock:
        """Ends a block; a wait that stood there before, or came from a Poll in hand then, stands while it is ahead."""
        with self._database.transaction() as connection:
            row = _SQL.host(connection, name=host)
            left = row and _SQL.unblock(connection, host_id=row.id, refuses=REFUSES)
            if left is None:
                return Unblock(host, changed=False)
            ring(connection, f"lanes_{row.site}")
            return Unblock(host, True, left.until, left.reason)

    def retire(self, word: str, reason: str) -> tuple[Named, bool]:
        """Gives a Series up and tells its Readers; False where it was given up already.  Raises UnknownSeries."""
        with self._database.transaction() as connection:
            series = find_series(connection, word)
            row = _locked(connection, series.series_id)[series.series_id]
            if row.retired_at is not None:
                return series, False
            at = _SQL.retire(connection, series_id=row.id, reason=reason)
            judging.by_the_rest(connection, row.host_id)
            _tell(connection, row.id, Kind.STOPPED, notices.stopped(row.id, at), {"reason": reason})
            _SQL.wake(connection, series_id=row.id)
            return series, True

    def revive(self, word: str) -> Revived:
        """Takes a Series back as if it had never failed, tells its Readers, and undoes a move to another Series: Bookmarks that were copied
        and are unchanged since go, and it stays off that Series' URL.  Raises UnknownSeries."""
        with self._database.transaction() as connection:
            series = find_series(connection, word)
            other_id: int | None = _SQL.merged_into(connection, series_id=series.series_id)
            rows = _locked(connection, series.series_id, *([] if other_id is None else [other_id]))
            row, other = rows[series.series_id], None if other_id is None else rows.get(other_id)
            if row.retired_at is None:
                return Revived(series, changed=False)
            copies = 0 if other is None else _SQL.drop_copies(connection, series_id=row.id, other_id=other.id)
            at = _SQL.revive(connection, series_id=row.id, stays_off=other and other.url)
            _tell(connection, row.id, Kind.BACK_AGAIN, notices.back_again(row.id, at), {})
            _SQL.wake(connection, series_id=row.id)
            ring(connection, f"lanes_{series.site}")
            return Revived(series, True, other and other.key, copies)

    def back(self, word: str) -> tuple[Named, str]:
        """Returns a Series to the URL before its last move, and keeps it off the one it leaves: the Series as it is now, and that URL.

        Raises UnknownSeries; NoWayBack where it never moved, or another Series is followed there.
        """
        with self._database.transaction() as connection:
            series = find_series(connection, word)
            there = _way_back(series.key, _SQL.series(connection, series_id=series.series_id))
            parts = split(there)
            host_id = _SQL.place_host(connection, site=series.site, name=parts.host if parts else there)
            row = _locked(connection, series.series_id, host_id=host_id)[series.series_id]
            if row.old_url != there:
                raise NoWayBack(f"{series.key} is moving at this very moment: ask again.")
            taken = _SQL.by_url(connection, site=series.site, url=there)
            if taken is not None:
                raise NoWayBack(
                    f"{series.key} cannot go back: {taken} is followed at its old URL. Remove one of the two."
                )
            _SQL.go_back(connection, series_id=row.id, host_id=host_id)
            judging.by_the_rest(connection, row.host_id)
            _SQL.note_use(connection, left_id=row.host_id, host_id=host_id)
            _SQL.wake(connection, series_id=row.id)
            ring(connection, f"lanes_{series.site}")
            return Named(row.id, row.key, row.site, there), row.url


def _made(connection: Connection, site: str, host: str) -> Any:
    _SQL.enrol_site(connection, site=site)
    _SQL.make_host(connection, site=site, name=host)
    return _SQL.host(connection, name=host)


def _locked(connection: Connection, *series_ids: int, host_id: int | None = None) -> dict[int, Any]:
    """Locks hosts by id, then these Series by id; the rows by id."""
    _SQL.lock(connection, series_ids=list(series_ids), host_ids=[] if host_id is None else [host_id])
    return {row.id: row for row in _SQL.lock_series(connection, series_ids=list(series_ids))}


def _way_back(key: str, row: Any) -> str:
    if row.old_url is None or row.old_url == row.url:
        merged = (row.retired_reason or "").startswith(MOVED_TO)
        remedy = f" It is retired ({row.retired_reason}): `lanes revive {key}` takes that back." if merged else ""
        raise NoWayBack(f"{key} has not moved: there is no URL to go back to.{remedy}")
    old_url: str = row.old_url
    return old_url


def _tell(connection: Connection, series_id: int, kind: Kind, event: str, body: dict[str, object]) -> None:
    _SQL.tell_readers(connection, series_id=series_id, kind=kind.value, event=event, body=Jsonb(body))
