"""JSON that somebody else wrote: taken apart without believing its shape.

Owns what a value may be.  Refuses to own: what it means.  Must never break: a number keeps its digits as written, and no depth, size or
number raises.
"""

from __future__ import annotations

import json
from typing import Any, Final

MOST_VALUES: Final = 1_000_000
"""Commas and opening brackets of a document: each may be a value of 60 bytes or more in memory, and prose of 30 MiB has half as many."""

_DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


def value_of(text: str) -> Any:
    """The value of a whole document, its numbers as text; None where it is no JSON, or too much of it."""
    if sum(map(text.count, ",[{")) > MOST_VALUES:
        return None
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def value_at(text: str, place: int) -> Any:
    """The value that begins at `place` of a text and ends where it ends; None as above."""
    if sum(text.count(mark, place) for mark in ",[{") > MOST_VALUES:
        return None
    try:
        return _DECODER.raw_decode(text, place)[0]
    except (ValueError, RecursionError):
        return None


def text_of(found: object) -> str:
    """A string or a number as text, else ""."""
    return found if isinstance(found, str) else ""


def entry_of(found: object) -> dict[str, Any]:
    """An object, else an empty one."""
    return found if isinstance(found, dict) else {}


def entries_of(found: object) -> list[dict[str, Any]]:
    """The objects of a list; none where it is no list."""
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []
