"""The one reason why a Series is not polled, and its order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lanes.core.why import BLOCKED, Note, Standing, Stop, Why, beyond_check_now, notes, why

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
SOON, LATER = NOW + timedelta(minutes=4), NOW + timedelta(hours=3)


def standing(**other: Any) -> Standing:
    facts: dict[str, Any] = {
        "now": NOW, "due": None, "due_at": SOON, "gate": None, "tier": "poll", "has_url": True, "bookmarks": 1, "paused_at": None,
        "retired_at": None, "retired_reason": None, "lifecycle": "ongoing", "lease_until": None, "lease_machine": None, "retry_at": None,
        "retry_reason": None, "failures": 0, "failure": None, "sighted": False, "waits": False,
    }  # fmt: skip
    return Standing(**facts | other)


LINE = {"due": "its time", "us_since": NOW - timedelta(hours=2)}

REASONS: tuple[tuple[dict[str, Any], Why], ...] = (
    ({"tier": "push"}, Why("its hub pushes it: it is not polled", None)),
    ({"has_url": False}, Why("it has no URL", None)),
    ({"bookmarks": 0}, Why("nobody has bookmarked it", None)),
    ({"paused_at": NOW}, Why("it is paused", None)),
    (
        {"due": "its time", "gate": Stop("polling is switched off", None)},
        Why("polling is switched off", None, held=True),
    ),
    ({"due": "its time", "gate": Stop("the Lane is paused", None)}, Why("the Lane is paused", None, held=True)),
    (LINE, Why("our own line is down: one Poll a minute until it is back", None)),
    ({"due": "its time", "gate": Stop("the Site refuses", LATER)}, Why("the Site refuses", LATER, held=True)),
    ({"due": "its time", "gate": Stop(BLOCKED, None)}, Why("the owner blocked its host", None, held=True)),
    ({"due": "its time", "gate": Stop("the host refuses", LATER)}, Why("the host refuses", LATER, held=True)),
    (
        {"due": "its time", "gate": Stop("the host asked to wait: 429", LATER)},
        Why("the host asked to wait: 429", LATER, held=True),
    ),
    (
        {"due": "its time", "gate": Stop("the host does not answer: asked once an hour", LATER)},
        Why("the host does not answer: asked once an hour", LATER, held=True),
    ),
    (
        {"waits": True, "gate": Stop("its URL was refused: 403", LATER)},
        Why("its URL was refused: 403", LATER, held=True),
    ),
    ({"due": "its time", "gate": Stop("the Gap of its Site", SOON)}, Why("the Gap of its Site", SOON)),
    (
        {"due": "its time", "gate": Stop("the Gap of its Site", SOON), "gap_bound": "the owner's word"},
        Why("the Gap of its Site (the owner's word)", SOON),
    ),
    ({"due": "its time", "gate": Stop("the interval of its host", SOON)}, Why("the interval of its host", SOON)),
    (
        {"due": "its time", "gate": Stop("the interval of its host", SOON), "interval_bound": "its crawl delay"},
        Why("the interval of its host (its crawl delay)", SOON),
    ),
    ({"due": "its time", "gate": Stop("the interval of its address", SOON)}, Why("the interval of its address", SOON)),
    ({"lease_until": SOON, "lease_machine": "attic"}, Why("being polled now, by attic", None)),
    ({"due": "its time", "gate": Stop("its host is being fetched", SOON)}, Why("its host is being fetched", SOON)),
    (
        {"retry_at": SOON, "retry_reason": "the interval of its address"},
        Why("put back: the interval of its address", SOON),
    ),
    (
        {"retired_at": NOW, "retired_reason": "gone", "due_at": LATER},
        Why("retired (gone), with a weekly look left", LATER, is_next=True),
    ),
    ({"lifecycle": "finished", "due_at": LATER}, Why("finished, with a weekly look left", LATER, is_next=True)),
    (
        {"spared": "404", "failures": 2},
        Why(
            "its Site is failing (404): that is not charged to it, and it is looked at once an hour", SOON, is_next=True
        ),
    ),
    ({"failures": 1, "failure": "404"}, Why("it failed once (404) and is tried again", SOON, is_next=True)),
    (
        {"failures": 1, "failure": "a web page: " + "x" * 200},
        Why(f"it failed once (a web page: {'x' * 108} ...) and is tried again", SOON, is_next=True),
    ),
    ({"failures": 3}, Why("it failed 3 times in a row (no detail) and is tried again", SOON, is_next=True)),
    ({"sighted": True}, Why("a Reader saw it lately", SOON, is_next=True)),
    ({}, Why("it rests until its next check", SOON, is_next=True)),
    ({"due": "pending"}, Why("due (pending): its Lane takes it at its turn", None)),
)
"""Every reason there is, in the order in which they speak."""


@pytest.mark.parametrize(("facts", "told"), REASONS)
def test_every_reason_is_told_with_its_instant(facts: dict[str, Any], told: Why) -> None:
    """CASES B6 among them: a wait is told with its end and its reason."""
    assert why(standing(**facts)) == told


@pytest.mark.parametrize("earlier", range(7))
@pytest.mark.parametrize("later", [7, 8, 9, 12, 13, 15])
def test_of_two_reasons_the_one_that_stands_first_in_the_order_speaks(earlier: int, later: int) -> None:
    first, told = REASONS[earlier]
    assert why(standing(**REASONS[later][0] | first)).reason == told.reason


def test_a_line_that_is_down_is_no_reason_for_what_is_not_due() -> None:
    assert why(standing(us_since=NOW)).reason == "it rests until its next check"


def test_a_line_that_is_down_is_told_before_a_block() -> None:
    assert why(standing(**LINE, gate=Stop(BLOCKED, None))).reason.startswith("our own line is down")


def test_what_is_true_beside_the_reason_is_noted_with_its_start() -> None:
    facts = {
        "us_since": NOW, "refused_since": SOON, "moving_to": "http://b.test/feed", "moving_since": LATER, "old_url": "http://c.test/",
        "distrusted_at": NOW, "distrusted_reason": "it said 304 while its body changed",
    }  # fmt: skip
    assert notes(standing(**facts)) == (
        Note("our own line is down", NOW),
        Note("its URL is refused", SOON),
        Note("its Site redirects it for good; followed there once that has proved true", LATER, "http://b.test/feed"),
        Note("it moved from there; `lanes back` returns", None, "http://c.test/"),
        Note("its validators are not trusted (it said 304 while its body changed)", NOW),
    )
    assert notes(standing()) == ()


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"tier": "push"}, "its hub pushes it"),
        ({"has_url": False}, "no URL"),
        ({"bookmarks": 0}, "nobody has bookmarked it"),
        ({"paused_at": NOW}, "paused"),
    ],
)
def test_what_is_never_polled_speaks_before_any_gate(facts: dict[str, Any], reason: str) -> None:
    found = why(standing(**facts, gate=Stop("the Site refuses", LATER)))
    assert reason in found.reason
    assert found.until is None


def test_the_kill_switch_speaks_even_where_nothing_is_due() -> None:
    """CASES B17."""
    assert why(standing(gate=Stop("polling is switched off", None))).reason == "polling is switched off"


def test_a_series_in_hand_says_by_whom_and_names_no_instant_that_is_only_its_leases() -> None:
    found = why(standing(lease_until=SOON, lease_machine="attic", gate=Stop("its host is being fetched", SOON)))
    assert found == Why("being polled now, by attic", None)


def test_a_gate_speaks_for_what_is_due_and_it_is_held() -> None:
    """CASES B6: the wait is shown with its end and its reason."""
    gate = Stop("the host asked to wait: 429", LATER)
    assert why(standing(due="its time", gate=gate)) == Why("the host asked to wait: 429", LATER, held=True)


def test_a_series_that_waits_its_turn_is_not_held() -> None:
    assert why(standing(due="its time", gate=Stop("the interval of its host", SOON))) == Why(
        "the interval of its host", SOON
    )


def test_a_gate_that_outlasts_the_next_check_is_the_reason_all_the_same() -> None:
    assert why(standing(gate=Stop("the Site refuses", LATER))) == Why("the Site refuses", LATER)


def test_a_wait_of_its_own_holds_a_series_before_it_is_due() -> None:
    gate = Stop("not a public address: 10.0.0.1", LATER)
    assert why(standing(gate=gate, waits=True)) == Why("not a public address: 10.0.0.1", LATER, held=True)


def test_a_wait_of_its_own_that_ends_before_the_next_check_holds_nothing() -> None:
    found = why(standing(due_at=LATER, gate=Stop("the server asked to wait", SOON), waits=True))
    assert found == Why("it rests until its next check", LATER, is_next=True)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, None),
        ({"lifecycle": "finished"}, None),
        ({"gate": Stop("the Site refuses", LATER)}, None),
        ({"paused_at": NOW}, "it is paused"),
        ({"bookmarks": 0, "retired_at": NOW, "retired_reason": "gone"}, "nobody has bookmarked it"),
        ({"retired_at": NOW, "retired_reason": "gone"}, "it is retired (gone)"),
    ],
)
def test_a_check_now_reaches_whatever_is_polled_at_all_and_is_not_retired(
    facts: dict[str, Any], reason: str | None
) -> None:
    assert beyond_check_now(standing(**facts)) == reason


def test_a_gate_that_opens_before_the_next_check_is_no_reason() -> None:
    assert why(standing(due_at=LATER, gate=Stop("the interval of its host", SOON))).until == LATER


def test_a_gate_that_opens_at_the_very_next_check_is_no_reason() -> None:
    assert why(standing(gate=Stop("the Site refuses", SOON))).reason == "it rests until its next check"


def test_a_lease_that_ends_now_and_an_obstacle_that_ends_now_are_over() -> None:
    assert why(standing(lease_until=NOW, lease_machine="attic")).reason == "it rests until its next check"
    assert why(standing(retry_at=NOW, retry_reason="SIGTERM")).reason == "it rests until its next check"


@pytest.mark.parametrize(("long", "told"), [(120, "x" * 120), (121, "x" * 120 + " ...")])
def test_a_reason_quotes_a_hundred_and_twenty_characters_of_a_failure(long: int, told: str) -> None:
    assert why(standing(failures=1, failure="x" * long)).reason == f"it failed once ({told}) and is tried again"


def test_beside_a_gate_of_the_browser_its_way_out_is_noted_and_beside_no_other() -> None:
    ways_out = {
        Stop("the browser is lost", LATER): "nothing is charged for that, and it is tried again by itself",
        Stop("the browser is down: its sidecar does not run", None): "`make run` starts it",
        Stop("the browser is down: its sidecar was stopped", None): "`.venv/bin/supervisorctl start browser` starts it",
        Stop(
            "the browser is down: Chrome is not installed: `apt install chromium`", None
        ): "it is found within a minute then",
        Stop("the browser is down: no Chrome answers", LATER): "it is tried again by itself",
        Stop("Chrome sleeps: fewer than 5 are due, none for 15 minutes", LATER): "a Check now wakes Chrome",
    }
    for gate, way_out in ways_out.items():
        (note,) = notes(standing(due="its time", gate=gate))
        words = f"its pages are read through the browser, and {gate.reason}"
        assert note == Note(words, until=gate.until, remedy=way_out)
    assert notes(standing(due="its time", gate=Stop("the Site refuses", LATER))) == ()
