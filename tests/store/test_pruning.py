"""Nothing grows without bound: what goes, and what must not (DESIGN 10)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest

from lanes.store.pool import Database
from lanes.store.upkeep import Day, Record, UpkeepStore
from lanes.upkeep import DUTIES, pruning
from tests.fix_database import Clock
from tests.rows import DAY, HOUR, MINUTE, Rows

GB = 2**30
TODAY = date(2026, 3, 31)


@pytest.fixture
def upkeep(database: Database) -> UpkeepStore:
    return UpkeepStore(database)


def prune(upkeep: UpkeepStore, what: str) -> int:
    (duty,) = [duty for duty in DUTIES if duty.name == f"prune-{what}"]
    return sum(duty.run(upkeep))


def days(*sizes: float, ending: date = TODAY) -> tuple[Day, ...]:
    """Consecutive days up to `ending`, their sizes in GB."""
    first = ending - timedelta(days=len(sizes) - 1)
    every = [first + timedelta(days=n) for n in range(len(sizes))]
    return tuple(Day(f"polls_{day:%Y%m%d}", day, int(size * GB)) for day, size in zip(every, sizes, strict=True))


def going(record: Record) -> list[int]:
    """How many days ago each day was that goes."""
    return [(TODAY - day.day).days for day in pruning.too_many(record, TODAY)]


def poll(rows: Rows, at: datetime) -> None:
    rows(
        "INSERT INTO lanes.polls (claimed_at, token, series_id, site, host, machine, trigger, outcome, host_pace, address_pace) "
        "VALUES (%s, gen_random_uuid(), 1, 'feeds', 'host.test', 'here', 'its time', 'new', '1 s', '0.5 s')",
        at,
    )


def partitions(rows: Rows) -> list[str]:
    found = rows(
        "SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'lanes.polls'::regclass"
    )
    return sorted(row.relname for row in found if row.relname != "polls_stray")


def test_a_day_goes_when_all_of_it_is_thirty_days_old() -> None:
    assert going(Record(days(*[0.01] * 40))) == list(range(39, 30, -1))


def test_over_two_gigabytes_the_oldest_days_go_until_the_rest_is_small_enough() -> None:
    assert going(Record(days(0.5, 0.5, 0.5, 0.5, 0.5))) == [4]
    assert going(Record(days(0.5, 0.5, 0.5, 0.5))) == []
    assert going(Record(days(0.5, 0.5, 0.5, 0.5), strays=GB // 2 + 1)) == [3, 2]


def test_today_and_what_is_to_come_never_goes_however_large() -> None:
    assert going(Record(days(1, 9, 9, ending=TODAY + timedelta(days=1)))) == [1]


def test_the_record_of_old_days_is_dropped_and_today_goes_on(rows: Rows, upkeep: UpkeepStore, clock: Clock) -> None:
    rows("SELECT lanes.make_partitions()")
    old, first = partitions(rows), rows.now()
    poll(rows, first)
    clock.advance(29 * DAY)
    rows("SELECT lanes.make_partitions()")
    poll(rows, rows.now())
    assert prune(upkeep, "record") == 0
    clock.advance(2 * DAY)
    rows("SELECT lanes.make_partitions()")
    assert prune(upkeep, "record") == 1
    assert old[0] not in partitions(rows)
    assert old[1] in partitions(rows)
    assert rows.one("SELECT count(*) FROM lanes.polls") == 1
    poll(rows, rows.now())


def test_records_without_a_partition_go_by_their_own_age(rows: Rows, upkeep: UpkeepStore, clock: Clock) -> None:
    clock.advance(100 * DAY)
    now = rows.now()
    ages = (95, 40, 32, 29, 0)
    for age in ages:
        poll(rows, now - age * DAY)
    assert rows.one("SELECT count(*) FROM lanes.polls_stray") == len(ages)
    empty = len(partitions(rows))
    assert prune(upkeep, "record") == empty + 3
    left = rows("SELECT claimed_at FROM lanes.polls ORDER BY claimed_at")
    assert [row.claimed_at for row in left] == [now - 29 * DAY, now]


def test_a_day_that_is_being_read_waits_and_costs_nobody_else(
    rows: Rows, upkeep: UpkeepStore, clock: Clock, database_url: str
) -> None:
    rows("SELECT lanes.make_partitions()")
    before = partitions(rows)
    clock.advance(60 * DAY)
    with psycopg.connect(database_url) as reader:
        reader.execute("SELECT count(*) FROM lanes.polls")
        assert prune(upkeep, "record") == 0
        assert partitions(rows) == before
    assert prune(upkeep, "record") == len(before)


def test_an_address_goes_after_an_idle_hour_and_not_while_it_is_booked(
    rows: Rows, upkeep: UpkeepStore, clock: Clock
) -> None:
    now = rows.now()
    for address, used, ahead, booked in (
        ("192.0.2.1", now - HOUR, now - HOUR, now - HOUR),
        ("192.0.2.2", now - HOUR + MINUTE, now - HOUR, now - HOUR),
        ("192.0.2.3", now - HOUR, now + MINUTE, now - HOUR),
        ("192.0.2.4", now - HOUR, now - HOUR, now + MINUTE),
    ):
        rows(
            "INSERT INTO lanes.addresses (address, used_at, next_at, booked_until) VALUES (%s, %s, %s, %s)",
            address, used, ahead, booked,
        )  # fmt: skip
    assert prune(upkeep, "addresses") == 1
    kept = rows("SELECT host(address) AS address FROM lanes.addresses ORDER BY address")
    assert [row.address for row in kept] == ["192.0.2.2", "192.0.2.3", "192.0.2.4"]
    clock.advance(HOUR)
    assert prune(upkeep, "addresses") == 3


def test_a_host_goes_thirty_days_after_the_last_series_that_pointed_there_went(
    rows: Rows, upkeep: UpkeepStore, clock: Clock
) -> None:
    lone, followed = rows.host(), rows.host()
    series = rows.series(lone)
    rows.series(followed, bookmarks=0)
    rows(
        "INSERT INTO lanes.robots (origin, host_id, asked_at, again_at) VALUES ('https://x', %s, lanes.now(), lanes.now())",
        lone,
    )
    clock.advance(40 * DAY)
    assert prune(upkeep, "hosts") == 0
    rows("DELETE FROM lanes.series WHERE id = %s", series)
    assert prune(upkeep, "hosts") == 0
    assert rows.the_host(lone).unused_since is not None
    clock.advance(30 * DAY - MINUTE)
    assert prune(upkeep, "hosts") == 0
    clock.advance(MINUTE)
    assert prune(upkeep, "hosts") == 1
    assert [row.id for row in rows("SELECT id FROM lanes.hosts")] == [followed]
    assert rows("SELECT FROM lanes.robots") == []


def test_a_host_that_the_registry_names_stays_with_its_interval(rows: Rows, upkeep: UpkeepStore, clock: Clock) -> None:
    """It would come back at the default: at a host that is asked once a minute, a second apart."""
    named, other = rows.host("www.reddit.com", pace=timedelta(seconds=70)), rows.host()
    prune(upkeep, "hosts")
    clock.advance(31 * DAY)
    assert prune(upkeep, "hosts") == 1
    assert [row.id for row in rows("SELECT id FROM lanes.hosts")] == [named]
    assert other != named


@pytest.mark.parametrize("pointer", ["host_id", "queue_host_id"])
def test_a_host_that_a_series_comes_back_to_begins_anew(
    rows: Rows, upkeep: UpkeepStore, clock: Clock, pointer: str
) -> None:
    host, series = rows.host(), rows.series()
    prune(upkeep, "hosts")
    clock.advance(29 * DAY)
    rows.set_series(series, **{pointer: host})
    prune(upkeep, "hosts")
    assert rows.the_host(host).unused_since is None
    clock.advance(9 * DAY)
    assert prune(upkeep, "hosts") == 0


@pytest.mark.parametrize(
    "facts",
    [
        {"owner_pace": HOUR},
        {"not_before": timedelta(days=99), "not_before_reason": "Retry-After"},
        {"next_at": timedelta(days=99)},
        {"busy_until": timedelta(days=99), "busy_token": "5a6f8a9e-0000-4000-8000-000000000000"},
        {"refused_until": timedelta(days=99)},
        {"sent_at": timedelta(days=29)},
    ],
)
def test_the_owners_word_and_a_running_wait_keep_a_host(
    rows: Rows, upkeep: UpkeepStore, clock: Clock, facts: dict[str, Any]
) -> None:
    """And so does having been asked lately: the target of somebody's redirect has a pace to be kept."""
    ahead: dict[str, Any] = {
        name: rows.now() + value if isinstance(value, timedelta) and name != "owner_pace" else value
        for name, value in facts.items()
    }
    kept, plain = rows.host(**ahead), rows.host()
    prune(upkeep, "hosts")
    clock.advance(31 * DAY)
    assert prune(upkeep, "hosts") == 1
    assert [row.id for row in rows("SELECT id FROM lanes.hosts")] == [kept]
    assert plain != kept


