"""The rules of the audit, one by one, over requests as they might have been sent."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from lanes.core import audit
from lanes.core.audit import Kind, Place, offences
from tests.requests_sent import SECOND, at, blocked, crawl_delay, kinds, of_site, only, refused, request

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
    assert "0.900 s from 12:00:00 to 12:00:00, and" in offence.words(lambda instant: f"{instant:%H:%M:%S}")


def test_the_interval_in_force_for_the_later_one_decides() -> None:
    minute = timedelta(seconds=60)
    assert kinds(Place.HOST, request(0, host_pace=minute), request(1)) == []
    assert kinds(Place.HOST, request(0), request(1, host_pace=minute)) == [Kind.HOST]


def test_a_difference_between_two_clocks_is_no_offence() -> None:
    assert kinds(Place.HOST, request(0), request(0.998)) == []
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


def test_of_two_fetches_in_hand_the_one_that_ends_last_is_told() -> None:
    told = list(offences(Place.HOST, [request(0, took=9), request(2, took=5), request(4)]))
    assert [(each.earlier_at, each.needed) for each in told] == [(at(0), 9 * SECOND)] * 2


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


def test_a_longer_wait_that_began_earlier_is_not_hidden_by_one_that_came_later() -> None:
    short, long = request(0, took=10, series_wait_until=at(100)), request(1, took=4, series_wait_until=at(200))
    offence = only(Place.SERIES, short, long, request(150))
    assert (offence.earlier_at, offence.needed) == (at(5), timedelta(seconds=195))


def test_of_two_waits_the_one_that_is_over_last_is_told() -> None:
    short, long = request(0, series_wait_until=at(100)), request(1, series_wait_until=at(200))
    told = list(offences(Place.SERIES, [short, long, request(50)]))
    assert [each.earlier_at for each in told] == [at(0.1), at(1.1)]


def test_a_short_wait_that_comes_last_hides_no_longer_one() -> None:
    waits = [request(n, series_wait_until=at(until)) for n, until in enumerate((100, 300, 200))]
    assert kinds(Place.SERIES, *waits, request(250)) == [Kind.RETRY_AFTER] * 3


def test_of_two_waits_that_are_over_at_once_the_earlier_is_told() -> None:
    offence = only(
        Place.SERIES, request(0, series_wait_until=at(100)), request(0, 1, series_wait_until=at(100)), request(50)
    )
    assert offence.earlier_at == at(0.1)


def test_a_wait_of_a_series_binds_that_series_and_not_its_host() -> None:
    """CASES B1: `/a` waits, `/b` of the same host is still polled."""
    told = request(0, series_wait_until=at(1500))
    assert kinds(Place.HOST, told, request(2, series_id=8)) == []
    offence = only(Place.SERIES, replace(told, place="7"), request(1000, place="7"))
    assert (offence.kind, offence.place) == (Kind.RETRY_AFTER, "Series 7 at one.example")
    assert kinds(Place.SERIES, replace(told, place="7"), request(1000, place="8"), request(1500, place="9")) == []


# The Gap of a Site


def test_two_starts_of_one_site_closer_than_its_gap_are_named() -> None:
    offence = only(Place.SITE, of_site(0), of_site(9.9, host="img.one.example", machine="cellar"))
    assert (offence.kind, offence.place, offence.machine) == (Kind.GAP, "serial", "cellar")
    assert (offence.earlier_at, offence.later_at, offence.needed) == (at(0), at(9.9), timedelta(seconds=10))
    assert kinds(Place.SITE, of_site(0), of_site(10)) == []


def test_the_gap_in_force_for_the_later_one_decides() -> None:
    """The effective Gap shrinks when more Series are followed, and grows again."""
    assert kinds(Place.SITE, of_site(0), of_site(2, gap=2)) == []
    assert kinds(Place.SITE, of_site(0, gap=2), of_site(2)) == [Kind.GAP]


def test_a_request_of_a_site_without_a_gap_comes_as_soon_as_it_likes() -> None:
    assert kinds(Place.SITE, of_site(0, gap=None), of_site(0.1, gap=None)) == []


def test_the_hops_of_one_poll_keep_the_gap_too() -> None:
    assert kinds(Place.SITE, of_site(0, token="chain"), of_site(1, token="chain", claimed_at=at(0))) == [Kind.GAP]


# Refusal windows


def test_a_request_inside_a_refusal_window_of_its_host_is_named() -> None:
    offence = only(Place.HOST, refused(0, until=900), request(899, machine="cellar"))
    assert (offence.kind, offence.place, offence.machine) == (Kind.REFUSAL, "one.example", "cellar")
    assert (offence.earlier_at, offence.later_at) == (at(0.1), at(899))
    assert offence.needed == timedelta(seconds=899.9)
    assert kinds(Place.HOST, refused(0, until=900), request(900)) == []


def test_a_request_inside_a_refusal_window_of_its_lane_is_named() -> None:
    opening = refused(0, until=900, place="serial", host_wait_until=None, lane_wait_until=at(900))
    offence = only(Place.SITE, opening, request(500, place="serial", host="img.one.example"))
    assert (offence.kind, offence.place) == (Kind.REFUSAL, "serial")
    assert kinds(Place.SITE, opening, request(900, place="serial")) == []
    assert kinds(Place.HOST, replace(opening, place="one.example"), request(500)) == []


def test_a_request_that_was_claimed_before_the_refusal_was_known_offends_nobody() -> None:
    in_hand = request(8, claimed_at=at(5))
    assert kinds(Place.HOST, refused(0, until=900, took=5), in_hand) == []
    assert kinds(Place.HOST, refused(0, until=900, took=5), replace(in_hand, claimed_at=at(5.09))) == []
    assert kinds(Place.HOST, refused(0, until=900, took=5), replace(in_hand, claimed_at=at(5.1))) == [Kind.REFUSAL]


def test_who_was_claimed_late_does_not_make_the_window_known_to_who_was_claimed_early() -> None:
    opening = refused(0, until=900, took=5)
    assert kinds(Place.HOST, opening, request(20), request(30, claimed_at=at(4))) == [Kind.REFUSAL]


def test_a_wait_that_a_refused_url_has_alone_binds_its_series() -> None:
    """A URL refused alone waits by itself."""
    alone = refused(0, until=0, host_wait_until=None, series_wait_until=at(900), place="7")
    offence = only(Place.SERIES, alone, request(100, place="7"))
    assert (offence.kind, offence.place) == (Kind.REFUSAL, "Series 7 at one.example")
    assert kinds(Place.SERIES, alone, request(900, place="7")) == []


def test_a_good_read_sent_inside_the_window_ends_it_when_it_ends() -> None:
    """A good read resets only what began before it was sent."""
    opening = refused(0, until=900, took=5, lane_wait_until=at(900))
    good = request(6, took=2, claimed_at=at(0))
    assert kinds(Place.SITE, opening, good, request(8)) == []
    assert kinds(Place.SITE, opening, good, request(7.9)) == [Kind.REFUSAL]
    assert kinds(Place.SITE, opening, replace(good, outcome="failed"), request(8)) == [Kind.REFUSAL]
    assert kinds(Place.SITE, opening, replace(good, sent_at=at(4.9)), request(8)) == [Kind.REFUSAL]


def test_a_good_read_makes_no_window_longer() -> None:
    slow = request(10, took=50, claimed_at=at(0))
    assert kinds(Place.SITE, refused(0, until=20, lane_wait_until=at(20)), slow, request(20)) == []


@pytest.mark.parametrize("outcome", ["new", "unchanged", "feed found"])
def test_each_good_outcome_ends_a_window(outcome: str) -> None:
    good = request(6, took=2, claimed_at=at(0), outcome=outcome)
    assert kinds(Place.SITE, refused(0, until=900, took=5, lane_wait_until=at(900)), good, request(8)) == []


def test_a_good_read_ends_no_wait_that_was_asked_for() -> None:
    told = request(0, host_wait_until=at(60))
    assert kinds(Place.HOST, told, request(5), request(10)) == [Kind.RETRY_AFTER] * 2


def test_a_doubled_window_binds_to_its_own_end() -> None:
    probe = refused(900, until=2700)
    assert kinds(Place.HOST, refused(0, until=900), probe, request(2699)) == [Kind.REFUSAL]
    assert kinds(Place.HOST, refused(0, until=900), probe, request(2700)) == []


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
    hosts = [
        request(0, 9),
        request(0.5),
        request(10, host_wait_until=at(99)),
        request(20),
        refused(100, until=900),
        request(200),
    ]
    told = {
        *offences(Place.HOST, hosts, [crawl_delay(2), blocked(since=150)]),
        *offences(Place.ADDRESS, [request(0), request(0.1)]),
        *offences(Place.SITE, [request(0), request(9, lane_gap=timedelta(seconds=10))]),
    }
    assert {offence.kind for offence in told} == set(Kind)
    assert all(str(offence).startswith(f"{offence.kind}: one.example: ") for offence in told)


def test_a_report_without_an_offence_is_clean() -> None:
    offence = only(Place.HOST, request(0), request(0.5, token="poll at 0"))
    assert audit.Report(2, 1, 1, None, {}).clean
    assert not audit.Report(2, 1, 1, offence, {Kind.HOST: 1}).clean


def test_requests_are_judged_one_by_one_without_being_kept() -> None:
    rules = audit.RULES[Place.HOST]()
    sent = [
        request(10.0 * n, host_wait_until=at(10.0 * n + 5), outcome="refused" if n % 2 else "asked to wait")
        for n in range(1000)
    ]
    assert all(later.sent_at > earlier.sent_at for earlier, later in pairwise(sent))
    assert [rule.see(each) for each in sent for rule in rules] == [None] * 4000
    _, one_at_a_time, asked, windows = rules
    assert isinstance(one_at_a_time, audit.OneAtATime)
    assert isinstance(asked, audit.Waits)
    assert isinstance(windows, audit.Waits)
    assert len(one_at_a_time.in_hand) == 1
    assert len(asked.laid) + len(windows.laid) <= 2


def test_of_many_waits_at_once_only_those_are_kept_that_may_still_bind() -> None:
    waits = audit.Waits(Kind.RETRY_AFTER, lambda each: each.host_wait_until, lambda each: each.sent_at)
    for n in range(100):
        waits.see(request(float(n), host_wait_until=at(1000 - n)))
    assert waits.laid == [(at(0.1), at(1000))]
    assert waits.see(request(1000)) is None
    assert waits.laid == []
