"""Whose fault a failure is: the proof of a line, and what a host's last answers say about its Site (DESIGN 4.4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lanes.core.answer import Answer, Forbidden, NoResponse, Postponed, Sent, Trouble
from lanes.core.blame import SPARED_REST, Answered, SiteFails, SiteHeals, answers_after, proof, site
from tests.answers import STAMP, URL, a_response

NOON = datetime(2031, 5, 4, 12, tzinfo=UTC)
ASKED = Sent(URL, "host.test", "192.0.2.1", NOON)
ANSWERED = Sent(URL, "host.test", "192.0.2.1", NOON, status=302)


def at(minutes: int) -> datetime:
    return NOON + timedelta(minutes=minutes)


def heard(*said: tuple[int, str | None], before: tuple[Answered, ...] = ()) -> tuple[Answered, ...]:
    """The last answers once these Series answered, a minute apart: a kind of failure, or None where it was good."""
    answers = before
    for minute, (series_id, kind) in enumerate(said):
        answers = answers_after(answers, series_id, kind, at(minute))
    return answers


def host(failing: int, good: int, kind: str = "404") -> tuple[Answered, ...]:
    """A host of which so many Series failed last, and so many did not."""
    return heard(*((n, kind) for n in range(failing)), *((100 + n, None) for n in range(good)))


def said(answers: tuple[Answered, ...]) -> dict[int, str | None]:
    return {each.series_id: each.kind for each in answers}


# Ours


@pytest.mark.parametrize("status", [200, 304, 403, 404, 429, 503])
def test_any_answer_proves_our_line(status: int) -> None:
    assert proof(a_response(status)) is True


@pytest.mark.parametrize(
    ("answer", "proved"),
    [
        (NoResponse(Trouble.CONNECT, "refused", line_proved=True), True),
        (NoResponse(Trouble.DNS, "NXDOMAIN", line_proved=True), True),
        (NoResponse(Trouble.DNS, "EAI_AGAIN"), False),
        (NoResponse(Trouble.CONNECT, "unreachable", (ASKED,)), False),
        (NoResponse(Trouble.TIMEOUT, "silent", (ANSWERED, ASKED)), True),
        (Forbidden(URL, "10.0.0.1"), None),
        (Forbidden(URL, "10.0.0.1", (ANSWERED,)), True),
        (Postponed("its host waits", timedelta(seconds=7)), None),
        (Postponed("its host waits", timedelta(seconds=7), (ASKED,)), None),
        (Postponed("its host waits", timedelta(seconds=7), (ANSWERED,)), True),
    ],
    ids=[
        "refused",
        "no such name",
        "resolver silent",
        "unreachable",
        "silent after a redirect",
        "guard",
        "guard after a redirect",
        "not tried",
        "asked and put back",
        "put back after a redirect",
    ],
)
def test_what_proves_our_line_what_does_not_and_what_was_no_attempt(answer: Answer, *, proved: bool | None) -> None:
    """CASES A1, A2: a name that does not resolve for now, or no route, proves nothing."""
    assert proof(answer) is proved


# The last answers


def test_a_series_is_remembered_by_its_last_answer_alone() -> None:
    assert said(heard((1, None), (2, "404"), (1, "timeout"))) == {1: "timeout", 2: "404"}


def test_a_failure_is_as_old_as_the_first_of_its_kind_in_a_row() -> None:
    answers = heard((1, "404"), (1, "404"), (2, None), (1, "404"))
    assert answers_after(answers, 1, "404", at(9)) == answers
    assert [each.since for each in answers if each.series_id == 1] == [at(0)]


@pytest.mark.parametrize("between", [None, "timeout"])
def test_a_failure_of_another_kind_or_a_good_answer_ends_the_row(between: str | None) -> None:
    answers = heard((1, "404"), (1, between), (1, "404"))
    assert answers == (Answered(1, "404", at(2)),)


def test_a_good_answer_has_no_beginning() -> None:
    assert heard((1, "404"), (1, None)) == (Answered(1),)


def test_of_eleven_series_the_one_that_answered_longest_ago_is_forgotten() -> None:
    answers = heard((0, None), (1, "404"), *((n, None) for n in range(2, 11)))
    assert [each.series_id for each in answers] == list(range(1, 11))


def test_whoever_answers_again_among_ten_is_the_newest() -> None:
    """Else the Series that is polled most would be forgotten first."""
    ten = heard(*((n, "404") for n in range(10)))
    again = answers_after(ten, 0, "404", at(60))
    assert [each.series_id for each in again] == [*range(1, 10), 0]
    assert again[-1] == Answered(0, "404", at(0))
    assert 0 in said(answers_after(again, 11, None, at(61)))


def test_nothing_is_written_where_nothing_changes() -> None:
    """A host's row is not written anew by every Poll of a healthy Site."""
    nine = heard(*((n, None) for n in range(9)))
    assert answers_after(nine, 4, None, at(60)) is nine
    ten = heard(*((n, None) for n in range(10)))
    assert answers_after(ten, 9, None, at(60)) is ten


