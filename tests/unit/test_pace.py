"""The Gap of a Site, and how an answer moves a host's interval (DESIGN 5.1, 5.3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lanes.core import pace
from lanes.core.pace import (
    HOST_CEILING,
    HOST_DEFAULT,
    EffectiveGap,
    HostPace,
    RefusedPace,
    Signal,
    effective_gap,
    is_dead,
    refused_at,
    remembered,
)

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def near(expected: timedelta) -> object:
    return pytest.approx(expected, abs=seconds(0.001))


def after(before: HostPace, signal: Signal, latency: timedelta | None) -> HostPace:
    """At one and the same instant."""
    return pace.after(before, signal, latency, NOW)


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
    assert after(HostPace(seconds(10), seconds(0.1)), Signal.HEALTHY, seconds(0.251)).pace == seconds(13)


def test_a_first_answer_has_nothing_to_be_slower_than() -> None:
    first = after(HostPace(seconds(10)), Signal.HEALTHY, seconds(9))
    assert first.pace == seconds(9)
    assert first.latency == seconds(9)


def test_the_newest_answer_weighs_a_quarter_in_the_smoothed_latency() -> None:
    assert after(HostPace(latency=seconds(0.4)), Signal.HEALTHY, seconds(0.8)).latency == seconds(0.5)


def test_no_answer_leaves_the_smoothed_latency_alone() -> None:
    assert after(HostPace(latency=seconds(0.4)), Signal.TROUBLED, None).latency == seconds(0.4)


def test_backoffs_in_a_row_at_the_ceiling_are_counted_and_a_healthy_answer_ends_the_row() -> None:
    host = HostPace(seconds(200))
    counts = []
    for _ in range(3):
        host = after(host, Signal.TROUBLED, None)
        counts.append(host.backoffs)
    assert counts == [1, 2, 3]
    assert after(host, Signal.HEALTHY, None).backoffs == 0


def test_a_backoff_below_the_ceiling_is_not_counted() -> None:
    assert after(HostPace(seconds(10)), Signal.TROUBLED, None).backoffs == 0
    assert after(HostPace(seconds(149.9)), Signal.TROUBLED, None).backoffs == 0
    assert after(HostPace(seconds(150)), Signal.TROUBLED, None) == HostPace(HOST_CEILING, backoffs=1)


# Three backoffs in a row at the ceiling


def test_a_host_is_dead_after_three_backoffs_in_a_row_at_the_ceiling_and_lives_with_the_first_answer() -> None:
    host = HostPace(seconds(200))
    dead = []
    for _ in range(3):
        host = after(host, Signal.TROUBLED, None)
        dead.append(is_dead(host))
    assert dead == [False, False, True]
    assert is_dead(after(host, Signal.SILENT, None))
    assert not is_dead(after(host, Signal.HEALTHY, None))


def test_a_dead_host_is_probed_hourly() -> None:
    assert timedelta(hours=1) == pace.DEAD_PROBE


def test_an_address_moves_by_half_a_second_a_late_request_moves_it_again_and_waits_five_seconds_for_it() -> None:
    assert [seconds(0.5), seconds(0.1), seconds(5)] == [pace.ADDRESS_PACE, pace.SENT_LATE, pace.LATE_WAIT]


# What is remembered of a refusal


def test_the_interval_at_which_a_host_refused_us_times_five_quarters_is_its_own_floor() -> None:
    """CASES B3."""
    refused = refused_at(HostPace(seconds(118)), seconds(60), NOW)
    assert refused == RefusedPace(seconds(60), NOW, 1)
    assert remembered(refused, NOW) == seconds(75)
    assert after(HostPace(seconds(76), refused=refused), Signal.HEALTHY, None) == HostPace(seconds(75), refused=refused)


def test_a_healthy_answer_never_widens_a_pace_that_is_below_what_is_remembered() -> None:
    refused = RefusedPace(seconds(60), NOW)
    assert after(HostPace(seconds(50), refused=refused), Signal.HEALTHY, None).pace == seconds(50)


@pytest.mark.parametrize(("times", "days"), [(1, 1), (2, 30), (3, 30)])
def test_a_first_refusal_decays_by_a_tenth_a_day_and_later_ones_by_a_tenth_a_month(times: int, days: int) -> None:
    refused = RefusedPace(seconds(80), NOW, times)
    assert [remembered(refused, NOW + days * n * DAY) for n in (0, 1, 2)] == [
        near(seconds(100)), near(seconds(90)), near(seconds(81)),
    ]  # fmt: skip


def test_every_answer_but_one_that_comes_too_late_keeps_the_memory() -> None:
    refused = RefusedPace(seconds(60), NOW)
    host = HostPace(seconds(100), refused=refused)
    assert {after(host, signal, None).refused for signal in Signal} == {refused}
    long_after = NOW + 365 * DAY
    assert {pace.after(host, signal, None, long_after).refused for signal in Signal} == {None}


def test_a_second_refusal_counts_while_the_first_is_remembered_and_starts_anew_once_it_is_forgotten() -> None:
    host = HostPace(refused=RefusedPace(seconds(60), NOW))
    assert refused_at(host, seconds(70), NOW + DAY) == RefusedPace(seconds(70), NOW + DAY, 2)
    forgotten = NOW + 45 * DAY  # 75 s x 0.9 to the 41st is less than a second
    assert refused_at(host, seconds(1), forgotten) == RefusedPace(seconds(1), forgotten, 1)


def test_what_is_remembered_no_longer_stands_once_it_is_down_at_the_floor() -> None:
    host = HostPace(refused=RefusedPace(seconds(0.8), NOW))
    assert refused_at(host, seconds(1), NOW) == RefusedPace(seconds(1), NOW, 1)
    assert after(host, Signal.HEALTHY, None).refused is None


def test_a_refusal_at_a_shorter_interval_lowers_nothing() -> None:
    host = HostPace(refused=RefusedPace(seconds(60), NOW))
    again = refused_at(host, seconds(2), NOW)
    assert (again.times, remembered(again, NOW)) == (2, near(seconds(75)))


def test_what_is_remembered_never_exceeds_the_ceiling_and_no_clock_that_went_back_raises_it() -> None:
    assert remembered(RefusedPace(timedelta(hours=1), NOW), NOW) == HOST_CEILING
    assert remembered(RefusedPace(seconds(60), NOW + 8 * DAY), NOW) == seconds(75)


def test_a_host_that_refuses_whatever_comes_within_a_minute_is_soon_asked_less_than_once_a_minute() -> None:
    """CASES B3: the interval learns to exceed 60 s, and keeps clear of it for months."""
    host, now, refusals = HostPace(), NOW, 0
    for _ in range(2000):
        now += host.pace
        if host.pace < seconds(60):
            refusals += 1
            learnt = refused_at(host, host.pace, now)
            widened = pace.after(host, Signal.TOO_FAST, None, now)
            host = HostPace(widened.pace, widened.latency, widened.backoffs, learnt)
        else:
            host = pace.after(host, Signal.HEALTHY, None, now)
    assert refusals == 2
    assert host.pace > seconds(60)
    assert pace.after(host, Signal.HEALTHY, None, now + 50 * DAY).pace > seconds(60)


# A host that the registry names


def test_a_host_that_the_registry_names_narrows_to_its_floor_and_no_further() -> None:
    quarter = seconds(0.25)
    assert pace.after(HostPace(seconds(0.4)), Signal.HEALTHY, None, NOW, quarter).pace == near(seconds(0.3))
    assert pace.after(HostPace(seconds(0.3)), Signal.HEALTHY, None, NOW, quarter).pace == quarter


def test_a_host_that_the_registry_names_as_slower_narrows_to_its_floor_and_no_further() -> None:
    """SITES 8: one request a minute."""
    minute = seconds(70)
    assert pace.after(HostPace(seconds(140)), Signal.HEALTHY, None, NOW, minute).pace == near(seconds(126))
    assert pace.after(HostPace(seconds(75)), Signal.HEALTHY, None, NOW, minute).pace == minute
    assert pace.after(HostPace(minute), Signal.HEALTHY, seconds(0.1), NOW, minute).pace == minute
    assert pace.after(HostPace(minute), Signal.TROUBLED, None, NOW, minute).pace == 2 * minute


def test_no_name_in_the_registry_makes_a_host_faster_than_four_a_second() -> None:
    assert pace.after(HostPace(seconds(0.3)), Signal.HEALTHY, None, NOW, seconds(0.01)).pace == pace.HOST_FLOOR
    assert seconds(0.25) == pace.HOST_FLOOR


def test_a_named_host_remembers_a_refusal_below_the_default() -> None:
    refused = refused_at(HostPace(seconds(0.4)), seconds(0.4), NOW, seconds(0.25))
    host = HostPace(seconds(0.51), refused=refused)
    assert pace.after(host, Signal.HEALTHY, None, NOW, seconds(0.25)) == HostPace(seconds(0.5), refused=refused)


# The Gap of a Site


@pytest.mark.parametrize(
    ("eligible", "gap", "floored"),
    [(0, 10, False), (1, 10, False), (360, 10, False), (361, 3600 / 361, False), (3600, 1, False), (3601, 1, True)],
)
def test_the_gap_shrinks_so_that_each_series_gets_its_rest_but_not_below_a_second(
    eligible: int, gap: float, floored: bool
) -> None:
    found = effective_gap(seconds(10), timedelta(hours=1), eligible)
    assert found.gap == near(seconds(gap))
    assert found.floored is floored
    assert (found == EffectiveGap(found.gap)) is not floored


@pytest.mark.parametrize("eligible", [0, 1])
def test_a_site_of_one_series_has_all_of_its_rest_for_it(eligible: int) -> None:
    assert effective_gap(timedelta(hours=1), timedelta(hours=1), eligible) == EffectiveGap(timedelta(hours=1))


def test_a_gap_shorter_than_the_floor_is_not_taken_at_its_word() -> None:
    assert effective_gap(seconds(0.2), timedelta(hours=1), 1) == EffectiveGap(seconds(1), floored=True)


@pytest.mark.parametrize("signal", list(Signal))
def test_a_host_named_as_slower_than_the_default_is_never_faster_whatever_its_row_said(signal: Signal) -> None:
    named = timedelta(seconds=70)
    assert pace.after(HostPace(timedelta(seconds=1)), signal, None, NOW, named).pace >= named
