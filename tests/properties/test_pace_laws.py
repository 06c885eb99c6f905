"""Laws of host pace that no sequence of answers may break (DESIGN 5.3)."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from lanes.core.pace import HOST_CEILING, HOST_DEFAULT, HostPace, Signal, after

_paces = st.timedeltas(timedelta(seconds=0.25), HOST_CEILING)
_latencies = st.none() | st.timedeltas(timedelta(0), timedelta(seconds=60))
_before = st.builds(HostPace, _paces, _latencies, st.integers(0, 5))
_answers = st.lists(st.tuples(st.sampled_from(Signal), _latencies), max_size=60)


@given(answers=_answers)
def test_no_sequence_of_answers_leaves_the_band(answers: list[tuple[Signal, timedelta | None]]) -> None:
    """Never under the default, which is every unnamed host's floor, never over the ceiling."""
    pace = HostPace()
    for signal, latency in answers:
        pace = after(pace, signal, latency)
        assert HOST_DEFAULT <= pace.pace <= HOST_CEILING


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
    pace = before
    for _ in range(100):
        pace = after(pace, Signal.HEALTHY, None)
    assert pace.pace == min(before.pace, HOST_DEFAULT)
