"""robots.txt: asked for in the turn of a Poll, and read for what it says to us (RFC 9309, DESIGN 5.5).

Owns that a Poll looks at its origin's robots.txt first, and what stops it there.  Refuses to own: how long what was heard holds
(`lanes.core.robots`), the crawl delay's place in the host bucket (`lanes.store.robots`).  Must never break: what is asked here passes the
same permits as any hop, and a feed document is never kept from its Readers by Disallow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Lock
from typing import Final, Protocol, assert_never

from protego import Protego

from lanes.core import headers
from lanes.core.answer import Answer, Forbidden, NoResponse, Postponed, Response, Resume, Sent, Trouble
from lanes.core.blame import proof
from lanes.core.claim import Claim
from lanes.core.outcome import NOT_PUBLIC, Disallowed, PutBack
from lanes.core.pace import ASKED_TO_WAIT
from lanes.core.robots import FRESH, LONGEST_DELAY, NOT_ALLOWED, Heard, Robots, Said, Silent, after
from lanes.core.urls import split
from lanes.fetch.http import Http, Request
from lanes.fetch.permits import Permits

PRODUCT: Final = "Lanes"
"""The name in our User-Agent to which a group speaks."""
DEADLINE: Final = 15.0
"""s for robots.txt: with a hop's wait and a whole fetch after it, it stays inside the lease."""
CUT: Final = 512 * 1024
"""Bytes that are read (RFC 9309 2.5 asks for 500 KiB at least); what is behind them counts for nothing."""
REMEMBERED: Final = 8_192
"""Origins whose freshness a Lane keeps in mind, a megabyte; one that it forgot costs its next Poll a look at a row."""

_BOM: Final = b"\xef\xbb\xbf"
_LEADS_NOWHERE: Final = frozenset({Trouble.HOPS, Trouble.LOOP, Trouble.BAD_URL, Trouble.LEFT})
"""As good as a 404 (RFC 9309 2.3.1.2)."""


def origin_of(url: str) -> str | None:
    """Scheme, host and port of a URL, in one spelling; None where nobody can be asked by it."""
    parts = split(url)
    return None if parts is None else parts.origin


def text_of(body: bytes) -> str:
    """The text of a robots.txt as far as it counts: no byte order mark, no line that the cap cut through."""
    if len(body) >= CUT:
        body = body[: max(body.rfind(b"\n", 0, CUT), body.rfind(b"\r", 0, CUT)) + 1]
    return body.removeprefix(_BOM).decode("utf-8", "replace").replace("\0", "\ufffd")


def crawl_delay(text: str) -> timedelta | None:
    """The crawl delay that a robots.txt names for us, an hour at most."""
    delay = Protego.parse(text).crawl_delay(PRODUCT)
    return None if delay is None else timedelta(seconds=min(delay, LONGEST_DELAY.total_seconds()))


def allows(text: str, url: str) -> bool:
    """Whether a robots.txt allows us this URL of its origin."""
    return Protego.parse(text).can_fetch(url, PRODUCT)


