"""What a Lane says to the database: claim, settle, put back, and what a fetch asks for on its way.

Owns the translation between rows and the values of `lanes.core`.  Refuses to own: any decision.  Must never break: one verb is one
transaction, and none is open during a network call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from lanes.core.chapters import Listed
from lanes.core.circumstances import TOLD_ONCE, Known
from lanes.core.claim import Claim
from lanes.core.consequences import Heed, Learn
from lanes.core.outcome import NOT_PUBLIC, PutBack
from lanes.core.pace import ADDRESS_PACE, LATE_WAIT, HostPace, RefusedPace
from lanes.core.reissues import Words, to_look_up
from lanes.core.settlement import Settlement
from lanes.core.urls import split
from lanes.store import consequences
from lanes.store.claimed import claim_of, resume_row, text
from lanes.store.consequences import Place
from lanes.store.line import LineStore
from lanes.store.moving_back import moved_back
from lanes.store.pool import Connection, Database, array_of, named_sql
from lanes.store.robots import RobotsStore
from lanes.store.settled import Trail, hops_of, row_of

_SQL = named_sql("polling")


@dataclass(frozen=True, slots=True)
class Claimed:
    """A Poll for an idle slot.  `ready_at` is where its host stood in the queue: the next claim's scan may start there."""

    claim: Claim
    ready_at: datetime


@dataclass(frozen=True, slots=True)
class AskAgain:
    """Nothing was claimed, but a hint was mended (or, `clock_went_back`, must be): ask again at once."""

    clock_went_back: bool = False


@dataclass(frozen=True, slots=True)
class Nothing:
    """Nothing can be claimed for `wait`, as far as the database knows; None: until something changes."""

    wait: timedelta | None


Turn = Claimed | AskAgain | Nothing


@dataclass(frozen=True, slots=True)
class Entered:
    """A hop's host: go on (`wait` None) or come back in `wait`.  `interval` is its pace with all lower bounds, `gap` that of its Site;
    `refusing`: it has a refused read, or a window, on its record."""

    host_id: int
    pace: HostPace
    interval: timedelta
    address: str | None
    wait: timedelta | None
    reason: str
    gap: timedelta | None = None
    refusing: bool = False


@dataclass(frozen=True, slots=True)
class Gauges:
    """The row-derived gauges of one Lane.  Durations are None where nothing is due, held or pending, `refused_until` where no refusal
    stops the Lane or a host of it; `incidents` are the open ones of its Site and its machine."""

    eligible: int
    due: int
    held: int
    behind: timedelta | None
    oldest_held: timedelta | None
    oldest_pending: timedelta | None
    refused_until: datetime | None = None
    incidents: int = 0


