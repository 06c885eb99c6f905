"""JSON Feed 1 and 1.1 (jsonfeed.org).

Owns reading it.  Refuses to own: XML feeds.  Must never break: an identity keeps its digits as written, and no depth or number raises.
"""

from __future__ import annotations

from typing import Any

from lanes.core.chapters import MAX_ITEMS, Document, Item, Lifecycle
from lanes.sites import feed_text
from lanes.sites.feed_dates import read_date
from lanes.sites.json_text import entries_of, text_of, value_of
from lanes.sites.numbers import with_numbers


def _first_link(found: list[str], base: str) -> str | None:
    return next((url for url in (feed_text.link(href, base) for href in found) if url), None)


def _item(raw: dict[str, Any], base: str) -> Item:
    moment, approximate = read_date(text_of(raw.get("date_published")))
    if moment is None:
        moment, approximate = read_date(text_of(raw.get("date_modified")))
    attached = [text_of(attachment.get("url")) for attachment in entries_of(raw.get("attachments"))]
    return Item(
        guid=feed_text.guid(text_of(raw.get("id"))),
        title=feed_text.title(text_of(raw.get("title")), markup=False),
        link=_first_link([text_of(raw.get("url")), text_of(raw.get("external_url")), *attached], base),
        published_at=moment,
        approximate=approximate,
    )


def read_json(text: str, url: str) -> Document | None:
    """The Document, or None where the text is no JSON Feed."""
    raw = value_of(text)
    if (
        not isinstance(raw, dict)
        or "jsonfeed.org/version/" not in text_of(raw.get("version"))
        or not isinstance(raw.get("items"), list)
    ):
        return None
    home = feed_text.link(text_of(raw.get("home_page_url")), url)
    hubs = [
        text_of(hub.get("url")) for hub in entries_of(raw.get("hubs")) if text_of(hub.get("type")).lower() == "websub"
    ]
    return Document(
        items=with_numbers(tuple(_item(entry, home or url) for entry in entries_of(raw["items"])[:MAX_ITEMS])),
        title=feed_text.title(text_of(raw.get("title")), markup=False) or None,
        home=home,
        lifecycle=Lifecycle.FINISHED if raw.get("expired") is True else None,
        hub=_first_link(hubs, url),
        topic=feed_text.link(text_of(raw.get("feed_url")), url),
    )
