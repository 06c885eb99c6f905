"""Laws of numbers from titles: nothing raises, every number is in its range, and none comes from nowhere."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.sites.feed_text import MAX_TITLE
from lanes.sites.number_counters import LABELS
from lanes.sites.number_words import AFTER, BEFORE, HAN_DIGITS, HAN_PLACES, ONES, TEENS, TENS
from lanes.sites.numbers import NOTHING, Numbered, numbered

WORDS = [
    word
    for table in (BEFORE, AFTER)
    for words in table.values()
    for forms in words.values()
    for word in forms.replace(".", "").split("|")
]
PIECES = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from([*ONES, *TEENS, *TENS, "hundred", "and", "XIV", "I", "v", "S", "E", "c", "Salt", "moth"]),
    st.sampled_from(
        [
            "12",
            "7.5",
            "7,5",
            "1,204",
            "10-11",
            "12-5",
            "3/4",
            "2024",
            "007",
            "1234567",
            "\uff11\uff12",
            "十二",
            "第",
            "제",
        ]
    ),
    st.sampled_from([" ", " ", " ", ". ", ": ", " - ", ", ", "-", "_", "#", "[", "]", "(", ")", "【", "】", "!"]),
    st.text(max_size=4),
)
TITLES = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=14).map("".join))
DECIMAL = re.compile(r"(0|[1-9][0-9]{0,5})(\.[0-9]{1,3})?")


@given(TITLES)
def test_no_title_raises_and_every_number_is_a_decimal_of_at_most_six_digits_before_the_point(title: str) -> None:
    found = numbered(title)
    assert all(DECIMAL.fullmatch(number) for number in (found.volume, found.number) if number is not None)
    assert found.label in LABELS | {"chapter", "episode", "volume", ""}
    assert found.label or found == NOTHING


def is_number(letter: str) -> bool:
    return letter in {*HAN_DIGITS, *HAN_PLACES, *"IVXLC"} or unicodedata.numeric(letter, None) is not None


@given(TITLES)
def test_a_title_without_a_digit_or_a_number_word_has_no_number(title: str) -> None:
    words = "|".join((*ONES, *TEENS, *TENS))
    without = re.sub(words, "", "".join(letter for letter in title if not is_number(letter)), flags=re.IGNORECASE)
    if not re.search(words, without, re.IGNORECASE):
        found = numbered(without)
        assert (found.volume, found.number) == (None, None)


@given(TITLES)
def test_full_width_digits_count_as_ascii_ones(title: str) -> None:
    wide = title.translate({code: code - 0x30 + 0xFF10 for code in range(0x30, 0x3A)})
    assert numbered(wide) == numbered(title)


@given(
    st.integers(0, 999_999), st.sampled_from(["Chapter {}", "Ch.{}", "第{}章", "제{}장", "Глава {}", "{} глава", "#{}"])
)
def test_a_counted_number_comes_out_as_it_went_in(number: int, title: str) -> None:
    assert numbered(title.format(number)) == Numbered(None, str(number), "chapter")


@pytest.mark.parametrize(
    "piece",
    ["(Vol. 1 ", "(", "[]", "1.", "1-", "1, ", "ch1", "s1e1", "S1--", "#1", "one hundred and ", "side ", "第一話", "番外", "I ",
     "-", "special ", "(S1 E1)", "no. 1 ", "a'", "a\u0301\u0316", "final chapter ", "chapters 1, 2, ", " ", "_", "1_"],
)  # fmt: skip
def test_the_longest_title_of_one_thing_over_and_over_is_read_in_no_time(piece: str) -> None:
    """A backtracking pattern or a pass for each bracket would take minutes for these; the test's own timeout is seconds."""
    for head in ("", "Chapters ", "Vol. 1 "):
        title = (head + piece * MAX_TITLE)[:MAX_TITLE]
        for _ in range(20):
            numbered(title)
        assert numbered(title + " Chapter 5") == numbered(title), "what is beyond the longest title is not read"
