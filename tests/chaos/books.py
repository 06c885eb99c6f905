"""Stored once, owed once, nothing left over: the rows against what the origins published.

Owns the questions asked of the rows.  Refuses to own: pace.  Must never break: what should be there comes from the world's own memory,
never from another row.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import psycopg

from .world import Followed, World

OWNER, FRIEND = "owner", "friend"
"""Two Readers: one follows everything, one every other Series; each has muted some."""
MUTED_EVERY = 7


def seat_readers(connection: psycopg.Connection[Any]) -> None:
    """The second Reader, and who has muted what; before anything was polled."""
    connection.execute("INSERT INTO lanes.readers (name) VALUES (%s)", [FRIEND])
    connection.execute(
        "INSERT INTO lanes.bookmarks (reader_id, series_id, muted) "
        "SELECT r.id, s.id, s.id %% (2 * %s) = 0 FROM lanes.readers r, lanes.series s WHERE r.name = %s AND s.id %% 2 = 0",
        [MUTED_EVERY, FRIEND],
    )
    connection.execute("UPDATE lanes.bookmarks SET muted = true WHERE series_id %% %s = 3", [MUTED_EVERY])
    connection.execute(
        "UPDATE lanes.series s SET bookmarks = (SELECT count(*) FROM lanes.bookmarks b WHERE b.series_id = s.id)"
    )


def faults(connection: psycopg.Connection[Any], world: World, *, unmoved_storm: bool) -> list[str]:
    """All that is wrong, in words.  `unmoved_storm`: the clock went with the wall until all was published."""
    stored: dict[str, list[tuple[str, int, bool]]] = defaultdict(list)
    for url, title, chapter, announced in connection.execute(
        "SELECT s.url, c.title, c.id, c.announced FROM lanes.chapters c JOIN lanes.series s ON s.id = c.series_id ORDER BY c.id"
    ):
        stored[url].append((title, chapter, announced))
    first_good = dict(
        connection.execute("SELECT url, extract(epoch FROM first_good_at)::float8 FROM lanes.series").fetchall()
    )
    found: list[str] = []
    for followed in world.followed:
        if followed.url not in first_good:
            found.append(f"{followed.url} is followed no more")
            continue
        found += _stored_once(followed, stored[followed.url])
        found += _announced(followed, stored[followed.url], first_good[followed.url] if unmoved_storm else None)
    return [*found, *_owed(connection, stored), *_left_over(connection)]


def _stored_once(followed: Followed, stored: list[tuple[str, int, bool]]) -> list[str]:
    there, published = Counter(title for title, _, _ in stored), Counter(followed.published)
    wanted = Counter(dict.fromkeys(published, 1))
    if there == wanted:
        return []
    return [f"{followed.url}: missing {sorted(wanted - there)}, too many {sorted(there - wanted)}"]


def _announced(followed: Followed, stored: list[tuple[str, int, bool]], first_good: float | None) -> list[str]:
    """First sight tells nobody, and is what had come out by then; everything later is told."""
    told = {title for title, _, announced in stored if announced}
    silent = [title not in told for title in followed.published]
    if silent != sorted(silent, reverse=True):
        return [
            f"{followed.url}: announced {sorted(told)} of {list(followed.published)}, which no first sight explains"
        ]
    if first_good is None:
        return []
    late = [title for title, at in followed.published.items() if at > first_good and title not in told]
    return [f"{followed.url}: came out after the first sight and nobody was told: {late}"] if late else []


def _owed(connection: psycopg.Connection[Any], stored: dict[str, list[tuple[str, int, bool]]]) -> list[str]:
    """Each announced Chapter is in exactly one Notice to each Reader with a Bookmark that is not muted, and in none to others."""
    announced = {chapter for chapters in stored.values() for _, chapter, told in chapters if told}
    owed: Counter[tuple[str, int]] = Counter()
    for reader, chapters in connection.execute(
        "SELECT r.name, n.body -> 'chapters' FROM lanes.notices n JOIN lanes.readers r ON r.id = n.reader_id "
        "WHERE n.kind = 'new chapters'"
    ):
        owed.update((reader, chapter) for chapter in chapters)
    wanted = Counter(
        {
            (reader, chapter): 1
            for reader, chapter in connection.execute(
                "SELECT r.name, c.id FROM lanes.chapters c JOIN lanes.bookmarks b ON b.series_id = c.series_id AND NOT b.muted "
                "JOIN lanes.readers r ON r.id = b.reader_id"
            )
            if chapter in announced
        }
    )
    missing, too_many = wanted - owed, owed - wanted
    return [
        f"{len(each)} Chapters {what}, the first of them: {sorted(each)[:3]}"
        for each, what in ((missing, "are owed in no Notice"), (too_many, "are owed twice or to the wrong Reader"))
        if each
    ]


LEFT_OVER = {
    "a lease is left over": "SELECT key, lease_until FROM lanes.series WHERE lease_token IS NOT NULL",
    "a host is busy": "SELECT name, busy_until FROM lanes.hosts WHERE busy_token IS NOT NULL AND busy_until > lanes.now()",
    "retired": "SELECT key, retired_reason FROM lanes.series WHERE retired_at IS NOT NULL",
    "an incident is open": "SELECT whose, coalesce(machine, site), kind FROM lanes.incidents WHERE ended_at IS NULL",
    "a host fails though its incident ended": "SELECT name, failing FROM lanes.hosts WHERE failing IS NOT NULL",
    "a host is thought dead": "SELECT name, dead_since FROM lanes.hosts WHERE dead_since IS NOT NULL",
    "a Series is failing": "SELECT key, failures, failure FROM lanes.series WHERE failures > 0",
}


def _left_over(connection: psycopg.Connection[Any]) -> list[str]:
    return [
        f"{what}: {row}"
        for what, question in LEFT_OVER.items()
        for row in connection.execute(question.encode()).fetchall()
    ]
