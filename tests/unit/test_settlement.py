"""What a judged answer makes of a Series: counters, schedule, waits, and which Chapters are news (DESIGN 4.3, 4.4, 5)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.core.answer import Answer, Forbidden, NoResponse, Trouble
from lanes.core.chapters import Document, Hints, Item, Lifecycle, NotRecognised, identities
from lanes.core.claim import Unavailable, Validators
from lanes.core.outcome import Label, body_hash, url_hash
from lanes.core.pace import HostPace
from lanes.core.settlement import Known, Settlement
from tests.answers import ANSWERED, REST, STAMP, URL, a_claim, a_document, a_response, an_item, known, settled

ONE, TWO, THREE = an_item("1", -3), an_item("2", -2), an_item("3", -1)
NOT_MODIFIED = replace(a_response(304), conditional=True)


def found(document: Document, before: Known, **claim: object) -> Settlement:
    return settled(a_response(200), document, a_claim(**claim), before)


def announced(settlement: Settlement) -> list[str]:
    return [chapter.item.title for chapter in settlement.chapters if chapter.announced]


def stored(settlement: Settlement) -> list[str]:
    return [chapter.item.title for chapter in settlement.chapters]


def in_band(settlement: Settlement, rest: timedelta) -> bool:
    return STAMP + rest <= settlement.next_check_at <= STAMP + rest * 1.1


# What is new


def test_a_new_chapter_is_stored_and_announced_and_the_interval_halves() -> None:
    settlement = found(a_document(THREE, TWO, ONE), known(ONE, TWO))
    assert settlement.label is Label.NEW
    assert announced(settlement) == stored(settlement) == ["title 3"]
    assert settlement.rest == REST / 2
    assert in_band(settlement, REST / 2)


def test_nothing_new_lengthens_the_interval() -> None:
    settlement = found(a_document(TWO, ONE), known(ONE, TWO))
    assert settlement.label is Label.UNCHANGED
    assert not settlement.chapters
    assert settlement.rest == REST * 1.5
    assert in_band(settlement, REST * 1.5)


def test_a_304_lengthens_the_interval_and_keeps_everything() -> None:
    settlement = settled(NOT_MODIFIED)
    assert settlement.label is Label.UNCHANGED
    assert settlement.rest == REST * 1.5
    assert settlement.good
    assert settlement.validators is None
    assert not settlement.forget


def test_the_first_sight_stores_all_and_tells_nobody() -> None:
    settlement = found(a_document(THREE, TWO, ONE), Known(), news_from=None, good_at=None)
    assert stored(settlement) == ["title 3", "title 2", "title 1"]
    assert announced(settlement) == []
    assert settlement.good


def test_the_first_good_poll_after_a_time_without_bookmarks_tells_nobody() -> None:
    """CASES F14"""
    settlement = found(a_document(THREE, TWO, ONE), known(ONE), news_from=None)
    assert stored(settlement) == ["title 3", "title 2"]
    assert announced(settlement) == []


def test_items_whose_chapters_were_pruned_are_still_known() -> None:
    """CASES F6: identities outlive the text of their Chapters."""
    items = [an_item(str(n), -n) for n in range(100)]
    assert not found(a_document(*items), known(*items)).chapters


def test_older_items_of_a_longer_document_are_stored_and_not_announced() -> None:
    """CASES F7"""
    ten = [an_item(str(n), -n) for n in range(10)]
    older = [an_item(str(n), -n) for n in range(10, 50)]
    settlement = found(a_document(*ten, *older), known(*ten))
    assert len(stored(settlement)) == 40
    assert announced(settlement) == []


def test_a_new_chapter_among_back_fill_is_announced_alone() -> None:
    settlement = found(a_document(THREE, TWO, an_item("old", -300)), known(TWO))
    assert stored(settlement) == ["title 3", "title old"]
    assert announced(settlement) == ["title 3"]


def test_an_undated_item_is_news() -> None:
    assert announced(found(a_document(an_item("undated"), ONE), known(ONE))) == ["title undated"]


def test_an_item_dated_between_two_known_ones_is_announced() -> None:
    """CASES F12"""
    assert announced(found(a_document(THREE, an_item("between", -2), ONE), known(ONE, THREE))) == ["title between"]


def test_a_date_in_the_future_takes_no_part() -> None:
    """CASES F9: the only known item is dated 30 days ahead; a normal one comes later."""
    ahead = an_item("ahead", +30)
    assert announced(found(a_document(an_item("normal", -0.01), ahead), known(ahead))) == ["title normal"]


def test_a_known_item_that_left_the_document_does_not_say_what_is_old() -> None:
    """The oldest already known item of the same document decides, not the oldest ever."""
    assert announced(found(a_document(TWO), known(THREE))) == ["title 2"]


def test_new_guids_for_old_links_and_titles_are_nothing_new_but_are_remembered() -> None:
    """CASES F10"""
    before = [an_item(str(n), -n) for n in range(50)]
    after = [replace(item, guid=f"new engine {item.guid}") for item in before]
    settlement = found(a_document(*after), known(*before))
    assert not settlement.chapters
    remembered = {each for item in after for each in identities(item)} - known(*before).identities
    assert remembered <= set(settlement.seen)


def test_one_guid_for_all_items_stops_counting_and_every_item_is_found() -> None:
    """CASES F13: the first document shows that its guid lies, all its items are found."""
    items = [an_item(str(n), -n, guid="https://host.test/") for n in range(5)]
    first = found(a_document(*items), Known(), news_from=None)
    assert len(stored(first)) == 5
    assert not first.guid_alone


def test_a_new_item_under_the_one_guid_is_announced_once() -> None:
    """CASES F13"""
    items = [an_item(str(n), -n, guid="https://host.test/") for n in range(5)]
    new = an_item("new", -0.1, guid="https://host.test/")
    before = known(*items)
    settlement = found(a_document(new, *items), before, guid_alone=False)
    assert announced(settlement) == stored(settlement) == ["title new"]
    assert not settlement.guid_alone
    again = found(a_document(new, *items), Known(before.identities | set(settlement.seen), any=True), guid_alone=False)
    assert not again.chapters


def test_a_guid_found_lying_once_never_counts_alone_again() -> None:
    settlement = found(a_document(an_item("2", guid="g")), known(an_item("1", guid="g")), guid_alone=False)
    assert stored(settlement) == ["title 2"]
    assert not settlement.guid_alone


def test_another_part_one_with_its_own_guid_and_link_is_announced() -> None:
    """CASES F15"""
    first = an_item("volume-1-part-1", -300, title="Part 1")
    second = an_item("volume-2-part-1", -1, title="Part 1")
    assert announced(found(a_document(second, first), known(first))) == ["Part 1"]


def test_an_item_that_comes_twice_in_one_document_is_one_chapter() -> None:
    assert stored(found(a_document(THREE, THREE, ONE), known(ONE))) == ["title 3"]


def test_a_retitled_item_is_the_same_chapter() -> None:
    renamed = replace(ONE, title="a better title")
    assert not found(a_document(renamed), known(ONE)).chapters


# What an answer leaves behind


def test_a_recognised_document_brings_its_validators_and_its_hash() -> None:
    answer = a_response(200, b"body", etag='"a"', last_modified="whenever")
    settlement = settled(answer, a_document(ONE), a_claim(), known(ONE))
    assert settlement.validators == Validators('"a"', "whenever", URL)
    assert settlement.body_hash == body_hash(b"body")


@pytest.mark.parametrize(
    "answer",
    [a_response(206), a_response(304), a_response(200, b"", etag='"x"'), NoResponse(Trouble.FRAMING, "cut short")],
    ids=["206", "304 unasked", "empty body", "cut short"],
)
def test_an_answer_that_failed_while_being_read_makes_the_next_poll_unconditional(answer: Answer) -> None:
    """CASES C4, G4"""
    settlement = settled(answer, NotRecognised("empty"))
    assert settlement.forget
    assert settlement.validators is None
    assert not settlement.chapters
    assert settlement.failures == 1


def test_a_good_answer_zeroes_the_failures_and_the_refusals() -> None:
    """CASES A4, A5, A6"""
    settlement = settled(NOT_MODIFIED, None, a_claim(failures=7, refusals=3, failing_since=STAMP))
    assert (settlement.failures, settlement.refusals) == (0, 0)
    assert settlement.good


def test_a_failure_counts_and_leaves_the_interval_alone() -> None:
    settlement = settled(a_response(404), None, a_claim(failures=2))
    assert settlement.label is Label.FAILED
    assert settlement.failures == 3
    assert settlement.rest == REST
    assert not settlement.good
    assert in_band(settlement, REST * 8)


def test_a_failure_keeps_the_failing_series_within_six_hours() -> None:
    assert in_band(settled(a_response(404), None, a_claim(failures=30)), timedelta(hours=6))


def test_a_410_is_marked_gone() -> None:
    """CASES A6"""
    assert settled(a_response(410)).gone
    assert not settled(a_response(404)).gone


@pytest.mark.parametrize(
    "document", [a_document(), a_document(Item(None, "", None))], ids=["no item", "only an item that is nothing"]
)
def test_no_chapter_where_some_were_known_is_suspiciously_empty(document: Document) -> None:
    """CASES D4"""
    settlement = found(document, Known(frozenset(), any=True))
    assert settlement.label is Label.EMPTY
    assert settlement.failures == 1
    assert not settlement.good
    assert not settlement.chapters
    assert settlement.rest is not None
    assert settlement.rest >= REST


def test_an_empty_document_of_a_series_that_never_had_a_chapter_is_unchanged() -> None:
    settlement = found(a_document(), Known(), news_from=None)
    assert settlement.label is Label.UNCHANGED
    assert settlement.failures == 0
    assert settlement.good


def test_an_empty_document_brings_no_validators_where_chapters_were_known() -> None:
    """DESIGN 6: validators are stored with the Chapters and only then; else a 304 would keep the Series empty for ever."""
    settlement = settled(a_response(200, b"empty", etag='"empty"'), a_document(), a_claim(), known(ONE))
    assert settlement.validators is None
    assert settlement.body_hash is None


# Refusals and the guard


def test_a_refusal_is_no_failure_and_its_url_waits_a_quarter_of_an_hour() -> None:
    settlement = settled(a_response(403), None, a_claim(failures=2))
    assert settlement.label is Label.REFUSED
    assert settlement.failures == 2
    assert settlement.refusals == 1
    assert settlement.series_wait is not None
    assert settlement.series_wait.until >= ANSWERED + timedelta(minutes=15)
    assert settlement.host_wait is None


def test_refusals_in_a_row_double_the_wait_up_to_four_hours() -> None:
    for earlier, wait in [(1, timedelta(minutes=30)), (4, timedelta(hours=4)), (90, timedelta(hours=4))]:
        settlement = settled(a_response(403), None, a_claim(refusals=earlier))
        assert settlement.series_wait is not None
        assert settlement.series_wait.until - ANSWERED >= wait
        assert settlement.series_wait.until - ANSWERED <= wait * 1.2


@pytest.mark.parametrize("rest", [timedelta(minutes=1), timedelta(minutes=20), timedelta(hours=1)])
def test_a_refusal_never_shrinks_the_interval_and_never_brings_a_fetch_forward(rest: timedelta) -> None:
    """CASES A7"""
    settlement = settled(a_response(403), None, a_claim(rest=rest))
    assert settlement.rest is not None
    assert settlement.rest >= rest
    assert settlement.series_wait is not None
    assert max(settlement.next_check_at, settlement.series_wait.until) >= STAMP + rest
    assert settlement.host.pace >= HostPace().pace


def test_a_refusal_keeps_the_validators_and_the_hints() -> None:
    hints = Hints(every=timedelta(hours=3))
    settlement = settled(a_response(451), None, a_claim(hints=hints))
    assert not settlement.forget
    assert settlement.hints == hints


def test_a_forbidden_address_is_looked_at_again_after_a_day_and_is_no_failure() -> None:
    settlement = settled(Forbidden(URL, "10.0.0.1"), None, a_claim(failures=1))
    assert settlement.label is Label.BLOCKED
    assert settlement.failures == 1
    assert not settlement.good
    until = settlement.series_wait.until if settlement.series_wait else settlement.next_check_at
    assert max(until, settlement.next_check_at) >= STAMP + timedelta(hours=24)


# Being asked to wait


def test_a_429_with_retry_after_holds_the_host_and_charges_nobody() -> None:
    """CASES B2"""
    settlement = settled(a_response(429, retry_after="60"), None, a_claim(failures=1))
    assert settlement.label is Label.WAIT
    assert settlement.failures == 1
    assert settlement.host_wait is not None
    assert settlement.host_wait.until == ANSWERED + timedelta(seconds=60)
    assert settlement.rest is not None
    assert settlement.rest >= REST


def test_a_429_without_retry_after_slows_the_host_to_ninety_seconds_at_least() -> None:
    """CASES B3"""
    settlement = settled(a_response(429), None, a_claim())
    assert settlement.failures == 0
    assert settlement.host.pace == timedelta(seconds=90)


def test_a_429_with_a_garbled_retry_after_slows_the_host_all_the_same() -> None:
    """CASES B4"""
    assert settled(a_response(429, retry_after="-5")).host.pace == timedelta(seconds=90)


def test_a_first_503_with_retry_after_holds_its_series_alone_and_is_no_failure() -> None:
    """CASES B1"""
    settlement = settled(a_response(503, retry_after="1500"))
    assert settlement.failures == 0
    assert settlement.host_wait is None
    assert settlement.series_wait is not None
    assert settlement.series_wait.until == ANSWERED + timedelta(seconds=1500)
    assert settlement.unavailable_url == url_hash(URL)
    assert settlement.host.pace == HostPace().pace


def test_a_503_from_a_second_url_holds_the_host() -> None:
    """CASES B1"""
    before = Unavailable(url_hash("https://host.test/a"), ANSWERED - timedelta(minutes=9))
    settlement = settled(a_response(503, retry_after="1500"), None, a_claim(unavailable=before))
    assert settlement.failures == 0
    assert settlement.host_wait is not None
    assert settlement.host_wait.until == ANSWERED + timedelta(seconds=1500)


def test_a_first_503_without_retry_after_is_a_failure_of_the_series() -> None:
    """CASES A4"""
    settlement = settled(a_response(503))
    assert settlement.label is Label.FAILED
    assert settlement.failures == 1
    assert settlement.host.pace == HostPace().pace


def test_retry_after_on_a_404_is_a_failure_that_waits() -> None:
    settlement = settled(a_response(404, retry_after="90000"))
    assert settlement.failures == 1
    assert settlement.host_wait is None
    assert settlement.series_wait is not None
    assert settlement.series_wait.until == ANSWERED + timedelta(seconds=90000)


def test_retry_after_on_a_good_answer_makes_the_series_wait_and_nothing_is_lost() -> None:
    settlement = settled(a_response(200, retry_after="7200"), a_document(TWO, ONE), a_claim(), known(ONE))
    assert announced(settlement) == ["title 2"]
    assert settlement.good
    assert settlement.series_wait is not None
    assert settlement.series_wait.until == ANSWERED + timedelta(seconds=7200)


def test_retry_after_on_a_refusal_only_lengthens_its_wait() -> None:
    longer = settled(a_response(403, retry_after="86400")).series_wait
    shorter = settled(a_response(403, retry_after="1")).series_wait
    assert longer is not None
    assert shorter is not None
    assert longer.until == ANSWERED + timedelta(hours=24)
    assert shorter.until >= ANSWERED + timedelta(minutes=15)


def test_a_5xx_doubles_the_hosts_interval() -> None:
    assert settled(a_response(502), host=HostPace(timedelta(seconds=4))).host.pace == timedelta(seconds=8)


def test_the_pace_that_moves_is_that_of_the_host_that_answered() -> None:
    """After a hop the answering host is not the claim's."""
    claim = a_claim(pace=HostPace(timedelta(seconds=100)))
    settlement = settled(a_response(502), None, claim, host=HostPace(timedelta(seconds=3)))
    assert settlement.host.pace == timedelta(seconds=6)


