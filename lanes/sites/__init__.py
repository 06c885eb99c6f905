"""The registry: every Site, how it is recognised, read and paced.

Owns one entry a Site, its pace included.  Refuses to own: fetching, storing, deciding.  Must never break: a Site is registered here by
hand or does not exist, and nothing but this file sets its pace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from lanes.core.chapters import Reading
from lanes.errors import UnknownSite
from lanes.sites import feeds
from lanes.sites.urls import canonical


@dataclass(frozen=True, slots=True)
class Site:
    """How one website is recognised, fetched, read and paced.

    `recognise` takes a canonical URL and gives the URL to fetch, or None: not of this Site.  `read` takes an answer's body, its
    Content-Type header and its final URL, and never raises.  `accept` is the Accept header.  `gap` None: no Gap.  `slots` is
    capacity, not pace.  `hosts` are those of a Site of one host or a fixed few: a redirect that leaves them is not followed; none: any
    host.  `host_floors` names hosts that may be asked faster than the default, and how fast.  `named_numbers`: the Site itself names
    groups and numbers.
    """

    name: str
    rest: timedelta
    gap: timedelta | None
    slots: int
    browser: bool
    many_hosts: bool
    recognise: Callable[[str], str | None]
    read: Callable[[bytes, str | None, str], Reading]
    accept: str
    hosts: tuple[str, ...] = ()
    host_floors: Mapping[str, timedelta] = field(default_factory=dict, hash=False)
    named_numbers: bool = False


FEEDS = Site(
    name="feeds",
    rest=timedelta(hours=1),  # hours between Polls of a Series: the ceiling of its own adaptive interval (DESIGN 5.2)
    gap=None,  # many hosts: the host and address buckets space its fetches instead (DESIGN 5.1)
    slots=16,  # fetches at a time: enough for 7,200 hosts an hour at 8 s each
    browser=False,
    many_hosts=True,
    recognise=feeds.recognise,
    read=feeds.read,
    accept=feeds.ACCEPT,
)

SITES: tuple[Site, ...] = (FEEDS,)
"""In the order in which they are asked to recognise a URL; `feeds` takes every URL and stays last."""


def by_name(name: str) -> Site:
    """The Site of this name.  Raises UnknownSite."""
    for site in SITES:
        if site.name == name:
            return site
    raise UnknownSite(name, tuple(site.name for site in SITES))


def site_of(host: str) -> Site:
    """The Site that has this host as its own, else `feeds`."""
    return next((site for site in SITES if host in site.hosts), FEEDS)


def recognise(url: str) -> tuple[Site, str]:
    """The Site that a URL as pasted belongs to, and the canonical URL to fetch.  Raises BadUrl."""
    given = canonical(url)
    return next((site, found) for site in SITES if (found := site.recognise(given)) is not None)
