"""Which addresses may be dialled (DESIGN 6).

Owns names to addresses, and the judgement of each address.  Refuses to own: dialling.  Must never break: an address that is not public
is never given out, unless a network of the allow-list holds it; so whoever dials what it gives out dials what was checked.
"""

from __future__ import annotations

import ipaddress
import queue
import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""RFC 6052: the last 32 bits are the IPv4 address that is really meant."""

_PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
"""RFC 4291: all global unicast lies in here; loopback, link-local, mapped, unique local, multicast lie outside."""

_NOT_PUBLIC: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network, unspecified
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared (RFC 6598)
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, clouds' metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
        "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarking
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
)
"""IANA's registries of special-purpose addresses, as far as they are not outside `_PUBLIC_6`."""


class Resolver(Protocol):
    """`socket.getaddrinfo`, or what a test puts in its place."""

    def __call__(self, host: str, port: int, *, type: int) -> Iterable[tuple[Any, ...]]:  # noqa: A002 - as getaddrinfo names it
        ...


@dataclass(frozen=True, slots=True)
class Named:
    """The addresses of a name, in the resolver's order: those that may be dialled, and those that may not."""

    allowed: tuple[str, ...]
    refused: tuple[str, ...]


class Guard:
    """Judges addresses.  `allow_networks` are let through besides public addresses."""

    def __init__(self, allow_networks: Iterable[str | Network] = (), resolver: Resolver = socket.getaddrinfo) -> None:
        self._allowed = tuple(ipaddress.ip_network(network) for network in allow_networks)
        self._resolver = resolver

    def check(self, address: str) -> bool:
        """Whether this address may be dialled.  Whatever is no address may not."""
        try:
            literal = ipaddress.ip_address(address)
        except ValueError:
            return False
        meant = _meant(literal)
        return any(place in network for network in self._allowed for place in (literal, meant)) or _is_public(meant)

    def forbids(self, host: str) -> bool:
        """Whether `host` is an address itself, and may not be dialled.  A name is judged once it is resolved."""
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return not self.check(host)

    def resolve(self, host: str, port: int, timeout: float) -> Named:
        """The addresses of `host`, each judged.  Raises: TimeoutError, socket.gaierror, UnicodeError."""
        answers: queue.SimpleQueue[Named | Exception] = queue.SimpleQueue()
        self.resolve_to(host, port, answers.put)
        try:
            answer = answers.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def resolve_to(self, host: str, port: int, tell: Callable[[Named | Exception], None]) -> None:
        """The same without a wait: `tell` is called once, with what `resolve` returns or raises.

        For an address that is before this returns; for a name in a thread, because nothing else can put a deadline on the system's
        resolver, and that thread lasts until that one gives up."""
        try:
            address = str(ipaddress.ip_address(host))
        except ValueError:
            threading.Thread(target=self._ask, args=(host, port, tell), name=f"resolve {host}", daemon=True).start()
        else:
            tell(self._judged((address,)))

    def _ask(self, host: str, port: int, tell: Callable[[Named | Exception], None]) -> None:
        try:
            found = self._resolver(host, port, type=socket.SOCK_STREAM)
            answer: Named | Exception = self._judged(tuple(dict.fromkeys(str(place[0]) for *_, place in found)))
        except Exception as error:  # noqa: BLE001 - raised again by who asked
            answer = error
        tell(answer)

    def _judged(self, addresses: tuple[str, ...]) -> Named:
        allowed = tuple(filter(self.check, addresses))
        return Named(allowed, tuple(address for address in addresses if address not in allowed))


def _meant(address: Address) -> Address:
    if isinstance(address, ipaddress.IPv6Address) and address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address not in _PUBLIC_6:
        return False
    return not any(address in network for network in _NOT_PUBLIC)
