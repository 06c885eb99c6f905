"""What a failure costs its Series: spared where its Site is to blame, given up where it is its own (DESIGN 4.4)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from lanes.core.answer import Answer, NoResponse, Trouble
from lanes.core.blame import Answered, SiteFails, SiteHeals
from lanes.core.chapters import NotRecognised
from lanes.core.claim import Claim, Memory
from lanes.core.consequences import Remember, Retire, Revive, Spare
from lanes.core.outcome import Label
from lanes.core.settlement import Settlement
from tests.answers import ANSWERED, REST, STAMP, a_claim, a_document, a_response, an_item, known, settled

HOUR, DAY, MOMENT = timedelta(hours=1), timedelta(days=1), timedelta(microseconds=1)
NOT_MODIFIED = replace(a_response(304), conditional=True)
NOT_FOUND, GONE = a_response(404), a_response(410)


def others(kind: str | None, *series: int) -> tuple[Answered, ...]:
    """How other Series of the host answered last."""
    return tuple(Answered(each, kind, None if kind is None else STAMP - HOUR) for each in series)


def retired(settlement: Settlement) -> list[str]:
    return [each.reason for each in settlement.consequences if isinstance(each, Retire)]


def in_band(settlement: Settlement, rest: timedelta) -> bool:
    return STAMP + rest <= settlement.next_check_at <= STAMP + rest * 1.1


# Spared


def test_a_failure_in_the_way_in_which_its_site_fails_is_not_counted_and_rests_an_hour() -> None:
    """CASES A3"""
    answers = (*others("404", 2, 3, 4), Answered(1, "404", STAMP - HOUR))
    settlement = settled(NOT_FOUND, None, a_claim(failures=2, answers=answers, failing="404"))
    assert settlement.spared
    assert settlement.failures == 2
    assert settlement.rest == REST
    assert in_band(settlement, HOUR)
    assert settlement.consequences == (Spare(),)


def test_an_hour_is_the_least_that_a_spared_failure_rests() -> None:
    answers = others("404", 2, 3, 4)
    claim = a_claim(rest=None, answers=answers, failing="404")
    assert in_band(settled(NOT_FOUND, None, claim, site_rest=2 * HOUR), 2 * HOUR)
    assert in_band(settled(NOT_FOUND, None, claim, site_rest=HOUR / 2), HOUR)


def test_the_failure_by_which_it_is_seen_that_the_site_fails_is_spared_already() -> None:
    settlement = settled(NOT_FOUND, None, a_claim(failures=1, answers=(*others("404", 2), *others(None, 3))))
    assert (settlement.spared, settlement.failures) == (True, 1)
    answers = (*others("404", 2), *others(None, 3), Answered(1, "404", STAMP))
    fails = SiteFails("404", ((2, STAMP - HOUR), (1, STAMP)))
    assert settlement.consequences == (Remember(answers), fails)


def test_a_failure_of_another_kind_is_its_own_while_its_site_fails() -> None:
    settlement = settled(a_response(200), NotRecognised("?"), a_claim(answers=others("404", 2, 3, 4), failing="404"))
    assert (settlement.spared, settlement.failures) == (False, 1)
    assert not any(isinstance(each, Spare) for each in settlement.consequences)


def test_a_failure_that_shows_that_the_site_fails_in_another_way_is_its_own() -> None:
    settlement = settled(NOT_FOUND, None, a_claim(answers=others("5xx", 2, 3)))
    assert (settlement.spared, settlement.failures) == (False, 1)
    assert any(isinstance(each, SiteFails) for each in settlement.consequences)


def test_a_failure_by_which_half_of_them_still_fail_ends_the_incident_and_is_its_own() -> None:
    answers = (*others("404", 2), *others(None, 3, 4))
    settlement = settled(NOT_FOUND, None, a_claim(answers=answers, failing="404"))
    assert (settlement.spared, settlement.failures) == (False, 1)
    assert SiteHeals() in settlement.consequences


def test_a_good_answer_ends_the_incident() -> None:
    settlement = settled(NOT_MODIFIED, None, a_claim(answers=(*others("404", 2, 3), *others(None, 4)), failing="404"))
    assert SiteHeals() in settlement.consequences
    assert not settlement.spared


def test_a_good_answer_among_many_failures_ends_nothing() -> None:
    settlement = settled(NOT_MODIFIED, None, a_claim(answers=others("404", 2, 3, 4), failing="404"))
    assert settlement.good
    assert [type(each) for each in settlement.consequences] == [Remember]


def test_a_site_that_fails_retires_nobody() -> None:
    """CASES A3: not by the count, and not by 410."""
    old = STAMP - 60 * DAY
    for answer, kind in ((NOT_FOUND, "404"), (GONE, "410")):
        claim = a_claim(
            failures=40, failing_since=old, memory=Memory(gone_at=old), answers=others(kind, 2, 3, 4), failing=kind
        )
        assert retired(settled(answer, None, claim)) == []
        assert retired(settled(answer, None, replace(claim, failing=None))) == []


def test_a_spared_410_is_not_the_first_of_two() -> None:
    """What a Site's failure charged is given back: it must not retire a Series a day after the incident is over."""
    open_incident = a_claim(answers=others("410", 2, 3, 4), failing="410")
    assert not settled(GONE, None, open_incident).gone
    assert not settled(GONE, None, replace(open_incident, failing=None)).gone
    assert settled(GONE, None, a_claim()).gone
    assert not any(settled(answer).gone for answer in (NOT_MODIFIED, NOT_FOUND, a_response(403), a_response(429)))


