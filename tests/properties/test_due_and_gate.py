"""`due`, `due_at` and `gate` in SQL, the claim's index and the claim itself, against the oracle of DESIGN 4.2 on random rows.

Every random instant lies whole minutes away from the frozen `now`, so that the milliseconds of a slow machine change nothing.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lanes.core.schedule import phase
from lanes.store import schema
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from tests import oracle
from tests.oracle import LONG_AGO, BrowserFacts, HostFacts, LaneFacts, SeriesFacts
from tests.rows import MINUTE, Rows, open_rows, take, take_all

NOW = datetime(2031, 5, 4, 12, tzinfo=UTC)
MANY = settings(max_examples=6, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
ROWS = 300

_AGES = (1, 5, 50, 90, 600, 7 * 1440 - 1, 7 * 1440 + 1, 9000)
_AHEAD = (1, 5, 50, 90, 600, 9000)


@dataclass(frozen=True, slots=True)
class Row:
    """One random Series with its host; `stored_rest` False leaves its Rest to the registry (a Site that is not `feeds`)."""

    series: SeriesFacts
    host: HostFacts
    stored_rest: bool


class Dice:
    """Random rows from one seed: a few hundred a round trip, more than a drawn list could hold."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def seldom(self) -> bool:
        return self.random.random() < 0.1

    def past(self) -> datetime:
        return NOW - self.random.choice(_AGES) * MINUTE

    def instant(self) -> datetime:
        return self.past() if self.random.random() < 0.6 else NOW + self.random.choice(_AHEAD) * MINUTE

    def never_or(self, instant: datetime) -> datetime:
        return self.random.choice((LONG_AGO, instant))

    def maybe(self, instant: datetime, share: float = 0.25) -> datetime | None:
        return instant if self.random.random() < share else None

    def series(self) -> SeriesFacts:
        poll_tier, leased = not self.seldom(), self.seldom()
        not_before = self.maybe(self.instant(), 0.15)
        return SeriesFacts(
            rest=self.random.choice((timedelta(minutes=3), timedelta(minutes=17), timedelta(hours=1))),
            latest_checked_at=self.past()
            if leased
            else self.random.choice((LONG_AGO, *(self.past() for _ in range(4)))),
            next_check_at=self.never_or(self.instant()) if poll_tier else None,
            poll_tier=poll_tier,
            bookmarks=0 if self.seldom() else self.random.randint(1, 4),
            paused=self.seldom(),
            retired=self.seldom(),
            finished=self.seldom(),
            force_poll_at=self.maybe(self.past()),
            retry_at=None if leased else self.maybe(self.instant()),
            lease_until=self.instant() if leased else None,
            sighted_at=self.maybe(self.past()),
            bookmarked_at=self.past(),
            revived_at=self.maybe(self.past(), 0.1),
            not_before=not_before,
            not_before_reason=None if not_before is None else "it asked this Series to wait",
        )

    def host(self) -> HostFacts:
        not_before = self.maybe(self.instant(), 0.15) or LONG_AGO
        return HostFacts(
            not_before=not_before,
            not_before_reason=None if not_before == LONG_AGO else "it asked its host to wait",
            next_at=self.never_or(self.maybe(self.instant(), 0.3) or self.past()),
            busy_until=self.maybe(self.instant(), 0.15) or LONG_AGO,
            address_next=self.maybe(self.never_or(self.instant()), 0.5),
        )

    def lane(self) -> LaneFacts:
        return LaneFacts(
            polling=not self.seldom(),
            paused=self.seldom(),
            refused_until=self.maybe(self.instant()),
            next_at=self.maybe(self.instant()) or LONG_AGO,
            browser=None if self.random.random() < 0.5 else self.browser(),
        )

    def browser(self) -> BrowserFacts:
        return BrowserFacts(
            heard_at=NOW - timedelta(seconds=self.random.choice((0, 5, 29, 30, 31, 3600))),
            awake=self.random.random() < 0.3,
            lost_until=self.maybe(self.instant()),
            trouble="Chromium is not installed" if self.seldom() else None,
        )

    def few(self) -> list[Row]:
        """Mostly idle rows, so that Chrome has reason to sleep: one at most is due now and then."""
        rows = self.rows()[: self.random.choice((1, 3, 5, 8))]
        young = [NOW - timedelta(minutes=self.random.choice((4, 14, 15, 16))) for _ in rows]
        return [
            replace(
                row, series=replace(row.series, next_check_at=next_check, latest_checked_at=NOW - timedelta(days=2))
            )
            if row.series.poll_tier and row.series.lease_until is None
            else row
            for row, next_check in zip(rows, young, strict=True)
        ]

    def rows(self) -> list[Row]:
        rows = [Row(self.series(), self.host(), self.random.random() < 0.6) for _ in range(ROWS)]
        return [replace(rows[0], series=replace(rows[0].series, has_url=False)), *rows[1:]]


