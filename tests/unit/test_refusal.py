"""Refusal windows: when they open, double and end, by the instants at which requests were sent (DESIGN 5.4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from lanes.core.refusal import Read, Window, after, length

NOON = datetime(2031, 5, 4, 12, tzinfo=UTC)
SECOND, MOMENT = timedelta(seconds=1), timedelta(microseconds=1)
QUARTER = timedelta(minutes=15)
A, B = b"one URL", b"another URL"


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def refused(url: bytes, minutes: float) -> Read:
    return Read(True, url, at(minutes))


def good(minutes: float) -> Read:
    return Read(False, A, at(minutes))


def heard(*reads: Read, before: Window | None = None, only_one: bool = False) -> Window:
    """The window once these reads have settled in this order, each a second after all that was sent by then."""
    window, now = before or Window(), NOON
    for read in reads:
        now = max(now, read.sent_at + SECOND)
        window = after(window, read, now, only_one=only_one)
    return window


def opened(at_minute: float = 0, refusals: int = 1, good_sent_at: datetime | None = None) -> Window:
    """A window that opened at this minute, the last of so many in a row."""
    return Window(refusals, at(-600), at(at_minute) + length(refusals), good_sent_at=good_sent_at)


# What opens it


def test_one_refused_read_stops_nobody() -> None:
    assert heard(refused(A, 1)) == Window(url=A, refused_at=at(1))


def test_two_refused_urls_stop_everybody_for_a_quarter_of_an_hour() -> None:
    now = at(2) + SECOND
    assert heard(refused(A, 1), refused(B, 2)) == Window(1, now, now + QUARTER)


def test_the_same_url_refused_again_and_again_stops_nobody_else() -> None:
    assert heard(refused(A, 1), refused(A, 20), refused(A, 60)).until is None


def test_the_same_url_refused_twice_counts_where_there_is_no_other() -> None:
    assert heard(refused(A, 1), refused(A, 20), only_one=True).until == at(20) + SECOND + QUARTER


def test_one_read_heard_twice_is_one_read_also_where_there_is_no_other_url() -> None:
    """A settle that is repeated because its first answer was lost brings the same read again."""
    assert heard(refused(A, 1), refused(A, 1), only_one=True) == heard(refused(A, 1))


def test_a_different_url_counts_although_there_should_be_no_other() -> None:
    assert heard(refused(A, 1), refused(B, 2), only_one=True).until is not None


@pytest.mark.parametrize("order", [order for order in permutations("AGB") if order[-1] != "G"], ids="".join)
def test_a_good_read_sent_between_two_refused_ones_keeps_it_shut_in_whatever_order_they_settle(
    order: tuple[str, ...],
) -> None:
    reads = {"A": refused(A, 1), "G": good(2), "B": refused(B, 3)}
    assert heard(*(reads[name] for name in order)).until is None


@pytest.mark.parametrize("order", list(permutations("AGB")), ids="".join)
def test_a_good_read_sent_before_both_does_not_speak_for_later(order: tuple[str, ...]) -> None:
    reads = {"A": refused(A, 2), "G": good(1), "B": refused(B, 3)}
    assert heard(*(reads[name] for name in order)).until == at(3) + SECOND + QUARTER


@pytest.mark.parametrize("order", list(permutations("AGB")), ids="".join)
def test_a_good_read_sent_at_the_very_instant_of_the_first_is_not_between(order: tuple[str, ...]) -> None:
    reads = {"A": refused(A, 1), "G": good(1), "B": refused(B, 3)}
    assert heard(*(reads[name] for name in order)).until is not None


def test_a_refused_read_that_settles_after_a_good_one_sent_later_is_forgotten() -> None:
    window = heard(good(5), refused(A, 1), refused(B, 2))
    assert window == Window(good_sent_at=at(5))


def test_after_a_good_read_two_more_refused_ones_are_needed() -> None:
    window = heard(refused(A, 1), good(2), refused(B, 3))
    assert (window.until, window.url, window.refused_at) == (None, B, at(3))
    assert heard(refused(A, 4), before=window).until is not None


def test_a_good_read_does_not_answer_a_refused_one_that_was_sent_after_it() -> None:
    assert heard(refused(A, 3), good(2), refused(B, 4)).until is not None


def test_of_one_url_the_read_that_was_sent_last_stands_however_late_an_earlier_one_settles() -> None:
    assert heard(refused(A, 3), refused(A, 1), good(2), refused(B, 4)).until is not None


def test_a_good_read_that_was_noted_but_not_heeded_answers_the_refused_ones_before_it() -> None:
    """Every good Poll notes when it was sent, also one that knew of no refusal when it was claimed."""
    noted = Window(url=A, refused_at=at(1), good_sent_at=at(2))
    window = heard(refused(B, 3), before=noted)
    assert (window.until, window.url, window.refused_at) == (None, B, at(3))


# What doubles it


def test_a_late_refusal_changes_nothing() -> None:
    window = opened()
    for minutes in (-1, 0, 7, 14.9):
        assert heard(refused(B, minutes), refused(A, minutes), before=window) == window


def test_a_request_sent_before_the_window_ended_is_no_probe_however_late_it_settles() -> None:
    window = opened()
    late = Read(True, B, at(15) - MOMENT)
    assert after(window, late, at(60), only_one=False) == window
    assert after(window, late, at(60), only_one=True) == window


def test_a_request_sent_as_the_window_ends_is_a_probe() -> None:
    probed = after(opened(), refused(A, 15), at(15) + SECOND, only_one=False)
    assert probed.until == at(15) + SECOND + timedelta(minutes=30)


def test_a_refused_probe_doubles_at_once_and_the_trouble_is_as_old_as_it_was() -> None:
    window = opened()
    probed = heard(refused(A, 16), before=window)
    assert probed == Window(2, window.since, at(16) + SECOND + timedelta(minutes=30))


def test_probe_after_probe_it_doubles_up_to_four_hours() -> None:
    window, now, lengths = heard(refused(A, 0), refused(B, 1)), at(1), []
    for _ in range(7):
        assert window.until is not None
        assert window.opened_at is not None
        lengths.append((window.until - window.opened_at) / timedelta(minutes=1))
        now = window.until + SECOND
        window = after(window, Read(True, A, now), now, only_one=False)
    assert lengths == [15, 30, 60, 120, 240, 240, 240]


@pytest.mark.parametrize(
    ("refusals", "minutes"), [(0, 15), (1, 15), (2, 30), (3, 60), (4, 120), (5, 240), (6, 240), (10**9, 240)]
)
def test_every_window_has_its_length(refusals: int, minutes: int) -> None:
    assert length(refusals) == timedelta(minutes=minutes)


def test_the_second_of_two_probes_at_once_doubles_nothing_more() -> None:
    once = heard(refused(A, 16), before=opened())
    assert after(once, refused(B, 16.5), at(17), only_one=False) == once


# What ends it


def test_a_good_probe_forgets_everything() -> None:
    window = heard(good(16), before=opened(refusals=3))
    assert window == Window(good_sent_at=at(16))
    again = heard(refused(A, 17), refused(B, 18), before=window)
    assert (again.refusals, again.since) == (1, at(18) + SECOND)


def test_a_good_read_sent_before_it_opened_does_not_end_it() -> None:
    window = opened(5)
    for minutes in (3, 5):
        late = after(window, good(minutes), at(6), only_one=False)
        assert late == opened(5, good_sent_at=at(minutes))


def test_a_good_read_sent_right_after_it_opened_ends_it_at_once() -> None:
    assert after(opened(5), Read(False, A, at(5) + MOMENT), at(6), only_one=False).until is None


def test_a_good_read_sent_before_the_last_probe_was_refused_does_not_end_the_doubled_window() -> None:
    doubled = heard(refused(A, 20), before=opened())
    assert after(doubled, good(19), at(21), only_one=False).until == doubled.until


def test_a_refused_probe_that_was_sent_before_a_good_one_doubles_nothing() -> None:
    assert heard(good(17), refused(A, 16), before=opened()) == Window(good_sent_at=at(17))


def test_a_good_probe_that_was_noted_but_not_heeded_has_ended_the_window() -> None:
    """A window that a good read has outlived is no first half of a longer one."""
    window = heard(refused(A, 21), before=opened(good_sent_at=at(20)))
    assert window == Window(url=A, refused_at=at(21), good_sent_at=at(20))


def test_the_latest_good_read_is_remembered_however_late_an_earlier_one_settles() -> None:
    assert heard(good(5), good(2)).good_sent_at == at(5)


def test_nothing_opened_where_there_is_no_window() -> None:
    assert Window().opened_at is None
    assert opened(5, refusals=2).opened_at == at(5)
