"""One open connection: a request written, an answer read, within deadline and caps.

Owns the socket's deadlines, the count of bytes on the wire and the kept-alive connections.  Refuses to own: dialling, and following
redirects.  Must never break: no read outlives the fetch's deadline, however slowly bytes drip, and a connection never dials by itself.
"""

from __future__ import annotations

import io
import logging
import socket
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from http.client import HTTPException, HTTPResponse, IncompleteRead, RemoteDisconnected
from typing import Any

from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError, ReadTimeoutError
from urllib3.response import HTTPResponse as Reply

from lanes.core.answer import Trouble
from lanes.core.headers import keep_alive
from lanes.core.urls import Parts
from lanes.fetch.body import PIECE, decoded
from lanes.fetch.broken import Broken
from lanes.fetch.limits import Limits

logging.getLogger("urllib3").setLevel(logging.CRITICAL)  # its warnings quote whole URLs, which may hold secrets

_BUFFER = 32 * 1024
_DRAINED = 64 * 1024
"""Bytes of a redirect's own body that are read to keep the connection; a longer one costs the connection."""


class _Incoming(io.RawIOBase):
    """What comes in on a socket: every read has a deadline, every byte is counted."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, limits: Limits, until: float) -> None:
        self._raw = raw
        self._sock = sock
        self._limits = limits
        self._until = until
        self.count = 0
        self.ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(min(left, self._limits.read))
        got = self._raw.readinto(buffer)
        self.ended = not got
        self.count += got or 0
        if self.count > self._limits.wire:
            raise Broken(Trouble.OVERSIZE, f"more than {self._limits.wire} bytes on the wire", line_proved=True)
        return got

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Answer(HTTPResponse):
    """http.client's answer, read through `_Incoming`, with every interim answer skipped, not just 100 (RFC 9110 15.2)."""

    def __init__(self, sock: socket.socket, limits: Limits, until: float, method: str | None = None) -> None:
        super().__init__(sock, method=method)
        self.incoming = _Incoming(self.fp.detach(), sock, limits, until)
        self.fp = io.BufferedReader(self.incoming, _BUFFER)

    def begin(self) -> None:
        super().begin()
        while 102 <= self.status < 200:
            self.headers = self.msg = None  # type: ignore[assignment]  # as before the first `begin`
            super().begin()