_dice = st.integers(0, 2**64).map(Dice)


@pytest.fixture(scope="module")
def url(empty_database: Callable[[], AbstractContextManager[str]]) -> Iterator[str]:
    """One database for all random rows of this module: each example empties the tables."""
    with empty_database() as url:
        schema.migrate(url)
        yield url


@pytest.fixture(scope="module")
def table(url: str) -> Iterator[Rows]:
    with open_rows(url) as rows:
        rows.enrol("feeds")
        yield rows


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else "-infinity" if instant == LONG_AGO else instant.isoformat()


def _seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds()} seconds"


def _stop_the_clock(table: Rows) -> None:
    table(
        "UPDATE lanes.clock SET latest_seen = '-infinity', test_offset = %s::timestamptz - statement_timestamp()", NOW
    )


def _write(table: Rows, random_rows: list[Row]) -> None:
    """Every row as one host and one Series of the same id (1, 2, ...), in three statements."""
    table("TRUNCATE lanes.series, lanes.hosts, lanes.addresses CASCADE")
    _stop_the_clock(table)
    hosts = [
        {
            "id": n,
            "site": "feeds",
            "name": f"host{n}.test",
            "address": None if row.host.address_next is None else _address(n),
            "bucket": None if row.host.address_next is None else _address(n),
            "pace": _seconds(3 * MINUTE),
            "next_at": _text(row.host.next_at),
            "busy_until": _text(row.host.busy_until),
            "busy_token": None if row.host.busy_until == LONG_AGO else _uuid(n),
            "not_before": _text(row.host.not_before),
            "not_before_reason": row.host.not_before_reason,
            "ready_at": "-infinity",
            "backoffs": 0,
            "refused_paces": 0,
            "refusals": 0,
        }
        for n, row in enumerate(random_rows, 1)
    ]
    _insert(table, "hosts", hosts)
    _insert(table, "series", [_series_row(n, row) for n, row in enumerate(random_rows, 1)])
    open_at = [
        (_address(n), _text(row.host.address_next)) for n, row in enumerate(random_rows, 1) if row.host.address_next
    ]
    table(
        "INSERT INTO lanes.addresses (address, next_at, used_at) SELECT a, n, lanes.now() "
        "FROM unnest(%s::inet[], %s::timestamptz[]) AS x (a, n)",
        [address for address, _ in open_at],
        [next_at for _, next_at in open_at],
    )


def _series_row(n: int, row: Row) -> dict[str, object]:
    s = row.series
    return {
        "id": n,
        "key": f"series-{n}",
        "site": "feeds",
        "host_id": n,
        "queue_host_id": n,
        "url": f"https://host{n}.test/" if s.has_url else "",
        "tier": "poll" if s.poll_tier else "push",
        "lifecycle": "finished" if s.finished else "ongoing",
        "bookmarks": s.bookmarks,
        "bookmarked_at": _text(s.bookmarked_at),
        "added_at": _text(NOW - timedelta(days=400)),
        "revived_at": _text(s.revived_at),
        "paused_at": _text(NOW) if s.paused else None,
        "retired_at": _text(NOW - 400 * MINUTE) if s.retired else None,
        "retired_reason": "gone" if s.retired else None,
        "next_check_at": _text(s.next_check_at),
        "rest": _seconds(s.rest) if row.stored_rest else None,
        "latest_checked_at": _text(s.latest_checked_at),
        "force_poll_at": _text(s.force_poll_at),
        "sighted_at": _text(s.sighted_at),
        "not_before": _text(s.not_before),
        "not_before_reason": s.not_before_reason,
        "lease_until": _text(s.lease_until),
        "lease_token": None if s.lease_until is None else _uuid(n),
        "lease_machine": None if s.lease_until is None else "gone",
        "lease_trigger": None if s.lease_until is None else "its time",
        "retry_at": _text(s.retry_at),
        "retry_reason": None if s.retry_at is None else "an obstacle",
    }


