"""The Site webtoons: the feed of one webcomic, in any of the Site's languages.

Owns its addresses, in lower case, and what its feeds have of their own (SITES 3).  Refuses to own: reading feeds (`feeds`).  Must never
break: the identity is the episode's number in its link, which counts everything published, and never the number in its title.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from typing import Final

from lanes.core.chapters import Document, Item, Reading
from lanes.sites import feed_text, feeds
from lanes.sites.identified import identified
from lanes.sites.page import not_recognised, text_of_page
from lanes.sites.pasted import Pasted, hosts_at, number, recogniser, taken_apart
from lanes.sites.site import Certainty, Evidence, Site

HOSTS: Final = ("www.webtoons.com", "webtoons.com", "m.webtoons.com")

_LANGUAGE: Final = re.compile(r"en|es|fr|de|id|th|zh-hant")
_WORDS: Final = re.compile(r"(?!\.{1,2}$).+")
_CANVAS: Final = frozenset({"canvas", "challenge"})


def _place(asked: Pasted) -> str:
    title = number(asked.value("title_no", "titleNo"))
    asked = replace(asked, path=tuple(segment.lower() for segment in asked.path))
    if asked.path[-1:] == ("episodelist",) and not asked.has(_LANGUAGE):
        raise asked.refused("this old address does not say enough; open it once in your browser and paste the new one.")
    page = asked.path[-1] if len(asked.path) in (4, 5) else ""
    if page not in ("list", "rss", "viewer") or title is None or not asked.has(_LANGUAGE, _WORDS, _WORDS, _WORDS):
        raise asked.refused(
            "this is no webcomic; paste the address of its list of episodes, which ends in /list?title_no= and a number."
        )
    language, genre, slug = asked.path[:3]
    kind = "challenge" if genre in _CANVAS else genre  # feeds of canvas are there alone (SITES 3)
    return f"/{language}/{kind}/{slug}/rss?title_no={title}"


def identity(url: str) -> str:
    """A webcomic is its kind, its language and its number: genre and title change, and its pages take any (SITES 3)."""
    asked = taken_apart(url)
    if asked is None or len(asked.path) != 4:
        return url
    return f"{asked.path[0]} {'canvas' if asked.path[1] in _CANVAS else 'original'} {asked.value('title_no')}"


def _identity(link: str | None) -> str | None:
    asked = taken_apart(link or "")
    return number(asked.value("episode_no")) if asked else None


def _identified(item: Item) -> Item:
    return replace(item, guid=_identity(item.link))


def _home(url: str) -> str | None:
    asked = taken_apart(url)
    if asked is None or len(asked.path) != 4:
        return None
    language, kind, slug, _ = asked.path
    genre = "canvas" if kind in _CANVAS else kind
    return feed_text.link(f"/{language}/{genre}/{slug}/list?title_no={asked.value('title_no')}", url)


def read(body: bytes, content_type: str | None, url: str, _at: datetime) -> Reading:
    """The newest episodes of a webcomic's feed."""
    found = feeds.read(body, content_type, url)
    asked = taken_apart(url)
    if isinstance(found, Document):
        known = replace(found, items=tuple(map(_identified, found.items)), home=found.home or _home(url))
        return identified(known, body, content_type)
    if asked and any("agegate" in segment.lower() for segment in asked.path):
        return not_recognised("it asks for the Reader's age", text_of_page(body, content_type), "log-in")
    return found


def site(origin: str = "https://www.webtoons.com") -> Site:
    """The Site at `origin`.  Rest and Gap are every Site's: no limit is published; downloaders keep 0.5 to 1.5 s."""
    return Site(
        name="webtoons",
        recognise=recogniser(origin, HOSTS, _place),
        read=read,
        accept=feeds.ACCEPT,
        identity=identity,
        feed=True,
        hosts=hosts_at(origin, HOSTS),
        evidence=Evidence("the source of several readers, and reports of its feeds", Certainty.LIKELY, "2026-08"),
        example="https://www.webtoons.com/en/fantasy/tower-of-god/list?title_no=95",
    )


SITE: Final = site()
