"""The audit over real rows: each kind of offence planted and named, and the same rows spaced right are clean."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from lanes.cli import main
from lanes.core.audit import Kind, Report
from lanes.core.outcome import NOT_PUBLIC
from lanes.core.robots import Robots
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from lanes.store.robots import RobotsStore
from tests.fix_database import Clock
from tests.poll_record import NOON, PollRecord, at, counted
from tests.rows import DAY, HOUR, Rows


def test_an_empty_record_is_clean(record: PollRecord) -> None:
    report = record.audit()
    assert report == Report(0, 0, 0, None, dict.fromkeys(Kind, 0))
    assert report.clean


def test_a_record_of_polls_that_were_spaced_right_is_clean(record: PollRecord) -> None:
    chain = uuid4()
    record.write(0)
    record.write(1, machine="cellar", host_wait_until=at(60))
    record.write(60, took=5, token=chain, outcome="redirected")
    record.write(61, took=4, token=chain, hop=1, claimed_at=at(60))
    record.write(65, series_id=8, series_wait_until=at(1500))
    record.write(66)
    record.write(66.4, host="two.example", series_id=9)
    record.write(1500, series_id=8)
    report = record.audit()
    assert report.first_offence is None
    assert (report.requests, report.hosts, report.addresses) == (8, 2, 1)


def test_two_starts_at_a_host_closer_than_its_interval_are_named(record: PollRecord) -> None:
    record.write(0)
    record.write(0.9, machine="cellar", series_id=8)
    report = record.audit()
    assert counted(report) == {Kind.HOST: 1}
    assert report.first_offence is not None
    assert (report.first_offence.place, report.first_offence.later_at) == ("one.example", at(0.9))
    assert (report.first_offence.machine, report.first_offence.series_id) == ("cellar", 8)


def test_two_starts_at_an_address_closer_than_is_promised_are_named(record: PollRecord) -> None:
    record.write(0)
    record.write(0.3, host="two.example")
    report = record.audit()
    assert counted(report) == {Kind.ADDRESS: 1}
    assert report.first_offence is not None
    assert report.first_offence.place == "127.1.0.1"


@pytest.mark.parametrize(("other", "clean"), [("2001:db8:0:1::2", False), ("2001:db8:0:2::1", True)])
def test_an_ipv6_address_is_known_by_its_first_64_bits(record: PollRecord, other: str, clean: bool) -> None:
    record.write(0, address="2001:db8:0:1::1")
    record.write(0.2, host="two.example", address=other)
    report = record.audit()
    assert report.clean is clean
    assert report.addresses == (2 if clean else 1)
    assert clean or report.first_offence is not None
    assert report.first_offence is None or report.first_offence.place == "2001:db8:0:1::/64"


def test_a_request_to_a_host_that_had_asked_to_wait_is_named(record: PollRecord) -> None:
    """CASES B2, from the record: whichever process sent it."""
    record.write(0, outcome="asked to wait", host_wait_until=at(60))
    record.write(59, series_id=8, machine="cellar")
    report = record.audit()
    assert counted(report) == {Kind.RETRY_AFTER: 1}
    assert report.first_offence is not None
    assert report.first_offence.place == "one.example"


@pytest.mark.parametrize(("outcome", "late"), [("blocked", ""), ("abandoned", "; too late")])
def test_a_wait_that_our_own_guard_laid_is_nobodys_demand(record: PollRecord, outcome: str, late: str) -> None:
    """A redirect led to a forbidden address; the Lane was started anew, which lifts that, and asked at once."""
    guarded = f"{NOT_PUBLIC}: 127.2.0.9 (LANES_ALLOW_NETWORKS lets more through){late}"
    record.write(0, outcome=outcome, detail=guarded, series_wait_until=at(86_400))
    record.write(60)
    assert record.audit().clean


def test_a_request_of_a_series_that_was_told_to_wait_is_named_and_its_neighbour_is_not(record: PollRecord) -> None:
    """CASES B1, from the record."""
    record.write(0, outcome="asked to wait", series_wait_until=at(1500))
    record.write(10, series_id=8)
    record.write(1400)
    report = record.audit()
    assert counted(report) == {Kind.RETRY_AFTER: 1}
    assert report.first_offence is not None
    assert (report.first_offence.place, report.first_offence.later_at) == ("Series 7 at one.example", at(1400))


def test_a_request_while_another_is_in_hand_at_its_host_is_named(record: PollRecord) -> None:
    record.write(0, took=5)
    record.write(3, series_id=8)
    report = record.audit()
    assert counted(report) == {Kind.TWO_AT_ONCE: 1}
    assert report.first_offence is not None
    assert report.first_offence.earlier_at == at(0)


GAP = timedelta(seconds=10)


def plant_gap(record: PollRecord, rows: Rows, sent: float) -> None:
    """A second process of one Site that did not share its Gap."""
    record.write(0, site="serial", host="www.serial.test", lane_gap=GAP)
    record.write(sent, site="serial", host="img.serial.test", lane_gap=GAP, machine="cellar")


def plant_gap_of_another_site(record: PollRecord, rows: Rows, sent: float) -> None:
    """A hop of `feeds` into another Site's host that did not spend that Site's Gap."""
    rows.host("www.serial.test", site="serial")
    record.write(0, site="serial", host="www.serial.test", lane_gap=GAP)
    chain = uuid4()
    record.write(sent - 2, took=2, token=chain)
    record.write(sent, token=chain, hop=1, claimed_at=at(sent - 2), host="www.serial.test", lane_gap=GAP)


def plant_crawl_delay(record: PollRecord, rows: Rows, sent: float) -> None:
    """Of two origins of a host one names a delay, and one of two processes did not keep it."""
    host = rows.host("one.example")
    record.read_robots(host, "https://one.example", None, since=-100)
    record.read_robots(host, "http://one.example", 10, since=-100)
    record.write(0)
    record.write(sent, machine="cellar")


def plant_refusal_of_a_host(record: PollRecord, rows: Rows, sent: float) -> None:
    record.write(-890, outcome="refused", host_wait_until=at(10))
    record.write(sent, series_id=8, machine="cellar")


def plant_refusal_of_a_lane(record: PollRecord, rows: Rows, sent: float) -> None:
    record.write(-890, outcome="refused", site="serial", host="www.serial.test", lane_gap=GAP, lane_wait_until=at(10))
    record.write(sent, site="serial", host="img.serial.test", lane_gap=GAP, machine="cellar")


def plant_slowed_host(record: PollRecord, rows: Rows, sent: float) -> None:
    record.said(10, since=-100, host_id=rows.host("one.example"))
    record.write(0)
    record.write(sent, series_id=8, machine="cellar")


def plant_slowed_site(record: PollRecord, rows: Rows, sent: float) -> None:
    rows.enrol("serial")
    record.said(10, since=-100, site="serial")
    record.write(0, site="serial", host="www.serial.test")
    record.write(sent, site="serial", host="img.serial.test", machine="cellar")


def plant_blocked_host(record: PollRecord, rows: Rows, sent: float) -> None:
    record.said(None, since=-100, until=10, host_id=rows.host("one.example"))
    record.write(sent)


PLANTED = [
    (plant_gap, Kind.GAP, "serial"),
    (plant_gap_of_another_site, Kind.GAP, "serial"),
    (plant_crawl_delay, Kind.CRAWL_DELAY, "one.example"),
    (plant_refusal_of_a_host, Kind.REFUSAL, "one.example"),
    (plant_refusal_of_a_lane, Kind.REFUSAL, "serial"),
    (plant_slowed_host, Kind.OWNERS_WORD, "one.example"),
    (plant_slowed_site, Kind.OWNERS_WORD, "serial"),
    (plant_blocked_host, Kind.OWNERS_WORD, "one.example"),
]
Plant = Callable[[PollRecord, Rows, float], None]


@pytest.mark.parametrize(("plant", "kind", "place"), PLANTED)
def test_the_command_names_a_request_that_came_too_soon_and_fails(
    plant: Plant,
    kind: Kind,
    place: str,
    record: PollRecord,
    rows: Rows,
    database_url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(record, rows, 9.5)
    assert counted(record.audit()) == {kind: 1}
    monkeypatch.setenv("LANES_DATABASE_URL", database_url)
    assert main(["audit"]) == 1
    assert capsys.readouterr().out.startswith(f"First offence: {kind}: {place}: ")
    assert main(["audit", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["clean"], told["offences"][kind.value]) == (False, 1)
    assert (told["first_offence"]["kind"], told["first_offence"]["place"]) == (kind.value, place)


@pytest.mark.parametrize(("plant", "kind", "place"), PLANTED)
def test_exactly_when_it_is_allowed_a_request_is_clean(
    plant: Plant, kind: Kind, place: str, record: PollRecord, rows: Rows
) -> None:
    plant(record, rows, 10)
    assert record.audit().first_offence is None, (kind, place)


def test_who_was_claimed_before_the_wait_was_known_is_clean(record: PollRecord, rows: Rows) -> None:
    one, two = rows.host("one.example"), rows.host("two.example")
    record.read_robots(one, "http://one.example", 3600, since=10)
    record.said(3600, since=10, host_id=one)
    record.said(None, since=10, host_id=two)
    record.write(9, claimed_at=at(8.9))
    record.write(10.5, claimed_at=at(9.9))
    record.write(10.9, claimed_at=at(9.9), host="two.example")
    record.write(0, took=10, outcome="refused", site="serial", host="www.serial.test", lane_wait_until=at(900))
    record.write(11.5, claimed_at=at(9.9), site="serial", host="img.serial.test")
    assert record.audit().first_offence is None


def test_a_crawl_delay_that_is_over_binds_nobody(record: PollRecord, rows: Rows) -> None:
    """CASES B9."""
    record.read_robots(rows.host("one.example"), "http://one.example", None, since=-100)
    record.write(0)
    record.write(1)
    assert record.audit().clean


def test_a_crawl_delay_binds_while_its_origin_is_fresh(record: PollRecord, rows: Rows) -> None:
    """Of a host that moved to https the old origin is asked no more."""
    record.read_robots(rows.host("one.example"), "http://one.example", 60, since=-86400)
    record.write(-20)
    record.write(-10)
    record.write(0)
    assert counted(record.audit()) == {Kind.CRAWL_DELAY: 1}


def test_a_crawl_delay_that_was_out_of_force_binds_from_when_it_is_back(
    record: PollRecord, rows: Rows, database: Database, clock: Clock
) -> None:
    """Its origin was not fresh when another of its host was read, and is read again with the same delay."""
    rows.host("one.example")
    robots, minute, now = RobotsStore(database), timedelta(seconds=60), clock.now()
    old, new = (Robots(f"{scheme}://one.example", now, now + HOUR, 200, "", now) for scheme in ("http", "https"))
    robots.keep(replace(old, crawl_delay=minute, crawl_delay_since=now), "one.example", now)
    clock.advance(2 * HOUR)
    robots.keep(replace(new, asked_at=clock.now(), again_at=clock.now() + DAY), "one.example", clock.now())
    after = (clock.now() - NOON).total_seconds() + 10
    for sent in (after, after + 10):
        record.write(sent)
    clock.advance(HOUR)
    again = replace(old, asked_at=clock.now(), again_at=clock.now() + DAY)
    robots.keep(replace(again, crawl_delay=minute, crawl_delay_since=now), "one.example", clock.now())
    assert record.audit().clean
    for sent in (after + 3600, after + 3610):
        record.write(sent)
    assert counted(record.audit()) == {Kind.CRAWL_DELAY: 1}


def test_a_wait_that_was_given_back_binds_nobody(record: PollRecord) -> None:
    """The death of a host that was our own line's: it is asked again before its hour is over."""
    given = {"changed": '{"failures": [2, 3], "given back": [false, true]}', "host_wait_until": at(3600)}
    record.write(0, outcome="failed", **given)
    record.write(60)
    assert record.audit().clean
    record.write(100, outcome="asked to wait", **given)
    record.write(160)
    assert counted(record.audit()) == {Kind.RETRY_AFTER: 1}


