"""Reddit within `feeds`: the feeds of subreddits, people and searches.

Owns its addresses (SITES 8).  Refuses to own: the pages.  Must never break: a private feed's parameters are a credential: they stay with
the URL as it was given, and are never told.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Final
from urllib.parse import urlencode

from lanes.core.chapters import Item
from lanes.sites.number_tokens import decimal
from lanes.sites.pasted import Pasted, pasted
from lanes.sites.site import Recogniser

HOSTS: Final = (
    "www.reddit.com",
    "reddit.com",
    "old.reddit.com",
    "new.reddit.com",
    "np.reddit.com",
    "redd.it",
    "www.redd.it",
)
PRIVATE: Final = frozenset({"feed", "user"})
"""Parameters of a Reader's own feeds: both together are a credential."""

_ORIGIN: Final = "https://www.reddit.com"
_NAMES: Final = re.compile(r"[A-Za-z0-9_]{2,50}(?:[+][A-Za-z0-9_]{2,50}){0,100}")
_KINDS: Final = re.compile("r|u|user")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{2,50}")
_ORDERS: Final = frozenset({"new", "hot", "top", "rising", "best", "controversial", "gilded"})
_COUNTED: Final = re.compile(r"[(\[]([0-9]{1,5})/(?:[0-9]{1,5}|[?])[)\]]\s*$")
_TAIL: Final = 20
"""Characters of a title's end that are looked at."""
_POST: Final = re.compile(r"/comments/([a-z0-9]{1,12})(?:/|$)")


def _place(asked: Pasted) -> tuple[str, ...]:
    """The path, with the names of subreddits and people in lower case: none means two of them."""
    named = asked.has(_KINDS) and len(asked.path) > 1
    return (*asked.path[:1], asked.path[1].lower(), *asked.path[2:]) if named else asked.path


def _feed(asked: Pasted) -> str | None:
    """Path and own parameters of the feed that shows what is new there; None: it is no listing."""
    path = _place(asked)
    if asked.has("r", _NAMES) and (len(path) == 2 or (len(path) == 3 and path[2] in _ORDERS)):
        return f"/r/{path[1]}/new/.rss"
    if asked.has("r", _NAMES, "search") and asked.value("q"):
        return f"/r/{path[1]}/search.rss?{urlencode({'q': asked.value('q'), 'restrict_sr': 'on', 'sort': 'new'})}"
    if (asked.has("user", _NAME) or asked.has("u", _NAME)) and len(path) <= 3:
        return f"/user/{path[1]}/.rss"
    return None


def _private(asked: Pasted) -> dict[str, str]:
    given = {name: asked.value(name) for name in sorted(PRIVATE)}
    return given if all(given.values()) else {}


def recognise(url: str) -> str | None:
    """The feed of a listing; a feed's own address as it was given, at the one host that serves them all."""
    asked = pasted(url, HOSTS)
    if asked is None:
        return None
    if asked.path and asked.path[-1].endswith(".rss") and ".." not in asked.path:
        _, mark, query = asked.url.partition("?")
        return f"{_ORIGIN}/{'/'.join(_place(asked))}{mark}{query}"
    feed = _feed(asked)
    if feed is None:
        raise asked.refused("this is no subreddit; paste an address such as https://www.reddit.com/r/name.")
    private = urlencode(_private(asked))
    return _ORIGIN + feed + (f"{'&' if '?' in feed else '?'}{private}" if private else "")


def identify(item: Item) -> Item:
    """Its feed gives the identity; without that, the post's id in its link is the same.  "(40/?)" is how serials count here."""
    found = _POST.search(item.link or "")
    if found and not item.guid:
        item = replace(item, guid=f"t3_{found[1]}")
    counted = _COUNTED.search(item.title[-_TAIL:])
    return replace(item, number=decimal(counted[1]), label="chapter") if counted and not item.label else item


REDDIT: Final = Recogniser(
    name="reddit",
    hosts=HOSTS,
    recognise=recognise,
    identify=identify,
    # One request a minute for an address since June 2026, whatever it asks for; and a tenth more, for its clock and ours.
    host_floors=dict.fromkeys(HOSTS, timedelta(seconds=70)),
    caution=(
        "Reddit's robots.txt disallows everything, and its terms ask to talk to them first; a feed is published to be fetched, so it is "
        "polled all the same, once in 70 s at most. Servers are often blocked: `lanes why` tells."
    ),
)
