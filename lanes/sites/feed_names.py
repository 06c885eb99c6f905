"""The names the fast reader knows: namespaces, elements, and what to do at each.

Owns these tables.  Refuses to own: parsing.  Must never break: a name that means something to the tolerant reader is either known here
with the same meaning, or makes the fast reader decline.
"""

from __future__ import annotations

from lanes.sites.feed_text import BLOCK, INLINE

XML_BASE = "http://www.w3.org/XML/1998/namespace base"
RDF_ABOUT = "http://www.w3.org/1999/02/22-rdf-syntax-ns# about"

SPACES = {
    "http://www.w3.org/2005/atom": "",
    "http://purl.org/atom/ns#": "",
    "http://purl.org/rss/1.0/": "",
    "http://my.netscape.com/rdf/simple/0.9/": "",
    "http://backend.userland.com/rss": "",
    "http://backend.userland.com/rss2": "",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#": "rdf",
    "http://www.w3.org/1999/xhtml": "xhtml",
    "http://www.w3.org/xml/1998/namespace": "xml",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://purl.org/dc/terms/": "dcterms",
    "http://purl.org/rss/1.0/modules/content/": "content",
    "http://purl.org/rss/1.0/modules/syndication/": "sy",
    "http://purl.org/rss/1.0/modules/slash/": "slash",
    "http://wellformedweb.org/commentapi/": "wfw",
    "http://purl.org/syndication/thread/1.0": "thr",
    "http://purl.org/rss/1.0/modules/threading/": "thr",
    "http://www.itunes.com/dtds/podcast-1.0.dtd": "itunes",
    "http://search.yahoo.com/mrss": "media",
    "http://search.yahoo.com/mrss/": "media",
    "http://www.georss.org/georss": "georss",
    "http://www.opengis.net/gml": "gml",
    "http://www.w3.org/2003/01/geo/wgs84_pos#": "geo",
    "http://podlove.org/simple-chapters": "psc",
    "http://web.resource.org/cc/": "cc",
    "http://backend.userland.com/creativecommonsrssmodule": "creativeCommons",
    "http://cyber.law.harvard.edu/rss/creativecommonsrssmodule.html": "creativeCommons",
    "http://rssnamespace.org/feedburner/ext/1.0": "feedburner",
    "http://webns.net/mvcb/": "admin",
    "http://madskills.com/public/xml/rss/module/trackback/": "trackback",
    "http://purl.org/rss/1.0/modules/taxonomy/": "taxo",
    "http://purl.org/rss/1.0/modules/image/": "image",
    "http://xmlns.com/foaf/0.1/": "foaf",
}
"""Lower-case namespace URI -> its usual prefix; "" for those whose elements are the feed's own."""

USUAL_PREFIXES = frozenset(SPACES.values()) - {""} | {
    "ag", "annotate", "audio", "blogChannel", "co", "cp", "email", "ev", "fm", "icbm", "l", "pingback", "prism", "rdfs", "ref",
    "reqv", "search", "soap", "ss", "str", "sub", "szf", "ti", "wiki", "xlink", "title", "description",
}  # fmt: skip
"""Prefixes with a fixed meaning to the tolerant reader: bound to anything else, the document is out of the ordinary."""

ITEM_TEXTS = {
    "guid": "guid",
    "id": "guid",
    "pubdate": "published",
    "published": "published",
    "issued": "published",
    "dcterms:issued": "published",
    "updated": "updated",
    "modified": "updated",
    "lastbuilddate": "updated",
    "date": "updated",
    "dc:date": "updated",
    "dcterms:modified": "updated",
    "created": "created",
    "dcterms:created": "created",
    "itunes:season": "season",
    "itunes:episode": "episode",
    "itunes:episodetype": "episode_type",
}
"""Element of an item -> field of RawItem that takes its text; of several the last counts."""

FEED_TEXTS = {
    "ttl": "ttl",
    "sy:updateperiod": "period",
    "sy:updatefrequency": "frequency",
    "itunes:complete": "complete",
}
"""The same for a feed and RawFeed."""

UNREAD_WITH_ATTRIBUTES = frozenset({*FEED_TEXTS, "itunes:season", "itunes:episode", "itunes:episodetype", "date"})
"""Elements whose text the tolerant reader does not see when they carry attributes."""

CONTENTS = frozenset({
    "description", "summary", "content", "subtitle", "tagline", "abstract", "info", "rights", "copyright",
    "content:encoded", "dc:description", "dc:rights", "itunes:summary", "itunes:subtitle", "media:description",
    "media:title", "feedburner:browserfriendly",
})  # fmt: skip
"""Elements that may hold markup, skipped whole: no string is made of them."""

ODD = frozenset(
    {
        "title",
        "dc:title",
        "link",
        "items_detail",
        "enclosure",
        "source",
        "item",
        "entry",
        "channel",
        "feed",
        "rss",
        "skiphours",
        "skipdays",
        "image",
        "textinput",
        "body",
        "xhtml:body",
        "fullitem",
        "links",
        "title_detail",
        "guidislink",
        "newlocation",
        "cloud_detail",
        "channel_detail",
    }
)  # fmt: skip | {*ITEM_TEXTS, *FEED_TEXTS}
"""Elements that mean something to the tolerant reader wherever they stand: out of place, the document is not for the fast one."""

CONTENT_PARTS = frozenset(name for plain in INLINE | BLOCK for name in (plain, "xhtml:" + plain))

SKIPPED_IN_ITEM = {
    "source": frozenset({
        "title", "id", "link", "updated", "published", "author", "contributor", "url", "name", "uri", "email", "icon", "logo",
        "category", "generator", "rights", "subtitle",
    }),
    "image": frozenset({"url", "href", "width", "height"}),
}  # fmt: skip
"""Elements with a title and a link of their own, and what may stand in them without meaning the item."""

SKIPPED_IN_FEED = {
    "image": frozenset({"title", "link", "description", "url", "href", "width", "height"}),
    "textinput": frozenset({"title", "link", "description", "name"}),
}

TEXT_TYPES = {
    "text": "text",
    "plain": "text",
    "text/plain": "text",
    "html": "html",
    "text/html": "html",
    "xhtml": "xhtml",
    "application/xhtml+xml": "xhtml",
}
"""The type attribute of an Atom text construct -> what it is."""


class Names(dict[str, str]):
    """Expat's "uri local" -> the lower-case name with its usual prefix, or "" for what means nothing here; learnt as met."""

    def __missing__(self, name: str) -> str:
        space, _, local = name.rpartition(" ")
        prefix = SPACES.get(space.lower()) if space else ""
        known = "" if prefix is None else (f"{prefix}:{local}" if prefix else local).lower()
        self[name] = known
        return known
