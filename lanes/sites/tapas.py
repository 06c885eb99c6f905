"""Tapas within `feeds`: a feed for each series, known by the number that its page names.

Owns its addresses (SITES 9).  Refuses to own: reading feeds, and finding what a page names.  Must never break: an episode is known by its
number.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Final

from lanes.core.chapters import Item
from lanes.sites.pasted import number, pasted
from lanes.sites.site import Recogniser

HOSTS: Final = ("tapas.io", "www.tapas.io", "m.tapas.io")

_WORDS: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}")
_EPISODE: Final = re.compile(r"/episode/0*([1-9][0-9]{0,17})(?![0-9])")
_NAMED: Final = re.compile(r"tapastic://series/([0-9]{1,18})/info")


def _feed(series: str | None) -> str | None:
    return None if series is None else f"https://tapas.io/rss/series/{series}"


def recognise(url: str) -> str | None:
    """The feed of a series; the series' page where only that knows its number."""
    asked = pasted(url, HOSTS)
    if asked is None:
        return None
    if asked.has("rss", "series", _WORDS) and (feed := _feed(number(asked.path[2]))):
        return feed
    if asked.has("series", _WORDS):
        return _feed(number(asked.path[1])) or f"https://tapas.io/series/{asked.path[1]}/info"
    if asked.has("episode"):
        raise asked.refused("this is one episode; paste the address of its series, which begins with /series/.")
    raise asked.refused("this is no series; paste an address that begins with https://tapas.io/series/.")


def identify(item: Item) -> Item:
    """Known by the number in its link."""
    found = _EPISODE.search(item.link or item.guid or "")
    return replace(item, guid=found[1]) if found else item


def named_by(content: str) -> str | None:
    """The feed that a page of a series names, by the address it has in the app."""
    found = _NAMED.fullmatch(content.strip())
    return _feed(number(found[1])) if found else None


TAPAS: Final = Recogniser(
    name="tapas",
    hosts=HOSTS,
    recognise=recognise,
    identify=identify,
    named_by=named_by,
    # Its pages name the feeds no longer, so it suffers readers rather than inviting them: as slow as a Site with a Gap.
    host_floors=dict.fromkeys(HOSTS, timedelta(seconds=10)),
)
