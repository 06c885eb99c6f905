"""Laws of Gap and host pace that no sequence of answers may break (DESIGN 5.1, 5.3)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from lanes.core import pace as rules
from lanes.core.pace import (
    GAP_FLOOR,
    HOST_CEILING,
    HOST_DEFAULT,
    HOST_FLOOR,
    HostPace,
    RefusedPace,
    Signal,
    effective_gap,
    refused_at,
    remembered,
)

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
_paces = st.timedeltas(timedelta(seconds=0.25), HOST_CEILING)
_latencies = st.none() | st.timedeltas(timedelta(0), timedelta(seconds=60))
_instants = st.datetimes(
    NOW.replace(tzinfo=None), datetime(2028, 1, 1, tzinfo=UTC).replace(tzinfo=None), timezones=st.just(UTC)
)
_refused = st.none() | st.builds(RefusedPace, _paces, _instants, st.integers(1, 4))
_before = st.builds(HostPace, _paces, _latencies, st.integers(0, 5), _refused)
_floors = st.timedeltas(timedelta(0), HOST_DEFAULT)
_answers = st.lists(st.tuples(st.sampled_from(Signal), _latencies), max_size=60)
_gaps = st.timedeltas(timedelta(0), timedelta(hours=1))
_rests = st.timedeltas(timedelta(minutes=1), timedelta(days=1))


def after(before: HostPace, signal: Signal, latency: timedelta | None) -> HostPace:
    """At one and the same instant."""
    return rules.after(before, signal, latency, NOW)


@given(answers=_answers)
def test_no_sequence_of_answers_leaves_the_band(answers: list[tuple[Signal, timedelta | None]]) -> None:
    """Never under the default, which is every unnamed host's floor, never over the ceiling."""
    pace = HostPace()
    for signal, latency in answers:
        pace = after(pace, signal, latency)
        assert HOST_DEFAULT <= pace.pace <= HOST_CEILING


@given(answers=_answers, floor=st.timedeltas(HOST_DEFAULT, HOST_CEILING))
def test_no_sequence_of_answers_leads_a_host_that_the_registry_names_as_slower_below_its_floor(
    answers: list[tuple[Signal, timedelta | None]], floor: timedelta
) -> None:
    """It starts there: its row does (`lanes.lane.slower`)."""
    pace = HostPace(floor)
    for signal, latency in answers:
        pace = rules.after(pace, signal, latency, NOW, floor)
        assert floor <= pace.pace <= HOST_CEILING


@given(before=_before)
def test_a_healthy_answer_that_was_not_slow_never_widens(before: HostPace) -> None:
    assert after(before, Signal.HEALTHY, timedelta(seconds=0.25)).pace <= before.pace
    assert after(before, Signal.HEALTHY, None).pace <= before.pace


@given(before=_before, signal=st.sampled_from(sorted(set(Signal) - {Signal.HEALTHY})), latency=_latencies)
def test_only_a_healthy_answer_narrows(before: HostPace, signal: Signal, latency: timedelta | None) -> None:
    assert after(before, signal, latency).pace >= before.pace


@given(before=_before, latency=_latencies)
def test_an_answer_narrows_by_at_most_a_tenth_or_a_tenth_of_a_second(
    before: HostPace, latency: timedelta | None
) -> None:
    step = max(timedelta(seconds=0.1), before.pace * 0.1)
    assert after(before, Signal.HEALTHY, latency).pace >= before.pace - step - timedelta(microseconds=1)


@given(before=_before, signal=st.sampled_from(Signal), latency=_latencies, now=_instants, floor=_floors)
def test_no_answer_narrows_below_the_floor_of_the_host_nor_below_what_is_remembered_of_a_refusal(
    before: HostPace, signal: Signal, latency: timedelta | None, now: datetime, floor: timedelta
) -> None:
    least = max(floor, HOST_FLOOR, HOST_FLOOR if before.refused is None else remembered(before.refused, now))
    assert rules.after(before, signal, latency, now, floor).pace >= min(before.pace, least)


@example(
    before=HostPace(timedelta(seconds=236), refused=RefusedPace(timedelta(seconds=247, microseconds=1), NOW, 2)),
    in_force=timedelta(seconds=0.25),
    now=NOW + timedelta(days=76, hours=23),
)
@given(before=_before, in_force=_paces, now=_instants)
def test_a_refusal_never_lets_a_host_be_asked_sooner_than_before_it(
    before: HostPace, in_force: timedelta, now: datetime
) -> None:
    refused = refused_at(before, in_force, now)
    assert remembered(refused, now) >= min(in_force, HOST_CEILING)
    learnt = replace(before, refused=refused)
    for signal in Signal:
        then = rules.after(learnt, signal, None, now).pace + timedelta.resolution  # what is remembered is rounded
        assert then >= rules.after(before, signal, None, now).pace


@given(refused=st.builds(RefusedPace, _paces, _instants, st.integers(1, 4)), one=_instants, other=_instants)
def test_what_is_remembered_only_fades(refused: RefusedPace, one: datetime, other: datetime) -> None:
    assert remembered(refused, max(one, other)) <= remembered(refused, min(one, other)) <= HOST_CEILING


@given(pace=_paces, at=_instants, now=_instants)
def test_a_second_refusal_is_remembered_longer_than_a_first(pace: timedelta, at: datetime, now: datetime) -> None:
    assert remembered(RefusedPace(pace, at, 2), now) >= remembered(RefusedPace(pace, at, 1), now)


@given(gap=_gaps, rest=_rests, eligible=st.integers(0, 100_000))
def test_an_effective_gap_never_is_below_the_floor_nor_above_the_gap(
    gap: timedelta, rest: timedelta, eligible: int
) -> None:
    found = effective_gap(gap, rest, eligible)
    assert GAP_FLOOR <= found.gap <= max(gap, GAP_FLOOR)
    assert found.floored or found.gap * eligible <= max(rest, gap) + eligible * timedelta(microseconds=1)


@given(gap=_gaps, rest=_rests, eligible=st.integers(0, 100_000), more=st.integers(0, 100_000))
def test_more_series_never_make_a_gap_longer(gap: timedelta, rest: timedelta, eligible: int, more: int) -> None:
    assert effective_gap(gap, rest, eligible + more).gap <= effective_gap(gap, rest, eligible).gap


@given(one=_before, other=_before, signal=st.sampled_from(Signal))
def test_a_slower_host_is_never_faster_after_the_same_signal(one: HostPace, other: HostPace, signal: Signal) -> None:
    slow, fast = max(one.pace, other.pace), min(one.pace, other.pace)
    assert after(HostPace(slow), signal, None).pace >= after(HostPace(fast), signal, None).pace


@given(before=_before)
def test_too_fast_is_never_milder_than_trouble_and_at_least_ninety_seconds(before: HostPace) -> None:
    after_429 = after(before, Signal.TOO_FAST, None).pace
    assert after_429 >= max(timedelta(seconds=90), after(before, Signal.TROUBLED, None).pace)


@given(before=_before)
def test_healthy_answers_lead_back_to_the_default_and_stop_there(before: HostPace) -> None:
    pace = replace(before, refused=None)
    for _ in range(100):
        pace = after(pace, Signal.HEALTHY, None)
    assert pace.pace == min(before.pace, HOST_DEFAULT)
