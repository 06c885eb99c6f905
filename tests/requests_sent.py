"""Requests as they might have been sent, and what was demanded of them, for tests of the audit's rules."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from lanes.core.audit import Demand, Kind, Offence, Place, Request, offences

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def request(
    sent: float, took: float = 0.1, *, token: str | None = None, place: str = "one.example", **given: Any
) -> Request:
    """A request to one host whose interval is a second, of a Poll of its own that was claimed when it was sent."""
    whole: dict[str, Any] = {
        "place": place, "host": "one.example", "series_id": 7, "machine": "attic", "token": token or f"poll at {sent}",
        "claimed_at": at(sent), "sent_at": at(sent), "ended_at": at(sent + took), "outcome": "unchanged", "host_pace": SECOND,
    }  # fmt: skip
    return Request(**whole | given)


def kinds(place: Place, *requests: Request, demands: Iterable[Demand] = ()) -> list[Kind]:
    return [offence.kind for offence in offences(place, requests, demands)]


def only(place: Place, *requests: Request, demands: Iterable[Demand] = ()) -> Offence:
    (offence,) = offences(place, requests, demands)
    return offence


def refused(sent: float, until: float, took: float = 0.1, **given: Any) -> Request:
    """A refused read that opened a window of its host."""
    return request(sent, took, outcome="refused", **{"host_wait_until": at(until)} | given)


def crawl_delay(seconds: float, since: float = 0, place: str = "one.example") -> Demand:
    return Demand(place, Kind.CRAWL_DELAY, at(since), None, timedelta(seconds=seconds))


def slowed(seconds: float, since: float = 0, until: float | None = None, place: str = "one.example") -> Demand:
    """The owner's word that slows."""
    ends = None if until is None else at(until)
    return Demand(place, Kind.OWNERS_WORD, at(since), ends, timedelta(seconds=seconds))


def blocked(since: float = 0, until: float | None = None, place: str = "one.example") -> Demand:
    """The owner's word that nobody is to be asked."""
    return Demand(place, Kind.OWNERS_WORD, at(since), None if until is None else at(until), None)


def of_site(sent: float, gap: float | None = 10, **given: Any) -> Request:
    return request(sent, place="serial", lane_gap=None if gap is None else timedelta(seconds=gap), **given)
