"""What comes of age without a Poll: who is told of trouble, and what is given up (DESIGN 4.4, 5.4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from lanes.core import notices
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from lanes.store.upkeep import UpkeepStore
from lanes.upkeep import DUTIES
from tests.answers import a_response
from tests.fix_database import Clock
from tests.rows import DAY, HOUR, MINUTE, Rows, settle, take

AGES = ("tell-owner", "tell-readers", "tell-of-ends", "give-up", "judge", "end-lost-lines", "end-deserted")


class Trouble:
    """A host in trouble, the Series there, and a day's work of upkeep."""

    def __init__(self, rows: Rows, database: Database, clock: Clock) -> None:
        self.rows, self.clock, self.store = rows, clock, UpkeepStore(database)

    def series(self, host_id: int, *readers: str, **facts: Any) -> int:
        """A Series that answered well an hour before now."""
        now = self.rows.now()
        plain: dict[str, Any] = {
            "bookmarks": 0,
            "added_at": now - DAY,
            "good_at": now - HOUR,
            "latest_checked_at": now - HOUR,
        }
        series_id = self.rows.series(host_id, **plain | facts)
        for reader in readers:
            self.rows.bookmark(series_id, reader)
        return series_id

    def incident(self, host_id: int | None, whose: str = "site", site: str = "feeds", kind: str = "404") -> int:
        """Trouble that begins now."""
        incident_id: int = self.rows.one(
            "INSERT INTO lanes.incidents (whose, site, host_id, kind, started_at) VALUES (%s, %s, %s, %s, lanes.now()) RETURNING id",
            whose, site, host_id, kind,
        )  # fmt: skip
        return incident_id

    def ends(self, incident_id: int) -> None:
        self.rows("UPDATE lanes.incidents SET ended_at = lanes.now() WHERE id = %s", incident_id)

    def answers_well(self, *series_ids: int) -> None:
        for series_id in series_ids:
            self.rows("UPDATE lanes.series SET good_at = lanes.now(), refused_since = NULL WHERE id = %s", series_id)

    def upkeep(self) -> None:
        """Every duty of age, twice: nothing is owed twice."""
        for duty in [duty for duty in DUTIES if duty.name in AGES] * 2:
            for _ in duty.run(self.store):
                pass

    def told(self, *kinds: str) -> list[tuple[str | None, str]]:
        """Reader and kind of every Notice, in the order in which they were made; of these kinds alone where any is named."""
        found = self.rows(
            "SELECT r.name, n.kind FROM lanes.notices n LEFT JOIN lanes.readers r ON r.id = n.reader_id ORDER BY n.id"
        )
        return [(row.name, row.kind) for row in found if not kinds or row.kind in kinds]

    def notice(self, kind: str, reader: str) -> Any:
        (row,) = self.rows(
            "SELECT n.* FROM lanes.notices n JOIN lanes.readers r ON r.id = n.reader_id WHERE n.kind = %s AND r.name = %s",
            kind, reader,
        )  # fmt: skip
        return row

    def retired(self) -> dict[int, str]:
        found = self.rows("SELECT id, retired_reason FROM lanes.series WHERE retired_at IS NOT NULL")
        return {row.id: row.retired_reason for row in found}


@pytest.fixture
def trouble(rows: Rows, database: Database, clock: Clock) -> Trouble:
    return Trouble(rows, database, clock)


def test_after_three_days_of_an_incident_each_reader_is_told_once_for_all_they_follow_there(trouble: Trouble) -> None:
    """CASES A3, its third day."""
    host, elsewhere = trouble.rows.host("down.test"), trouble.rows.host()
    dead = [trouble.series(host, "ann", "bob", key=f"dead-{n}", title=f"Dead {n}") for n in range(3)]
    trouble.series(elsewhere, "carl")
    incident = trouble.incident(host)
    since = trouble.rows.now()
    trouble.clock.advance(3 * DAY - MINUTE)
    trouble.upkeep()
    assert trouble.told() == []
    trouble.clock.advance(MINUTE)
    trouble.upkeep()
    trouble.clock.advance(DAY)
    trouble.upkeep()
    assert trouble.told() == [("ann", "dead"), ("bob", "dead")]
    told = trouble.notice("dead", "ann")
    assert told.event == notices.incident(incident)
    assert (told.body["site"], told.body["host"], told.body["count"]) == ("feeds", "down.test", len(dead))
    assert [each["key"] for each in told.body["series"]] == ["dead-0", "dead-1", "dead-2"]
    assert abs(datetime.fromisoformat(told.body["since"]) - since) < MINUTE


