"""The audit over a record in which the clock went back."""

from __future__ import annotations

from datetime import timedelta

from lanes.core.audit import Kind
from lanes.store.polls import PollStore
from tests.fix_database import Clock
from tests.poll_record import NOON, PollRecord, at, counted
from tests.rows import DAY, HOUR, Rows


def shift_back(store: PollStore, clock: Clock, back: timedelta) -> None:
    clock.advance(-back)
    assert store.shift_back() is not None


def test_what_was_sent_before_the_clock_went_back_is_judged_as_the_pace_was_shifted(
    record: PollRecord, rows: Rows, store: PollStore, clock: Clock
) -> None:
    """CASES A13: the hours that come a second time meet the instants of the first."""
    store.keep_house()
    before = (clock.now() - NOON).total_seconds()
    for minute in range(60):
        record.write(before - 60 * minute, host_pace=timedelta(seconds=60))
    record.write(before - 3600, host="two.example", host_wait_until=at(before - 1800))
    shift_back(store, clock, HOUR)
    after = (clock.now() - NOON).total_seconds()
    # Instants that the first hour has too, and between those of it.
    for minute in range(1, 60):
        record.write(after + 60 * minute + 20, host_pace=timedelta(seconds=60))
    record.write(after + 2, host="two.example")
    report = record.audit()
    assert report.first_offence is None
    assert report.requests == 121


def test_a_wait_from_before_the_clock_went_back_still_binds(record: PollRecord, store: PollStore, clock: Clock) -> None:
    """CASES A13: what the shift would forget is found."""
    store.keep_house()
    before = (clock.now() - NOON).total_seconds()
    record.write(before - 5, host_wait_until=at(before + 600))
    shift_back(store, clock, 8 * HOUR)
    shift_back(store, clock, DAY)
    after = (clock.now() - NOON).total_seconds()
    record.write(after + 300)
    record.write(after + 620)
    report = record.audit(since=after)
    assert counted(report) == {Kind.RETRY_AFTER: 1}
    assert report.first_offence is not None
    assert report.first_offence.later_at == at(after + 300)
    assert report.requests == 2


def test_what_latest_seen_missed_is_no_second_fetch_at_once(
    record: PollRecord, rows: Rows, store: PollStore, clock: Clock
) -> None:
    """The clock is noted once a minute only: the last of that minute are shifted to after the shift."""
    store.keep_house()
    noted = (clock.now() - NOON).total_seconds()
    clock.advance(timedelta(seconds=50))
    record.write(noted + 30, took=19)
    shift_back(store, clock, HOUR)
    after = (clock.now() - NOON).total_seconds()
    record.write(after + 40)
    assert record.audit().first_offence is None


def test_a_poll_in_hand_while_the_clock_went_back_is_not_judged(
    record: PollRecord, store: PollStore, clock: Clock
) -> None:
    store.keep_house()
    before = (clock.now() - NOON).total_seconds()
    shift_back(store, clock, HOUR)
    after = (clock.now() - NOON).total_seconds()
    record.write(before, ended_at=at(after))
    record.write(before + 0.5)
    report = record.audit()
    assert report.clean
    assert report.requests == 1


def test_a_word_is_shifted_with_the_pace(record: PollRecord, rows: Rows, store: PollStore, clock: Clock) -> None:
    """CASES A13: a word that had ended binds no hour that comes a second time, and one in force binds on."""
    store.keep_house()
    before = (clock.now() - NOON).total_seconds()
    record.said(None, since=before - 3600, until=before - 60, host_id=rows.host("one.example"))
    record.said(3600, since=before - 3600, host_id=rows.host("two.example"))
    shift_back(store, clock, HOUR)
    after = (clock.now() - NOON).total_seconds()
    record.write(after + 10)
    for sent in (after + 20, after + 30):
        record.write(sent, host="two.example")
    report = record.audit()
    assert counted(report) == {Kind.OWNERS_WORD: 1}
    assert report.first_offence is not None
    assert report.first_offence.place == "two.example"