def _insert(table: Rows, name: str, values: Sequence[Mapping[str, object]]) -> None:
    columns = ", ".join(values[0])
    table(
        f"INSERT INTO lanes.{name} ({columns}) OVERRIDING SYSTEM VALUE "
        f"SELECT {columns} FROM jsonb_populate_recordset(NULL::lanes.{name}, %s::jsonb)",
        json.dumps(values),
    )


def _address(n: int) -> str:
    return f"198.51.{n // 250}.{n % 250 + 1}"


def _uuid(n: int) -> str:
    return f"00000000-0000-4000-8000-{n:012}"


def _in_force(n: int, row: Row, site_rest: timedelta) -> SeriesFacts:
    """The row's facts with the Rest in force: its own, or the registry's stretched by its phase of up to 10 %."""
    return row.series if row.stored_rest else replace(row.series, rest=site_rest * (1 + phase(n) / 10))


SITE_REST = timedelta(minutes=33)


def _with_sleep(lane: LaneFacts, random_rows: list[Row]) -> LaneFacts:
    """The Lane's facts with what its due Series make of the wake gate."""
    if lane.browser is None:
        return lane
    facts = [_in_force(n, row, SITE_REST) for n, row in enumerate(random_rows, 1)]
    return replace(lane, asleep_until=oracle.asleep_until(facts, lane.browser, NOW))


GATES = {
    "polling is switched off": "kill switch",
    "the Lane is paused": "Lane paused",
    "the Site refuses": "Lane refusing",
    "the browser is lost": "browser lost",
    "the browser is down: its sidecar does not run": "browser down",
    "the browser is down: Chromium is not installed": "browser down",
    "Chrome sleeps: fewer than 5 are due, none for 15 minutes": "Chrome asleep",
    "it asked this Series to wait": "Series: it asked this Series to wait",
    "it asked its host to wait": "host: it asked its host to wait",
    "the Gap of its Site": "Gap",
    "the interval of its host": "host bucket",
    "the interval of its address": "address bucket",
    "its host is being fetched": "host in hand",
}


@MANY
@given(dice=_dice)
def test_due_in_sql_is_due_in_the_oracle(table: Rows, dice: Dice) -> None:
    random_rows = dice.rows()
    _write(table, random_rows)
    found = dict(table("SELECT id, lanes.due(s, %s, %s) FROM lanes.series s", SITE_REST, NOW))
    assert found == {n: oracle.due(_in_force(n, row, SITE_REST), NOW) for n, row in enumerate(random_rows, 1)}


@MANY
@given(dice=_dice)
def test_the_due_instant_in_sql_is_the_oracles(table: Rows, dice: Dice) -> None:
    random_rows = dice.rows()
    _write(table, random_rows)
    found = dict(table("SELECT id, lanes.due_at(s, %s) FROM lanes.series s", SITE_REST))
    for n, row in enumerate(random_rows, 1):
        facts = _in_force(n, row, SITE_REST)
        weekly_look_first = oracle.later(facts.latest_checked_at, oracle.WEEK) < oracle.due_at(facts)
        if oracle.due(facts, NOW) == "its time" and not weekly_look_first:
            assert found[n] == oracle.due_at(facts), facts


@MANY
@given(dice=_dice)
def test_whatever_is_due_has_a_due_instant_that_has_come(table: Rows, dice: Dice) -> None:
    _write(table, dice.rows())
    offences = table(
        "SELECT s.id FROM lanes.series s WHERE lanes.due(s, %s, %s) IS NOT NULL AND (lanes.due_at(s, %s) <= %s) IS NOT TRUE",
        *(SITE_REST, NOW, SITE_REST, NOW),
    )
    assert not offences


