"""Nothing grows without bound (DESIGN 10): what goes, and when.

Owns every number of keeping.  Refuses to own: Chapters and identities, which stay.  Must never break: today's record, the owner's word
and a running wait are never lost.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final

from lanes.sites import sites
from lanes.store.upkeep import Day, Record, UpkeepStore

log = logging.getLogger("lanes.upkeep.pruning")

RECORD_KEPT: Final = timedelta(days=30)
"""The poll record: as long as the longest Retry-After that is obeyed, so that the audit can see each wait whole."""
RECORD_LARGEST: Final = 2 * 2**30
"""... in bytes: a tenth of a small VPS's disk."""
ADDRESS_IDLE: Final = timedelta(hours=1)
"""An address bucket is open again after half a second, its bookings after 10 minutes: an hour later it says nothing any more."""
HOST_UNUSED: Final = timedelta(days=30)
"""What was learnt of a host outlives a Series that is removed and added again."""
INCIDENT_KEPT: Final = timedelta(days=365)
"""Whoever wonders whether a Site fails every spring can still look."""
NOTICE_KEPT: Final = timedelta(days=90)
"""Delivered Notices: a season, for a Reader who asks what became of a Series."""


def prune_record(store: UpkeepStore) -> Iterator[int]:
    """Days of the poll record that are too old, or too much together, oldest first."""
    today = store.now().astimezone(UTC).date()
    record = store.record()
    going = too_many(record, today)
    for day in going:
        if not store.drop(day):
            log.info("a day of the poll record is being read, it goes later day=%s", day.day)
            return
        yield 1
    size = record.size - sum(day.size for day in going)
    yield from _prune_strays(store, today, max((day.day for day in going), default=None), size)


def too_many(record: Record, today: date) -> tuple[Day, ...]:
    """The days that go, oldest first: those kept long enough, and as many more as it takes to have the whole record small enough."""
    size = record.size
    going: list[Day] = []
    for day in sorted(record.days, key=lambda each: each.day):
        whole = day.day + timedelta(days=1) <= today - RECORD_KEPT
        if day.day < today and (whole or size > RECORD_LARGEST):
            going.append(day)
            size -= day.size
    return tuple(going)


def prune_addresses(store: UpkeepStore) -> Iterator[int]:
    """Address buckets that nobody uses."""
    while pruned := store.prune_addresses(ADDRESS_IDLE):
        yield pruned


def prune_hosts(store: UpkeepStore) -> Iterator[int]:
    """Hosts that no Series, bookmarked or not, has pointed to for a month, and what hangs on them: robots.txt, incidents.  Whatever the
    registry names stays, few as they are: one that came back would begin at the default interval and not at its own."""
    named = sorted({host for site in sites() for host in site.host_floors})
    after: int | None = 0
    while after is not None:
        after = store.note_unused(after)
        yield 0
    while pruned := store.prune_hosts(HOST_UNUSED, named):
        yield pruned


def prune_machines(store: UpkeepStore) -> Iterator[int]:
    """Machines that are gone: containers are named anew at each start."""
    while pruned := store.prune_machines(RECORD_KEPT):
        yield pruned


def prune_incidents(store: UpkeepStore) -> Iterator[int]:
    """Incidents that ended long ago."""
    while pruned := store.prune_incidents(INCIDENT_KEPT):
        yield pruned


def prune_notices(store: UpkeepStore) -> Iterator[int]:
    """Notices that were delivered long ago."""
    while pruned := store.prune_notices(NOTICE_KEPT):
        yield pruned


def _prune_strays(store: UpkeepStore, today: date, gone: date | None, size: int) -> Iterator[int]:
    """Records without a partition of their own go with the days that went; a day of them more while the record is still too large."""
    before = today - RECORD_KEPT if gone is None else max(today - RECORD_KEPT, gone + timedelta(days=1))
    oldest = store.oldest_stray()
    if oldest is None:
        return
    if size > RECORD_LARGEST:
        before = max(before, oldest + timedelta(days=1))
    while pruned := store.prune_strays(_start(min(before, today))):
        yield pruned
    if store.oldest_stray() is None:
        store.empty_strays()


def _start(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
