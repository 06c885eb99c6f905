"""Laws of the schedule: never under the floor, hints and failures only slow, jitter in its band and only later (DESIGN 5.2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lanes.core import schedule
from lanes.core.chapters import NO_HINTS, Hints

FLOOR, CEILING = timedelta(seconds=60), timedelta(hours=1)
_rests = st.timedeltas(FLOOR, CEILING)
_stamps = st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - made aware by timezones
_chances = st.floats(0, 1)
_ids = st.integers(1, 2**40)
_hints = st.builds(
    Hints,
    st.none() | st.timedeltas(timedelta(seconds=1), timedelta(hours=24)),
    st.frozensets(st.integers(0, 23)),
    st.frozensets(st.integers(0, 6)),
)


@given(start=st.timedeltas(timedelta(0), timedelta(days=9)), found=st.lists(st.booleans(), min_size=1))
def test_no_history_leads_out_of_the_band(start: timedelta, found: list[bool]) -> None:
    rest = start
    for new in found:
        rest = schedule.shortened(rest) if new else schedule.lengthened(rest)
        assert FLOOR <= rest <= CEILING


@given(stamp=_stamps, rest=_rests, series_id=_ids, chance=_chances)
def test_jitter_is_only_later_and_at_most_ten_percent(
    stamp: datetime, rest: timedelta, series_id: int, chance: float
) -> None:
    checked = schedule.next_check(stamp, rest, NO_HINTS, series_id=series_id, chance=chance)
    assert stamp + rest <= checked <= stamp + rest * 1.1 + timedelta(microseconds=1)


@given(series_id=_ids)
def test_a_phase_is_a_share_and_never_changes(series_id: int) -> None:
    assert 0 <= schedule.phase(series_id) == schedule.phase(series_id) < 1


@given(stamp=_stamps, rest=_rests, hints=_hints, series_id=_ids, chance=_chances)
def test_hints_only_slow(stamp: datetime, rest: timedelta, hints: Hints, series_id: int, chance: float) -> None:
    plain = schedule.next_check(stamp, rest, NO_HINTS, series_id=series_id, chance=chance)
    hinted = schedule.next_check(stamp, rest, hints, series_id=series_id, chance=chance)
    assert hinted >= plain
    assert hints.every is None or hinted >= stamp + hints.every


@given(stamp=_stamps, rest=_rests, hints=_hints, series_id=_ids, chance=_chances)
def test_a_hint_silences_nobody_for_much_more_than_a_week(
    stamp: datetime, rest: timedelta, hints: Hints, series_id: int, chance: float
) -> None:
    hinted = schedule.next_check(stamp, rest, hints, series_id=series_id, chance=chance)
    assert hinted <= stamp + timedelta(days=7) + timedelta(hours=24) * 1.1 + timedelta(hours=1)


@given(stamp=_stamps, rest=_rests, hints=_hints, series_id=_ids, chance=_chances)
def test_a_skipped_hour_or_day_is_never_chosen_while_another_is_free(
    stamp: datetime, rest: timedelta, hints: Hints, series_id: int, chance: float
) -> None:
    hinted = schedule.next_check(stamp, rest, hints, series_id=series_id, chance=chance)
    if len(hints.skip_hours) < 24 and len(hints.skip_days) < 7:
        assert hinted.hour not in hints.skip_hours
        assert hinted.weekday() not in hints.skip_days


@given(rest=_rests, failures=st.integers(1, 500))
def test_each_failure_in_a_row_rests_at_least_as_long_as_the_one_before(rest: timedelta, failures: int) -> None:
    assert (
        rest
        <= schedule.after_failure(rest, failures)
        <= schedule.after_failure(rest, failures + 1)
        <= timedelta(hours=6)
    )


@given(refusals=st.integers(1, 500))
def test_each_refusal_in_a_row_waits_at_least_as_long_as_the_one_before(refusals: int) -> None:
    assert (
        timedelta(minutes=15)
        <= schedule.after_refusal(refusals)
        <= schedule.after_refusal(refusals + 1)
        <= timedelta(hours=4)
    )
