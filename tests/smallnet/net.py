"""The small internet: hosts on loopback addresses, what they answer, and who asked.

Owns the server's thread and its listening sockets.  Refuses to own: answers (`hosts`), bytes (`wire`), the record.
Must never break: nothing is listened on outside loopback, nor anywhere on loopback but at the addresses a test named.

Each host is one listening socket (one wildcard socket would also listen in the forbidden part of loopback, and outside); a thousand of
them take about a tenth of a second and one file each.  All are served by one asyncio loop in one thread: a thread, because tests and
benches drive blocking clients in their own; one, so that arrivals have one order.
"""

from __future__ import annotations

import asyncio
import ipaddress
import resource
import socket
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from .feeds import Request
from .hosts import Answerer, Hold, Host
from .record import Dial, Journal, Record, Visit
from .resolver import Resolver
from .steps import NOTHING_HERE, Step, status
from .wire import Connection

ALLOWED = ipaddress.ip_network("127.1.0.0/16")
"""The allowed world (`LANES_ALLOW_NETWORKS`); the rest of loopback plays the forbidden one."""
ANCHOR = "127.1.0.1"
"""Always listened on: it reserves the common port, so that two small internets never share one, and answers the owner's control."""
BACKLOG = 512

T = TypeVar("T")


class Listener:
    """One listening socket, and the hosts that share its address (told apart by the Host header)."""

    def __init__(self, net: Smallnet, address: str, tls: ssl.SSLContext | None) -> None:
        self.net, self.address, self._tls = net, address, tls
        self.scheme = "http" if tls is None else "https"
        self.hosts: dict[str, Host] = {}
        self.first: Host | None = None
        self.control: Answerer | None = None
        self.connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._hole: list[socket.socket] = []

    def add(self, host: Host) -> None:
        self.first = self.first or host
        self.hosts[host.key.lower()] = host

    def host_for(self, host_header: str) -> Host | None:
        """By the header, else the first that was put here."""
        if len(self.hosts) < 2:
            return self.first
        return self.hosts.get((urlsplit(f"//{host_header}").hostname or "").lower(), self.first)

    async def listen(self) -> None:
        """Accept from now on.  Raises: OSError where another program has the address and port."""
        self._fill_in_hole()
        if self._server is None:
            self._server = await self.net.loop.create_server(
                lambda: Connection(self, self.net.next_number()),
                sock=self._bound(BACKLOG),
                backlog=BACKLOG,
                ssl=self._tls,
            )

    def start(self) -> None:
        self.net.in_loop(self.listen())

    def stop(self, *, hang_up: bool) -> None:
        self.net.in_loop(self._stop(hang_up))

    async def _stop(self, hang_up: bool) -> None:
        self._fill_in_hole()
        if self._server is not None:
            self._server.close()
            self._server = None
        if hang_up:
            self._abort_all()

    def hang_up(self) -> None:
        """Reset every open connection."""
        self.net.loop.call_soon_threadsafe(self._abort_all)

    def _abort_all(self) -> None:
        for connection in list(self.connections):
            connection.abort()

    def swallow(self) -> None:
        """A socket whose queue is full: the kernel drops further attempts in silence."""
        hole = self._bound(0)
        self._hole = [hole]
        for _ in range(4):
            filler = socket.socket(hole.family)
            filler.setblocking(False)
            filler.connect_ex((self.address, self.net.port))
            self._hole.append(filler)

    def _fill_in_hole(self) -> None:
        for each in self._hole:
            each.close()
        self._hole = []

    def _bound(self, backlog: int) -> socket.socket:
        listening = socket.socket(socket.AF_INET6 if ":" in self.address else socket.AF_INET)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((self.address, self.net.port))
            listening.listen(backlog)
        except OSError as error:
            listening.close()
            raise OSError(error.errno, f"{self.address}:{self.net.port}: {error.strerror}") from error
        if not self.net.port:
            self.net.port = listening.getsockname()[1]
        return listening


