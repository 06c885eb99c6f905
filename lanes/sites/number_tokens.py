"""A title in tokens, and the value of a number as titles write it.

Owns characters: digits of every script, dashes, words of scripts with and without spaces, numerals.  Refuses to own: which number counts
(`number_counters`, `numbers`).  Must never break: one pass over the title, and nothing raises.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple

from lanes.sites.feed_text import MAX_TITLE
from lanes.sites.number_words import HAN_DIGITS, HAN_PLACES, MEANING, MEANING_AFTER, NTH, ONES, PHRASES, TEENS, TENS

_UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff"
"""Scripts without spaces between words: Thai, kana, Han.  There words are found anywhere, elsewhere only whole."""

_TERMS: Final = sorted(
    (word for word in {**MEANING, **MEANING_AFTER} if re.match(f"[{_UNSPACED}]", word)), key=len, reverse=True
)
_FIRSTS = "".join(sorted({word[0] for word in _TERMS}))
_HAN = "".join((*HAN_DIGITS, *HAN_PLACES))

CLOSING: Final = ")]}\u3009\u300b\u300d\u300f\u3011\u3015"
"""Ends of brackets."""

_OPENED = "([{\u3008\u300a\u300c\u300e\u3010\u3014"
BRACKETS: Final = _OPENED + CLOSING


def _token(letter: str, unspaced: str = "") -> re.Pattern[str]:
    """One token, where `letter` is one letter of a script with spaces.  A hyphen in a word, or between it and its number, is none."""
    return re.compile(
        r"[\s_]*(?:"
        r"(?P<number>[0-9]+(?:[.,:/~-][0-9]+)*)"
        rf"|{unspaced}(?P<word>{letter}+(?:'{letter}+)*)"
        rf"|(?P<hash>[#№])|(?P<open>[{re.escape(_OPENED)}])|(?P<close>[{re.escape(CLOSING)}])"
        rf"|(?P<mark>(?<!{letter})-|-(?!\w)|[^\w\s-])|(?P<rest>\Z))"
    )


_ASCII: Final = _token("[A-Za-z]")
_ANY: Final = _token(
    rf"[^\W\d_{_UNSPACED}]",
    rf"(?P<nth>[{NTH}](?=\s?[0-9{_HAN}]))|(?P<term>(?=[{_FIRSTS}])(?:{'|'.join(_TERMS)}))"
    rf"|(?P<han>[{_HAN}]+)|(?P<letter>[{_UNSPACED}])|",
)
_SIGNS: Final = re.compile(rf"[0-9{_FIRSTS}{NTH}]")
_WORDS: Final = re.compile(rf"[^\W\d_{_UNSPACED}]+")
_SECOND: Final = frozenset(second for _, second in PHRASES)
_KNOWN: Final = frozenset({*MEANING, *_SECOND})


class Token(NamedTuple):
    """`kind`: number, hash, nth, han, open, close, mark, word, or the meaning of a word that stands before its number.

    `text` of a known word is in lower case.
    """

    kind: str
    text: str
    start: int
    end: int


END: Final = Token("mark", "", -2, -2)
"""What stands after the last token and, as a list's last, before the first."""

AHEAD: Final = (END,) * 4
"""Every line of tokens ends with them, so that looking ahead never ends."""


class _Plain(dict[int, str]):
    """Characters as the rules know them; filled as they come."""

    def __missing__(self, code: int) -> str:
        self[code] = plain = _plain_letter(chr(code))
        return plain


def _plain_letter(letter: str) -> str:
    digit = unicodedata.decimal(letter, None)
    if digit is not None:
        return str(digit)
    if "\uff01" <= letter <= "\uff5e" or "\u2160" <= letter <= "\u217f":  # full-width; roman numerals of one character
        return unicodedata.normalize("NFKC", letter)
    if unicodedata.category(letter) == "Pd" or letter == "\u2212":
        return "-"
    return {"\u301c": "~", "\u223c": "~", "\u2019": "'"}.get(letter, letter)


_PLAIN: Final = _Plain()


def plain(title: str) -> str:
    """The title, at most MAX_TITLE characters, with full-width forms, dashes and the digits of every script in ASCII."""
    title = title[:MAX_TITLE]
    return title if title.isascii() else unicodedata.normalize("NFC", title).translate(_PLAIN)


def says_nothing(title: str) -> bool:
    """True where a plain title has neither a digit nor a word of ours: most prose, at a fifth of the cost."""
    return not _SIGNS.search(title) and _KNOWN.isdisjoint(_WORDS.findall(title.lower()))


