"""What an answer means: the table of DESIGN 4.3, row by row."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from lanes.core.answer import Forbidden, NoResponse, Postponed, Resume, Trouble
from lanes.core.chapters import NotRecognised
from lanes.core.claim import Unavailable, Validators
from lanes.core.outcome import (
    NO_ANSWER,
    AskedToWait,
    Blocked,
    Failed,
    PutBack,
    Read,
    Refused,
    Unchanged,
    body_hash,
    url_hash,
    wants_reading,
)
from lanes.core.pace import Signal
from tests.answers import ANSWERED, URL, a_claim, a_document, a_response, an_item, judged

DOCUMENT = a_document(an_item("1"))
OTHER_URL = "https://host.test/other"
FIVE_MINUTES_AGO = ANSWERED - timedelta(minutes=5)
ELEVEN_MINUTES_AGO = ANSWERED - timedelta(minutes=11)


def unavailable(url: str, at: object) -> Unavailable:
    return Unavailable(url_hash(url), at)  # type: ignore[arg-type]


# Content


def test_a_304_to_our_validators_is_unchanged() -> None:
    judgement = judged(replace(a_response(304), conditional=True))
    assert isinstance(judgement.meaning, Unchanged)
    assert judgement.signal is Signal.HEALTHY


def test_a_304_to_a_question_without_validators_is_a_failure_and_the_next_poll_is_unconditional() -> None:
    meaning = judged(a_response(304)).meaning
    assert isinstance(meaning, Failed)
    assert meaning.reread


def test_a_206_is_a_failure_and_the_next_poll_is_unconditional() -> None:
    meaning = judged(a_response(206), DOCUMENT).meaning
    assert isinstance(meaning, Failed)
    assert meaning.reread


def test_identical_bytes_are_unchanged_unread() -> None:
    """CASES C3"""
    claim = a_claim(body_hash=body_hash(b"the same"))
    answer = a_response(200, b"the same", etag='"another"')
    assert not wants_reading(answer, claim)
    assert isinstance(judged(answer, None, claim).meaning, Unchanged)


def test_the_same_tag_over_other_bytes_is_read() -> None:
    """CASES C1"""
    claim = a_claim(validators=Validators('"a"', None, URL))
    answer = a_response(200, b"body B", etag='"a"')
    assert wants_reading(answer, claim)
    meaning = judged(answer, DOCUMENT, claim).meaning
    assert isinstance(meaning, Read)
    assert meaning.document == DOCUMENT


def test_validators_are_kept_verbatim_with_the_url_that_gave_them() -> None:
    """CASES C5"""
    answer = replace(a_response(200, etag='W/"odd', last_modified="Tomorrow, 2041"), url=OTHER_URL)
    meaning = judged(answer, DOCUMENT).meaning
    assert isinstance(meaning, Read)
    assert meaning.validators == Validators('W/"odd', "Tomorrow, 2041", OTHER_URL)


def test_what_is_not_recognised_is_a_failure_and_its_tag_is_never_sent() -> None:
    """CASES C4, D6: an HTML page, an error page or an empty body is never "nothing new"."""
    meaning = judged(a_response(200, b"", etag='"x"'), NotRecognised("the body is empty")).meaning
    assert isinstance(meaning, Failed)
    assert meaning.reread


@pytest.mark.parametrize("status", [201, 202, 204, 205])
def test_another_success_is_never_nothing_new(status: int) -> None:
    assert isinstance(judged(a_response(status, b"")).meaning, Failed)


@pytest.mark.parametrize(("status", "reread"), [(299, True), (300, False), (400, False)])
def test_after_another_success_the_next_poll_is_unconditional(status: int, reread: bool) -> None:
    meaning = judged(a_response(status)).meaning
    assert isinstance(meaning, Failed)
    assert meaning.reread is reread


def test_a_url_and_a_body_are_named_by_sixteen_bytes() -> None:
    assert len(url_hash(URL)) == len(body_hash(b"")) == 16


@pytest.mark.parametrize("status", [400, 404, 429, 403, 500, 503, 304, 206])
def test_status_is_judged_before_the_body(status: int) -> None:
    assert not wants_reading(a_response(status), a_claim())


# Failures of the Series


def test_a_410_is_a_failure_that_says_gone() -> None:
    meaning = judged(a_response(410)).meaning
    assert isinstance(meaning, Failed)
    assert meaning.gone


@pytest.mark.parametrize("status", [400, 404, 406, 418, 421, 499])
def test_any_other_4xx_is_a_failure_that_does_not_say_gone_and_blames_no_host(status: int) -> None:
    judgement = judged(a_response(status))
    assert isinstance(judgement.meaning, Failed)
    assert not judgement.meaning.gone
    assert judgement.signal in {Signal.HEALTHY, Signal.SILENT}


@pytest.mark.parametrize("trouble", [Trouble.FRAMING, Trouble.ENCODING])
def test_broken_framing_and_a_lying_encoding_make_the_next_poll_unconditional(trouble: Trouble) -> None:
    """CASES G4, G6"""
    meaning = judged(NoResponse(trouble, "cut short")).meaning
    assert isinstance(meaning, Failed)
    assert meaning.reread


@pytest.mark.parametrize("trouble", sorted(Trouble))
def test_no_answer_is_a_failure(trouble: Trouble) -> None:
    assert isinstance(judged(NoResponse(trouble, "why")).meaning, Failed)


def test_a_host_that_is_down_fails_alike_whichever_way_it_is_silent() -> None:
    """Reset now, silent then: one outage.  A name that nobody knows is another matter."""
    down = (Trouble.CONNECT, Trouble.TLS, Trouble.TIMEOUT, Trouble.RESET)
    meanings = [judged(NoResponse(trouble, "why")).meaning for trouble in (*down, Trouble.DNS)]
    kinds = [meaning.kind for meaning in meanings if isinstance(meaning, Failed)]
    assert kinds == [NO_ANSWER] * 4 + ["dns"]


@pytest.mark.parametrize("trouble", [Trouble.DNS, Trouble.CONNECT, Trouble.TLS, Trouble.TIMEOUT, Trouble.RESET])
def test_a_host_that_cannot_be_reached_is_backed_off_from(trouble: Trouble) -> None:
    assert judged(NoResponse(trouble, "why")).signal is Signal.TROUBLED


@pytest.mark.parametrize("status", [500, 502, 504, 520, 599])
def test_a_5xx_is_a_failure_and_its_host_is_backed_off_from(status: int) -> None:
    judgement = judged(a_response(status))
    assert isinstance(judgement.meaning, Failed)
    assert judgement.signal is Signal.TROUBLED


# Refusals and the guard


@pytest.mark.parametrize("status", [401, 402, 403, 451])
def test_a_refusal_is_no_failure_and_never_narrows_its_hosts_interval(status: int) -> None:
    """CASES A7"""
    judgement = judged(a_response(status))
    assert isinstance(judgement.meaning, Refused)
    assert judgement.signal is not Signal.HEALTHY


def test_a_forbidden_address_is_blocked_and_says_nothing_about_its_host() -> None:
    judgement = judged(Forbidden("http://host.test/", "169.254.1.1"))
    assert isinstance(judgement.meaning, Blocked)
    assert judgement.signal is Signal.SILENT


def test_a_postponed_fetch_is_put_back_with_everything_it_needs_to_go_on() -> None:
    resume = Resume(OTHER_URL, 3, permanent=True)
    judgement = judged(Postponed("its host waits", timedelta(seconds=7), (), "192.0.2.7", resume))
    assert judgement.meaning == PutBack("its host waits", timedelta(seconds=7), "192.0.2.7", resume)
    assert judgement.signal is Signal.SILENT


# Being asked to wait


def test_a_429_with_retry_after_makes_the_whole_host_wait() -> None:
    """CASES B2"""
    judgement = judged(a_response(429, retry_after="60"))
    assert isinstance(judgement.meaning, AskedToWait)
    assert judgement.meaning.whole_host
    assert judgement.retry_after == timedelta(seconds=60)
    assert judgement.signal is not Signal.HEALTHY


def test_a_429_without_retry_after_makes_the_whole_host_wait_and_says_too_fast() -> None:
    """CASES B3"""
    judgement = judged(a_response(429))
    assert isinstance(judgement.meaning, AskedToWait)
    assert judgement.meaning.whole_host
    assert judgement.signal is Signal.TOO_FAST


def test_a_first_503_with_retry_after_makes_only_its_series_wait() -> None:
    """CASES B1"""
    judgement = judged(a_response(503, retry_after="1500"))
    assert isinstance(judgement.meaning, AskedToWait)
    assert not judgement.meaning.whole_host
    assert judgement.retry_after == timedelta(seconds=1500)
    assert judgement.signal is Signal.SILENT
    assert judgement.unavailable_url == url_hash(URL)


def test_a_first_503_without_retry_after_is_a_failure_and_leaves_its_hosts_interval_alone() -> None:
    judgement = judged(a_response(503))
    assert isinstance(judgement.meaning, Failed)
    assert judgement.signal is Signal.SILENT
    assert judgement.unavailable_url == url_hash(URL)


def test_the_same_urls_second_503_backs_off_from_its_host_but_is_still_its_own() -> None:
    judgement = judged(a_response(503), None, a_claim(unavailable=unavailable(URL, FIVE_MINUTES_AGO)))
    assert isinstance(judgement.meaning, Failed)
    assert judgement.signal is Signal.TROUBLED


def test_a_503_from_a_second_url_within_ten_minutes_makes_the_whole_host_wait() -> None:
    """CASES B1"""
    claim = a_claim(unavailable=unavailable(OTHER_URL, FIVE_MINUTES_AGO))
    judgement = judged(a_response(503, retry_after="1500"), None, claim)
    assert isinstance(judgement.meaning, AskedToWait)
    assert judgement.meaning.whole_host


def test_a_503_from_a_second_url_without_retry_after_backs_off_and_is_no_failure_of_the_series() -> None:
    judgement = judged(a_response(503), None, a_claim(unavailable=unavailable(OTHER_URL, FIVE_MINUTES_AGO)))
    assert isinstance(judgement.meaning, AskedToWait)
    assert judgement.meaning.whole_host
    assert judgement.signal in {Signal.TROUBLED, Signal.TOO_FAST}


def test_ten_minutes_after_another_urls_503_are_within_ten_minutes() -> None:
    claim = a_claim(unavailable=unavailable(OTHER_URL, ANSWERED - timedelta(minutes=10)))
    assert isinstance(judged(a_response(503), None, claim).meaning, AskedToWait)
    claim = a_claim(unavailable=unavailable(OTHER_URL, ANSWERED - timedelta(minutes=10) - timedelta.resolution))
    assert isinstance(judged(a_response(503), None, claim).meaning, Failed)


def test_a_503_from_a_second_url_after_ten_minutes_is_a_first_one() -> None:
    judgement = judged(a_response(503), None, a_claim(unavailable=unavailable(OTHER_URL, ELEVEN_MINUTES_AGO)))
    assert isinstance(judgement.meaning, Failed)
    assert judgement.signal is Signal.SILENT


@pytest.mark.parametrize("status", [404, 410, 500])
def test_retry_after_on_a_failure_is_a_failure_that_waits(status: int) -> None:
    judgement = judged(a_response(status, retry_after="900"))
    assert isinstance(judgement.meaning, Failed)
    assert judgement.retry_after == timedelta(seconds=900)


def test_retry_after_on_a_good_answer_is_still_a_good_answer() -> None:
    judgement = judged(a_response(200, retry_after="900"), DOCUMENT)
    assert isinstance(judgement.meaning, Read)
    assert judgement.retry_after == timedelta(seconds=900)


def test_retry_after_on_a_refusal_is_kept() -> None:
    judgement = judged(a_response(403, retry_after="7200"))
    assert isinstance(judgement.meaning, Refused)
    assert judgement.retry_after == timedelta(seconds=7200)


def test_a_wait_is_bounded_by_thirty_days() -> None:
    """CASES B4"""
    assert judged(a_response(429, retry_after="99999999999")).retry_after == timedelta(days=30)


@pytest.mark.parametrize("value", ["-5", "1.5", "3_600", "\uff16\uff10", "", "soon"])
def test_a_garbled_retry_after_is_none_at_all(value: str) -> None:
    """CASES B4"""
    judgement = judged(a_response(429, retry_after=value))
    assert judgement.retry_after is None
    assert judgement.signal is Signal.TOO_FAST


def test_a_retry_after_date_is_relative_to_the_servers_own_clock() -> None:
    """CASES B5"""
    answer = a_response(429, retry_after="Sun, 04 May 2031 10:10:00 GMT", date="Sun, 04 May 2031 10:00:00 GMT")
    assert judged(answer).retry_after == timedelta(minutes=10)


def test_a_whole_day_is_not_shortened() -> None:
    """CASES B6"""
    assert judged(a_response(429, retry_after="86400")).retry_after == timedelta(days=1)