def test_too_few_series_are_never_spared() -> None:
    """CASES A10: a host with a single feed, or with two, is charged."""
    for answers in ((), others("dns", 2)):
        settlement = settled(NoResponse(Trouble.DNS, "no such name"), None, a_claim(failures=3, answers=answers))
        assert (settlement.spared, settlement.failures) == (False, 4)


@pytest.mark.parametrize("status", [200, 404])
def test_nothing_is_spared_where_nothing_fails(status: int) -> None:
    answers = others(None, 2, 3, 4)
    assert not settled(a_response(status), a_document(), a_claim(answers=answers)).spared


# Given up


def failing(failures: int, since: datetime | None, answer: Answer = NOT_FOUND) -> Settlement:
    """One more failure of a Series that had so many."""
    return settled(answer, None, a_claim(failures=failures, failing_since=since))


def test_twenty_failures_over_three_days_retire() -> None:
    (reason,) = retired(failing(19, ANSWERED - 3 * DAY))
    assert reason == "failed 20 times in a row, last: 404 from the server"


def test_one_failure_less_or_a_moment_less_does_not() -> None:
    assert retired(failing(18, ANSWERED - 300 * DAY)) == []
    assert retired(failing(500, ANSWERED - 3 * DAY + MOMENT)) == []
    assert retired(failing(500, None)) == []


def test_a_retirement_is_in_the_poll_record() -> None:
    assert failing(19, ANSWERED - 3 * DAY).changed["retired"] == [False, True]
    assert "retired" not in failing(18, ANSWERED - 3 * DAY).changed


def test_a_suspiciously_empty_document_counts_like_any_failure() -> None:
    """CASES D4"""
    claim = a_claim(failures=19, failing_since=ANSWERED - 9 * DAY)
    settlement = settled(a_response(200), a_document(), claim, known(an_item("1")))
    assert settlement.label is Label.EMPTY
    assert settlement.kind == "empty"
    assert settlement.forget
    assert retired(settlement) == ["failed 20 times in a row, last: no Chapter where some were known"]


def gone_before(first: datetime | None, answer: Answer = GONE) -> list[str]:
    return retired(settled(answer, None, a_claim(failures=1, failing_since=first, memory=Memory(gone_at=first))))


def test_a_410_a_day_after_the_first_retires_as_gone() -> None:
    """CASES A6"""
    assert gone_before(ANSWERED - DAY) == ["gone"]
    assert gone_before(ANSWERED - 9 * DAY) == ["gone"]


def test_a_first_410_or_one_within_a_day_or_another_failure_after_it_does_not() -> None:
    """CASES A6"""
    assert gone_before(None) == []
    assert gone_before(ANSWERED - DAY + MOMENT) == []
    assert gone_before(ANSWERED - 9 * DAY, NOT_FOUND) == []


def test_gone_is_the_reason_where_both_are_true() -> None:
    long_ago = ANSWERED - 30 * DAY
    claim = a_claim(failures=30, failing_since=long_ago, memory=Memory(gone_at=long_ago))
    assert retired(settled(GONE, None, claim)) == ["gone"]


def test_a_revived_series_that_fails_once_is_still_alive() -> None:
    """CASES A8: reviving zeroed its counter."""
    settlement = failing(0, None)
    assert (settlement.failures, retired(settlement)) == (1, [])


def test_what_is_retired_is_not_retired_again() -> None:
    long_ago = ANSWERED - 30 * DAY
    claim = a_claim(failures=30, failing_since=long_ago, memory=Memory(retired=True, gone_at=long_ago))
    assert retired(settled(GONE, None, claim)) == []
    assert retired(settled(NOT_FOUND, None, claim)) == []


def test_a_series_that_came_back_is_revived_with_its_counters_at_zero() -> None:
    claim = a_claim(failures=30, refusals=4, failing_since=STAMP - 30 * DAY, memory=Memory(retired=True))
    settlement = settled(NOT_MODIFIED, None, claim)
    assert (settlement.failures, settlement.refusals, settlement.consequences) == (0, 0, (Revive(()),))


# Over days


class One:
    """One Series polled on and on, its claim made anew from each settlement as the database would."""

    def __init__(self, **facts: object) -> None:
        self.claim: Claim = a_claim(**facts)
        self.settled: list[Settlement] = []
        self.waits: list[timedelta] = []

    def poll(self, answer: Answer) -> Settlement:
        now = self.claim.claimed_at + (ANSWERED - STAMP)
        settlement = settled(answer, a_document(an_item("1")), self.claim, known(an_item("1")), now=now)
        due = max(settlement.next_check_at, settlement.series_wait.until if settlement.series_wait else now)
        self.settled.append(settlement)
        self.waits.append(due - self.claim.claimed_at)
        self.claim = replace(
            self.claim,
            claimed_at=due,
            rest=settlement.rest,
            failures=settlement.failures,
            refusals=settlement.refusals,
            failing_since=(self.claim.failing_since or now) if settlement.failures else None,
        )
        return settlement


