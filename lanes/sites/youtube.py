"""YouTube within `feeds`: the feed of a channel or a playlist.

Owns its addresses (SITES 7).  Refuses to own: finding the feed that a channel's page names (`discover`).  Must never break: a video is
known by its own id, whatever becomes of its title.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Final
from urllib.parse import quote

from lanes.core.chapters import Item
from lanes.sites.pasted import Pasted, pasted, taken_apart
from lanes.sites.site import Recogniser

HOSTS: Final = ("www.youtube.com", "youtube.com", "m.youtube.com", "youtu.be", "www.youtu.be")

_PAGES: Final = "https://www.youtube.com"
_CHANNEL: Final = re.compile(r"UC[A-Za-z0-9_-]{22}")
_WORDS: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_NAME: Final = re.compile(r"(?!\.)[^/]{1,300}")
_HANDLE: Final = re.compile(r"@[^/]{1,300}")
_VIDEO: Final = re.compile(r"[A-Za-z0-9_-]{11}")
_VIDEOS: Final = frozenset({"watch", "shorts", "live", "embed", "v"})


def _feed(asked: Pasted) -> str | None:
    """What it says by itself; None where only a page knows."""
    given = {name: asked.value(name) for name in ("channel_id", "playlist_id", "user")} if asked.has("feeds") else {}
    if asked.has("channel", _CHANNEL):
        given = {"channel_id": asked.path[1]}
    elif asked.has("playlist"):
        given = {"playlist_id": asked.value("list")}
    elif asked.has("user", _WORDS):
        given = {"user": asked.path[1]}
    name = next((name for name, value in given.items() if value), "")
    if not name or not (_CHANNEL if name == "channel_id" else _WORDS).fullmatch(given[name]):
        return None
    return f"{_PAGES}/feeds/videos.xml?{name}={quote(given[name], safe='')}"


def recognise(url: str) -> str | None:
    """The feed of a channel or a playlist; the channel's page where only that names it."""
    asked = pasted(url, HOSTS)
    if asked is None:
        return None
    if feed := _feed(asked):
        return feed
    if asked.has(_HANDLE):
        return f"{_PAGES}/{asked.path[0]}"
    if asked.has("c", _NAME):
        return f"{_PAGES}/c/{asked.path[1]}"
    if asked.host.endswith("youtu.be") or (asked.path and asked.path[0] in _VIDEOS):
        raise asked.refused("this is one video; paste the address of its channel, e.g. https://www.youtube.com/@name.")
    raise asked.refused("this is no channel; paste an address such as https://www.youtube.com/@name.")


def identify(item: Item) -> Item:
    """Its feed gives the identity; without that, the video's id in its link is the same."""
    asked = taken_apart(item.link or "")
    if (item.guid or "").startswith("yt:video:") or asked is None:
        return item
    video = asked.path[1] if asked.has("shorts", _VIDEO) else asked.value("v")
    return replace(item, guid=f"yt:video:{video}") if _VIDEO.fullmatch(video) else item


YOUTUBE: Final = Recogniser(
    name="youtube",
    hosts=HOSTS,
    recognise=recognise,
    identify=identify,
    # It refuses an address for hours and names no number: 5 s are 720 feeds an hour, each asked every 15 minutes at the soonest (max-age).
    host_floors=dict.fromkeys(HOSTS, timedelta(seconds=5)),
)
