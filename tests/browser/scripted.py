"""A websocket server that says what a test tells it to, byte by byte if need be: the other side of `browser_sidecar.cdp`."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
DEADLINE = 20.0


class Peer:
    """The server's side of one connection, after the handshake."""

    def __init__(self, wire: socket.socket) -> None:
        self._wire = wire
        self._file = wire.makefile("rb")
        self.pings = 0
        self.answers_pings = True

    def shake_hands(self) -> dict[str, str]:
        """The client's headers, lower-case."""
        lines = []
        while (line := self._file.readline().strip()) != b"":
            lines.append(line.decode())
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        key = base64.b64encode(hashlib.sha1(headers["sec-websocket-key"].encode() + _MAGIC).digest())
        self._wire.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + key + b"\r\n\r\n"
        )
        return headers

    def heard(self) -> dict[str, Any]:
        """The next message; pings are answered on the way.  Raises: EOFError."""
        while True:
            kind, data = self._frame()
            if kind == 0x1:
                message: dict[str, Any] = json.loads(data)
                return message
            if kind == 0x9:
                self.pings += 1
                if self.answers_pings:
                    self.write(frame(data, kind=0xA))
            elif kind == 0x8:
                raise EOFError

    def heard_ping(self) -> None:
        """The next frame is a ping, which is answered."""
        kind, data = self._frame()
        assert kind == 0x9
        self.pings += 1
        self.write(frame(data, kind=0xA))

    def _frame(self) -> tuple[int, bytes]:
        head = self._read(2)
        length = head[1] & 0x7F
        if length == 126:
            (length,) = struct.unpack("!H", self._read(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", self._read(8))
        mask = self._read(4)
        data = bytes(byte ^ mask[n % 4] for n, byte in enumerate(self._read(length)))
        return head[0] & 0xF, data

    def _read(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) < count:
            raise EOFError
        return data

    def say(self, message: Mapping[str, Any]) -> None:
        self.write(frame(json.dumps(message).encode()))

    def reply(self, to: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        self.say({"id": to["id"], "result": result})

    def write(self, data: bytes) -> None:
        self._wire.sendall(data)

    def wait_for_the_end(self) -> None:
        """Until the client has gone; whatever it says is not heard."""
        try:
            while self._wire.recv(65_536):
                pass
        except OSError:
            pass


def frame(data: bytes, *, kind: int = 0x1, final: bool = True) -> bytes:
    """One unmasked frame."""
    head = bytes([(0x80 if final else 0) | kind])
    if len(data) < 126:
        return head + bytes([len(data)]) + data
    if len(data) < 65_536:
        return head + b"\x7e" + struct.pack("!H", len(data)) + data
    return head + b"\x7f" + struct.pack("!Q", len(data)) + data


class Scripted:
    """Serves one connection by `script`, in a thread of its own; the connection ends with the script.  `greeting`: all that is said,
    instead of a handshake."""

    def __init__(self, script: Callable[[Peer], None], greeting: bytes | None = None) -> None:
        self._script, self._greeting = script, greeting
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self._listening.getsockname()[1]}/devtools/browser/1"
        self.headers: dict[str, str] = {}
        self.fault: Exception | None = None
        self._thread = threading.Thread(target=self._serve, name="scripted", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive(), "the client did not leave"
        if kind is None and self.fault is not None:
            raise self.fault

    def _serve(self) -> None:
        wire, _ = self._listening.accept()
        with wire:
            wire.settimeout(DEADLINE)
            peer = Peer(wire)
            try:
                if self._greeting is not None:
                    peer.write(self._greeting)
                    return
                self.headers = peer.shake_hands()
                self._script(peer)
            except (EOFError, ConnectionError):
                pass
            except Exception as fault:
                self.fault = fault
            finally:
                peer._file.close()
