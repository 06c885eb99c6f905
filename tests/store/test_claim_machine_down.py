"""A machine whose line is down claims one probe a minute, for all its Lanes together (DESIGN 4.4)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from lanes.core.claim import Claim
from lanes.store.polls import Nothing, PollStore
from lanes.store.pool import Database
from tests.fix_database import Clock
from tests.one_host import REST, SITE, a_lane, a_series
from tests.rows import HOUR, LEASE, MINUTE, Rows, open_rows, take


@pytest.fixture
def lane(database: Database, rows: Rows) -> PollStore:
    """The Lane of a Site of one host on this machine, its Gap in force."""
    return a_lane(database, rows, "here")


def is_down(rows: Rows, **facts: Any) -> None:
    rows("INSERT INTO lanes.machines (machine) VALUES ('here') ON CONFLICT DO NOTHING")
    rows("UPDATE lanes.machines SET us_since = lanes.now() WHERE machine = 'here'")
    for name, value in facts.items():
        rows(f"UPDATE lanes.machines SET {name} = %s WHERE machine = 'here'", value)


def test_a_machine_whose_line_is_down_claims_one_probe_a_minute_for_all_its_lanes(
    rows: Rows, store: PollStore, lane: PollStore, database: Database, clock: Clock
) -> None:
    for _ in range(5):
        rows.series()
    a_series(rows, rows.host(site=SITE))
    is_down(rows)
    probe = take(store)
    assert probe is not None
    assert probe.us
    assert rows.one("SELECT probe_at FROM lanes.machines") == probe.claimed_at + MINUTE
    assert take(lane, REST) is None
    turn = store.claim(LEASE, None, None)
    assert isinstance(turn, Nothing)
    assert turn.wait is not None
    assert MINUTE / 2 < turn.wait <= MINUTE
    assert len(take_of(PollStore(database, "feeds", "there"), 2)) == 2
    clock.advance(MINUTE)
    assert take(store) is not None
    assert take(store) is None


def take_of(store: PollStore, count: int) -> list[Claim]:
    found = [take(store) for _ in range(count)]
    return [claim for claim in found if claim is not None and not claim.us]


def test_a_claim_that_takes_nothing_spends_no_probe(rows: Rows, store: PollStore) -> None:
    is_down(rows)
    assert take(store) is None
    assert rows.one("SELECT probe_at FROM lanes.machines") is None


def test_a_machine_whose_line_is_up_is_not_held_by_an_old_probe(rows: Rows, store: PollStore) -> None:
    rows.series()
    is_down(rows, us_since=None, probe_at=rows.now() + HOUR)
    claim = take(store)
    assert claim is not None
    assert not claim.us


def test_while_another_claim_holds_its_machine_nobody_waits(rows: Rows, store: PollStore, database_url: str) -> None:
    rows.series()
    is_down(rows)
    with open_rows(database_url) as holder, holder.connection.transaction():
        holder("SELECT FROM lanes.machines FOR NO KEY UPDATE")
        assert store.claim(LEASE, None, None) == Nothing(timedelta(seconds=1))
    assert take(store) is not None
