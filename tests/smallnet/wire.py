"""One connection of the small internet: bytes in, a Step played out, a Visit recorded.

Owns HTTP/1.1 on the server's side, as far as clients of feeds need it.  Refuses to own: which answer (`net`).  Must never break: every
request that is HTTP is recorded with its end, whatever the client does meanwhile.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Callable
from email.utils import formatdate
from http.client import HTTPException
from typing import TYPE_CHECKING, NoReturn

from .feeds import Request
from .record import Dial, Visit
from .steps import Ending, Framing, Step

if TYPE_CHECKING:
    from .hosts import Host
    from .net import Listener

WHOLE_HEAD = b"\r\n\r\n"


class Connection(asyncio.Protocol):
    """One accepted connection.  Answers one request after the other; all its methods run in the loop's thread."""

    def __init__(self, listener: Listener, number: int) -> None:
        self._listener, self._number = listener, number
        self._net = listener.net
        self._read = b""
        self._first = (0.0, 0.0)
        self._visit: Visit | None = None
        self._playing: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self._drained.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=1, low=0)  # so that "drained" means handed over, and `ended` is honest
        self._listener.connections.add(self)
        self._net.saw_dial(Dial(time.monotonic(), self._listener.address, self._number))

    def connection_lost(self, exc: Exception | None) -> None:
        self._listener.connections.discard(self)
        if self._playing is not None:
            self._playing.cancel()
        self._end(whole=False)
        self._drained.set()

    def pause_writing(self) -> None:
        self._drained.clear()

    def resume_writing(self) -> None:
        self._drained.set()

    def data_received(self, data: bytes) -> None:
        if not self._read:
            self._first = (time.monotonic(), time.time())
        self._read += data
        if self._visit is None:
            self._answer_next()

    def abort(self, *, hard: bool = True) -> None:
        """End the connection at once; `hard` sends a reset."""
        wire = self._transport.get_extra_info("socket")  # None: lost, and we are about to be told
        if hard and wire is not None:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def _answer_next(self) -> None:
        head, whole, rest = self._read.partition(WHOLE_HEAD)
        if not whole:
            return
        try:
            request, host_header = _parse(head)
            length = int(request.headers.get("content-length") or 0)
        except (HTTPException, ValueError):
            self._transport.abort()
            return
        if len(rest) < length:
            return
        self._read = rest[length:]
        if length:
            request = Request(request.method, request.path, request.headers, rest[:length])
        self._answer(self._listener.host_for(host_header), request, host_header)

    def _answer(self, host: Host | None, request: Request, host_header: str) -> None:
        net = self._net
        control = self._listener.control
        if control is not None and request.path.startswith("/-/"):
            self._write_short(control(request), request.method)
            return
        hold = host.hold_on(request.path) if host is not None else None
        if hold is not None:
            self._visit = self._seen(host, request, host_header)
            net.record.start(self._visit)
            self._play_later(request.method, lambda: net.answer(host, request), hold.passed())
            return
        step = net.answer(host, request)
        if step.is_short:  # over before anything else can happen in this thread
            ended = time.monotonic()
            net.saw_end(self._seen(host, request, host_header, ended, step.status, len(step.body), True))
            self._write_short(step, request.method)
        else:
            self._visit = self._seen(host, request, host_header)
            net.record.start(self._visit)
            self._play_later(request.method, lambda: step, None)

    def _seen(
        self,
        host: Host | None,
        request: Request,
        host_header: str,
        ended: float | None = None,
        code: int | None = None,
        sent: int = 0,
        whole: bool = False,
    ) -> Visit:
        arrived, wall = self._first
        address = self._listener.address
        key = host.key if host is not None else address
        headers = request.headers if self._net.keep_headers else {}
        asked = (host_header, request.method, request.path, headers)
        return Visit(arrived, wall, ended, address, key, *asked, code, self._number, sent, whole)

    def _write_short(self, step: Step, method: str) -> None:
        self._transport.write(step.head(_date()) + (b"" if method == "HEAD" else step.body))
        if self._read:
            self._answer_leftover()

    def _answer_leftover(self) -> None:
        self._first = (time.monotonic(), time.time())
        self._answer_next()

    def _play_later(self, method: str, choose: Callable[[], Step], gate: asyncio.Future[None] | None) -> None:
        self._playing = asyncio.get_running_loop().create_task(self._play(method, choose, gate))

    async def _play(self, method: str, choose: Callable[[], Step], gate: asyncio.Future[None] | None) -> None:
        if gate is not None:
            await gate
        step = choose()
        if step.silent:
            await asyncio.get_running_loop().create_future()
        if step.delay:
            await asyncio.sleep(step.delay)
        self._note(status=step.status)
        if step.framing is not Framing.RAW:
            await self._write(step.head(_date()))
        for piece in step.pieces() if method != "HEAD" else ():
            if step.every:
                await asyncio.sleep(step.every)
            await self._write(piece)
            self._note(sent=len(piece))
        self._playing = None
        self._end(whole=True)
        self._finish(step.ending)

    def _finish(self, ending: Ending) -> None:
        if ending is Ending.RESET:
            self.abort()
        elif ending is Ending.CLOSE:
            self._transport.close()
        elif self._read:
            self._answer_leftover()

    async def _write(self, data: bytes) -> None:
        self._transport.write(data)
        if self._drained.is_set():
            await asyncio.sleep(0)
        else:
            await self._drained.wait()

    def _note(self, *, status: int | None = None, sent: int = 0) -> None:
        if self._visit is None:
            return
        told = self._visit.status if status is None else status
        self._visit = self._visit._replace(status=told, sent=self._visit.sent + sent)
        self._net.record.start(self._visit)

    def _end(self, *, whole: bool) -> None:
        if self._visit is not None:
            visit, self._visit = self._visit, None
            self._net.saw_end(visit._replace(ended=time.monotonic(), whole=whole))


def _parse(head: bytes) -> tuple[Request, str]:
    """The request line and headers, and the host header verbatim.  Raises: HTTPException on anything that is not HTTP."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3:
        _not_http(first)
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            _not_http(line)
        name, value = name.lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if "transfer-encoding" in headers:
        _not_http("a request in chunks")
    return Request(words[0], words[1], headers), headers.get("host", "")


def _not_http(line: str) -> NoReturn:
    raise HTTPException(line)


_today: tuple[int, str] = (0, "")


def _date() -> str:
    """The Date header, made once a second."""
    global _today
    now = int(time.time())
    if _today[0] != now:
        _today = (now, formatdate(now, usegmt=True))
    return _today[1]
