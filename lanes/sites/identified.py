"""That a Site of one host knows each of its Chapters by an id of its own.

Owns what becomes of a document whose items lack theirs.  Refuses to own: where the id stands (each Site).  Must never break: nothing stands
in for a missing id, since the Chapter would be another one on the day that it is there.
"""

from __future__ import annotations

from dataclasses import replace

from lanes.core.chapters import Document, Reading
from lanes.sites.page import not_recognised, text_of_page


def identified(found: Document, body: bytes, content_type: str | None) -> Reading:
    """The document with those of its items alone that have an id; where there are items and none has, it is not one that we know."""
    items = tuple(item for item in found.items if item.guid)
    if found.items and not items:
        return not_recognised("none of its Chapters has an id", text_of_page(body, content_type))
    return found if len(items) == len(found.items) else replace(found, items=items)
