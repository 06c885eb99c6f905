"""The laws of rows: what must hold of Series, hosts, Chapters and Notices between any two moments of a history.

Owns the laws.  Refuses to own: pace (`tests.witness`, from what origins saw) and driving (`tests.histories`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from lanes.core.claim import LEASE
from lanes.store.audit import audit
from tests.fix_lane import Owner, Row
from tests.histories import COMICS, key_of
from tests.rows import NEVER
from tests.witness import Arrival, costs_nothing

HINT_SLACK = timedelta(seconds=5)
"""A hint may be late by a place booked at a shared address, and by a second after a claim in vain."""
LONGEST_INTERVAL = timedelta(seconds=610)
"""Of a host or Site: the owner's slowest word in these histories is 10 min."""
STAMP_SLACK = timedelta(seconds=6)
"""A late request may book its place 5 s ahead."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Rows as they stood: Series by key, and who holds which."""

    series: dict[str, Row]
    held: frozenset[tuple[str, str]]
    last_chapter: int
    last_notice: int


def moment(owner: Owner) -> Moment:
    held = owner.all(
        "SELECT r.name, s.key FROM lanes.bookmarks b JOIN lanes.readers r ON r.id = b.reader_id JOIN lanes.series s ON s.id = b.series_id"
    )
    return Moment(
        {row.key: row for row in owner.all("SELECT * FROM lanes.series")},
        frozenset((row.name, row.key) for row in held),
        owner.one("SELECT coalesce(max(id), 0) AS n FROM lanes.chapters").n,
        owner.one("SELECT coalesce(max(id), 0) AS n FROM lanes.notices").n,
    )


def judge(owner: Owner, before: Moment, answered: Iterable[Arrival]) -> None:
    """What happened since `before` was lawful; `answered` is what workers came to know since.  Raises: AssertionError."""
    after = moment(owner)
    chapters_are_owed_once(owner, before, after)
    failures_have_a_cause(before, after, answered)
    retired_are_told(owner, before, after)
    leases_end(owner)
    stamps_are_past(owner)
    hints_are_never_late(owner)


def audit_is_clean(owner: Owner) -> None:
    report = audit(owner.database)
    assert report.clean, str(report.first_offence)


def chapters_are_owed_once(owner: Owner, before: Moment, after: Moment) -> None:
    """No Chapter twice; what is announced is in one Notice to each Reader who held the Series, what is not in none."""
    rows = owner.all(
        "SELECT c.id, s.key, c.title, c.announced FROM lanes.chapters c JOIN lanes.series s ON s.id = c.series_id"
    )
    twice = [chapter for chapter, times in Counter((row.key, row.title) for row in rows).items() if times > 1]
    assert not twice, f"stored twice: {twice}"
    told = _told(owner)
    for row in rows:
        readers = told[row.id]
        assert row.announced or not readers, f"told, although nobody was to be: {row} {readers}"
        assert all(times == 1 for times in readers.values()), f"told twice: {row} {readers}"
        if row.id <= before.last_chapter:
            continue
        assert row.announced == (before.series[row.key].news_from is not None), f"announced or not: {row}"
        for reader, key in before.held & after.held:
            assert not row.announced or key != row.key or readers[reader] == 1, f"{reader} was not told: {row}"
        strangers = [reader for reader in readers if (reader, row.key) not in before.held | after.held]
        assert not strangers, f"told without a Bookmark: {row} {strangers}"


def _told(owner: Owner) -> dict[int, Counter[str]]:
    """How often each Reader was told of each Chapter."""
    told: dict[int, Counter[str]] = defaultdict(Counter)
    for row in owner.all(
        "SELECT r.name, c.id::bigint AS chapter FROM lanes.notices n JOIN lanes.readers r ON r.id = n.reader_id, "
        "jsonb_array_elements_text(n.body -> 'chapters') AS c (id) WHERE n.kind = 'new chapters'"
    ):
        told[row.chapter][row.name] += 1
    return told