def test_a_block_keeps_a_host_until_it_is_taken_back(rows: Rows, upkeep: UpkeepStore, clock: Clock) -> None:
    host = rows.host()
    rows("INSERT INTO lanes.words (host_id, said_at) VALUES (%s, lanes.now())", host)
    prune(upkeep, "hosts")
    clock.advance(31 * DAY)
    assert prune(upkeep, "hosts") == 0
    rows("UPDATE lanes.words SET ended_at = lanes.now()")
    assert prune(upkeep, "hosts") == 1


def test_a_host_in_somebodys_hand_is_left_for_a_later_run(
    rows: Rows, upkeep: UpkeepStore, clock: Clock, database_url: str
) -> None:
    host = rows.host()
    prune(upkeep, "hosts")
    clock.advance(31 * DAY)
    with psycopg.connect(database_url) as claim:
        claim.execute("SELECT FROM lanes.hosts WHERE id = %s FOR NO KEY UPDATE", (host,))
        assert prune(upkeep, "hosts") == 0
    assert prune(upkeep, "hosts") == 1


def test_a_machine_goes_that_polled_nothing_for_thirty_days_unless_its_line_is_down(
    rows: Rows, upkeep: UpkeepStore, clock: Clock
) -> None:
    for machine, shaken, us in (("gone", 31, None), ("shaken", 29, None), ("down", 31, 31), ("polls", 31, None)):
        rows(
            "INSERT INTO lanes.machines (machine, shaken_at, us_since) "
            "VALUES (%s, lanes.now() - %s * interval '1 day', lanes.now() - %s * interval '1 day')",
            machine, shaken, us,
        )  # fmt: skip
    rows(
        "INSERT INTO lanes.polls (claimed_at, token, series_id, site, host, machine, trigger, outcome, host_pace, address_pace) "
        "VALUES (lanes.now() - interval '29 days', gen_random_uuid(), 1, 'feeds', 'a.test', 'polls', 'its time', 'new', '2 s', '1 s')"
    )
    sum(pruning.prune_machines(upkeep))
    assert [row.machine for row in rows("SELECT machine FROM lanes.machines ORDER BY 1")] == ["down", "polls", "shaken"]


