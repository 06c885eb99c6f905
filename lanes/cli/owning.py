"""slow, block, retire, revive, back."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace

from lanes.cli import arguments
from lanes.cli.door import Store, each_key, open_store, text, word
from lanes.cli.parser import DONE
from lanes.cli.words import clean, counted, exactly, masked, print_json, print_table, reason_told, relative, until
from lanes.errors import UnknownSite
from lanes.sites import Site, site_of, sites
from lanes.store.asking import Listed
from lanes.store.owning import Slowed, Word


def slow(asked: Namespace) -> int:
    """Slows a host or a Site, ends that, or shows what is slowed."""
    if asked.place is None:
        if asked.undo:
            asked.parser.error("--undo needs a HOST or a SITE")
        return _show(asked, blocked=False)
    if (asked.at_least is None) != asked.undo:
        asked.parser.error("a HOST or a SITE needs either a DURATION, such as 1h, or --undo")
    site, host = _place(asked)
    with open_store() as store:
        if host is not None:
            _refuse_typo(store, asked.place, host)
        return _end_slow(asked, store, site, host) if asked.undo else _slow(asked, store, site, host)


def _place(asked: Namespace) -> tuple[Site, str | None]:
    """The Site that is named, or the host and the Site that it belongs to while nobody is followed there."""
    site = next((site for site in sites() if site.name == asked.place), None)
    if site is not None:
        return site, None
    host = _host(asked)
    return site_of(host), host


def _host(asked: Namespace) -> str:
    host = ""
    try:
        host = arguments.host(asked.place)
    except ArgumentTypeError as error:
        asked.parser.error(f"argument HOST|SITE: {error}")
    return host


def _refuse_typo(store: Store, typed: str, host: str) -> None:
    """A bare word is the KEY of a Series or a Site misspelt more often than a host.  Raises UnknownSite."""
    if "." not in host and ":" not in host and not store.owning.knows(host):
        raise UnknownSite(text(typed), tuple(site.name for site in sites()))


def _slow(asked: Namespace, store: Store, site: Site, host: str | None) -> int:
    done = (
        store.owning.slow_lane(site.name, asked.at_least)
        if host is None
        else store.owning.slow_host(site.name, host, asked.at_least)
    )
    if asked.json:
        print_json(done)
        return DONE
    print(_slowed(done))
    _tell_of_hosts_below(store, host, done.series)
    return DONE


def _slowed(done: Slowed) -> str:
    end = f"`lanes slow {done.about} --undo` ends it."
    if not done.changed:
        return (
            f"{done.about}: nothing changed, your word of {exactly(done.word)} between two requests is in force. {end}"
        )
    told = f"{done.about}: at least {exactly(done.word)} between two requests from now on ({counted(done.series, 'Series')} there). {end}"
    if done.in_force is not None and done.in_force > done.word:
        told += f"\nIt changes nothing yet: {exactly(done.in_force)} are kept there already, for other reasons."
    return told


def _end_slow(asked: Namespace, store: Store, site: Site, host: str | None) -> int:
    freed = store.owning.free_lane(site.name, site.gap) if host is None else store.owning.free_host(host)
    if asked.json:
        print_json(
            {"about": freed.about, "changed": freed.word is not None, "word": freed.word, "in_force": freed.in_force}
        )
    elif freed.word is None:
        print(f"{freed.about}: nothing changed, you had not slowed it.")
    else:
        left = "" if freed.in_force is None else f": {exactly(freed.in_force)} between two requests from now on"
        print(f"{freed.about}: your word of {exactly(freed.word)} is over{left}.")
    return DONE


def block(asked: Namespace) -> int:
    """Blocks a host, ends that, or shows what is blocked."""
    if asked.place is None:
        if asked.undo:
            asked.parser.error("--undo needs a HOST")
        return _show(asked, blocked=True)
    host = asked.place
    with open_store() as store:
        _refuse_typo(store, host, host)
        if asked.undo:
            return _end_block(asked, store, host)
        done = store.owning.block(site_of(host).name, host)
        if asked.json:
            print_json(done)
            return DONE
        what = "is blocked from now on" if done.changed else "was blocked already"
        print(
            f"{host} {what}: nothing is asked there ({counted(done.series, 'Series')}). `lanes block {host} --undo` ends it."
        )
        _tell_of_hosts_below(store, host, done.series)
    return DONE


def _end_block(asked: Namespace, store: Store, host: str) -> int:
    done, now = store.owning.unblock(host), store.asking.now()
    if asked.json:
        print_json(done)
    elif not done.changed:
        print(f"{host}: nothing changed, it was not blocked.")
    elif done.until is not None:
        print(f"{host} is blocked no longer, but waits: {clean(done.reason or '')}{until(done.until, now)}.")
    else:
        print(f"{host} is blocked no longer.")
    return DONE


def _tell_of_hosts_below(store: Store, host: str | None, series: int) -> None:
    """Whoever names a domain at which nobody is followed may mean its hosts: each has its own word."""
    below = () if host is None or series else store.owning.hosts_below(host)
    if below:
        print(f"No Series is asked there, but at {', '.join(below)}: each host has its own word.")


def _show(asked: Namespace, *, blocked: bool) -> int:
    with open_store() as store:
        found = [each for each in store.owning.words() if (each.at_least is None) == blocked]
        now = store.asking.now()
    if asked.json:
        print_json(found)
        return DONE
    if not found:
        print("No host is blocked." if blocked else "No host and no Site is slowed.")
        return DONE
    heads = ("HOST", *(() if blocked else ("AT LEAST",)), "SAID", "SERIES")
    print_table(
        heads,
        (
            (_named(each), *(() if blocked else (exactly(each.at_least),)), relative(each.said_at, now), each.series)
            for each in found
        ),
    )
    return DONE


def _named(each: Word) -> str:
    return f"the Site {each.about}" if each.is_site else each.about


def retire(asked: Namespace) -> int:
    """Gives Series up."""
    reason = clean(text(asked.reason)).strip()
    if not reason:
        asked.parser.error("--reason needs a TEXT")
    with open_store() as store:
        found, missed, code = each_key(store, "retire", asked.keys, lambda key: store.owning.retire(key, reason))
    if asked.json:
        print_json([*({"key": series.key, "retired": True, "changed": changed} for series, changed in found), *missed])
        return code
    for series, changed in found:
        if changed:
            print(
                f"{series.key} is given up, its Readers are told: {reason}. `lanes revive {series.key}` takes it back."
            )
        else:
            print(f"{series.key} was given up already.")
    return code


def revive(asked: Namespace) -> int:
    """Takes Series back."""
    with open_store() as store:
        found, missed, code = each_key(store, "revive", asked.keys, store.owning.revive)
        stand = {each.series.key: store.asking.one(each.series.key) for each in found}
    if asked.json:
        rows = (
            {"key": e.series.key, "retired": False, "changed": e.changed, "moved_to": e.moved_to, "copies": e.copies}
            for e in found
        )
        print_json([*rows, *missed])
        return code
    for each in found:
        if not each.changed:
            print(f"{each.series.key} was not given up.")
            continue
        print(f"{each.series.key} is back, its counters at zero, its Readers told: {_state(stand[each.series.key])}")
        if each.moved_to is not None:
            copies = counted(each.copies, "Bookmark")
            print(f"  Its move to {each.moved_to} is undone: {copies} copied there are gone again, and it stays away.")
    return code


def back(asked: Namespace) -> int:
    """Returns a Series to its old URL."""
    with open_store() as store:
        series, left = store.owning.back(word(store, asked.key))
        stands = store.asking.one(series.key)
    retired = stands.standing.retired_at is not None
    if asked.json:
        print_json({"key": series.key, "url": masked(series.url), "stays_off": masked(left), "retired": retired})
        return DONE
    print(f"{series.key} is followed at {masked(series.url)} again, and stays off {masked(left)}.")
    print(f"  It is still given up: `lanes revive {series.key}` takes it back." if retired else f"  {_state(stands)}")
    return DONE


def _state(series: Listed) -> str:
    return reason_told(series.why, series.standing.now)
