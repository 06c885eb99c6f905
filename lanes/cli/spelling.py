"""One Series under every spelling of its address.

Owns finding the Series that a URL means where it is followed under another one.  Refuses to own: which URLs mean the same (each Site), and
following.  Must never break: only URLs of one Site are ever one Series, and what is followed is found under the URL that it has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lanes.errors import BadUrl
from lanes.sites import Site, by_name, recognise
from lanes.store.following import FollowStore, Wanted


def identity_of(site: Site, url: str) -> str:
    """What of a URL to fetch says which Series it is, as the Site would ask for it today."""
    try:
        found = site.recognise(url) or url
    except BadUrl:
        found = url
    return found if site.identity is None else site.identity(found)


def as_followed(following: FollowStore, wanted: Iterable[Wanted]) -> list[Wanted]:
    """Each with the URL by which it is followed already, or stands earlier here, where that is spelled otherwise."""
    known: dict[str, dict[str, str]] = {}
    return [_spelled(following, each, known) for each in wanted]


def url_of(following: FollowStore, given: str) -> str:
    """The URL by which a Series is followed, of any spelling; the canonical one where it is not.  Raises BadUrl."""
    site, url = recognise(given)
    return _spelled(following, Wanted(site.name, url, "", ""), {}).spelled_as or url


def _spelled(following: FollowStore, wanted: Wanted, known: dict[str, dict[str, str]]) -> Wanted:
    """`known` are the URLs of each Site by their identities, filled as they are needed.  On `feeds` a URL is a Series."""
    site = by_name(wanted.site)
    if site.many_hosts:
        return wanted
    if site.name not in known:
        known[site.name] = {}
        for url in following.urls(site.name):
            known[site.name].setdefault(identity_of(site, url), url)
    url = known[site.name].setdefault(identity_of(site, wanted.url), wanted.url)
    return wanted if url == wanted.url else replace(wanted, spelled_as=url)
