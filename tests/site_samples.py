"""Documents of each Site, in shapes that were seen and words that were not.

Owns reading them.  Refuses to own: what they must yield (each Site's tests).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from lanes.core.chapters import Document, Item, NotRecognised, Reading
from lanes.core.outcome import Meaning, judge
from lanes.sites import Site
from tests.answers import STAMP, a_claim, a_response

SAMPLES = Path(__file__).parent / "samples" / "sites"
AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
"""The instant of every answer."""


def sample(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


def reading(site: Site, name: str, url: str) -> Reading:
    return site.read(sample(name), None, url, AT)


def document(site: Site, name: str, url: str) -> Document:
    found = reading(site, name, url)
    assert isinstance(found, Document), found
    return found


def unrecognised(site: Site, name: str, url: str) -> NotRecognised:
    found = reading(site, name, url)
    assert isinstance(found, NotRecognised), found
    assert found.reason
    return found


def identities(items: tuple[Item, ...]) -> list[str | None]:
    return [item.guid for item in items]


def numbers(items: tuple[Item, ...]) -> list[tuple[str | None, str | None, str]]:
    return [(item.volume, item.number, item.label) for item in items]


def dates(items: tuple[Item, ...]) -> list[str]:
    """Each as ISO 8601, "~" before those that are approximate, "-" for none."""
    return [
        "-"
        if item.published_at is None
        else ("~" if item.approximate else "") + item.published_at.isoformat().replace("+00:00", "Z")
        for item in items
    ]


def meaning(site: Site, body: bytes, asked: str, answered: str | None = None) -> Meaning:
    """What a 200 with this body means for a Series of the Site that was asked at `asked`, and led to `answered`."""
    url = answered or asked
    answer = replace(a_response(body=body, content_type="text/html"), url=url)
    return judge(answer, site.read(body, "text/html", url, AT), a_claim(url=asked), STAMP).meaning
