"""A URL that the owner tries through the browser: by the same rows, at the same pace as a Poll of its Lane."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import pytest

from lanes.browser import Browser
from lanes.core.outcome import PutBack, Read, Refused
from lanes.core.pages import LEASE, PageAsked, Shown
from lanes.fetch.guard import Guard
from lanes.fetch.http import Http
from lanes.sites import Site
from lanes.store.browsing import AskingStore
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from lanes.store.trying import Shut, TryStore
from lanes.trying import Tried, Trier
from tests.fix_browser import Fate, MakePageLane, Sidecar, page_site
from tests.fix_lane import AGENT, Owner
from tests.smallnet import ALLOWED
from tests.wire.comics import open_at

NO_PATIENCE = timedelta(0)
URL = "http://panels.test/0"
GAP = timedelta(seconds=10)


@pytest.fixture
def site() -> Site:
    return page_site("panels", "panels.test")


@pytest.fixture
def trier(database_url: str, site: Site, owner: Owner) -> Iterator[Trier]:
    """The owner's `lanes try` of a browser Site whose origin is known to have no robots.txt."""
    owner.has_no_robots(URL, site)
    with (
        closing(Database(database_url, application="the owner tries")) as database,
        closing(Http(AGENT, Guard([str(ALLOWED)]))) as http,
        closing(Browser(AskingStore(database, site.name), site, http.stop)) as browser,
    ):
        rows = TryStore(database, site.name, "machine-1", gap=site.gap, browser=True)
        polls = PollStore(database, site.name, "machine-1", many_hosts=False, browser=True)
        yield Trier(site, rows, polls, http, LEASE, browser)


def meaning(tried: Tried | Shut) -> object:
    assert isinstance(tried, Tried), tried
    return tried.judged.meaning


def test_the_page_comes_from_the_tab_and_spends_the_gap_and_nothing_is_stored(
    sidecar: Sidecar, trier: Trier, owner: Owner
) -> None:
    with sidecar.serving():
        assert isinstance(meaning(trier.attempt(URL, NO_PATIENCE)), Read)
        shut = trier.attempt(URL, NO_PATIENCE)
    assert isinstance(shut, Shut)
    assert shut.reason == "the Gap of its Site"
    (sent,) = sidecar.sends
    (record,) = owner.all("SELECT * FROM lanes.polls")
    assert (record.trigger, record.outcome, record.series_id, record.address) == ("tried", "unchanged", 0, None)
    row = owner.one(
        "SELECT l.browser, l.next_at, h.busy_token FROM lanes.lanes l JOIN lanes.hosts h USING (site) WHERE site = 'panels'"
    )
    assert (row.browser, row.busy_token) == (True, None)
    assert row.next_at >= sent.at + GAP - timedelta(seconds=1)
    assert owner.one("SELECT count(*) AS n FROM lanes.series").n == 0
    assert owner.one("SELECT count(*) AS n FROM lanes.browser_pages").n == 0


def test_beside_its_lane_the_site_sees_one_pace(sidecar: Sidecar, make_page_lane: MakePageLane, trier: Trier) -> None:
    lane, _ = make_page_lane("panels", 2)
    with sidecar.serving():
        for _ in range(2):
            open_at(lane)
            assert lane.run_once() == 1
            open_at(lane)
            assert isinstance(meaning(trier.attempt(URL, NO_PATIENCE)), Read)
    spacings = sidecar.spacings("panels")
    assert len(spacings) == 3
    assert min(spacings) >= GAP.total_seconds() - 0.05


def test_what_the_tab_could_not_pass_is_a_refusal_with_its_sign(sidecar: Sidecar, trier: Trier) -> None:
    def held(asked: PageAsked) -> Shown:
        return Shown(403, {}, asked.url, b"<title>Just a moment...</title>", held="a challenge that did not clear")

    sidecar.script(URL, held)
    with sidecar.serving():
        assert meaning(trier.attempt(URL, NO_PATIENCE)) == Refused("a challenge that did not clear")


def test_a_browser_that_is_down_or_lost_is_a_closed_gate(trier: Trier, owner: Owner) -> None:
    shut = trier.attempt(URL, timedelta(seconds=30))
    assert isinstance(shut, Shut)
    assert (shut.reason, shut.until) == ("the browser is down: its sidecar does not run", None)
    owner.tell(
        "INSERT INTO lanes.browser (heartbeat_at, browser_lost_until) VALUES (lanes.now(), lanes.now() + interval '15 min')"
    )
    shut = trier.attempt(URL, timedelta(seconds=30))
    assert isinstance(shut, Shut)
    assert shut.reason == "the browser is lost"
    assert shut.until is not None


def test_chrome_that_sleeps_is_woken_by_the_owner_as_by_a_check_now(sidecar: Sidecar, trier: Trier) -> None:
    sidecar.beat(awake=False)
    with sidecar.serving():
        assert isinstance(meaning(trier.attempt(URL, NO_PATIENCE)), Read)


def test_a_page_that_was_lost_is_told_as_what_can_be_tried_again(sidecar: Sidecar, trier: Trier, owner: Owner) -> None:
    sidecar.script(URL, Fate.LOST)
    with sidecar.serving():
        back = meaning(trier.attempt(URL, timedelta(seconds=5)))
    assert isinstance(back, PutBack)
    assert back.reason == "the browser is lost"
    assert owner.one("SELECT busy_token FROM lanes.hosts WHERE name = 'panels.test'").busy_token is None
