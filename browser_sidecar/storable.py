"""What a page came to, as values that its row holds (DESIGN 7).

Owns the bounds of all that a page says of itself.  Refuses to own: what it means.  Must never break: no page says anything that could not
be written down, for then it would be put back and asked again at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Final

from lanes.core.answer import Trouble
from lanes.core.pages import NotShown, Opened, Shown
from lanes.core.urls import LONGEST_URL

STATUSES: Final = range(100, 600)
"""RFC 9110, 15: what lies outside is no status."""
HEADERS: Final = 200
"""Of one answer: talkative servers send forty."""
LONGEST_NAME: Final = 200
"""Characters."""
LONGEST_VALUE: Final = 8_192
"""Characters: servers and clients refuse longer lines."""
LONGEST_DETAIL: Final = 200
"""Characters."""


def storable(opened: Opened) -> Opened:
    """The same, without what no row holds; a document with a status that is none, or at a URL that nobody can ask, is none."""
    match opened:
        case NotShown(detail=detail, forbidden=forbidden):
            named = None if forbidden is None else _text(forbidden, LONGEST_DETAIL)
            return replace(opened, detail=_text(detail, LONGEST_DETAIL), forbidden=named)
        case Shown(status=status) if status not in STATUSES:
            return NotShown(Trouble.FRAMING, f"a status that is none: {status}"[:LONGEST_DETAIL], line_proved=True)
        case Shown(url=url) if len(url) > LONGEST_URL:
            return NotShown(Trouble.BAD_URL, f"it is shown at a URL of {len(url)} characters", line_proved=True)
        case Shown(headers=headers, url=url, held=held):
            what = None if held is None else _text(held, LONGEST_DETAIL)
            return replace(opened, headers=_headers(headers), url=_text(url, LONGEST_URL), held=what)


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    few = islice(headers.items(), HEADERS)
    return {_text(name, LONGEST_NAME): _text(value, LONGEST_VALUE) for name, value in few}


def _text(text: str, longest: int) -> str:
    """Without NUL and halves of characters, which Postgres does not store."""
    return text[:longest].encode("utf-8", "replace").decode().replace("\0", "")