def test_a_gap_that_grows_counts_from_the_last_request(
    record: PollRecord, rows: Rows, database: Database, clock: Clock
) -> None:
    """The claim after a Series was removed keeps the wider Gap that is then in its record."""
    lane = PollStore(database, "serial", "here", many_hosts=False)
    lane.enrol()
    lane.set_gap(timedelta(seconds=2))
    asked_at = rows.one(
        "UPDATE lanes.lanes SET next_at = lanes.now() + gap WHERE site = 'serial' RETURNING next_at - gap"
    )
    lane.set_gap(GAP)
    assert rows.one("SELECT next_at FROM lanes.lanes WHERE site = 'serial'") == asked_at + GAP
    lane.set_gap(timedelta(seconds=3))
    assert rows.one("SELECT next_at FROM lanes.lanes WHERE site = 'serial'") == asked_at + GAP


def test_a_word_that_has_ended_still_binds_the_time_in_which_it_held(record: PollRecord, rows: Rows) -> None:
    one = rows.host("one.example")
    record.said(60, since=100, until=200, host_id=one)
    record.said(None, since=300, until=400, host_id=one)
    for sent in (90, 101, 102, 200, 201, 299, 350, 400, 401):
        record.write(sent)
    report = record.audit()
    assert counted(report) == {Kind.OWNERS_WORD: 3}  # at 101, 102 and 350
    assert report.first_offence is not None
    assert report.first_offence.later_at == at(101)