# Hints


def test_a_wish_in_the_document_is_respected_and_kept_for_a_304() -> None:
    """CASES C7"""
    hints = Hints(every=timedelta(hours=24))
    first = found(a_document(ONE, hints=hints), known(ONE))
    assert first.hints == hints
    assert first.next_check_at >= STAMP + timedelta(hours=24)
    later = settled(NOT_MODIFIED, None, a_claim(hints=hints))
    assert later.hints == hints
    assert later.next_check_at >= STAMP + timedelta(hours=24)


def test_max_age_only_slows() -> None:
    slow = settled(a_response(200, cache_control="max-age=7200"), a_document(ONE), a_claim(), known(ONE))
    assert slow.next_check_at >= STAMP + timedelta(hours=2)
    fast = settled(a_response(200, cache_control="max-age=1"), a_document(ONE), a_claim(), known(ONE))
    assert in_band(fast, REST * 1.5)


def test_max_age_is_kept_so_that_a_304_without_it_does_not_forget_it() -> None:
    """DESIGN 5.2 names max-age among the hints that are kept on the row."""
    slow = settled(a_response(200, cache_control="max-age=7200"), a_document(ONE), a_claim(), known(ONE))
    later = settled(NOT_MODIFIED, None, a_claim(hints=slow.hints))
    assert later.next_check_at >= STAMP + timedelta(hours=2)


