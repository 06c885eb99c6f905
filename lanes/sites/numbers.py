"""Chapter numbers from titles (SITES 14).

Owns which of a title's numbers counts, and when a document's titles are believed.  Refuses to own: the words (`number_words`), how they
stand together (`number_counters`), and what a number is for: it is shown, and decides nothing (DESIGN 4.4).  Must never break: no title
raises, none costs more than a few steps a character, and a number that is not certain is none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from lanes.core.chapters import Item
from lanes.sites.number_counters import LABELS, MAIN, OUTER, Counter, Line, counters, untagged
from lanes.sites.number_tokens import CLOSING, END, decimal, plain, says_nothing, tokens
from lanes.sites.words_of_time import MONTHS


@dataclass(frozen=True, slots=True)
class Numbered:
    """`volume` and `number` are decimals as text without leading zeros, or None.

    `label` is chapter, episode, volume, prologue, epilogue, interlude, side, extra, special, oneshot or notice; "" only where nothing was
    found at all.
    """

    volume: str | None = None
    number: str | None = None
    label: str = ""


NOTHING: Final = Numbered()

_OWN: Final = frozenset({"side", "extra", "special"})
"""Labels with a sequence of their own: off the main line even where the word chapter follows."""

_PLAIN_WORDS: Final = frozenset({"extra", "special", "oneshot"})
"""Labels whose words mean much else ("special delivery"): they count only where they stand alone."""

_YEARS: Final = range(1900, 2100)
"""A bare number among these is a year."""

_FEW: Final = 4
"""Words before a hash or a notice ("Weekly Thread #12", "Season 2 Announcement"): after more they are part of a sentence."""

_PASSED: Final = frozenset({"[]", *CLOSING, *"-:,|."})
"""Marks that may stand before a leading number; not "$"."""


def _main(line: Line, counter: Counter, volume: str | None, best: Numbered) -> Numbered:
    if counter.number is None or (counter.letter and volume is None):
        alone = counter.last and counter.opens and counter.closes(line) and best is NOTHING
        return Numbered(volume, None, counter.kind) if alone else best
    if best.label in _OWN and best.number is None:
        return replace(best, volume=volume or best.volume, number=counter.number)
    if best.label == "notice" or (best.number and volume is None):
        return best
    return Numbered(volume, counter.number, counter.kind)


def _notice(line: Line, counter: Counter, best: Numbered, touching: bool) -> Numbered:
    """ "Season 2 Announcement"; "Chapter 12 delayed", but not "Chapter 12: The Announcement"."""
    heard = counter.first <= _FEW and counter.closes(line) if best is NOTHING else touching
    return Numbered(label="notice") if heard else best


def _label(line: Line, counter: Counter, volume: str | None, best: Numbered, touching: bool) -> Numbered:
    if not counter.opens or (counter.kind in _PLAIN_WORDS and not counter.closes(line)):
        return best
    if best is NOTHING:
        return Numbered(volume, counter.number, counter.kind)
    return Numbered(best.volume, None, counter.kind) if touching and counter.kind in _OWN else best


def _counted(line: Line, found: list[Counter]) -> Numbered:
    """What the counters say: the last volume with its chapter, else the first chapter; a label where it stands first (rules 3 and 4)."""
    best, end = NOTHING, -1
    outer: Counter | None = None
    for counter in found:
        if outer and (outer.letter or counter.letter) and not _beside(line, outer.after, counter.first):
            outer = None
        if counter.kind in OUTER:
            outer = counter if counter.number else outer
            continue
        before, volume = best, outer.number if outer else None
        if counter.kind in MAIN:
            best = _main(line, counter, volume, best)
        elif counter.kind == "notice":
            best = _notice(line, counter, best, counter.first == end)
        elif counter.kind in LABELS:
            best = _label(line, counter, volume, best, counter.first == end)
        if best is not before and best.label in MAIN:
            end, outer = counter.after, None
    return best


def _beside(line: Line, first: int, second: int) -> bool:
    """Whether nothing but marks lies between two places."""
    return all(token.kind == "mark" for token in line[first:second])


def _headed(line: Line, place: int) -> Numbered:
    """A bare number at the head: "12. The Quiet Door", "12 - The Quiet Door", "2-14. The Weir", or the whole title."""
    token, mark, word = line[place : place + 3]
    whole = mark is END
    apart = mark.text in (".", "-", ":", "|", "、") and (word.start > mark.end or word is END or word.text >= "\u0e00")
    if token.kind != "number" or not (whole or apart) or word.kind == "number":
        return NOTHING
    volume, dash, inner = token.text.partition("-")
    if dash:
        pair = not whole and mark.text in (".", "-") and len(volume) <= 3 and len(inner) <= 3
        return Numbered(decimal(volume), decimal(inner), "chapter") if pair and decimal(inner) else NOTHING
    number = decimal(token.text) or ""
    _, _, part = number.partition(".")
    year = not part and number and int(number) in _YEARS
    if not number or year or len(part) > 2 or word.text.lower() in MONTHS:  # "10.000" may be ten thousand
        return NOTHING
    return Numbered(None, number, "chapter")


def _uncounted(line: Line, found: list[Counter]) -> Numbered:
    """What a title without a chapter's counter says: a bare number at its head, after its volume or not; a hash; a whole volume."""
    outer = next((counter for counter in found if counter.kind in OUTER and counter.number and counter.opens), None)
    start = outer.after if outer and _beside(line, 0, outer.first) else 0
    volume = outer.number if outer and start else None
    while line[start].text in _PASSED:
        start += 1
    headed = _headed(line, start)
    if headed.number:
        return replace(headed, volume=headed.volume or volume)
    for counter in found:
        placed = counter.first == start or (counter.first <= _FEW and counter.closes(line))
        if counter.kind == "hash" and placed:
            return Numbered(volume, counter.number, "chapter")
    if outer and outer.kind == "volume" and outer.closes(line) and not outer.letter:
        return Numbered(outer.number, None, "volume")
    return NOTHING


