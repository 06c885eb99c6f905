"""Every deadline and cap of a fetch, with its reason (DESIGN 6).

Owns the numbers.  Refuses to own: pace (`lanes.core.pace`).  Must never break: they are constants of the program; only tests and
benches give others, and no environment variable does.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, bytes and counts."""

    resolve: float = 20.0
    """s for a name: the system's resolver needs 10 to give up one silent server and ask the next."""
    connect: float = 10.0
    """s from the first dial to the end of the TLS handshake, all addresses together."""
    fall_back: float = 2.0
    """s for one address while another is left: a black-holed address family costs seconds, not the connect deadline."""
    addresses: int = 4
    """Addresses of one name that are dialled: each costs a slot of its address bucket."""
    read: float = 20.0
    """s for one read from the socket."""
    whole: float = 60.0
    """s for the whole fetch, hops and waits included; the lease of 90 s outlives it."""
    wire: int = 10 * 1024 * 1024
    """Bytes of one answer on the wire, header included."""
    decoded: int = 30 * 1024 * 1024
    """Bytes of one body decompressed, at every stage."""
    hops: int = 10
    """Redirects followed; browsers stop at 20, and no honest chain needs half of this."""
    hop_wait: float = 5.0
    """s that a slot waits for a hop's buckets; beyond, the Poll is put back (DESIGN 4.3)."""
    idle: int = 256
    """Idle connections kept."""
    idle_for: float = 60.0
    """s an idle connection is kept: below the 75 s after which common servers close it, so that none closes under our request."""


LIMITS = Limits()