@pytest.mark.parametrize("seconds", ["86401", "999999999999"])
def test_a_max_age_over_a_day_is_no_hint(seconds: str) -> None:
    """CASES B4"""
    settlement = settled(a_response(200, cache_control=f"max-age={seconds}"), a_document(ONE), a_claim(), known(ONE))
    assert in_band(settlement, REST * 1.5)


# A permanent hop inside one host


@pytest.mark.parametrize(
    "target",
    ["http://host.test/feed", "https://host.test/feed/", "https://www.host.test/feed", "http://www.host.test/feed/"],
)
def test_a_permanent_hop_by_scheme_slash_or_www_is_asked_first_from_then_on(target: str) -> None:
    """CASES B13"""
    answer = replace(a_response(200), url=target, permanent=True)
    assert settled(answer, a_document(ONE), a_claim(), known(ONE)).url == target


@pytest.mark.parametrize(
    "target",
    [
        "https://host.test/all",
        "https://host.test/feed?page=2",
        "https://other.test/feed",
        "https://sub.host.test/feed",
        URL,
    ],
)
def test_any_other_permanent_hop_moves_nothing_at_once(target: str) -> None:
    """DESIGN 4.3: the URL moves only after three Polls over a day agree and the target shares known identities."""
    answer = replace(a_response(200), url=target, permanent=True)
    assert settled(answer, a_document(ONE), a_claim(), known(ONE)).url is None


