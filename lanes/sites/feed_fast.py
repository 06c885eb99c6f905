"""The fast reader: expat, for well-formed feeds of the ordinary kind.

Owns reading these in about a millisecond, building no string that is not needed.  Refuses to own: anything out of the ordinary; it then
says "not mine" and the tolerant reader decides.  Must never break: what it reads, it reads exactly as the tolerant reader would.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit
from xml.parsers import expat

from lanes.core.chapters import MAX_ITEMS
from lanes.sites import feed_text
from lanes.sites.feed_names import (
    CONTENT_PARTS,
    CONTENTS,
    FEED_TEXTS,
    ITEM_TEXTS,
    ODD,
    RDF_ABOUT,
    SKIPPED_IN_FEED,
    SKIPPED_IN_ITEM,
    SPACES,
    TEXT_TYPES,
    UNREAD_WITH_ATTRIBUTES,
    USUAL_PREFIXES,
    XML_BASE,
    Names,
)
from lanes.sites.feed_prolog import Root
from lanes.sites.feed_raw import RawFeed, RawItem

_ROOTS: dict[str, Root] = {"rss": "rss", "rdf:rdf": "rdf", "feed": "feed"}
_NAMED_ENTITY = re.compile(rb"&(?!amp;|lt;|gt;|quot;|apos;)[A-Za-z_]")

Attributes = dict[str, str]

DEEPEST = 256
"""Open elements inside one another that are followed: no feed seen has 30, and expat keeps each in memory."""


class _NotMine(Exception):
    """Something out of the ordinary was met."""


class _Enough(Exception):
    """MAX_ITEMS items are read."""


class _Reader:
    """One document in hand.  `depth` is that of the open element; 0 in `skip_depth`, `text_depth`, `item_depth` means "not inside"."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.names = Names()
        self.feed = RawFeed("rss")
        self.rooted = False
        self.item = RawItem()
        self.depth = self.item_depth = self.feed_depth = self.channel_depth = 0
        self.skip_depth = self.text_depth = 0
        self.skippable: frozenset[str] = frozenset()
        self.field = ""
        self.xhtml = False
        self.attributes: Attributes = {}
        self.text: list[str] = []
        self.titled: set[int] = set()
        self.media_title = False
        self.bases: list[tuple[int, str]] = []

    def read(self) -> RawFeed:
        parser = self.parser = expat.ParserCreate("utf-8", " ")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartNamespaceDeclHandler = self._namespace
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = parser.SkippedEntityHandler = _decline
        try:
            parser.Parse(self.data, True)
        except _Enough:
            pass
        finally:
            parser.StartElementHandler = parser.EndElementHandler = parser.CharacterDataHandler = None
            parser.StartNamespaceDeclHandler = parser.StartDoctypeDeclHandler = None
            del self.parser
        return self.feed

    # -- what stands around the elements

    def _doctype(self, *declared: object) -> None:
        """A DOCTYPE is harmless when it has no part inside the document and nothing needs what it points to (CASES G3)."""
        has_internal_subset = declared[-1]
        if has_internal_subset or _NAMED_ENTITY.search(self.data):
            raise _NotMine

    def _namespace(self, prefix: str | None, uri: str | None) -> None:
        usual = SPACES.get(uri.lower()) if uri else None
        odd = usual is None if prefix is None else prefix in USUAL_PREFIXES and usual != prefix
        if odd or not uri or " " in uri:
            raise _NotMine

    def _enter_base(self, attributes: Attributes) -> None:
        if "base" in attributes:
            raise _NotMine
        base = self._seen_from_base(attributes[XML_BASE])
        if urlsplit(base).scheme not in ("http", "https"):
            raise _NotMine
        self.bases.append((self.depth, base))

    def _seen_from_base(self, href: str) -> str:
        try:
            return feed_text.join(self.bases[-1][1] if self.bases else "", href)
        except ValueError:
            raise _NotMine from None

    # -- elements

    def _start(self, name: str, attributes: Attributes) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise _NotMine
        key = self.names[name]
        if attributes and (XML_BASE in attributes or "base" in attributes):
            self._enter_base(attributes)
        if self.skip_depth:
            if key not in self.skippable:
                raise _NotMine
        elif self.text_depth:
            self._start_inside_text(key)
        elif not key:
            return
        elif self.item_depth:
            self._start_in_item(key, attributes)
        else:
            self._start_in_feed(name, key, attributes)

    def _end(self, name: str) -> None:
        depth = self.depth
        if self.text_depth:
            if depth == self.text_depth:
                self._take_text()
            elif self.names[name].removeprefix("xhtml:") not in feed_text.INLINE:
                self.text.append(" ")
        elif depth == self.skip_depth:
            self.skip_depth = 0
        elif depth == self.item_depth:
            self._take_item()
        elif depth == self.channel_depth:
            self.feed_depth = 0
        if self.bases and self.bases[-1][0] == depth:
            self.bases.pop()
        self.depth = depth - 1

    def _start_inside_text(self, key: str) -> None:
        if not self.xhtml or key not in CONTENT_PARTS:
            raise _NotMine
        if key.removeprefix("xhtml:") not in feed_text.INLINE:
            self.text.append(" ")

    def _start_in_item(self, key: str, attributes: Attributes) -> None:
        if key in CONTENTS:
            self.media_title |= key == "media:title"
            self._skip_content(attributes)
        elif self.depth != self.item_depth + 1:
            if key in ODD:
                raise _NotMine
        elif key in ITEM_TEXTS:
            self._collect(ITEM_TEXTS[key], key, attributes)
        elif key == "link":
            self._link(self.item.links, attributes)
        elif key == "title":
            self._title(attributes)
        elif key == "enclosure":
            self._enclosure(attributes)
        elif key in SKIPPED_IN_ITEM:
            self._skip(SKIPPED_IN_ITEM[key])
        elif key in ODD:
            raise _NotMine

    def _start_in_feed(self, name: str, key: str, attributes: Attributes) -> None:
        feed = self.feed
        if not self.rooted:
            self._root(name, key)
        elif key in ("item", "entry"):
            self._start_item(key, attributes)
        elif key in SKIPPED_IN_FEED:
            self._skip(SKIPPED_IN_FEED[key])
        elif key == "channel" and self.depth == 2 and not self.channel_depth and feed.kind != "feed":
            if "href" in attributes or "lastmod" in attributes:
                raise _NotMine
            self.feed_depth = self.channel_depth = 2
        elif self.depth == self.feed_depth + 1:
            self._start_in_channel(feed, key, attributes)
        elif key in CONTENTS:
            self._skip_content(attributes)
        elif key in ("hour", "day") and self.depth == self.feed_depth + 2:
            self._collect(key, key, attributes)
        elif key in ODD:
            raise _NotMine

    def _start_in_channel(self, feed: RawFeed, key: str, attributes: Attributes) -> None:
        if key in FEED_TEXTS:
            self._collect(FEED_TEXTS[key], key, attributes)
        elif key == "link":
            self._link(feed.links, attributes)
        elif key == "title":
            self._title(attributes)
        elif key in CONTENTS and key != "media:title":
            self._skip_content(attributes)
        elif key in ("skiphours", "skipdays"):
            if attributes or (feed.skip_hours if key == "skiphours" else feed.skip_days):
                raise _NotMine
        elif key in ODD and key not in ITEM_TEXTS:
            raise _NotMine

    def _root(self, name: str, key: str) -> None:
        kind = _ROOTS.get(key)
        if kind is None or (kind == "feed" and " " not in name):
            raise _NotMine
        self.feed = RawFeed(kind)
        self.feed_depth = 1 if kind == "feed" else 0
        self.rooted = True

    # -- parts

    def _start_item(self, key: str, attributes: Attributes) -> None:
        place = (2,) if self.feed.kind == "feed" else (2, 3)
        if (
            self.depth not in place
            or (key == "entry") != (self.feed.kind == "feed")
            or "href" in attributes
            or "lastmod" in attributes
        ):
            raise _NotMine
        if self.depth == 3 and not self.feed_depth:
            raise _NotMine
        self.item_depth = self.depth
        self.item = RawItem(guid=attributes.get(RDF_ABOUT, ""))
        self.media_title = False

    def _take_item(self) -> None:
        if self.media_title and not self.item.title:
            raise _NotMine
        self.titled.discard(self.item_depth)
        self.item_depth = 0
        self.feed.items.append(self.item)
        if len(self.feed.items) == MAX_ITEMS:
            raise _Enough

    def _skip(self, skippable: frozenset[str]) -> None:
        self.skip_depth = self.depth
        self.skippable = skippable

    def _skip_content(self, attributes: Attributes) -> None:
        known = attributes.get("type", "html").lower() in TEXT_TYPES
        self._skip(CONTENT_PARTS if known else frozenset())

    def _collect(self, field: str, key: str, attributes: Attributes) -> None:
        self.field = field
        self.attributes = attributes
        self.text_depth = self.depth
        self.xhtml = False
        self.text = []
        self.parser.CharacterDataHandler = self.text.append
        if attributes and key in UNREAD_WITH_ATTRIBUTES:
            raise _NotMine

    def _link(self, links: list[tuple[str, str, str]], attributes: Attributes) -> None:
        if "url" in attributes or "uri" in attributes:
            raise _NotMine
        href = attributes.get("href")
        if href is None:
            if attributes:
                raise _NotMine
            self._collect("link", "link", attributes)
        else:
            rel = attributes.get("rel", "alternate").lower()
            default = "application/atom+xml" if rel == "self" else "text/html"
            links.append((rel, attributes.get("type", default).lower(), self._seen_from_base(href)))

    def _enclosure(self, attributes: Attributes) -> None:
        if not attributes.get("url"):
            raise _NotMine
        self.item.links.append(("enclosure", attributes.get("type", "").lower(), attributes["url"]))

    def _title(self, attributes: Attributes) -> None:
        place = self.item_depth or 0
        if place in self.titled:
            raise _NotMine
        self.titled.add(place)
        atom = self.feed.kind == "feed"
        kind = TEXT_TYPES.get(attributes.get("type", "text").lower()) if atom else "html"
        if kind is None or attributes.get("mode") == "base64" or (not atom and "type" in attributes):
            raise _NotMine
        self._collect("title", "title", attributes)
        self.xhtml = kind == "xhtml"
        (self.item if self.item_depth else self.feed).markup = kind == "html"

    def _take_text(self) -> None:
        self.parser.CharacterDataHandler = None
        self.text_depth = 0
        text = "".join(self.text)
        if self.field == "guid":
            self._take_guid(text)
        elif self.field == "link":
            links = self.item.links if self.item_depth else self.feed.links
            if "&amp;" in text and not self.item_depth:
                raise _NotMine
            links.append(("alternate", "text/html", self._seen_from_base(text.strip())))
        elif self.field == "hour":
            self.feed.skip_hours.append(text)
        elif self.field == "day":
            self.feed.skip_days.append(text)
        else:
            setattr(self.item if self.item_depth else self.feed, self.field, text)

    def _take_guid(self, text: str) -> None:
        if self.item.permalink:
            raise _NotMine
        attributes = {name.lower(): value for name, value in self.attributes.items()}
        self.item.permalink = attributes.get("ispermalink", "true") == "true"
        self.item.guid = text.strip()
        if self.item.permalink and self._seen_from_base(self.item.guid) != self.item.guid:
            raise _NotMine


def _decline(*_: object) -> None:
    raise _NotMine


def read_fast(data: bytes) -> RawFeed | None:
    """The feed in `data` (UTF-8, no byte order mark), or None: not well-formed, no feed, or out of the ordinary."""
    try:
        return _Reader(data).read()
    except (_NotMine, expat.ExpatError):
        return None