def test_a_word_slower_than_a_day_reaches_over_the_start_of_the_period(record: PollRecord, rows: Rows) -> None:
    week = 7 * 86400
    record.said(week, since=-100, host_id=rows.host("one.example"))
    record.write(0)
    record.write(week - 100)
    assert counted(record.audit(since=week - 200)) == {Kind.OWNERS_WORD: 1}


# The record as a whole


def test_polls_that_wrote_no_request_offend_nobody(record: PollRecord) -> None:
    record.write(0)
    record.write(None, took=90, outcome="abandoned", claimed_at=at(0.1))
    record.write(None, outcome="put back", claimed_at=at(0.2), address=None)
    record.write(1)
    report = record.audit()
    assert report.clean
    assert report.requests == 2


def test_a_poll_that_was_put_back_after_a_request_counts_by_that_request(record: PollRecord) -> None:
    record.write(0, outcome="put back")
    record.write(0.5)
    assert counted(record.audit()) == {Kind.HOST: 1}


def test_the_first_offence_is_the_earliest_of_all_kinds_and_all_are_counted(record: PollRecord) -> None:
    record.write(0, series_id=9, series_wait_until=at(500))
    record.write(100)
    record.write(100.5)
    record.write(50, host="z.example", took=5)
    record.write(52, host="z.example")
    record.write(400, series_id=9)
    report = record.audit()
    assert counted(report) == {Kind.HOST: 1, Kind.TWO_AT_ONCE: 1, Kind.RETRY_AFTER: 1}
    assert report.first_offence is not None
    assert (report.first_offence.kind, report.first_offence.later_at) == (Kind.TWO_AT_ONCE, at(52))