class Smallnet:
    """A little internet: `with Smallnet() as net: site = net.host("127.1.0.5"); site.feed("/feed", ["One", "Two"])`.

    `port` is the common port (0: a free one).  `journal` is a file for the record; `keep_headers=False` records no request headers,
    for benches.  `tls` makes it a second, https world on the same addresses and a port of its own: pass a server context.
    """

    def __init__(
        self,
        port: int = 0,
        *,
        journal: Path | None = None,
        keep_headers: bool = True,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.port, self.keep_headers = port, keep_headers
        self.record = Record()
        self.arrivals, self.overlaps = self.record.arrivals, self.record.overlaps
        self.spacing_offences, self.statuses = self.record.spacing_offences, self.record.statuses
        self.resolver = Resolver()
        self.faults: list[Exception] = []
        self.loop = asyncio.new_event_loop()
        self._tls = tls
        self._listeners: dict[str, Listener] = {}
        self._hosts: dict[str, Host] = {}
        self._holds: list[Hold] = []
        self._number = 0
        self._journal_path = journal
        self._journal: Journal | None = None
        self._thread = threading.Thread(target=self.loop.run_forever, name="smallnet", daemon=True)

    def __enter__(self) -> Self:
        _raise_file_limit()
        if self._journal_path is not None:
            self._journal = Journal(self._journal_path.open("w", encoding="ascii"))
        self._thread.start()
        try:
            self._add([(ANCHOR, None)])
        except BaseException:
            self._shut()
            raise
        if self._journal is not None:
            self.loop.call_soon_threadsafe(self._flush)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shut()
        if kind is None and self.faults:
            raise ExceptionGroup("the small internet's own scripts raised", self.faults)

    @property
    def anchor(self) -> Host:
        """The host that is always there."""
        return self._hosts[ANCHOR]

    @property
    def hosts(self) -> list[Host]:
        """All hosts, the anchor first."""
        return list(self._hosts.values())

    def host(self, address: str, name: str | None = None, *, forbidden: bool = False) -> Host:
        """The host at this address under this name, made and listening on first use.

        `forbidden` is the way to put one outside 127.1.0.0/16, where a test proves that nobody dials.  Raises: ValueError off loopback.
        """
        known = self._hosts.get(name or address)
        if known is not None and known.address == address:
            return known
        if not forbidden and ipaddress.ip_address(address) not in ALLOWED:
            raise ValueError(f"{address} is outside {ALLOWED}: say forbidden=True")
        return self._add([(address, name)])[0]

    def many(self, count: int, *, first: int = 0) -> list[Host]:
        """`count` hosts at once, each on the next address of `nth_address` from `first` on."""
        return self._add([(nth_address(n), None) for n in range(first, first + count)])

    def new_hold(self) -> Hold:
        hold = Hold(self.loop)
        self._holds.append(hold)
        return hold

    def quiet(self, timeout: float = 10.0) -> None:
        """Wait until no request is being answered.  Raises: AssertionError."""
        self.wait_until(lambda record: not record.underway, timeout)

    def wait_until(self, condition: Callable[[Record], bool], timeout: float = 10.0) -> None:
        """Wait until the record is as `condition` wants, looking at each start and end.  Raises: AssertionError with what was seen."""
        deadline = time.monotonic() + timeout
        while not condition(self.record):
            left = deadline - time.monotonic()
            if left <= 0:
                seen = [f"{v.method} {v.host}{v.path} -> {v.status}" for v in self.record[-20:]]
                raise AssertionError(f"not within {timeout} s; {len(self.record)} visits, the last: {seen}")
            with self.record.changed:
                self.record.changed.wait(min(left, 0.05))  # the bound is for a change between the look and the wait

    def wait_for_visits(
        self, count: int, host: object = None, path: str | None = None, *, timeout: float = 10.0
    ) -> list[Visit]:
        """The visits there, once at least `count` have arrived."""
        self.wait_until(lambda record: len(record) >= count and len(record.of(host, path)) >= count, timeout)
        return self.record.of(host, path)

    def dialled(self, address: str) -> bool:
        """Whether any connection was ever accepted there."""
        return any(dial.address == address for dial in list(self.record.dials))

    def in_loop(self, work: Coroutine[Any, Any, T]) -> T:
        """Run in the server's thread and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    # From here on: called by the server's thread.

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def saw_dial(self, dial: Dial) -> None:
        self.record.dials.append(dial)
        if self._journal is not None:
            self._journal.dial(dial)

    def saw_end(self, visit: Visit) -> None:
        self.record.end(visit)
        if self._journal is not None:
            self._journal.visit(visit)

    def answer(self, host: Host | None, request: Request) -> Step:
        """What the host answers; a script that raises is a 500 here and an error when the net ends."""
        try:
            return host.answer(request) if host is not None else NOTHING_HERE
        except Exception as error:  # a test's callable may raise anything, and must not end the server's thread
            self.faults.append(error)
            return status(500)

    def _add(self, places: Iterable[tuple[str, str | None]]) -> list[Host]:
        added: list[Host] = []
        fresh: list[Listener] = []
        for address, name in places:
            if not ipaddress.ip_address(address).is_loopback:
                raise ValueError(f"{address} is not on loopback")
            listener = self._listeners.get(address)
            if listener is None:
                listener = self._listeners[address] = Listener(self, address, self._tls)
                fresh.append(listener)
            added.append(Host(self, address, name, listener))
        if fresh:
            self.in_loop(_listen(fresh))
        for host in added:
            self._hosts[host.key] = host
            host.listener.add(host)
            if host.name is not None:
                self.resolver.set(host.name, host.address)
        return added

    def _flush(self) -> None:
        if self._journal is not None:
            self._journal.flush()
            self.loop.call_later(0.2, self._flush)

    def _shut(self) -> None:
        self.resolver.close()
        for hold in self._holds:
            hold.release()
        self.in_loop(self._close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    async def _close(self) -> None:
        for _ in range(5):  # who is just being accepted gets a connection, which can be hung up
            await asyncio.sleep(0)
        for listener in self._listeners.values():
            await listener._stop(True)
        deadline = time.monotonic() + 5
        while any(listener.connections for listener in self._listeners.values()) and time.monotonic() < deadline:
            await asyncio.sleep(0)
        for _ in range(
            5
        ):  # who was just accepted, or is still shaking hands, is nobody's connection yet: its socket would stay open
            await asyncio.sleep(0)
            for transport in list(getattr(self.loop, "_transports", {}).values()):
                with suppress(AttributeError):  # one that was lost meanwhile has no loop any more
                    transport.abort()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _listen(listeners: Iterable[Listener]) -> None:
    for listener in listeners:
        await listener.listen()


def nth_address(n: int) -> str:
    """The n-th address for hosts, from 127.1.1.1 on, 250 to a row."""
    return f"127.1.{1 + n // 250}.{1 + n % 250}"


def _raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
