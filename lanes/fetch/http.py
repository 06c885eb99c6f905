"""A GET, politely: dialled through the guard, followed through redirects, answered as a value (DESIGN 4.3, 6).

Owns what is asked, hop after hop, and the turning of every trouble into an `Answer`.  Refuses to own: pace (the permits), meaning
(`lanes.core.outcome`).  Must never break: nothing is dialled or written before its permit was given, and every written request is told.
"""

from __future__ import annotations

import base64
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from urllib3.response import HTTPResponse as Reply

from lanes.core.answer import Answer, Forbidden, NoResponse, Postponed, Response, Resume, Sent, Trouble
from lanes.core.urls import Parts, follow, split
from lanes.fetch.body import ACCEPTED
from lanes.fetch.broken import Broken, Held, Refused
from lanes.fetch.connection import Connection, Pool
from lanes.fetch.dial import Dialler, Route, secured
from lanes.fetch.guard import Guard
from lanes.fetch.limits import LIMITS, Limits
from lanes.fetch.permits import Permits, Wait

if TYPE_CHECKING:
    from lanes.fetch.cookies import Carried, Cookies

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PERMANENT = frozenset({301, 308})
_STOPPING = Wait(timedelta(0), "stopping")
_VERBATIM = re.compile(r"[^\r\n\0\u0100-\U0010ffff]+")
"""Any header value that can be written at all: validators go back however odd they are (CASES C5)."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask.  `validators_url` is the URL that gave `etag` and `last_modified` (None: `url`): they go to it alone, at any hop.

    `address` is the address the host was last dialled at: kept while DNS still names it.  `dial` is one whose slot the claim has taken:
    dialled without asking DNS again, the guard repeated.  Both belong to the host of the first request, which is `resume`'s where given.

    `whole` is its own deadline in seconds, where shorter.  `cut`: more bytes than this are not read.  `further`: its Poll has asked
    something else before, or goes on at a host that its claim did not enter, so that its first request is a hop too: it waits for that
    permit.  `hosts` are the only ones that a redirect may lead to; none: any.
    """

    url: str
    etag: str | None = None
    last_modified: str | None = None
    validators_url: str | None = None
    accept: str = "*/*"
    address: str | None = None
    dial: str | None = None
    resume: Resume | None = None
    whole: float | None = None
    cut: int | None = None
    further: bool = False
    hosts: tuple[str, ...] = ()