def test_a_hop_that_was_not_permanent_throughout_moves_nothing() -> None:
    """CASES E3"""
    answer = replace(a_response(200), url="https://host.test/feed/", permanent=False)
    assert settled(answer, a_document(ONE), a_claim(), known(ONE)).url is None


def test_a_permanent_hop_to_a_failure_moves_nothing() -> None:
    """CASES E1"""
    answer = replace(a_response(200), url="https://host.test/feed/", permanent=True)
    assert settled(answer, NotRecognised("a web page")).url is None


def test_a_hop_that_lost_the_urls_secret_moves_nothing() -> None:
    claim = a_claim(url="https://user:secret@host.test/feed")
    answer = replace(a_response(200), url="https://host.test/feed/", permanent=True)
    assert settled(answer, a_document(ONE), claim, known(ONE)).url is None


# Sites without an adaptive schedule


def test_a_site_with_a_uniform_rest_is_due_by_its_stamp_alone() -> None:
    settlement = settled(NOT_MODIFIED, None, a_claim(rest=None), site_rest=timedelta(hours=1))
    assert settlement.rest is None
    assert settlement.next_check_at <= STAMP


def test_a_failure_on_a_site_with_a_uniform_rest_lengthens_its_own_next_check() -> None:
    settlement = settled(a_response(404), None, a_claim(rest=None, failures=1), site_rest=timedelta(hours=1))
    assert settlement.rest is None
    assert STAMP + timedelta(hours=4) <= settlement.next_check_at <= STAMP + timedelta(hours=4.8)


