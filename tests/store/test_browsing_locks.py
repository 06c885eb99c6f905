"""Nobody who locks rows of the browser waits for somebody who waits for them: one order for all (DESIGN 4.1)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from uuid import UUID

import pytest

from lanes.core.pages import PATIENCE
from lanes.store.browsing import ServingStore
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from tests.fix_database import Clock
from tests.page_rows import PAGE, SECOND, a_page_lane, ends_or_waits, pass_by
from tests.rows import HOUR, MINUTE, Rows, open_rows

FIRST, SECOND_PAGE = UUID(int=1), UUID(int=2)


def test_an_answer_and_whoever_has_the_browser_are_no_deadlock(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock, database_url: str
) -> None:
    """A tab that takes, and a clock that is shifted back, lock the browser before its pages: so does an answer, or not both at once."""
    serving.lose()
    pass_by(clock, serving, 16 * MINUTE)
    claim = a_page_lane(database, rows).asked()
    assert serving.take() is not None
    with ThreadPoolExecutor(1) as pool, open_rows(database_url) as watch:
        with rows.connection.transaction():
            rows("SELECT FROM lanes.browser FOR NO KEY UPDATE")
            answered: Future[object] = pool.submit(serving.answer, claim.token, PAGE)
            ends_or_waits(watch, answered)
            rows("SET LOCAL lock_timeout = '3s'")
            rows("SELECT FROM lanes.browser_pages FOR NO KEY UPDATE")
        answered.result(20)
    assert rows.one("SELECT browser_lost_until FROM lanes.browser") is None
    assert rows.one("SELECT answered_at IS NOT NULL FROM lanes.browser_pages")


def two_pages(rows: Rows) -> None:
    """Two pages in tabs, whose places on the disk are not in the order of their tokens."""
    for site, token in (("panels", SECOND_PAGE), ("strips", FIRST)):
        rows.enrol(site)
        rows(
            "INSERT INTO lanes.browser_pages (token, site, host_id, url, hosts, landmark, asked_at, taken_at, deadline_at, sent_at) "
            "VALUES (%s, %s, 0, '', '{}', '', lanes.now(), lanes.now(), lanes.now(), lanes.now())",
            token, site,
        )  # fmt: skip


def begin(database: Database) -> None:
    ServingStore(database).begin(None)


def sweep(database: Database) -> object:
    return ServingStore(database).beat(awake=True, version=None)


def shift_back(database: Database) -> object:
    with database.connection() as connection:
        return connection.execute("SELECT lanes.shift_back()").fetchone()


@pytest.mark.parametrize("deed", [begin, sweep, shift_back])
def test_pages_are_locked_in_the_order_of_their_tokens_by_whoever_takes_several(
    rows: Rows,
    database: Database,
    serving: ServingStore,
    clock: Clock,
    database_url: str,
    deed: Callable[[Database], object],
) -> None:
    two_pages(rows)
    clock.advance(PATIENCE)
    rows("SELECT lanes.see_clock()")
    if deed is shift_back:
        clock.advance(-HOUR)
    with ThreadPoolExecutor(1) as pool, open_rows(database_url) as watch:
        with rows.connection.transaction():
            rows("SELECT FROM lanes.browser_pages WHERE token = %s FOR UPDATE", FIRST)
            done: Future[object] = pool.submit(deed, database)
            ends_or_waits(watch, done)
            rows("SELECT FROM lanes.browser_pages WHERE token = %s FOR UPDATE NOWAIT", SECOND_PAGE)
        done.result(20)


def test_a_lane_that_names_its_slower_hosts_locks_them_by_id(rows: Rows, database: Database, database_url: str) -> None:
    """As whoever locks two hosts does: a claim, a settle, an import."""
    by_id = [rows.host("z.test", site="panels"), rows.host("a.test", site="panels")]
    paces = {"a.test": 70 * SECOND, "new.test": 5 * SECOND, "z.test": 10 * SECOND}
    with ThreadPoolExecutor(1) as pool, open_rows(database_url) as watch:
        with rows.connection.transaction():
            rows("SELECT FROM lanes.hosts WHERE id = %s FOR NO KEY UPDATE", by_id[0])
            enrolled: Future[object] = pool.submit(PollStore(database, "panels", "here", paces=paces).enrol)
            ends_or_waits(watch, enrolled)
            rows("SELECT FROM lanes.hosts WHERE id = %s FOR NO KEY UPDATE NOWAIT", by_id[1])
        enrolled.result(20)
    assert {row.name: row.pace for row in rows("SELECT name::text, pace::interval FROM lanes.hosts")} == paces
