"""What a Poll does to its host beyond its interval: reads heeded, intervals learnt, death, its last answers (DESIGN 4.4, 5.3, 5.4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from lanes.core.answer import Answer, Forbidden, NoResponse, Resume, Trouble
from lanes.core.blame import Answered
from lanes.core.circumstances import Circumstances, Known
from lanes.core.claim import Memory, Unavailable
from lanes.core.consequences import (
    Bury,
    Ease,
    Forbid,
    Heed,
    Learn,
    Remember,
    Revive,
)
from lanes.core.outcome import Disallowed, Judgement, Label, url_hash
from lanes.core.pace import HOST_CEILING, HOST_DEFAULT, HostPace, RefusedPace, Signal
from lanes.core.refusal import Read
from lanes.core.settlement import decide
from tests.answers import (
    ANSWERED,
    NOT_MODIFIED,
    STAMP,
    URL,
    a_claim,
    a_quiet_claim,
    a_response,
    followed,
    only,
    remembering,
    settled,
)

THERE, ELSEWHERE = "https://there.test/feed", "https://elsewhere.test/feed"
DAY, HOUR = timedelta(hours=24), timedelta(hours=1)
SENT = STAMP + timedelta(seconds=1)


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
        assert only(Heed, followed(answer, sent_at=SENT, refusing=True)) == heed  # of the host that a redirect led to
        assert followed(answer, remembering(refusing=True), refusing=True) == ()
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
    claim = a_quiet_claim(answers=(Answered(1, "no answer", STAMP),), memory=Memory(dead=True))
    settlement = settled(NoResponse(Trouble.TIMEOUT, "silent"), None, claim, host=at_the_ceiling(3))
    assert settlement.consequences == ()
    assert settlement.host_wait is not None
    assert settlement.host_wait.until == ANSWERED + HOUR


def test_a_dead_host_that_answers_lives() -> None:
    settlement = settled(NOT_MODIFIED, None, remembering(dead=True), host=at_the_ceiling(5))
    assert settlement.consequences == (Bury(False),)
    assert settlement.host_wait is None


def test_a_dead_host_that_is_reached_by_a_redirect_lives_once_it_answers() -> None:
    """What the claim remembers is its own host; the pace is that of the one that answered."""
    assert followed(NOT_MODIFIED, a_quiet_claim(), host=at_the_ceiling(3)) == (Bury(False),)


def test_a_dead_host_whose_backoffs_were_given_back_lives_once_it_answers() -> None:
    assert followed(NOT_MODIFIED, remembering(dead=True), host=HostPace()) == (Bury(False),)


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


# Hosts on the way


def test_a_host_that_answered_by_a_redirect_narrows_and_lives_and_costs_no_write_where_nothing_changes() -> None:
    slow, dead, calm = HostPace(timedelta(seconds=4)), HostPace(HOST_CEILING, backoffs=3), HostPace()
    resting = HostPace(backoffs=1)
    found = followed(NOT_MODIFIED, passed=((2, slow), (3, dead), (4, calm), (5, resting)))
    assert found == (
        Ease(2, slow, HostPace(timedelta(seconds=3.6))),
        Ease(3, dead, HostPace(timedelta(seconds=270))),
        Ease(5, resting, calm),
    )
