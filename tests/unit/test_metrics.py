"""The metrics of a Lane: closed labels, every series from the start, and what each event counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import generate_latest

from lanes.core.outcome import Label
from lanes.metrics import COUNTERS, GAUGES, OUTCOMES, LaneMetrics
from lanes.store.polls import Gauges

SITE = {"site": "feeds"}


@pytest.fixture
def metrics() -> LaneMetrics:
    return LaneMetrics("feeds", 16)


def value(metrics: LaneMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, SITE | labels)


def ended(
    metrics: LaneMetrics, label: Label, *, seconds: float | None = 0.2, backed_off: bool = False, told: bool = False
) -> None:
    metrics.poll_ended(label, seconds, 1000, 2, backed_off, told)


def test_every_series_is_there_from_the_start() -> None:
    metrics = LaneMetrics("feeds", 16)
    assert {name: value(metrics, name) for name in COUNTERS} == dict.fromkeys(COUNTERS, 0)
    others = GAUGES.keys() - {"lanes_slots", "lanes_seconds_since_last_pass"}
    assert {name: value(metrics, name) for name in others} == dict.fromkeys(others, 0)
    assert value(metrics, "lanes_slots") == 16
    assert value(metrics, "lanes_fetch_seconds_count") == 0
    assert {label: value(metrics, "lanes_polls_total", outcome=label.value) for label in Label} == {
        label: 0 if label in OUTCOMES else None for label in Label
    }


def test_what_is_served_holds_our_own_names_alone(metrics: LaneMetrics) -> None:
    lines = generate_latest(metrics.registry).decode().splitlines()
    assert {line.split()[2] for line in lines if line.startswith("# TYPE")} == {
        *COUNTERS, *GAUGES, "lanes_polls_total", "lanes_fetch_seconds", "lanes_build_info",
    }  # fmt: skip
    assert not [line for line in lines if "_created" in line]


def test_a_poll_counts_under_its_outcome_and_nowhere_else(metrics: LaneMetrics) -> None:
    ended(metrics, Label.NEW)
    counted = {label for label in Label if value(metrics, "lanes_polls_total", outcome=label.value)}
    assert counted == {Label.NEW}
    assert value(metrics, "lanes_bytes_total") == 1000
    assert value(metrics, "lanes_new_chapters_total") == 2
    assert value(metrics, "lanes_fetch_seconds_bucket", le="0.3") == 1
    assert value(metrics, "lanes_fetch_seconds_bucket", le="0.1") == 0
    untouched = ("lanes_put_backs_total", "lanes_host_backoffs_total", "lanes_waits_obeyed_total")
    assert [value(metrics, name) for name in untouched] == [0, 0, 0]


def test_put_backs_backoffs_and_waits_are_counted_by_themselves(metrics: LaneMetrics) -> None:
    ended(metrics, Label.PUT_BACK, seconds=None)
    ended(metrics, Label.FAILED, backed_off=True)
    ended(metrics, Label.WAIT, told=True)
    metrics.lease_abandoned()
    counted = (
        "lanes_put_backs_total",
        "lanes_host_backoffs_total",
        "lanes_waits_obeyed_total",
        "lanes_leases_abandoned_total",
    )
    assert [value(metrics, name) for name in counted] == [1, 1, 1, 1]
    assert value(metrics, "lanes_fetch_seconds_count") == 2


def test_gauges_say_nothing_waits_as_zero(metrics: LaneMetrics) -> None:
    metrics.gauges(Gauges(7, 3, 1, timedelta(seconds=90), timedelta(hours=1), timedelta(seconds=2)))
    assert value(metrics, "lanes_eligible") == 7
    assert value(metrics, "lanes_due") == 3
    assert value(metrics, "lanes_held") == 1
    assert value(metrics, "lanes_behind_seconds") == 90
    assert value(metrics, "lanes_oldest_held_seconds") == 3600
    assert value(metrics, "lanes_oldest_pending_seconds") == 2
    metrics.gauges(Gauges(7, 0, 0, None, None, None))
    assert value(metrics, "lanes_refused_until_timestamp_seconds") == 0
    assert value(metrics, "lanes_behind_seconds") == 0
    assert value(metrics, "lanes_oldest_pending_seconds") == 0


def test_refusals_and_retirements_are_counted_by_themselves(metrics: LaneMetrics) -> None:
    ended(metrics, Label.REFUSED)
    metrics.poll_ended(Label.REFUSED, 0.1, 10, 0, False, False, refused=True)
    metrics.poll_ended(Label.FAILED, 0.1, 10, 0, False, False, retired=True)
    assert [value(metrics, name) for name in ("lanes_refusals_total", "lanes_retirements_total")] == [1, 1]


def test_an_open_refusal_window_and_open_incidents_are_shown(metrics: LaneMetrics) -> None:
    until = datetime(2026, 5, 1, tzinfo=UTC)
    metrics.gauges(Gauges(7, 0, 3, None, None, None, until, 2))
    assert value(metrics, "lanes_refused_until_timestamp_seconds") == until.timestamp()
    assert value(metrics, "lanes_incidents_open") == 2


def test_the_gap_in_force_is_shown_and_the_engaging_of_its_floor_is_counted(metrics: LaneMetrics) -> None:
    metrics.gap(timedelta(seconds=4.5))
    metrics.floor_engaged()
    assert value(metrics, "lanes_effective_gap_seconds") == 4.5
    assert value(metrics, "lanes_gap_floor_engagements_total") == 1


def test_a_lane_is_not_well_before_postgres_answers_nor_after_it_went(metrics: LaneMetrics) -> None:
    assert not metrics.health().ok
    metrics.database(up=True)
    assert metrics.health().ok
    metrics.database(up=False)
    away = metrics.health()
    assert (away.ok, away.state) == (False, "waiting for Postgres")
    assert away.database.startswith("away since ")
    assert value(metrics, "lanes_database_up") == 0


def test_away_since_is_the_first_instant_of_many(metrics: LaneMetrics) -> None:
    metrics.database(up=False)
    first = metrics.health().database
    metrics.database(up=False)
    assert metrics.health().database == first


def test_the_state_says_in_words_what_the_lane_does(metrics: LaneMetrics) -> None:
    metrics.database(up=True)
    assert (metrics.health().state, metrics.health().last_pass) == ("at rest", None)
    metrics.slots_in_use(3)
    assert metrics.health().state == "polling, 3 of 16 slots in use"
    metrics.slots_in_use(0)
    metrics.pass_ended()
    assert metrics.health().last_pass is not None


def test_a_lane_that_is_told_to_poll_nothing_is_well(metrics: LaneMetrics) -> None:
    """CASES B17: nothing is polled, and it is said."""
    metrics.switched_off()
    health = metrics.health()
    assert (health.ok, health.state) == (True, "polling is switched off")


def test_two_processes_of_one_test_share_no_metric(metrics: LaneMetrics) -> None:
    other = LaneMetrics("feeds", 16)
    ended(other, Label.NEW)
    assert value(metrics, "lanes_bytes_total") == 0
