"""The `browser-sidecar` command: takes pages from rows, has tabs open them, and writes back what they came to (DESIGN 7).

Owns the serving loop and its heartbeat, and when Chrome wakes, sleeps and is started afresh.  Refuses to own: Chrome, and what a page
means.  Must never break: a loss is noticed once and written before anything else is taken, and no page is in hand without its row.
"""

from __future__ import annotations

import argparse
import logging
import os
import select
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from typing import Final
from uuid import UUID

from browser_sidecar import chrome
from browser_sidecar.browser import NOT_HELD, Browser, ChromeElsewhere, OwnChrome
from browser_sidecar.chrome import NotStarted
from browser_sidecar.errand import Errand
from browser_sidecar.metrics import SidecarMetrics
from browser_sidecar.page import Lost, Visit
from browser_sidecar.rhythm import RHYTHM, Rhythm
from lanes.core.urls import shown
from lanes.core.why import STOPPED
from lanes.errors import DatabaseAway, SettingsError
from lanes.fetch.guard import Guard
from lanes.metrics import Endpoint
from lanes.settings import Settings
from lanes.store import schema
from lanes.store.browsing import Loss, ServingStore
from lanes.store.pool import Bell, Database
from lanes.store.turn import Turn

log = logging.getLogger("browser_sidecar")

AWAY_FIRST, AWAY_LONGEST = 0.5, 10.0  # seconds between tries while Postgres is away
ENDS: Final = 3.0
"""s for a tab to end its page once Chrome is gone."""
NEVER: Final = float("inf")
NO_TIME_LEFT: Final = "when its request might be written, too little of its page's time was left"

_ABOUT: Final = """\
Owns Chrome, and opens in it the pages that the Lanes of some Sites ask for. It runs beside the Lanes, under supervisord;
nobody but Postgres rows connects them, and without it everything but those Sites works.

Chrome is started with the first page, ends after five idle minutes, and reaches the network only through a proxy in this
process that refuses addresses of this machine and of private networks. Chrome itself is not part of Lanes:

  apt install chromium

Settings come from the environment alone; deploy/lanes.env.example explains each. Of concern here:

  LANES_CONTACT            stands in the User-Agent of every page, after Chrome's own
  LANES_BROWSER_BINARY     which Chrome, where it is not on the PATH
  LANES_BROWSER_SANDBOX    false: for a container without user namespaces
  LANES_BROWSER_TABS       how many pages at a time
  LANES_BROWSER_WS_URL     a Chrome that runs elsewhere, e.g. ws://chrome.example.org:9222, instead of one of our own
  LANES_ALLOW_NETWORKS     networks that may be asked besides public addresses

  browser-sidecar                                                 as supervisord starts it
  curl -s 127.0.0.1:9603/health                                   how it is
  lanes status                                                    what is wrong, and what to do
"""