def test_who_reads_what_still_answers_is_told_nothing(trouble: Trouble) -> None:
    host = trouble.rows.host()
    trouble.series(host, "ann")
    alive = trouble.series(host, "bob")
    trouble.series(host, "paul", paused_at=trouble.rows.now())
    muted = trouble.series(host, "mute")
    trouble.rows("UPDATE lanes.bookmarks SET muted = true WHERE series_id = %s", muted)
    trouble.incident(host)
    trouble.clock.advance(3 * DAY)
    trouble.answers_well(alive)
    trouble.upkeep()
    assert trouble.told() == [("ann", "dead")]


def test_a_series_that_the_trouble_reached_later_is_told_when_its_own_three_days_are_over(trouble: Trouble) -> None:
    host = trouble.rows.host()
    trouble.series(host, "ann")
    late = trouble.series(host, "bob")
    trouble.incident(host)
    trouble.clock.advance(HOUR)
    trouble.answers_well(late)
    trouble.clock.advance(3 * DAY - HOUR)
    trouble.upkeep()
    assert trouble.told() == [("ann", "dead")]
    trouble.clock.advance(HOUR)
    trouble.upkeep()
    assert trouble.told() == [("ann", "dead"), ("bob", "dead")]


def test_who_bookmarks_after_the_readers_were_told_is_not_told(trouble: Trouble) -> None:
    host = trouble.rows.host()
    series = trouble.series(host, "ann")
    trouble.incident(host)
    trouble.clock.advance(3 * DAY)
    trouble.upkeep()
    trouble.clock.advance(DAY)
    trouble.rows.bookmark(series, "late")
    trouble.clock.advance(5 * DAY)
    trouble.upkeep()
    assert trouble.told() == [("ann", "dead")]


def test_the_end_is_told_to_those_who_were_told_and_to_nobody_else(trouble: Trouble) -> None:
    host = trouble.rows.host()
    series = [trouble.series(host, "ann", key="ill"), trouble.series(host, "bob")]
    well = trouble.series(host, "ann", "bob", key="well")
    incident = trouble.incident(host)
    trouble.clock.advance(3 * DAY)
    trouble.answers_well(well)
    trouble.upkeep()
    trouble.rows.bookmark(series[1], "late")
    trouble.ends(incident)
    trouble.answers_well(*series)
    trouble.upkeep()
    assert trouble.told("back again") == [("ann", "back again"), ("bob", "back again")]
    told = trouble.notice("back again", "ann")
    assert told.event == notices.incident_over(incident)
    assert [each["key"] for each in told.body["series"]] == ["ill"]


def test_an_incident_that_ends_before_its_third_day_is_nobodys_news(trouble: Trouble) -> None:
    host = trouble.rows.host()
    series = trouble.series(host, "ann")
    incident = trouble.incident(host)
    trouble.clock.advance(2 * DAY)
    trouble.ends(incident)
    trouble.answers_well(series)
    trouble.upkeep()
    trouble.clock.advance(30 * DAY)
    trouble.upkeep()
    assert trouble.told() == []
    assert trouble.retired() == {}


def test_two_of_three_feeds_dead_for_sixty_days_retire_the_third_lives_on_and_the_incident_ends(
    trouble: Trouble,
) -> None:
    """CASES A16."""
    host = trouble.rows.host(failing="404")
    dead = [trouble.series(host, "ann", "bob"), trouble.series(host, "ann")]
    alive = trouble.series(host, "ann", "carl")
    incident = trouble.incident(host)
    trouble.rows("UPDATE lanes.series SET spared_by = %s WHERE id = ANY (%s)", incident, dead)
    since = trouble.rows.now().isoformat()
    answers = f'[[{dead[0]}, "404", "{since}"], [{alive}, null, null], [{dead[1]}, "404", "{since}"]]'
    trouble.rows("UPDATE lanes.hosts SET answers = %s::jsonb WHERE id = %s", answers, host)
    for _ in range(60):
        trouble.clock.advance(DAY)
        trouble.answers_well(alive)
        trouble.upkeep()
        if trouble.retired():
            break
    assert trouble.retired() == dict.fromkeys(dead, "site gone")
    assert trouble.told("stopped") == [("ann", "stopped"), ("bob", "stopped"), ("ann", "stopped")]
    row = trouble.rows.the_host(host)
    assert (row.answers, row.failing) == ([[alive, None, None]], None)
    assert trouble.rows.one("SELECT ended_at - started_at FROM lanes.incidents WHERE id = %s", incident) >= 30 * DAY
    assert trouble.rows.the_series(dead[0]).spared_by is None
    assert trouble.told("incident over") == [(None, "incident over")]
    trouble.clock.advance(30 * DAY)
    trouble.answers_well(alive)
    trouble.upkeep()
    assert trouble.told("back again") == []
    assert set(trouble.retired()) == set(dead)


