"""What a Lane does to its rows at its start, and whose Site a host is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from lanes.errors import DatabaseAway, DatabaseBusy
from lanes.store.following import FollowStore, Wanted
from lanes.store.owning import OwnStore
from lanes.store.polls import PollStore
from lanes.store.pool import Database, away_is_one_error
from tests.answers import a_response
from tests.fix_database import Clock
from tests.one_host import GAP, SITE, a_lane_of
from tests.rows import DAY, HOUR, LEASE, Rows, open_rows, settle, take, trail

NOT_MODIFIED = replace(a_response(304), conditional=True)
A_COMIC = Wanted(SITE, "https://comic.test/1", "comic.test", "a-comic", rest=None)


def test_a_lane_that_starts_locks_hosts_before_series(rows: Rows, store: PollStore, database_url: str) -> None:
    host = rows.host()
    series = rows.series(host, not_before=rows.now() + HOUR, not_before_reason="not a public address: 192.0.2.1")
    with ThreadPoolExecutor(1) as thread, open_rows(database_url) as watcher:
        with rows.connection.transaction():
            rows("SELECT FROM lanes.hosts WHERE id = %s FOR NO KEY UPDATE", host)
            enrolled = thread.submit(store.enrol)
            watcher.wait_for_lock()
            assert watcher("SELECT id FROM lanes.series WHERE id = %s FOR NO KEY UPDATE SKIP LOCKED", series)
        enrolled.result()
    assert rows.the_series(series).not_before is None


def test_a_shorter_rest_of_the_registry_acts_from_the_start_of_its_lane_on(rows: Rows, database: Database) -> None:
    rows.enrol(SITE, gap=GAP)
    host = rows.host(site=SITE)
    rows.series(host, site=SITE, rest=None, latest_checked_at=rows.now() - 2 * HOUR)
    lane = a_lane_of(database)
    lane.enrol()
    assert take(lane, DAY) is None
    a_lane_of(database).enrol()
    assert take(lane, HOUR) is not None


def test_a_host_that_a_redirect_met_first_is_polled_by_the_site_that_follows_it(
    rows: Rows, store: PollStore, database: Database, clock: Clock
) -> None:
    rows.series(rows.host("home.test"), latest_checked_at=rows.now() - DAY)
    claim = take(store)
    assert claim is not None
    entered = store.enter("comic.test", claim, claim.claimed_at + LEASE)
    settle(store, claim, NOT_MODIFIED, on=trail(claim, entered.host_id))
    clock.advance(timedelta(seconds=2))
    FollowStore(database).follow([A_COMIC])
    lane = a_lane_of(database)
    lane.enrol()
    assert take(lane, HOUR) is not None


def test_who_goes_on_at_a_host_that_changes_its_site_goes_home(
    rows: Rows, store: PollStore, database: Database
) -> None:
    home, there = rows.host("home.test"), rows.host("comic.test")
    series = rows.series(home, latest_checked_at=rows.now() - DAY)
    rows.set_series(
        series,
        queue_host_id=there,
        resume="{}",
        resume_until=rows.now() + HOUR,
        retry_at=rows.now(),
        retry_reason="x",
        retry_address="192.0.2.1",
    )
    rows.set_host(home, ready_at="infinity")
    FollowStore(database).follow([A_COMIC])
    assert rows.the_host(there).site == SITE
    claim = take(store)
    assert claim is not None
    assert (claim.series_id, claim.host_id, claim.resume, claim.dial) == (series, home, None, None)


def test_a_host_where_another_sites_series_live_stays_theirs(rows: Rows, database: Database) -> None:
    there = rows.host("comic.test")
    rows.series(there)
    FollowStore(database).follow([A_COMIC])
    assert rows.the_host(there).site == "feeds"


def test_a_host_on_the_way_is_made_the_host_of_its_own_site(rows: Rows, store: PollStore) -> None:
    rows.series(rows.host("home.test"))
    claim = take(store)
    assert claim is not None
    store.enter("comic.test", claim, claim.claimed_at + LEASE, site=SITE)
    there = store.host_id("other.test", site=SITE)
    assert rows("SELECT name::text, site FROM lanes.hosts WHERE site = %s ORDER BY name", SITE) == [
        ("comic.test", SITE),
        ("other.test", SITE),
    ]
    assert rows.the_host(there).name == "other.test"


SLOW = {"slow.test": timedelta(seconds=70)}
"""As reddit is: robots.txt and a feed never come a second apart there."""


def test_a_host_that_the_registry_names_as_slower_starts_there_however_it_is_met(
    rows: Rows, database: Database
) -> None:
    """Before its Lane has ever run, too: `lanes try`, or a hop."""
    rows.series(rows.host("home.test"))
    store = PollStore(database, "feeds", "here", paces=SLOW)
    claim = take(store)
    assert claim is not None
    entered = store.enter("slow.test", claim, claim.claimed_at + LEASE)
    assert (entered.pace.pace, entered.interval) == (SLOW["slow.test"],) * 2
    rows("DELETE FROM lanes.hosts WHERE name = 'slow.test'")
    assert rows.the_host(store.host_id("slow.test")).pace == SLOW["slow.test"]
    assert rows.the_host(store.host_id("other.test")).pace == timedelta(seconds=1)


@pytest.mark.parametrize(("pace", "after"), [(1, 70), (90, 90)])
def test_a_host_that_is_followed_before_the_lane_of_its_site_ran_is_slowed_to_where_the_registry_has_it(
    rows: Rows, database: Database, pace: int, after: int
) -> None:
    host = rows.host("slow.test", pace=timedelta(seconds=pace))
    assert PollStore(database, "feeds", "here", paces=SLOW).host_id("slow.test") == host
    assert rows.the_host(host).pace == timedelta(seconds=after)


def test_a_lane_slowed_while_a_poll_ends_is_no_deadlock(
    rows: Rows, store: PollStore, database: Database, database_url: str
) -> None:
    """Its Poll locked no Lane, which had no Gap yet, and asks for none after its hosts."""
    host = rows.host()
    rows.series(host)
    claim = take(store)
    assert claim is not None
    with open_rows(database_url) as settling, settling.connection.transaction():
        assert settling.one("SELECT lanes.hold(%s, %s, %s)", claim.series_id, claim.token, [host])
        OwnStore(database).slow_lane("feeds", timedelta(seconds=1))
        with rows.connection.transaction():
            rows("SELECT FROM lanes.lanes WHERE site = 'feeds' FOR NO KEY UPDATE")
            settling("SET LOCAL lock_timeout = '2s'")
            settling("SELECT lanes.let_all_go(%s, %s, %s::timestamptz[])", claim.token, [host], [claim.claimed_at])
    assert rows.the_host(host).busy_token is None


@pytest.mark.parametrize("timeout", ["lock_timeout", "statement_timeout"])
def test_a_database_that_is_merely_busy_is_not_away(rows: Rows, database: Database, timeout: str) -> None:
    with database.connection() as connection:
        connection.execute(f"SET {timeout} = '10ms'".encode())
        rows.enrol()
        with rows.connection.transaction():
            rows("SELECT FROM lanes.lanes FOR UPDATE")
            with pytest.raises(DatabaseBusy) as busy, away_is_one_error():
                connection.execute("SELECT FROM lanes.lanes FOR UPDATE")
        connection.execute(f"RESET {timeout}".encode())
    assert isinstance(busy.value, DatabaseAway), "it is tried again as if it had been"