class Connection(HTTPConnection):
    """A connection to `parts`' host at `address`, over a socket that is open already."""

    auto_open = 0  # http.client would dial anew, past the guard

    def __init__(self, parts: Parts, address: str, sock: socket.socket, limits: Limits) -> None:
        super().__init__(parts.host, parts.port)
        self.sock = sock
        self.address = address
        self.key = (parts.scheme, parts.host, parts.port)
        self.status: int | None = None
        self.idle_until = 0.0
        self._limits = limits
        self._incoming: _Incoming | None = None

    @property
    def wire_bytes(self) -> int:
        """Bytes that came in for the last request."""
        return self._incoming.count if self._incoming is not None else 0

    def ask(self, target: str, headers: Mapping[str, str], until: float) -> Reply:
        """Write a GET and read the answer's header.  Raises: Broken."""
        self.status = self._incoming = None
        self.timeout = max(min(self._limits.read, until - time.monotonic()), 0.001)
        self.response_class = self._answer_class(until)
        try:
            self.request("GET", target, headers=headers, preload_content=False)
            reply = self.getresponse()
        except (OSError, HTTPException, HTTPError, ValueError) as error:
            raise self._broken_header(error, until) from error
        finally:
            del self.response_class  # it holds this connection: else a closed one stays until the collector comes by
        if self._has_ended():  # http.client takes a cut header for a whole one
            reply.close()
            raise Broken(Trouble.RESET, f"{self.host}: the connection ended inside the header", line_proved=True)
        self.status = reply.status
        return reply

    def read(self, reply: Reply, until: float, cut: int | None = None) -> bytes:
        """The whole body, decompressed; or its first `cut` bytes, and where there are more the connection is given up.  Raises: Broken."""
        if reply.length_remaining == 0:
            reply.close()
            return b""
        if cut is None and (reply.length_remaining or 0) > self._limits.wire:
            raise Broken(Trouble.OVERSIZE, f"{reply.length_remaining} bytes announced", line_proved=True)
        try:
            body = decoded(_pieces(reply), reply.headers.get("content-encoding", ""), self._limits.decoded, cut)
        except (OSError, HTTPException, HTTPError, ValueError) as error:  # ValueError: a chunk of negative size
            raise self._broken_body(error, until) from error
        if cut is not None and len(body) >= cut:
            self.end()
        return body

    def drain(self, reply: Reply) -> None:
        """Read a body that nobody wants, if that is cheap, so that the connection can be kept; else give the connection up."""
        length = reply.length_remaining
        if length == 0 or (length is not None and length <= _DRAINED and self._drained(reply)):
            reply.close()
        else:
            self.end()

    def rest(self, headers: Mapping[str, str]) -> bool:
        """Make it idle; whether it can be used again, as far as this side knows."""
        server = keep_alive(headers)
        idle = self._limits.idle_for if server is None else min(self._limits.idle_for, server.total_seconds() - 1)
        self.idle_until = time.monotonic() + idle
        return self.sock is not None and self.status != 101 and idle > 0

    def is_usable(self) -> bool:
        """Whether the other side has neither closed it nor sent anything unasked: looked at before writing, so that nothing is written
        twice."""
        return time.monotonic() < self.idle_until and self.is_connected

    def interrupt(self) -> None:
        """End it from another thread: whoever reads from it sees its end."""
        sock = self.sock
        if sock is not None:
            try:
                socket.socket.shutdown(
                    sock, socket.SHUT_RDWR
                )  # not SSLSocket's, which takes the TLS state from its reader
            except OSError:
                return

    def end(self) -> None:
        """Close it, with an answer that is still being read."""
        self.close()
        if self._incoming is not None:
            self._incoming.close()

    def _has_ended(self) -> bool:
        return self._incoming is not None and self._incoming.ended

    def _answer_class(self, until: float) -> Any:
        def answer(sock: socket.socket, method: str | None = None) -> _Answer:
            made = _Answer(sock, self._limits, until, method)
            self._incoming = made.incoming
            return made

        return answer

    def _drained(self, reply: Reply) -> bool:
        try:
            return sum(map(len, _pieces(reply))) <= _DRAINED
        except (OSError, HTTPException, HTTPError, ValueError, Broken):
            return False

    def _broken_header(self, error: Exception, until: float) -> Broken:
        proved = self.wire_bytes > 0
        if isinstance(error, TimeoutError):
            return self._late(until, proved)
        if isinstance(error, ssl.SSLError):
            why = (error.reason or "failed").replace("_", " ").lower()
            return Broken(Trouble.TLS, f"{self.host}: TLS: {why}", line_proved="alert" in why)
        if isinstance(error, (OSError, RemoteDisconnected)):
            return Broken(Trouble.RESET, f"{self.host}: the connection ended before an answer", proved)
        return Broken(Trouble.FRAMING, f"{self.host}: an answer that is no HTTP/1 ({type(error).__name__})", proved)

    def _broken_body(self, error: Exception, until: float) -> Broken:
        if isinstance(error, (TimeoutError, ReadTimeoutError)):
            return self._late(until, proved=True)
        cut = isinstance(error, IncompleteRead) or isinstance(error.__cause__, (IncompleteRead, OSError))
        return Broken(Trouble.FRAMING, f"{self.host}: the body {'was cut short' if cut else 'is not framed'}", True)

    def _late(self, until: float, proved: bool) -> Broken:
        whole = time.monotonic() >= until
        why = "not finished" if whole else "silent"
        seconds = self._limits.whole if whole else self._limits.read
        return Broken(Trouble.TIMEOUT, f"{self.host}: {why} for {seconds:g} s", proved)


class Pool:
    """Idle connections, at most one a host and scheme, the longest idle closed first; and those in use, so that they can be ended."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._idle: OrderedDict[tuple[str, str, int], Connection] = OrderedDict()
        self._in_use: set[Connection] = set()
        self._lock = threading.Lock()

    def take(self, parts: Parts) -> Connection | None:
        """An idle connection that is still whole, or None.  It is in use from now on."""
        with self._lock:
            connection = self._idle.pop((parts.scheme, parts.host, parts.port), None)
        if connection is None:
            return None
        if not connection.is_usable():
            connection.end()
            return None
        self.use(connection)
        return connection

    def use(self, connection: Connection) -> None:
        with self._lock:
            self._in_use.add(connection)

    def put(self, connection: Connection) -> None:
        """Back to the idle ones."""
        now = time.monotonic()
        with self._lock:
            self._in_use.discard(connection)
            closing = [self._idle.pop(connection.key, None)]
            self._idle[connection.key] = connection
            while self._idle and (len(self._idle) > self._most or next(iter(self._idle.values())).idle_until < now):
                closing.append(self._idle.popitem(last=False)[1])
        for old in closing:
            if old is not None:
                old.end()

    def drop(self, connection: Connection) -> None:
        """Close one that was in use."""
        with self._lock:
            self._in_use.discard(connection)
        connection.end()

    def interrupt(self) -> None:
        """End those in use, from another thread."""
        with self._lock:
            using = list(self._in_use)
        for connection in using:
            connection.interrupt()

    def close(self) -> None:
        """Close the idle ones."""
        with self._lock:
            idle = list(self._idle.values())
            self._idle.clear()
        for connection in idle:
            connection.end()


def _pieces(reply: Reply) -> Iterator[bytes]:
    while piece := reply.read(PIECE, decode_content=False):
        yield piece
