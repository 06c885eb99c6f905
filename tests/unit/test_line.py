"""Us: what the last attempts of one machine say about its line (DESIGN 4.4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from lanes.core.line import (
    ALONE_AT_MOST,
    ANSWERED_LATELY,
    ASK_AT_MOST_EVERY,
    ATTEMPTS,
    HOSTS,
    LEAP,
    LOOK_BACK,
    PROBE_EVERY,
    Ask,
    Attempt,
    Excused,
    Line,
    Proved,
    Us,
    judge,
    leapt,
    probed,
)
from tests.answers import STAMP

MINUTE = timedelta(minutes=1)
NOW = STAMP + 5 * MINUTE


def unproved(*hosts: str) -> tuple[Attempt, ...]:
    """Attempts a second apart, said oldest first and the last of them a second ago; each of a Series of its own."""
    attempts = [
        Attempt(NOW - timedelta(seconds=len(hosts) - n), n + 1, host, "dns: EAI_AGAIN") for n, host in enumerate(hosts)
    ]
    return tuple(reversed(attempts))


THREE = unproved("a", "b", "a")
ALONE = unproved("a", "a", "a")


def test_three_attempts_of_two_hosts_one_question_in_ten_minutes_one_probe_a_minute_a_day_alone() -> None:
    assert (ATTEMPTS, HOSTS) == (3, 2)
    assert timedelta(minutes=10) == ASK_AT_MOST_EVERY
    assert timedelta(minutes=1) == PROBE_EVERY
    assert ANSWERED_LATELY == LOOK_BACK == ALONE_AT_MOST == timedelta(hours=24)


@pytest.mark.parametrize("hosts", ["", "a", "ab", "aa", "aaa", "aaaaaaaa"])
def test_two_attempts_or_one_host_among_several_say_nothing(hosts: str) -> None:
    assert judge(Line(unproved(*hosts)), NOW) is None


@pytest.mark.parametrize("hosts", ["aab", "abc", "abbbb"])
def test_three_attempts_of_two_hosts_ask_another(hosts: str) -> None:
    attempts = unproved(*hosts)
    assert judge(Line(attempts), NOW) == Ask(otherwise=Us(attempts))


def test_the_only_host_followed_needs_three_attempts_too() -> None:
    assert judge(Line(ALONE, only_host=True), NOW) == Ask(otherwise=Us(ALONE))
    assert judge(Line(ALONE[:2], only_host=True), NOW) is None


def test_it_began_with_the_first_of_its_attempts_and_names_each_host_once_in_order() -> None:
    us = Us(unproved("b", "a", "b", "c"))
    assert us.since == NOW - timedelta(seconds=4)
    assert us.hosts == ("b", "a", "c")


def asked(ago: timedelta, *further: Attempt, **facts: object) -> Line:
    """Series 9 was asked so long ago; `further` attempts ended without proof, newest first."""
    earlier = tuple(replace(each, claimed_at=each.claimed_at - ago) for each in THREE)
    return replace(Line((*further, *earlier), asked_at=NOW - ago, asked_series=9), **facts)  # type: ignore[arg-type]


def later(series_id: int) -> Attempt:
    return Attempt(NOW - timedelta(seconds=1), series_id, "z")


def test_a_question_that_is_not_answered_yet_is_waited_for() -> None:
    assert judge(asked(MINUTE), NOW) is None
    assert judge(asked(MINUTE, later(1)), NOW) is None


def test_without_proof_again_it_is_us() -> None:
    line = asked(MINUTE, later(9))
    assert judge(line, NOW) == Us(line.unproved)


def test_what_was_asked_before_the_question_is_no_answer_to_it() -> None:
    line = asked(timedelta(0))
    assert judge(replace(line, asked_series=1), NOW) is None


def test_a_doubt_as_old_as_the_question_is_one_of_those_it_was_asked_for_and_no_answer_to_it() -> None:
    oldest = Attempt(NOW - MINUTE, 9, "b")
    in_hand = (later(2), later(1), oldest)
    assert judge(Line(in_hand, asked_at=NOW - MINUTE, asked_series=9), NOW) is None
    answered = (later(9), later(1), oldest)
    assert judge(Line(answered, asked_at=NOW - MINUTE, asked_series=9), NOW) == Us(answered)


def test_where_another_machine_took_the_question_whoever_comes_next_answers_it() -> None:
    assert judge(asked(MINUTE, later(1), asked_elsewhere=True), NOW) == Us(asked(MINUTE, later(1)).unproved)
    assert judge(asked(MINUTE, asked_elsewhere=True), NOW) is None


def test_a_question_is_asked_once_in_ten_minutes() -> None:
    assert judge(asked(ASK_AT_MOST_EVERY - timedelta(seconds=1)), NOW) is None
    assert isinstance(judge(asked(ASK_AT_MOST_EVERY), NOW), Ask)


def test_a_question_that_a_proof_has_answered_since_is_none_of_these_doubts() -> None:
    before = Line(THREE, proved_at=NOW - MINUTE, asked_at=NOW - 2 * MINUTE, asked_series=1)
    assert judge(before, NOW) is None
    assert isinstance(judge(replace(before, asked_at=NOW - ASK_AT_MOST_EVERY), NOW), Ask)


def test_after_the_clock_jumped_two_silent_hosts_are_enough_and_nobody_is_asked() -> None:
    """CASES A2."""
    two = unproved("a", "b")
    shaken = Line(two, shaken_at=NOW - MINUTE)
    assert judge(shaken, NOW) == Us(two)
    assert judge(replace(shaken, proved_at=NOW - 2 * MINUTE), NOW) == Us(two)
    assert judge(replace(shaken, unproved=unproved("a", "a")), NOW) is None


def test_a_proof_since_the_clock_jumped_settles_that() -> None:
    two = unproved("a", "b")
    assert judge(Line(two, shaken_at=NOW - MINUTE, proved_at=NOW - MINUTE), NOW) is None


def test_the_only_host_may_be_silent_once_after_the_clock_jumped() -> None:
    """CASES A5."""
    assert judge(Line(unproved("a"), only_host=True, shaken_at=NOW), NOW) is None


def test_while_it_is_us_what_was_in_hand_is_given_back_too_and_nothing_twice() -> None:
    down = Line(THREE, us_since=THREE[-1].claimed_at)
    assert judge(down, NOW) == Us(THREE)
    known = tuple(replace(each, charged=False) for each in THREE)
    assert judge(replace(down, unproved=known), NOW) is None
    assert judge(replace(down, unproved=(later(7), *known)), NOW) == Us((later(7), *known))


@pytest.mark.parametrize(("seconds", "over"), [(-1, False), (0, True), (1, True)])
def test_a_proof_that_was_in_hand_when_it_began_ends_it(seconds: int, over: bool) -> None:
    since = NOW - MINUTE
    line = Line((later(1),), proved_at=since + timedelta(seconds=seconds), us_since=since)
    assert isinstance(judge(line, NOW), Proved if over else Us)


def test_a_probe_that_proves_the_line_ends_it() -> None:
    assert probed(NOW - MINUTE, NOW, proved=True, only_host=False) == Proved()
    assert probed(None, NOW, proved=True, only_host=False) is None


def test_with_several_hosts_only_a_proof_ends_it() -> None:
    """CASES A14."""
    assert probed(NOW - 4 * ALONE_AT_MOST, NOW, proved=False, only_host=False) is None


def test_with_only_one_host_followed_it_lasts_a_day() -> None:
    """CASES A10."""
    almost = NOW - ALONE_AT_MOST + timedelta(seconds=1)
    assert probed(almost, NOW, proved=False, only_host=True) is None
    assert probed(NOW - ALONE_AT_MOST, NOW, proved=False, only_host=True) == Excused()
    assert probed(None, NOW, proved=False, only_host=True) is None


def test_once_excused_the_only_host_is_blamed_until_a_proof_comes() -> None:
    excused = Line(ALONE, only_host=True, excused_at=NOW - MINUTE)
    assert judge(excused, NOW) is None
    assert judge(replace(excused, proved_at=NOW - 2 * MINUTE), NOW) is None
    assert isinstance(judge(replace(excused, proved_at=NOW - MINUTE), NOW), Ask)


def test_an_excuse_ends_when_a_second_host_is_followed() -> None:
    assert isinstance(judge(Line(THREE, excused_at=NOW - MINUTE), NOW), Ask)


def test_a_clock_leaps_when_it_gains_more_than_a_minute_between_two_claims() -> None:
    minute = LEAP.total_seconds()
    assert minute == 60
    assert not leapt(None, 1e9)
    assert not leapt(1e9, 1e9 + minute)
    assert leapt(1e9, 1e9 + minute + 0.001)
    assert not leapt(1e9, 1e9 - 8 * 3600)
