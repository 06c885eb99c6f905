"""The rules of the audit, one by one, over requests as they might have been sent."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from lanes.core import audit
from lanes.core.audit import Kind, Offence, Place, Request, offences

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def request(
    sent: float, took: float = 0.1, *, token: str | None = None, place: str = "one.example", **given: Any
) -> Request:
    """A request to one host whose interval is a second, of a Poll of its own that was claimed when it was sent."""
    whole: dict[str, Any] = {
        "place": place, "host": "one.example", "series_id": 7, "machine": "attic", "token": token or f"poll at {sent}",
        "claimed_at": at(sent), "sent_at": at(sent), "ended_at": at(sent + took), "host_pace": SECOND,
    }  # fmt: skip
    return Request(**whole | given)


def kinds(place: Place, *requests: Request) -> list[Kind]:
    return [offence.kind for offence in offences(place, requests)]


def only(place: Place, *requests: Request) -> Offence:
    (offence,) = offences(place, requests)
    return offence


# Spacing at a host


def test_starts_an_interval_apart_offend_nobody() -> None:
    assert kinds(Place.HOST, request(0), request(1), request(2.5)) == []


def test_two_starts_closer_than_the_host_interval_are_named_with_both_instants() -> None:
    offence = only(Place.HOST, request(0), request(0.9, machine="cellar", series_id=8))
    assert (offence.kind, offence.place) == (Kind.HOST, "one.example")
    assert (offence.earlier_at, offence.later_at) == (at(0), at(0.9))
    assert (offence.found, offence.needed) == (timedelta(seconds=0.9), SECOND)
    assert (offence.machine, offence.series_id) == ("cellar", 8)
    assert str(offence) == (
        "host: one.example: two starts at one host, closer than its interval: 0.900 s from 2026-03-01T12:00:00+00:00 "
        "to 2026-03-01T12:00:00.900000+00:00, and 1.000 s were needed (Series 8, machine cellar)"
    )


def test_the_interval_in_force_for_the_later_one_decides() -> None:
    minute = timedelta(seconds=60)
    assert kinds(Place.HOST, request(0, host_pace=minute), request(1)) == []
    assert kinds(Place.HOST, request(0), request(1, host_pace=minute)) == [Kind.HOST]


def test_a_difference_between_two_clocks_is_no_offence() -> None:
    assert kinds(Place.HOST, request(0), request(0.999)) == []
    assert kinds(Place.HOST, request(0), request(0.997)) == [Kind.HOST]


def test_identical_instants_are_two_offences_at_once() -> None:
    assert kinds(Place.HOST, request(0, token="a"), request(0, token="b")) == [Kind.HOST, Kind.TWO_AT_ONCE]


def test_two_hosts_owe_each_other_nothing() -> None:
    assert kinds(Place.HOST, request(0), request(0.1, place="two.example")) == []


def test_hops_of_one_poll_keep_the_interval_but_are_not_two_at_once() -> None:
    chain = [request(0, 3, token="chain"), request(1, 2, token="chain", claimed_at=at(0))]
    assert kinds(Place.HOST, *chain) == []
    hasty = replace(chain[1], sent_at=at(0.3))
    assert kinds(Place.HOST, chain[0], hasty) == [Kind.HOST]


# Two at once


def test_a_start_while_another_poll_is_in_hand_there_is_named() -> None:
    offence = only(Place.HOST, request(0, took=5), request(2))
    assert (offence.kind, offence.earlier_at, offence.later_at) == (Kind.TWO_AT_ONCE, at(0), at(2))
    assert (offence.found, offence.needed) == (2 * SECOND, 5 * SECOND)


def test_a_long_fetch_is_seen_behind_a_short_one() -> None:
    assert kinds(Place.HOST, request(0, took=9), request(2, took=0.1), request(4)) == [Kind.TWO_AT_ONCE] * 2


def test_a_host_is_in_hand_until_the_last_hop_of_its_poll_ended() -> None:
    chain = [request(0, took=4, token="chain"), request(1, took=3, token="chain", claimed_at=at(0))]
    assert kinds(Place.HOST, *chain, request(3)) == [Kind.TWO_AT_ONCE]
    assert kinds(Place.HOST, *chain, request(4)) == []


def test_a_suspended_worker_holds_its_host_no_longer_than_its_lease() -> None:
    """CASES B14: the first worker wakes long after its lease; another has asked the host meanwhile."""
    asleep = request(0, took=3600)
    assert kinds(Place.HOST, asleep, request(89)) == [Kind.TWO_AT_ONCE]
    assert kinds(Place.HOST, asleep, request(90)) == []


def test_a_request_whose_end_is_unknown_holds_nobody_up() -> None:
    assert kinds(Place.HOST, request(0, ended_at=None), request(1)) == []


# Addresses


def test_starts_at_one_address_are_four_tenths_of_a_second_apart() -> None:
    """CASES B16: hosts that share an address share its pace."""
    first = request(0, place="127.1.0.1")
    assert kinds(Place.ADDRESS, first, request(0.4, place="127.1.0.1", host="two.example")) == []
    offence = only(Place.ADDRESS, first, request(0.39, place="127.1.0.1", host="two.example"))
    assert (offence.kind, offence.place, offence.needed) == (Kind.ADDRESS, "127.1.0.1", timedelta(seconds=0.4))


def test_at_an_address_several_hosts_may_be_in_hand_at_once() -> None:
    assert kinds(Place.ADDRESS, *(request(n, took=30, place="127.1.0.1", host=f"{n}.example") for n in range(9))) == []


# Waits


def test_a_request_while_its_host_had_asked_to_wait_is_named() -> None:
    """CASES B2: whoever sends it, the wait of the host counts."""
    told = request(0, host_wait_until=at(60))
    offence = only(Place.HOST, told, request(59, machine="cellar"))
    assert (offence.kind, offence.place, offence.machine) == (Kind.RETRY_AFTER, "one.example", "cellar")
    assert (offence.earlier_at, offence.later_at) == (at(0.1), at(59))
    assert kinds(Place.HOST, told, request(60)) == []


def test_a_wait_binds_from_the_end_of_the_answer_that_laid_it() -> None:
    late = request(0, took=80, host_wait_until=at(600))
    assert kinds(Place.HOST, late, request(79.9)) == [Kind.TWO_AT_ONCE]
    assert kinds(Place.HOST, late, request(80)) == [Kind.RETRY_AFTER]


def test_a_shorter_wait_does_not_end_a_longer_one() -> None:
    long, short = request(0, host_wait_until=at(600)), request(700, host_wait_until=at(710))
    assert (
        kinds(Place.HOST, long, replace(short, sent_at=at(20), ended_at=at(21), host_wait_until=at(30)), request(300))
        == [Kind.RETRY_AFTER] * 2
    )
    assert kinds(Place.HOST, long, short, request(710)) == []


def test_a_wait_of_a_series_binds_that_series_and_not_its_host() -> None:
    """CASES B1: `/a` waits, `/b` of the same host is still polled."""
    told = request(0, series_wait_until=at(1500))
    assert kinds(Place.HOST, told, request(2, series_id=8)) == []
    offence = only(Place.SERIES, replace(told, place="7"), request(1000, place="7"))
    assert (offence.kind, offence.place) == (Kind.RETRY_AFTER, "Series 7 at one.example")
    assert kinds(Place.SERIES, replace(told, place="7"), request(1000, place="8"), request(1500, place="9")) == []


# All together


def test_each_offence_is_told_and_not_only_the_first() -> None:
    requests = [
        request(0),
        request(0.5),
        request(5, took=9),
        request(7),
        request(20, host_wait_until=at(99)),
        request(30),
    ]
    assert kinds(Place.HOST, *requests) == [Kind.HOST, Kind.TWO_AT_ONCE, Kind.RETRY_AFTER]


def test_every_kind_is_known_by_some_place_and_says_so_in_words() -> None:
    told = {
        *offences(Place.HOST, [request(0, 9), request(0.5), request(10, host_wait_until=at(99)), request(20)]),
        *offences(Place.ADDRESS, [request(0), request(0.1)]),
    }
    assert {offence.kind for offence in told} == set(Kind)
    assert all(str(offence).startswith(f"{offence.kind}: one.example: ") for offence in told)


def test_requests_are_judged_one_by_one_without_being_kept() -> None:
    rules = audit.RULES[Place.HOST]()
    sent = [request(10.0 * n, host_wait_until=at(10.0 * n + 5)) for n in range(1000)]
    assert all(later.sent_at > earlier.sent_at for earlier, later in pairwise(sent))
    assert [rule.see(each) for each in sent for rule in rules] == [None] * 3000
    _, one_at_a_time, waits = rules
    assert isinstance(one_at_a_time, audit.OneAtATime)
    assert isinstance(waits, audit.Waits)
    assert (len(one_at_a_time.in_hand), len(waits.coming)) == (1, 1)
