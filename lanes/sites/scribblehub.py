"""Scribble Hub within `feeds`: the feed of a series, at the host that serves readers.

Owns its addresses (SITES 10).  Refuses to own: its pages, which are challenged.  Must never break: a chapter is known by its number.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Final

from lanes.core.chapters import Item
from lanes.sites.pasted import number, pasted
from lanes.sites.site import Recogniser

FEEDS: Final = ("rssscribblehub.com", "www.rssscribblehub.com")
HOSTS: Final = ("www.scribblehub.com", "scribblehub.com", *FEEDS)

_READ: Final = re.compile(r"([0-9]{1,18})(?:-.*)?")
_CHAPTER: Final = re.compile(r"/chapter/0*([1-9][0-9]{0,17})(?![0-9])")


def recognise(url: str) -> str | None:
    """The feed of a series, or of an author."""
    asked = pasted(url, HOSTS)
    if asked is None:
        return None
    kind, named = "series", ""
    if asked.has("rssfeed.php"):
        kind = asked.value("type")
        named = asked.value("uid" if kind == "author" else "sid")
    elif asked.has("series", _READ) or asked.has("read", _READ):
        found = _READ.fullmatch(asked.path[1])
        named = found[1] if found else ""
    one = number(named)
    if one is None or kind not in ("series", "author"):
        raise asked.refused("this is no series; paste an address that begins with https://www.scribblehub.com/series/.")
    return f"https://{FEEDS[0]}/rssfeed.php?type={kind}&{'uid' if kind == 'author' else 'sid'}={one}"


def identify(item: Item) -> Item:
    """Known by the number in its link."""
    found = _CHAPTER.search(item.link or item.guid or "")
    return replace(item, guid=found[1]) if found else item


SCRIBBLEHUB: Final = Recogniser(
    name="scribblehub",
    hosts=HOSTS,
    recognise=recognise,
    identify=identify,
    # Its pages refuse plain readers, and this host is all that is left to them: as slow as a Site with a Gap.
    host_floors=dict.fromkeys(HOSTS, timedelta(seconds=10)),
)