class Http:
    """One per process; safe for threads, each with one host at a time, which its caller sees to.  `agent` is the User-Agent.

    `stop` ends waits; `interrupt` ends fetches too.  `tls` and `limits` are for tests.
    """

    def __init__(
        self,
        agent: str,
        guard: Guard,
        *,
        stop: threading.Event | None = None,
        tls: ssl.SSLContext | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        self.agent = agent
        self.stop = stop or threading.Event()
        self.guard = guard
        self.limits = limits
        self.dialler = Dialler(guard, limits)
        self.pool = Pool(limits.idle)
        self._tls = tls
        self._tls_lock = threading.Lock()

    def get(self, request: Request, permits: Permits) -> Answer:
        """Ask, following redirects, until there is an answer.  Whatever a Site does is a value; what a permit raises passes through."""
        return _Fetch(self, request, permits).answer()

    def interrupt(self) -> None:
        """From another thread: the fetches in hand end soon, `Postponed`; none is begun any more."""
        self.stop.set()
        self.pool.interrupt()

    def close(self) -> None:
        """Close the idle connections."""
        self.pool.close()

    @property
    def tls(self) -> ssl.SSLContext:
        """One for all, made when first needed: it costs 28 to 50 ms and the certificates' memory (DESIGN 12)."""
        with self._tls_lock:
            if self._tls is None:
                self._tls = ssl.create_default_context()
                self._tls.set_alpn_protocols(["http/1.1"])
            return self._tls


@dataclass(frozen=True, slots=True)
class _Hop:
    """Where the chain stands: the URL to ask now, how many redirects led to it, and whether all were permanent."""

    url: str
    count: int
    permanent: bool


@dataclass(frozen=True, slots=True)
class _Heard:
    """One whole answer of one hop; `location` is None where it leads nowhere else."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    location: str | None
    reply: Reply
    latency: float
    conditional: bool


class _Fetch:
    def __init__(self, http: Http, request: Request, permits: Permits) -> None:
        self._http = http
        self._request = request
        self._permits = permits
        whole = http.limits.whole
        self._until = time.monotonic() + (whole if request.whole is None else min(request.whole, whole))
        self._requests: list[Sent] = []
        resume = request.resume
        self._hop = _Hop(resume.url, resume.hops, resume.permanent) if resume else _Hop(request.url, 0, True)
        self._route = Route(request.address, request.dial)
        self._cookies = _jar(resume.cookies) if resume else None
        self._seen = list(resume.seen) if resume else []

    def answer(self) -> Answer:
        try:
            if self._request.further:
                self._enter()
            while (answer := self._asked()) is None:
                pass
        except Refused as refused:
            return Forbidden(self._hop.url, refused.address, tuple(self._requests))
        except Held as held:
            return self._postponed(held.wait, held.address)
        except Broken as broken:
            if self._http.stop.is_set() and broken.trouble in (Trouble.RESET, Trouble.FRAMING):
                return self._postponed(_STOPPING)
            proved = broken.line_proved or any(sent.status for sent in self._requests)
            return NoResponse(broken.trouble, broken.detail, tuple(self._requests), proved)
        return answer

    def _enter(self) -> None:
        """Enter the host of the first request as a hop does.  Raises: Held."""
        parts = split(self._hop.url)
        if parts is not None:
            self._route = Route(self._permitted(parts))

    def _asked(self) -> Response | None:
        """One hop: its answer, or None when it led to another that may be asked now.  Raises: Broken, Refused, Held."""
        parts = split(self._hop.url)
        if parts is None:
            raise Broken(Trouble.BAD_URL, "not an http or https URL with a host")
        if time.monotonic() >= self._until:
            raise Broken(Trouble.TIMEOUT, f"{parts.host}: not reached in {self._http.limits.whole:g} s")
        heard = self._heard(parts)
        if heard.location is not None:
            self._go_on(parts, heard, heard.location)
            return None
        return Response(
            status=heard.status,
            headers=heard.headers,
            body=heard.body,
            url=self._hop.url,
            requests=tuple(self._requests),
            latency=timedelta(seconds=heard.latency),
            permanent=self._hop.count > 0 and self._hop.permanent,
            conditional=heard.conditional,
        )

    def _heard(self, parts: Parts) -> _Heard:
        headers = self._headers(parts)
        connection = self._connection(parts)
        usable = False
        try:
            self._go_unless_stopping()  # again, now that an interrupt would reach the connection
            sent_at = self._permits.sending(parts.host, connection.address)
            if isinstance(sent_at, Wait):
                raise Held(sent_at)
            self._seen.append(self._mark(self._hop.url, parts))
            try:
                heard = self._exchange(connection, parts.target, headers)
            finally:
                self._requests.append(self._sent(parts, connection, sent_at))
            usable = connection.rest(heard.headers)
        finally:
            (self._http.pool.put if usable else self._http.pool.drop)(connection)
        return heard

    def _exchange(self, connection: Connection, target: str, headers: Mapping[str, str]) -> _Heard:
        written = time.monotonic()
        reply = connection.ask(target, headers, self._until)
        latency = time.monotonic() - written
        told = {name.lower(): value for name, value in reply.headers.itermerged()}
        location = told.get("location", "") if reply.status in _REDIRECTS else None
        body = b""
        if location is None:
            body = connection.read(reply, self._until, self._request.cut)
        else:
            connection.drain(reply)
        conditional = "If-None-Match" in headers or "If-Modified-Since" in headers
        return _Heard(reply.status, told, body, location, reply, latency, conditional)

    def _connection(self, parts: Parts) -> Connection:
        """Kept alive, where its address is one whose slot is taken, else dialled anew; in use from now on."""
        self._go_unless_stopping()
        pool = self._http.pool
        connection = pool.take(parts)
        if connection is not None and not self._route.has_slot(connection.address):
            pool.drop(connection)
            connection = None
        if connection is None:
            sock, address, ends = self._dialled(parts)
            if parts.scheme == "https":
                sock = secured(sock, parts.host, self._http.tls, ends)
            connection = Connection(parts, address, sock, self._http.limits)
            pool.use(connection)
        return connection

    def _dialled(self, parts: Parts) -> tuple[socket.socket, str, float]:
        """At a hop the slot waits a little for an address's slot too; at the first URL the Poll is put back with the address."""
        patience = self._http.limits.hop_wait if self._hop.count or self._request.further else 0.0
        while True:
            try:
                return self._http.dialler.dial(parts, self._route, self._permits, self._until)
            except Held as held:
                patience = self._waited(held, patience)

    def _waited(self, held: Held, patience: float) -> float:
        """Waits until a permit may be asked for again; the patience that is left.  Raises: Held, where that takes too long."""
        wait = max(held.wait.delay.total_seconds(), 0.001)
        if wait > patience or time.monotonic() + wait >= self._until:
            raise held
        if self._http.stop.wait(wait):
            raise Held(_STOPPING)
        return patience - wait

    def _go_unless_stopping(self) -> None:
        if self._http.stop.is_set():
            raise Held(_STOPPING)

    def _headers(self, parts: Parts) -> dict[str, str]:
        request, url = self._request, self._hop.url
        headers = {
            "Host": parts.authority,
            "User-Agent": self._http.agent,
            "Accept": request.accept,
            "Accept-Encoding": ACCEPTED,
        }
        if parts.userinfo:
            user, _, password = parts.userinfo.partition(":")
            secret = unquote_to_bytes(user) + b":" + unquote_to_bytes(password)
            headers["Authorization"] = "Basic " + base64.b64encode(secret).decode("ascii")
        if url == (request.validators_url or request.url):
            if request.etag and _VERBATIM.fullmatch(request.etag):
                headers["If-None-Match"] = request.etag
            if request.last_modified and _VERBATIM.fullmatch(request.last_modified):
                headers["If-Modified-Since"] = request.last_modified
        if self._cookies is not None and (cookies := self._cookies.header(parts)):
            headers["Cookie"] = cookies
        return headers

    def _sent(self, parts: Parts, connection: Connection, sent_at: datetime) -> Sent:
        status = connection.status
        return Sent(
            url=self._hop.url,
            host=parts.host,
            address=connection.address,
            sent_at=sent_at,
            status=status,
            wire_bytes=connection.wire_bytes,
            permanent=status in _PERMANENT,
        )

    def _go_on(self, here: Parts, heard: _Heard, location: str) -> None:
        """Step to where a redirect leads, once it may be asked.  Raises: Broken, Refused, Held."""
        url = follow(self._hop.url, location)
        parts = split(url) if url is not None else None
        if url is None or parts is None:
            raise Broken(Trouble.BAD_URL, "a redirect that leads to no http or https URL", line_proved=True)
        if self._request.hosts and parts.host not in self._request.hosts:
            raise Broken(Trouble.LEFT, f"a redirect to {parts.host}", line_proved=True)
        if self._hop.count >= self._http.limits.hops:
            raise Broken(Trouble.HOPS, f"more than {self._http.limits.hops} redirects", line_proved=True)
        self._cookies = self._cookies or _jar()
        self._cookies.keep(here, heard.reply)
        self._hop = _Hop(url, self._hop.count + 1, self._hop.permanent and heard.status in _PERMANENT)
        if self._mark(url, parts) in self._seen:
            raise Broken(
                Trouble.LOOP, f"{parts.host}: a redirect to a URL asked before, with the same cookies", line_proved=True
            )
        if self._http.guard.forbids(parts.host):
            raise Refused(parts.host)
        self._route = Route(self._permitted(parts))

    def _permitted(self, parts: Parts) -> str | None:
        """Wait for the hop's permit, a little; the address that the host was last dialled at.  Raises: Held."""
        patience = self._http.limits.hop_wait
        while isinstance(answer := self._permits.hop(parts.host, parts.origin), Wait):
            if not answer.in_slot:
                raise Held(answer)
            patience = self._waited(Held(answer), patience)
        return answer.address

    def _postponed(self, wait: Wait, address: str | None = None) -> Postponed:
        hop = self._hop
        cookies = self._cookies.carried() if self._cookies is not None else ()
        resume = Resume(hop.url, hop.count, hop.permanent, cookies, tuple(self._seen)) if hop.count else None
        return Postponed(wait.reason, wait.delay, tuple(self._requests), address, resume)

    def _mark(self, url: str, parts: Parts) -> str:
        """URL and cookies as they would be asked: what must not come twice in a chain (CASES E6)."""
        cookies = self._cookies.header(parts) if self._cookies is not None else None
        return blake2b(f"{url}\n{cookies or ''}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _jar(carried: Carried = ()) -> Cookies:
    from lanes.fetch.cookies import Cookies  # noqa: PLC0415 - with the first redirect: a Lane at rest does without its 1 MiB

    return Cookies(carried)
