"""The evidence for a move: three Polls over a day that lead to one target, which shares what was known (DESIGN 4.3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lanes.core.claim import Moving
from lanes.core.moving import after, is_proved

NOON = datetime(2031, 5, 4, 12, tzinfo=UTC)
DAY = timedelta(hours=24)
THERE, ELSEWHERE = "https://there.test/feed", "https://elsewhere.test/feed"


def led(*hours: float, to: str = THERE, shares: bool = True, before: Moving | None = None) -> Moving:
    """What is known once good Polls were led to the target at these hours."""
    moving = before
    for hour in hours:
        moving = after(moving, to, NOON + timedelta(hours=hour), shares=shares)
    assert moving is not None
    return moving


def test_the_first_poll_that_is_led_away_begins_the_evidence() -> None:
    assert led(0) == Moving(THERE, NOON, 1)


def test_each_further_poll_counts_and_the_beginning_stays() -> None:
    assert led(0, 1) == Moving(THERE, NOON, 2)
    assert led(0, 1, 30) == Moving(THERE, NOON, 3)


def test_another_target_begins_anew() -> None:
    assert led(9, to=ELSEWHERE, before=led(0, 1)) == Moving(ELSEWHERE, NOON + timedelta(hours=9), 1)


def test_going_to_and_fro_proves_nothing() -> None:
    """Three Polls must agree, not three of many."""
    moving: Moving | None = None
    for hour in range(0, 96, 4):
        moving = after(moving, (THERE, ELSEWHERE)[hour // 4 % 2], NOON + timedelta(hours=hour), shares=True)
        assert not is_proved(moving, NOON + timedelta(hours=hour))


def test_a_target_that_shared_nothing_at_first_is_never_proved_by_what_came_from_itself() -> None:
    """CASES E1: what it served once is known from then on, and would look shared for ever."""
    stranger = led(0, shares=False)
    assert stranger == Moving(THERE, NOON, 0)
    later = led(*range(1, 200, 8), before=stranger)
    assert later == stranger
    assert not is_proved(later, NOON + timedelta(days=30))


def test_a_stranger_that_is_left_for_another_target_and_comes_back_is_asked_anew() -> None:
    back = led(2, before=led(1, to=ELSEWHERE, before=led(0, shares=False)))
    assert back == Moving(THERE, NOON + timedelta(hours=2), 1)


@pytest.mark.parametrize(
    ("polls", "lasted", "proved"),
    [
        (3, DAY, True),
        (4, DAY, True),
        (2, DAY, False),
        (2, timedelta(days=300), False),
        (0, timedelta(days=300), False),
        (3, DAY - timedelta(microseconds=1), False),
        (1_000, timedelta(hours=23), False),
        (3, DAY + timedelta(microseconds=1), True),
    ],
)
def test_three_polls_over_a_whole_day_prove_it_and_nothing_less(polls: int, lasted: timedelta, *, proved: bool) -> None:
    """CASES E2"""
    assert is_proved(Moving(THERE, NOON, polls), NOON + lasted) is proved