def test_while_the_rest_of_a_host_fails_as_well_its_incident_goes_on(trouble: Trouble) -> None:
    host = trouble.rows.host(failing="404")
    dead = trouble.series(host, "ann")
    young = [trouble.series(host, "bob") for _ in range(3)]
    incident = trouble.incident(host)
    failing = ", ".join(f'[{each}, "404", "2026-01-01T00:00:00+00:00"]' for each in (dead, *young))
    trouble.rows("UPDATE lanes.hosts SET answers = %s::jsonb WHERE id = %s", f"[{failing}]", host)
    trouble.clock.advance(10 * DAY)
    trouble.answers_well(*young)
    trouble.clock.advance(20 * DAY)
    trouble.upkeep()
    assert trouble.retired() == {dead: "site gone"}
    assert trouble.rows.the_host(host).failing == "404"
    assert trouble.rows.one("SELECT ended_at FROM lanes.incidents WHERE id = %s", incident) is None


def test_what_was_revived_in_the_middle_of_an_incident_has_its_thirty_days_again(trouble: Trouble) -> None:
    """CASES A8."""
    host = trouble.rows.host()
    series = trouble.series(host, "ann")
    trouble.incident(host)
    trouble.clock.advance(20 * DAY)
    trouble.upkeep()
    trouble.rows("UPDATE lanes.series SET revived_at = lanes.now() WHERE id = %s", series)
    trouble.clock.advance(29 * DAY)
    trouble.upkeep()
    assert trouble.retired() == {}
    trouble.clock.advance(DAY)
    trouble.upkeep()
    assert trouble.retired() == {series: "site gone"}
    assert trouble.told("stopped") == [("ann", "stopped")]


def test_what_nobody_reads_or_the_owner_paused_is_not_given_up(trouble: Trouble) -> None:
    """CASES A9."""
    host = trouble.rows.host()
    trouble.series(host)
    trouble.series(host, "ann", paused_at=trouble.rows.now())
    trouble.incident(host)
    trouble.clock.advance(40 * DAY)
    trouble.upkeep()
    assert trouble.retired() == {}


def test_a_refused_host_tells_its_readers_once_after_three_days_and_is_given_up_after_thirty(trouble: Trouble) -> None:
    """CASES A11: its URL was refused alone before the window opened, and yet nobody is told twice."""
    host = trouble.rows.host()
    series = trouble.series(host, "ann")
    trouble.rows.set_series(series, refused_since=trouble.rows.now(), refusals=1)
    trouble.clock.advance(15 * MINUTE)
    trouble.incident(host, "refusal", kind="refused")
    for _ in range(29):
        trouble.clock.advance(DAY)
        trouble.upkeep()
    assert trouble.told("refused", "stopped") == [("ann", "refused")]
    assert trouble.retired() == {}
    trouble.clock.advance(DAY)
    trouble.upkeep()
    assert trouble.retired() == {series: "site gone"}
    assert trouble.told("refused", "stopped") == [("ann", "refused"), ("ann", "stopped")]
    assert trouble.notice("stopped", "ann").body["reason"] == "site gone"


def test_a_site_that_refuses_concerns_the_series_of_all_its_hosts_and_of_no_other_site(trouble: Trouble) -> None:
    here = [trouble.series(trouble.rows.host(site="comics"), "ann", site="comics") for _ in range(2)]
    trouble.series(trouble.rows.host(), "bob")
    trouble.incident(None, "refusal", "comics", "refused")
    trouble.clock.advance(3 * DAY)
    trouble.upkeep()
    assert trouble.told("refused") == [("ann", "refused")]
    assert trouble.notice("refused", "ann").body["count"] == 2
    trouble.clock.advance(27 * DAY)
    trouble.upkeep()
    assert set(trouble.retired()) == set(here)