# The Site's


@pytest.mark.parametrize(
    ("failing", "good", "fails"),
    [
        *[(1, 0, False), (2, 0, False), (2, 1, True), (3, 0, True), (1, 2, False), (2, 2, False), (3, 2, True)],
        *[(4, 5, False), (5, 4, True), (5, 5, False), (6, 4, True), (10, 0, True)],
    ],
)
def test_more_than_half_of_at_least_three_must_fail_alike(failing: int, good: int, *, fails: bool) -> None:
    assert isinstance(site(host(failing, good), None), SiteFails) is fails


def test_a_single_feed_is_never_hidden_behind_its_site() -> None:
    """CASES A10: a host with a single feed, or with two."""
    for series in (1, 2):
        assert site(host(series, 0, "dns"), None) is None


def test_failing_each_in_its_own_way_is_no_failure_of_the_site() -> None:
    mixed = heard((1, "404"), (2, "timeout"), (3, "not recognised"), (4, "404"))
    assert site(mixed, None) is None


def test_it_says_in_which_way_and_whom_it_spares_since_when() -> None:
    answers = heard((1, "404"), (2, None), (3, "404"), (4, "timeout"), (5, "404"), (1, "404"))
    assert site(answers, None) == SiteFails("404", ((1, at(0)), (3, at(2)), (5, at(4))))


def test_the_kind_in_the_majority_is_blamed_whichever_came_first() -> None:
    turns = site(heard((1, "timeout"), (2, "404"), (3, "404")), None)
    assert isinstance(turns, SiteFails)
    assert turns.kind == "404"


@pytest.mark.parametrize(
    ("failing", "good", "heals"),
    [
        (6, 4, False),
        (5, 5, True),
        (4, 6, True),
        (0, 10, True),
        (2, 1, False),
        (1, 1, True),
        (1, 0, False),
        (0, 0, True),
    ],
)
def test_an_incident_ends_once_half_or_fewer_fail_in_its_kind(failing: int, good: int, *, heals: bool) -> None:
    assert isinstance(site(host(failing, good), "404"), SiteHeals) is heals
    assert site(host(failing, good), "404") is None or heals


def test_an_incident_ends_also_where_its_kind_gave_way_to_another() -> None:
    """One thing at a time: the new trouble is seen by the next answer."""
    answers = host(8, 2, "timeout")
    assert site(answers, "404") == SiteHeals()
    assert isinstance(site(answers, None), SiteFails)


def test_an_open_incident_does_not_begin_again() -> None:
    assert site(host(10, 0), "404") is None


def test_two_of_three_feeds_are_dead_and_the_incident_ends_once_they_are_given_up() -> None:
    """CASES A16"""
    answers = heard((1, "404"), (2, "404"), (3, None))
    assert site(answers, None) == SiteFails("404", ((1, at(0)), (2, at(1))))
    assert site(tuple(each for each in answers if each.series_id == 3), "404") == SiteHeals()


def test_what_is_spared_rests_an_hour() -> None:
    assert timedelta(hours=1) == SPARED_REST


def test_ten_good_answers_and_one_more_are_still_ten_good_answers() -> None:
    """A busy host costs no write for each of its Polls."""
    ten = tuple(Answered(number) for number in range(10))
    assert answers_after(ten, 11, None, STAMP) is ten
    one_fails = (*ten[:9], Answered(9, "404", STAMP))
    assert answers_after(one_fails, 11, None, STAMP) == (*one_fails[1:], Answered(11))