# Whatever comes

_answers = st.one_of(
    st.builds(
        lambda status, wait, conditional: replace(a_response(status, retry_after=wait), conditional=conditional),
        st.integers(200, 599),
        st.sampled_from(["", "1", "60", "99999999999", "-1", "later"]),
        st.booleans(),
    ),
    st.builds(NoResponse, st.sampled_from(Trouble), st.just("why")),
    st.just(Forbidden(URL, "10.0.0.1")),
)


@given(
    answer=_answers,
    rest=st.timedeltas(timedelta(minutes=1), timedelta(hours=1)),
    failures=st.integers(0, 40),
    recognised=st.booleans(),
)
def test_only_a_good_answer_stores_anything_and_no_other_brings_a_fetch_forward(
    answer: Answer, rest: timedelta, failures: int, *, recognised: bool
) -> None:
    reading = a_document(TWO, ONE) if recognised else NotRecognised("a web page")
    claim = a_claim(rest=rest, failures=failures, failing_since=STAMP if failures else None)
    settlement = settled(answer, reading, claim, known(ONE))
    assert settlement.rest is not None
    if settlement.good:
        assert settlement.failures == 0
        assert settlement.next_check_at >= STAMP + timedelta(minutes=1)
    else:
        assert not settlement.chapters
        assert not settlement.seen
        assert settlement.validators is None
        assert settlement.body_hash is None
        assert settlement.rest >= rest
        assert settlement.next_check_at >= STAMP + rest
        assert settlement.host.pace >= claim.pace.pace or settlement.label is Label.FAILED
        assert settlement.failures in {failures, failures + 1}
    for wait in (settlement.series_wait, settlement.host_wait):
        assert wait is None or ANSWERED < wait.until <= ANSWERED + timedelta(days=30)


