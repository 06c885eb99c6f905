"""A Poll Lane: the process that polls one Site.

Owns slots, the sleep between claims, and an orderly end.  Refuses to own: one Poll (`poll`) and every rule (`core`, and the rules in
`store/sql`).  Must never break: a Lane claims only for an idle slot, so nothing is held stale and untried Series stay due.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from lanes.browser import Browser
from lanes.core.claim import Claim
from lanes.core.line import leapt
from lanes.core.outcome import Label
from lanes.core.pace import effective_gap
from lanes.errors import DatabaseAway, DatabaseBusy
from lanes.fetch.guard import Guard
from lanes.fetch.http import Http
from lanes.metrics import Endpoint, LaneMetrics
from lanes.poll import POISON, Ended, Poller, lease_of, rows_of
from lanes.settings import Settings
from lanes.sites import Site, by_name, tell_own
from lanes.store import schema
from lanes.store.browsing import AskingStore
from lanes.store.polls import AskAgain, Claimed, Nothing, PollStore
from lanes.store.pool import Bell, Database

log = logging.getLogger("lanes.lane")

LONGEST_SLEEP = 5.0  # seconds: every hint may be lost, and still nothing waits longer than this to be seen
RESCAN = 1.0  # seconds: how often the claim's scan starts from the very first host again
CLAIMS_AT_ONCE = 256  # claims asked for between two looks at the clock's note and the gauges
HOUSEKEEPING = 60.0  # seconds between two notes of the clock, and at least between two sets of gauges
GAUGES_REST = 50  # times as long as the last set of gauges took, for it reads each Series: 2 % of a processor at most
ALONE_RETRY = timedelta(seconds=10)  # ... and then for this long, if they would not end
ALONE_AFTER = 25.0  # seconds a Series that is fetched alone waits for the others in hand, well inside its lease
GRACE = 20.0  # seconds a fetch in hand may still take after SIGTERM; then it is put back
MEMORY_BOUND = 400 * 2**20  # bytes: hostile documents have left their mark, and a fresh process costs half a second
AWAY_FIRST, AWAY_LONGEST = 0.5, 10.0  # seconds between tries while Postgres is away


@dataclass(frozen=True, slots=True)
class Filled:
    """How many Polls were started, and how many seconds to sleep then, unless woken (0: claim on)."""

    started: int
    wait: float
    nothing_due: bool = False


class Lane:
    """Claims for idle slots and has each Poll carried by a thread of its slot, because urllib3 blocks while it waits for a Site."""

    def __init__(
        self,
        site: Site,
        store: PollStore,
        poller: Poller,
        metrics: LaneMetrics,
        *,
        slots: int,
        memory_bound: int = MEMORY_BOUND,
    ) -> None:
        self._site, self._store, self._poller, self._metrics = site, store, poller, metrics
        self._slots, self._memory_bound = slots, memory_bound
        self._rest = None if site.many_hosts else site.rest
        self._lease = lease_of(site)
        self._threads = ThreadPoolExecutor(slots, "slot")
        self._in_hand = 0
        self._lock = threading.Lock()
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)
        self._scan_from: datetime | None = None
        self._rescan_at = 0.0
        self._house_at = 0.0
        self._gauges_at = 0.0
        self._gap_at = 0.0
        self._floored = False
        self._alone = False
        self._ahead: float | None = None
        self._was_away = False
        self._polled = 0
        self._passed = False
        self.stopping = False

    def run_once(self) -> int:
        """One Pass: claims and polls until nothing is due, and returns how many Polls that were.  For tests and for looking once."""
        polled = 0
        while not self.stopping:
            filled = self._fill()
            polled += filled.started
            if self._in_hand:
                self.sleep(LONGEST_SLEEP)
            elif filled.nothing_due:
                break
        return polled

    def run(self, bell: Bell) -> None:
        """Again whenever something is due, until stopped; outlives a missing Postgres by waiting for it."""
        away = AWAY_FIRST
        while not self.stopping:
            try:
                if self._was_away:
                    self._store.line.shaken()
                    self._was_away = False
                filled = self._fill()
                self._keep_house()
                self._metrics.database(up=True)
                away = AWAY_FIRST
            except DatabaseAway as cause:
                self._was_away = self._was_away or not isinstance(cause, DatabaseBusy)
                self._metrics.database(up=False)
                log.warning("this Lane waits for Postgres cause=%s", cause)
                self.sleep(away)
                away = min(away * 2, AWAY_LONGEST)
                continue
            if filled.wait > 0:
                bell.wait(filled.wait, self._woken)
                self._drain()

    def stop(self) -> None:
        """Stops claiming and ends the sleep.  Safe in a signal handler: it takes no lock."""
        self.stopping = True
        self._wake_up()

    def sleep(self, seconds: float) -> bool:
        """Sleeps until woken, at most `seconds`; whether the Lane is stopping."""
        select.select([self._woken], [], [], seconds)
        self._drain()
        return self.stopping

    def finish(self, seconds: float) -> bool:
        """Waits for the Polls in hand; False when some are still there after `seconds`."""
        until = time.monotonic() + seconds
        while self._in_hand and time.monotonic() < until:
            self.sleep(max(0.0, min(1.0, until - time.monotonic())))
        return not self._in_hand

    def _fill(self) -> Filled:
        """Claims for every idle slot, but not so often that housekeeping is forgotten over it."""
        self._mind_gap()
        started = 0
        for _ in range(CLAIMS_AT_ONCE):
            if self.stopping or self._in_hand >= self._slots or (self._alone and self._in_hand):
                return Filled(started, LONGEST_SLEEP)
            asked = time.monotonic()
            if asked >= self._rescan_at:
                if self._scan_from is not None:
                    self._end_pass()  # one run over what is due: a busy Lane's scan never comes to its end
                self._scan_from, self._rescan_at = None, asked + RESCAN
            match self._store.claim(self._lease, self._rest, self._scan_from):
                case Claimed(claim=claim, ready_at=ready_at):
                    self._scan_from = ready_at
                    started += 1
                    self._start(claim, asked)
                    self._watch_clock(claim.claimed_at, asked)
                case AskAgain(clock_went_back=went_back):
                    if went_back:
                        log.warning("the clock went back, stored instants were shifted by=%s", self._store.shift_back())
                case Nothing() if self._scan_from is not None:
                    self._scan_from = None  # the scan had a lower bound: look once from the start before sleeping
                case Nothing(wait=wait):
                    self._end_pass()
                    seconds = LONGEST_SLEEP if wait is None else min(max(wait.total_seconds(), 0.001), LONGEST_SLEEP)
                    return Filled(started, seconds, nothing_due=True)
        return Filled(started, 0.0)

    def _watch_clock(self, claimed_at: datetime, asked: float) -> None:
        """A clock that jumped forward between two claims: the machine slept, and what fails next may be its own line.  Noted at once, for
        what is stamped from now on must be shifted should the clock go back again."""
        ahead = claimed_at.timestamp() - asked
        if leapt(self._ahead, ahead):
            self._store.see_clock()
            self._store.line.shaken(claimed_at)
        self._ahead = ahead

    def _start(self, claim: Claim, asked: float) -> None:
        self._alone = claim.abandoned == POISON - 1 and self._slots > 1
        if claim.lapsed:
            self._metrics.lease_abandoned()
        if self._alone:
            # Two workers in a row died with it: it is fetched alone, so that a poison page takes nothing else with it.
            log.warning("a Series is fetched alone, its last two Polls were abandoned key=%s", claim.key)
            if not self.finish(ALONE_AFTER):
                self._count(
                    self._poller.postpone(
                        claim, asked, ALONE_RETRY, "it must be fetched alone, and others were in hand"
                    )
                )
                self._alone = False
                return
        self._take_in_hand(1)
        self._threads.submit(self._carry, claim, asked)

    def _carry(self, claim: Claim, asked: float) -> None:
        try:
            self._count(self._poller.carry(claim, asked))
        except DatabaseAway as cause:
            log.warning("a Poll ended without its database, its lease runs out key=%s cause=%s", claim.key, cause)
        except Exception:
            log.exception("a bug ended a Poll, its lease runs out key=%s", claim.key)
        finally:
            self._take_in_hand(-1)
            self._wake_up()

    def _count(self, ended: Ended) -> None:
        self._polled += 1
        self._metrics.poll_ended(
            ended.label,
            ended.seconds,
            ended.wire_bytes,
            ended.new_chapters,
            backed_off=ended.backed_off,
            told_to_wait=ended.told_to_wait,
            refused=ended.label is Label.REFUSED,
            retired=ended.retired,
        )

    def _mind_gap(self) -> None:
        """At start and once a minute: the effective Gap of the Site, for every process that fetches there."""
        if self._site.gap is None or time.monotonic() < self._gap_at:
            return
        eligible = self._store.eligible()
        gap = effective_gap(self._site.gap, self._site.rest, eligible)
        self._store.set_gap(gap.gap)
        self._gap_at = time.monotonic() + HOUSEKEEPING
        self._metrics.gap(gap.gap)
        if gap.floored and not self._floored:
            self._metrics.floor_engaged()
            log.warning(
                "this Site has too many Series for its Rest: its Gap is at the floor eligible=%s gap=%s rest=%s",
                eligible,
                gap.gap,
                self._site.rest,
            )
        self._floored = gap.floored

    def _end_pass(self) -> None:
        self._metrics.pass_ended()
        self._passed = self._passed or self._polled > 0

    def _keep_house(self) -> None:
        if time.monotonic() < self._house_at:
            return
        self._house_at = time.monotonic() + HOUSEKEEPING
        self._store.keep_house()
        if (resident := _resident()) > self._memory_bound:
            log.warning(
                "this Lane ends to be started afresh, it has grown bytes=%s bound=%s", resident, self._memory_bound
            )
            self.stop()
        if time.monotonic() >= self._gauges_at:
            self._gauges_at = float("inf")  # until this set is read
            # A thread, for among a million Series that takes seconds, and the claims go on.
            threading.Thread(target=self._read_gauges, name="gauges", daemon=True).start()

    def _read_gauges(self) -> None:
        began = time.monotonic()
        try:
            gauges = self._store.gauges(self._rest)
            self._metrics.gauges(gauges)
            if self._passed:
                polled, self._polled, self._passed = self._polled, 0, False
                log.info(
                    "this Lane polled polls=%s behind=%s due=%s held=%s",
                    polled,
                    gauges.behind or 0,
                    gauges.due,
                    gauges.held,
                )
        except DatabaseAway as cause:
            log.warning("the gauges of this Lane stay as they are, Postgres is away cause=%s", cause)
        except Exception:
            log.exception("a bug ended the reading of the gauges")
        finally:
            self._gauges_at = time.monotonic() + GAUGES_REST * (time.monotonic() - began)

    def _take_in_hand(self, more: int) -> None:
        with self._lock:
            self._in_hand += more
            self._metrics.slots_in_use(self._in_hand)

    def _wake_up(self) -> None:
        with suppress(BlockingIOError):  # it is being woken already
            os.write(self._wake, b"!")

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._woken, 4096)


def _resident() -> int:
    """Bytes of memory this process holds."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main(settings: Settings, site_name: str) -> int:
    """The process `lanes lane SITE`: polls that Site until SIGTERM or SIGINT, then finishes or puts back and returns 0.

    Raises: UnknownSite; SettingsError where no contact address is given.
    """
    site = by_name(site_name)
    slots = settings.fetch_slots if site.many_hosts else site.slots
    metrics = LaneMetrics(site.name, slots)
    database = Database(settings.database_url, application=f"lane-{site.name}")
    store = rows_of(site, database, settings.machine)
    http = Http(settings.user_agent(), Guard(settings.allow_networks))
    browser = Browser(AskingStore(database, site.name), site, http.stop) if site.browser else None
    lane = Lane(site, store, Poller(site, store, http, lease_of(site), browser=browser), metrics, slots=slots)
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: lane.stop())
    port = settings.metrics_port_of(f"lane-{site.name}", site.number)
    endpoint = Endpoint(settings.metrics_bind, port, metrics.registry, metrics.health)
    endpoint.start()
    tell_own(site)
    log.info(
        "the Lane starts site=%s machine=%s slots=%s database=%s",
        site.name,
        settings.machine,
        slots,
        settings.database_place(),
    )
    try:
        if schema.wait_until_ready(settings.database_url, log.warning, lane.sleep):
            _poll(lane, store, database, settings, metrics)
        if not lane.finish(GRACE):
            http.interrupt()
            lane.finish(GRACE)
        log.info("the Lane ends site=%s", site.name)
    finally:
        if browser is not None:
            browser.close()
        database.close()
        endpoint.stop()
    return 0


def _poll(lane: Lane, store: PollStore, database: Database, settings: Settings, metrics: LaneMetrics) -> None:
    if not settings.poll_enabled:
        metrics.switched_off()
        log.warning("polling is switched off by LANES_POLL_ENABLED (or LATEST_CHAPTER_POLL_ENABLED)")
    while not lane.stopping:
        try:
            store.enrol(polling=settings.poll_enabled)
            break
        except DatabaseAway as away:
            log.warning("this Lane waits for Postgres cause=%s", away)
            lane.sleep(AWAY_LONGEST)
    if settings.poll_enabled:
        bell = database.bell(f"lanes_{store.site}")
        try:
            lane.run(bell)
        finally:
            bell.close()
    else:
        _stand_by(lane, store)


def _stand_by(lane: Lane, store: PollStore) -> None:
    """The kill switch is set: claims nothing, and says once a minute that it lives."""
    while not lane.sleep(HOUSEKEEPING):
        try:
            store.keep_house()
        except DatabaseAway as away:
            log.warning("this Lane waits for Postgres cause=%s", away)
