"""From a host to an open connection: name, guard, permit, dial, TLS.

Owns which address is dialled and how long that may take.  Refuses to own: what is said on the connection.  Must never break: exactly an
address that the guard has checked is dialled, and a new or changed one only after its slot was given.
"""

from __future__ import annotations

import errno
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass

from lanes.core.answer import Trouble
from lanes.core.urls import Parts
from lanes.fetch.broken import Broken, Held, Refused
from lanes.fetch.guard import Guard
from lanes.fetch.limits import Limits
from lanes.fetch.permits import Permits, Wait

_NO_SUCH_NAME = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
"""A definite no from the name system, which proves our line; EAI_AGAIN and EAI_FAIL are no answer."""


@dataclass(frozen=True, slots=True)
class Route:
    """How to reach a host.  `known` is the address it was last dialled at, `given` one to dial without asking DNS again.  The claim (or
    the hop) has spent the slot of one: the given one, else the known one."""

    known: str | None = None
    given: str | None = None

    def has_slot(self, address: str) -> bool:
        return address == (self.given or self.known)


class Dialler:
    """Opens connections within `until`, an instant of the monotonic clock."""

    def __init__(self, guard: Guard, limits: Limits) -> None:
        self._guard = guard
        self._limits = limits

    def dial(self, parts: Parts, route: Route, permits: Permits, until: float) -> tuple[socket.socket, str, float]:
        """A connected socket, the address behind it, and the instant by which TLS must be done.  Raises: Broken, Refused, Held."""
        ends: float | None = None
        failures: list[OSError] = []
        for address, is_last in self._candidates(parts, route, until):
            if ends is not None and time.monotonic() >= ends:
                break
            if not route.has_slot(address) and isinstance(answer := permits.dial(parts.host, address), Wait):
                raise Held(answer, address)
            ends = min(until, time.monotonic() + self._limits.connect) if ends is None else ends
            left = ends - time.monotonic()
            try:
                return (
                    _connected(address, parts.port, left if is_last else min(left, self._limits.fall_back)),
                    address,
                    ends,
                )
            except OSError as error:
                failures.append(error)
        refused = any(failure.errno == errno.ECONNREFUSED for failure in failures)
        raise Broken(Trouble.CONNECT, f"{parts.host}: {_why(failures[-1])}", line_proved=refused)

    def _candidates(self, parts: Parts, route: Route, until: float) -> Iterator[tuple[str, bool]]:
        """Addresses to dial, in order, and whether each is the last.  The name system is asked only when the given one failed."""
        if route.given is not None:
            if not self._guard.check(route.given):
                raise Refused(route.given)
            yield route.given, False
        named = self._named(parts, until)
        ranked = _ranked(named, route.known)[: self._limits.addresses]
        others = [address for address in ranked if address != route.given] or ranked
        for address in others:
            yield address, address == others[-1]

    def _named(self, parts: Parts, until: float) -> tuple[str, ...]:
        try:
            named = self._guard.resolve(parts.host, parts.port, min(self._limits.resolve, until - time.monotonic()))
        except TimeoutError:
            raise Broken(Trouble.DNS, f"{parts.host}: the name system did not answer in time") from None
        except socket.gaierror as error:
            definite = error.errno in _NO_SUCH_NAME
            why = "no such name" if definite else "the name system did not answer"
            raise Broken(Trouble.DNS, f"{parts.host}: {why}", line_proved=definite) from error
        except (OSError, UnicodeError) as error:
            raise Broken(Trouble.DNS, f"{parts.host}: the name could not be looked up") from error
        if named.allowed:
            return named.allowed
        if named.refused:
            raise Refused(named.refused[0])
        raise Broken(Trouble.DNS, f"{parts.host}: a name without addresses", line_proved=True)


def secured(sock: socket.socket, host: str, tls: ssl.SSLContext, ends: float) -> ssl.SSLSocket:
    """The TLS handshake, done by `ends`.  Raises: Broken; the socket is closed then."""
    try:
        sock.settimeout(max(ends - time.monotonic(), 0.001))
        return tls.wrap_socket(sock, server_hostname=host)
    except TimeoutError as error:
        broken = Broken(Trouble.TIMEOUT, f"{host}: no TLS handshake in time")
        cause: Exception = error
    except ssl.SSLError as error:
        why = (getattr(error, "verify_message", "") or error.reason or "failed").replace("_", " ").lower()
        broken = Broken(Trouble.TLS, f"{host}: TLS: {why}", line_proved="alert" in why)
        cause = error
    except OSError as error:
        broken, cause = Broken(Trouble.RESET, f"{host}: {_why(error)} in the TLS handshake"), error
    sock.close()
    raise broken from cause


def _ranked(addresses: tuple[str, ...], known: str | None) -> list[str]:
    """The known address first while it is still named, then one of the other family: where one family black-holes, the next try works."""
    first = known if known in addresses else addresses[0]
    others = [address for address in addresses if address != first]
    return [first, *sorted(others, key=lambda address: (":" in address) == (":" in first))]


def _connected(address: str, port: int, timeout: float) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(max(timeout, 0.001))
        sock.connect((address, port))
    except BaseException:
        sock.close()
        raise
    return sock


def _why(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no connection in time"
    return (error.strerror or "connection failed").lower()