class Sidecar:
    """One thread for each tab, because a page's thread blocks while Chrome works; the loop's own never waits for a page."""

    def __init__(
        self,
        store: ServingStore,
        turn: Turn,
        browser: Browser,
        metrics: SidecarMetrics,
        *,
        tabs: int = 1,
        rhythm: Rhythm = RHYTHM,
    ) -> None:
        self._store, self._turn, self._browser, self._metrics = store, turn, browser, metrics
        self._tabs, self._rhythm = tabs, rhythm
        self._memory_bound = rhythm.memory * (3 + tabs) // 4
        self._threads = ThreadPoolExecutor(tabs, "tab")
        self._lock = threading.Lock()
        self._in_hand: dict[UUID, float] = {}
        self._left: dict[UUID, str] = {}
        self._loss: str | None = None
        self._lost: Loss | None = None
        self._broken: str | None = None
        self._broken_until = 0.0
        self._begun = False
        self._ours: bool | None = None
        self._told: str | None = None
        self._served = 0
        self._worn = False
        self._idle_since = time.monotonic()
        self._beat_at = self._weigh_at = 0.0
        self._ending = threading.Event()
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)

    @property
    def stopping(self) -> bool:
        return self._ending.is_set()

    def run(self, bell: Bell) -> None:
        """Serves until stopped; outlives a missing Postgres by waiting for it."""
        away = AWAY_FIRST
        while not self.stopping:
            try:
                wait = self.run_once()
                self._metrics.database(up=True)
                away = AWAY_FIRST
            except DatabaseAway as cause:
                self._metrics.database(up=False)
                self._ours = None
                log.warning("the sidecar waits for Postgres cause=%s", cause)
                self.sleep(away)
                away = min(away * 2, AWAY_LONGEST)
                continue
            bell.wait(wait, self._woken)
            self._drain()

    def run_once(self) -> float:
        """One round: what happened is written, the heart beats, idle tabs take pages.  Seconds until the next, unless woken."""
        if not self._is_our_turn():
            return self._rhythm.beat
        self._write_loss()
        if (trouble := self._trouble()) is not None:
            self._say(trouble)
        else:
            self._serve()
        return max(0.01, self._beat_at - time.monotonic())

    def stop(self) -> None:
        """Ends the sleep and takes no more.  Safe in a signal handler."""
        self._ending.set()
        self._wake_up()

    def sleep(self, seconds: float) -> bool:
        """Sleeps until woken, at most `seconds`; whether it is time to stop."""
        select.select([self._woken], [], [], seconds)
        self._drain()
        return self.stopping

    def finish(self) -> None:
        """Ends Chrome, and with it the pages in hand; whoever asked for them puts its Poll back."""
        self._browser.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        until = time.monotonic() + ENDS
        while self._in_hand and time.monotonic() < until:
            self.sleep(0.1)
        if self._ours:
            with suppress(DatabaseAway):
                self._store.unable(STOPPED)

    def _is_our_turn(self) -> bool:
        before, self._ours = self._ours, self._turn.take()
        if self._ours and before is not True:
            self._browser.take_over()
            self._begun, self._beat_at = False, 0.0
        if self._ours is not before:
            log.info("this sidecar serves" if self._ours else "another sidecar serves, this one stands by")
        if not self._ours:
            state, awake = "standing by: another sidecar serves", self._browser.is_awake
            self._metrics.stands(state, up=False, awake=awake, in_use=len(self._in_hand), well=True)
            self._metrics.lost_until(None)
            if not self._in_hand:
                self._rested()
        return self._ours

    def _write_loss(self) -> None:
        if (died := self._browser.died()) is not None:
            self._lose(died)
        with self._lock:
            is_overdue = any(time.monotonic() > deadline for deadline in self._in_hand.values())
        if is_overdue:
            self._lose("a page was not done in its time")
        if self._loss is not None:
            news = self._store.lose()
            log.error("the browser is lost cause=%s known_before=%s", self._loss, not news)
            self._loss = None

    def _lose(self, why: str) -> None:
        """Noticed once for each Chrome, by whoever comes first; written by the loop."""
        with self._lock:
            if self._browser.is_awake and self._loss is None:
                self._loss = why  # before it is ended: nothing is taken from now on
        if self._rested():
            self._metrics.lost()
        self._wake_up()

    def _trouble(self) -> str | None:
        """Why no page can be opened, in words with the remedy."""
        if self._broken is not None and time.monotonic() >= self._broken_until:
            self._broken = None
        return self._broken or self._browser.lack()

    def _say(self, trouble: str) -> None:
        """The browser is down, and it is told why; the heart does not beat."""
        none_asked_for = trouble == chrome.HOW_TO_INSTALL
        self._metrics.stands(trouble, up=False, awake=False, in_use=len(self._in_hand), well=none_asked_for)
        if trouble != self._told:
            log.error("no page can be opened: %s", trouble)
        if trouble != self._told or time.monotonic() >= self._weigh_at:
            left = self._broken_until - time.monotonic()
            self._store.unable(trouble, timedelta(seconds=left) if self._broken else None)
            self._weigh_at = time.monotonic() + self._rhythm.weigh
        self._told = trouble
        self._beat_at = time.monotonic() + self._rhythm.beat

    def _serve(self) -> None:
        if self._told is not None:
            self._told, self._beat_at = None, 0.0
            log.info("pages can be opened version=%s", self._browser.version)
        if not self._begun and not self._in_hand:
            # What a predecessor had in its tabs, or we before a time without Postgres, nobody has in a tab any more.
            self._store.begin(self._browser.version)
            self._begun = True
        for token, why in tuple(self._left.items()):
            self._store.leave(token, why)
            del self._left[token]
        self._weigh()
        if not self._in_hand:
            self._rest()
        if time.monotonic() >= self._beat_at:
            self._beat_at = time.monotonic() + self._rhythm.beat
            self._browser.keep_house()
            awake, version, not_held = self._browser.is_awake, self._browser.version, self._browser.not_held
            self._lost = self._store.beat(awake=awake, version=version, not_held=not_held)
            self._metrics.lost_until(self._lost)
        while self._may_take() and (asked := self._store.take()) is not None:
            errand = Errand(self._browser, self._store, asked, time.monotonic(), self._ending)
            with self._lock:
                self._in_hand[asked.token] = errand.taken + self._rhythm.patience
            self._threads.submit(self._carry, errand)
        self._tell()

    def _tell(self) -> None:
        """How it serves."""
        in_use = len(self._in_hand)
        awake = self._browser.is_awake or in_use > 0
        state = f"{in_use} of {self._tabs} tabs in use" if in_use else "Chrome is awake" if awake else "Chrome sleeps"
        lost = self._lost is not None and not self._lost.over
        if self._lost is not None and lost:
            state = f"the browser is lost until {self._lost.until.isoformat(timespec='seconds')}, then it is tried by itself"
        elif self._browser.not_held is not None:
            state = f"{state}; {self._browser.not_held}"
        self._metrics.stands(state, up=not lost, awake=awake, in_use=in_use)

    def _may_take(self) -> bool:
        return (
            len(self._in_hand) < self._tabs
            and self._loss is None
            and self._broken is None
            and self._begun
            and not self.stopping
            and not self._worn
            and self._served + len(self._in_hand) < self._rhythm.pages
        )

    def _weigh(self) -> None:
        if not self._browser.is_awake or time.monotonic() < self._weigh_at:
            return
        self._weigh_at = time.monotonic() + self._rhythm.weigh
        memory = self._browser.memory()
        self._metrics.weighs(memory)
        self._worn = self._worn or memory > self._memory_bound
        log.debug("Chrome was weighed bytes=%s pages=%s", memory, self._served)

    def _rest(self) -> None:
        """No page is in hand: Chrome is ended where that is due."""
        if self._worn:
            log.info("Chrome is started afresh pages=%s", self._served)
            self._metrics.restarted()
        elif time.monotonic() - self._idle_since < self._rhythm.idle:
            return
        self._rested()

    def _rested(self) -> bool:
        """Chrome is ended; whether it was awake."""
        self._served, self._worn = 0, False
        self._metrics.weighs(0)
        return self._browser.give_up()

    def _carry(self, errand: Errand) -> None:
        """One page, in a tab's thread."""
        asked = errand.asked
        try:
            visit = errand.run()
            with self._lock:
                self._in_hand[asked.token] = NEVER  # what is left takes as long as Postgres does: no fault of Chrome's
            self._end_page(errand, visit)
        except NotStarted as error:
            again = self._rhythm.retry if error.again is None else error.again
            self._broken, self._broken_until = str(error), time.monotonic() + again
        except DatabaseAway as cause:
            self._left[asked.token] = "Postgres was away while its page was in a tab"
            log.warning("a page ended without its database site=%s cause=%s", asked.site, cause)
        except Exception:
            # Its row stays as it is: whoever waits for it calls the browser lost when its time is over, and asks for nothing meanwhile.
            log.exception("a bug kept a page from its answer site=%s", asked.site)
        finally:
            self._idle_since = time.monotonic()
            with self._lock:
                self._in_hand.pop(asked.token, None)
            self._wake_up()

    def _end_page(self, errand: Errand, visit: Visit) -> None:
        asked = errand.asked
        self._metrics.page_ended(visit, time.monotonic() - errand.taken)
        self._served += 1
        self._worn = self._worn or visit.is_left or self._served >= self._rhythm.pages
        match visit.came:
            case None:
                self._left[asked.token] = (
                    NO_TIME_LEFT if errand.is_granted else "Chrome was ready for its page too late"
                )
            case Lost(why=why):
                if not self.stopping:
                    log.warning(
                        "a page was lost with the browser site=%s url=%s cause=%s", asked.site, shown(asked.url), why
                    )
                    self._lose(why)
            case came:
                errand.tell(visit, came)

    def _wake_up(self) -> None:
        with suppress(BlockingIOError):  # it is being woken already
            os.write(self._wake, b"!")

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._woken, 4096)


