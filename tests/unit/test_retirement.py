"""When a Series is given up, and what trouble of some age owes (DESIGN 4.4, 5.4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lanes.core import retirement, schedule
from lanes.core.retirement import Owed

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY, HOUR, SECOND = timedelta(days=1), timedelta(hours=1), timedelta(seconds=1)


@pytest.mark.parametrize(
    ("failures", "since", "given_up"),
    [
        (20, NOW - 3 * DAY, True),
        (21, NOW - 30 * DAY, True),
        (19, NOW - 300 * DAY, False),
        (20, NOW - 3 * DAY + SECOND, False),
        (1000, NOW, False),
        (0, None, False),
    ],
)
def test_it_takes_twenty_failures_over_three_days(failures: int, since: datetime | None, given_up: bool) -> None:
    assert retirement.retires(failures, since, NOW) is given_up


@pytest.mark.parametrize("rest", [timedelta(minutes=1), HOUR])
def test_a_series_that_never_answers_again_is_given_up_within_thirty_days(rest: timedelta) -> None:
    """CASES A10."""
    now, failures, since = NOW, 0, NOW
    while not retirement.retires(failures, since, now):
        failures += 1
        now += schedule.after_failure(rest, failures) * 1.1
    assert timedelta(days=3) <= now - NOW < timedelta(days=30)


@pytest.mark.parametrize(
    ("first", "gone"),
    [(None, False), (NOW, False), (NOW - DAY + SECOND, False), (NOW - DAY, True), (NOW - 9 * DAY, True)],
)
def test_gone_means_gone_the_second_time_a_day_later(first: datetime | None, gone: bool) -> None:
    """CASES A6."""
    assert retirement.gone_twice(first, NOW) is gone


@pytest.mark.parametrize(
    ("age", "owed"),
    [
        (timedelta(0), Owed.NOTHING),
        (-DAY, Owed.NOTHING),
        (3 * DAY - SECOND, Owed.NOTHING),
        (3 * DAY, Owed.WORD),
        (30 * DAY - SECOND, Owed.WORD),
        (30 * DAY, Owed.RETIREMENT),
    ],
)
def test_trouble_owes_word_after_three_days_and_an_end_after_thirty(age: timedelta, owed: Owed) -> None:
    assert retirement.owed(age) is owed


def test_the_owner_hears_of_a_refusal_after_an_hour() -> None:
    assert not retirement.owner_is_told(HOUR - SECOND)
    assert retirement.owner_is_told(HOUR)


def test_a_machine_whose_line_is_down_is_given_up_when_it_has_not_asked_for_a_day() -> None:
    assert timedelta(hours=24) == retirement.MACHINE_LOST_AFTER


def test_the_reason_says_how_often_it_failed_and_how_last() -> None:
    assert retirement.failed_for_good(20, "404 Not Found") == "failed 20 times in a row, last: 404 Not Found"
    assert retirement.failed_for_good(21, None) == "failed 21 times in a row"
