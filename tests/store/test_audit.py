"""The audit over real rows: each kind of offence planted and named, and the same rows spaced right are clean."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from lanes.core.audit import Kind, Report
from lanes.store.audit import audit
from lanes.store.pool import Database

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True)
class PollRecord:
    """Writes rows as the Lanes of any machine would."""

    database: Database

    def write(self, sent: float | None, took: float = 0.1, **given: Any) -> None:
        """A Poll of one request, claimed when it was sent; `sent` None: it wrote none."""
        row = {
            "claimed_at": at(sent or 0), "token": uuid4(), "hop": 0, "series_id": 7, "site": "feeds", "host": "one.example",
            "address": "127.1.0.1", "machine": "attic", "trigger": "its time", "sent_at": None if sent is None else at(sent),
            "ended_at": at((sent or 0) + took), "outcome": "unchanged", "host_pace": timedelta(seconds=1),
            "address_pace": timedelta(seconds=0.5), "host_wait_until": None, "series_wait_until": None,
        } | given  # fmt: skip
        names, places = ", ".join(row), ", ".join(f"%({name})s" for name in row)
        with self.database.connection() as connection:
            connection.execute(f"INSERT INTO lanes.polls ({names}) VALUES ({places})".encode(), row)

    def audit(self, since: float | None = None, until: float | None = None) -> Report:
        return audit(self.database, None if since is None else at(since), None if until is None else at(until))


@pytest.fixture
def record(database: Database) -> PollRecord:
    return PollRecord(database)


def counted(report: Report) -> dict[Kind, int]:
    return {kind: count for kind, count in report.offences.items() if count}


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
