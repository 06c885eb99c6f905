"""What was charged and was not the Series' fault goes back, and nothing else (DESIGN 4.4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from lanes.core.answer import NoResponse, Response, Trouble
from lanes.core.claim import Claim
from lanes.store.line import LineStore
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from lanes.store.settled import Trail
from tests.answers import a_response, settled
from tests.fix_database import Clock
from tests.rows import DAY, HOUR, MINUTE, NEVER, Rows, take, trail

ALWAYS = "-infinity"
SILENT = NoResponse(Trouble.CONNECT, "no route")
REFUSED = NoResponse(Trouble.CONNECT, "connection refused", line_proved=True)


@pytest.fixture
def line(database: Database) -> LineStore:
    return LineStore(database, "here")


@pytest.fixture
def elsewhere(database: Database) -> PollStore:
    return PollStore(database, "feeds", "elsewhere")


def went(claim: Claim, answer: Response | NoResponse) -> Trail:
    """The trail of an attempt, with what it says about the line."""
    plain = trail(claim)
    proved = not isinstance(answer, NoResponse) or answer.line_proved
    return Trail(plain.host_id, plain.hosts, plain.sent, plain.requests, plain.paces, proved)


def poll(store: PollStore, answer: Response | NoResponse) -> Claim:
    """Claims whatever is due and ends it so."""
    claim = take(store)
    assert claim is not None
    assert store.settle(claim, settled(answer, None, claim, now=claim.claimed_at), went(claim, answer))
    return claim


def give_back(rows: Rows, series: int, since: datetime, machine: str | None = "here", *, hosts: bool = True) -> int:
    given: int = rows.one("SELECT lanes.give_back(%s, %s, %s, %s)", [series], [since], machine, hosts)
    return given


def due(rows: Rows, series: int) -> None:
    """The Series is due and nothing stands around it."""
    rows.set_series(series, next_check_at=ALWAYS, latest_checked_at=ALWAYS)
    row = rows.the_series(series)
    rows.set_host(row.host_id, next_at=ALWAYS, not_before=ALWAYS, not_before_reason=None, ready_at=ALWAYS)


def counters(rows: Rows, series: int) -> tuple[Any, ...]:
    row = rows.the_series(series)
    return row.failures, row.failing_since, row.failure, row.failure_kind


def test_a_charge_without_proof_is_given_back_whole(rows: Rows, store: PollStore) -> None:
    host = rows.host()
    series = rows.series(host)
    claim = poll(store, SILENT)
    assert counters(rows, series)[0] == 1
    assert rows.the_host(host).pace == timedelta(seconds=2)
    assert give_back(rows, series, claim.claimed_at) == 1
    assert counters(rows, series) == (0, None, None, None)
    assert rows.the_host(host).pace == timedelta(seconds=1)
    assert rows.the_series(series).next_check_at == claim.claimed_at + 2 * MINUTE
    assert rows.late_hints() == []


def test_several_charges_go_back_to_before_the_first(rows: Rows, store: PollStore) -> None:
    now = rows.now()
    host = rows.host(pace=timedelta(seconds=3))
    series = rows.series(host, failures=2, failing_since=now - DAY, failure="404", failure_kind="404")
    first = poll(store, SILENT)
    for _ in range(3):
        due(rows, series)
        poll(store, SILENT)
    assert rows.the_host(host).pace == timedelta(seconds=48)
    assert give_back(rows, series, first.claimed_at) == 1
    assert counters(rows, series)[:2] == (2, now - DAY)
    assert rows.the_host(host).pace == timedelta(seconds=3)


def test_how_it_failed_before_is_what_it_says_again(rows: Rows, store: PollStore) -> None:
    series = rows.series()
    poll(store, a_response(404))
    before = counters(rows, series)
    due(rows, series)
    claim = poll(store, SILENT)
    assert counters(rows, series)[2] != before[2]
    give_back(rows, series, claim.claimed_at)
    assert counters(rows, series) == before


def test_only_charges_since_the_instant_go_back(rows: Rows, store: PollStore) -> None:
    series = rows.series()
    poll(store, SILENT)
    due(rows, series)
    claim = poll(store, SILENT)
    assert give_back(rows, series, claim.claimed_at) == 1
    assert counters(rows, series)[0] == 1


def test_what_was_given_back_is_not_given_back_again(rows: Rows, store: PollStore) -> None:
    host = rows.host()
    series = rows.series(host)
    claim = poll(store, SILENT)
    assert give_back(rows, series, claim.claimed_at) == 1
    rows.set_series(series, failures=1, failing_since=rows.now())
    rows.set_host(host, pace=timedelta(seconds=2))
    assert give_back(rows, series, claim.claimed_at) == 0
    assert counters(rows, series)[0] == 1
    assert rows.the_host(host).pace == timedelta(seconds=2)
    assert rows.polls()[0].changed["given back"] == [False, True]


def test_what_proved_the_line_stays_charged(rows: Rows, store: PollStore) -> None:
    series = rows.series()
    claim = poll(store, REFUSED)
    assert give_back(rows, series, claim.claimed_at) == 0
    assert counters(rows, series)[0] == 1


def test_another_machines_charge_stands(rows: Rows, store: PollStore, elsewhere: PollStore) -> None:
    """CASES A12."""
    host = rows.host()
    series = rows.series(host)
    since = poll(store, SILENT).claimed_at
    due(rows, series)
    poll(elsewhere, REFUSED)
    assert give_back(rows, series, since) == 0
    assert counters(rows, series)[0] == 2
    assert rows.the_host(host).pace == timedelta(seconds=4)


def test_a_charge_on_top_of_another_machines_goes_back_to_what_that_left(
    rows: Rows, store: PollStore, elsewhere: PollStore
) -> None:
    """CASES A12."""
    host = rows.host()
    series = rows.series(host)
    since = poll(store, SILENT).claimed_at
    due(rows, series)
    poll(elsewhere, REFUSED)
    due(rows, series)
    poll(store, SILENT)
    assert give_back(rows, series, since) == 1
    assert counters(rows, series)[0] == 2
    assert rows.the_host(host).pace == timedelta(seconds=4)


def test_a_host_that_another_series_widened_since_keeps_that(
    rows: Rows, store: PollStore, elsewhere: PollStore
) -> None:
    host = rows.host()
    series, other = rows.series(host), rows.series(host, bookmarks=0)
    since = poll(store, SILENT).claimed_at
    rows.set_series(series, bookmarks=0)
    rows.set_series(other, bookmarks=1)
    rows.set_host(host, pace=timedelta(seconds=1))
    due(rows, other)
    poll(elsewhere, REFUSED)
    assert rows.the_host(host).pace == timedelta(seconds=2)
    assert give_back(rows, series, since) == 1
    assert rows.the_host(host).pace == timedelta(seconds=2)


def test_values_that_the_owner_changed_since_stand(rows: Rows, store: PollStore) -> None:
    host = rows.host()
    series = rows.series(host)
    since = poll(store, SILENT).claimed_at
    rows.set_series(series, failures=7)
    rows.set_host(host, pace=timedelta(seconds=30))
    assert give_back(rows, series, since) == 0
    assert counters(rows, series)[0] == 7
    assert rows.the_host(host).pace == timedelta(seconds=30)


def test_a_host_that_died_of_it_lives_and_its_wait_is_lifted(rows: Rows, store: PollStore) -> None:
    """CASES A14."""
    host = rows.host(pace=timedelta(minutes=4))
    series = rows.series(host)
    since = poll(store, SILENT).claimed_at
    while rows.the_host(host).dead_since is None:
        due(rows, series)
        poll(store, SILENT)
    assert rows.the_host(host).not_before > rows.now()
    give_back(rows, series, since)
    row = rows.the_host(host)
    assert (row.dead_since, row.backoffs, row.pace) == (None, 0, timedelta(minutes=4))
    assert (row.not_before, row.not_before_reason) == (NEVER, None)
    assert rows.late_hints() == []


def test_a_wait_that_the_host_asked_for_meanwhile_stands(rows: Rows, store: PollStore) -> None:
    host = rows.host(pace=timedelta(minutes=4))
    series = rows.series(host)
    since = poll(store, SILENT).claimed_at
    while rows.the_host(host).dead_since is None:
        due(rows, series)
        poll(store, SILENT)
    until = rows.now() + 5 * HOUR
    rows.set_host(host, not_before=until, not_before_reason="the host asked to wait")
    give_back(rows, series, since)
    assert rows.the_host(host).dead_since is None
    assert rows.the_host(host).not_before == until


def retired_by_silence(rows: Rows, store: PollStore) -> tuple[int, datetime]:
    """A Series whose twentieth failure came without proof."""
    series = rows.series(failures=19, failing_since=rows.now() - 4 * DAY, failure="404", failure_kind="404")
    rows.bookmark(series)
    claim = poll(store, SILENT)
    assert rows.the_series(series).retired_at is not None
    assert len(rows("SELECT * FROM lanes.notices WHERE kind = 'stopped'")) == 1
    return series, claim.claimed_at


def test_a_series_that_was_retired_by_it_comes_back_and_nobody_is_told(rows: Rows, store: PollStore) -> None:
    series, since = retired_by_silence(rows, store)
    assert give_back(rows, series, since) == 1
    row = rows.the_series(series)
    assert (row.retired_at, row.retired_reason, row.failures) == (None, None, 19)
    assert rows("SELECT * FROM lanes.notices") == []
    assert rows.late_hints() == []


def test_whoever_heard_already_that_it_stopped_is_told_that_it_is_back(rows: Rows, store: PollStore) -> None:
    series, since = retired_by_silence(rows, store)
    rows("UPDATE lanes.notices SET delivered_at = lanes.now()")
    give_back(rows, series, since)
    assert rows.the_series(series).retired_at is None
    told = rows("SELECT reader_id, kind, delivered_at IS NULL AS owed FROM lanes.notices ORDER BY id")
    assert [(row.kind, row.owed) for row in told] == [("stopped", False), ("back again", True)]
    assert len({row.reader_id for row in told}) == 1


def test_a_first_410_of_a_site_that_fails_is_forgotten(rows: Rows, store: PollStore) -> None:
    series = rows.series()
    claim = poll(store, a_response(410))
    assert rows.the_series(series).gone_at is not None
    assert give_back(rows, series, claim.claimed_at, None, hosts=False) == 1
    assert rows.the_series(series).gone_at is None


def test_a_site_gives_back_what_any_machine_charged_but_leaves_the_interval(
    rows: Rows, store: PollStore, elsewhere: PollStore
) -> None:
    """CASES A3."""
    host = rows.host()
    series = rows.series(host)
    since = poll(store, a_response(500)).claimed_at
    due(rows, series)
    poll(elsewhere, a_response(500))
    assert give_back(rows, series, since, None, hosts=False) == 1
    assert counters(rows, series) == (0, None, None, None)
    assert rows.the_host(host).pace == timedelta(seconds=4)


def test_a_series_without_an_adaptive_interval_is_due_by_its_rest_alone(rows: Rows, store: PollStore) -> None:
    series = rows.series()
    claim = poll(store, SILENT)
    rows.set_series(series, rest=None)
    give_back(rows, series, claim.claimed_at)
    assert rows.the_series(series).next_check_at == NEVER


def test_three_silent_hosts_where_nobody_answered_lately_are_us(rows: Rows, store: PollStore, line: LineStore) -> None:
    for _ in range(3):
        rows.series()
        poll(store, SILENT)
        line.judge()
    (machine,) = rows("SELECT * FROM lanes.machines")
    (incident,) = rows("SELECT * FROM lanes.incidents")
    assert machine.us_since == incident.started_at == rows.polls()[0].claimed_at
    assert (incident.whose, incident.machine, incident.spared, incident.ended_at) == ("us", "here", 3, None)
    assert [each["detail"] for each in incident.evidence["attempts"]] == ["connect: no route"] * 3
    assert {row.failures for row in rows("SELECT failures FROM lanes.series")} == {0}
    assert [row.event for row in rows("SELECT event FROM lanes.notices")] == [f"incident:{incident.id}"]


def test_what_was_in_hand_when_it_began_is_given_back_to_the_same_incident(
    rows: Rows, store: PollStore, line: LineStore
) -> None:
    for _ in range(4):
        rows.series()
    claims = [take(store) for _ in range(4)]
    for claim in claims:
        assert claim is not None
        store.settle(claim, settled(SILENT, None, claim, now=claim.claimed_at), went(claim, SILENT))
        line.judge()
    (incident,) = rows("SELECT * FROM lanes.incidents")
    assert incident.spared == 4
    assert {row.failures for row in rows("SELECT failures FROM lanes.series")} == {0}
    assert len(rows("SELECT * FROM lanes.notices")) == 1


def test_the_probe_that_proves_the_line_ends_the_incident_and_says_so(
    rows: Rows, store: PollStore, line: LineStore, clock: Clock
) -> None:
    for _ in range(3):
        rows.series()
        poll(store, SILENT)
        line.judge()
    clock.advance(3 * HOUR)
    line.probed(proved=False)
    assert rows.one("SELECT us_since IS NOT NULL FROM lanes.machines")
    line.probed(proved=True)
    assert rows.one("SELECT us_since FROM lanes.machines") is None
    assert rows.one("SELECT ended_at - started_at > '3 hours' FROM lanes.incidents")
    assert [row.kind for row in rows("SELECT kind FROM lanes.notices ORDER BY id")] == ["incident", "incident over"]


def test_the_series_that_is_asked_goes_before_its_rest_and_before_all_others(
    rows: Rows, store: PollStore, line: LineStore
) -> None:
    asked = rows.series()
    poll(store, replace(a_response(304), conditional=True))
    for _ in range(3):
        rows.series()
        poll(store, SILENT)
    rows.set_host(rows.the_series(asked).host_id, next_at=ALWAYS)
    rows.series(rows.host(ready_at=rows.now() - HOUR))
    line.judge()
    row = rows.the_series(asked)
    assert row.retry_reason == "asks whether our line is up"
    assert row.next_check_at > rows.now()
    assert rows.one("SELECT asked_series FROM lanes.machines") == asked
    claim = take(store)
    assert claim is not None
    assert claim.series_id == asked
    assert rows("SELECT * FROM lanes.incidents") == []


def test_after_the_database_was_away_nobody_is_asked(rows: Rows, store: PollStore, line: LineStore) -> None:
    """CASES A2."""
    rows.series()
    poll(store, replace(a_response(304), conditional=True))
    line.shaken()
    for _ in range(2):
        assert rows.one("SELECT us_since FROM lanes.machines") is None
        rows.series()
        poll(store, SILENT)
        line.judge()
    assert rows("SELECT us_since IS NOT NULL AS us, asked_at FROM lanes.machines") == [(True, None)]


def test_a_series_in_hand_that_answered_lately_is_waited_for(rows: Rows, store: PollStore, line: LineStore) -> None:
    asked = rows.series()
    poll(store, replace(a_response(304), conditional=True))
    due(rows, asked)
    assert take(store) is not None
    for _ in range(4):
        rows.series()
        poll(store, SILENT)
        line.judge()
    assert rows("SELECT us_since, asked_at FROM lanes.machines") == [(None, None)]


def test_a_site_that_seemed_to_fail_did_not(rows: Rows, store: PollStore, line: LineStore) -> None:
    """CASES A1: one incident "us"."""
    host = rows.host()
    for _ in range(3):
        series = rows.series(host)
        due(rows, series)
        poll(store, SILENT)
    assert [row.whose for row in rows("SELECT whose FROM lanes.incidents")] == ["site"]
    rows.series()
    poll(store, SILENT)
    line.judge()
    assert [row.whose for row in rows("SELECT whose FROM lanes.incidents")] == ["us"]
    row = rows.the_host(host)
    assert (row.failing, row.answers, row.pace) == (None, [], timedelta(seconds=1))
    assert rows("SELECT * FROM lanes.series WHERE spared_by IS NOT NULL OR failures > 0") == []
    assert rows.one("SELECT max(next_check_at - latest_checked_at) FROM lanes.series") == 2 * MINUTE
    assert [row.kind for row in rows("SELECT kind FROM lanes.notices")] == ["incident"]
    assert rows.late_hints() == []


def test_after_the_clock_went_back_the_old_record_says_nothing(
    rows: Rows, store: PollStore, line: LineStore, clock: Clock
) -> None:
    """CASES A13."""
    clock.advance(8 * HOUR)
    rows.series()
    poll(store, a_response(404))
    store.keep_house()
    clock.advance(-8 * HOUR)
    assert store.shift_back() is not None
    for _ in range(2):
        rows.series()
        poll(store, SILENT)
        line.judge()
    assert rows.one("SELECT us_since IS NOT NULL FROM lanes.machines")
    clock.advance(MINUTE)
    line.probed(proved=True)
    assert rows.one("SELECT us_since FROM lanes.machines") is None
    assert rows.one("SELECT ended_at >= started_at FROM lanes.incidents")


def test_only_the_hosts_that_somebody_follows_count(rows: Rows) -> None:
    assert rows.one("SELECT lanes.only_host()") is False
    host = rows.host()
    rows.series(host)
    rows.series(host)
    for facts in ({"bookmarks": 0}, {"paused_at": rows.now()}, {"lifecycle": "finished"}, {"url": ""}):
        rows.series(**facts)
    assert rows.one("SELECT lanes.only_host()") is True
    rows.series()
    assert rows.one("SELECT lanes.only_host()") is False
