"""Bringing a database up to date, and refusing one that is not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta

import pytest

from lanes.errors import DatabaseAway, StoreError
from lanes.store import schema
from lanes.store.polls import PollStore
from tests.fix_database import Clock
from tests.rows import Rows

Empty = Callable[[], AbstractContextManager[str]]
NEWER = (
    "INSERT INTO lanes._yoyo_migration (migration_hash, migration_id, applied_at_utc) VALUES ('x', '9999_later', now())"
)


def test_an_empty_database_lacks_everything_until_it_is_migrated(empty_database: Empty) -> None:
    with empty_database() as url:
        assert schema.missing(url) is not None
        assert "0001_spine" in schema.migrate(url)
        assert schema.missing(url) is None


def test_migrating_twice_does_nothing_the_second_time(database_url: str) -> None:
    assert schema.migrate(database_url) == ()


def test_a_newer_schema_is_refused_by_name(database_url: str, rows: Rows) -> None:
    rows(NEWER)
    lack = schema.missing(database_url)
    assert lack is not None
    assert "9999_later" in lack
    with pytest.raises(StoreError, match="9999_later"):
        schema.migrate(database_url)


def test_an_older_schema_is_named_by_what_it_lacks(database_url: str, rows: Rows) -> None:
    rows("DELETE FROM lanes._yoyo_migration WHERE migration_id = '0001_spine'")
    lack = schema.missing(database_url)
    assert lack is not None
    assert "0001_spine" in lack


def test_rules_of_another_edition_are_refused_and_replaced(database_url: str, rows: Rows) -> None:
    rows("UPDATE lanes.rules SET edition = 'of yesterday'")
    rows("DROP FUNCTION lanes.shift_back")
    assert schema.missing(database_url) is not None
    assert len(schema.migrate(database_url)) == 1
    assert schema.missing(database_url) is None
    rows("SELECT lanes.shift_back()")


def test_replacing_the_rules_leaves_the_queue_and_its_trigger(database_url: str, rows: Rows) -> None:
    series = rows.series()
    rows("UPDATE lanes.rules SET edition = 'of yesterday'")
    schema.migrate(database_url)
    rows.set_series(series, bookmarks=0)
    assert rows.the_series(series).claimable_at is None


def test_a_process_waits_for_its_schema_and_says_so_once(empty_database: Empty) -> None:
    said: list[str] = []
    naps = 0

    with empty_database() as url:

        def stopped(seconds: float) -> bool:
            nonlocal naps
            naps += 1
            if naps == 3:
                schema.migrate(url)
            return naps > 10

        assert schema.wait_until_ready(url, said.append, stopped)
    assert naps == 3
    assert len(said) == 1
    assert "lanes migrate" in said[0]


def test_a_process_that_is_stopped_waits_no_longer(empty_database: Empty) -> None:
    with empty_database() as url:
        assert not schema.wait_until_ready(url, lambda _: None, lambda _: True)


def test_a_server_that_is_not_there_is_one_error() -> None:
    with pytest.raises(DatabaseAway):
        schema.missing("postgresql://127.0.0.1:1/nothing?connect_timeout=2")


def test_every_day_has_its_partition_and_strays_are_kept(rows: Rows, store: PollStore, clock: Clock) -> None:
    record = (
        "INSERT INTO lanes.polls (claimed_at, token, series_id, site, host, machine, trigger, outcome, host_pace, address_pace) "
        "VALUES (lanes.now(), gen_random_uuid(), 1, 'feeds', 'h', 'here', 'its time', 'unchanged', '1s', '0.5s')"
    )
    where = "SELECT relname FROM lanes.polls p JOIN pg_class c ON c.oid = p.tableoid ORDER BY claimed_at DESC LIMIT 1"
    rows(record)
    assert rows.one(where) == f"polls_{rows.now():%Y%m%d}"
    clock.advance(timedelta(days=40))
    rows(record)
    assert rows.one(where) == "polls_stray"
    store.keep_house()
    rows(record)
    clock.advance(timedelta(days=1))
    rows(record)
    assert rows.one(where) == f"polls_{rows.now():%Y%m%d}"
    assert rows.one("SELECT count(*) FROM lanes.polls") == 4


def test_todays_partition_is_asked_for_as_often_as_one_likes(rows: Rows, store: PollStore) -> None:
    for _ in range(3):
        store.keep_house()
    assert rows.one("SELECT count(*) FROM pg_inherits WHERE inhparent = 'lanes.polls'::regclass") == 4