def hear(answer: Response | NoResponse | Forbidden, now: datetime) -> Heard:
    """What an answer to the question for robots.txt comes to.  A 429 is a server too busy to say, not one that has nothing to say."""
    match answer:
        case Response(status=status) if 200 <= status < 300:
            text = text_of(answer.body)
            return Said(status, text, crawl_delay(text))
        case Response(status=429):
            return Silent(429, "429 too many requests", headers.delay(answer.headers, now) or ASKED_TO_WAIT)
        case Response(status=status) if 400 <= status < 500:
            return Said(status, "")
        case Response(status=status):
            return Silent(status, f"status {status}", headers.delay(answer.headers, now) if status == 503 else None)
        case NoResponse(trouble=trouble, detail=detail):
            return Said(None, "") if trouble in _LEADS_NOWHERE else Silent(None, f"{trouble}: {detail}")
        case Forbidden(address=address):
            return Silent(None, f"{NOT_PUBLIC}: {address}")
        case _:
            assert_never(answer)


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at robots.txt came to.  `requests` were written for it, and the last one's answer asked its host to wait until
    `wait_until`; `further`: the Poll's own URL is a further hop now; `stop`: it is not asked at all.  `proof` as of `lanes.core.blame`.
    `silence`: why it said nothing to go by."""

    requests: tuple[Sent, ...] = ()
    further: bool = False
    stop: PutBack | Disallowed | None = None
    wait_until: datetime | None = None
    proof: bool | None = None
    silence: str | None = None


class Rows(Protocol):
    """Where what is remembered lives: `lanes.store.robots`."""

    def known(self, origin: str) -> Robots | None:
        """What is remembered of an origin."""

    def keep(self, robots: Robots, host: str, sent_at: datetime | None) -> None:
        """Remembers it, and brings the crawl delay of its host in force, from `sent_at` on."""

    def hold(self, host: str, at: datetime, wait: timedelta, reason: str) -> None:
        """The host asked to wait."""


class RobotsFirst:
    """One per Lane process; safe for threads.  `pages`: the Site's documents are pages, which Disallow binds; `hosts` are its own, where
    it has not many."""

    def __init__(self, http: Http, rows: Rows, *, pages: bool, hosts: tuple[str, ...] = ()) -> None:
        self._http, self._rows, self._pages, self._hosts = http, rows, pages, hosts
        self._fresh: dict[str, datetime] = {}
        self._lock = Lock()

    def look(self, claim: Claim, permits: Permits, now: Callable[[], datetime]) -> Look:
        """Asks for the robots.txt of the origin where the Poll goes on, where it is not fresh."""
        url = target(claim)
        origin = origin_of(url)
        in_its_chain = claim.resume is not None and claim.resume.robots
        if origin is None:
            return Look()
        if not self._pages and self._is_remembered(origin, now()):
            return Look(further=in_its_chain)
        robots = self._rows.known(origin)
        if robots is None or not robots.is_fresh(now()):
            return self._asked(claim, robots, origin, permits, now)
        self._remember(robots, now())
        return Look(further=in_its_chain, stop=self._stop(robots, url, now()) if self._pages else None)

    def is_wanted(self, origin: str, now: datetime) -> bool:
        """Whether the robots.txt of an origin must be asked for before anything else there."""
        if not self._pages and self._is_remembered(origin, now):
            return False
        robots = self._rows.known(origin)
        if robots is None or not robots.is_fresh(now):
            return True
        self._remember(robots, now)
        return False

    def page(self, url: str, now: datetime) -> PutBack | Disallowed | None:
        """What stops the use of a page, by what is remembered of its origin."""
        origin = origin_of(url)
        robots = None if origin is None else self._rows.known(origin)
        return None if robots is None else self._stop(robots, url, now)

    def _asked(
        self, claim: Claim, before: Robots | None, origin: str, permits: Permits, now: Callable[[], datetime]
    ) -> Look:
        answer = self._http.get(_request(claim, origin, self._hosts), permits)
        if isinstance(answer, Postponed):
            in_a_chain = claim.resume is not None and not claim.resume.robots
            resume = claim.resume if in_a_chain else _marked(answer.resume)
            put_back = PutBack(answer.reason, answer.wait, answer.address, resume)
            return Look(answer.requests, stop=put_back, proof=proof(answer))
        if isinstance(answer, Forbidden) and not answer.requests:
            return Look()  # the guard will say the same of the Poll's own URL
        heard = hear(answer, now())
        robots = after(before, origin, heard, now())
        wait_until = self._kept(robots, heard, answer, now())
        self._remember(robots, now())
        stop = self._stop(robots, target(claim), now()) if self._pages and wait_until is None else None
        silence = heard.why if isinstance(heard, Silent) else None
        return Look(answer.requests, True, stop, wait_until, proof(answer), silence)

    def _kept(self, robots: Robots, heard: Heard, answer: Answer, now: datetime) -> datetime | None:
        """Until when the host that answered asked to wait."""
        parts = split(robots.origin)
        if parts is not None:
            sent_at = max((sent.sent_at for sent in answer.requests if sent.host == parts.host), default=None)
            self._rows.keep(robots, parts.host, sent_at)
        if not isinstance(heard, Silent) or heard.wait is None:
            return None
        until = now + heard.wait
        self._rows.hold(answer.requests[-1].host, now, heard.wait, f"its robots.txt asked to wait: {heard.status}")
        return until

    def _stop(self, robots: Robots, url: str, now: datetime) -> PutBack | Disallowed | None:
        if (waits := robots.why_pages_wait()) is not None:
            return PutBack(waits, max(robots.again_at - now, timedelta(0)), None, None)
        return None if allows(robots.text or "", url) else Disallowed(NOT_ALLOWED)

    def _is_remembered(self, origin: str, now: datetime) -> bool:
        until = self._fresh.get(origin)
        return until is not None and until - FRESH <= now < until  # before that, the clock went back

    def _remember(self, robots: Robots, now: datetime) -> None:
        if self._pages:
            return  # one or a few origins, whose text each Poll needs: looked at anew each time
        with self._lock:
            self._fresh.pop(robots.origin, None)
            self._fresh[robots.origin] = min(robots.again_at, now + FRESH)
            if len(self._fresh) > REMEMBERED:
                del self._fresh[next(iter(self._fresh))]


def target(claim: Claim) -> str:
    """The URL at which a claimed Poll goes on: its own, or where its chain of redirects stood."""
    return claim.url if claim.resume is None or claim.resume.robots else claim.resume.url


def _request(claim: Claim, origin: str, hosts: tuple[str, ...]) -> Request:
    parts = split(origin)
    return Request(
        f"{origin}/robots.txt",
        accept="text/plain, */*;q=0.5",
        address=claim.address,
        dial=claim.dial,
        resume=claim.resume if claim.resume is not None and claim.resume.robots else None,
        further=parts is not None and parts.host != claim.host,  # another Site's: no claim of this Lane enters it
        whole=DEADLINE,
        cut=CUT,
        hosts=hosts,
    )


def _marked(resume: Resume | None) -> Resume | None:
    return None if resume is None else replace(resume, robots=True)
