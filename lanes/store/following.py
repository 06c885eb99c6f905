"""What the owner and the Readers say about Series: follow, Check now, pause, resume, remove.

Owns those verbs, each one short transaction.  Refuses to own: polling, which reads what is written here.  Must never break: whatever
lets a Series be due, or a gate open, sooner lowers its host's `ready_at` in the same transaction; hosts are locked before Series, by id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from lanes.core.keys import marked
from lanes.errors import UnknownSeries
from lanes.store import judging
from lanes.store.pool import Connection, Database, named_sql, ring

BATCH = 100  # Series an import commits at a time (DESIGN 4.1)
OWNER = "owner"  # the default Reader

_SQL = named_sql("following")


class Was(StrEnum):
    """How a Series stood when it was asked for."""

    NEW = "new"  # nobody had followed it
    KNOWN = "known"  # it was there, this Reader's Bookmark was not
    FOLLOWED = "followed"  # this Reader has bookmarked it already


@dataclass(frozen=True, slots=True)
class Wanted:
    """A Series to be followed: its Site, the canonical URL and that URL's host, a key if it is free, and its own first Rest, if any.
    `browser`: its Site needs one.  `spelled_as` is the URL by which the same Series is followed already, where that is another."""

    site: str
    url: str
    host: str
    key: str
    title: str | None = None
    rest: timedelta | None = None
    browser: bool = False
    spelled_as: str | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """A Series by its number, its key, its Site and its URL."""

    series_id: int
    key: str
    site: str
    url: str


@dataclass(frozen=True, slots=True)
class Followed:
    """What became of one `Wanted`."""

    wanted: Wanted
    series: Named
    was: Was


class FollowStore:
    """The verbs of one Reader; the owner's own unless another is named."""

    def __init__(self, database: Database, reader: str = OWNER) -> None:
        self._database, self._reader = database, reader

    def follow(self, wanted: Sequence[Wanted], told: Callable[[int], object] = lambda _: None) -> tuple[Followed, ...]:
        """Follows Series and bookmarks them for the Reader; what each was before, in the order asked.

        Commits by BATCH, hosts in id order, and calls `told` with the size of each batch: what is committed stays if a later one fails.
        A Series that goes from no Bookmark to one starts with a first sight again (its next good Poll tells nobody).
        """
        if not wanted:
            return ()
        with self._database.connection() as connection:
            sites, hosts = [each.site for each in wanted], [each.host for each in wanted]
            _SQL.enrol_sites(connection, sites=sites, browsers=[each.browser for each in wanted])
            _SQL.enrol_hosts(connection, sites=sites, hosts=hosts)
            known = {row.name: row for row in _SQL.hosts_of(connection, hosts=hosts)}
            for site, host in dict.fromkeys(zip(sites, hosts, strict=True)):
                if known[host].site != site:
                    _SQL.place_host(connection, site=site, name=host)
            host_ids = {name: row.id for name, row in known.items()}
            moved = _moved(connection, wanted)
        order = sorted(range(len(wanted)), key=lambda number: (host_ids[wanted[number].host], wanted[number].key))
        done: dict[int, Followed] = {}
        for start in range(0, len(order), BATCH):
            numbers = order[start : start + BATCH]
            asked = [wanted[number] for number in numbers]
            now_at = [_now_at(each, moved) for each in asked]
            with self._database.transaction() as connection:
                found = self._follow_batch(connection, now_at, host_ids)
            for number, each, (series, was) in zip(numbers, asked, found, strict=True):
                done[number] = Followed(each, series, was)
            told(len(asked))
        return tuple(done[number] for number in range(len(wanted)))

    def respell(self, followed: Sequence[Followed]) -> tuple[Followed, ...]:
        """What `follow` gave, where Series that were there already and were never read have taken the URL that was asked for now: the one
        that they had may have been misspelled, and would be asked for ever."""
        fresh = {each.series.series_id for each in followed if each.was is Was.NEW}
        asked: dict[int, str] = {}
        for each in followed:
            if each.wanted.spelled_as is not None and each.series.series_id not in fresh:
                asked.setdefault(each.series.series_id, each.wanted.url)
        if not asked:
            return tuple(followed)
        with self._database.connection() as connection:
            rows = _SQL.respell(connection, series_ids=list(asked), urls=list(asked.values()))
            taken = {row.id: row.url for row in rows}
        return tuple(
            replace(each, series=replace(each.series, url=taken.get(each.series.series_id, each.series.url)))
            for each in followed
        )

    def taken(self, wanted: Sequence[Wanted]) -> dict[str, str]:
        """The hosts of which another Site has Series already, and why nobody else can be followed there: a host has one Lane, so whoever
        followed there would never be polled."""
        with self._database.connection() as connection:
            rows = _SQL.taken(connection, sites=[each.site for each in wanted], hosts=[each.host for each in wanted])
            return {
                row.host: f"{row.series:,} Series at {row.host} (such as {row.key}) {'is' if row.series == 1 else 'are'} of the Site "
                f"{row.site}, and a host has one Site: `lanes remove --purge` ends that"
                for row in rows
            }

    def stand(self, wanted: Sequence[Wanted]) -> tuple[Was, ...]:
        """What `follow` would find; changes nothing."""
        with self._database.connection() as connection:
            moved = _moved(connection, wanted)
            now_at = [_now_at(each, moved) for each in wanted]
            rows = _SQL.stand(
                connection,
                reader=self._reader,
                sites=[each.site for each in wanted],
                urls=[each.url for each in now_at],
            )
            there = {row.n - 1: Was.FOLLOWED if row.bookmarked else Was.KNOWN for row in rows}
        return tuple(there.get(number, Was.NEW) for number in range(len(wanted)))

    def _follow_batch(
        self, connection: Connection, wanted: list[Wanted], host_ids: dict[str, int]
    ) -> list[tuple[Named, Was]]:
        places = {"sites": [each.site for each in wanted], "urls": [each.url for each in wanted]}
        _SQL.lock_hosts(connection, host_ids=[host_ids[each.host] for each in wanted], **places)
        made = _insert(connection, wanted, host_ids)
        there = _by_place(connection, places)
        missing = [each for each in wanted if (each.site, each.url) not in there]
        if missing:  # their keys are taken by other Series
            made |= _insert(connection, [replace(each, key=marked(each.key, each.url)) for each in missing], host_ids)
            there = _by_place(connection, places)
        bookmarked = {
            row.id
            for row in _SQL.bookmark(
                connection, reader=self._reader, series_ids=[named.series_id for named in there.values()]
            )
        }
        for site in {each.site for each in wanted}:
            ring(connection, f"lanes_{site}")
        found: list[tuple[Named, Was]] = []
        for each in wanted:
            named = there[each.site, each.url]
            was = (
                Was.FOLLOWED if named.series_id not in bookmarked else Was.NEW if named.series_id in made else Was.KNOWN
            )
            bookmarked.discard(named.series_id)  # the second of two alike in one call was followed by the first
            found.append((named, was))
        return found

    def urls(self, site: str) -> tuple[str, ...]:
        """The URLs of all Series of a Site, those that they have before those that they had, the oldest Series first."""
        with self._database.connection() as connection:
            return tuple(row.url for row in _SQL.urls_of(connection, site=site))

    def find(self, word: str) -> Named:
        """The Series of this key or this URL, be it one that it had before it moved or its feed was found.  Raises UnknownSeries."""
        with self._database.connection() as connection:
            return find_series(connection, word)

    def check_now(self, word: str, *, anew: bool = False) -> Named:
        """Asks for one Poll of a Series sooner; `anew`: one that sends no validators, so that its document is really read.  Raises
        UnknownSeries."""
        with self._touched(word) as (connection, series):
            _SQL.force_poll(connection, series_id=series.series_id, anew=anew)
            return series

    def pause(self, word: str) -> tuple[Named, bool]:
        """Pauses a Series; False where it was paused already.  Raises UnknownSeries."""
        with self._touched(word) as (connection, series):
            return series, _SQL.pause(connection, series_id=series.series_id) is not None

    def resume(self, word: str) -> tuple[Named, bool]:
        """Ends the pause of a Series; False where there was none.  Raises UnknownSeries."""
        with self._touched(word) as (connection, series):
            return series, _SQL.resume(connection, series_id=series.series_id) is not None

    def pause_lane(self, site: str) -> bool:
        """Pauses a whole Lane; False where it was paused already."""
        with self._database.transaction() as connection:
            _SQL.enrol_sites(connection, sites=[site], browsers=[False])
            return _SQL.pause_lane(connection, site=site) is not None

    def resume_lane(self, site: str) -> bool:
        """Ends the pause of a Lane; False where there was none."""
        with self._database.transaction() as connection:
            ring(connection, f"lanes_{site}")
            return _SQL.resume_lane(connection, site=site) is not None

    def drop_bookmark(self, word: str) -> tuple[Named, bool]:
        """The Reader follows a Series no longer; False where they did not.  It is kept: without any Bookmark it is not polled."""
        with self._touched(word) as (connection, series):
            left = _SQL.drop_bookmark(connection, reader=self._reader, series_id=series.series_id)
            return series, left is not None

    def purge(self, word: str) -> tuple[Named, bool]:
        """Drops the Bookmark and deletes the Series with its Chapters; False: other Readers hold it, so it stays for them."""
        with self._touched(word) as (connection, series):
            _SQL.drop_bookmark(connection, reader=self._reader, series_id=series.series_id)
            host_id = _SQL.purge(connection, series_id=series.series_id)
            if host_id is not None:
                _SQL.note_unused(connection, host_id=host_id)
            return series, host_id is not None

    @contextmanager
    def _touched(self, word: str) -> Iterator[tuple[Connection, Named]]:
        """One Series and its hosts, locked; at the end the claim is told to look there again."""
        with self._database.transaction() as connection:
            series = find_series(connection, word)
            _SQL.lock_hosts_of(connection, series_id=series.series_id)
            host_id = _SQL.lock_series(connection, series_id=series.series_id)
            yield connection, series
            if host_id is not None:
                judging.by_the_rest(connection, host_id)
            _SQL.wake_host(connection, series_id=series.series_id)
            ring(connection, f"lanes_{series.site}")


