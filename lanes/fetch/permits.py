"""The seam through which a fetch asks for permission to go on.

Owns the questions a fetch must ask before it dials or writes.  Refuses to own: the answers (rows, in `lanes.store`).  Must never
break: nothing is dialled or written before its permit was given.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Go:
    """Go on now.  `address` is the address the host was last dialled at: keep it while DNS still names it."""

    address: str | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Not yet: `delay` from now until it may be asked again, and why, in words.  `in_slot` False: however short, its Poll is put back."""

    delay: timedelta
    reason: str
    in_slot: bool = True


class Permits(Protocol):
    """What one Poll in hand may do; bound to its claim by whoever makes it."""

    def dial(self, host: str, address: str) -> Go | Wait:
        """Take a slot in the address bucket of `address`, which is new or changed for `host`, before it is dialled."""

    def hop(self, host: str, origin: str) -> Go | Wait:
        """Enter `host` for the next hop of a redirect chain, to a URL of `origin`: its `busy_until` and its buckets are spent as a claim
        spends them, the Gap of its Site among them."""

    def sending(self, host: str, address: str) -> datetime | Wait:
        """The request is about to be written: moves the buckets first where it is late, and returns the sent instant (Postgres time), or
        Wait where it may not be written any more: its lease has ended, or its host was told to wait meanwhile."""
