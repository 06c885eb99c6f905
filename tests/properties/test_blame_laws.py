"""Laws of blame and of settling that no history of answers may break (DESIGN 4.3, 4.4)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lanes.core.answer import Answer, Forbidden, NoResponse, Trouble
from lanes.core.blame import Answered, SiteFails, SiteHeals, answers_after, site
from lanes.core.chapters import NotRecognised
from lanes.core.circumstances import Known
from lanes.core.claim import Claim, Memory, Moving, Validators
from lanes.core.consequences import Adopt, Distrust, Gather, Heed, Learn, Remember, Retire, Revive, Spare
from lanes.core.outcome import Label, body_hash
from lanes.core.pace import HostPace
from tests.answers import ANSWERED, STAMP, URL, a_claim, a_document, a_response, an_item, known, settled

MOMENT, DAY, HOUR = timedelta(seconds=1), timedelta(days=1), timedelta(hours=1)
THERE = "https://there.test/feed"
ITEMS = (an_item("1", -3), an_item("2", -2), an_item("3", -1))

# Of a host's last answers

_kinds = st.sampled_from([None, None, "404", "404", "timeout"])
_said = st.lists(st.tuples(st.integers(1, 14), _kinds), max_size=60)


def histories(said: list[tuple[int, str | None]]) -> list[tuple[Answered, ...]]:
    """What is remembered after each answer, a second apart."""
    answers: tuple[Answered, ...] = ()
    found = [answers]
    for second, (series_id, kind) in enumerate(said):
        answers = answers_after(answers, series_id, kind, STAMP + second * MOMENT)
        found.append(answers)
    return found


@given(said=_said)
def test_no_series_is_held_twice_and_never_more_than_ten_are_held(said: list[tuple[int, str | None]]) -> None:
    for answers in histories(said):
        ids = [each.series_id for each in answers]
        assert len(ids) == len(set(ids)) <= 10


@given(said=_said)
def test_each_is_held_with_its_last_answer_and_since_it_has_answered_so(said: list[tuple[int, str | None]]) -> None:
    for answers in histories(said)[-1:]:
        for each in answers:
            own = [
                (STAMP + second * MOMENT, kind)
                for second, (series, kind) in enumerate(said)
                if series == each.series_id
            ]
            assert each.kind == own[-1][1]
            assert (each.since is None) == (each.kind is None)
            assert each.since is None or {kind for at, kind in own if at >= each.since} == {each.kind}


@given(said=_said)
def test_whoever_answered_last_is_held_and_ten_are_held_once_ten_have_answered(
    said: list[tuple[int, str | None]],
) -> None:
    for place, answers in enumerate(histories(said)[1:]):
        assert said[place][0] in {each.series_id for each in answers}
        assert len(answers) == min(10, len({series for series, _ in said[: place + 1]}))


@given(said=_said, later=st.integers(0, 86_400))
def test_the_same_answer_twice_changes_nothing(said: list[tuple[int, str | None]], later: int) -> None:
    answers = histories(said)[-1]
    if said:
        again = answers_after(answers, *said[-1], STAMP + (len(said) + later) * MOMENT)
        assert again is answers


@given(said=_said, failing=st.sampled_from([None, "404", "timeout"]))
def test_an_incident_begins_only_where_more_than_half_fail_alike_and_ends_only_where_half_or_fewer_do(
    said: list[tuple[int, str | None]], failing: str | None
) -> None:
    for answers in histories(said):
        kinds = Counter(each.kind for each in answers)
        match site(answers, failing):
            case SiteFails(kind=kind, spared=spared):
                assert failing is None
                assert kind is not None
                assert len(answers) >= 3
                assert kinds[kind] * 2 > len(answers)
                assert {series for series, _ in spared} == {each.series_id for each in answers if each.kind == kind}
                assert all(since == next(a.since for a in answers if a.series_id == series) for series, since in spared)
            case SiteHeals():
                assert failing is not None
                assert kinds[failing] * 2 <= len(answers)
            case None if failing is not None:
                assert kinds[failing] * 2 > len(answers)
            case None:
                most = max((count for kind, count in kinds.items() if kind is not None), default=0)
                assert len(answers) < 3 or most * 2 <= len(answers)


@given(said=_said)
def test_no_incident_begins_and_ends_by_one_and_the_same_answers(said: list[tuple[int, str | None]]) -> None:
    for answers in histories(said):
        turns = site(answers, None)
        if isinstance(turns, SiteFails):
            assert site(answers, turns.kind) is None


# Of settling

_headers = st.fixed_dictionaries(
    {},
    optional={
        "retry_after": st.sampled_from(["", "1", "60", "90000", "99999999999", "-1"]),
        "etag": st.sampled_from(['"a"', '"b"']),
        "cf_mitigated": st.just("challenge"),
        "cache_control": st.sampled_from(["max-age=7200", "no-store"]),
    },
)
_responses = st.builds(
    lambda status, body, headers, url, permanent, conditional: replace(
        a_response(status, body, **headers), url=url, permanent=permanent, conditional=conditional
    ),
    st.sampled_from([200, 200, 200, 203, 206, 304, 304, 400, 401, 403, 404, 410, 429, 451, 500, 502, 503]),
    st.sampled_from([b"a document", b"what was read last time", b"<!doctype html><title>Blocked</title>"]),
    _headers,
    st.sampled_from([URL, THERE, "https://host.test/feed/", "https://host.test/login"]),
    st.booleans(),
    st.booleans(),
)
_answers: st.SearchStrategy[Answer] = st.one_of(
    _responses, st.builds(NoResponse, st.sampled_from(Trouble), st.just("why")), st.just(Forbidden(URL, "10.0.0.1"))
)
_past = st.none() | st.timedeltas(timedelta(0), 40 * DAY).map(lambda ago: STAMP - ago)
_memories = st.builds(
    Memory,
    retired=st.booleans(),
    gone_at=_past,
    moving=st.none() | st.builds(Moving, st.sampled_from([THERE, URL]), st.just(STAMP - DAY), st.integers(0, 4)),
    stays_off=st.none() | st.just(THERE),
    distrusted=st.booleans(),
    dead=st.booleans(),
    refusing=st.booleans(),
)
_hosts = _said.map(lambda said: histories(said)[-1])
_claims = st.fixed_dictionaries(
    {
        "series_id": st.integers(1, 14),
        "rest": st.timedeltas(timedelta(minutes=1), HOUR),
        "failures": st.integers(0, 40),
        "refusals": st.integers(0, 9),
        "failing_since": _past,
        "news_from": st.none() | st.just(STAMP - 30 * DAY),
        "validators": st.none() | st.just(Validators('"a"', None, URL)),
        "body_hash": st.sampled_from([None, body_hash(b"what was read last time")]),
        "answers": _hosts,
        "failing": st.sampled_from([None, None, "404", "410", "timeout", "5xx"]),
        "memory": _memories,
    }
).map(lambda facts: a_claim(**facts))
_readings = st.sampled_from(
    [a_document(*ITEMS), a_document(*ITEMS[:1]), a_document(), NotRecognised("a web page", "<")]
)
_known = st.sampled_from([Known(), Known(any=True), known(*ITEMS[:2]), known(*ITEMS)])
_around = st.fixed_dictionaries(
    {
        "chance": st.floats(0, 1),
        "host": st.builds(HostPace, st.timedeltas(MOMENT, timedelta(minutes=5)), st.none(), st.integers(0, 4)),
        "unconditional": st.booleans(),
        "sent_at": st.none() | st.just(STAMP + MOMENT),
    }
)
polls = given(answer=_answers, reading=_readings, claim=_claims, before=_known, around=_around)

ASIDE = {Label.REFUSED, Label.WAIT, Label.BLOCKED, Label.DISALLOWED}
"""Neither good nor a failure."""


@polls
def test_a_failure_is_counted_once_or_spared_and_nothing_else_is_counted(
    answer: Answer, reading: Any, claim: Claim, before: Known, around: dict[str, Any]
) -> None:
    settlement = settled(answer, reading, claim, before, **around)
    if settlement.label in ASIDE:
        assert not settlement.good
        assert (settlement.failures, settlement.spared, settlement.kind) == (claim.failures, False, None)
        assert settlement.refusals == claim.refusals + (settlement.label is Label.REFUSED)
    elif settlement.good:
        assert (settlement.failures, settlement.refusals, settlement.spared) == (0, 0, False)
    else:
        assert settlement.kind is not None
        assert settlement.failures == claim.failures + (not settlement.spared)
        assert settlement.refusals == claim.refusals


@polls
def test_only_what_more_than_half_of_its_host_share_is_spared(
    answer: Answer, reading: Any, claim: Claim, before: Known, around: dict[str, Any]
) -> None:
    settlement = settled(answer, reading, claim, before, **around)
    kinds = {type(each): each for each in settlement.consequences}
    if not settlement.spared:
        assert Spare not in kinds
        return
    assert (Spare in kinds) != (SiteFails in kinds)
    assert Retire not in kinds
    assert SiteHeals not in kinds
    assert not settlement.gone
    remembered = kinds.get(Remember)
    answers = remembered.answers if isinstance(remembered, Remember) else claim.answers
    assert sum(each.kind == settlement.kind for each in answers) * 2 > len(answers)


@polls
def test_no_answer_brings_the_next_check_forward_but_news(
    answer: Answer, reading: Any, claim: Claim, before: Known, around: dict[str, Any]
) -> None:
    settlement = settled(answer, reading, claim, before, **around)
    assert claim.rest is not None
    assert settlement.rest is not None
    if settlement.label is Label.NEW and claim.news_from is not None:
        assert settlement.next_check_at >= STAMP + max(claim.rest / 2, timedelta(minutes=1))
    else:
        assert settlement.rest >= claim.rest
        assert settlement.next_check_at >= STAMP + claim.rest
    assert settlement.next_check_at >= STAMP + settlement.rest
    assert not settlement.spared or settlement.next_check_at >= STAMP + HOUR


@polls
def test_each_consequence_comes_once_and_fits_what_was_answered(
    answer: Answer, reading: Any, claim: Claim, before: Known, around: dict[str, Any]
) -> None:
    settlement = settled(answer, reading, claim, before, **around)
    kinds = Counter(type(each) for each in settlement.consequences)
    assert set(kinds.values()) <= {1}
    of_good = {Revive, Gather, Adopt, Distrust}
    if settlement.good:
        assert not kinds.keys() & {Retire, Spare, Learn}
        assert (Revive in kinds) is claim.memory.retired
    else:
        assert not kinds.keys() & of_good
    if claim.memory.retired:
        assert not kinds.keys() & {Retire, Gather, Adopt, Remember, Spare, SiteFails, SiteHeals}
    assert not {SiteFails, SiteHeals} <= kinds.keys()
    assert not {Gather, Adopt} <= kinds.keys()


@polls
def test_a_read_is_heeded_for_what_it_was(
    answer: Answer, reading: Any, claim: Claim, before: Known, around: dict[str, Any]
) -> None:
    settlement = settled(answer, reading, claim, before, **around)
    heeds = [each for each in settlement.consequences if isinstance(each, Heed)]
    for heed in heeds:
        assert heed.read.refused is (settlement.label is Label.REFUSED)
        assert heed.read.sent_at == around["sent_at"]
    if around["sent_at"] is not None:
        refused = settlement.label is Label.REFUSED and not claim.memory.retired
        heeded = refused or (settlement.good and claim.memory.refusing)
        assert bool(heeds) is heeded


@polls
def test_a_series_is_given_up_only_for_a_failure_of_its_own_at_the_end_of_many_or_a_second_410(
    answer: Answer, reading: Any, claim: Claim, before: Known, around: dict[str, Any]
) -> None:
    settlement = settled(answer, reading, claim, before, **around)
    retires = any(isinstance(each, Retire) for each in settlement.consequences)
    since, first_gone = claim.failing_since, claim.memory.gone_at
    many = settlement.failures >= 20 and since is not None and ANSWERED - since >= 3 * DAY
    gone_twice = settlement.gone and first_gone is not None and ANSWERED - first_gone >= DAY
    own = settlement.kind is not None and not settlement.spared and not claim.memory.retired
    assert retires is (own and (many or gone_twice))
    assert ("retired" in settlement.changed) is retires
