"""Sites of the owner's own, outside this repository: entry points of the group `lanes.sites` (docs/adding-a-site.md).

Owns what such a Site must be, and what is said of one that is not.  Refuses to own: the order of the Sites (`lanes.sites`).  Must never
break: a broken one costs itself alone, and none sets a faster pace than any Site may have.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from importlib.metadata import EntryPoint, entry_points
from typing import Final
from zlib import crc32

from lanes.core.chapters import Document, NotRecognised, Reading
from lanes.core.pace import GAP_FLOOR
from lanes.core.urls import split
from lanes.errors import BadUrl, LanesError
from lanes.sites.site import Site

log = logging.getLogger("lanes.sites")

GROUP: Final = "lanes.sites"
SHORTEST_REST: Final = timedelta(minutes=1)
"""Of an own Site: what the liveliest feed gets (DESIGN 5.2)."""
NUMBERS: Final = range(100, 500)
"""Process numbers of own Sites' Lanes: clear of the shipped ones, and the highest port base plus these is still a port."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


@dataclass(frozen=True, slots=True)
class Broken:
    """An entry point that gives no Site that can be used: its name, the distribution that has it, and why, with the remedy."""

    name: str
    distribution: str
    why: str

    def __str__(self) -> str:
        return f"The own Site {self.name!r} of {self.distribution} is left out: {self.why}"


@dataclass(frozen=True, slots=True)
class Own:
    """The own Sites that can be used, by name, the distribution of each, which of them replace a shipped Site, and those left out."""

    sites: Mapping[str, Site] = field(default_factory=dict)
    distributions: Mapping[str, str] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()
    broken: tuple[Broken, ...] = ()


class _Unfit(Exception):
    """What an entry point gives is no Site that can be used."""


def number_of(name: str) -> int:
    """The process number of an own Site's Lane: worked out of its name, so it is the same on every machine and at every start."""
    return NUMBERS[crc32(name.encode()) % len(NUMBERS)]


def gather(shipped: Iterable[Site], entries: Iterable[EntryPoint] | None = None) -> Own:
    """The own Sites of this environment, in the order of their names; whatever is wrong with one is told, and costs no other."""
    found = entry_points(group=GROUP) if entries is None else entries
    taken = {site.name: site for site in shipped}
    names, sites, distributions, broken = {*taken}, dict[str, Site](), dict[str, str](), list[Broken]()
    for entry in sorted(found, key=lambda each: (each.name, _distribution(each))):
        distribution = _distribution(entry)
        others = [site for name, site in taken.items() if name != entry.name]
        try:
            site = _fit(_loaded(entry, distributions), entry.name, others, is_new=entry.name not in names)
        except _Unfit as unfit:
            broken.append(Broken(entry.name, distribution, str(unfit)))
        except Exception as error:  # noqa: BLE001 - a field of another type than Site says: whatever that leads to
            broken.append(Broken(entry.name, distribution, f"it is no sound Site ({type(error).__name__}: {error})"))
        else:
            taken[site.name] = sites[site.name] = site
            distributions[site.name] = distribution
    return Own(sites, distributions, frozenset(names & set(sites)), tuple(broken))


def _distribution(entry: EntryPoint) -> str:
    return "an unnamed distribution" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"


def _loaded(entry: EntryPoint, distributions: Mapping[str, str]) -> object:
    if entry.name in distributions:
        raise _Unfit(f"{distributions[entry.name]} has one of that name already")
    try:
        return entry.load()
    except (Exception, SystemExit) as error:
        raise _Unfit(f"{entry.value} cannot be imported ({type(error).__name__}: {error})") from error


def _fit(site: object, name: str, others: Iterable[Site], *, is_new: bool) -> Site:
    """The Site, careful in what it is asked.  Raises _Unfit."""
    if not isinstance(site, Site):
        raise _Unfit(f"its entry point gives a {type(site).__name__}, not a lanes.sites.Site")
    if not _NAME.fullmatch(site.name):
        raise _Unfit(f"its name {site.name!r} is not 1 to 40 of the characters a-z, 0-9 and -")
    if site.name != name:
        raise _Unfit(f"its Site is called {site.name!r}: give the entry point that very name")
    if site.name == "feeds" or site.many_hosts:
        raise _Unfit("the Site of many hosts is `feeds` alone: choose another name, and no many_hosts")
    _check_hosts(site, others)
    _check_pace(site)
    numbered = replace(site, number=_number(site, others)) if is_new else site
    return replace(numbered, recognise=_recogniser(site), read=_reader(site))


def _check_hosts(site: Site, others: Iterable[Site]) -> None:
    if not site.hosts:
        raise _Unfit("it names no hosts: give those from which its documents come")
    for host in site.hosts:
        parts = split(f"https://{host}/")
        if parts is None or parts.host != host or parts.userinfo is not None or parts.target != "/":
            raise _Unfit(f"{host!r} is not a host's name in small letters, without scheme and port")
        for other in others:
            if host in other.hosts:
                raise _Unfit(f"{host} belongs to the Site {other.name}: to replace that one, take its name")
    if beyond := sorted(set(site.host_floors) - set(site.hosts)):
        raise _Unfit(f"its host_floors name {beyond[0]}, which is not one of its hosts")


def _check_pace(site: Site) -> None:
    if site.gap is None or site.gap < GAP_FLOOR:
        raise _Unfit(f"its Gap is shorter than {GAP_FLOOR.total_seconds():g} s")
    if site.rest < SHORTEST_REST:
        raise _Unfit(f"its Rest is shorter than {SHORTEST_REST.total_seconds():g} s")
    if site.slots != 1:
        raise _Unfit("only `feeds` has more than one slot")


def _number(site: Site, others: Iterable[Site]) -> int:
    number = number_of(site.name) if site.number is None else site.number
    if number not in NUMBERS:
        raise _Unfit(f"its number {number} is not from {NUMBERS[0]} to {NUMBERS[-1]}")
    for other in others:
        if number == other.number:
            raise _Unfit(
                f"{site.name} and {other.name} would both serve their metrics at the port base + {number}: "
                f"give one of them another number (Site(number=...), {NUMBERS[0]} to {NUMBERS[-1]})"
            )
    return number


def _recogniser(site: Site) -> Callable[[str], str | None]:
    """It is asked about every URL that anybody pastes: a fault of it must not keep them from the other Sites."""

    def recognise(url: str) -> str | None:
        try:
            found = site.recognise(url)
        except LanesError:
            raise
        except Exception:
            log.exception("a bug in an own Site's recogniser site=%s", site.name)
            found = None
        if found is None and (asked := split(url)) is not None and asked.host in site.hosts:
            raise BadUrl(url, f"its host belongs to the own Site {site.name}, which does not recognise it.")
        parts = split(found) if isinstance(found, str) else None
        if found is not None and (parts is None or parts.host not in site.hosts):
            raise BadUrl(url, f"the own Site {site.name} would fetch it from a place that is not one of its hosts.")
        return found

    return recognise


def _reader(site: Site) -> Callable[[bytes, str | None, str, datetime], Reading]:
    """A reading that is none must not pass for the same bytes as before: it raises, which costs one Series a failure."""

    def read(body: bytes, content_type: str | None, url: str, at: datetime) -> Reading:
        reading: object = site.read(body, content_type, url, at)
        if not isinstance(reading, Document | NotRecognised):
            raise TypeError(
                f"the reader of {site.name} gave a {type(reading).__name__}: neither Document nor NotRecognised"
            )
        return reading

    return read
