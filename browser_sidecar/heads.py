"""The heads of what passes through the proxy: what is asked of it, and what goes on to the other side.

Owns their bytes.  Refuses to own: connections.  Must never break: what concerns one connection alone, credentials first of all, goes no
further than that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from lanes.core.urls import split

END: Final = re.compile(rb"\n\r?\n")
"""Of a head: RFC 9112 would have lines end by CR LF, and clients take LF alone."""
_HOP_BY_HOP = {b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization", b"proxy-authenticate"}


@dataclass(frozen=True, slots=True)
class Asked:
    """The head of a request to the proxy.  `onward`: what is written to the origin first; None: a tunnel."""

    host: str
    port: int
    onward: bytes | None
    credentials: bytes


def read_head(head: bytes) -> Asked:
    """Raises: ValueError where it is nothing that a proxy can carry."""
    first, lines = split_head(head)
    method, target, version = first.split(b" ")
    credentials = _credentials(head)
    if method == b"CONNECT":
        parts = split(f"https://{target.decode('ascii')}")
        if parts is None or parts.target != "/":
            raise ValueError("no host and port")
        return Asked(parts.host, parts.port, None, credentials)
    parts = split(target.decode("ascii"))
    if parts is None or parts.scheme != "http":
        raise ValueError("no http URL")
    first = b" ".join([method, parts.target.encode("ascii"), version])
    return Asked(parts.host, parts.port, b"\r\n".join([first, *lines, b"Connection: close", b"", b""]), credentials)


def split_head(head: bytes) -> tuple[bytes, list[bytes]]:
    """The first line, and the header lines that concern more than this one connection."""
    first, *lines = re.split(rb"\r?\n", head.rstrip(b"\r\n"))
    return first, [line for line in lines if line.partition(b":")[0].strip().lower() not in _HOP_BY_HOP]


def _credentials(head: bytes) -> bytes:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"proxy-authorization":
            return value.strip()
    return b""