class PollStore:
    """The rows of one Site, as its Lane on one machine uses them.  `paces`: those hosts of it that start slower than the default."""

    def __init__(
        self,
        database: Database,
        site: str,
        machine: str,
        *,
        many_hosts: bool = True,
        named_numbers: bool = False,
        republishes: bool = False,
        browser: bool = False,
        paces: Mapping[str, timedelta] | None = None,
    ) -> None:
        self._database, self.site, self._machine, self._browser = database, site, machine, browser
        self.line = LineStore(database, machine)
        self._many_hosts, self._named_numbers, self._republishes = many_hosts, named_numbers, republishes
        self._paces = paces or {}
        self.robots = RobotsStore(database)

    def enrol(self, *, polling: bool = True) -> None:
        """What a Lane does at its start: Site and machine have their rows, hosts that are slower than the default by the registry
        start there, the poll record has its partitions, the clock is noted, and whoever waits because our own guard refused an
        address, or may rest shorter by the registry now, is looked at again.
        `polling` False: the kill switch is set, and whoever explains says so.
        """
        with self._database.connection() as connection:
            self.line.enrol(connection)
            _SQL.enrol(connection, site=self.site, browser=self._browser, switched_off=not polling)
            if self._paces:
                named = {"names": list(self._paces), "paces": list(self._paces.values())}
                _SQL.make_hosts(connection, site=self.site, **named)
                _SQL.slow_hosts(connection, **named)
            _SQL.look_anew(connection, site=self.site, reason=NOT_PUBLIC, rested=not self._many_hosts)
            self._keep_house(connection)

    def keep_house(self) -> None:
        """What each Lane does once a minute: it says that it lives, notes the clock, makes the poll record's next partitions, and
        brings home who has queued too long in the middle of a chain."""
        with self._database.connection() as connection:
            _SQL.see_lane(connection, site=self.site)
            _SQL.bring_home(connection, site=self.site)
            self._keep_house(connection)

    def see_clock(self) -> None:
        """Notes how late it is, so that a clock that goes back is found, and that this Lane lived to see it."""
        with self._database.connection() as connection:
            _SQL.see_lane(connection, site=self.site)
            _SQL.see_clock(connection)

    def _keep_house(self, connection: Connection) -> None:
        _SQL.see_clock(connection)
        _SQL.make_partitions(connection)

    def claim(self, lease: timedelta, rest: timedelta | None, after: datetime | None) -> Turn:
        """One Series for one idle slot.  `after` bounds the scan from below (None: from the start)."""
        with self._database.connection() as connection:
            row = _SQL.claim(
                connection,
                site=self.site,
                rest=rest,
                lease=lease,
                machine=self._machine,
                address_pace=ADDRESS_PACE,
                after=_infinite(after),
            )
        match row.verdict:
            case "claimed":
                return Claimed(claim_of(row), row.host_ready_at)
            case "none":
                return Nothing(row.wait)
            case verdict:
                return AskAgain(clock_went_back=verdict == "clock")

    def shift_back(self) -> timedelta | None:
        """Shifts every stored instant of pace back by as much as the clock went back; None where another process did."""
        with self._database.connection() as connection:
            shifted: timedelta | None = _SQL.shift_back(connection)
            return shifted

    def settle(self, claim: Claim, settled: Settlement, trail: Trail) -> bool:
        """Ends a Poll that found no Chapters to store.  False: its lease had run out, and only what slows was written."""
        if not settled.consequences:
            with self._database.connection() as connection:
                return self._settle(connection, claim, settled, trail, new=0)
        with self._database.transaction() as connection:
            held = self._settle(connection, claim, settled, trail, new=0)
            self._follow(connection, claim, settled, trail, held=held)
            return held

    def settle_document(
        self, claim: Claim, listed: Listed, decide: Callable[[Known], Settlement], trail: Trail
    ) -> tuple[bool, Settlement]:
        """Ends a Poll whose document was read: asks what of the `listed` items is known, lets `decide` say what is new, stores it.

        One transaction.  The database resolves conflicts: what was really inserted is what is new.
        """
        with self._database.transaction() as connection:
            held = _SQL.hold(connection, series_id=claim.series_id, token=claim.token, hosts=array_of(trail.hosts))
            known = _known(connection, claim.series_id, [identity for _, ids in listed for identity in ids])
            if self._named_numbers:
                rows = _SQL.told_numbers(connection, series_id=claim.series_id, since=TOLD_ONCE)
                numbers = frozenset((row.volume, row.number, row.label) for row in rows)
                latest = _SQL.latest_number(connection, series_id=claim.series_id)
                known = replace(known, numbers=numbers, latest=latest)
            if self._republishes and (asked := to_look_up(listed, known.identities)):
                known = replace(known, words=_known_words(connection, claim.series_id, [*asked]))
            settled = decide(known)
            new, news = _keep(connection, claim.series_id, settled) if held else (0, [])
            self._settle(connection, claim, settled, trail, new=new)
            if news:
                consequences.keep_news(connection, claim, news)
            self._follow(connection, claim, settled, trail, held=held)
            return held, settled

    def _settle(self, connection: Connection, claim: Claim, settled: Settlement, trail: Trail, *, new: int) -> bool:
        held: bool = _SQL.settle(connection, **row_of(settled, trail, new), **self._record(claim, trail))
        return held

    def _follow(self, connection: Connection, claim: Claim, settled: Settlement, trail: Trail, *, held: bool) -> None:
        """What slows is never fenced: a late worker's refused read is heeded, and what it learnt of its host."""
        followed = [each for each in settled.consequences if held or isinstance(each, Heed | Learn)]
        if followed:
            place = Place(self.site, self._many_hosts, claim.host_id, trail.host_id)
            clock = _SQL.by_the_clock(connection, series_id=claim.series_id, claimed_at=claim.claimed_at)
            if clock.back:
                followed = [moved_back(each, clock.back) for each in followed]
            consequences.write(connection, claim, place, followed, clock.now)

    def put_back(self, claim: Claim, why: PutBack, trail: Trail, queue_host_id: int | None = None) -> bool:
        """Puts a Poll back; `queue_host_id` is the host it queues under while it has somewhere to resume."""
        with self._database.connection() as connection:
            held: bool = _SQL.put_back(
                connection,
                wait=why.wait,
                reason=why.reason,
                address=why.address,
                resume=None if why.resume is None else Jsonb(resume_row(why.resume)),
                queue_host_id=queue_host_id,
                sent=bool(trail.requests),
                lost=why.lost,
                **self._record(claim, trail),
            )
            return held

    def host_id(self, host: str, site: str | None = None) -> int:
        """The id of a host, made where there is none, as one of `site` (None: the Lane's own)."""
        with self._database.connection() as connection:
            host_id: int = _SQL.host_id(connection, site=site or self.site, host=host, pace=self._paces.get(host))
            return host_id

    def follow_feed(self, claim: Claim, url: str, trail: Trail) -> bool:
        """The Series of a web page follows the feed that the page names, from now on; False: the lease had run out."""
        parts = split(url)
        feed_host_id = self.host_id(parts.host if parts else claim.host)
        with self._database.connection() as connection:
            held: bool = _SQL.follow_feed(connection, url=url, feed_host_id=feed_host_id, **self._record(claim, trail))
            return held

    def take_address(self, host_id: int, address: str, token: UUID) -> timedelta | None:
        """A slot of an address that is new or changed for its host; else how long until its bucket opens."""
        with self._database.connection() as connection:
            wait: timedelta | None = _SQL.take_address(
                connection, host_id=host_id, address=address, token=token, address_pace=ADDRESS_PACE
            )
            return wait

    def enter(self, host: str, claim: Claim, lease_until: datetime, site: str | None = None) -> Entered:
        """The next hop's host, its `busy_until` taken and its buckets spent as a claim does; made, where it is new, as one of `site` (None:
        the Lane's own)."""
        with self._database.connection() as connection:
            row = _SQL.enter(
                connection,
                site=site or self.site,
                host=host,
                pace=self._paces.get(host),
                series_id=claim.series_id or None,
                token=claim.token,
                lease_until=lease_until,
                address_pace=ADDRESS_PACE,
            )
        refused = row.refused_pace and RefusedPace(row.refused_pace, row.refused_pace_at, row.refused_paces)
        pace = HostPace(row.pace, row.latency, row.backoffs, refused)
        interval, address, reason = row.interval_in_force, text(row.address), row.reason or ""
        return Entered(row.host_id, pace, interval, address, row.wait, reason, row.lane_gap, row.refusing)

    def move_buckets(self, host_id: int, address: str, sent_at: datetime, token: UUID) -> datetime | None:
        """A request that is written late moves the buckets it spends first.  Returns when it may be written: at `sent_at`, or later where
        another host of the address took the slot meanwhile (more than LATE_WAIT later: nothing was moved); None: not any more, its lease
        has ended or its host was told to wait."""
        with self._database.connection() as connection:
            place: datetime | None = _SQL.move_buckets(
                connection,
                host_id=host_id,
                address=address,
                sent_at=sent_at,
                token=token,
                address_pace=ADDRESS_PACE,
                patience=LATE_WAIT,
            )
            return place

    def gauges(self, rest: timedelta | None) -> Gauges:
        """Counts and ages for the metrics; reads every eligible Series of the Site once."""
        with self._database.connection() as connection:
            row = _SQL.gauges(connection, site=self.site, machine=self._machine, rest=rest)
        return Gauges(*row)

    def eligible(self) -> int:
        """How many Series of the Site are polled at all."""
        with self._database.connection() as connection:
            eligible: int = _SQL.eligible(connection, site=self.site)
            return eligible

    def set_gap(self, gap: timedelta) -> None:
        """The effective Gap in force from now on, for every process of the Site and every hop into it."""
        with self._database.connection() as connection:
            _SQL.set_gap(connection, site=self.site, gap=gap)

    def _record(self, claim: Claim, trail: Trail) -> dict[str, Any]:
        return {
            "series_id": claim.series_id,
            "token": claim.token,
            "hosts": array_of(trail.hosts),
            "host_sents": array_of(trail.sent),
            "claimed_at": claim.claimed_at,
            "site": self.site,
            "machine": self._machine,
            "trigger": claim.trigger.value,
            "address_pace": ADDRESS_PACE,
            "hops": Jsonb(hops_of(claim, trail)),
            "proof": trail.proof,
        }


