"""sites verify: whether the landmarks of each Site are still there, on the owner's own network.

Owns which Series stands for a Site, the wait for its Poll, and what is told.  Refuses to own: the Poll (its Lane makes it, at its pace).
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from lanes.cli.door import Store, open_store
from lanes.cli.parser import AWAY, DONE, FAILED
from lanes.cli.silent import lane_is_silent, start_of
from lanes.cli.trying import attempt, code_of, url_of
from lanes.cli.trying import verdict as verdict_of_try
from lanes.cli.words import clean, print_json, print_table, relative
from lanes.core.settlement import NO_LIST
from lanes.core.why import TURNS, Standing, Stop, browser_remedy, with_remedy
from lanes.errors import BadUrl
from lanes.sites import Site, by_name, sites
from lanes.store.asking import Outcome
from lanes.store.following import Named
from lanes.store.trying import Shut

LOOK_AGAIN: Final = 0.2
"""Seconds between two looks whether a Poll has ended."""


class Found(StrEnum):
    """What was found of a Site.  Closed."""

    THERE = "there"
    GONE = "gone"
    EMPTY = "empty"
    REFUSED = "refused"
    FAILED = "failed"
    HELD = "held"
    STOPPED = "not running"
    UNKNOWN = "not known"
    NOTHING = "nothing followed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found of a Site, by which Series (None: its example, or nothing), in words, and until when that lasts."""

    site: str
    found: Found
    words: str
    key: str | None = None
    until: datetime | None = None


def verify(asked: Namespace) -> int:
    """One Check now for each Site, all at once; FAILED where a landmark is gone, AWAY where none could be looked for as things are."""
    wanted = sites() if asked.site is None else (by_name(asked.site),)
    deadline = time.monotonic() + asked.wait
    with open_store() as store:
        followed, since = store.asking.followed(), store.asking.now()
        keys = {site.name: followed[site.name].lately_good for site in wanted if site.name in followed}
        waited = {site.name: key for site in wanted if (key := keys.get(site.name)) is not None}
        found = [_not_followed(store, site, asked, deadline) for site in wanted if site.name not in waited]
        stopped = {site: key for site, key in waited.items() if lane_is_silent(store.asking.lane(site), since)}
        found += [_stopped(store, site, key) for site, key in stopped.items()]
        running = {site: key for site, key in waited.items() if site not in stopped}
        for key in running.values():
            store.following.check_now(key, anew=True)
        found += _polled(store, running, since, deadline, quiet=asked.json)
        now = store.asking.now()
    order = [site.name for site in wanted]
    found.sort(key=lambda each: order.index(each.site))
    _tell(found, now, as_json=asked.json)
    return code_for([each.found for each in found])


def code_for(found: Sequence[Found]) -> int:
    """Exit code of all that was found: a landmark that is gone is worse than one that nobody could look for."""
    if Found.GONE in found or Found.EMPTY in found:
        return FAILED
    return AWAY if Found.STOPPED in found or Found.UNKNOWN in found else DONE


def _polled(store: Store, waited: dict[str, str], since: datetime, deadline: float, *, quiet: bool) -> list[Verdict]:
    """What the Polls of these Series found, each told as it ends; why not, of those that have not ended in time."""
    left = {site: store.following.find(key) for site, key in waited.items()}
    found: list[Verdict] = []
    while left and time.monotonic() < deadline:
        for site, series in [*left.items()]:
            verdict = _by_now(store, site, series, since, deadline)
            if verdict is not None:
                found.append(verdict)
                del left[site]
                if not quiet:
                    sys.stderr.write(f"{site}: {verdict.found}\n")
        if left:
            time.sleep(LOOK_AGAIN)
    return found + [_late(store, site, series.key) for site, series in left.items()]


