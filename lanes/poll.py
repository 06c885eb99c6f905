"""One Poll in hand, from its claim to its end: fetch, read, decide, settle.

Owns the order of these steps.  Refuses to own: when to claim (`lane`), and what a fetch may do on its way (`hand`).
Must never break: what was found is written under the claim's own token or not at all, and a database error is never swallowed.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from lanes.browser import Browser
from lanes.core import headers, pages
from lanes.core.answer import Answer, Response
from lanes.core.chapters import Document, Listed, NotRecognised, Reading, distinct, guids_lie
from lanes.core.circumstances import Circumstances, Known
from lanes.core.claim import LEASE, Claim
from lanes.core.consequences import Retire
from lanes.core.line import DOWN, PROBE_EVERY
from lanes.core.outcome import Disallowed, Failed, Judgement, Label, PutBack, Read, judge, wants_reading
from lanes.core.pace import HOST_DEFAULT, Signal
from lanes.core.settlement import Settlement, decide
from lanes.core.urls import split
from lanes.errors import BadUrl, DatabaseAway
from lanes.fetch.http import Http, Request
from lanes.fetch.robots import RobotsFirst, origin_of, target
from lanes.hand import Hand
from lanes.sites import Site, recognise, site_of
from lanes.sites.discover import discover
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from lanes.store.settled import Trail

log = logging.getLogger("lanes.poll")

UNCONDITIONAL_AFTER = timedelta(
    days=7
)  # a server that says 304 while its body changes is found out within a week (CASES C2)
INSIST_FIRST, INSIST_LONGEST = 0.2, 5.0  # seconds between tries to write a finished Poll while Postgres is away

POISON = 3
"""Workers that died with a Series in a row, or losses of the browser by its page: then it is not fetched, and has failed (DESIGN 4)."""
ABANDONED, LOST_BY_IT = "abandoned three times in a row", "its page lost the browser three times in a row"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of one Poll, for the metrics.  `seconds` is the time in the fetch; `held` False: its lease had run out; `proved`: whether
    it showed that our own line works (None: it was not tried); `retired`: its Series was given up."""

    label: Label
    seconds: float
    wire_bytes: int
    new_chapters: int
    backed_off: bool
    told_to_wait: bool
    held: bool = True
    proved: bool | None = None
    retired: bool = False


