"""Chapter numbers from titles (SITES 14).

Owns how a title is taken apart and which of its numbers counts.  Refuses to own: the words (`number_words`), and what a number is for: it
is shown, and decides nothing (DESIGN 4.4).  Must never break: no title raises or costs more than a few steps a character, and a number
that is not certain is none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from lanes.core.chapters import Item
from lanes.sites.feed_text import MAX_TITLE
from lanes.sites.number_words import (
    HAN_DIGITS,
    HAN_PLACES,
    LETTERS,
    MEANING,
    MEANING_AFTER,
    NTH,
    PHRASES,
    TENS,
    UNITS,
)
from lanes.sites.words_of_time import MONTHS


@dataclass(frozen=True, slots=True)
class Numbered:
    """`volume` and `number` are decimals as text without leading zeros, or None; `label` is of the closed set of SITES 14 or ""."""

    volume: str | None = None
    number: str | None = None
    label: str = ""


NOTHING: Final = Numbered()

_MAIN: Final = frozenset({"chapter", "episode"})
_OUTER: Final = frozenset({"volume", "season"})
_OWN: Final = frozenset({"side", "extra", "special"})
"""Labels with a sequence of their own, off the main line, even where the word chapter follows."""
_STRONG: Final = frozenset({"prologue", "epilogue", "interlude", "side", "oneshot"})
"""Labels whose words mean little else.  Those of other labels are everyday words ("special delivery") and must stand alone."""
_LABELS: Final = _STRONG | _OWN | {"notice"}
_YEARS: Final = range(1900, 2100)

# -- a title in tokens

_UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff"
"""Scripts without spaces between words: Thai, kana, Han.  There words are found anywhere, elsewhere only whole."""

_UNSPACED_WORDS: Final = sorted(
    (word for word in {**MEANING, **MEANING_AFTER} if re.match(f"[{_UNSPACED}]", word)), key=len, reverse=True
)
_FIRSTS = "".join(sorted({word[0] for word in _UNSPACED_WORDS}))
_HAN = "".join((*HAN_DIGITS, *HAN_PLACES))

_TOKEN: Final = re.compile(
    r"(?P<number>[0-9]+(?:[.,:/~-][0-9]+)*)"
    r"|(?P<hash>#|\b(?i:no|nr)\.(?=\s?[0-9])|№|\bn[º°])"
    rf"|(?P<term>(?=[{_FIRSTS}])(?:{'|'.join(_UNSPACED_WORDS)}))"
    rf"|(?P<nth>[{NTH}](?=\s*[0-9{_HAN}]))"
    rf"|(?P<han>[{_HAN}]+)"
    rf"|(?P<word>[^\W\d_{_UNSPACED}]+(?:'[^\W\d_{_UNSPACED}]+)*|[{_UNSPACED}])"
    r"|(?P<open>[(\[{【「『《〈〔])"
    r"|(?P<close>[)\]}】」』》〉〕])"
    r"|(?P<mark>(?<![^\W\d_])-|-(?!\w)|[^\w\s-])"
)


class _Token(NamedTuple):
    """`kind`: number, hash, nth, han, mark, word, or the meaning of a word that stands before its number."""

    kind: str
    text: str
    start: int
    end: int


class _Plain(dict[int, str]):
    """Full-width forms, digits of every script and all dashes in ASCII; filled as characters come."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        digit = unicodedata.decimal(letter, None)
        if digit is not None:
            letter = str(digit)
        elif 0xFF01 <= code <= 0xFF5E:
            letter = chr(code - 0xFEE0)
        elif 0x2160 <= code <= 0x217F:  # roman numerals as one character
            letter = unicodedata.normalize("NFKC", letter)
        elif unicodedata.category(letter) == "Pd" or code == 0x2212:
            letter = "-"
        elif code in (0x301C, 0x223C):
            letter = "~"
        elif code == 0x2019:
            letter = "'"
        self[code] = letter
        return letter


_PLAIN: Final = _Plain()


def _plain(title: str) -> str:
    title = title[:MAX_TITLE]
    return title if title.isascii() else unicodedata.normalize("NFC", title).translate(_PLAIN)