def failures_have_a_cause(before: Moment, after: Moment, answered: Iterable[Arrival]) -> None:
    """A refusal or a wait never counts."""
    failing = {key_of(arrival.series) for arrival in answered if not costs_nothing(arrival.given)}
    for key, row in after.series.items():
        if row.failures > before.series[key].failures and key not in failing:
            assert row.failure == "abandoned three times in a row", (
                f"{key} failed, and nothing that it was told is a failure: {row}"
            )


def retired_are_told(owner: Owner, before: Moment, after: Moment) -> None:
    """Whoever held what was given up since has been told, with a reason."""
    for key, row in after.series.items():
        if row.retired_at is None or before.series[key].retired_at is not None:
            continue
        assert row.retired_reason
        told = owner.all(
            "SELECT r.name FROM lanes.notices n JOIN lanes.readers r ON r.id = n.reader_id "
            "WHERE n.id > %s AND n.series_id = %s AND n.kind IN ('stopped', 'moved')",
            before.last_notice,
            row.id,
        )
        holders = sorted(reader for reader, held in before.held & after.held if held == key)
        assert sorted(each.name for each in told) == holders, f"{key} retired ({row.retired_reason}), told were {told}"


def leases_end(owner: Owner) -> None:
    """None is longer than LEASE, and one that has run out lets its Series be claimed again."""
    stuck = owner.all(
        "SELECT key, lease_until, lanes.now() AS now FROM lanes.series s "
        "WHERE lease_token IS NOT NULL AND (lease_until > lanes.now() + %s OR ("
        "lease_until < lanes.now() AND bookmarks > 0 AND paused_at IS NULL AND lanes.due(s, %s, lanes.now()) IS NULL))",
        LEASE + timedelta(seconds=1),
        COMICS.rest,
    )
    assert not stuck, f"in hand for ever: {stuck}"
    busy = owner.all(
        "SELECT name, busy_until FROM lanes.hosts h WHERE busy_until > lanes.now() "
        "AND NOT EXISTS (SELECT FROM lanes.series s WHERE s.lease_token = h.busy_token)"
    )
    assert not busy, f"in hand of nobody: {busy}"


def stamps_are_past(owner: Owner) -> None:
    """What has been done was done by now, also where the clock went back: nobody waits for an hour that was lost."""
    ahead = owner.all(
        "SELECT key FROM lanes.series WHERE latest_checked_at > lanes.now() + %s UNION ALL "
        "SELECT name FROM lanes.hosts WHERE sent_at > lanes.now() + %s",
        STAMP_SLACK,
        STAMP_SLACK,
    )
    assert not ahead, f"done in the future: {ahead}"
    spent = owner.all(
        "SELECT name FROM lanes.hosts WHERE next_at > lanes.now() + %s UNION ALL "
        "SELECT site FROM lanes.lanes WHERE next_at > lanes.now() + %s",
        LONGEST_INTERVAL,
        LONGEST_INTERVAL,
    )
    assert not spent, f"a bucket is spent for longer than anybody demands: {spent}"


def hints_are_never_late(owner: Owner) -> None:
    """A host's ready_at is no later than the instant from which a claim could take something there."""
    late = owner.all(
        "SELECT * FROM (SELECT h.name, h.ready_at, greatest(h.busy_until, h.next_at, h.not_before, lanes.now(), "
        "min(greatest(lanes.due_at(s, %s), s.not_before, s.lease_until))) AS possible_at "
        "FROM lanes.hosts h JOIN lanes.series s ON s.queue_host_id = h.id AND s.claimable_at IS NOT NULL GROUP BY h.id) x "
        "WHERE ready_at > possible_at + %s",
        COMICS.rest,
        HINT_SLACK,
    )
    assert not late, f"forgotten until their hint: {late}"


def nobody_is_forgotten(owner: Owner, since: float, shows: dict[str, set[str]]) -> list[str]:
    """The keys of the eligible Series that have no good answer since an instant of lanes.now(), or lack what their feed shows."""
    lacking = []
    for row in owner.all("SELECT *, lanes.is_eligible(s) AS eligible FROM lanes.series s WHERE bookmarks > 0"):
        read = row.good_at is not None and row.good_at != NEVER and row.good_at.timestamp() >= since
        if row.eligible and not (read and shows[row.key] <= set(owner.titles(row.key))):
            lacking.append(row.key)
    return lacking