def tokens(title: str) -> list[Token]:
    """The tokens of a plain title, and AHEAD."""
    out: list[Token] = []
    before = ""
    for found in (_ASCII if title.isascii() else _ANY).finditer(title):
        kind = found.lastgroup or ""
        if kind == "rest":  # else what parts words at the end would be tried again from each place in it
            break
        text = found[kind]
        end = found.end()
        start = end - len(text)
        if kind == "word" or kind == "term":  # noqa: PLR1714 - a set costs more, and this is most of the work
            word = text.lower()
            kind = MEANING.get(word, "word")
            if word in _SECOND and (phrase := PHRASES.get((before, word))) and out[-1].end >= start - 1:
                kind, start = phrase, out.pop().start
            before = word
            if kind != "word":
                text = word
        elif kind == "letter":
            kind = "word"
        out.append(Token(kind, text, start, end))
    out.extend(AHEAD)
    return out


_DECIMAL: Final = re.compile(r"0*([0-9]{1,6})(?:\.([0-9]{1,3})|,([0-9]{1,2}))?")
_THOUSANDS: Final = re.compile(r"0*([1-9][0-9]{0,2}),([0-9]{3})")
_ROMAN: Final = re.compile(r"(?=[CLXVI])C{0,3}(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
"""Up to 399: beyond are words such as MIX and DIM."""

_ROMAN_DIGITS: Final = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}

_SPELT: Final = re.compile(
    rf"(?:(?P<hundreds>{'|'.join(ONES)}) hundred(?: and)?(?: |$))?"
    rf"(?:(?P<tens>{'|'.join(TENS)})(?: (?P<ones>{'|'.join(ONES)}))?\b|(?P<teens>{'|'.join({**ONES, **TEENS})})\b)?"
)
SPELT_WORDS: Final = 5
"""The longest: one hundred and twenty one."""


def decimal(text: str) -> str | None:
    """A decimal without leading zeros; a comma before one or two digits is a decimal comma, before three it groups thousands."""
    if found := _DECIMAL.fullmatch(text):
        part = found[2] or found[3]
        return f"{found[1]}.{part}" if part else found[1]
    found = _THOUSANDS.fullmatch(text)
    return found[1] + found[2] if found else None


def value(text: str, *, listed: bool = False) -> str | None:
    """A token of digits as a number: "12", "12.5", "12,5", "1,204"; "12-5" is 12.5, "10-11" a range whose last counts (SITES 14, rule 5).

    `listed`, after a plural: a comma parts numbers, too.  None for times, dates, versions and what has over 6 digits.
    """
    first, *rest = re.split("[,~/-]" if listed else "[~-]", text)
    if not rest:
        return decimal(first)
    low, high = decimal(first), decimal(rest[-1])
    if low is None or high is None or len(rest) > (9 if listed else 1):
        return None
    if float(low) <= float(high):
        return high
    joined = "-" in text and len(rest) == 1 and len(rest[0]) <= 3 and (first + rest[0]).isdecimal()
    return f"{low}.{rest[0]}" if joined else None


def roman(text: str) -> str | None:
    """The value of a roman numeral in capitals."""
    if not _ROMAN.fullmatch(text):
        return None
    digits = [_ROMAN_DIGITS[letter] for letter in text]
    return str(sum(-digit if digit < after else digit for digit, after in zip(digits, [*digits[1:], 0], strict=True)))


def han(text: str) -> str | None:
    """The value of a Chinese numeral: with places ("一百零五") or digit by digit ("一〇五")."""
    if len(text) > 7:
        return None
    if not any(letter in HAN_PLACES for letter in text):
        return decimal("".join(str(HAN_DIGITS[letter]) for letter in text))
    total = digit = 0
    for letter in text:
        if letter in HAN_PLACES:
            total, digit = total + (digit or 1) * HAN_PLACES[letter], 0
        else:
            digit = HAN_DIGITS[letter]
    return str(total + digit)


def spelt(words: Iterator[str]) -> tuple[str, int] | None:
    """The value of the English number words that come first, and how many words they are."""
    found = _SPELT.match(" ".join(words).lower())
    if not found or not found[0]:
        return None
    ones = ONES.get(found["ones"] or "", 0) + {**ONES, **TEENS}.get(found["teens"] or "", 0)
    total = 100 * ONES.get(found["hundreds"] or "", 0) + TENS.get(found["tens"] or "", 0) + ones
    return str(total), len(found[0].split())
