"""The only way from Chrome to the network: a proxy on loopback that resolves, checks and dials by itself (DESIGN 6, 7).

Owns every connection that a page makes, its caps and its bytes.  Refuses to own: what is said on a connection, and Chrome.  Must never
break: what is dialled is exactly an address that the guard has checked for this connection, and no page reaches our own ports.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import hmac
import ipaddress
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from browser_sidecar.heads import Asked, read_head
from browser_sidecar.sides import NoHead, Side, pass_head, splice
from lanes.core.answer import Trouble
from lanes.fetch.guard import Guard, Named
from lanes.fetch.limits import LIMITS, Limits

log = logging.getLogger("browser_sidecar.proxy")

CONNECTIONS: Final = 64
"""Connections of one page at a time: twice what Chrome opens to one proxy."""
PAGE_BYTES: Final = 64 * 2**20
"""Bytes that one page may draw from the network, all its requests together: six times the cap of its document."""
RESOLVERS: Final = 16
"""Names that one page asks for at a time, each in a thread: a page of names that hang is in the way of no other."""

T = TypeVar("T")

_HERE: Final = {ipaddress.ip_address(text) for text in ("127.0.0.1", "::1", "0.0.0.0", "::")}  # noqa: S104 - nothing is bound to them

_NO_SUCH_NAME = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
_CHALLENGE = b"\r\n".join(
    (
        b"HTTP/1.1 407 Proxy Authentication Required",
        b'Proxy-Authenticate: Basic realm="lanes"',
        b"Content-Length: 0",
        b"Connection: close",
        b"",
        b"",
    )
)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a host could not be reached.  `forbidden`: the address that the guard refused."""

    trouble: Trouble
    detail: str
    line_proved: bool = False
    forbidden: str | None = None


class _Failed(Exception):
    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.detail)


class Gate:
    """The way out of one page: a port of its own, and credentials that Chrome alone is told, so that no other program of this machine
    goes through it."""

    def __init__(self, proxy: Proxy, port: int) -> None:
        self.port = port
        self.user, self.password = "lanes", secrets.token_urlsafe(24)
        self.received = 0
        """Bytes that came in, on the wire."""
        self.connections = 0
        """How many were dialled."""
        self.forbidden: list[str] = []
        """What the guard refused, in words."""
        self.resolving = asyncio.Semaphore(RESOLVERS)
        self._proxy = proxy
        self._drawn: dict[tuple[str, int], int] = {}
        self._most: dict[tuple[str, int], int] = {}
        self._written: dict[tuple[str, int], float] = {}
        self._failures: dict[tuple[str, int], Failure] = {}

    @property
    def is_spent(self) -> bool:
        """Whether the page has drawn all that it may."""
        return self.received > self._proxy.page_bytes

    def drawn(self, host: str, port: int) -> int:
        """Bytes that came in from there, on the wire."""
        return self._drawn.get((host.lower(), port), 0)

    def allow(self, host: str, port: int, more: int | None) -> None:
        """From there no more than so many bytes come in from now on, until other word is given; None: what the page may draw."""
        self._most[host.lower(), port] = self._proxy.page_bytes if more is None else self.drawn(host, port) + more

    def count(self, host: str, port: int, size: int) -> bool:
        """So many more came in; whether more may."""
        self.received += size
        self._drawn[host, port] = drawn = self.drawn(host, port) + size
        return not self.is_spent and drawn <= self._most.get((host, port), self._proxy.page_bytes)

    def written_at(self, host: str, port: int) -> float:
        """The monotonic instant at which a plain request was last written there; 0: none was."""
        return self._written.get((host.lower(), port), 0.0)

    def writes(self, host: str, port: int) -> None:
        """A plain request was written there just now."""
        self._written[host, port] = time.monotonic()

    def failure(self, host: str, port: int) -> Failure | None:
        """Why `host` could not be reached when it was last asked for; None: it could."""
        return self._failures.get((host.lower(), port))

    def close(self) -> None:
        """Ends every connection of the page."""
        self._proxy.shut(self)

    def knows(self, credentials: bytes) -> bool:
        mine = base64.b64encode(f"{self.user}:{self.password}".encode())
        return hmac.compare_digest(credentials, b"Basic " + mine)

    def note(self, host: str, port: int, failure: Failure | None) -> None:
        if failure is None:
            self._failures.pop((host, port), None)
            return
        self._failures[host, port] = failure
        if failure.forbidden is not None:
            if not self.forbidden:  # once a page: it could fill the log
                log.warning("a page asked for an address that may not be dialled host=%s port=%s", host, port)
            self.forbidden.append(failure.forbidden)


