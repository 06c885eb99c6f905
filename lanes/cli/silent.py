"""Lanes that do not run, by their own word: which they are, and what starts them.

Owns that judgement and its remedy, for every command that tells it.  Refuses to own: why a Series is not polled (`core.why`).
Must never break: a remedy is one that works as things are: where any Lane runs, `make run` refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from lanes.cli.door import Store
from lanes.cli.words import relative
from lanes.core.why import beyond_check_now
from lanes.sites import SITES, sites
from lanes.store.asking import LaneState, Listed

SILENT: Final = timedelta(minutes=3)
"""A Lane says once a minute that it lives."""


def lane_is_silent(lane: LaneState, now: datetime) -> bool:
    """Whether its Lane does not run, by its own word."""
    return lane.seen_at is None or now - lane.seen_at > SILENT


def how_to_start(site: str, *, any_runs: bool) -> str:
    """What starts the Lane of a Site; `any_runs`: some Lane was seen lately, so that supervisord runs."""
    shipped = next((each for each in SITES if each.name == site), None)
    if shipped is None:
        return f"`lanes sites --supervisord {site}` prints its section"
    if shipped.starts and not any_runs:
        return "`make run` starts it"
    return f"`.venv/bin/supervisorctl start lane-{site}` starts it"


def start_of(store: Store, site: str) -> str:
    """What starts the Lane of a Site, as things are now."""
    return how_to_start(site, any_runs=_any_runs(store))


def _any_runs(store: Store) -> bool:
    now = store.asking.now()
    return any(not lane_is_silent(store.asking.lane(each.name), now) for each in sites())


def silent_lanes(store: Store, among: Iterable[str]) -> Mapping[str, str]:
    """Of these Sites those whose Lane does not run: when it was seen, and what starts it."""
    now = store.asking.now()
    silent = [lane for site in sorted(set(among)) if lane_is_silent(lane := store.asking.lane(site), now)]
    any_runs = bool(silent) and _any_runs(store)
    return {
        lane.site: f"(last seen: {relative(lane.seen_at, now)}): {how_to_start(lane.site, any_runs=any_runs)}"
        for lane in silent
    }


def silent_lanes_of(store: Store, found: Iterable[Listed]) -> Mapping[str, str]:
    """The same of the Sites of these Series, as far as a Lane would poll them and may."""
    if not store.settings.poll_enabled:
        return {}
    return silent_lanes(store, {each.site for each in found if is_polled(each)})


def is_polled(each: Listed) -> bool:
    """Whether a Lane would poll it in its turn."""
    return each.standing.has_site and beyond_check_now(each.standing) is None