class Poller:
    """Carries claimed Polls of one Site; safe for threads.  `chance` gives random numbers from 0 to 1.  `browser`: its pages are read
    through it, its robots.txt by `http` all the same."""

    def __init__(
        self,
        site: Site,
        store: PollStore,
        http: Http,
        lease: timedelta,
        chance: Callable[[], float] = random.random,
        browser: Browser | None = None,
    ) -> None:
        self._site, self._store, self._http, self._lease, self._chance = site, store, http, lease, chance
        self._browser = browser
        self._robots = RobotsFirst(http, store.robots, pages=not site.feed, hosts=site.hosts)

    def carry(self, claim: Claim, asked: float) -> Ended:
        """One Poll whole.  `asked` is the monotonic instant from before its claim was asked for."""
        hand = Hand(self._store, claim, asked, self._lease, self._http.stop, self._site_of)
        ended = self._carried(claim, hand, time.monotonic())
        if ended.proved is False or (claim.us and ended.proved):
            self._look_at_line(claim, proved=ended.proved)
        return ended

    def _carried(self, claim: Claim, hand: Hand, began: float) -> Ended:
        try:
            return self._carry(claim, hand, began)
        except DatabaseAway as away:
            why = PutBack(str(away), timedelta(0), claim.dial, claim.resume)
            return self._put_back(claim, why, hand, None, began)
        except Exception as bug:
            # A document that breaks us costs its own Series a failure, and nobody else anything.
            log.exception("a bug ended a Poll key=%s", claim.key)
            failed = Judgement(Failed(f"a fault of ours: {type(bug).__name__}", "fault", reread=True), Signal.SILENT)
            return self._settle(claim, None, failed, hand, began)

    def _look_at_line(self, claim: Claim, *, proved: bool) -> None:
        """Rare: an attempt without proof, or the probe of a machine whose line is down.  Lost with the database, the next one makes up."""
        try:
            if claim.us:
                self._store.line.probed(proved=proved)
            else:
                self._store.line.judge()
        except DatabaseAway as away:
            log.warning("our own line was not looked at key=%s cause=%s", claim.key, away)

    def postpone(self, claim: Claim, asked: float, wait: timedelta, reason: str) -> Ended:
        """Puts a claim back that was not begun."""
        hand = Hand(self._store, claim, asked, self._lease, site_of=self._site_of)
        return self._put_back(claim, PutBack(reason, wait, claim.dial, claim.resume), hand, None, time.monotonic())

    def _carry(self, claim: Claim, hand: Hand, began: float) -> Ended:
        if claim.abandoned >= POISON:
            by_worker = self._browser is None or claim.lapsed
            failed = Judgement(Failed(ABANDONED if by_worker else LOST_BY_IT, "abandoned"), Signal.SILENT)
            return self._settle(claim, None, failed, hand, began)
        look = hand.look = self._robots.look(claim, hand, hand.now)
        if look.stop is not None:
            return self._stopped(claim, look.stop, hand, None, began)
        looked_at = origin_of(target(claim))
        hand.wants_robots = lambda origin, now: origin != looked_at and self._robots.is_wanted(origin, now)
        request = request_of(self._site, claim, further=look.further)
        answer = self._http.get(request, hand) if self._browser is None else self._browser.get(request, hand)
        reading = reading_of(self._site, answer, claim)
        judged = judge(answer, reading, claim, hand.now())
        if isinstance(judged.meaning, PutBack):
            return self._put_back(claim, judged.meaning, hand, answer, began)
        if isinstance(reading, NotRecognised) and claim.discovering and isinstance(answer, Response):
            stop = self._robots.page(claim.url, hand.now()) or self._robots.page(answer.url, hand.now())
            if stop is not None:
                return self._stopped(claim, stop, hand, answer, began)
            found = self._discover(claim, answer, hand, began)
            if found is not None:
                return found
        return self._settle(claim, answer, judged, hand, began)

    def _stopped(
        self, claim: Claim, stop: PutBack | Disallowed, hand: Hand, answer: Answer | None, began: float
    ) -> Ended:
        """robots.txt stands in the way."""
        if isinstance(stop, PutBack):
            return self._put_back(claim, stop, hand, answer, began)
        return self._settle(claim, answer, Judgement(stop, Signal.SILENT), hand, began)

    def _settle(self, claim: Claim, answer: Answer | None, judged: Judgement, hand: Hand, began: float) -> Ended:
        trail, seconds = hand.trail(answer), time.monotonic() - began
        if claim.us and trail.proof is False:
            return self._put_back(claim, PutBack(DOWN, PROBE_EVERY, claim.dial, claim.resume), hand, answer, began)
        around = Circumstances(
            now=hand.now(),
            chance=self._chance(),
            site_rest=None if self._site.many_hosts else self._site.rest,
            host=hand.pace(),
            refusing=hand.is_refusing(),
            interval=hand.interval(),
            passed=hand.passed(trail.requests),
            host_floor=self._site.host_floors.get(hand.where, HOST_DEFAULT),
            latency=answer.latency if isinstance(answer, Response) and self._browser is None else None,
            unconditional=isinstance(answer, Response) and not answer.conditional,
            sent_at=trail.requests[-1].sent_at if trail.requests else None,
        )

        def write() -> tuple[bool, Settlement]:
            if isinstance(judged.meaning, Read):
                return self._store.settle_document(
                    claim,
                    _listed(judged.meaning.document, claim),
                    lambda known: decide(claim, judged, known, around),
                    trail,
                )
            settled = decide(claim, judged, Known(), around)
            return self._store.settle(claim, settled, trail), settled

        written = self._insist(write, claim, hand)
        if written is None:
            return Ended(Label.ABANDONED, seconds, _wire_bytes(trail), 0, False, False, held=False)
        held, settled = written
        level = logging.DEBUG if settled.label is Label.UNCHANGED and held else logging.INFO
        detail = settled.detail or ""
        log.log(
            level,
            "a Poll ended key=%s outcome=%s detail=%s%s",
            claim.key,
            settled.label,
            detail,
            "" if held else " held=False",
        )
        backed_off = settled.host.pace > around.host.pace
        waits = settled.host_wait is not None or settled.series_wait is not None
        new = len(settled.chapters) if held else 0
        retired = held and any(isinstance(each, Retire) for each in settled.consequences)
        return Ended(settled.label, seconds, _wire_bytes(trail), new, backed_off, waits, held, trail.proof, retired)

    def _put_back(self, claim: Claim, why: PutBack, hand: Hand, answer: Answer | None, began: float) -> Ended:
        trail = hand.trail(answer)

        def write() -> bool:
            onward = None if why.resume is None else split(why.resume.url)
            queue = None if onward is None else self._store.host_id(onward.host, site=self._site_of(onward.host))
            return self._store.put_back(claim, why, trail, queue)

        held = self._insist(write, claim, hand)
        log.debug("a Poll was put back key=%s reason=%s wait=%s", claim.key, why.reason, why.wait)
        seconds = time.monotonic() - began
        return Ended(Label.PUT_BACK, seconds, _wire_bytes(trail), 0, False, False, bool(held), trail.proof)

    def _site_of(self, host: str) -> str:
        """The Site of a host, by the registry; a Site of one host or a few stays at its own."""
        return self._site.name if not self._site.many_hosts else site_of(host).name

    def _discover(self, claim: Claim, answer: Response, hand: Hand, began: float) -> Ended | None:
        """A new Series whose URL is a web page: follow the first feed that the page names, if it names one."""
        url = self._feed_of(answer, claim)
        if url is None:
            return None
        trail = hand.trail(answer)
        held = self._insist(lambda: self._store.follow_feed(claim, url, trail), claim, hand)
        log.info("a web page named its feed key=%s", claim.key)
        seconds = time.monotonic() - began
        return Ended(Label.FEED_FOUND, seconds, _wire_bytes(trail), 0, False, False, bool(held), trail.proof)

    def _feed_of(self, answer: Response, claim: Claim) -> str | None:
        for link in discover(answer.body, answer.headers.get("content-type"), answer.url):
            with suppress(BadUrl):
                site, url = recognise(link.url)
                if site.name == self._site.name and url != claim.url:
                    return url
        return None

    def _insist(self, write: Callable[[], T], claim: Claim, hand: Hand) -> T | None:
        """Writes what was found, however often Postgres goes away meanwhile, until the lease ends or the process may wait no
        longer; None: it was lost with the lease."""
        pause = INSIST_FIRST
        while True:
            try:
                return write()
            except DatabaseAway as away:
                ends_first = hand.now() + timedelta(seconds=pause) >= hand.lease_until
                if ends_first or self._http.stop.is_set():
                    log.warning("a finished Poll is lost with its lease key=%s cause=%s", claim.key, away)
                    return None
                log.warning("a finished Poll waits to be written key=%s cause=%s", claim.key, away)
            self._http.stop.wait(pause)
            pause = min(pause * 2, INSIST_LONGEST)