@MANY
@given(dice=_dice, few=st.booleans())
def test_gate_in_sql_is_the_first_gate_of_the_oracle(table: Rows, dice: Dice, few: bool) -> None:
    random_rows = dice.few() if few else dice.rows()
    lane = _with_sleep(LaneFacts(browser=BrowserFacts(NOW)) if few else dice.lane(), random_rows)
    _write(table, random_rows)
    _set_lane(table, lane)
    found = table(
        """SELECT s.id, (g).reason, (g).until FROM (
               SELECT s.id, lanes.gate(s, h, a.next_at, l, lanes.browser_stop(l, %s, %s), %s, %s) AS g
               FROM lanes.series s JOIN lanes.hosts h ON h.id = s.queue_host_id JOIN lanes.lanes l ON l.site = s.site
               LEFT JOIN lanes.addresses a ON a.address = h.address) s""",
        SITE_REST,
        NOW,
        lane.polling,
        NOW,
    )
    for n, reason, until in found:
        row = random_rows[n - 1]
        expected = oracle.gate(row.series, row.host, lane, NOW)
        assert (None if reason is None else oracle.Stop(GATES[reason], until)) == expected, row


@MANY
@given(dice=_dice, later=st.integers(0, 9000))
def test_the_claims_index_finds_whatever_is_due(table: Rows, dice: Dice, later: int) -> None:
    """The generated instant is never later than one at which the Series is due and nothing of its own holds it."""
    random_rows = dice.rows()
    _write(table, random_rows)
    then = NOW + later * MINUTE + timedelta(seconds=30)
    stands = {row.id: row for row in table("SELECT id, turn, claimable_at FROM lanes.series")}
    for n, row in enumerate(random_rows, 1):
        facts = _in_force(n, row, SITE_REST)
        held = facts.not_before is not None and facts.not_before > then
        reason = None if held else oracle.due(facts, then)
        claimable_at = stands[n].claimable_at
        if reason is not None:
            assert claimable_at is not None, facts
            assert claimable_at <= then, facts
            assert stands[n].turn == {"pending": 0, "put back": 1}.get(reason, 2), facts
        elif row.stored_rest:  # without a stored Rest it is a lower bound only
            assert claimable_at is None or claimable_at > then, facts


@settings(MANY, max_examples=3)
@given(dice=_dice, shared=st.integers(1, 4), lane_open=st.integers(0, 9).map(bool))
def test_the_claim_takes_exactly_what_is_due_and_no_gate_holds(
    table: Rows, url: str, dice: Dice, shared: int, lane_open: bool
) -> None:
    """Series share hosts in groups of `shared`; after each round the hosts are set free, so that every Series gets its turn."""
    random_rows = [replace(row, stored_rest=True) for row in dice.rows()]
    _write(table, random_rows)
    hosts = {n: random_rows[_first_of(n, shared) - 1].host for n in range(1, len(random_rows) + 1)}
    table("UPDATE lanes.series SET queue_host_id = (id - 1) / %s * %s + 1", shared, shared)
    table("UPDATE lanes.series SET host_id = queue_host_id")
    lane = LaneFacts() if lane_open else LaneFacts(refused_until=NOW + 5 * MINUTE)
    _set_lane(table, lane)
    allowed = {
        n
        for n, row in enumerate(random_rows, 1)
        if oracle.due(row.series, NOW) is not None and oracle.gate(row.series, hosts[n], lane, NOW) is None
    }
    assert _claim_everything(table, url, allowed, shared) == allowed


@MANY
@given(dice=_dice)
def test_held_and_eligible_in_sql_are_the_oracles(table: Rows, dice: Dice) -> None:
    random_rows, lane = dice.rows(), dice.lane()
    _write(table, random_rows)
    _set_lane(table, lane)
    found = table(
        "SELECT s.id, lanes.is_held(s, h, l, CASE WHEN l.browser THEN lanes.browser_trouble(%s) END, %s), lanes.is_eligible(s) "
        "FROM lanes.series s JOIN lanes.hosts h ON h.id = s.queue_host_id JOIN lanes.lanes l ON l.site = s.site",
        NOW,
        NOW,
    )
    for n, held, eligible in found:
        row = random_rows[n - 1]
        assert held is oracle.is_held(row.series, row.host, lane, NOW), row
        assert eligible is oracle.is_eligible(row.series), row