def main(argv: list[str] | None = None) -> int:
    """Serves until SIGTERM or SIGINT, and returns 0; 2 where the settings are wrong."""
    parser = argparse.ArgumentParser(
        prog="browser-sidecar", description=_ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args(argv)
    try:
        settings = Settings.load(os.environ)
        agent = settings.user_agent()
    except SettingsError as error:
        sys.stderr.write(f"browser-sidecar: {error}\n")
        return 2
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    return serve(settings, browser_of(settings, agent))


def browser_of(settings: Settings, agent: str) -> Browser:
    """The Chrome that the settings ask for."""
    guard = Guard(settings.allow_networks)
    if settings.browser_ws_url is not None:
        log.warning(
            "Chrome has its own way to the network: only literal addresses, and those that it reports, are checked; %s",
            NOT_HELD,
        )
        return ChromeElsewhere(settings.browser_ws_url, guard, agent)
    chrome.adopt_orphans()
    return OwnChrome(guard, agent, named=settings.browser_binary, sandbox=settings.browser_sandbox)


def serve(settings: Settings, browser: Browser, rhythm: Rhythm = RHYTHM) -> int:
    """Serves by these settings until SIGTERM or SIGINT, and returns 0."""
    metrics = SidecarMetrics(settings.browser_tabs)
    database = Database(settings.database_url, largest=settings.browser_tabs + 1, application="browser")
    turn = Turn(settings.database_url, "browser")
    store = ServingStore(database)
    sidecar = Sidecar(store, turn, browser, metrics, tabs=settings.browser_tabs, rhythm=rhythm)
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: sidecar.stop())
    endpoint = Endpoint(settings.metrics_bind, settings.metrics_port_of("browser"), metrics.registry, metrics.health)
    endpoint.start()
    log.info("the sidecar starts tabs=%s database=%s", settings.browser_tabs, settings.database_place())
    bell = store.bell()
    try:
        if schema.wait_until_ready(settings.database_url, log.warning, sidecar.sleep):
            sidecar.run(bell)
        sidecar.finish()
        log.info("the sidecar ends")
    finally:
        browser.close()
        bell.close()
        turn.leave()
        database.close()
        endpoint.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