# What is not a Chapter yet, and a list that is not there


def test_a_locked_chapter_is_neither_stored_nor_known_until_it_is_open() -> None:
    locked = an_item("3", 2, locked=True)
    settlement = found(a_document(locked, TWO, ONE), known(ONE, TWO))
    assert (settlement.label, stored(settlement), settlement.seen) == (Label.UNCHANGED, [], ())
    opened = replace(locked, locked=False)
    assert announced(found(a_document(opened, TWO, ONE), known(ONE, TWO))) == ["title 3"]


def test_a_document_of_locked_chapters_alone_is_not_suspiciously_empty() -> None:
    assert found(a_document(an_item("3", 2, locked=True)), known(ONE)).label is Label.UNCHANGED


@pytest.mark.parametrize(
    ("latest", "highest", "label"),
    [
        ("88.5", "88.5", Label.UNCHANGED),
        ("88", "88.5", Label.UNCHANGED),
        ("9", "10", Label.UNCHANGED),
        ("88.6", "88.5", Label.FAILED),
        ("88.5", None, Label.FAILED),
    ],
)
def test_a_document_that_names_its_newest_number_without_a_list_is_unchanged_only_where_that_is_known(
    latest: str, highest: str | None, label: Label
) -> None:
    before = replace(known(ONE), latest=None if highest is None else Decimal(highest))
    settlement = found(a_document(latest=latest), before)
    assert (settlement.label, stored(settlement)) == (label, [])
    assert settlement.good is (label is Label.UNCHANGED)
    assert settlement.body_hash is None
    assert settlement.forget is (label is Label.FAILED)


def test_a_document_without_its_list_still_says_how_its_series_stands() -> None:
    told = replace(a_document(latest="88"), title="Salt", lifecycle=Lifecycle.HIATUS)
    settlement = found(told, replace(known(ONE), latest=Decimal(88)))
    assert settlement.document == told
    assert settlement.hints == a_claim().hints


def test_a_first_sight_needs_the_list() -> None:
    before = replace(known(ONE), latest=Decimal(88))
    assert found(a_document(latest="88"), before, news_from=None).label is Label.FAILED


def test_an_allowance_that_is_used_up_closes_its_host_whatever_the_answer_was() -> None:
    spent = {"x_ratelimit_remaining": "0.0", "x_ratelimit_reset": "57"}
    for answer in (a_response(200, **spent), a_response(404, **spent), a_response(429, **spent)):
        wait = settled(answer, a_document(ONE)).host_wait
        assert wait is not None
        assert wait.until >= ANSWERED + timedelta(seconds=57)
    assert settled(a_response(200, **spent), a_document(ONE)).label is Label.NEW