def find_series(connection: Connection, word: str) -> Named:
    """The Series of this key or this URL, be it one that it had before.  Raises UnknownSeries."""
    row = _SQL.find(connection, word=word)
    if row is None:
        for moved in _SQL.moved_from(connection, urls=[word]):
            row = _SQL.find(connection, word=moved.url)
    if row is None:
        raise UnknownSeries(word)
    return _named(row)


def _moved(connection: Connection, wanted: Sequence[Wanted]) -> dict[str, str]:
    """Where those of these URLs lead now that a Series had before it moved."""
    urls = [each.spelled_as or each.url for each in wanted]
    return {row.old_url: row.url for row in _SQL.moved_from(connection, urls=urls)}


def _now_at(wanted: Wanted, moved: dict[str, str]) -> Wanted:
    """Under the URL by which its Series is followed now."""
    url = wanted.spelled_as or wanted.url
    return replace(wanted, url=moved.get(url, url))


def _insert(connection: Connection, wanted: Sequence[Wanted], host_ids: dict[str, int]) -> set[int]:
    rows = _SQL.insert_series(
        connection,
        keys=[each.key for each in wanted],
        sites=[each.site for each in wanted],
        host_ids=[host_ids[each.host] for each in wanted],
        urls=[each.url for each in wanted],
        titles=[each.title for each in wanted],
        rests=[each.rest for each in wanted],
    )
    return {row.id for row in rows}


def _by_place(connection: Connection, places: dict[str, list[str]]) -> dict[tuple[str, str], Named]:
    return {(row.site, row.url): _named(row) for row in _SQL.series_of(connection, **places)}


def _named(row: Any) -> Named:
    return Named(row.id, row.key, row.site, row.url)
