"""The one reason why a Series is not polled, and its order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lanes.core.why import Standing, Stop, Why, beyond_check_now, why

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
SOON, LATER = NOW + timedelta(minutes=4), NOW + timedelta(hours=3)


def standing(**other: Any) -> Standing:
    facts: dict[str, Any] = {
        "now": NOW, "due": None, "due_at": SOON, "gate": None, "tier": "poll", "has_url": True, "bookmarks": 1, "paused_at": None,
        "retired_at": None, "retired_reason": None, "lifecycle": "ongoing", "lease_until": None, "lease_machine": None, "retry_at": None,
        "retry_reason": None, "failures": 0, "failure": None, "sighted": False, "waits": False,
    }  # fmt: skip
    return Standing(**facts | other)


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
    assert found == Why("it rests until its next check", LATER)


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


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, "it rests until its next check"),
        ({"retry_at": SOON, "retry_reason": "the interval of its address"}, "put back: the interval of its address"),
        ({"retired_at": NOW, "retired_reason": "gone"}, "retired (gone), with a weekly look left"),
        ({"lifecycle": "finished"}, "finished, with a weekly look left"),
        ({"failures": 1, "failure": "404"}, "it failed once (404) and is tried again"),
        ({"failures": 3}, "it failed 3 times in a row (no detail) and is tried again"),
        ({"sighted": True}, "a Reader saw it lately"),
    ],
)
def test_what_is_not_due_yet_says_what_it_waits_for(facts: dict[str, Any], reason: str) -> None:
    assert why(standing(**facts)) == Why(reason, SOON)


def test_what_is_due_and_free_waits_for_nothing_but_its_turn() -> None:
    found = why(standing(due="pending"))
    assert (found.reason, found.until, found.held) == ("due (pending): its Lane takes it at its turn", None, False)