def _known(connection: Connection, series_id: int, identities: list[bytes]) -> Known:
    row = _SQL.known(connection, series_id=series_id, identities=[UUID(bytes=each) for each in identities])
    return Known(frozenset(each.bytes for each in row.known), row.any_known)


def _known_words(connection: Connection, series_id: int, asked: list[Words]) -> frozenset[Words]:
    """Those of these words that a Chapter of the Series bears."""
    titles, volumes, numbers, labels = zip(*asked, strict=True)
    rows = _SQL.known_words(
        connection,
        series_id=series_id,
        titles=list(titles),
        volumes=list(volumes),
        numbers=list(numbers),
        labels=list(labels),
    )
    return frozenset(asked[row.n - 1] for row in rows)


def _keep(connection: Connection, series_id: int, settled: Settlement) -> tuple[int, list[int]]:
    """Identities first; a Chapter is stored when all of its identities were really new.  How many were, and the ids of those to tell."""
    if not settled.seen:
        return 0, []
    rows = _SQL.keep_identities(
        connection, series_id=series_id, identities=[UUID(bytes=each) for each in set(settled.seen)]
    )
    inserted = {row.identity.bytes for row in rows}
    fresh = [chapter for chapter in settled.chapters if inserted.issuperset(chapter.identities)]
    if not fresh:
        return 0, []
    kept = _SQL.keep_chapters(
        connection,
        series_id=series_id,
        titles=[chapter.item.title for chapter in fresh],
        urls=[chapter.item.link for chapter in fresh],
        published=[chapter.item.published_at for chapter in fresh],
        approximate=[chapter.item.approximate for chapter in fresh],
        announced=[chapter.announced for chapter in fresh],
        volumes=[chapter.item.volume for chapter in fresh],
        numbers=[chapter.item.number for chapter in fresh],
        labels=[chapter.item.label for chapter in fresh],
    )
    return len(fresh), [row.id for row in kept if row.announced]


def _infinite(after: datetime | None) -> Any:
    return "-infinity" if after is None else after
