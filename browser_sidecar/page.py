"""One page, opened in a fresh context of a running Chrome, waited for and read (DESIGN 7).

Owns what is waited for, for how long, and what the page came to.  Refuses to own: rows, the process, the way to the network, how a page is
looked at (`sight`).  Must never break: whatever a page does, it ends in its time, nothing of it is left for the next, and what it came
to can be written down.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from browser_sidecar.cdp import Cdp, CdpError, Declined, Gone, Late
from browser_sidecar.failures import not_shown
from browser_sidecar.proxy import Gate
from browser_sidecar.seen import CRASHED, MOST, NO_BUFFERS, NOWHERE, STOPPED_AT_BIRTH, Document, Seen
from browser_sidecar.sight import Look, Sight
from browser_sidecar.storable import storable
from browser_sidecar.unwanted import MEDIA, patterns
from lanes.core.answer import Trouble
from lanes.core.challenge import by_header, sign_of
from lanes.core.pages import PATIENCE, SETTLING, NotShown, Opened, PageAsked, Shown
from lanes.core.urls import LONGEST_URL, split
from lanes.fetch.guard import Guard
from lanes.fetch.limits import LIMITS

log = logging.getLogger("browser_sidecar.page")

Sending = Callable[[float], timedelta | None]
"""Asks, no longer than until a monotonic instant, whether a page may be sent: after what wait; None: not at all."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds."""

    document: float = LIMITS.whole
    """From the request to a document's header, redirects included: as for any fetch."""
    settling: float = SETTLING.total_seconds()
    settled: float = SETTLING.total_seconds() / 2
    """After which a page with `settles_for` is read as it is: what comes later than that comes seldom."""
    look: float = 0.25
    """Between two looks: at a page that is still on its way, or that changes all the time."""
    watch: float = 5.0
    """Within which a page whose document is there says at once that it has changed: a look costs the sidecar more than anything else."""
    watch_elsewhere: float = 1.0
    """The same where no gate judges addresses, and a page may have to be ended for one."""
    busy: float = 5.0
    """For Chrome to answer a look, and to end a page; a page whose scripts run on may keep it from either."""
    call: float = 15.0
    """For Chrome to answer anything else."""
    whole: float = PATIENCE.total_seconds() - 15.0
    """From when a tab takes a page, Chrome's start included, until it is answered: inside the time after which the browser would be called
    lost.  Where less than `document` of it is left, nothing is sent any more."""
    last: float = 10.0
    """After that, for Chrome to answer whatever it was asked of the page; `busy`, to end it, is what then remains of the 15."""


TIMES: Final = Times()


@dataclass(frozen=True, slots=True)
class Lost:
    """The browser did not do what it should, for the reason in words; no fault of the page's Site is known."""

    why: str


@dataclass(frozen=True, slots=True)
class Visit:
    """What a page came to; None: nothing was sent, its Poll is over or too little of its time was left.  `later`: s after the instant that
    was noted (`sending`), at most, its last document's request was written (DESIGN 4, Sent).  `received`: bytes that it drew through the
    proxy; `forbidden`: how often it asked there for what it may not.  `is_left`: Chrome did not end it, and is fit for no other page."""

    came: Opened | Lost | None
    later: float = 0.0
    received: int = 0
    forbidden: int = 0
    is_left: bool = False


def open_page(
    cdp: Cdp,
    asked: PageAsked,
    *,
    agent: str,
    gate: Gate | None,
    guard: Guard,
    sending: Sending,
    until: float,
    times: Times = TIMES,
) -> Visit:
    """What the page came to by the monotonic instant `until`.  `agent` is the whole User-Agent.  `gate`: its way to the network; None in a
    Chrome elsewhere, which has its own.  `sending` is called right before the request is written, and notes that instant."""
    context, tab, later, is_left = None, None, 0.0, False
    came: Opened | Lost | None = None
    try:
        context = _context(cdp, gate)
        tab = _Tab(cdp, context, asked, agent, gate, guard, times)
        asks, last = time.monotonic(), until - times.document
        wait = sending(last) if asks <= last else None
        if wait is not None and time.monotonic() + wait.total_seconds() <= last:
            came = tab.opened(wait.total_seconds(), until)
            later = max(0.0, tab.written_at - asks - wait.total_seconds())
    except CdpError as error:
        came = Lost(str(error))
    finally:
        if tab is not None:
            tab.forget()
        if context is not None:
            is_left = not _disposed(cdp, context, times)
    received, forbidden = (0, 0) if gate is None else (gate.received, len(gate.forbidden))
    return Visit(came, later, received, forbidden, is_left)


