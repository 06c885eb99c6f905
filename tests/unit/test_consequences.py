"""What else follows from a Poll for its Series: moves, revival, distrust (DESIGN 4.3, 4.4, 6)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lanes.core.answer import Answer, NoResponse, Response, Trouble
from lanes.core.blame import Answered
from lanes.core.chapters import NotRecognised
from lanes.core.circumstances import Known
from lanes.core.claim import Memory, Moving, Validators
from lanes.core.consequences import (
    Adopt,
    Consequence,
    Distrust,
    Gather,
    Remember,
    Retire,
    Revive,
)
from lanes.core.outcome import Label, body_hash
from tests.answers import (
    ANSWERED,
    NOT_MODIFIED,
    STAMP,
    URL,
    a_claim,
    a_document,
    a_quiet_claim,
    a_response,
    an_item,
    followed,
    known,
    only,
    remembering,
    settled,
)

THERE, ELSEWHERE = "https://there.test/feed", "https://elsewhere.test/feed"
DAY = timedelta(hours=24)
ONE, TWO = an_item("1", -2), an_item("2", -1)


def led(to: str = THERE, answer: Response | None = None) -> Response:
    """A good answer, or another, at the end of a chain of permanent redirects."""
    return replace(answer or a_response(200), url=to, permanent=True)


# Nothing, mostly


@pytest.mark.parametrize(
    "answer", [NOT_MODIFIED, a_response(200), a_response(503, retry_after="60")], ids=["304", "nothing new", "a wait"]
)
def test_an_ordinary_poll_has_no_consequence(answer: Answer) -> None:
    """Each costs its Poll another statement: nearly none has any."""
    assert followed(answer) == ()


def test_a_first_answer_is_remembered_of_its_host() -> None:
    assert followed(NOT_MODIFIED, a_claim()) == (Remember((Answered(1),)),)


# Moves


def test_a_permanent_redirect_that_shares_what_is_known_begins_to_be_evidence() -> None:
    """CASES E2"""
    assert followed(led()) == (Gather(Moving(THERE, ANSWERED, 1)),)


def test_a_series_is_led_away_for_a_day_and_moves_at_the_third_poll() -> None:
    """CASES E2: not before three Polls, nor before a day is over."""
    moving = None
    for hours in (0, 8, 16, 23.9):
        gathered = only(Gather, followed(led(), remembering(moving=moving), now=STAMP + timedelta(hours=hours)))
        moving = gathered.moving
    assert moving == Moving(THERE, STAMP, 4)
    assert followed(led(), remembering(moving=moving), now=STAMP + DAY) == (Adopt(THERE),)


def test_two_polls_a_day_apart_are_not_three() -> None:
    one = Moving(THERE, ANSWERED - DAY, 1)
    assert followed(led(), remembering(moving=one)) == (Gather(replace(one, polls=2)),)
    assert followed(led(), remembering(moving=replace(one, polls=2))) == (Adopt(THERE),)


def test_a_304_or_the_same_bytes_from_there_are_evidence_too() -> None:
    """CASES C6: what is unchanged is known."""
    same = remembering()
    for answer in (NOT_MODIFIED, a_response(200, b"what was read last time")):
        assert followed(led(answer=answer), same) == (Gather(Moving(THERE, ANSWERED, 1)),)


def test_a_target_that_shares_nothing_is_never_adopted() -> None:
    """CASES E1: a parked domain may serve a real feed; from its second Poll on what it serves is known."""
    stranger = Moving(THERE, ANSWERED - 30 * DAY, 0)
    found = followed(led(), a_quiet_claim(), a_document(an_item("advertisement")), Known(any=True))
    assert found == (Gather(Moving(THERE, ANSWERED, 0)),)
    assert not any(isinstance(each, Adopt) for each in followed(led(), remembering(moving=stranger)))
    assert followed(led(), remembering(moving=stranger)) == ()


@pytest.mark.parametrize("answer", [led(), led(answer=NOT_MODIFIED)], ids=["document", "304"])
def test_where_nothing_was_known_yet_there_is_nothing_to_share(answer: Answer) -> None:
    found = followed(answer, a_quiet_claim(news_from=None, good_at=None), a_document(ONE), Known())
    assert found == (Gather(Moving(THERE, ANSWERED, 1)),)


def test_an_empty_document_of_a_series_without_chapters_is_as_good_as_any() -> None:
    found = followed(led(), a_quiet_claim(), a_document(), Known())
    assert found == (Gather(Moving(THERE, ANSWERED, 1)),)


def test_a_move_inside_one_host_is_gathered_too_for_another_series_may_be_there() -> None:
    there = "https://www.host.test/feed/"
    assert followed(led(there), a_quiet_claim()) == (Gather(Moving(there, ANSWERED, 1)),)


@pytest.mark.parametrize(
    "answer",
    [
        NOT_MODIFIED,
        a_response(200),
        replace(a_response(200), url=THERE, permanent=False),
    ],
    ids=["304", "the old URL", "not permanent throughout"],
)
def test_a_good_answer_without_a_move_forgets_what_was_gathered(answer: Answer) -> None:
    """CASES E1, E3: three Polls in a row must agree."""
    moving = Moving(THERE, ANSWERED - 2 * DAY, 2)
    assert followed(answer, remembering(moving=moving)) == (Gather(None),)


def test_another_target_begins_anew() -> None:
    moving = Moving(THERE, ANSWERED - 2 * DAY, 2)
    assert followed(led(ELSEWHERE), remembering(moving=moving)) == (Gather(Moving(ELSEWHERE, ANSWERED, 1)),)


@pytest.mark.parametrize("polls", [0, 2, 30])
def test_a_permanent_redirect_to_a_page_or_a_failure_is_no_evidence_however_long(polls: int) -> None:
    """CASES E1"""
    memory = Memory(moving=Moving(THERE, ANSWERED - 2 * DAY, polls))
    claim = a_quiet_claim(memory=memory, answers=(Answered(1, "not recognised", STAMP),))
    assert followed(led(), claim, NotRecognised("down for maintenance")) == ()
    for status in (404, 410, 503, 403):
        found = followed(led(answer=a_response(status)), claim)
        assert not any(isinstance(each, Gather | Adopt) for each in found)


def test_a_move_that_shows_no_chapter_where_some_were_known_is_no_evidence() -> None:
    """CASES D4"""
    found = followed(led(), a_quiet_claim(), a_document(), known(ONE))
    assert not any(isinstance(each, Gather | Adopt) for each in found)


def test_a_move_that_the_owner_took_back_is_not_gathered_again() -> None:
    assert followed(led(), remembering(stays_off=THERE)) == followed(NOT_MODIFIED, remembering(stays_off=THERE)) == ()
    moving = Moving(THERE, ANSWERED - 2 * DAY, 2)
    assert followed(led(), remembering(stays_off=THERE, moving=moving)) == (Gather(None),)
    assert followed(led(), remembering(stays_off=ELSEWHERE, moving=moving)) == (Adopt(THERE),)


# Revival


def test_a_good_answer_to_the_weekly_look_revives() -> None:
    claim = remembering(retired=True)
    assert followed(NOT_MODIFIED, claim) == (Revive(()),)
    assert followed(a_response(200), claim) == (Revive(()),)


def test_the_weekly_look_of_a_moved_series_says_where_it_was_led_and_gathers_nothing() -> None:
    """CASES A15: it stays retired where another Series is followed there, which only the database knows."""
    memory = Memory(retired=True, moving=Moving(THERE, ANSWERED - 2 * DAY, 5))
    assert followed(led(), a_claim(memory=memory)) == (Revive((THERE,)),)


@pytest.mark.parametrize(
    "answer",
    [a_response(404), a_response(410), a_response(200, b"?"), NoResponse(Trouble.DNS, "no such name")],
    ids=["404", "410", "not recognised", "dns"],
)
def test_a_failed_weekly_look_has_no_consequence(answer: Answer) -> None:
    memory = Memory(retired=True, gone_at=STAMP - 30 * DAY)
    claim = a_claim(memory=memory, failures=40, failing_since=STAMP - 30 * DAY)
    assert followed(answer, claim, NotRecognised("a web page")) == ()


def test_what_is_retired_says_nothing_about_its_host() -> None:
    failing = tuple(Answered(n, "404", STAMP) for n in range(10, 15))
    claim = a_claim(memory=Memory(retired=True), answers=failing, failing="404")
    assert followed(NOT_MODIFIED, claim) == (Revive(()),)
    assert followed(a_response(404), claim) == ()


def test_no_good_answer_retires_anything() -> None:
    """CASES A6: a 200 after a 410 is good news however old the 410 is."""
    when = STAMP - 90 * DAY
    claim = a_quiet_claim(failures=40, failing_since=when, memory=Memory(gone_at=when))
    assert not any(isinstance(each, Retire) for each in followed(a_response(200), claim))


# Validators


BEFORE = Validators('"a"', "yesterday", URL)


def read_anew(etag: str | None, last_modified: str | None, **around: Any) -> tuple[Consequence, ...]:
    headers = {"etag": etag, "last_modified": last_modified}
    answer = a_response(200, b"another body", **{name: value for name, value in headers.items() if value is not None})
    claim = a_quiet_claim(validators=BEFORE, memory=Memory(distrusted=around.pop("distrusted", False)))
    return followed(answer, around.pop("claim", claim), **around)


def test_a_body_that_changed_under_the_validators_that_it_had_is_marked() -> None:
    """CASES C2: found by an unconditional Poll, to which no 304 is possible."""
    reason = only(Distrust, read_anew('"a"', "yesterday", unconditional=True)).reason
    assert reason is not None
    assert "its validators stayed the same while its body changed" in reason


def test_the_same_validators_over_another_body_are_no_lie_where_the_server_did_send_the_body() -> None:
    """CASES C1"""
    assert read_anew('"a"', "yesterday", unconditional=False) == ()


@pytest.mark.parametrize(
    ("etag", "last_modified"),
    [('"b"', "yesterday"), ('"a"', "today"), ('"a"', None), (None, "yesterday"), (None, None)],
)
def test_validators_of_which_one_changed_with_the_body_are_trusted(etag: str | None, last_modified: str | None) -> None:
    assert read_anew(etag, last_modified, unconditional=True) == ()


def test_a_first_body_is_no_change() -> None:
    never_read = a_quiet_claim(validators=BEFORE, body_hash=None)
    assert read_anew('"a"', "yesterday", unconditional=True, claim=never_read) == ()
    none_before = a_quiet_claim(validators=None)
    assert read_anew('"a"', "yesterday", unconditional=True, claim=none_before) == ()


def test_a_new_body_under_new_validators_is_trusted_again() -> None:
    assert read_anew('"b"', "today", unconditional=True, distrusted=True) == (Distrust(None),)
    assert read_anew(None, None, unconditional=True, distrusted=True) == (Distrust(None),)


def test_without_validators_of_before_there_is_no_telling() -> None:
    """They were dropped after a failure: what comes next is neither old nor new."""
    claim = a_quiet_claim(validators=None, memory=Memory(distrusted=True))
    assert read_anew('"b"', "today", unconditional=True, claim=claim) == ()


def test_who_lies_again_stays_marked_as_it_was() -> None:
    assert read_anew('"a"', "yesterday", unconditional=True, distrusted=True) == ()


def same_bytes(etag: str | None, *, unconditional: bool, **facts: Any) -> tuple[Consequence, ...]:
    answer = a_response(200, b"the same", **({} if etag is None else {"etag": etag}))
    claim = a_quiet_claim(**({"validators": Validators('"a"', None, URL), "body_hash": body_hash(b"the same")} | facts))
    return followed(answer, claim, unconditional=unconditional)


def test_a_whole_document_that_did_not_change_although_its_validators_were_sent_is_marked() -> None:
    """CASES C3"""
    reason = only(Distrust, same_bytes('"a"', unconditional=False)).reason
    assert reason is not None
    assert "never match" in reason


def test_the_same_bytes_are_no_lie_where_nobody_asked_with_validators_or_they_changed() -> None:
    assert same_bytes('"a"', unconditional=True) == ()
    assert same_bytes('"b"', unconditional=False) == ()
    assert same_bytes(None, unconditional=False) == ()
    assert same_bytes('"a"', unconditional=False, validators=None) == ()
    assert same_bytes(None, unconditional=False, validators=None) == ()


def test_the_interval_of_a_server_whose_tag_never_matches_grows_all_the_same() -> None:
    """CASES C3"""
    claim = a_quiet_claim(validators=Validators('"a"', None, URL), body_hash=body_hash(b"the same"))
    settlement = settled(a_response(200, b"the same", etag='"a"'), None, claim)
    assert (settlement.label, settlement.rest) == (Label.UNCHANGED, timedelta(minutes=12))
