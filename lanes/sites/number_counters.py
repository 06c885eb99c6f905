"""Counters in a title, each with its number: "Chapter 12", "第12話", "Vol.3", "Special Episode 2", "#45".

Owns how a counter and its number stand together.  Refuses to own: which counter counts (`numbers`).  Must never break: a number belongs to
a counter only where nothing stands between them, since a number inside a sentence is none (SITES 14, rule 4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from lanes.sites.number_tokens import AHEAD, BRACKETS, SPELT_WORDS, Token, han, roman, spelt, value
from lanes.sites.number_words import LETTERS, MEANING, MEANING_AFTER

MAIN: Final = frozenset({"chapter", "episode"})
"""The main line."""

OUTER: Final = frozenset({"volume", "season"})
"""What counts around it.  A season alone is nothing, a volume alone may be a whole volume."""

LABELS: Final = frozenset({"prologue", "epilogue", "interlude", "side", "extra", "special", "oneshot", "notice"})

OPENING: Final = frozenset({"", "[]", ":", "-", "|", ".", "~", "\u00b7", *BRACKETS})
"""Marks after which a title starts anew."""

TAG: Final = Token("mark", "[]", -2, -2)
"""What is left of a tag in brackets."""

_AND: Final = frozenset({*",&+~-/", "and", "to", "y", "e", "et", "und", "и"})

Line = list[Token]
"""The tokens of one title, with AHEAD at its end."""


class Counter(NamedTuple):
    """A counter, label or hash, and its number if it has one.  It takes the tokens from `first` to before `after`.

    `kind` as of a token; `last`: "the final", a Chapter without a number; `letter`: it is one letter.  `opens`: nothing stands
    before it but what ends with a mark of OPENING or another counter.
    """

    kind: str
    number: str | None
    first: int
    after: int
    last: bool = False
    letter: bool = False
    opens: bool = False

    def closes(self, line: Line) -> bool:
        """Whether a mark or nothing comes after it."""
        return line[self.after].kind == "mark"


def _glued(line: Line, place: int) -> bool:
    """Whether an unknown word touches the end of this token: "12th", "3人"; a letter alone may ("12a")."""
    word = line[place + 1]
    return word.kind == "word" and word.start == line[place].end and not (len(word.text) == 1 and word.text.isascii())


def _spelt(line: Line, place: int) -> tuple[str | None, int]:
    """A roman numeral or number words, with nothing after them that would make words of them."""
    text = line[place].text
    if number := roman(text):
        sure = len(text) > 1 or line[place + 1].kind != "word"
        return (number, place + 1) if sure else (None, place)
    found = spelt(token.text for token in line[place : place + SPELT_WORDS])
    if not found or line[place + found[1]].kind == "word":
        return None, place
    return found[0], place + found[1]


def _more(line: Line, place: int, number: str) -> tuple[str, int]:
    """The last of a list of numbers after a plural: "10, 11 and 12"."""
    while line[place].text in _AND and line[place + 1].kind == "number":
        following = value(line[place + 1].text, listed=True)
        word = line[place + 2]
        if following is None or float(following) < float(number) or (word.kind == "word" and word.text not in _AND):
            break
        number, place = following, place + 2
    return number, place


def _number(line: Line, place: int, *, listed: bool = False) -> tuple[str | None, int]:
    """The number at `place`, right after a counter, and the place after it; (None, `place`) where there is none."""
    start, token = place, line[place]
    if token.kind == "mark" and token.text == "." and token.start == line[place - 1].end:
        place += 1
        token = line[place]
    if token.kind == "hash" or token.kind == "no.":  # noqa: PLR1714
        place += 1 if token.kind == "hash" or line[place + 1].text != "." else 2
        token = line[place]
    if token.kind == "number":
        number = value(token.text, listed=listed)
    elif token.kind == "word":
        number, after = _spelt(line, place)
        return number, after if number else start
    else:
        number = han(token.text) if token.kind == "han" else None
    if number is None or _glued(line, place):
        return None, start
    return _more(line, place + 1, number) if listed else (number, place + 1)


def _after_number(line: Line, place: int, opens: bool) -> Counter | None:
    """Where the number stands first: "第12話", "12화", "5 глава", "61. Bölüm"."""
    first, nth = place, line[place].kind == "nth"
    place += nth
    token, word = line[place], line[place + 1]
    dotted = word.text == "." and word.start == token.end
    place += 1 + dotted
    word = line[place]
    kind = MEANING_AFTER.get("." * dotted + word.text)
    if kind is None:
        return None
    number = value(token.text) if token.kind == "number" else han(token.text) if nth and token.kind == "han" else None
    if number is None:
        return None
    if not nth:
        before = line[first - 1]
        has_own = (
            line[place + 1].kind == "number" and word.text in MEANING and line[place + 2].text not in MEANING_AFTER
        )
        if has_own or _glued(line, place) or (before.kind == "word" and before.end == token.start):
            return None
    return Counter(kind, number, first, place + 1, opens=opens)


def _letter(line: Line, place: int, opens: bool) -> Counter | None:
    """ "S2", "c21.5"."""
    token, number, before, after = line[place], line[place + 1], line[place - 1], line[place + 2]
    kind = LETTERS.get(token.text.lower())
    if kind is None or number.kind != "number" or number.start != token.end:
        return None
    touched = before if kind in OUTER else after  # else they are part of a code: "9b29c63e05"
    if touched.kind in ("number", "word") and (touched.end == token.start or touched.start == number.end):
        return None
    return Counter(kind, value(number.text), place, place + 2, letter=True, opens=opens)


def _last(line: Line, place: int, opens: bool) -> Counter | None:
    """ "Final Chapter", "最終話", "마지막화"."""
    if line[place].kind == "finale":
        return Counter("episode", None, place, place + 1, last=True, opens=opens)
    word = line[place + 1]
    kind = word.kind if word.kind in MAIN else MEANING_AFTER.get(word.text, "")
    if kind not in MAIN:
        return None
    number, after = _number(line, place + 2)
    return Counter(kind, number, place, after, last=True, opens=opens)


def _before_number(line: Line, place: int, opens: bool) -> Counter | None:
    """ "Chapter 12", "Vol.3"; "Capítulo final"."""
    token = line[place]
    plural = token.text[-1] == "s" and token.text[:-1] in MEANING
    number, after = _number(line, place + 1, listed=plural)
    last = number is None and token.kind in MAIN and line[after].kind == "final"
    return Counter(token.kind, number, place, after + last, last=last, opens=opens)


def _label(line: Line, place: int, opens: bool) -> Counter | None:
    """ "Side Story 3", "Special Episode 2", "Hiatus Notice"."""
    kind, after = line[place].kind, place + 1
    while line[after].kind in MAIN or line[after].kind == kind:
        after += 1
    number, after = _number(line, after)
    return Counter(kind, number, place, after, opens=opens)


def _hash(line: Line, place: int, opens: bool) -> Counter | None:
    """ "#45", "No. 45"; not "PKCS#1"."""
    before = line[place - 1]
    if (line[place].kind == "no." and line[place + 1].text != ".") or before.end == line[place].start:
        return None
    number, after = _number(line, place)
    return Counter("hash", number, place, after, opens=opens) if number else None


_COUNTERS: Final[dict[str, Callable[[Line, int, bool], Counter | None]]] = {
    **dict.fromkeys(MAIN | OUTER, _before_number),
    **dict.fromkeys(LABELS, _label),
    "number": _after_number,
    "nth": _after_number,
    "word": _letter,
    "final": _last,
    "finale": _last,
    "hash": _hash,
    "no.": _hash,
}
"""By the kind of its first token."""


def counters(line: Line) -> list[Counter]:
    """The counters of a title, from left to right."""
    out: list[Counter] = []
    place, last, opens = 0, len(line) - len(AHEAD), True
    while place < last:
        token = line[place]
        read = _COUNTERS.get(token.kind)
        found = read(line, place, opens) if read else None
        if found:
            out.append(found)
            opens, place = found.number is not None or found.kind in MAIN, found.after
        else:
            opens, place = token.text in OPENING and token.kind == "mark", place + 1
    return out


def untagged(line: Line) -> Line:
    """Without the tags in brackets, but for those that hold a volume or season (SITES 14, rule 4)."""
    kept: Line = []
    opened: list[int] = []
    for token in line:
        if token.kind == "open":
            opened.append(len(kept))
            token = token._replace(kind="mark")
        elif token.kind == "close":
            token = token._replace(kind="mark")
            if opened and any(
                found.kind in OUTER and found.number for found in counters([*kept[opened[-1] :], *AHEAD])
            ):
                opened.clear()  # what encloses it holds it, too
            elif opened:
                del kept[opened.pop() :]
                token = TAG
        kept.append(token)
    return kept
