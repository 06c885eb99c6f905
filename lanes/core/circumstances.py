"""What a decision takes from around a Poll: values alone, so that everything that decides is pure.

Owns these shapes.  Refuses to own: where they come from (the shell).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from lanes.core.pace import HOST_DEFAULT, HostPace


@dataclass(frozen=True, slots=True)
class Known:
    """What the database knows of the identities of one document: those it has, and whether the Series has any at all."""

    identities: frozenset[bytes] = frozenset()
    any: bool = False


@dataclass(frozen=True, slots=True)
class Circumstances:
    """`now`, a random number 0 to 1, the registry's Rest (None on `feeds`), the pace of the host that answered and the floor to which
    it may narrow, the answer's latency, whether the question carried no validators, and when its last request was sent (None: none
    was)."""

    now: datetime
    chance: float
    site_rest: timedelta | None
    host: HostPace
    latency: timedelta | None = None
    unconditional: bool = False
    sent_at: datetime | None = None
    host_floor: timedelta = HOST_DEFAULT
