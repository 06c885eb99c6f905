"""Days that pass over a Lane in the time of a test, and what its Readers are told meanwhile.

A feed that asks to be looked at once a day (`DAILY` in its channel) makes a month thirty Polls.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from urllib.parse import urlsplit

from lanes.store.following import FollowStore, Wanted
from lanes.store.upkeep import UpkeepStore
from lanes.upkeep import ageing
from tests.fix_lane import LaneAtWork, Row

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
DAILY = "<ttl>1440</ttl>"
MANY = 20_000
"""Moments at which something happens: a test that needs more has a Lane that spins."""


def pass_until(lane: LaneAtWork, instant: datetime) -> None:
    """Time passes, from one moment to the next at which a host may be asked, and the Lane polls whatever is due."""
    for _ in range(MANY):
        lane.run_once()
        ahead = lane.one("SELECT min(ready_at) AS at FROM lanes.hosts").at
        if ahead is None or ahead >= instant:
            lane.move_to(instant)
            return
        lane.move_to(ahead)
    raise AssertionError(f"time stands still at {lane.now()}: {lane.all('SELECT * FROM lanes.hosts')}")


def pass_by(lane: LaneAtWork, span: timedelta) -> None:
    """As much time passes."""
    pass_until(lane, lane.now() + span)


def days_pass(lane: LaneAtWork, count: int) -> None:
    """As many days pass, and upkeep sees once a day to what has come of age."""
    for _ in range(count):
        pass_by(lane, DAY)
        look_after(lane)


def look_after(lane: LaneAtWork) -> None:
    """One round of upkeep's duties to whoever follows something."""
    store = UpkeepStore(lane.database)
    for duty in (
        ageing.tell_owner,
        ageing.tell_readers,
        ageing.tell_of_ends,
        ageing.give_up,
        ageing.judge,
        ageing.end_deserted,
    ):
        sum(duty(store))


def bookmark(lane: LaneAtWork, reader: str, key: str, *, muted: bool = False) -> None:
    """Another Reader bookmarks a Series."""
    lane.tell("INSERT INTO lanes.readers (name) VALUES (%s) ON CONFLICT DO NOTHING", reader)
    url = lane.series(key).url
    FollowStore(lane.database, reader).follow([Wanted("feeds", url, urlsplit(url).hostname or "", key)])
    if muted:
        lane.tell(
            "UPDATE lanes.bookmarks b SET muted = true FROM lanes.readers r, lanes.series s "
            "WHERE r.id = b.reader_id AND s.id = b.series_id AND (r.name, s.key) = (%s, %s)",
            reader, key,
        )  # fmt: skip


def notices(lane: LaneAtWork, reader: str | None = "owner") -> list[Row]:
    """What one Reader is owed, oldest first; None: what the owner is."""
    return lane.all(
        "SELECT n.*, s.key FROM lanes.notices n LEFT JOIN lanes.readers r ON r.id = n.reader_id "
        "LEFT JOIN lanes.series s ON s.id = n.series_id WHERE r.name IS NOT DISTINCT FROM %s ORDER BY n.id",
        reader,
    )


def told(lane: LaneAtWork, reader: str | None = "owner") -> list[str]:
    """The kinds of that."""
    return [notice.kind for notice in notices(lane, reader)]


def incidents(lane: LaneAtWork, whose: str | None = None) -> list[Row]:
    """Oldest first."""
    return lane.all(
        "SELECT * FROM lanes.incidents WHERE %s::text IN (whose) OR %s::text IS NULL ORDER BY id", whose, whose
    )
