"""What else follows from a Poll: moves, revival, distrust, windows, what is learnt and buried (DESIGN 4.3, 4.4, 5.3, 5.4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from lanes.core.answer import Answer, Forbidden, NoResponse, Response, Resume, Trouble
from lanes.core.blame import Answered
from lanes.core.chapters import Document, NotRecognised
from lanes.core.circumstances import Circumstances, Known
from lanes.core.claim import Claim, Memory, Moving, Unavailable, Validators
from lanes.core.consequences import (
    Adopt,
    Bury,
    Consequence,
    Distrust,
    Forbid,
    Gather,
    Heed,
    Learn,
    Remember,
    Retire,
    Revive,
)
from lanes.core.outcome import Disallowed, Judgement, Label, body_hash, url_hash
from lanes.core.pace import HOST_CEILING, HOST_DEFAULT, HostPace, RefusedPace, Signal
from lanes.core.refusal import Read
from lanes.core.settlement import decide
from tests.answers import ANSWERED, STAMP, URL, a_claim, a_document, a_response, an_item, known, settled

THERE, ELSEWHERE = "https://there.test/feed", "https://elsewhere.test/feed"
DAY, HOUR, MOMENT = timedelta(hours=24), timedelta(hours=1), timedelta(microseconds=1)
SENT = STAMP + timedelta(seconds=1)
ONE, TWO = an_item("1", -2), an_item("2", -1)
NOT_MODIFIED = replace(a_response(304), conditional=True)
AMONG = (Answered(1),)
"""The Series' last answer was good: one more of the kind says nothing new about its host."""

C = TypeVar("C", bound=Consequence)


def a_quiet_claim(**facts: Any) -> Claim:
    """Of a Series whose host has nothing new to say about it."""
    return a_claim(**({"answers": AMONG} | facts))


def remembering(**facts: Any) -> Claim:
    return a_quiet_claim(memory=Memory(**facts))


def led(to: str = THERE, answer: Response | None = None) -> Response:
    """A good answer, or another, at the end of a chain of permanent redirects."""
    return replace(answer or a_response(200), url=to, permanent=True)


def followed(
    answer: Answer,
    claim: Claim | None = None,
    document: Document | NotRecognised | None = None,
    before: Known | None = None,
    **around: Any,
) -> tuple[Consequence, ...]:
    if document is None:
        document = a_document(TWO, ONE)
    return settled(answer, document, claim or a_quiet_claim(), before or known(ONE, TWO), **around).consequences


def only(kind: type[C], found: tuple[Consequence, ...]) -> C:
    """The one consequence of this kind."""
    (one,) = (each for each in found if isinstance(each, kind))
    return one


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


