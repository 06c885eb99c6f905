"""What a reader of feeds hands over, and how a Document is made of it.

Owns every choice between what a feed offers: which link, which date, which hint.  Refuses to own: parsing.  Must never break: the fast
and the tolerant reader meet here, so whatever both found alike comes out alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from lanes.core.chapters import MAX_ITEMS, NO_HINTS, Document, Hints, Item, Lifecycle
from lanes.sites import feed_text
from lanes.sites.feed_dates import read_date
from lanes.sites.feed_prolog import Root
from lanes.sites.numbers import with_numbers
from lanes.sites.words_of_time import localised

Link = tuple[str, str, str]
"""rel, media type (both lower case), href."""

LONGEST_HINT = timedelta(hours=24)
"""A hint over 24 h is no hint (DESIGN 5.2)."""

_PERIODS = {
    "hourly": timedelta(hours=1),
    "daily": timedelta(days=1),
    "weekly": timedelta(weeks=1),
    "monthly": timedelta(days=30),
    "yearly": timedelta(days=365),
}
_WEEKDAYS = {
    name: day for day, name in enumerate(("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"))
}
_WHOLE = re.compile(r"\s*([0-9]{1,6})\s*")
_DECIMAL = re.compile(r"\s*0*([0-9]{1,6})(\.[0-9]{1,3})?\s*")
_PAGES = frozenset({"html", "xhtml", "text/html", "application/xhtml+xml"})
_LABELS = {"full": "episode", "trailer": "notice", "bonus": "extra"}


@dataclass(slots=True)
class RawItem:
    """One item as found: texts uncleaned, hrefs as written but seen from xml:base."""

    guid: str = ""
    title: str = ""
    markup: bool = True
    links: list[Link] = field(default_factory=list)
    permalink: bool = False
    published: str = ""
    updated: str = ""
    created: str = ""
    season: str = ""
    episode: str = ""
    episode_type: str = ""


@dataclass(slots=True)
class RawFeed:
    """A feed as found.  `skip_hours` and `skip_days` are the texts of their parts."""

    kind: Root
    title: str = ""
    markup: bool = True
    links: list[Link] = field(default_factory=list)
    ttl: str = ""
    period: str = ""
    frequency: str = ""
    skip_hours: list[str] = field(default_factory=list)
    skip_days: list[str] = field(default_factory=list)
    complete: str = ""
    items: list[RawItem] = field(default_factory=list)


def _candidates(links: list[Link], permalink: str | None) -> Iterable[str]:
    """Best first: a page, an alternate of another type, the guid that is a permalink, an enclosure (podcasts)."""
    alternates = [link for link in links if link[0] == "alternate"]
    yield from (href for _, kind, href in alternates if kind in _PAGES)
    yield from (href for _, kind, href in alternates if kind not in _PAGES)
    if permalink and not alternates:
        yield permalink
    yield from (href for rel, _, href in links if rel == "enclosure")


def _best(hrefs: Iterable[str], base: str) -> str | None:
    return next((url for url in (feed_text.link(href, base) for href in hrefs) if url), None)


def _related(links: list[Link], rel: str, base: str) -> str | None:
    return _best((href for found, _, href in links if found == rel), base)


def _number(text: str) -> str | None:
    found = _DECIMAL.fullmatch(text)
    return found[1] + (found[2] or "") if found else None


def _item(raw: RawItem, base: str) -> Item:
    moment, approximate = read_date(raw.published)
    if moment is None:
        moment, approximate = read_date(raw.updated)
    if moment is None:
        moment, approximate = read_date(raw.created)
    if moment is None and raw.published:
        moment, approximate = localised(raw.published)
    guid = feed_text.guid(raw.guid)
    number = _number(raw.episode)
    return Item(
        guid=guid,
        title=feed_text.title(raw.title, markup=raw.markup),
        link=_best(_candidates(raw.links, guid if raw.permalink else None), base),
        published_at=moment,
        approximate=approximate,
        number=number,
        volume=_number(raw.season),
        label=_LABELS.get(raw.episode_type.strip().lower(), "episode" if number else ""),
    )


def _whole(text: str) -> int | None:
    found = _WHOLE.fullmatch(text)
    return int(found[1]) if found else None


def hints(raw: RawFeed) -> Hints:
    """The publisher's wish.  Garbage is ignored; hours or days that leave no time to poll are garbage."""
    wishes: list[timedelta] = []
    if minutes := _whole(raw.ttl):
        wishes.append(timedelta(minutes=minutes))
    if period := _PERIODS.get(raw.period.strip().lower()):
        wishes.append(period / (_whole(raw.frequency) or 1))
    hours = frozenset(hour % 24 for hour in map(_whole, raw.skip_hours) if hour is not None and hour <= 24)
    days = frozenset(_WEEKDAYS[day] for day in (text.strip().lower() for text in raw.skip_days) if day in _WEEKDAYS)
    if not (wishes or hours or days):
        return NO_HINTS
    return Hints(
        every=max((wish for wish in wishes if wish <= LONGEST_HINT), default=None),
        skip_hours=hours if len(hours) < 24 else frozenset(),
        skip_days=days if len(days) < 7 else frozenset(),
    )


def document(raw: RawFeed, url: str) -> Document:
    """The Document of a feed found at `url`.  Relative links of RSS are seen from the channel's link, those of Atom from `url`."""
    home = _best(_candidates([link for link in raw.links if link[0] == "alternate"], None), url)
    base = url if raw.kind == "feed" else home or url
    return Document(
        items=with_numbers(tuple(_item(item, base) for item in raw.items[:MAX_ITEMS])),
        title=feed_text.title(raw.title, markup=raw.markup) or None,
        home=home,
        hints=hints(raw),
        lifecycle=Lifecycle.FINISHED if raw.complete.strip().lower() == "yes" else None,
        hub=_related(raw.links, "hub", url),
        topic=_related(raw.links, "self", url),
    )