def test_a_period_is_judged_by_what_was_sent_in_it_and_bound_by_what_was_before(record: PollRecord) -> None:
    week = 7 * 86400
    record.write(0)
    record.write(0.5)
    record.write(2, series_id=8, host_wait_until=at(week + 100), series_wait_until=at(week + 100))
    record.write(week + 50)
    record.write(week + 50.5)
    report = record.audit(since=week, until=week + 50.2)
    assert counted(report) == {Kind.RETRY_AFTER: 1}
    assert (report.requests, report.hosts, report.addresses) == (1, 1, 1)


def test_the_interval_reaches_over_the_start_of_the_period(record: PollRecord) -> None:
    record.write(0)
    record.write(0.8)
    assert counted(record.audit(since=0.5)) == {Kind.HOST: 1}


def test_rows_of_every_partition_are_seen(record: PollRecord) -> None:
    with record.database.connection() as connection:
        row = connection.execute(
            "SELECT date_trunc('day', lanes.now(), 'UTC') + interval '1 day' AS midnight"
        ).fetchone()
        assert row is not None
        named = "SELECT count(DISTINCT tableoid) AS n FROM lanes.polls"
    for seconds in (-0.3, 0.3):
        instant = row.midnight + timedelta(seconds=seconds)
        record.write(0, claimed_at=instant, sent_at=instant, ended_at=instant)
    with record.database.connection() as connection:
        partitions = connection.execute(named).fetchone()
    assert partitions is not None
    assert partitions.n == 2
    assert counted(record.audit()) == {Kind.HOST: 1}
