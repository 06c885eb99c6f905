"""Refusal windows: when refused reads stop a host, or the Lane of a Site of one host, and for how long (DESIGN 5.4).

Owns the window of a host or a Lane.  Refuses to own: what is a refused read (`outcome`), and the wait of one URL refused alone
(`schedule`).  Must never break: a window is only ever opened or lengthened by a refused read, and no good read that was sent before it
opened ends it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

FIRST = timedelta(minutes=15)  # the shortest stop that a block of a few minutes outlives rarely
CEILING = timedelta(hours=4)  # six looks a day are enough to notice that a Site takes us back


@dataclass(frozen=True, slots=True)
class Read:
    """One read that was refused or good: its URL (hashed) and when its request was sent."""

    refused: bool
    url: bytes
    sent_at: datetime


@dataclass(frozen=True, slots=True)
class Window:
    """What a host or a Lane remembers of refusals; `refusals` counts the windows in a row.

    `url` and `refused_at` are those of the last refused read that is not answered by a good one yet, `good_sent_at` the latest good one.
    `since` is when the first window opened, `until` when the last one ends or ended.
    """

    refusals: int = 0
    since: datetime | None = None
    until: datetime | None = None
    url: bytes | None = None
    refused_at: datetime | None = None
    good_sent_at: datetime | None = None

    @property
    def opened_at(self) -> datetime | None:
        """When the last window opened."""
        return None if self.until is None else self.until - length(self.refusals)


def length(refusals: int) -> timedelta:
    """How long the `refusals`-th window in a row is."""
    return min(FIRST * (1 << min(max(refusals - 1, 0), 20)), CEILING)


def after(before: Window, read: Read, now: datetime, *, only_one: bool) -> Window:
    """The window after one read.  `only_one`: a single Series is eligible there, so two reads of the same URL count as two.

    Two refused reads with no good one between, by sent instants, open it.  A probe is a read sent after the window ended: refused, it
    doubles; other late refusals change nothing.  A good read resets only what began before it was sent.
    """
    if read.refused:
        return _refused(_answered(before), read, now, only_one)
    latest = read.sent_at if before.good_sent_at is None else max(before.good_sent_at, read.sent_at)
    return _answered(replace(before, good_sent_at=latest))


def _answered(window: Window) -> Window:
    """What the latest good read leaves of it.  Asked of a refused read as well: a settle notes every good read, heeded or not."""
    good = window.good_sent_at
    if good is not None and window.refused_at is not None and window.refused_at < good:
        window = replace(window, url=None, refused_at=None)
    if good is not None and window.opened_at is not None and window.opened_at < good:
        window = replace(window, refusals=0, since=None, until=None)
    return window


def _refused(before: Window, read: Read, now: datetime, only_one: bool) -> Window:
    if before.until is not None:
        if read.sent_at < before.until:
            return before
        return _opened(before, now)
    if before.good_sent_at is not None and read.sent_at < before.good_sent_at:
        return before  # a good read was sent since: nothing is left of this one
    if before.refused_at is None:
        return replace(before, url=read.url, refused_at=read.sent_at)
    heard_again = before.refused_at == read.sent_at
    if before.url == read.url and (heard_again or not only_one):
        return replace(before, refused_at=max(before.refused_at, read.sent_at))
    return _opened(before, now)


def _opened(before: Window, now: datetime) -> Window:
    refusals = before.refusals + 1
    return replace(
        before, refusals=refusals, since=before.since or now, until=now + length(refusals), url=None, refused_at=None
    )
