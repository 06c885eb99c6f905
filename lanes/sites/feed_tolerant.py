"""The tolerant reader: feedparser, for every feed that is not well-formed or not of the ordinary kind.

Owns making such a document safe to parse and finding what feedparser found.  Refuses to own: cleaning and choosing (`feed_raw`).
Must never break: feedparser gets bytes in UTF-8 without DOCTYPE or entities, never a URL, so it neither dials nor expands.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

from lanes.core.chapters import MAX_ITEMS
from lanes.sites.feed_prolog import Root, without_entities
from lanes.sites.feed_raw import Link, RawFeed, RawItem

MAX_CHARACTERS = 2 << 20
"""What is read of a document: feedparser takes seconds for this much, and no ill-formed feed seen is longer."""

MAX_TAGS = 60_000
"""Opening brackets that are read: feedparser takes about 50 us for each; a long ill-formed feed has 20,000."""

_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_SURROGATE = re.compile(
    r"&#(?:[xX]0*[dD][89a-fA-F][0-9a-fA-F]{2}|0*5(?:529[6-9]|5[3-9]\d\d|6\d{3}|7[0-2]\d\d|73[0-3]\d|734[0-3]));"
)
"""A reference to half a character: it costs itself, not the feed."""
_ITEM_END = re.compile(r"</(?:[A-Za-z_][\w.-]*:)?(?:item|entry)\s*>", re.IGNORECASE)
_COMMENT_OR_CDATA = re.compile(r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)", re.DOTALL)
_HEADERS = {"content-type": "application/xml; charset=utf-8"}


def _within_limits(text: str) -> str:
    """The document up to where it gets too much, cut behind an item where it has one."""
    limit = MAX_CHARACTERS
    if text.count("<", 0, limit) > MAX_TAGS:
        limit = next(islice(re.finditer("<", text), MAX_TAGS, None)).start()
    ends = [found.end() for found in islice(_ITEM_END.finditer(text, 0, limit), MAX_ITEMS)]
    if len(ends) == MAX_ITEMS:
        return text[: ends[-1]]
    return text if len(text) <= limit else text[: ends[-1] if ends else limit]


def _text(found: Mapping[str, Any], key: str) -> str:
    value = dict.get(found, key)  # type: ignore[call-overload]  # past feedparser's own get(), which guesses
    return value if isinstance(value, str) else ""


def _links(found: Mapping[str, Any]) -> list[Link]:
    links = dict.get(found, "links")  # type: ignore[call-overload]
    if not isinstance(links, list):
        return []
    return [(_text(link, "rel"), _text(link, "type").lower(), _text(link, "href")) for link in links]


def _markup(found: Mapping[str, Any], kind: Root) -> bool:
    detail = dict.get(found, "title_detail")  # type: ignore[call-overload]
    return kind != "feed" or not isinstance(detail, dict) or _text(detail, "type") != "text/plain"


def _parts(text: str, group: str, part: str) -> list[str]:
    """The texts of `<hour>` in `<skipHours>`: feedparser keeps only the last."""
    found = re.search(rf"<{group}\s*>(.*?)(?:</{group}\s*>|\Z)", text, re.IGNORECASE | re.DOTALL)
    return re.findall(rf"<{part}\s*>([^<]*)</{part}\s*>", found[1], re.IGNORECASE) if found else []


def _item(found: Mapping[str, Any], kind: Root) -> RawItem:
    return RawItem(
        guid=_text(found, "id"),
        title=_text(found, "title"),
        markup=_markup(found, kind),
        links=_links(found),
        permalink=bool(dict.get(found, "guidislink")),  # type: ignore[call-overload]
        published=_text(found, "published"),
        updated=_text(found, "updated"),
        created=_text(found, "created"),
        season=_text(found, "itunes_season"),
        episode=_text(found, "itunes_episode"),
        episode_type=_text(found, "itunes_episodetype"),
    )


def read_tolerant(text: str, kind: Root) -> RawFeed | None:
    """What feedparser finds in a document whose root is of `kind`, or None where that is no feed after all.

    Raises EntityBomb, and whatever feedparser raises.
    """
    text = _within_limits(without_entities(_SURROGATE.sub("", _ILLEGAL.sub("", text))))
    import feedparser  # noqa: PLC0415 - with the first feed that needs it: a Lane at rest does without its 5 MiB

    parsed = feedparser.parse(
        io.BytesIO(text.encode()), response_headers=dict(_HEADERS), resolve_relative_uris=False, sanitize_html=False
    )
    feed = parsed["feed"]
    if not parsed["entries"] and (kind != "rss" and not parsed["version"]):
        return None
    bare = _COMMENT_OR_CDATA.sub("", text) if "skip" in text else ""
    return RawFeed(
        kind=kind,
        title=_text(feed, "title"),
        markup=_markup(feed, kind),
        links=_links(feed),
        ttl=_text(feed, "ttl"),
        period=_text(feed, "sy_updateperiod"),
        frequency=_text(feed, "sy_updatefrequency"),
        skip_hours=_parts(bare, "skipHours", "hour"),
        skip_days=_parts(bare, "skipDays", "day"),
        complete=_text(feed, "itunes_complete"),
        items=[_item(entry, kind) for entry in parsed["entries"][:MAX_ITEMS]],
    )
