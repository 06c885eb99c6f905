"""add, check, pause, resume, remove."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import TypeVar

from lanes.cli.asking import reasons
from lanes.cli.door import Store, open_store, word
from lanes.cli.parser import DONE, FAILED, UNKNOWN, USAGE
from lanes.cli.words import clean, counted, print_json, relative, until
from lanes.core import schedule
from lanes.core.keys import readable
from lanes.core.urls import shown, split
from lanes.errors import BadUrl, UnknownSeries
from lanes.sites import by_name, recognise
from lanes.store.asking import Outcome
from lanes.store.following import Followed, Named, Wanted, Was

AT_A_TERMINAL = 10.0  # seconds `add` waits for the first Poll where somebody is looking
LOOK_AGAIN = 0.2  # seconds between two looks whether it has ended
LANE_IS_SILENT = timedelta(minutes=3)  # each Lane notes the clock once a minute
_GOOD = frozenset({"new", "unchanged"})

T = TypeVar("T")


def wanted(url: str, title: str | None = None) -> Wanted:
    """What is to be followed under a URL as pasted.  Raises BadUrl."""
    site, canonical = recognise(url)
    parts = split(canonical)
    if parts is None:
        raise BadUrl(url, "nobody can be asked by it.")
    rest = schedule.INITIAL if site.many_hosts else None
    return Wanted(site.name, canonical, parts.host, readable(canonical, title), title, rest)


def add(asked: Namespace) -> int:
    """Follows URLs and, at a terminal or when asked to, waits for their first Polls."""
    good, refused = _recognised(asked.urls)
    with open_store() as store:
        since = store.asking.now()
        followed = store.following.follow(good)
        outcomes: dict[str, Outcome | None] = {}
        if not asked.json:
            for each in followed:
                print(_told(each))
        patience = asked.wait if asked.wait is not None else AT_A_TERMINAL if sys.stdout.isatty() else 0.0
        fresh = [each.series for each in followed if each.was is not Was.FOLLOWED]
        if patience and fresh:
            outcomes = _first_outcomes(store, fresh, since, patience, quiet=asked.json)
        if asked.json:
            print_json([_row(each, outcomes) for each in followed])
    if refused:
        return USAGE
    failed = any(outcome is None or outcome.outcome not in _GOOD for outcome in outcomes.values())
    return FAILED if asked.wait and failed else DONE


def _recognised(urls: Iterable[str]) -> tuple[list[Wanted], int]:
    good, refused = [], 0
    for url in urls:
        try:
            good.append(wanted(url))
        except BadUrl as error:
            refused += 1
            _complain("add", error)
    return good, refused


def _told(followed: Followed) -> str:
    series = followed.series
    told = {
        Was.NEW: f"Following {series.key} ({series.site})",
        Was.KNOWN: f"Following {series.key} ({series.site}) again: what is there now counts as seen",
        Was.FOLLOWED: f"Already followed: {series.key} ({series.site})",
    }[followed.was]
    return f"{told}: {shown(series.url)}"


def _row(followed: Followed, outcomes: dict[str, Outcome | None]) -> dict[str, object]:
    series = followed.series
    return {
        "key": series.key,
        "site": series.site,
        "url": shown(series.url),
        "was": followed.was,
        "first_poll": outcomes.get(series.key),
    }


def _first_outcomes(
    store: Store, series: list[Named], since: datetime, patience: float, *, quiet: bool
) -> dict[str, Outcome | None]:
    outcomes: dict[str, Outcome | None] = {each.key: None for each in series}
    deadline = time.monotonic() + patience
    while True:
        for each in series:
            if outcomes[each.key] is None:
                outcome = outcomes[each.key] = store.asking.first_outcome(each.series_id, since)
                if outcome is not None and not quiet:
                    print(f"  {each.key}: {_first_poll(outcome)}")
        if None not in outcomes.values():
            return outcomes
        if time.monotonic() > deadline:
            break
        time.sleep(LOOK_AGAIN)
    if not quiet:
        _explain(store, [key for key, outcome in outcomes.items() if outcome is None])
    return outcomes


def _first_poll(outcome: Outcome) -> str:
    if outcome.outcome in _GOOD:
        return f"{counted(outcome.new_chapters, 'Chapter')} found"
    return clean(f"{outcome.outcome}: {outcome.detail or outcome.status or 'no detail'}")


def _explain(store: Store, keys: list[str]) -> None:
    for key in keys:
        series = store.asking.one(key)
        print(f"  {key}: not polled yet: {clean(series.why.reason)}{until(series.why.until, series.standing.now)}")
    totals = store.asking.totals()
    if totals.lane_seen_at is None or totals.now - totals.lane_seen_at > LANE_IS_SILENT:
        print(f"  No Lane runs (last seen: {relative(totals.lane_seen_at, totals.now)}). `make run` starts them.")


def check(asked: Namespace) -> int:
    """One Poll sooner, and why it may still have to wait."""
    with open_store() as store:
        found, code = _each("check", asked.keys, store.following.check_now)
        reasons(store, [series.key for series in found], json=asked.json)
    return code


def pause(asked: Namespace) -> int:
    """Stops polling Series or a Lane."""
    with open_store() as store:
        if asked.site is not None:
            site = by_name(asked.site).name
            print(f"The Lane {site} {'is paused' if store.following.pause_lane(site) else 'was paused already'}.")
            return DONE
        found, code = _each("pause", asked.keys, store.following.pause)
        for series, changed in found:
            print(f"{series.key} {'is paused' if changed else 'was paused already'}.")
    return code


def resume(asked: Namespace) -> int:
    """Ends pauses."""
    with open_store() as store:
        if asked.site is not None:
            site = by_name(asked.site).name
            print(f"The Lane {site} {'goes on' if store.following.resume_lane(site) else 'was not paused'}.")
            return DONE
        found, code = _each("resume", asked.keys, store.following.resume)
        for series, changed in found:
            print(f"{series.key} {'goes on' if changed else 'was not paused'}.")
    return code


def remove(asked: Namespace) -> int:
    """Drops Bookmarks; with --purge deletes Series."""
    if asked.purge and not asked.yes and not _confirmed(asked.keys):
        return USAGE
    with open_store() as store:
        act = store.following.purge if asked.purge else store.following.drop_bookmark
        found, code = _each("remove", asked.keys, act)
        for series, changed in found:
            if asked.purge:
                print(
                    f"{series.key} {'and its Chapters are deleted' if changed else 'is kept: other Readers hold it'}."
                )
            elif changed:
                print(f"{series.key} is no longer bookmarked. `lanes add` picks it up where it was.")
            else:
                print(f"{series.key} was not bookmarked.")
    return code


def _confirmed(keys: list[str]) -> bool:
    if not sys.stdin.isatty():
        sys.stderr.write("lanes remove: --purge deletes for good: say --yes as well.\n")
        return False
    return input(f"Delete {', '.join(keys)} with all Chapters for good? [y/N] ").strip().lower() in ("y", "yes")


def _each(command: str, keys: list[str], act: Callable[[str], T]) -> tuple[list[T], int]:
    """Does it for each, whatever becomes of the others; UNKNOWN where one was not there."""
    done, code = [], DONE
    for key in keys:
        try:
            done.append(act(word(key)))
        except UnknownSeries as error:
            _complain(command, error)
            code = UNKNOWN
    return done, code


def _complain(command: str, error: Exception) -> None:
    sys.stderr.write(f"lanes {command}: {error}\n")
