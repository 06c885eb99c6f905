"""add, check, pause, resume, remove."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Iterable, Sequence
from datetime import datetime

from lanes.cli.asking import reason
from lanes.cli.door import Store, each_key, open_store
from lanes.cli.parser import DONE, FAILED, USAGE, NotMeant
from lanes.cli.silent import silent_lanes_of
from lanes.cli.sites import tell_broken
from lanes.cli.spelling import as_followed
from lanes.cli.words import clean, counted, masked, print_json, reason_told
from lanes.core import schedule
from lanes.core.keys import readable
from lanes.core.urls import split
from lanes.core.why import beyond_check_now
from lanes.errors import BadUrl
from lanes.sites import by_name, recognise
from lanes.sites.recognisers import caution_of
from lanes.sites.urls import canonical
from lanes.store.asking import Listed, Outcome
from lanes.store.following import Followed, Named, Wanted, Was

AT_A_TERMINAL = 10.0  # seconds `add` waits for the first Poll where somebody is looking
LOOK_AGAIN = 0.2  # seconds between two looks whether it has ended
_GOOD = frozenset({"new", "unchanged"})


def wanted(url: str, title: str | None = None) -> Wanted:
    """What is to be followed under a URL as pasted.  Raises BadUrl."""
    site, asked = recognise(url)
    parts = split(asked)
    if parts is None:
        raise BadUrl(url, "nobody can be asked by it.")
    rest = schedule.INITIAL if site.many_hosts else None
    shown = (
        asked if site.many_hosts else canonical(url)
    )  # a page's own words, rather than those of the address behind it
    return Wanted(site.name, asked, parts.host, readable(shown, title), title, rest, site.browser)


def add(asked: Namespace) -> int:
    """Follows URLs and, at a terminal or when asked to, waits for their first Polls."""
    tell_broken("add")
    good, refused = _recognised(asked.urls)
    with open_store() as store:
        since = store.asking.now()
        good = as_followed(store.following, _free(store, good, refused))
        followed = store.following.respell(store.following.follow(good))
        if not asked.json:
            for each in followed:
                print(_told(each))
            for caution in dict.fromkeys(filter(None, (caution_of(each.series.url) for each in followed))):
                print(caution)
        patience = asked.wait if asked.wait is not None else AT_A_TERMINAL if sys.stdout.isatty() else 0.0
        fresh = [each.series for each in followed if each.was is not Was.FOLLOWED]
        for new in fresh:
            if by_name(new.site).browser:  # whoever adds something waits for it, which Chrome would sleep through
                store.following.check_now(new.key)
        in_vain = [each.key for each in fresh if _is_stopped(store, each.key)]
        if not asked.json:
            _explain(store, in_vain)
        waited = [each for each in fresh if each.key not in in_vain]
        outcomes = _first_outcomes(store, waited, since, patience, quiet=asked.json)
        if asked.json:
            print_json([*(_row(each, outcomes) for each in followed), *refused])
    if refused:
        return USAGE
    failed = in_vain or any(outcome is None or outcome.outcome not in _GOOD for outcome in outcomes.values())
    return FAILED if asked.wait and failed else DONE


def _warn_of_silent_lanes(store: Store, series: list[Named]) -> None:
    for site, told in silent_lanes_of(store, [store.asking.one(each.key) for each in series]).items():
        sys.stderr.write(f"lanes add: No Lane of {site} runs {told}.\n")


def _recognised(urls: Sequence[str]) -> tuple[list[Wanted], list[dict[str, str]]]:
    """What can be followed, and why the rest cannot.  Raises BadUrl where there is only one and it cannot."""
    good, refused = [], []
    for url in urls:
        try:
            good.append(wanted(url))
        except BadUrl as error:
            if len(urls) == 1:
                raise
            refused.append({"error": str(error)})
            sys.stderr.write(f"lanes add: {error}\n")
    return good, refused


def _free(store: Store, good: list[Wanted], refused: list[dict[str, str]]) -> list[Wanted]:
    """What can be followed because its host is no other Site's; why the rest cannot goes to `refused`."""
    taken = store.following.taken(good)
    for each in good:
        if each.host in taken:
            refused.append({"error": f"{masked(each.url)!r} cannot be followed: {taken[each.host]}."})
            sys.stderr.write(f"lanes add: {refused[-1]['error']}\n")
    return [each for each in good if each.host not in taken]


def _is_stopped(store: Store, key: str) -> bool:
    """Whether it is of no use to wait: what holds it ends only by somebody's hand."""
    reason = store.asking.one(key).why
    return reason.held and reason.until is None


