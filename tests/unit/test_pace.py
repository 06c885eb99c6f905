"""How an answer moves a host's interval (DESIGN 5.3)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lanes.core.pace import HOST_CEILING, HOST_DEFAULT, HostPace, Signal, after


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


@pytest.mark.parametrize(
    ("before", "then"),
    [(100, 90), (10, 9), (2, 1.8), (1.5, 1.35), (1.08, 1), (1, 1)],
)
def test_a_healthy_answer_narrows_by_the_larger_of_a_tenth_of_a_second_and_ten_percent(
    before: float, then: float
) -> None:
    assert after(HostPace(seconds(before)), Signal.HEALTHY, None).pace == pytest.approx(
        seconds(then), abs=seconds(0.001)
    )


def test_below_one_second_the_step_is_still_a_tenth_of_a_second_but_never_under_the_default() -> None:
    assert after(HostPace(seconds(1.05)), Signal.HEALTHY, None).pace == HOST_DEFAULT == seconds(1)


def test_a_pace_below_the_default_is_left_where_it_is_by_a_healthy_answer() -> None:
    assert after(HostPace(seconds(0.5)), Signal.HEALTHY, None).pace == seconds(0.5)


def test_trouble_doubles_the_interval() -> None:
    assert after(HostPace(seconds(3)), Signal.TROUBLED, None).pace == seconds(6)


def test_too_fast_doubles_and_is_at_least_ninety_seconds() -> None:
    assert after(HostPace(seconds(1)), Signal.TOO_FAST, None).pace == seconds(90)
    assert after(HostPace(seconds(60)), Signal.TOO_FAST, None).pace == seconds(120)


def test_the_interval_never_exceeds_five_minutes() -> None:
    assert timedelta(minutes=5) == HOST_CEILING
    assert after(HostPace(seconds(200)), Signal.TROUBLED, None).pace == HOST_CEILING
    assert after(HostPace(seconds(200)), Signal.TOO_FAST, None).pace == HOST_CEILING


def test_a_silent_answer_leaves_the_interval_alone() -> None:
    assert after(HostPace(seconds(7)), Signal.SILENT, None).pace == seconds(7)


def test_an_answer_half_as_slow_again_as_usual_widens_by_three_tenths() -> None:
    assert after(HostPace(seconds(10), seconds(0.4)), Signal.HEALTHY, seconds(0.61)).pace == seconds(13)


def test_an_answer_just_within_half_as_slow_again_is_healthy() -> None:
    assert after(HostPace(seconds(10), seconds(0.4)), Signal.HEALTHY, seconds(0.6)).pace == seconds(9)


def test_a_slow_answer_under_a_quarter_second_is_noise() -> None:
    assert after(HostPace(seconds(10), seconds(0.1)), Signal.HEALTHY, seconds(0.25)).pace == seconds(9)


def test_a_first_answer_has_nothing_to_be_slower_than() -> None:
    first = after(HostPace(seconds(10)), Signal.HEALTHY, seconds(9))
    assert first.pace == seconds(9)
    assert first.latency == seconds(9)


def test_the_newest_answer_weighs_a_quarter_in_the_smoothed_latency() -> None:
    assert after(HostPace(latency=seconds(0.4)), Signal.HEALTHY, seconds(0.8)).latency == seconds(0.5)


def test_no_answer_leaves_the_smoothed_latency_alone() -> None:
    assert after(HostPace(latency=seconds(0.4)), Signal.TROUBLED, None).latency == seconds(0.4)


def test_backoffs_in_a_row_at_the_ceiling_are_counted_and_a_healthy_answer_ends_the_row() -> None:
    pace = HostPace(seconds(200))
    counts = []
    for _ in range(3):
        pace = after(pace, Signal.TROUBLED, None)
        counts.append(pace.backoffs)
    assert counts == [1, 2, 3]
    assert after(pace, Signal.HEALTHY, None).backoffs == 0


def test_a_backoff_below_the_ceiling_is_not_counted() -> None:
    assert after(HostPace(seconds(10)), Signal.TROUBLED, None).backoffs == 0
