"""What a decision takes from around a Poll: values alone, so that everything that decides is pure.

Owns these shapes.  Refuses to own: where they come from (the shell).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from lanes.core.pace import HOST_DEFAULT, HostPace
from lanes.core.reissues import Words

Numbered = tuple[str | None, str | None, str]
"""Volume, number and label of a Chapter."""

TOLD_ONCE = timedelta(days=30)
"""For how long a second Chapter of the same volume, number and label is not told again: another group's release of it follows within
weeks, a new season's Chapter 1 after months."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the database knows of the identities of one document: those it has, and whether the Series has any at all.  `numbers` are the
    volume, number and label of each Chapter found in the last 30 days, on a Site that names them itself; None: it does not.  `latest` is
    the highest number of its main line, there too.  `words` are those of its Chapters, of the words that were looked up, on a Site that
    publishes Chapters again under new ids."""

    identities: frozenset[bytes] = frozenset()
    any: bool = False
    numbers: frozenset[Numbered] | None = None
    latest: Decimal | None = None
    words: frozenset[Words] = frozenset()


@dataclass(frozen=True, slots=True)
class Circumstances:
    """`now`, a random number 0 to 1, the registry's Rest (None on `feeds`), the pace of the host that answered and the floor to which
    it may narrow, the answer's latency, whether the question carried no validators, when its last request was sent (None: none
    was), whether the host that answered, or the Lane, has a refused read or a window on its record, and the
    interval in force of that host, all lower bounds included.  `passed` are the hosts, and their pace, whose redirects led there."""

    now: datetime
    chance: float
    site_rest: timedelta | None
    host: HostPace
    latency: timedelta | None = None
    unconditional: bool = False
    sent_at: datetime | None = None
    host_floor: timedelta = HOST_DEFAULT
    refusing: bool = False
    interval: timedelta = HOST_DEFAULT
    passed: tuple[tuple[int, HostPace], ...] = ()