def _context(cdp: Cdp, gate: Gate | None) -> str:
    way = {} if gate is None else {"proxyServer": f"http://127.0.0.1:{gate.port}", "proxyBypassList": "<-loopback>"}
    made: str = cdp.call("Target.createBrowserContext", {"disposeOnDetach": True, **way})["browserContextId"]
    return made


def _disposed(cdp: Cdp, context: str, times: Times) -> bool:
    """Whether Chrome has ended whatever is left of the page."""
    try:
        cdp.call("Target.disposeBrowserContext", {"browserContextId": context}, timeout=times.busy)
    except Gone:
        return False
    except CdpError as error:
        log.warning("Chrome did not end a page cause=%s", error)
        return False
    return True


class _Tab:
    """A tab with one page, ready to be sent where the page is."""

    def __init__(
        self,
        cdp: Cdp,
        context: str,
        asked: PageAsked,
        agent: str,
        gate: Gate | None,
        guard: Guard,
        times: Times,
    ) -> None:
        self._cdp, self._asked, self._gate, self._times = cdp, asked, gate, times
        self._last = math.inf
        self._held_since: float | None = None
        self._judged: tuple[tuple[str, ...], str | None, bool] | None = None
        _, made = cdp.call_all(
            [
                ("Browser.setDownloadBehavior", {"behavior": "deny", "browserContextId": context}),
                ("Target.createTarget", {"url": "about:blank", "browserContextId": context}),
            ],
            timeout=times.call,
        )
        self._frame: str = made["targetId"]  # Chrome names a target after the frame at its top
        attached = {"targetId": self._frame, "flatten": True}
        self._session: str = cdp.call("Target.attachToTarget", attached, timeout=times.call)["sessionId"]
        self._seen = Seen(cdp, self._session, self._frame, asked, gate, guard, agent)
        self._sight = Sight(self._call, self._frame, asked)
        cdp.listen(self._session, self._seen.hear)
        kinds = () if gate is None else ("Document", *MEDIA)
        # Where no gate judges, every request that can be is looked at before it is made.
        held = [{"urlPattern": "*", "resourceType": kind} for kind in kinds]
        held += [{"urlPattern": pattern} for pattern in (patterns() if kinds else ["*"])]
        first: list[tuple[str, Mapping[str, Any]]] = [
            ("Inspector.enable", {}),
            ("Page.enable", {}),
            ("Network.enable", NO_BUFFERS),
            ("Emulation.setUserAgentOverride", {"userAgent": agent}),
            ("Fetch.enable", {"handleAuthRequests": True, "patterns": held}),
        ]
        if gate is None:
            first.append(("Target.setAutoAttach", STOPPED_AT_BIRTH))
        cdp.call_all(first, self._session, times.call)

    @property
    def written_at(self) -> float:
        """The monotonic instant at which its last document's request was written, or now: never one that is too early."""
        return self._seen.written_at or time.monotonic()

    def opened(self, wait: float, until: float) -> Opened | Lost:
        """Sent off after `wait` seconds, and answered before `until`."""
        self._last = until + self._times.last
        came = self._sent(wait, until)
        if isinstance(came, Lost):
            return came
        if isinstance(came, NotShown) and (self._seen.answered or (self._gate is not None and self._gate.received)):
            came = replace(came, line_proved=True)  # whatever it was that came, it came by our line
        return storable(came)

    def forget(self) -> None:
        """Nobody hears of it any more."""
        self._seen.forget()

    def _sent(self, wait: float, until: float) -> Opened | Lost:
        begins = min(time.monotonic() + wait, until)
        while (left := begins - time.monotonic()) > 0 and not self._seen.crashed:
            self._seen.wait(left)
        within = max(0.1, min(self._times.document, until - time.monotonic()))
        try:
            sent = self._call("Page.navigate", {"url": self._asked.url}, timeout=within)
        except Late:
            return self._gate_said() or NotShown(Trouble.TIMEOUT, f"no answer within {within:.0f} s")
        except Declined as declined:
            return NotShown(Trouble.BAD_URL, f"Chrome: {declined.message}"[:200])
        if (error := sent.get("errorText")) is not None:
            return self._nothing(error)
        try:
            return self._settled(until)
        except Gone:
            return Lost(CRASHED if self._seen.crashed else self._cdp.dead or "the tab is gone")

    def _settled(self, until: float) -> Opened | Lost:
        """Looks at the page until it is what it will be."""
        before: Look | None = None
        while True:
            if (stopped := self._stopped()) is not None:
                return stopped
            document = self._seen.current
            look, now = self._look(document, before, until), time.monotonic()
            shown = document if document is self._seen.current else None
            if shown is not None and (came := self._judged_now(shown, look, now, until)) is not None:
                return came
            if now >= until:
                return NotShown(Trouble.TIMEOUT, "one document after the other")
            before = look if document is not None and document.ended else None
            self._seen.wait(self._times.look)

    def _judged_now(self, document: Document, look: Look | None, now: float, until: float) -> Opened | None:
        """What the document that is shown comes to; None: it is still waited for."""
        has_landmark = look is not None and look.landmark
        held, clears = (None, False) if has_landmark and not by_header(document.headers) else self._held(document, look)
        if held is not None:
            self._held_since = now if self._held_since is None else self._held_since
            waits = clears and now < min(until, self._held_since + self._times.settling)
            return None if waits else self._read(document, held)
        over = now >= min(until, document.at + self._times.settling)
        ended = document.ended or (not document.told and look is not None and look.ready == "complete")
        if ended and look is not None and (over or self._is_there(document, look, now)):
            return self._read(document)
        if over:
            why = "its scripts never came to rest" if ended else "the document did not end in time"
            return NotShown(Trouble.TIMEOUT, why)
        return None

    def _is_there(self, document: Document, look: Look, now: float) -> bool:
        """Whether the page is what was waited for, or nothing that is worth a wait."""
        settled = look.settled and look.ready == "complete" and now >= document.at + self._times.settled
        return look.landmark or settled or (document.status >= 400 and look.ready == "complete")

    def _stopped(self) -> NotShown | Lost | None:
        """What ends a page whatever it shows."""
        seen, document = self._seen, self._seen.current
        if seen.crashed:
            return Lost(CRASHED)
        if seen.forbidden is not None:
            return NotShown(Trouble.CONNECT, f"{seen.forbidden} may not be asked", forbidden=seen.forbidden)
        if seen.left is not None:
            trouble = Trouble.BAD_URL if seen.left == NOWHERE else Trouble.LEFT
            return NotShown(trouble, f"it leads to {seen.left}"[:200])
        if seen.went > MOST:
            return NotShown(Trouble.HOPS, "one document after the other")
        if (size := self._oversize()) is not None:
            return NotShown(Trouble.OVERSIZE, size)
        if seen.broken is not None:
            return self._gate_said() or not_shown(seen.broken, answered=document is not None)
        if document is not None and document.failed is not None:
            return not_shown(document.failed, answered=True)
        return None

    def _oversize(self) -> str | None:
        """Which cap the page is past."""
        if self._gate is not None and self._gate.is_spent:
            return f"more than {self._gate.received} bytes in all"
        for each in filter(None, (self._seen.current, self._seen.coming)):
            if self._seen.wire(each) > LIMITS.wire:
                return f"more than {LIMITS.wire} bytes on the wire"
            if each.size > LIMITS.decoded:
                return f"more than {LIMITS.decoded} bytes"
        return None

    def _nothing(self, error: str) -> Opened | Lost:
        """No document is shown: nothing came, or what came is nothing to show (a download, 204, a status without a page)."""
        aborted, heard = error == "net::ERR_ABORTED", self._gate is None or self._gate.received > 0
        if aborted:  # so says a tab, too, before it says that it has crashed
            with suppress(Late, Declined):
                self._call("Runtime.evaluate", {"expression": "0"}, timeout=self._times.busy)
        if isinstance(stopped := self._stopped(), Lost):
            return stopped
        if stopped is not None and stopped.forbidden is not None:
            return stopped
        if stopped is not None and stopped.trouble in (Trouble.LEFT, Trouble.BAD_URL, Trouble.HOPS, Trouble.OVERSIZE):
            return stopped
        if (said := self._gate_said()) is not None:
            return said
        came = self._seen.coming
        if came is not None and error in ("net::ERR_ABORTED", "net::ERR_HTTP_RESPONSE_CODE_FAILURE"):
            return Shown(came.status, came.headers, _plain(came.url), b"", by_header(came.headers))
        if aborted and not heard:
            return Lost("Chrome gave up a request that was not answered")
        # Of an answer that it has no use for (304, a redirect to a script) Chrome does not even tell.
        return not_shown(error, answered=came is not None or (aborted and self._gate is not None))

    def _gate_said(self) -> NotShown | None:
        """Why the host that the page's frame went to last could not be reached."""
        parts = split(self._seen.asking)
        failure = self._gate.failure(parts.host, parts.port) if self._gate is not None and parts is not None else None
        if failure is None:
            return None
        return NotShown(failure.trouble, failure.detail, failure.forbidden, failure.line_proved)

    def _look(self, document: Document | None, before: Look | None, until: float) -> Look | None:
        """The page now; or, where it was looked at `before`, once it is otherwise; as it is after a while, and where its time turns."""
        if document is None:
            return None
        now, times = time.monotonic(), self._times
        watch = times.watch_elsewhere if self._gate is None else times.watch
        held = document.at if self._held_since is None else self._held_since
        turns = (document.at + times.settled, document.at + times.settling, held + times.settling, until)
        within = 0.0 if before is None else min([watch, *(turn - now for turn in turns if turn > now)])
        return self._sight.look(document.loader, times.busy, before, within)

    def _held(self, document: Document, look: Look | None) -> tuple[str | None, bool]:
        """What refuses us, in words, and whether it may clear by itself; looked at again when the page has changed."""
        header = by_header(document.headers)
        if look is None:
            return header, True
        key = (document.loader, look.url, look.ready, look.title)
        if self._judged is None or self._judged[0] != key:
            if (head := self._sight.head(document.loader, self._times.busy)) is None:
                return header, True
            sign = sign_of(head, document.headers.get("content-type"), look.url)
            held = header if sign is None else sign.what
            self._judged = (key, held, sign is None or sign.clears)
        return self._judged[1], self._judged[2]

    def _read(self, document: Document, held: str | None = None) -> Opened | None:
        """The page as it is now; None where it went on meanwhile, to another document."""
        page = self._sight.page(document.loader, self._times.call)
        if page is None:  # it was just going, or is busy: which of them shows who is there
            self._sight.look(document.loader, self._times.busy)
        if document is not self._seen.current or self._sight.has_gone_on(document.loader):
            return None
        if page is None:
            return NotShown(Trouble.TIMEOUT, "its scripts never came to rest")
        if max(page.characters, len(page.html)) > LIMITS.decoded:
            return NotShown(Trouble.OVERSIZE, f"more than {LIMITS.decoded} bytes of HTML")
        url = page.url if len(page.url) <= LONGEST_URL else document.url
        return Shown(document.status, document.headers, _plain(url), page.html, held)

    def _call(
        self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> Mapping[str, Any]:
        """Asks the page's session, in the time that is left.  Raises as `Cdp.call`; Gone, too, where the tab has crashed."""
        if self._seen.crashed:
            raise Gone(CRASHED)
        left = max(0.0, self._last - time.monotonic())
        return self._cdp.call(
            method, params, self._session, min(left, self._times.call if timeout is None else timeout)
        )


def _plain(url: str) -> str:
    return url.partition("#")[0]
