"""The rules of the audit about what robots.txt and the owner demand."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from lanes.core.audit import Kind, Place, offences
from tests.requests_sent import at, blocked, crawl_delay, kinds, of_site, only, request, slowed

# What robots.txt demands


def test_two_starts_at_a_host_closer_than_its_crawl_delay_are_named() -> None:
    """CASES B8."""
    offence = only(Place.HOST, request(10), request(12.4), demands=[crawl_delay(2.5)])
    assert (offence.kind, offence.place, offence.needed) == (Kind.CRAWL_DELAY, "one.example", timedelta(seconds=2.5))
    assert kinds(Place.HOST, request(10), request(12.5), demands=[crawl_delay(2.5)]) == []


def test_a_request_that_was_claimed_before_the_crawl_delay_was_known_is_not_bound_by_it() -> None:
    unaware = request(12, claimed_at=at(10.9))
    assert kinds(Place.HOST, request(10), unaware, demands=[crawl_delay(60, since=11)]) == []
    assert kinds(Place.HOST, request(10), replace(unaware, claimed_at=at(12)), demands=[crawl_delay(60, since=11)]) == [
        Kind.CRAWL_DELAY
    ]


def test_a_claim_that_began_while_the_demand_was_being_written_is_not_bound_by_it() -> None:
    assert kinds(Place.HOST, request(10), request(11.09), demands=[crawl_delay(60, since=11)]) == []
    assert kinds(Place.HOST, request(10), request(11.1), demands=[crawl_delay(60, since=11)]) == [Kind.CRAWL_DELAY]


def test_of_several_origins_each_crawl_delay_binds_their_host() -> None:
    both = [crawl_delay(2), crawl_delay(5)]
    assert kinds(Place.HOST, request(10), request(13), demands=both) == [Kind.CRAWL_DELAY]
    assert kinds(Place.HOST, request(10), request(11), demands=both) == [Kind.CRAWL_DELAY] * 2
    assert kinds(Place.HOST, request(10), request(15), demands=both) == []


def test_each_demand_finds_its_own_place_among_many() -> None:
    """Of demands and requests both in the order of their places, none is read twice."""
    requests = [request(10.0 + n, place=place) for place in ("b.example", "d.example") for n in range(2)]
    for place, expected in (("a.example", 0), ("b.example", 1), ("c.example", 0), ("d.example", 1), ("e.example", 0)):
        assert len(kinds(Place.HOST, *requests, demands=[crawl_delay(2, place=place)])) == expected
    everywhere = [crawl_delay(2, place=f"{letter}.example") for letter in "abbcde"]
    assert len(kinds(Place.HOST, *requests, demands=everywhere)) == 3


# The owner's word


def test_two_starts_closer_than_the_owner_said_are_named() -> None:
    offence = only(Place.HOST, request(10), request(3609), demands=[slowed(3600)])
    assert (offence.kind, offence.place, offence.needed) == (Kind.OWNERS_WORD, "one.example", timedelta(hours=1))
    assert kinds(Place.HOST, request(10), request(3610), demands=[slowed(3600)]) == []


def test_the_owner_may_speak_of_a_site() -> None:
    told = [slowed(60, place="serial")]
    assert kinds(Place.SITE, of_site(10), of_site(69), demands=told) == [Kind.OWNERS_WORD]
    assert kinds(Place.SITE, of_site(10), of_site(70), demands=told) == []


def test_a_word_binds_the_time_in_which_it_held_and_no_other() -> None:
    held = [slowed(60, since=100, until=200)]
    requests = [request(sent) for sent in (90, 95, 150, 155, 200, 205)]
    assert [offence.later_at for offence in offences(Place.HOST, requests, held)] == [at(150), at(155)]
    assert kinds(Place.HOST, request(90), request(101, claimed_at=at(99)), demands=held) == []
    assert kinds(Place.HOST, request(190), request(200, claimed_at=at(199)), demands=held) == []


def test_a_request_to_a_blocked_host_is_named_without_an_end() -> None:
    offence = only(Place.HOST, request(5), demands=[blocked()])
    assert (offence.kind, offence.earlier_at, offence.needed) == (Kind.OWNERS_WORD, at(0), None)
    assert str(offence) == (
        "owner's word: one.example: asked sooner than the owner had said: 5.000 s from 2026-03-01T12:00:00+00:00 "
        "to 2026-03-01T12:00:05+00:00, and none was allowed (Series 7, machine attic)"
    )


def test_a_block_binds_from_when_it_was_said_until_it_ended() -> None:
    said = [blocked(since=10, until=100)]
    assert kinds(Place.HOST, request(9), request(11, claimed_at=at(9.9)), request(100), demands=said) == []
    offence = only(Place.HOST, request(99), demands=said)
    assert (offence.kind, offence.needed) == (Kind.OWNERS_WORD, timedelta(seconds=90))
