"""Whose page was in a tab when the browser was lost: what is counted, who goes first then, and who is opened alone (CASES H2, H5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from lanes.core.claim import Claim
from lanes.core.outcome import PutBack
from lanes.core.pages import LOST, OTHERS_FIRST, PATIENCE
from lanes.store.browsing import ServingStore
from lanes.store.pool import Database
from tests.answers import a_response
from tests.fix_database import Clock
from tests.one_host import REST
from tests.page_rows import PAGE, SECOND, PageLane, a_page_lane, pass_by
from tests.rows import Rows, settle, take, trail

NOT_MODIFIED = replace(a_response(304), conditional=True)


def lose(lane: PageLane, serving: ServingStore) -> Claim:
    """The next page of the Lane loses the browser in its tab, and its Poll is put back."""
    claim = lane.asked()
    assert serving.take() is not None
    assert serving.lose()
    put_back(lane, claim, lost=True)
    return claim


def put_back(lane: PageLane, claim: Claim, *, lost: bool) -> None:
    lane.asking.withdraw(claim.token, claim.host_id, claim.claimed_at)
    lane.store.put_back(claim, PutBack("the browser is lost", timedelta(0), None, None, lost), trail(claim))


def answer(lane: PageLane, serving: ServingStore) -> None:
    """A page of the Lane is answered, and its Poll settled."""
    claim = lane.asked()
    assert serving.take() is not None
    serving.answer(claim.token, PAGE)
    lane.asking.withdraw(claim.token, claim.host_id, claim.claimed_at)
    settle(lane.store, claim, NOT_MODIFIED)


def count_of(rows: Rows, claim: Claim) -> int:
    count: int = rows.the_series(claim.series_id).abandoned
    return count


def test_a_loss_counts_only_where_the_browser_had_answered_since_the_last(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    """What is lost as the probe may be lost by a Chrome that is broken: nobody is charged for that."""
    panels, strips = a_page_lane(database, rows, "panels"), a_page_lane(database, rows, "strips", series=3)
    counts = []
    for others_answer in (False, True, False, True):
        claim = lose(panels, serving)
        counts.append(count_of(rows, claim))
        pass_by(clock, serving, LOST + 2 * OTHERS_FIRST)
        if others_answer:
            answer(strips, serving)
            rows("UPDATE lanes.lanes SET next_at = '-infinity'")
            rows("UPDATE lanes.hosts SET next_at = '-infinity', ready_at = '-infinity'")
    assert counts == [1, 1, 2, 2]


@pytest.mark.parametrize("browser", [True, False])
def test_a_page_that_was_not_in_a_tab_says_nothing_of_its_series(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock, browser: bool
) -> None:
    """Only what is fetched plainly is cleared by a worker that lived on."""
    lane = a_page_lane(database, rows)
    rows("UPDATE lanes.lanes SET browser = %s", browser)
    rows("UPDATE lanes.series SET abandoned = 2")
    claim = lane.in_hand()
    assert (claim.abandoned, claim.lapsed) == (2, False)
    put_back(lane, claim, lost=False)
    assert count_of(rows, claim) == (2 if browser else 0)


def test_an_answer_clears_the_count(rows: Rows, database: Database, serving: ServingStore, clock: Clock) -> None:
    lane = a_page_lane(database, rows)
    claim = lose(lane, serving)
    pass_by(clock, serving, LOST + OTHERS_FIRST)
    answer(lane, serving)
    assert count_of(rows, claim) == 0


def test_a_worker_that_died_is_told_from_a_page_that_lost_the_browser(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    lane = a_page_lane(database, rows)
    lose(lane, serving)
    pass_by(clock, serving, LOST + OTHERS_FIRST)
    claim = lane.in_hand()
    assert (claim.abandoned, claim.lapsed) == (1, False)
    pass_by(clock, serving, timedelta(minutes=3))
    claim = lane.in_hand()
    assert (claim.abandoned, claim.lapsed) == (2, True)


def told(lane: PageLane, claim: Claim, *, suspect: bool) -> tuple[str | None, timedelta | None]:
    standing = lane.ask(claim, suspect=suspect)
    return standing.trouble, standing.wait


def test_whose_page_lost_the_browser_is_not_the_next_probe(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    panels, strips = a_page_lane(database, rows, "panels"), a_page_lane(database, rows, "strips")
    serving.lose()
    pass_by(clock, serving, LOST + 5 * SECOND)
    suspect = panels.in_hand()
    reason, wait = told(panels, suspect, suspect=True)
    assert reason == "the browser was lost: others go first"
    assert wait is not None
    assert OTHERS_FIRST - 10 * SECOND < wait < OTHERS_FIRST
    assert told(strips, strips.in_hand(), suspect=False) == (None, None)
    pass_by(clock, serving, OTHERS_FIRST)
    assert told(panels, suspect, suspect=True) == (None, None), "nobody answered: then it is the probe"


def test_others_have_their_minute_whoever_answered_first(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    panels, strips = a_page_lane(database, rows, "panels"), a_page_lane(database, rows, "strips")
    serving.lose()
    pass_by(clock, serving, LOST + 5 * SECOND)
    answer(strips, serving)
    suspect = panels.in_hand()
    assert told(panels, suspect, suspect=True)[0] == "the browser was lost: others go first"
    pass_by(clock, serving, OTHERS_FIRST)
    assert told(panels, suspect, suspect=True) == (None, None)


def first_suspect(lane: PageLane) -> Claim:
    claim = lane.in_hand()
    assert lane.ask(claim, suspect=True).trouble is None
    return claim


def plain(lane: PageLane) -> Claim:
    return lane.asked()


@pytest.mark.parametrize(("first", "second"), [(first_suspect, plain), (plain, first_suspect), (first_suspect,) * 2])
def test_a_page_whose_last_one_lost_the_browser_is_opened_alone(
    rows: Rows,
    database: Database,
    serving: ServingStore,
    clock: Clock,
    first: Callable[[PageLane], Claim],
    second: Callable[[PageLane], Claim],
) -> None:
    """So that no page beside it is lost with it, and it alone is counted (DESIGN 4: fetched alone)."""
    asked = [first(a_page_lane(database, rows, "panels"))]
    clock.advance(SECOND)
    asked.append(second(a_page_lane(database, rows, "strips")))
    clock.advance(SECOND)
    asked.append(a_page_lane(database, rows, "novels").asked())
    taken = serving.take()
    assert taken is not None
    assert taken.token == asked[0].token
    assert serving.take() is None, "who waits behind it does not overtake"
    serving.answer(asked[0].token, PAGE)
    rest = serving.take(), serving.take()
    alone = second is first_suspect
    assert [page and page.token for page in rest] == [asked[1].token, None if alone else asked[2].token]


def test_a_page_that_nobody_waits_for_keeps_nobody_from_a_tab(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    first_suspect(a_page_lane(database, rows, "panels"))
    assert serving.take() is not None
    pass_by(clock, serving, PATIENCE + SECOND)
    a_page_lane(database, rows, "strips").asked()
    assert serving.take() is not None


def test_a_series_that_was_put_back_by_a_loss_is_claimed_again(
    rows: Rows, database: Database, serving: ServingStore, clock: Clock
) -> None:
    lane = a_page_lane(database, rows)
    lose(lane, serving)
    assert take(lane.store, REST) is None
    pass_by(clock, serving, LOST + SECOND)
    assert take(lane.store, REST) is not None