def test_incidents_go_a_year_after_their_end_and_open_ones_stay(rows: Rows, upkeep: UpkeepStore, clock: Clock) -> None:
    rows.enrol()
    for machine, ended in (("a", True), ("b", False)):
        rows(
            "INSERT INTO lanes.incidents (whose, machine, started_at, ended_at) "
            "VALUES ('us', %s, lanes.now(), CASE WHEN %s THEN lanes.now() END)",
            machine, ended,
        )  # fmt: skip
    clock.advance(365 * DAY - MINUTE)
    assert prune(upkeep, "incidents") == 0
    clock.advance(MINUTE)
    assert prune(upkeep, "incidents") == 1
    assert rows.one("SELECT machine FROM lanes.incidents") == "b"


def test_notices_go_ninety_days_after_delivery_and_not_before_it(rows: Rows, upkeep: UpkeepStore, clock: Clock) -> None:
    rows.enrol()
    incident = rows.one(
        "INSERT INTO lanes.incidents (whose, site, started_at) VALUES ('refusal', 'feeds', lanes.now()) RETURNING id"
    )
    for event in ("delivered", "owed", f"incident:{incident}"):
        rows("SELECT lanes.tell_owner('incident', %s, '{}')", event)
    rows("UPDATE lanes.notices SET delivered_at = lanes.now() WHERE event <> 'owed'")
    clock.advance(90 * DAY - MINUTE)
    assert prune(upkeep, "notices") == 0
    clock.advance(MINUTE)
    assert prune(upkeep, "notices") == 1
    kept = {row.event for row in rows("SELECT event FROM lanes.notices")}
    assert kept == {"owed", f"incident:{incident}"}
    rows("UPDATE lanes.incidents SET ended_at = lanes.now()")
    assert prune(upkeep, "notices") == 1


def test_chapters_and_what_they_are_known_by_stay(rows: Rows, upkeep: UpkeepStore, clock: Clock) -> None:
    series = rows.series()
    rows(
        "INSERT INTO lanes.chapters (series_id, title, found_at, announced) VALUES (%s, 'One', lanes.now(), true)",
        series,
    )
    rows("INSERT INTO lanes.identities VALUES (%s, gen_random_uuid())", series)
    clock.advance(2000 * DAY)
    for duty in DUTIES:
        for _ in duty.run(upkeep):
            pass
    assert rows.one("SELECT count(*) FROM lanes.chapters") == 1
    assert rows.one("SELECT count(*) FROM lanes.identities") == 1


def test_hot_tables_are_vacuumed_early_and_days_of_the_record_not_at_all(rows: Rows) -> None:
    def options(table: str) -> set[str]:
        return set(
            rows.one("SELECT coalesce(reloptions, '{}') FROM pg_class WHERE oid = %s::regclass", f"lanes.{table}")
        )

    rows("SELECT lanes.make_partitions()")
    for table in ("hosts", "addresses", "series"):
        names = {option.partition("=")[0] for option in options(table)}
        assert {"fillfactor", "autovacuum_vacuum_scale_factor", "autovacuum_vacuum_cost_delay"} <= names
    today = f"polls_{rows.now().astimezone(UTC):%Y%m%d}"
    assert options(today) == {"autovacuum_vacuum_insert_threshold=-1"}
