"""The DevTools protocol over one websocket: calls, their replies, and events by session.

Owns the socket and its one reader.  Refuses to own: what any method means.  Must never break: when the socket dies, or is silent past its
deadline, every pending call fails at once, and so does every later one.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import websocket

log = logging.getLogger("browser_sidecar.cdp")

CALL: Final = 15.0
"""s for one call, where its caller names no other."""
CONNECT: Final = 10.0
"""s for the socket and its handshake."""
LARGEST: Final = 16 * 2**20
"""Bytes of one frame: more than the longest reply that is asked for.  A page can make an event of any length (`prompt`, `window.open`, a
request's own URL): it is left out, or every page could fill our memory, or take the browser from all others."""
PIECE: Final = 64 * 1024
"""Bytes of one read."""
WHOLE_TEXT: Final = 0x81
"""How a frame begins that is a whole message (RFC 6455, 5.2)."""

Heard = Callable[[str, Mapping[str, Any]], None]


class CdpError(Exception):
    """Base of what a call ends in, other than its result."""


class Gone(CdpError):
    """The socket is dead, for the reason that its text says."""


class Late(CdpError):
    """No reply in time; the socket lives."""


class Declined(CdpError):
    """The other side answered that it will not, or cannot."""

    def __init__(self, method: str, message: str) -> None:
        self.message = message
        super().__init__(f"{method}: {message}")


@dataclass(frozen=True, slots=True)
class Silence:
    """s without a byte after which the other side is asked for a sign of life, and after which it is given up."""

    ask: float = 5.0
    end: float = 15.0


@dataclass(slots=True)
class _Pending:
    """A call that waits: for its reply, or for the words why there will be none.  `number`: 0 until it has one."""

    method: str
    session: str | None
    reply: queue.SimpleQueue[Mapping[str, Any] | str] = field(default_factory=queue.SimpleQueue)
    number: int = 0


class _Buffered:
    """What comes in on the socket, read in large pieces: a frame alone costs the library three reads."""

    def __init__(self, receive: Callable[[int], bytes]) -> None:
        self._receive, self._piece, self._at = receive, b"", 0

    def __call__(self, size: int) -> bytes:
        self._fill()
        taken = self._piece[self._at : self._at + size]
        self._at += len(taken)
        return taken

    def whole_text(self) -> bytes | None:
        """The next frame's text, where that is a whole unmasked message of the usual length that is here already; else nothing is taken."""
        self._fill()
        piece, at = self._piece, self._at
        if len(piece) < at + 4 or piece[at] != WHOLE_TEXT:
            return None
        length, begins = piece[at + 1], at + 2
        if length == 126:
            length, begins = int.from_bytes(piece[at + 2 : at + 4], "big"), at + 4
        elif length > 126:  # a long one, or a masked one
            return None
        if begins + length > len(piece):
            return None
        self._at = begins + length
        return piece[begins : self._at]

    def _fill(self) -> None:
        if self._at == len(self._piece):
            self._piece, self._at = self._receive(PIECE), 0


class _Frames(websocket.frame_buffer):
    """The library's frames: one that is too long is empty; the usual one is taken in one step, since the library's own costs more than what
    it says."""

    def __init__(self, receive: Callable[[int], bytes]) -> None:
        self._buffered, self._left_out = _Buffered(receive), 0
        super().__init__(self._buffered, skip_utf8_validation=True)

    def recv_frame(self) -> websocket.ABNF:
        while self._left_out:
            self._left_out -= len(self._buffered(self._left_out))
        if self.header is None and not self.recv_buffer and (text := self._buffered.whole_text()) is not None:
            return websocket.ABNF(1, opcode=websocket.ABNF.OPCODE_TEXT, mask_value=0, data=text)
        return super().recv_frame()

    def recv_length(self) -> None:
        super().recv_length()
        if self.length is not None and self.length > LARGEST:
            self._left_out, self.length = self.length, 0


class Cdp:
    """One connection.  Safe for threads.

    A thread reads, because replies to several callers and events come on one socket in any order.  Events are told in that thread: who
    hears one answers soon, and calls nobody (`tell` is allowed).
    """

    def __init__(self, url: str, *, silence: Silence = Silence()) -> None:
        """Connects.  Raises: Gone."""
        self._silence = silence
        self._socket = websocket.WebSocket(enable_multithread=True, skip_utf8_validation=True)
        self._socket.frame_buffer = _Frames(self._socket._recv)  # noqa: SLF001 - the library's own way to read
        self._pending: dict[int, _Pending] = {}
        self._heard: dict[str | None, Heard] = {}
        self._lock = threading.Lock()
        self._number = 0
        self._dead: str | None = None
        try:
            # Chrome lets nobody in who comes from a web page, which is what an Origin header says.
            self._socket.connect(  # type: ignore[no-untyped-call]
                url, timeout=CONNECT, suppress_origin=True, http_no_proxy=["*"], redirect_limit=0
            )
            self._socket.settimeout(silence.ask)
        except (websocket.WebSocketException, OSError, ValueError) as error:
            self._socket.shutdown()  # type: ignore[no-untyped-call]
            raise Gone(f"no connection: {_unshaken(error)}") from error
        self._reader = threading.Thread(target=self._read, name="cdp", daemon=True)
        self._reader.start()

    @property
    def dead(self) -> str | None:
        """Why the socket is dead; None while it lives."""
        return self._dead

    def call(
        self, method: str, params: Mapping[str, Any] | None = None, session: str | None = None, timeout: float = CALL
    ) -> Mapping[str, Any]:
        """The result of a method, within `timeout` seconds.  Raises: Gone, Late, Declined."""
        return self.call_all([(method, params or {})], session, timeout)[0]

    def call_all(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]], session: str | None = None, timeout: float = CALL
    ) -> list[Mapping[str, Any]]:
        """The results of several methods, asked for in one go and carried out in this order, whether or not one of them is declined; all
        within `timeout` seconds.  Raises as `call`, of the first that failed."""
        until, asked = time.monotonic() + timeout, []
        try:
            for method, params in calls:
                asked.append(pending := _Pending(method, session))
                self._send(method, params, session, pending)
            return [self._result(pending, until, timeout) for pending in asked]
        finally:
            with self._lock:
                for pending in asked:
                    self._pending.pop(pending.number, None)

    def tell(self, method: str, params: Mapping[str, Any] | None = None, session: str | None = None) -> None:
        """A call whose result nobody waits for.  Raises: Gone."""
        self._send(method, params, session, None)

    def listen(self, session: str | None, heard: Heard) -> None:
        """Has the events of a session told to `heard` as (method, params), in the reader's thread.  None: those of no session."""
        with self._lock:
            self._heard[session] = heard

    def end_session(self, session: str, why: str) -> None:
        """Tells nobody of its events any more, and fails the calls that wait in it."""
        with self._lock:
            self._heard.pop(session, None)
            waiting = [number for number, pending in self._pending.items() if pending.session == session]
            ended = [self._pending.pop(number) for number in waiting]
        for pending in ended:
            pending.reply.put(why)

    def close(self) -> None:
        """Ends the connection; pending calls fail."""
        self._die("closed")
        self._reader.join(timeout=self._silence.end)

    def _result(self, pending: _Pending, until: float, timeout: float) -> Mapping[str, Any]:
        try:
            answer = pending.reply.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            raise Late(f"{pending.method}: no reply within {timeout:g} s") from None
        if isinstance(answer, str):
            raise Gone(answer)
        if "error" in answer:
            raise Declined(pending.method, str(answer["error"].get("message", "no reason given"))[:500])
        result = answer.get("result")
        return result if isinstance(result, Mapping) else {}

    def _send(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        session: str | None,
        pending: _Pending | None,
    ) -> None:
        with self._lock:
            if self._dead is not None:
                raise Gone(self._dead)
            self._number += 1
            number = self._number
            if pending is not None:
                pending.number = number
                self._pending[number] = pending
        message = {"id": number, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = session
        try:
            self._socket.send(json.dumps(message))
        except (websocket.WebSocketException, OSError) as error:
            self._die(f"nothing can be written: {_said(error)}")
            raise Gone(self.dead or "closed") from error

    def _read(self) -> None:
        """Until the socket dies.  A read that came to nothing goes on where it was."""
        heard_at, asked = time.monotonic(), False
        try:
            while True:
                try:
                    kind, frame = self._socket.recv_data(control_frame=True)
                except websocket.WebSocketTimeoutException:
                    if time.monotonic() - heard_at >= self._silence.end:
                        self._die(f"silent for {self._silence.end:g} s")
                        return
                    if not asked:
                        self._socket.ping()
                        asked = True
                    continue
                heard_at, asked = time.monotonic(), False
                if kind == websocket.ABNF.OPCODE_CLOSE:
                    self._die("the other side closed it")
                    return
                if kind == websocket.ABNF.OPCODE_TEXT and frame:
                    self._take(json.loads(frame.decode("utf-8", "replace")))
        except Gone:
            pass  # it was closed while an event was being answered
        except (websocket.WebSocketException, OSError) as error:
            self._die(_said(error))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            self._die(f"it says what is no message: {_said(error)}")
        finally:
            self._socket.shutdown()  # type: ignore[no-untyped-call]

    def _take(self, message: Mapping[str, Any]) -> None:
        number = message.get("id")
        if number is not None:
            with self._lock:
                pending = self._pending.pop(number, None)
            if pending is not None:
                pending.reply.put(message)
            return
        with self._lock:
            heard = self._heard.get(message.get("sessionId"))
        if heard is None:
            return
        try:
            heard(message["method"], message.get("params") or {})
        except Gone:
            raise
        except Exception:
            log.exception("a bug met an event of the browser method=%s", message.get("method"))

    def _die(self, why: str) -> None:
        with self._lock:
            if self._dead is not None:
                return
            self._dead = why
            ended, self._pending = list(self._pending.values()), {}
        self._socket.abort()  # type: ignore[no-untyped-call]
        for pending in ended:
            pending.reply.put(why)


def _said(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200] or type(error).__name__


def _unshaken(error: Exception) -> str:
    """Why no hands were shaken: of the other side's own words, which may hold secrets, none but its status."""
    match error:
        case websocket.WebSocketBadStatusException(status_code=int(status)):
            return f"status {status}"
        case OSError() | websocket.WebSocketAddressException() | websocket.WebSocketTimeoutException():
            return _said(error)
        case _:
            return "what is there is no WebSocket"
