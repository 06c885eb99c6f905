"""Chapters that a Site publishes again under new ids: they are stored, and are no news (DESIGN 4.4; decision 0016).

Owns from how many of a document's items on that is so, and by which words they are known again.  Refuses to own: which Sites do it
(`lanes.sites`).  Must never break: an item whose words are new is never one of them.
"""

from __future__ import annotations

from typing import Final

from lanes.core.chapters import Item, Listed

FEWEST: Final = 3
"""Unknown items with known words from which a document publishes again: an import or a bundling brings dozens, and two Chapters that bear
the names of two others (a second prologue, a second interlude) are two Chapters."""

Words = tuple[str, str | None, str | None, str]
"""By which a Chapter is known again under another id: its title alone; where it has none, its volume, number and label, which then are the
Site's own."""


def words_of(item: Item) -> Words | None:
    """An item's words, or None where it has none that say which Chapter it is."""
    if item.title:
        return item.title, None, None, ""
    return None if item.number is None else ("", item.volume, item.number, item.label)


def to_look_up(listed: Listed, known: frozenset[bytes]) -> frozenset[Words]:
    """The words of unknown items about which the database is to be asked: none where there are too few such items.

    Words that a known Chapter bears in the same document are none of them: it is still there, so this is another of its name.
    """
    unknown = [item for item, ids in listed if not item.locked and known.isdisjoint(ids)]
    if len(unknown) < FEWEST:
        return frozenset()
    there = {words_of(item) for item, ids in listed if not known.isdisjoint(ids)}
    return frozenset(words for item in unknown if (words := words_of(item)) is not None and words not in there)


def published_again(listed: Listed, known: frozenset[bytes], words: frozenset[Words]) -> frozenset[Words]:
    """The words of those unknown items that are published again, `words` being what the database knows of those looked up.

    Nothing, unless they are FEWEST at least and more than half of what is unknown: so a few of a name in an ordinary document stay news.
    """
    again = to_look_up(listed, known) & words
    unknown = [words_of(item) for item, ids in listed if not item.locked and known.isdisjoint(ids)]
    several = sum(1 for each in unknown if each in again)
    return again if several >= FEWEST and several * 2 > len(unknown) else frozenset()