def _tokens(title: str) -> list[_Token]:
    """The tokens of a plain title, less those in brackets that hold no volume or season."""
    tokens: list[_Token] = []
    opened: list[int] = []
    for found in _TOKEN.finditer(title):
        kind, text, start = found.lastgroup or "mark", found[0], found.start()
        if kind == "word" or kind == "term":
            text = text.lower()
            kind = MEANING.get(text, "word")
            if tokens and tokens[-1].end >= start - 1 and (phrase := PHRASES.get((tokens[-1].text.lower(), text))):
                kind, start = phrase, tokens.pop().start
            elif kind == "word":
                text = found[0]
        elif kind == "open":
            kind = "mark"
            opened.append(len(tokens))
        elif kind == "close":
            kind = "mark"
            if opened and any(find.kind in _OUTER and find.number for find in _finds(tokens[opened[-1] :])):
                opened.clear()  # what encloses it holds it too
            elif opened:
                del tokens[opened.pop() :]
        tokens.append(_Token(kind, text, start, found.end()))
    return tokens


# -- numbers as written

_DECIMAL: Final = re.compile(r"0*([0-9]{1,6})(?:\.([0-9]{1,3})|,([0-9]{1,2}))?")
_THOUSANDS: Final = re.compile(r"0*([1-9][0-9]{0,2}),([0-9]{3})")
_ROMAN: Final = re.compile(r"(?=[CLXVI])C{0,3}(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
"""Up to 399: beyond are words such as MIX and DIM."""


def _decimal(text: str) -> str | None:
    if found := _DECIMAL.fullmatch(text):
        part = found[2] or found[3]
        return f"{found[1]}.{part}" if part else found[1]
    found = _THOUSANDS.fullmatch(text)
    return found[1] + found[2] if found else None


def _value(text: str, *, listed: bool = False) -> str | None:
    """A number as written in digits; of a range the last.  `listed`: after a plural a comma parts, too."""
    first, *rest = re.split("[,~/-]" if listed else "[~-]", text)
    if not rest:
        return _decimal(first)
    last = _decimal(rest[-1])
    low, high = _decimal(first), last
    if low is None or high is None or (len(rest) > 1 and not listed):
        return None
    if float(low) <= float(high):
        return high
    return f"{low}.{rest[0]}" if "-" in text and (low + rest[0]).isdecimal() and len(rest[0]) <= 3 else None


def _roman(text: str) -> str | None:
    if not _ROMAN.fullmatch(text):
        return None
    values = [{"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}[letter] for letter in text]
    return str(sum(-value if value < after else value for value, after in zip(values, [*values[1:], 0], strict=True)))


def _han(text: str) -> str | None:
    if len(text) > 6:
        return None
    if all(letter in HAN_DIGITS for letter in text):
        return str(int("".join(str(HAN_DIGITS[letter]) for letter in text)))
    total = digit = 0
    for letter in text:
        if letter in HAN_PLACES:
            total, digit = total + (digit or 1) * HAN_PLACES[letter], 0
        else:
            digit = HAN_DIGITS[letter]
    return str(total + digit)


# -- counters and their numbers


class _Find(NamedTuple):
    """A counter, label or hash, and its number if it has one.  It takes the tokens from `first` to before `after`.

    `opens`: nothing stands before it but a mark or another counter; `closes`: nothing but a mark after it.  `letter`: it is one letter.
    """

    kind: str
    number: str | None
    first: int
    after: int
    opens: bool
    closes: bool
    letter: bool = False


_NOBODY: Final = _Token("mark", "", -2, -2)
_AND: Final = frozenset({*",&+~-/", "and", "to", "y", "e", "et", "und", "и"})


def _at(tokens: list[_Token], place: int) -> _Token:
    return tokens[place] if 0 <= place < len(tokens) else _NOBODY


def _glued(tokens: list[_Token], place: int) -> bool:
    """Whether an unknown word touches the end of this token: "12th", "3人"; a letter alone may ("12a")."""
    word = _at(tokens, place + 1)
    return word.kind == "word" and word.start == tokens[place].end and not (len(word.text) == 1 and word.text.isascii())


def _spelt(tokens: list[_Token], place: int) -> tuple[str | None, int]:
    """English number words and roman numerals, with nothing after them that could make words of them."""
    text = tokens[place].text
    if roman := _roman(text):
        return (roman if len(text) > 1 or _at(tokens, place + 1).kind != "word" else None), place + 1
    total, start = 0, place
    while (word := _at(tokens, place).text.lower()) in UNITS or word in TENS or (word == "hundred" and total):
        total = total * 100 if word == "hundred" else total + UNITS.get(word, TENS.get(word, 0))
        place += 1
        if word in UNITS and _at(tokens, place).text.lower() != "hundred":
            break
        place += _at(tokens, place).text.lower() == "and" and word == "hundred"
    return (str(total) if place > start and _at(tokens, place).kind != "word" else None), place


def _count(tokens: list[_Token], place: int, *, listed: bool = False) -> tuple[str | None, int]:
    """The number that starts at `place`, right after a counter, and the place after it."""
    start = place
    if _at(tokens, place).text == "." and tokens[place].start == tokens[place - 1].end:
        place += 1
    place += _at(tokens, place).kind == "hash"
    token = _at(tokens, place)
    if token.kind == "number":
        value = _value(token.text, listed=listed)
        while listed and value and _at(tokens, place + 1).text in _AND and _at(tokens, place + 2).kind == "number":
            more = _value(tokens[place + 2].text, listed=True)
            if more is None or float(more) < float(value) or _at(tokens, place + 3).kind == "word":
                break
            value, place = more, place + 2
    elif token.kind == "han":
        value = _han(token.text)
    elif token.kind == "word":
        value, place = _spelt(tokens, place)
        return (value, place) if value else (None, start)
    else:
        return None, start
    return (None, start) if value is None or _glued(tokens, place) else (value, place + 1)


def _counted_before(tokens: list[_Token], place: int) -> tuple[str, str, int] | None:
    """Meaning, number and the place after it where the number stands first: "第12話", "12화", "5 глава", "61. Bölüm"."""
    nth = tokens[place].kind == "nth"
    place += nth
    token, word = _at(tokens, place), _at(tokens, place + 1)
    if token.kind == "number":
        number = _value(token.text)
    else:
        number = _han(token.text) if nth and token.kind == "han" else None
    dotted = word.text == "." and word.start == token.end
    place += 1 + dotted
    word = _at(tokens, place)
    meaning = MEANING_AFTER.get("." * dotted + word.text)
    if number is None or meaning is None:
        return None
    if not nth:
        following = _at(tokens, place + 1)
        owns = following.kind == "number" and _at(tokens, place + 2).text not in MEANING_AFTER and word.text in MEANING
        before = _at(tokens, place - 2 - dotted)
        if owns or _glued(tokens, place) or (before.kind == "word" and before.end == token.start):
            return None
    return meaning, number, place + 1


def _find(tokens: list[_Token], place: int, opens: bool) -> _Find | None:
    """The counter at this place."""
    token = tokens[place]
    kind, number, after, letter = token.kind, None, place + 1, False
    if kind == "mark":
        return None
    if kind == "number" or kind == "nth":
        counted = _counted_before(tokens, place)
        if not counted:
            return None
        kind, number, after = counted
    elif kind == "hash":
        number, after = _count(tokens, place)
    elif kind == "word":
        following = _at(tokens, after)
        letter = len(token.text) == 1 and following.kind == "number" and following.start == token.end
        kind = LETTERS.get(token.text.lower(), "") if letter else ""
        if not kind:
            return None
        number, after = _value(following.text), place + 2
    elif kind == "final":
        word = _at(tokens, after)
        kind = word.kind if word.kind in _MAIN else MEANING_AFTER.get(word.text, "")
        if kind not in _MAIN:
            return None
        number, after = _count(tokens, after + 1)
        kind = "final " + kind if number is None else kind
    elif kind in _MAIN or kind in _OUTER:
        number, after = _count(tokens, after, listed=token.text[-1] == "s" and token.text[:-1] in MEANING)
        if number is None and kind in _MAIN and _at(tokens, after).kind == "final":
            kind, after = "final " + kind, after + 1
    elif kind in _LABELS:
        after += _at(tokens, after).kind in _MAIN
        number, after = _count(tokens, after)
    return _Find(kind, number, place, after, opens, _at(tokens, after).kind == "mark", letter)


def _finds(tokens: list[_Token]) -> Iterator[_Find]:
    place, counted = 0, 0
    while place < len(tokens):
        before = _at(tokens, place - 1).kind
        find = _find(tokens, place, before == "mark" or before in _MAIN or place == counted)
        place = find.after if find else place + 1
        if find:
            counted = place if find.number else counted
            yield find


# -- which of them counts


def _beside(tokens: list[_Token], first: int, second: int) -> bool:
    """Whether nothing but marks lies between two places."""
    return all(token.kind == "mark" for token in tokens[first:second])


def _stands_as_label(find: _Find, tokens: list[_Token]) -> bool:
    if find.kind == "notice":
        return find.closes
    return find.opens and (find.kind in _STRONG or find.closes)


def _counted(tokens: list[_Token], finds: list[_Find]) -> Numbered:
    """What counters and labels say."""
    best, end = NOTHING, -1
    outer: _Find | None = None
    for find in finds:
        kind = find.kind
        if outer and (outer.letter or find.letter) and not _beside(tokens, outer.after, find.first):
            outer = None
        volume = outer.number if outer else None
        if kind in _OUTER:
            outer = find if find.number else outer
        elif kind in _MAIN and find.number and (outer or not find.letter):
            if best.label in _OWN and not best.number:
                best = replace(best, volume=volume or best.volume, number=find.number)
            elif best.label != "notice" and (outer or not best.number):
                best, end, outer = Numbered(volume, find.number, kind), find.after, None
        elif kind.startswith("final ") and find.opens and find.closes and best is NOTHING:
            best = Numbered(volume, None, kind.removeprefix("final "))
        elif kind == "finale" and find.opens and best is NOTHING:
            best = Numbered(volume, None, "episode")
        elif kind in _LABELS and _stands_as_label(find, tokens):
            if best is NOTHING:
                best = Numbered(volume, find.number, kind) if kind != "notice" else Numbered(label=kind)
            elif best.label in _MAIN and find.first == end and kind in _OWN | {"notice"}:
                best = Numbered(best.volume if kind != "notice" else None, None, kind)
    return best


def _leading(tokens: list[_Token], place: int) -> Numbered:
    """A bare number at the head: "12. The Quiet Door", "12 - The Quiet Door", "2-14. The Weir", or the whole title."""
    token = _at(tokens, place)
    if token.kind != "number":
        return NOTHING
    mark, word = _at(tokens, place + 1), _at(tokens, place + 2)
    if mark is _NOBODY:
        number = _decimal(token.text) if "," not in token.text else None
    elif mark.text not in tuple(".-:|") or word.start == mark.end or word.kind == "number":
        return NOTHING
    elif "-" in token.text and mark.text in tuple(".-"):
        volume, _, number = token.text.partition("-")
        return (
            Numbered(_decimal(volume), _decimal(number), "chapter") if max(len(volume), len(number)) <= 3 else NOTHING
        )
    else:
        number = _decimal(token.text)
    if number is None or (number.isdecimal() and int(number) in _YEARS) or word.text.lower() in MONTHS:
        return NOTHING
    return Numbered(None, number, "chapter")


def _uncounted(tokens: list[_Token], finds: list[_Find]) -> Numbered:
    """What a title without counters of chapters says: a bare number, a hash, a whole volume."""
    head = next((place for place, token in enumerate(tokens) if token.kind != "mark"), 0)
    outer = next((find for find in finds if find.kind in _OUTER and find.number and find.opens), None)
    start = outer.after if outer and outer.first == head else 0
    while _at(tokens, start).kind == "mark" and start < len(tokens):
        start += 1
    volume = outer.number if outer and start >= outer.after else None
    found = _leading(tokens, start)
    if found.number:
        return replace(found, volume=found.volume or volume)
    for find in finds:
        if find.kind == "hash" and find.number and (find.first == start or find.closes):
            return Numbered(volume, find.number, "chapter")
    if outer and outer.kind == "volume" and outer.closes and not outer.letter:
        return Numbered(outer.number, None, "volume")
    return NOTHING


def numbered(title: str) -> Numbered:
    """Volume, number and label as the title says them; NOTHING where it is not certain.  Never raises; linear in the title.

    The rules and their examples are SITES 14.
    """
    tokens = _tokens(_plain(title))
    finds = list(_finds(tokens))
    found = _counted(tokens, finds)
    return found if found.label else _uncounted(tokens, finds)


# -- a document


def _alike(own: str | None, ours: str | None) -> bool:
    """Whether two decimals are equal, or one is missing."""

    def parts(text: str) -> tuple[str, str]:
        whole, _, part = text.partition(".")
        return whole.lstrip("0"), part.rstrip("0")

    return own is None or ours is None or parts(own) == parts(ours)


def _filled(item: Item, found: Numbered) -> Item:
    """The item with what it lacks; as it is where the title says another thing than the Site."""
    own, ours = item.label, found.label
    same_label = not own or own == ours or (own in _MAIN and ours in _MAIN)
    one_sided = item.number is not None and found.number is None  # "Prologue", where the Site says 12
    if one_sided or not (same_label and _alike(item.number, found.number) and _alike(item.volume, found.volume)):
        return item
    return replace(
        item, volume=item.volume or found.volume, number=item.number or found.number, label=item.label or found.label
    )


def with_numbers(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The items with numbers, volumes and labels from their titles where the Site gave none; what the Site gave stays (SITES 14, rule 7).

    A title parses when it yields a number or a label (a number has one, always).  Where fewer than half of the document's titles parse, nothing is taken from any:
    they are not a serial's, and what parses does so by chance.  Items without a title do not count.
    """
    found = [numbered(item.title) for item in items]
    parsed = sum(1 for each in found if each.label)
    titles = sum(1 for item in items if item.title)
    if not parsed or parsed * 2 < titles:
        return items
    return tuple(_filled(item, each) if each.label else item for item, each in zip(items, found, strict=True))
