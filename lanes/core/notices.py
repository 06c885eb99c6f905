"""Notices: the closed set of their kinds, and the words by which each is owed once (DESIGN 8).

Owns kinds and events.  Refuses to own: what makes one owed (`settlement`, `retirement`, `lanes.upkeep`), writing (`lanes.store`)
and delivery.  Must never break: the same thing owed to the same Reader has the same event, however often it is found.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What a Notice is about; the facts are in its body, as JSON."""

    # to the Readers of a Series
    NEW_CHAPTERS = "new chapters"  # one per Poll, however many Chapters
    STOPPED = "stopped"  # retired, with the reason
    MOVED = "moved"  # it is followed elsewhere from now on
    BACK_AGAIN = "back again"  # revived; or what was refused or dead for three days is over
    REFUSED = "refused"  # for three days: its Site, its host, or its own URL
    DEAD = "dead"  # for three days: an incident of its Site
    DISALLOWED = "disallowed"  # robots.txt or the guard says no; to the owner too
    # to the owner
    INCIDENT = "incident"
    INCIDENT_OVER = "incident over"
    REFUSED_FOR_AN_HOUR = "refused for an hour"
    REFUSAL_OVER = "refusal over"
    BROWSER_LOST = "browser lost"


MOST_NAMED: Final = 50
"""Series or Chapters that one body names; further ones are only counted, so that no Site makes a Notice of a megabyte."""


def new_chapters(series_id: int, claimed_at: datetime) -> str:
    """The news of one Poll."""
    return f"chapters:{series_id}:{_instant(claimed_at)}"


def stopped(series_id: int, at: datetime) -> str:
    """One retirement of a Series."""
    return f"stopped:{series_id}:{_instant(at)}"


def moved(series_id: int, at: datetime) -> str:
    """One adopted move of a Series."""
    return f"moved:{series_id}:{_instant(at)}"


def back_again(series_id: int, at: datetime) -> str:
    """One revival of a Series; or the end of a refusal of its own URL, by the last good answer before it."""
    return f"back:{series_id}:{_instant(at)}"


def disallowed(series_id: int, good_at: datetime | None) -> str:
    """One time in which robots.txt or the guard says no, by the last good answer before it (None: there never was one): told once, however
    often it is looked at."""
    return f"disallowed:{series_id}:{'never' if good_at is None else _instant(good_at)}"


def refused_alone(series_id: int, good_at: datetime | None) -> str:
    """One time in which the Series' own URL is refused, by the last good answer before it (None: there never was one): when it began is
    shifted with the clock."""
    return f"refused:{series_id}:{'never' if good_at is None else _instant(good_at)}"


def incident(incident_id: int) -> str:
    """An incident of a Site or a refusal window, for its Readers as well as for the owner."""
    return f"incident:{incident_id}"


def incident_over(incident_id: int) -> str:
    """Its end, for all who were told of it."""
    return f"incident-over:{incident_id}"


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")
