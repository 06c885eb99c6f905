"""Each thing owed has one event: the same for the same thing, another for any other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from lanes.core import notices

AT = datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=UTC)
OF_A_SERIES = (
    notices.new_chapters, notices.stopped, notices.moved, notices.back_again, notices.disallowed, notices.refused_alone,
)  # fmt: skip


def test_no_two_things_share_an_event() -> None:
    instants = (AT, AT + timedelta(microseconds=1))
    events = [word(series, at) for word in OF_A_SERIES for series in (1, 11) for at in instants]
    events += [word(number) for word in (notices.incident, notices.incident_over) for number in (1, 11)]
    assert len(set(events)) == len(events)


def test_an_event_knows_no_time_zone() -> None:
    elsewhere = AT.astimezone(timezone(timedelta(hours=-8)))
    assert notices.stopped(7, AT) == notices.stopped(7, elsewhere) == "stopped:7:2026-03-01T12:00:00.000005+00:00"


def test_the_words_of_an_incident_are_what_the_contract_says() -> None:
    assert (notices.incident(4), notices.incident_over(4)) == ("incident:4", "incident-over:4")


def test_every_kind_is_a_word_of_its_own() -> None:
    assert len({kind.value for kind in notices.Kind}) == len(notices.Kind)
    assert all(kind.value == kind.value.lower() for kind in notices.Kind)


def test_one_notice_names_fifty_things_at_most() -> None:
    assert notices.MOST_NAMED == 50