class Proxy:
    """Serves gates until closed.

    An asyncio loop in a thread of its own: a page holds dozens of connections at once, mostly idle, while the threads of the tabs block
    on Chrome.
    """

    def __init__(
        self,
        guard: Guard,
        limits: Limits = LIMITS,
        *,
        connections: int = CONNECTIONS,
        page_bytes: int = PAGE_BYTES,
    ) -> None:
        self.page_bytes = page_bytes
        self.off_limits: set[int] = set()
        """Ports of this machine that no page reaches, whatever is allowed: DevTools', and the gates' own."""
        self._guard, self._limits, self._connections = guard, limits, connections
        self._servers: dict[Gate, asyncio.Server] = {}
        self._tasks: dict[Gate, set[asyncio.Task[None]]] = {}
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()

    def open(self) -> Gate | None:
        """A new gate, listening; None once the proxy is closed."""
        with self._lock:
            return None if self._loop.is_closed() else self._in_loop(self._open())

    def shut(self, gate: Gate) -> None:
        """Ends a gate and what goes through it."""
        with self._lock:
            if not self._loop.is_closed():
                self._in_loop(self._shut(gate))

    def close(self) -> None:
        """Ends every gate and the thread."""
        with self._lock:
            if self._loop.is_closed():
                return
            for gate in list(self._servers):
                self._in_loop(self._shut(gate))
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _in_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _open(self) -> Gate:
        listening = socket.create_server(("127.0.0.1", 0), backlog=CONNECTIONS)
        gate = Gate(self, listening.getsockname()[1])
        self._tasks[gate] = set()
        self._servers[gate] = await self._loop.create_server(
            lambda: Side(lambda side: self._accept(gate, side)), sock=listening
        )
        self.off_limits.add(gate.port)
        return gate

    async def _shut(self, gate: Gate) -> None:
        server = self._servers.pop(gate, None)
        if server is None:
            return
        for listening in server.sockets:
            self._loop.remove_reader(listening.fileno())
        tasks = self._tasks.pop(gate)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _ in range(
            20
        ):  # who was just accepted learns that his gate is shut; asyncio would drop him unclosed after the server
            await asyncio.sleep(0)
        server.close()
        self.off_limits.discard(gate.port)

    def _accept(self, gate: Gate, chrome: Side) -> None:
        tasks = self._tasks.get(gate)
        if tasks is None or len(tasks) >= self._connections or gate.is_spent:
            chrome.transport.abort()
            return
        task = self._loop.create_task(self._serve(gate, chrome))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _serve(self, gate: Gate, chrome: Side) -> None:
        """One connection of Chrome, from its head to its end."""
        try:
            asked = await self._admitted(gate, chrome)
            if asked is not None:
                await self._carry(gate, asked, chrome)
        except (OSError, NoHead, ValueError):
            pass  # either side went away, or was no HTTP: Chrome makes of it what it makes of any
        finally:
            chrome.transport.abort()

    async def _admitted(self, gate: Gate, chrome: Side) -> Asked | None:
        """What is asked for; None where whoever asks is not the Chrome of this gate, or has not yet shown to be.

        The connection ends then: on one that was used before, Chrome repeats a request that got no answer, and a Site would see two."""
        asked = read_head(await chrome.head())
        if gate.knows(asked.credentials):
            return asked
        chrome.write(_CHALLENGE)
        await chrome.finished()
        return None

    async def _carry(self, gate: Gate, asked: Asked, chrome: Side) -> None:
        try:
            origin = await self._dialled(gate, asked.host, asked.port)
        except _Failed as failed:
            gate.note(asked.host, asked.port, failed.failure)
            if asked.onward is None:  # a plain request gets no answer at all, lest ours be taken for its Site's
                chrome.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                await chrome.finished()
            return
        gate.note(asked.host, asked.port, None)
        gate.connections += 1

        def counted(size: int) -> bool:
            return gate.count(asked.host, asked.port, size)

        try:
            if asked.onward is None:
                chrome.write(b"HTTP/1.1 200 Connection Established\r\n\r\n")
            else:
                origin.write(asked.onward)
                gate.writes(asked.host, asked.port)
                await pass_head(origin, chrome, counted)
            await splice(chrome, origin, counted)
        finally:
            origin.transport.abort()

    async def _dialled(self, gate: Gate, host: str, port: int) -> Side:
        """A connection to an address that was checked just now.  Raises: _Failed."""
        addresses = await self._addresses(gate, host, port)
        failures: list[OSError] = []
        ends = self._loop.time() + self._limits.connect
        for address in addresses:
            if self._is_ours(address, port):
                raise _Failed(Failure(Trouble.CONNECT, f"{host}: a port of ours", forbidden=f"{address} port {port}"))
            left = ends - self._loop.time()
            within = left if address == addresses[-1] else min(left, self._limits.fall_back)
            try:
                async with asyncio.timeout(max(within, 0.001)):
                    _, side = await self._loop.create_connection(Side, address, port)
                    return side
            except OSError as error:  # TimeoutError is one
                failures.append(error)
        refused = any(error.errno == errno.ECONNREFUSED for error in failures)
        why = "no connection in time" if isinstance(failures[-1], TimeoutError) else _why(failures[-1])
        raise _Failed(Failure(Trouble.CONNECT, f"{host}: {why}", line_proved=refused))

    async def _addresses(self, gate: Gate, host: str, port: int) -> tuple[str, ...]:
        try:
            async with gate.resolving:
                named = await self._resolved(host, port)
        except TimeoutError:
            raise _Failed(Failure(Trouble.DNS, f"{host}: the name system did not answer in time")) from None
        except socket.gaierror as error:
            definite = error.errno in _NO_SUCH_NAME
            why = "no such name" if definite else "the name system did not answer"
            raise _Failed(Failure(Trouble.DNS, f"{host}: {why}", line_proved=definite)) from error
        except (OSError, UnicodeError) as error:
            raise _Failed(Failure(Trouble.DNS, f"{host}: the name could not be looked up")) from error
        if named.allowed:
            return named.allowed[: self._limits.addresses]
        if named.refused:
            why = f"{host}: {named.refused[0]} may not be dialled"
            raise _Failed(Failure(Trouble.CONNECT, why, forbidden=named.refused[0]))
        raise _Failed(Failure(Trouble.DNS, f"{host}: a name without addresses", line_proved=True))

    async def _resolved(self, host: str, port: int) -> Named:
        """Raises: TimeoutError, socket.gaierror, UnicodeError."""
        answer: asyncio.Future[Named | Exception] = self._loop.create_future()

        def set_answer(named: Named | Exception) -> None:
            if not answer.done():
                answer.set_result(named)

        def tell(named: Named | Exception) -> None:
            with suppress(RuntimeError):  # the proxy is closed by now
                self._loop.call_soon_threadsafe(set_answer, named)

        self._guard.resolve_to(host, port, tell)
        async with asyncio.timeout(self._limits.resolve):
            named = await answer
        if isinstance(named, Exception):
            raise named
        return named

    def _is_ours(self, address: str, port: int) -> bool:
        """Whether that leads to what listens at 127.0.0.1, however the address is written: all that is ours does, and nothing of ours at
        another address of loopback."""
        place = ipaddress.ip_address(address)
        if isinstance(place, ipaddress.IPv6Address) and place.ipv4_mapped is not None:
            place = place.ipv4_mapped
        return port in self.off_limits and place in _HERE


def _why(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else "connection failed"