def test_a_series_that_is_unavailable_for_a_while_is_asked_ever_slower_and_recovers_at_once() -> None:
    """CASES A4"""
    series = One()
    for _ in range(3):
        series.poll(a_response(503))
    assert series.waits == sorted(set(series.waits))
    series.poll(NOT_MODIFIED)
    assert series.claim.failures == 0
    assert series.claim.failing_since is None
    assert series.waits[-1] <= REST * 1.5 * 1.1
    assert not any(retired(each) for each in series.settled)


def test_a_blip_at_every_second_poll_is_nobodys_news() -> None:
    """CASES A5"""
    series = One(answers=(Answered(1),))
    for n in range(200):
        series.poll(NoResponse(Trouble.TIMEOUT, "silent") if n % 2 else NOT_MODIFIED)
    assert {each.failures for each in series.settled} == {0, 1}
    assert {type(found) for each in series.settled for found in each.consequences} == {Remember}


def test_a_series_refused_for_ever_is_asked_no_oftener_as_time_goes_by() -> None:
    """CASES A7"""
    for rest in (timedelta(minutes=1), timedelta(minutes=20), HOUR):
        series = One(rest=rest)
        for _ in range(12):
            series.poll(a_response(403))
        assert series.waits == sorted(series.waits)
        assert series.waits[-1] >= 4 * HOUR
        assert {each.rest for each in series.settled} == {rest}
        assert series.claim.failures == 0


@pytest.mark.parametrize("rest", [timedelta(minutes=1), HOUR])
def test_a_lapsed_domain_is_given_up_within_a_month_and_not_within_three_days(rest: timedelta) -> None:
    """CASES A10"""
    series = One(rest=rest)
    while not retired(series.poll(NoResponse(Trouble.DNS, "no such name", line_proved=True))):
        assert series.claim.claimed_at - STAMP < 30 * DAY
    assert series.settled[-1].failures >= 20
    assert sum(series.waits[:-1], timedelta(0)) >= 3 * DAY - HOUR


class Host:
    """Many Series of one host, polled once an hour, what a Site's failure charged given back as the database does."""

    def __init__(self, series: int) -> None:
        self.claims = {n: a_claim(series_id=n) for n in range(1, series + 1)}
        self.answers: tuple[Answered, ...] = ()
        self.failing: str | None = None
        self.seen: Counter[str] = Counter()

    def poll(self, series_id: int, answer: Answer, now: datetime) -> None:
        claim = replace(self.claims[series_id], claimed_at=now, answers=self.answers, failing=self.failing)
        settlement = settled(answer, None, claim, now=now)
        since = (claim.failing_since or now) if settlement.failures else None
        self.claims[series_id] = replace(claim, failures=settlement.failures, failing_since=since)
        for each in settlement.consequences:
            self.seen[type(each).__name__] += 1
            match each:
                case Remember(answers=answers):
                    self.answers = answers
                case SiteFails(kind=kind, spared=spared):
                    self.failing = kind
                    for other, _ in spared:
                        self.claims[other] = replace(self.claims[other], failures=0, failing_since=None)
                case SiteHeals():
                    self.failing = None
                case _:
                    pass


def test_fifty_feeds_that_are_not_found_for_four_hours_a_day_are_one_incident_a_day() -> None:
    """CASES A3"""
    host = Host(50)
    for hour in range(240):
        away = 8 <= hour % 24 < 12
        for n in host.claims:
            host.poll(n, NOT_FOUND if away else NOT_MODIFIED, STAMP + hour * HOUR + n * timedelta(minutes=1))
        assert [n for n, claim in host.claims.items() if claim.failures] == []
        assert host.failing == ("404" if away else None)
    assert (host.seen["SiteFails"], host.seen["SiteHeals"], host.seen["Retire"]) == (10, 10, 0)


def test_two_of_three_feeds_are_dead_and_the_third_is_never_charged() -> None:
    """CASES A16: they are given up by their incident's age, of which `retirement` has the number."""
    host = Host(3)
    for hour in range(60 * 24):
        for n in host.claims:
            host.poll(n, NOT_MODIFIED if n == 3 else NOT_FOUND, STAMP + hour * HOUR)
    assert (host.seen["SiteFails"], host.seen["SiteHeals"], host.seen["Retire"]) == (1, 0, 0)
    assert {n: claim.failures for n, claim in host.claims.items()} == {1: 0, 2: 0, 3: 0}
    host.answers = tuple(each for each in host.answers if each.series_id == 3)
    host.poll(3, NOT_MODIFIED, STAMP + 61 * DAY)
    assert host.failing is None
