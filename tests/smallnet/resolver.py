"""Names of the small internet, asked the way `socket.getaddrinfo` is.

Owns which addresses a name has, now and over time.  Refuses to own: hosts.  Must never break: it never asks the machine's own resolver.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

Found = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int] | tuple[str, int, int, int]]


class Asked(NamedTuple):
    """One question: monotonic instant and name."""

    at: float
    name: str


class Resolver:
    """Call it like `socket.getaddrinfo`.  Unknown names do not exist (EAI_NONAME); addresses stand for themselves."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._answers: dict[str, list[list[str] | int]] = {}
        self._delays: dict[str, float] = {}
        self._outage: int | None = None
        self._closed = threading.Event()

    def set(self, name: str, *addresses: str) -> None:
        """`name` has these addresses from now on."""
        self._answers[name.lower()] = [list(addresses)]

    def script(self, name: str, answers: Sequence[Sequence[str] | int]) -> None:
        """One answer a question, in order, the last repeats: addresses, or a failure such as `socket.EAI_AGAIN`."""
        self._answers[name.lower()] = [answer if isinstance(answer, int) else list(answer) for answer in answers]

    def fail(self, error: int = socket.EAI_AGAIN, name: str | None = None) -> None:
        """Every question, or those for `name`, fails like this until `heal` (or `set`)."""
        if name is None:
            self._outage = error
        else:
            self._answers[name.lower()] = [error]

    def heal(self) -> None:
        """End an outage of every name."""
        self._outage = None

    def delay(self, name: str, seconds: float) -> None:
        """Answers for `name` take this long."""
        self._delays[name.lower()] = seconds

    def close(self) -> None:
        """End every delay."""
        self._closed.set()

    def __call__(
        self,
        host: str,
        port: int | str | None,
        family: int = 0,
        type: int = 0,  # noqa: A002  getaddrinfo's own name for it
        proto: int = 0,
        flags: int = 0,
    ) -> list[Found]:
        """As `socket.getaddrinfo` for stream sockets.  Raises: socket.gaierror."""
        name = host.lower().rstrip(".")
        addresses = self._addresses(host, name)
        number = int(port or 0)
        found: list[Found] = []
        for address in addresses:
            place: tuple[str, int] | tuple[str, int, int, int]
            if ipaddress.ip_address(address).version == 6:
                kind, place = socket.AF_INET6, (address, number, 0, 0)
            else:
                kind, place = socket.AF_INET, (address, number)
            if family in (0, kind):
                found.append((kind, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", place))
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return found

    def _addresses(self, host: str, name: str) -> list[str]:
        try:
            return [str(ipaddress.ip_address(host))]
        except ValueError:
            self.asked.append(Asked(time.monotonic(), name))
        self._closed.wait(self._delays.get(name, 0.0))
        answers = self._answers.get(name, [socket.EAI_NONAME])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        error = self._outage if self._outage is not None else answer
        if isinstance(error, int):
            raise socket.gaierror(error, "the small internet says so")
        return error