def numbered(title: str) -> Numbered:
    """Volume, number and label as the title says them; NOTHING where it is not certain.  Never raises; linear in the title.

    The rules and their examples are SITES 14.
    """
    title = plain(title)
    if says_nothing(title):
        return NOTHING
    line = untagged(tokens(title))
    found = counters(line)
    said = _counted(line, found)
    return _uncounted(line, found) if said is NOTHING else said


def _alike(own: str | None, ours: str | None) -> bool:
    """Whether two decimals are equal, or one is missing."""

    def parts(text: str) -> tuple[str, str]:
        whole, _, part = text.partition(".")
        return whole.lstrip("0"), part.rstrip("0")

    return own is None or ours is None or parts(own) == parts(ours)


def _filled(item: Item, found: Numbered) -> Item:
    """The item with what it lacks; as it is where the title says another thing than the Site."""
    own, ours = item.label, found.label
    same_label = not own or own == ours or (own in MAIN and ours in MAIN)
    one_sided = item.number is not None and found.number is None  # "Prologue", where the Site says 12
    if one_sided or not (same_label and _alike(item.number, found.number) and _alike(item.volume, found.volume)):
        return item
    return replace(item, volume=item.volume or found.volume, number=item.number or found.number, label=own or ours)


def with_numbers(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The items with numbers, volumes and labels from their titles where the Site gave none; what it gave stays (SITES 14, rule 7).

    A title parses when it yields a number or a label.  Where fewer than half of the document's titles parse, nothing is taken from any: it
    is no serial's, and what parses does so by chance (decision 0011).  Items without a title do not count.

    Not for a Site of `named_numbers`: there numbers silence a second release, and those of titles must silence nothing (DESIGN 4.4).
    """
    found = [numbered(item.title) for item in items]
    parsed = sum(1 for said in found if said.label)
    if not parsed or parsed * 2 < sum(1 for item in items if item.title):
        return items
    return tuple(_filled(item, said) if said.label else item for item, said in zip(items, found, strict=True))