def test_more_series_than_a_batch_are_all_given_up(trouble: Trouble) -> None:
    host = trouble.rows.host()
    series = [trouble.series(host, "ann") for _ in range(130)]
    trouble.incident(host)
    trouble.clock.advance(30 * DAY)
    trouble.upkeep()
    assert set(trouble.retired()) == set(series)
    assert len(trouble.told("stopped")) == 130
    body = trouble.notice("dead", "ann").body
    assert (body["count"], len(body["series"])) == (130, notices.MOST_NAMED)


def test_a_url_refused_alone_is_told_after_three_days_and_given_up_after_thirty(trouble: Trouble) -> None:
    host = trouble.rows.host()
    refused, _other = trouble.series(host, "ann", "bob"), trouble.series(host, "carl")
    good_at = trouble.rows.the_series(refused).good_at
    trouble.rows.set_series(refused, refused_since=trouble.rows.now(), refusals=1)
    trouble.clock.advance(3 * DAY - MINUTE)
    trouble.upkeep()
    assert trouble.told() == []
    trouble.clock.advance(MINUTE)
    trouble.upkeep()
    assert trouble.told() == [("ann", "refused"), ("bob", "refused")]
    assert trouble.notice("refused", "ann").event == notices.refused_alone(refused, good_at)
    trouble.clock.advance(27 * DAY)
    trouble.upkeep()
    assert trouble.retired() == {refused: "site gone"}


def test_a_url_that_is_read_again_is_told_to_those_who_knew(trouble: Trouble) -> None:
    series = trouble.series(trouble.rows.host(), "ann")
    good_at = trouble.rows.the_series(series).good_at
    trouble.rows.set_series(series, refused_since=trouble.rows.now(), refusals=1)
    trouble.clock.advance(4 * DAY)
    trouble.upkeep()
    trouble.rows.bookmark(series, "late")
    trouble.clock.advance(DAY)
    trouble.answers_well(series)
    trouble.upkeep()
    assert trouble.told("back again") == [("ann", "back again")]
    assert trouble.notice("back again", "ann").event == notices.back_again(series, good_at)
    trouble.rows.set_series(series, refused_since=trouble.rows.now(), refusals=1)
    trouble.clock.advance(3 * DAY)
    trouble.upkeep()
    assert trouble.told("refused") == [("ann", "refused"), ("ann", "refused"), ("late", "refused")]


def test_a_url_refused_alone_is_told_once_however_often_the_clock_goes_back(trouble: Trouble, store: PollStore) -> None:
    series = trouble.series(trouble.rows.host(), "ann", next_check_at="infinity")
    trouble.rows.set_series(
        series, refused_since=trouble.rows.now() - 4 * DAY, refusals=3, good_at=trouble.rows.now() - 5 * DAY
    )
    trouble.upkeep()
    for _ in range(2):
        store.keep_house()
        trouble.clock.advance(-HOUR)
        assert store.shift_back() is not None
        trouble.upkeep()
    trouble.clock.advance(DAY)
    trouble.upkeep()
    assert trouble.told() == [("ann", "refused")]


def test_what_was_refused_alone_and_given_up_is_back_once(trouble: Trouble, store: PollStore) -> None:
    series = trouble.series(trouble.rows.host(), "ann", next_check_at="infinity")
    trouble.rows.set_series(
        series, refused_since=trouble.rows.now() - 4 * DAY, refusals=3, good_at=trouble.rows.now() - 5 * DAY
    )
    trouble.upkeep()
    trouble.clock.advance(31 * DAY)
    trouble.upkeep()
    assert trouble.retired() == {series: "site gone"}
    claim = take(store)
    assert claim is not None
    settle(store, claim, replace(a_response(304), conditional=True))
    trouble.upkeep()
    assert trouble.told() == [("ann", "refused"), ("ann", "stopped"), ("ann", "back again")]