@settings(MANY, max_examples=2)
@given(dice=_dice)
def test_on_a_site_of_one_host_the_claim_takes_what_the_oracle_puts_first(table: Rows, url: str, dice: Dice) -> None:
    """Every Series queues under one open host, has the registry's Rest, and each claim's spending is undone but for its lease."""
    random_rows = [replace(row, stored_rest=False) for row in dice.rows()]
    _write(table, random_rows)
    _set_lane(table, LaneFacts())
    table("UPDATE lanes.series SET host_id = 1, queue_host_id = 1")
    facts = {n: _in_force(n, row, SITE_REST) for n, row in enumerate(random_rows, 1)}
    due = [n for n, s in facts.items() if oracle.due(s, NOW) and not (s.not_before and s.not_before > NOW)]
    expected = sorted(due, key=lambda n: (oracle.place(facts[n], NOW), n))
    assert _claim_in_turn(table, url, len(expected) + 1) == expected


def _claim_in_turn(table: Rows, url: str, most: int) -> list[int]:
    database = Database(url, application="a test")
    store = PollStore(database, "feeds", "here", many_hosts=False)
    taken: list[int] = []
    try:
        for _ in range(most):
            _stop_the_clock(table)
            table("DELETE FROM lanes.addresses")
            table("UPDATE lanes.lanes SET next_at = '-infinity', gap = '6 minutes'")
            table(
                "UPDATE lanes.hosts SET busy_until = '-infinity', busy_token = NULL, next_at = '-infinity', ready_at = '-infinity', "
                "not_before = '-infinity', not_before_reason = NULL WHERE id = 1"
            )
            claim = take(store, SITE_REST)
            if claim is None:
                break
            assert claim.gap == 6 * MINUTE
            taken.append(claim.series_id)
    finally:
        database.close()
        table("UPDATE lanes.lanes SET next_at = '-infinity', gap = NULL")
    return taken


def _claim_everything(table: Rows, url: str, allowed: set[int], shared: int) -> set[int]:
    database = Database(url, application="a test")
    store = PollStore(database, "feeds", "here")
    claimed: set[int] = set()
    try:
        while True:
            _stop_the_clock(table)
            claims = take_all(store)
            hosts = [claim.host_id for claim in claims]
            assert len(hosts) == len(set(hosts)), "two in hand on one host"
            assert {_first_of(n, shared) for n in allowed - claimed} == set(hosts)
            if not claims:
                return claimed
            assert not claimed & {claim.series_id for claim in claims}
            claimed |= {claim.series_id for claim in claims}
            table(
                "UPDATE lanes.hosts SET busy_until = '-infinity', busy_token = NULL, next_at = '-infinity', ready_at = '-infinity' "
                "WHERE id = ANY(%s)",
                hosts,
            )
            table(
                "UPDATE lanes.addresses SET next_at = '-infinity' WHERE next_at BETWEEN %s AND %s",
                NOW,
                NOW + MINUTE / 2,
            )
    finally:
        database.close()


def _first_of(n: int, shared: int) -> int:
    return (n - 1) // shared * shared + 1


def _set_lane(table: Rows, lane: LaneFacts) -> None:
    table(
        "UPDATE lanes.lanes SET paused_at = %s, refused_until = %s, next_at = %s, browser = %s",
        NOW if lane.paused else None,
        lane.refused_until,
        _text(lane.next_at),
        lane.browser is not None,
    )
    table("DELETE FROM lanes.browser")
    if (browser := lane.browser) is not None:
        table(
            "INSERT INTO lanes.browser (heartbeat_at, awake, browser_lost_until, trouble) VALUES (%s, %s, %s, %s)",
            *(browser.heard_at, browser.awake, browser.lost_until, browser.trouble),
        )
    table("UPDATE lanes.series SET added_at = '2000-01-01Z'")  # long before any of them was due
