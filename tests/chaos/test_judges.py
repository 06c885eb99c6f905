"""The judges of the chaos proof find what is planted, and excuse only what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.events import Events
from tests.chaos.origin import Verdict, judged
from tests.chaos.seen import Row, laid_side_by_side
from tests.chaos.world import Told
from tests.smallnet.record import Visit

BEGAN = 1_000.0
"""Wall seconds of the first request of each test."""


@pytest.fixture
def events(tmp_path: Path) -> Events:
    return Events(tmp_path / "events")


def visit(at: float, path: str = "/a", *, status: int = 200, takes: float = 0.01) -> Visit:
    """A request that arrived `at` seconds after BEGAN."""
    arrived = BEGAN + at
    return Visit(arrived, arrived, arrived + takes, "127.1.1.1", "h", "h", "GET", path, {}, status, 1, 0, True)


def row(at: float, path: str = "/a", *, token: str | None = None, outcome: str = "new", status: int = 200) -> Row:
    """Its worker's own words; it was claimed and settled within moments."""
    sent = BEGAN + at
    return Row("h", token or f"{at}", f"http://h{path}", 0, status, outcome, None, sent - 0.01, sent, sent + 0.02)


def verdict(
    events: Events,
    visits: list[Visit],
    rows: list[Row],
    told: list[Told] | None = None,
    crawl_delay: float | None = None,
) -> Verdict:
    hosts, _ = laid_side_by_side(visits, rows, events)
    return judged(hosts, told or [], {} if crawl_delay is None else {"h": crawl_delay}, events)


def test_two_requests_within_a_second_of_what_was_sent_offend(events: Events) -> None:
    (offence,) = verdict(events, [visit(0), visit(0.9, "/b")], [row(0), row(0.9, "/b")]).offences
    assert "0.900 s apart" in offence


def test_a_request_that_was_delivered_late_makes_no_offender_of_the_next(events: Events) -> None:
    found = verdict(events, [visit(0.4), visit(1.1, "/b")], [row(0), row(1.1, "/b")])
    assert found.offences == []
    assert found.counts["pairs that delivery brought nearer"] == 1
    assert found.worst_swallowed == pytest.approx(0.3)


def test_a_killed_worker_has_no_more_than_the_tolerance(events: Events) -> None:
    assert verdict(events, [visit(0), visit(0.8, "/b")], [row(0.8, "/b")]).offences == []
    assert len(verdict(events, [visit(0), visit(0.7, "/b")], [row(0.7, "/b")]).offences) == 1
    assert len(verdict(events, [visit(0), visit(0.9, "/b")], [row(0)]).offences) == 1


def test_two_requests_of_one_poll_are_held_to_each_other(events: Events) -> None:
    visits = [visit(0), visit(0.95)]
    assert verdict(events, visits, [row(0.1, token="t"), row(1.1, token="t")]).offences == []
    assert len(verdict(events, visits, [row(0.1, token="t"), row(1.0, token="t")]).offences) == 1


def test_a_crawl_delay_binds_once_it_was_read(events: Events) -> None:
    robots = visit(0, "/robots.txt"), row(0, "/robots.txt", outcome="robots")
    visits, rows = (
        [robots[0], visit(1.1), visit(3.2, "/b"), visit(4.9)],
        [robots[1], row(1.1), row(3.2, "/b"), row(4.9)],
    )
    offences = verdict(events, visits, rows, crawl_delay=2).offences
    assert len(offences) == 2
    assert "1.100 s apart" in offences[0]
    assert "1.700 s apart" in offences[1]


def test_two_at_once_offend_unless_a_lease_had_run_out(events: Events) -> None:
    assert len(verdict(events, [visit(0, takes=9), visit(5, "/b")], [row(0), row(5, "/b")]).offences) == 1
    found = verdict(events, [visit(0, takes=200), visit(95, "/b")], [row(0), row(95, "/b")])
    assert found.offences == []
    assert found.counts["overlaps after a lease ran out"] == 1


def test_a_named_wait_binds_the_host_or_of_a_503_the_url(events: Events) -> None:
    for status, offenders in ((429, 2), (503, 1)):
        visits = [visit(0, status=status), visit(3, "/b"), visit(5), visit(12, "/b")]
        rows = [row(0, status=status, outcome="asked to wait"), row(3, "/b"), row(5), row(12, "/b")]
        told = [Told(BEGAN + 0.01, "h", "/a", status, 10.0)]
        assert len(verdict(events, visits, rows, told).offences) == offenders
        assert verdict(events, visits, rows[1:], told).offences == [], "nobody lived to hear it"


def test_a_refusal_binds_its_url_and_two_of_different_urls_their_host(events: Events) -> None:
    visits = [visit(0, status=403), visit(5, "/b"), visit(10, "/b", status=403), visit(20, "/c"), visit(30)]
    rows = [
        row(0, status=403, outcome="refused"), row(5, "/b"), row(10, "/b", status=403, outcome="refused"), row(20, "/c"), row(30),
    ]  # fmt: skip
    told = [Told(BEGAN + at + 0.01, "h", path, 403, None) for at, path in ((0, "/a"), (10, "/b"))]
    (alone,) = verdict(events, visits, rows, told).offences
    assert alone.startswith("h/a: asked at")
    unanswered = verdict(events, [visits[0], *visits[2:]], [rows[0], *rows[2:]], told).offences
    assert len([each for each in unanswered if "403 of /a and /b" in each]) == 2


def test_nothing_is_judged_across_a_move_of_the_clock(events: Events) -> None:
    events.moves.append((BEGAN + 0.2, BEGAN + 0.3, 3_600.0))
    moved = row(0.5, "/b")
    moved = moved._replace(
        claimed_at=moved.claimed_at + 3_600, sent_at=moved.sent_at + 3_600, ended_at=moved.ended_at + 3_600
    )
    hosts, lost = laid_side_by_side([visit(0), visit(0.5, "/b")], [row(0), moved], events)
    assert lost == 0
    assert judged(hosts, [], {}, events).offences == []
