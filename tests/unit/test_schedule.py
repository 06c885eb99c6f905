"""When a Series is next looked at (DESIGN 5.2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lanes.core import schedule
from lanes.core.chapters import NO_HINTS, Hints

MONDAY_NOON = datetime(2031, 5, 5, 12, tzinfo=UTC)


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def next_check(
    rest: timedelta, hints: Hints = NO_HINTS, stamp: datetime = MONDAY_NOON, chance: float = 0.5
) -> datetime:
    return schedule.next_check(stamp, rest, hints, series_id=1, chance=chance)


@pytest.mark.parametrize(("rest", "then"), [(60, 30), (10, 5), (2, 1), (1.5, 1), (1, 1)])
def test_something_new_halves_the_interval_down_to_a_minute(rest: float, then: float) -> None:
    assert schedule.shortened(minutes(rest)) == minutes(then)


@pytest.mark.parametrize(("rest", "then"), [(1, 1.5), (10, 15), (40, 60), (50, 60), (60, 60)])
def test_nothing_new_lengthens_the_interval_by_half_up_to_an_hour(rest: float, then: float) -> None:
    assert schedule.lengthened(minutes(rest)) == minutes(then)


@pytest.mark.parametrize(("failures", "then"), [(1, 20), (2, 40), (3, 80), (5, 320), (6, 360), (7, 360), (10_000, 360)])
def test_the_kth_failure_in_a_row_rests_two_to_the_k_intervals_and_at_most_six_hours(
    failures: int, then: float
) -> None:
    assert schedule.after_failure(minutes(10), failures) == minutes(then)


@pytest.mark.parametrize(("refusals", "then"), [(1, 15), (2, 30), (3, 60), (4, 120), (5, 240), (6, 240), (10_000, 240)])
def test_a_refused_url_waits_a_quarter_of_an_hour_doubling_to_four(refusals: int, then: float) -> None:
    assert schedule.after_refusal(refusals) == minutes(then)


def test_two_series_of_one_interval_are_not_looked_at_in_lockstep() -> None:
    places = {schedule.next_check(MONDAY_NOON, minutes(60), NO_HINTS, series_id=n, chance=0.5) for n in range(100)}
    assert len(places) == 100


def test_the_phase_of_a_series_is_the_one_that_the_database_computes() -> None:
    """7919 is prime to 1000, so that neighbours are far apart and a thousand Series have a thousand phases."""
    assert [schedule.phase(series_id) for series_id in (1, 2, 126, 1000)] == [0.919, 0.838, 0.794, 0]


def test_the_same_series_is_not_always_looked_at_after_the_same_time() -> None:
    assert next_check(minutes(60), chance=0.1) != next_check(minutes(60), chance=0.9)


def test_phase_and_chance_each_delay_by_up_to_five_percent() -> None:
    assert next_check(minutes(60), chance=1) - next_check(minutes(60), chance=0) == minutes(3)
    latest = max(schedule.next_check(MONDAY_NOON, minutes(60), NO_HINTS, series_id=n, chance=1) for n in range(1000))
    assert minutes(65.99) < latest - MONDAY_NOON < minutes(66)


def test_a_new_series_starts_at_two_minutes_and_what_is_forbidden_is_looked_at_again_after_a_day() -> None:
    assert minutes(2) == schedule.INITIAL
    assert timedelta(hours=24) == schedule.DISALLOWED


def test_a_wish_for_a_longer_time_is_granted() -> None:
    """CASES C7"""
    assert next_check(minutes(5), Hints(every=timedelta(hours=24))) >= MONDAY_NOON + timedelta(hours=24)


def test_a_wish_for_a_shorter_time_changes_nothing() -> None:
    assert next_check(minutes(50), Hints(every=minutes(1))) == next_check(minutes(50))


def test_a_skipped_hour_is_waited_out() -> None:
    checked = next_check(minutes(61), Hints(skip_hours=frozenset({13, 14})))
    assert checked >= MONDAY_NOON.replace(hour=15)
    assert checked.hour == 15


def test_the_first_hour_that_is_not_skipped_is_taken_from_its_start() -> None:
    checked = next_check(minutes(61), Hints(skip_hours=frozenset({13})))
    assert checked == MONDAY_NOON.replace(hour=14)


def test_a_single_free_hour_in_the_week_is_waited_for() -> None:
    hints = Hints(skip_hours=frozenset(range(24)) - {11}, skip_days=frozenset(range(1, 7)))
    assert next_check(minutes(10), hints) == MONDAY_NOON + timedelta(days=6, hours=23)


def test_skipped_days_are_waited_out() -> None:
    checked = next_check(minutes(10), Hints(skip_days=frozenset({0, 1, 2})))
    assert checked.date() == datetime(2031, 5, 8, tzinfo=UTC).date()


def test_an_hour_that_is_not_skipped_changes_nothing() -> None:
    assert next_check(minutes(61), Hints(skip_hours=frozenset({2, 3}))) == next_check(minutes(61))


@pytest.mark.parametrize("hints", [Hints(skip_hours=frozenset(range(24))), Hints(skip_days=frozenset(range(7)))])
def test_hints_that_leave_no_hour_free_are_no_hint(hints: Hints) -> None:
    assert next_check(minutes(10), hints) == next_check(minutes(10))