def _told(followed: Followed) -> str:
    series = followed.series
    told = {
        Was.NEW: f"Following {series.key} ({series.site})",
        Was.KNOWN: f"Following {series.key} ({series.site}) again: what is there now counts as seen",
        Was.FOLLOWED: f"Already followed: {series.key} ({series.site})",
    }[followed.was]
    return f"{told}: {masked(series.url)}"


def _row(followed: Followed, outcomes: dict[str, Outcome | None]) -> dict[str, object]:
    series = followed.series
    return {
        "key": series.key,
        "site": series.site,
        "url": masked(series.url),
        "was": followed.was,
        "first_poll": outcomes.get(series.key),
    }


def _first_outcomes(
    store: Store, series: list[Named], since: datetime, patience: float, *, quiet: bool
) -> dict[str, Outcome | None]:
    if not patience:
        _warn_of_silent_lanes(store, series)
        return {}
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
    found = [store.asking.one(key) for key in keys]
    for each in found:
        print(f"  {each.key}: not polled yet: {reason_told(each.why, each.standing.now)}")
    _tell_silent_lanes(store, found)


def _tell_silent_lanes(store: Store, found: Iterable[Listed]) -> None:
    for site, told in silent_lanes_of(store, found).items():
        print(f"  No Lane of {site} runs {told}.")


def check(asked: Namespace) -> int:
    """One Poll sooner, and why it may still have to wait."""
    with open_store() as store:
        found, missed, code = each_key(
            store, "check", asked.keys, lambda key: store.asking.one(store.following.check_now(key).key)
        )
        refused = {each.key: no for each in found if (no := beyond_check_now(each.standing)) is not None}
        if asked.json:
            print_json([*({**reason(each), "asked": each.key not in refused} for each in found), *missed])
            return code or (FAILED if refused else DONE)
        for each in found:
            if each.key in refused:
                print(f"{each.key} cannot be checked now: {clean(refused[each.key])}.")
            else:
                print(f"Asked for {each.key}: {reason_told(each.why, each.standing.now)}")
        _tell_silent_lanes(store, [each for each in found if each.key not in refused])
    return code or (FAILED if refused else DONE)


def pause(asked: Namespace) -> int:
    """Stops polling Series or a Lane."""
    return _set_pause(asked, paused=True)


def resume(asked: Namespace) -> int:
    """Ends pauses."""
    return _set_pause(asked, paused=False)


def _set_pause(asked: Namespace, *, paused: bool) -> int:
    done, already = ("is paused", "was paused already") if paused else ("goes on", "was not paused")
    with open_store() as store:
        verbs = store.following
        if asked.site is not None:
            site = by_name(asked.site).name
            changed = verbs.pause_lane(site) if paused else verbs.resume_lane(site)
            if asked.json:
                print_json({"site": site, "paused": paused, "changed": changed})
            else:
                print(f"The Lane {site} {done if changed else already}.")
            return DONE
        found, missed, code = each_key(store, asked.command, asked.keys, verbs.pause if paused else verbs.resume)
    if asked.json:
        rows = [{"key": series.key, "paused": paused, "changed": changed} for series, changed in found]
        print_json([*rows, *missed])
        return code
    for series, changed in found:
        print(f"{series.key} {done if changed else already}.")
    return code


def remove(asked: Namespace) -> int:
    """Drops Bookmarks; with --purge deletes Series."""
    if asked.purge and not asked.yes:
        _confirm(asked.keys)
    with open_store() as store:
        act = store.following.purge if asked.purge else store.following.drop_bookmark
        found, missed, code = each_key(store, "remove", asked.keys, act)
    if asked.json:
        rows = [{"key": each.key, "purged": asked.purge and changed, "changed": changed} for each, changed in found]
        print_json([*rows, *missed])
        return code
    for series, changed in found:
        if asked.purge:
            print(f"{series.key} {'and its Chapters are deleted' if changed else 'is kept: other Readers hold it'}.")
        elif changed:
            print(f"{series.key} is no longer bookmarked. `lanes add` picks it up where it was.")
        else:
            print(f"{series.key} was not bookmarked.")
    return code


def _confirm(keys: list[str]) -> None:
    if not sys.stdin.isatty():
        raise NotMeant("--purge deletes for good: say --yes as well.")
    sys.stderr.write(f"Delete {', '.join(keys)} with all Chapters for good? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotMeant("nothing was deleted.")