def rows_of(site: Site, database: Database, machine: str) -> PollStore:
    """The rows of a Site as the registry says they are used: its Lane and a try differ in nothing there."""
    return PollStore(
        database,
        site.name,
        machine,
        many_hosts=site.many_hosts,
        named_numbers=site.named_numbers,
        republishes=site.republishes,
        browser=site.browser,
        paces=site.slower_hosts,
    )


def lease_of(site: Site) -> timedelta:
    """How long a claimed Poll of a Site may take."""
    return pages.LEASE if site.browser else LEASE


def request_of(site: Site, claim: Claim, *, further: bool) -> Request:
    """What a Poll asks.  `further`: another request of it went before; so it is, too, where a chain goes on at a host that no claim of this
    Lane enters, because it is another Site's."""
    resume = None if claim.resume is None or claim.resume.robots else claim.resume
    onward = None if resume is None else split(resume.url)
    due = claim.unconditional_at is None or claim.claimed_at - claim.unconditional_at >= UNCONDITIONAL_AFTER
    sent_back = None if due or claim.memory.distrusted else claim.validators
    return Request(
        claim.url,
        etag=sent_back.etag if sent_back else None,
        last_modified=sent_back.last_modified if sent_back else None,
        validators_url=sent_back.url if sent_back else None,
        accept=site.accept,
        address=claim.address,
        dial=claim.dial,
        resume=resume,
        further=further or (onward is not None and onward.host != claim.host),
        hosts=site.hosts,
    )


def reading_of(site: Site, answer: Answer, claim: Claim) -> Reading | None:
    """What the Site's reader finds in an answer that must be read; None: it need not be."""
    if not isinstance(answer, Response) or not wants_reading(answer, claim):
        return None
    at = headers.date(answer.headers) or answer.requests[-1].sent_at
    return site.read(answer.body, answer.headers.get("content-type"), answer.url, at)


def _listed(document: Document, claim: Claim) -> Listed:
    """What the decision may ask about: guid alone counts unless this document, or an earlier one, showed that it lies."""
    return distinct(document.items, guid_alone=claim.guid_alone and not guids_lie(document.items))


def _wire_bytes(trail: Trail) -> int:
    return sum(sent.wire_bytes for sent in trail.requests)
