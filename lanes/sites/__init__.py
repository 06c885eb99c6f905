"""The registry: every Site, how it is recognised, read and paced.

Owns one entry a Site, its pace included.  Refuses to own: fetching, storing, deciding.  Must never break: a Site is registered here by
hand or does not exist, and nothing but this file sets its pace.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from lanes.errors import UnknownSite
from lanes.sites import feeds
from lanes.sites.site import Certainty, Evidence, Rendering, Site
from lanes.sites.urls import canonical

__all__ = ["FEEDS", "SITES", "Certainty", "Evidence", "Rendering", "Site", "by_name", "recognise", "site_of"]


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
)

SITES: Final[tuple[Site, ...]] = (FEEDS,)
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