@pytest.mark.parametrize(
    "answer",
    [
        NOT_MODIFIED,
        a_response(200),
        replace(a_response(200), url=THERE, permanent=False),
        led("https://www.host.test/feed/"),
    ],
    ids=["304", "the old URL", "not permanent throughout", "the same place"],
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
    assert followed(led(), remembering(stays_off=THERE)) == ()
    moving = Moving(THERE, ANSWERED - 2 * DAY, 2)
    assert followed(led(), remembering(stays_off=THERE, moving=moving)) == (Gather(None),)
    assert followed(led(), remembering(stays_off=ELSEWHERE, moving=moving)) == (Adopt(THERE),)


# Revival


def test_a_good_answer_to_the_weekly_look_revives() -> None:
    claim = remembering(retired=True)
    assert followed(NOT_MODIFIED, claim) == (Revive(None),)
    assert followed(a_response(200), claim) == (Revive(None),)


def test_the_weekly_look_of_a_moved_series_says_where_it_was_led_and_gathers_nothing() -> None:
    """CASES A15: it stays retired where another Series is followed there, which only the database knows."""
    memory = Memory(retired=True, moving=Moving(THERE, ANSWERED - 2 * DAY, 5))
    assert followed(led(), a_claim(memory=memory)) == (Revive(THERE),)


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
    assert followed(NOT_MODIFIED, claim) == (Revive(None),)
    assert followed(a_response(404), claim) == ()


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


# Refusals


@pytest.mark.parametrize("status", [401, 402, 403, 451])
def test_a_refused_read_is_heeded_by_the_instant_at_which_it_was_sent(status: int) -> None:
    """CASES B3, A11"""
    heed = only(Heed, followed(a_response(status), sent_at=SENT))
    assert heed.read == Read(True, url_hash(URL), SENT)


def test_a_refused_read_says_nothing_else() -> None:
    """A refusal is no failure: it is nobody's answer by which a Site is judged."""
    assert [type(each) for each in followed(a_response(403), a_claim(), sent_at=SENT)] == [Heed]
    assert followed(a_response(403), a_claim()) == ()


def test_a_challenge_is_heeded_as_any_refusal() -> None:
    """CASES D2"""
    assert only(Heed, followed(a_response(202, b"", x_amzn_waf_action="challenge"), sent_at=SENT)).read.refused


def test_a_good_read_is_heeded_where_there_is_a_refusal_on_record_and_nowhere_else() -> None:
    for answer in (NOT_MODIFIED, a_response(200)):
        heed = only(Heed, followed(answer, remembering(refusing=True), sent_at=SENT))
        assert heed.read == Read(False, url_hash(URL), SENT)
        assert followed(answer, remembering(refusing=True)) == ()
        assert followed(answer, sent_at=SENT) == ()


@pytest.mark.parametrize(
    "answer", [a_response(404), a_response(429), a_response(503), a_response(502), NoResponse(Trouble.TIMEOUT, "late")]
)
def test_what_is_neither_refused_nor_good_is_not_heeded(answer: Answer) -> None:
    found = followed(answer, remembering(refusing=True), sent_at=SENT)
    assert not any(isinstance(each, Heed) for each in found)


def test_a_good_weekly_look_answers_a_refusal_too() -> None:
    found = followed(NOT_MODIFIED, a_claim(memory=Memory(retired=True, refusing=True)), sent_at=SENT)
    assert {type(each) for each in found} == {Heed, Revive}


def test_where_a_window_opens_the_interval_in_force_is_learnt() -> None:
    claim = a_quiet_claim(host_pace=timedelta(seconds=7))
    assert only(Heed, followed(a_response(403), claim, sent_at=SENT)).learnt == RefusedPace(
        timedelta(seconds=7), ANSWERED
    )


@pytest.mark.parametrize("headers", [{}, {"retry_after": "60"}], ids=["without Retry-After", "with"])
def test_a_429_teaches_the_interval_that_was_in_force(headers: dict[str, str]) -> None:
    """CASES B3"""
    answer = replace(a_response(429), headers={name.replace("_", "-"): value for name, value in headers.items()})
    claim = a_quiet_claim(host_pace=timedelta(seconds=7))
    assert followed(answer, claim) == (Learn(RefusedPace(timedelta(seconds=7), ANSWERED)),)


def test_a_second_429_is_learnt_as_the_second() -> None:
    before = HostPace(refused=RefusedPace(timedelta(seconds=40), ANSWERED - HOUR))
    assert only(Learn, followed(a_response(429), a_quiet_claim(), host=before)).refused.times == 2


def test_a_named_hosts_refusal_under_the_default_interval_is_remembered_too() -> None:
    before = HostPace(refused=RefusedPace(HOST_DEFAULT / 2, ANSWERED - HOUR))
    named = followed(a_response(429), a_quiet_claim(), host=before, host_floor=HOST_DEFAULT / 4)
    assert only(Learn, named).refused.times == 2
    assert only(Learn, followed(a_response(429), a_quiet_claim(), host=before)).refused.times == 1


def test_a_503_teaches_no_interval() -> None:
    """It is no complaint about ours, from however many URLs it comes."""
    earlier = Unavailable(url_hash(ELSEWHERE), ANSWERED - timedelta(minutes=1))
    assert followed(a_response(503, retry_after="60"), a_quiet_claim(unavailable=earlier)) == ()
    assert followed(a_response(503), a_quiet_claim(unavailable=earlier)) == ()


# The guard and robots.txt


def test_an_address_that_is_not_public_is_told_once() -> None:
    forbid = only(Forbid, followed(Forbidden(URL, "10.0.0.1")))
    assert "10.0.0.1" in forbid.detail


def test_what_robots_txt_disallows_is_told_and_looked_at_again_after_a_day() -> None:
    judged = Judgement(Disallowed("robots.txt disallows it"), Signal.SILENT)
    around = Circumstances(now=ANSWERED, chance=0.5, site_rest=None, host=HostPace())
    settlement = decide(a_claim(failures=3), judged, Known(), around)
    assert settlement.consequences == (Forbid("robots.txt disallows it"),)
    assert (settlement.label, settlement.failures, settlement.good) == (Label.DISALLOWED, 3, False)
    assert settlement.series_wait is not None
    assert settlement.series_wait.until == ANSWERED + DAY


# Death


def at_the_ceiling(backoffs: int) -> HostPace:
    return HostPace(HOST_CEILING, None, backoffs)


def test_a_third_backoff_at_the_ceiling_buries_the_host_which_is_asked_once_an_hour() -> None:
    claim = a_quiet_claim(answers=(Answered(1, "5xx", STAMP),))
    assert followed(a_response(502), claim, host=at_the_ceiling(1)) == ()
    settlement = settled(a_response(502), None, claim, host=at_the_ceiling(2))
    assert settlement.consequences == (Bury(True),)
    assert settlement.host_wait is not None
    assert settlement.host_wait.until == ANSWERED + HOUR
    assert settled(a_response(502), None, claim, host=at_the_ceiling(1)).host_wait is None


def test_a_dead_host_that_still_does_not_answer_is_buried_once_and_waits_again() -> None:
    claim = a_quiet_claim(answers=(Answered(1, "timeout", STAMP),), memory=Memory(dead=True))
    settlement = settled(NoResponse(Trouble.TIMEOUT, "silent"), None, claim, host=at_the_ceiling(3))
    assert settlement.consequences == ()
    assert settlement.host_wait is not None
    assert settlement.host_wait.until == ANSWERED + HOUR


def test_a_dead_host_that_answers_lives() -> None:
    settlement = settled(NOT_MODIFIED, None, remembering(dead=True), host=at_the_ceiling(5))
    assert settlement.consequences == (Bury(False),)
    assert settlement.host_wait is None


def test_a_refusal_neither_buries_nor_wakes_a_host() -> None:
    assert followed(a_response(403), remembering(dead=True), host=at_the_ceiling(3)) == ()
    assert settled(a_response(403), None, remembering(dead=True), host=at_the_ceiling(3)).host_wait is None


# The host's last answers


def test_a_poll_that_went_on_in_the_middle_of_a_chain_says_nothing_about_the_host_it_queued_at() -> None:
    others = tuple(Answered(n, "404", STAMP) for n in (2, 3))
    claim = a_claim(answers=others, resume=Resume(THERE, 2, permanent=True))
    assert followed(a_response(404), claim) == ()
    assert followed(NOT_MODIFIED, claim) == ()


def test_a_failure_is_remembered_with_the_instant_of_its_claim() -> None:
    assert followed(a_response(404)) == (Remember((Answered(1, "404", STAMP),)),)


@pytest.mark.parametrize(
    "answer",
    [
        a_response(403),
        a_response(429),
        a_response(503, retry_after="60"),
        Forbidden(URL, "10.0.0.1"),
    ],
    ids=["refused", "asked to wait", "unavailable", "forbidden"],
)
def test_only_a_good_answer_or_a_failure_is_an_answer_by_which_a_site_is_judged(answer: Answer) -> None:
    assert not any(isinstance(each, Remember) for each in followed(answer, a_claim()))


def test_no_good_answer_retires_anything() -> None:
    """CASES A6: a 200 after a 410 is good news however old the 410 is."""
    when = STAMP - 90 * DAY
    claim = a_quiet_claim(failures=40, failing_since=when, memory=Memory(gone_at=when))
    assert not any(isinstance(each, Retire) for each in followed(a_response(200), claim))