def _by_now(store: Store, site: str, series: Named, since: datetime, deadline: float) -> Verdict | None:
    """What is known of it: how its Poll ended, or what holds it for longer than is waited."""
    outcome = store.asking.first_outcome(series.series_id, since)
    if outcome is not None:
        return of_poll(site, series.key, outcome)
    found = store.asking.one(series.key)
    left = timedelta(seconds=deadline - time.monotonic())
    if not (found.why.held or _waits(found.standing)) or (
        found.why.until is not None and found.why.until - found.standing.now < left
    ):
        return None
    return held(site, Stop(found.why.reason, found.why.until), series.key)


def _waits(series: Standing) -> bool:
    """Whether no Poll of it is to be counted on: our line is down, or what put it back still stands."""
    if series.due is not None:
        return series.us_since is not None
    return series.retry_at is not None and series.retry_at > series.now


def held(site: str, gate: Stop, key: str | None = None, whose: str = "") -> Verdict:
    """A gate that outlasts the wait; a browser that is lost or down does not run, and its way out is said."""
    down = browser_remedy(gate) is not None and gate.reason not in TURNS
    return Verdict(site, Found.STOPPED if down else Found.HELD, whose + with_remedy(gate), key, gate.until)


def of_poll(site: str, key: str, outcome: Outcome) -> Verdict:
    """What the outcome of a Poll says of its Site's landmarks."""
    detail = outcome.detail or ("" if outcome.status is None else f"status {outcome.status}")
    match outcome.outcome:
        case "unchanged" if outcome.detail == NO_LIST:
            return Verdict(site, Found.GONE, "its list of Chapters is not there, only its newest number", key)
        case "new" | "unchanged":
            return Verdict(site, Found.THERE, "its landmarks are there", key)
        case "suspiciously empty":
            return Verdict(site, Found.EMPTY, "recognised, but no Chapter is there where some were known", key)
        case "failed" if outcome.kind in ("not recognised", "list missing", "fault"):
            return Verdict(site, Found.GONE, f"not recognised: {detail}", key)
        case "refused" | "asked to wait" | "disallowed" | "blocked":
            return Verdict(site, Found.REFUSED, f"{outcome.outcome}: {detail}", key)
        case _:
            return Verdict(site, Found.FAILED, f"{outcome.outcome}: {detail}", key)


def _late(store: Store, site: str, key: str) -> Verdict:
    series = store.asking.one(key)
    if lane_is_silent(store.asking.lane(site), series.standing.now):
        return _stopped(store, site, key)
    return Verdict(site, Found.UNKNOWN, f"not polled in time: {series.why.reason}", key, series.why.until)


def _stopped(store: Store, site: str, key: str) -> Verdict:
    return Verdict(site, Found.STOPPED, f"no Lane of {site} runs: {start_of(store, site)}", key)


def _not_followed(store: Store, site: Site, asked: Namespace, deadline: float) -> Verdict:
    if not asked.example or not site.example:
        lack = "--example asks it for its example" if site.example else "it has no example to ask for: `lanes add` one"
        return Verdict(site.name, Found.NOTHING, f"nothing of it is followed: {lack}")
    patience = timedelta(seconds=max(0.0, deadline - time.monotonic()))
    try:
        tried = attempt(store, site, url_of(site, site.example), patience, quiet=asked.json)
    except BadUrl as error:
        return Verdict(site.name, Found.FAILED, str(error))
    if isinstance(tried, Shut):
        return held(site.name, Stop(tried.reason, tried.until), whose="its example: ")
    short, words = verdict_of_try(tried)
    found = {
        "recognised": Found.THERE,
        "not recognised": Found.GONE,
        "list missing": Found.GONE,
        "failed": Found.FAILED,
        "not asked": Found.HELD,
    }.get(short, Found.REFUSED)
    told = words if code_of(tried) == DONE else f"{short}: {words}"
    return Verdict(site.name, found, f"its example: {told}", None, getattr(tried, "until", None))


def _tell(found: Sequence[Verdict], now: datetime, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    print_table(
        ("SITE", "LANDMARKS", "SERIES", "UNTIL", "WORDS"),
        ((each.site, each.found, each.key or "-", relative(each.until, now), clean(each.words)) for each in found),
        cut=("WORDS",),
        drop=("SERIES",),
    )
