"""One URL, tried by the owner: fetched and read as a Poll would, and nothing of it stored (`lanes try`).

Owns the order of these steps, and how long mere pace is waited for.  Refuses to own: the fetch and its permits (`hand`, `poll`), and how it
is shown.  Must never break: it spends what a Poll spends, in its host's turn, and every gate that holds a Poll holds it.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from lanes.browser import Browser
from lanes.core.answer import Answer, Resume
from lanes.core.chapters import Reading
from lanes.core.circumstances import Circumstances, Known
from lanes.core.claim import Claim
from lanes.core.outcome import Failed, Judgement, Label, PutBack, judge
from lanes.core.pace import HOST_DEFAULT, Signal
from lanes.core.settlement import decide
from lanes.core.urls import split
from lanes.core.why import IN_HAND, TURNS
from lanes.errors import BadUrl, DatabaseAway
from lanes.fetch.http import Http
from lanes.fetch.robots import RobotsFirst, origin_of, target
from lanes.hand import Hand
from lanes.poll import reading_of, request_of
from lanes.sites import Site, site_of
from lanes.store.polls import PollStore
from lanes.store.trying import Said, Shut, TryStore

LOOK_AGAIN: Final = timedelta(seconds=1)
"""Whoever has a host in hand frees it long before its lease ends."""
_STOPPED: Final = PutBack("stopped by its owner", timedelta(0), None, None)


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of a URL: its meaning, and what was got and read for it, if anything was."""

    judged: Judgement
    answer: Answer | None = None
    reading: Reading | None = None


class Trier:
    """Tries URLs of one Site.  `told` hears of every wait, in words, before it is waited for."""

    def __init__(
        self,
        site: Site,
        store: TryStore,
        polls: PollStore,
        http: Http,
        lease: timedelta,
        browser: Browser | None = None,
        told: Callable[[str, timedelta], object] = lambda *_: None,
    ) -> None:
        self._site, self._store, self._polls, self._http, self._lease = site, store, polls, http, lease
        self._browser, self._told = browser, told
        self._robots = RobotsFirst(http, polls.robots, pages=not site.feed, hosts=site.hosts)

    def attempt(self, url: str, patience: timedelta) -> Tried | Shut:
        """One URL, asked once, after its robots.txt where that is not known.  Mere pace is waited for, so long in all; a gate that stays
        shut is what comes back instead.  Raises DatabaseAway, BadUrl."""
        self._store.enrol()
        dial: str | None = None
        resume: Resume | None = None
        while True:
            asked = time.monotonic()
            entered = self._entered(url, dial, resume)
            if isinstance(entered, Shut):
                wait = _turn(entered)
                if wait is None or wait > patience:
                    return entered
                patience = self._waited(entered.reason, wait, patience)
                continue
            tried = self._tried(entered, asked)
            if not isinstance(back := tried.judged.meaning, PutBack):
                return tried
            if back.wait > patience or (back.wait <= timedelta(0) and back.resume is None and back.address is None):
                return tried
            dial, resume = back.address, back.resume
            patience = self._waited(back.reason, back.wait, patience)

    def _waited(self, reason: str, wait: timedelta, patience: timedelta) -> timedelta:
        self._told(reason, wait)
        self._http.stop.wait(wait.total_seconds())
        return patience - max(wait, timedelta(milliseconds=10))

    def _entered(self, url: str, dial: str | None, resume: Resume | None) -> Claim | Shut:
        parts = split(url if resume is None or resume.robots else resume.url)
        if parts is None:
            raise BadUrl(url, "nobody can be asked by it.")
        host_id = self._polls.host_id(parts.host, site=self._site_of(parts.host))
        entered = self._store.visit(url, host_id, parts.host, self._lease, dial)
        return replace(entered, resume=resume) if isinstance(entered, Claim) else entered

    def _site_of(self, host: str) -> str:
        return self._site.name if not self._site.many_hosts else site_of(host).name

    def _tried(self, claim: Claim, asked: float) -> Tried:
        hand = Hand(self._polls, claim, asked, self._lease, self._http.stop, self._site_of)
        try:
            tried = self._asked(claim, hand)
        except BaseException:
            with suppress(DatabaseAway):
                self._left(claim, hand, Tried(Judgement(_STOPPED, Signal.SILENT)))
            raise
        self._left(claim, hand, tried)
        return tried

    def _asked(self, claim: Claim, hand: Hand) -> Tried:
        look = hand.look = self._robots.look(claim, hand, hand.now)
        if look.stop is not None:
            return Tried(Judgement(look.stop, Signal.SILENT))
        looked_at = origin_of(target(claim))
        hand.wants_robots = lambda origin, now: origin != looked_at and self._robots.is_wanted(origin, now)
        request = request_of(self._site, claim, further=look.further)
        answer = self._http.get(request, hand) if self._browser is None else self._browser.get(request, hand)
        try:
            reading = reading_of(self._site, answer, claim)
        except Exception as bug:  # noqa: BLE001 - a reader in the making: its author is told where it failed
            return Tried(Judgement(reader_failed(bug), Signal.SILENT), answer)
        return Tried(judge(answer, reading, claim, hand.now()), answer, reading)

    def _left(self, claim: Claim, hand: Hand, tried: Tried) -> None:
        self._store.leave(claim, hand.trail(tried.answer), self._said(claim, hand, tried.judged))

    def _said(self, claim: Claim, hand: Hand, judged: Judgement) -> Said:
        before = hand.pace()
        if isinstance(judged.meaning, PutBack):
            return Said(Label.PUT_BACK, judged.meaning.reason, before.pace)
        around = Circumstances(
            now=hand.now(),
            chance=0.0,
            site_rest=None if self._site.many_hosts else self._site.rest,
            host=before,
            interval=hand.interval(),
            host_floor=self._site.host_floors.get(hand.where, HOST_DEFAULT),
        )
        settled = decide(claim, judged, Known(), around)
        label = Label.UNCHANGED if settled.good else settled.label
        return Said(label, settled.detail, settled.host.pace, settled.host_wait, settled.series_wait)


def reader_failed(bug: Exception) -> Failed:
    """A reader that raised: what, and where."""
    last = traceback.extract_tb(bug.__traceback__)[-1]
    return Failed(f"its reader failed: {type(bug).__name__}: {bug} ({last.filename}, line {last.lineno})", "fault")


def _turn(shut: Shut) -> timedelta | None:
    """How long to wait for a gate of mere pace; None: it is another."""
    if shut.reason not in TURNS or shut.wait is None:
        return None
    return min(shut.wait, LOOK_AGAIN) if shut.reason == IN_HAND else max(shut.wait, timedelta(0))
