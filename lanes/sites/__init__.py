"""The registry: every Site, how it is recognised, read and paced.

Owns one entry a Site, its pace included, and their order: the owner's own Sites, then those shipped.  Refuses to own: fetching, storing,
deciding.  Must never break: a shipped Site is registered here by hand or does not exist, and nothing but its entry sets its pace.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import cache
from typing import Final

from lanes.errors import UnknownSite
from lanes.sites import ao3, comix, feeds, kagane, mangadex, royalroad, webtoons
from lanes.sites.own import Own, gather
from lanes.sites.recognisers import HOST_FLOORS
from lanes.sites.site import Certainty, Evidence, Rendering, Site
from lanes.sites.urls import canonical

__all__ = [
    "FEEDS",
    "SITES",
    "Certainty",
    "Evidence",
    "Rendering",
    "Site",
    "by_name",
    "own_sites",
    "recognise",
    "site_of",
    "sites",
    "tell_own",
]

log = logging.getLogger("lanes.sites")


FEEDS: Final = Site(
    name="feeds",
    rest=timedelta(hours=1),  # hours between Polls of a Series: the ceiling of its own adaptive interval (DESIGN 5.2)
    gap=None,  # many hosts: the host and address buckets space its fetches instead (DESIGN 5.1)
    slots=16,  # fetches at a time: enough for 7,200 hosts an hour at 8 s each
    many_hosts=True,
    feed=True,
    recognise=feeds.recognise,
    read=feeds.read,
    accept=feeds.ACCEPT,
    host_floors=HOST_FLOORS,
    evidence=Evidence("the standards of feeds, and feeds as they are in the wild", Certainty.SURE, "2026-11"),
)

SITES: Final[tuple[Site, ...]] = (
    mangadex.SITE,
    royalroad.SITE,
    webtoons.SITE,
    kagane.SITE,
    comix.SITE,
    ao3.SITE,
    FEEDS,
)
"""Those shipped, in the order in which they are asked to recognise a URL; `feeds` takes every URL and stays last.  A new one goes before
it: the order numbers the ports of their Lanes."""


@cache
def own_sites() -> Own:
    """The owner's own Sites in this environment, looked for once a process."""
    return gather(SITES)


@cache
def sites() -> tuple[Site, ...]:
    """Every Site, in the order in which they are asked to recognise a URL: the owner's own, then those shipped that none replaces."""
    own = own_sites().sites
    return (*own.values(), *(site for site in SITES if site.name not in own))


def tell_own(site: Site) -> None:
    """Once in the log of a Lane that starts: whose Site it has, where that is the owner's own, and which own Sites are left out."""
    own = own_sites()
    if (distribution := own.distributions.get(site.name)) is not None:
        log.info("this is an own Site site=%s of=%s replaces=%s", site.name, distribution, site.name in own.replaced)
    for broken in own.broken:
        log.warning("%s", broken)


def by_name(name: str) -> Site:
    """The Site of this name.  Raises UnknownSite."""
    for site in sites():
        if site.name == name:
            return site
    broken = next((str(each) for each in own_sites().broken if each.name == name), None)
    raise UnknownSite(name, tuple(site.name for site in sites()), broken)


def site_of(host: str) -> Site:
    """The Site that has this host as its own, else `feeds`."""
    return next((site for site in sites() if host in site.hosts), FEEDS)


def recognise(url: str) -> tuple[Site, str]:
    """The Site that a URL as pasted belongs to, and the canonical URL to fetch.  Raises BadUrl."""
    given = canonical(url)
    return next((site, found) for site in sites() if (found := site.recognise(given)) is not None)