def test_who_heard_that_a_series_stopped_hears_of_its_revival_and_not_of_the_end_of_the_trouble(
    trouble: Trouble,
) -> None:
    host = trouble.rows.host()
    stopped, goes_on = trouble.series(host, "ann"), trouble.series(host, "bob", paused_at=None)
    incident = trouble.incident(host, "refusal", kind="refused")
    trouble.clock.advance(4 * DAY)
    trouble.upkeep()
    trouble.rows("SELECT lanes.tell_readers(%s, 'stopped', 'stopped:1', '{}')", stopped)
    trouble.answers_well(stopped, goes_on)
    trouble.ends(incident)
    trouble.upkeep()
    assert trouble.told("back again") == [("bob", "back again")]


def test_a_machine_that_went_away_while_its_line_was_down_is_over_after_a_day(trouble: Trouble) -> None:
    rows = trouble.rows
    for machine in ("gone", "here"):
        rows("INSERT INTO lanes.machines (machine, us_since) VALUES (%s, lanes.now())", machine)
        incident = rows.one(
            "INSERT INTO lanes.incidents (whose, machine, started_at) VALUES ('us', %s, lanes.now()) RETURNING id",
            machine,
        )
        rows("SELECT lanes.tell_owner('incident', %s, '{}')", notices.incident(incident))
    trouble.clock.advance(DAY - MINUTE)
    trouble.upkeep()
    assert rows.one("SELECT count(*) FROM lanes.incidents WHERE ended_at IS NULL") == 2
    rows("UPDATE lanes.machines SET probe_at = lanes.now() WHERE machine = 'here'")
    trouble.clock.advance(MINUTE)
    trouble.upkeep()
    assert [row.machine for row in rows("SELECT machine FROM lanes.incidents WHERE ended_at IS NULL")] == ["here"]
    assert rows.one("SELECT us_since FROM lanes.machines WHERE machine = 'gone'") is None
    assert trouble.told("incident over") == [(None, "incident over")]


def test_the_owner_is_told_once_of_a_refusal_over_an_hour(trouble: Trouble) -> None:
    host, short, dead = (trouble.rows.host() for _ in range(3))
    for each in (host, short, dead):
        trouble.series(each, "ann")
    incident = trouble.incident(host, "refusal", kind="refused")
    passing = trouble.incident(short, "refusal", kind="refused")
    trouble.incident(dead)
    trouble.clock.advance(59 * MINUTE)
    trouble.ends(passing)
    trouble.upkeep()
    assert trouble.told() == []
    trouble.clock.advance(MINUTE)
    trouble.upkeep()
    trouble.clock.advance(DAY)
    trouble.upkeep()
    assert trouble.told() == [(None, "refused for an hour")]
    assert trouble.rows.one("SELECT event FROM lanes.notices") == notices.incident(incident)


@pytest.mark.parametrize(("whose", "over"), [("site", "incident over"), ("refusal", "refusal over")])
def test_trouble_where_the_last_series_is_given_up_is_over_and_nothing_came_back(
    trouble: Trouble, whose: str, over: str
) -> None:
    host = trouble.rows.host(failing="404" if whose == "site" else None)
    series = trouble.series(host, "ann", good_at=None)
    incident = trouble.incident(host, whose)
    trouble.rows("SELECT lanes.tell_owner('incident', %s, '{}')", notices.incident(incident))
    trouble.clock.advance(31 * DAY)
    trouble.upkeep()
    assert trouble.rows.the_series(series).retired_reason == "site gone"
    assert trouble.rows.one("SELECT ended_at FROM lanes.incidents") is not None
    assert trouble.rows.the_host(host).failing is None
    assert trouble.told(over) == [(None, over)]
    assert trouble.told("back again") == []


def test_trouble_goes_on_while_one_series_is_polled_there(trouble: Trouble) -> None:
    host = trouble.rows.host()
    trouble.series(host, "ann", paused_at=trouble.rows.now())
    trouble.incident(host)
    trouble.series(host, "ann")
    trouble.upkeep()
    assert trouble.rows.one("SELECT ended_at FROM lanes.incidents") is None


def test_sql_and_core_have_the_same_word_for_an_event(rows: Rows) -> None:
    for instant in (rows.now(), rows.now().replace(microsecond=0)):
        assert rows.one("SELECT lanes.event('refused', 42, %s)", instant) == notices.refused_alone(42, instant)
        assert rows.one("SELECT lanes.event('back', 42, %s)", instant) == notices.back_again(42, instant)
    assert rows.one("SELECT lanes.event('refused', 42, NULL)") == notices.refused_alone(42, None)
