"""JSON Feed 1 and 1.1 (jsonfeed.org).

Owns reading it.  Refuses to own: XML feeds.  Must never break: an identity keeps its digits as written, and no depth or number raises.
"""

from __future__ import annotations

import json
from typing import Any

from lanes.core.chapters import MAX_ITEMS, Document, Item, Lifecycle
from lanes.sites import feed_text
from lanes.sites.feed_dates import read_date
from lanes.sites.numbers import with_numbers

MOST_VALUES = 1_000_000
"""Commas and opening brackets of a document: each may be a value of 60 bytes or more in memory, and prose of 30 MiB has half as many."""


def _text(found: object) -> str:
    return found if isinstance(found, str) else ""


def _entries(found: object) -> list[dict[str, Any]]:
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _first_link(found: list[str], base: str) -> str | None:
    return next((url for url in (feed_text.link(href, base) for href in found) if url), None)


def _item(raw: dict[str, Any], base: str) -> Item:
    moment, approximate = read_date(_text(raw.get("date_published")))
    if moment is None:
        moment, approximate = read_date(_text(raw.get("date_modified")))
    attached = [_text(attachment.get("url")) for attachment in _entries(raw.get("attachments"))]
    return Item(
        guid=feed_text.guid(_text(raw.get("id"))),
        title=feed_text.title(_text(raw.get("title")), markup=False),
        link=_first_link([_text(raw.get("url")), _text(raw.get("external_url")), *attached], base),
        published_at=moment,
        approximate=approximate,
    )


def read_json(text: str, url: str) -> Document | None:
    """The Document, or None where the text is no JSON Feed."""
    if sum(map(text.count, ",[{")) > MOST_VALUES:
        return None
    try:
        raw = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return None
    if (
        not isinstance(raw, dict)
        or "jsonfeed.org/version/" not in _text(raw.get("version"))
        or not isinstance(raw.get("items"), list)
    ):
        return None
    home = feed_text.link(_text(raw.get("home_page_url")), url)
    hubs = [_text(hub.get("url")) for hub in _entries(raw.get("hubs")) if _text(hub.get("type")).lower() == "websub"]
    return Document(
        items=with_numbers(tuple(_item(entry, home or url) for entry in _entries(raw["items"])[:MAX_ITEMS])),
        title=feed_text.title(_text(raw.get("title")), markup=False) or None,
        home=home,
        lifecycle=Lifecycle.FINISHED if raw.get("expired") is True else None,
        hub=_first_link(hubs, url),
        topic=feed_text.link(_text(raw.get("feed_url")), url),
    )
