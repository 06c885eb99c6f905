"""Upkeep: the process that sees to what no Poll ever comes by, each duty isolated from the others.

Owns the list of duties, their rounds and an orderly end.  Refuses to own: what a duty does (a module for each kind).  Must never break:
one duty that fails costs that duty alone, and one upkeep at a time is at work on a database.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from lanes.errors import DatabaseAway
from lanes.metrics import Endpoint
from lanes.settings import Settings
from lanes.store import schema
from lanes.store.pool import Database
from lanes.store.turn import Turn
from lanes.store.upkeep import UpkeepStore
from lanes.upkeep import ageing, pruning
from lanes.upkeep.metrics import UpkeepMetrics

log = logging.getLogger("lanes.upkeep")

MINUTE = 60.0  # seconds: what comes of age does so in hours and days
STANDS_BY = 5.0  # seconds between two looks at whether the other upkeep has ended
AWAY_FIRST, AWAY_LONGEST = 0.5, 10.0  # seconds between tries while Postgres is away


@dataclass(frozen=True, slots=True)
class Duty:
    """What is done every so many seconds.  `run` yields after each short transaction how much that did, so that an end comes soon."""

    name: str
    every: float
    run: Callable[[UpkeepStore], Iterator[int]]


DUTIES = (
    Duty("tell-owner", MINUTE, ageing.tell_owner),
    Duty("tell-readers", MINUTE, ageing.tell_readers),
    Duty("tell-of-ends", MINUTE, ageing.tell_of_ends),
    Duty("give-up", MINUTE, ageing.give_up),
    Duty("judge", MINUTE, ageing.judge),
    Duty("end-lost-lines", MINUTE, ageing.end_lost_lines),
    Duty("end-deserted", MINUTE, ageing.end_deserted),
    Duty("prune-record", 10 * MINUTE, pruning.prune_record),
    Duty("prune-addresses", 10 * MINUTE, pruning.prune_addresses),
    Duty("prune-hosts", 10 * MINUTE, pruning.prune_hosts),
    Duty("prune-machines", 24 * 60 * MINUTE, pruning.prune_machines),
    Duty("prune-incidents", 10 * MINUTE, pruning.prune_incidents),
    Duty("prune-notices", 10 * MINUTE, pruning.prune_notices),
)


class Upkeep:
    """Runs each duty at its time, one after another, in one thread."""

    def __init__(
        self, store: UpkeepStore, turn: Turn, metrics: UpkeepMetrics, duties: tuple[Duty, ...] = DUTIES
    ) -> None:
        self._store, self._turn, self._metrics, self._duties = store, turn, metrics, duties
        self._next = dict.fromkeys((duty.name for duty in duties), 0.0)
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self.stopping = False

    def run_once(self) -> int:
        """One round: every duty whose time has come, each isolated.  Returns how many came to their end.  Raises DatabaseAway."""
        done = sum(self._do(duty) for duty in self._duties if not self.stopping and self._is_time(duty))
        self._metrics.round_ended(self._store.owed())
        return done

    def run(self) -> None:
        """Rounds until stopped; stands by while another upkeep is at work, and outlives a missing Postgres by waiting for it."""
        away, ours = AWAY_FIRST, None
        while not self.stopping:
            try:
                before, ours = ours, self._turn.take()
                self._metrics.at_work(ours)
                if ours is not before:
                    log.info("this upkeep is at work" if ours else "another upkeep is at work, this one stands by")
                if ours:
                    self.run_once()
                away = AWAY_FIRST
            except DatabaseAway as cause:
                ours = None
                self._metrics.away()
                log.warning("upkeep waits for Postgres cause=%s", cause)
                self.sleep(away)
                away = min(away * 2, AWAY_LONGEST)
                continue
            self.sleep(max(0.0, min(self._next.values()) - time.monotonic()) if ours else STANDS_BY)

    def stop(self) -> None:
        """Ends the sleep, and the duty in hand after its transaction.  Safe in a signal handler: it takes no lock."""
        self.stopping = True
        with suppress(BlockingIOError):
            os.write(self._wake, b"!")

    def sleep(self, seconds: float) -> bool:
        """Sleeps until stopped, at most `seconds`; whether it is time to stop."""
        select.select([self._woken], [], [], seconds)
        return self.stopping

    def _is_time(self, duty: Duty) -> bool:
        return time.monotonic() >= self._next[duty.name]

    def _do(self, duty: Duty) -> bool:
        self._next[duty.name] = time.monotonic() + duty.every
        done = 0
        try:
            for each in duty.run(self._store):
                done += each
                if self.stopping:
                    break
        except Exception as cause:
            self._metrics.duty_failed(duty.name)
            if isinstance(cause, DatabaseAway):
                # Is it away for all, or did this duty alone wait too long for a row?
                if not self._turn.take():
                    raise DatabaseAway("another upkeep has taken over") from cause
                log.warning("a duty of upkeep failed, the others go on duty=%s cause=%s", duty.name, cause)
            else:
                log.exception("a bug ended a duty of upkeep, the others go on duty=%s", duty.name)
            return False
        self._metrics.duty_done(duty.name, done)
        if done:
            log.info("a duty of upkeep was done duty=%s done=%s", duty.name, done)
        return True


def main(settings: Settings) -> int:
    """The process `lanes upkeep`: does its duties until SIGTERM or SIGINT, and returns 0."""
    metrics = UpkeepMetrics(duty.name for duty in DUTIES)
    database = Database(settings.database_url, largest=1, application="upkeep")
    turn = Turn(settings.database_url, "upkeep")
    upkeep = Upkeep(UpkeepStore(database), turn, metrics)
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: upkeep.stop())
    endpoint = Endpoint(settings.metrics_bind, settings.metrics_port_of("upkeep"), metrics.registry, metrics.health)
    endpoint.start()
    log.info("upkeep starts database=%s", settings.database_place())
    try:
        if schema.wait_until_ready(settings.database_url, log.warning, upkeep.sleep):
            upkeep.run()
        log.info("upkeep ends")
    finally:
        turn.leave()
        database.close()
        endpoint.stop()
    return 0
