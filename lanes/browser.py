"""A GET through the browser: asked by rows, answered as a value (DESIGN 7).

Owns the waiting for a page: its Poll's lease while it queues, and when it is given up.  Refuses to own: Chrome (`browser_sidecar`, never
imported), and meaning (`lanes.core.outcome`).  Must never break: a lost browser charges no Series, whoever notices says so once, and what
was sent is told, whatever became of it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeVar, assert_never
from uuid import UUID

from lanes.core.answer import Answer, Forbidden, NoResponse, Postponed, Response, Sent
from lanes.core.pages import LATE, LEASE, OTHERS_FIRST, PATIENCE, RENEW, NotShown, Opened, PageAsked, Shown
from lanes.core.urls import split
from lanes.errors import DatabaseAway
from lanes.fetch.http import Request
from lanes.fetch.permits import Go, Wait
from lanes.sites import Site
from lanes.store.browsing import AskingStore, Page, Standing

LOOK: Final = 1.0
"""s between two looks at the row, where no bell rings, and between two tries while Postgres is away."""

T = TypeVar("T")


class InHand(Protocol):
    """What a page needs of the Poll that asks for it (`lanes.hand`), or of whoever tries a URL."""

    @property
    def token(self) -> UUID:
        """The lease."""

    @property
    def host_id(self) -> int:
        """The host that it entered."""

    @property
    def series_id(self) -> int | None:
        """Its Series, where it has one."""

    @property
    def suspect(self) -> bool:
        """Whether its last page lost the browser."""

    @property
    def lease_until(self) -> datetime:
        """When its lease ends."""

    def now(self) -> datetime:
        """Postgres time."""

    def hop(self, host: str, origin: str) -> Go | Wait:
        """As of `lanes.fetch.permits`."""

    def was_sent(self, sent: Sent) -> None:
        """A request of it was written by another process."""

    def lease_renewed(self, lease: timedelta) -> None:
        """Its lease ends so long from now."""


class Browser:
    """One per Lane process.  `stop` ends waits.  `ticks` is monotonic time, in seconds."""

    def __init__(
        self, store: AskingStore, site: Site, stop: threading.Event, ticks: Callable[[], float] = time.monotonic
    ) -> None:
        if site.rendering is None:
            raise ValueError(f"the Site {site.name} needs no browser")
        self._store, self._site, self._rendering = store, site.name, site.rendering
        self._stop, self._ticks = stop, ticks
        self._bell = store.bell()

    def get(self, request: Request, hand: InHand) -> Answer:
        """The page at the request's URL.  Whatever happens to it is a value; raises DatabaseAway alone."""
        parts = split(request.url)
        if parts is None:
            raise ValueError("a URL that nobody can be asked by is not claimed")
        if request.further and isinstance(wait := hand.hop(parts.host, parts.origin), Wait):
            return Postponed(wait.reason, wait.delay)
        asked = PageAsked(
            hand.token,
            self._site,
            request.url,
            request.hosts,
            self._rendering.landmark,
            self._rendering.settles_for,
        )
        standing = self._store.ask(asked, hand.host_id, suspect=hand.suspect)
        if standing.trouble is not None:
            return _postponed(standing, ())
        try:
            answer = self._awaited(request.url, parts.host, hand)
        except BaseException:
            with suppress(DatabaseAway):
                self._store.withdraw(hand.token, hand.host_id, standing.at)
            raise
        return self._left(answer, Sent(request.url, parts.host, None, standing.at), hand)

    def close(self) -> None:
        """Ends the bell's connection."""
        self._bell.close()

    def _awaited(self, url: str, host: str, hand: InHand) -> Answer:
        sent: tuple[Sent, ...] = ()
        left: str | None = None
        taken_at: float | None = None
        renew_at = RENEW
        while (page := self._insisted(lambda: self._store.look(hand.token), hand)) is not None:
            if page.sent_at is not None and not sent:
                hand.was_sent(Sent(url, host, None, page.sent_at))
            sent = _sent(page, url, host)
            if page.opened is not None:
                return _answer(page.opened, sent, hand.now())
            if page.sent_at is not None and not page.taken:
                left = page.left
                break
            if (given_up := self._given_up(page, sent, taken_at)) is not None:
                return given_up
            if taken_at is None and (page.taken or page.waited >= renew_at):
                # Once more when a tab has it, so that its time stands well inside the lease however long it queued.
                if not self._store.renew(hand.host_id, hand.series_id, hand.token, LEASE):
                    return Postponed("its lease has ended", timedelta(0), sent)
                hand.lease_renewed(LEASE)
                taken_at, renew_at = self._ticks() if page.taken else None, page.waited + RENEW
            self._bell.wait(LOOK)
        # What was in a tab then may have ended it.
        wait = timedelta(0) if taken_at is None else OTHERS_FIRST
        return Postponed(left or "the browser's sidecar ended with it", wait, sent)

    def _given_up(self, page: Page, sent: tuple[Sent, ...], taken_at: float | None) -> Postponed | None:
        """Why the page is not waited for any longer, if it is not.  What has its time is our own to measure: a clock may leap."""
        if page.stopped is not None:
            return _postponed(page.stopped, sent)
        if page.browser.trouble is not None:
            given_up = _postponed(page.browser, sent)
            lost = page.browser.lost and page.taken
            return replace(given_up, wait=given_up.wait + OTHERS_FIRST, lost=True) if lost else given_up
        if taken_at is not None and self._ticks() - taken_at > (PATIENCE + LATE).total_seconds():
            self._store.lose()  # which the next look finds
        return Postponed("stopping", timedelta(0), sent) if self._stop.is_set() else None

    def _left(self, answer: Answer, asked: Sent, hand: InHand) -> Answer:
        """The page is withdrawn; what is given up may have been sent since it was looked at last, or its row may be gone with that."""
        if not isinstance(answer, Postponed):
            with suppress(DatabaseAway):  # what was read is not lost for it; the Lane's next page takes the row away
                self._store.withdraw(hand.token, hand.host_id, asked.sent_at)
            return answer
        sent_at = self._insisted(lambda: self._store.withdraw(hand.token, hand.host_id, asked.sent_at), hand)
        if answer.requests or sent_at is None:
            return answer
        sent = replace(asked, sent_at=sent_at)
        hand.was_sent(sent)
        return replace(answer, requests=(sent,))

    def _insisted(self, ask: Callable[[], T], hand: InHand) -> T:
        """What Postgres says, as soon as it is back: only it knows whether the page was sent.  Raises DatabaseAway when the lease is over
        first, or the Lane must end."""
        while True:
            try:
                return ask()
            except DatabaseAway:
                if self._stop.wait(LOOK) or hand.now() >= hand.lease_until:
                    raise


def _sent(page: Page, url: str, host: str) -> tuple[Sent, ...]:
    """The request of a page, once it is written."""
    if page.sent_at is None:
        return ()
    status = page.opened.status if isinstance(page.opened, Shown) else None
    wire_bytes = len(page.opened.html) if isinstance(page.opened, Shown) else 0
    return (Sent(url, host, None, page.sent_at, status, wire_bytes),)


def _postponed(standing: Standing, sent: tuple[Sent, ...]) -> Postponed:
    return Postponed(standing.trouble or "", max(standing.wait or timedelta(0), timedelta(0)), sent)


def _answer(opened: Opened, sent: tuple[Sent, ...], now: datetime) -> Answer:
    latency = now - sent[-1].sent_at if sent else timedelta(0)
    match opened:
        case Shown(status=status, headers=headers, url=url, html=html, held=held):
            return Response(status, headers, html, url, sent, latency, held=held)
        case NotShown(forbidden=str() as address):
            return Forbidden(sent[-1].url if sent else "", address, sent)
        case NotShown(trouble=trouble, detail=detail, line_proved=proved):
            return NoResponse(trouble, detail, sent, proved)
        case _:
            assert_never(opened)
