"""Volume, number and label as titles write them (SITES 14), and when a document's titles are believed."""

from __future__ import annotations

import pytest

from lanes.core.chapters import Document, Item
from lanes.sites import feeds
from lanes.sites.numbers import NOTHING, Numbered, numbered, with_numbers
from tests.answers import an_item

RULES = [
    # title, volume, number, label, why
    ("Ch. 12.5", "", "12.5", "chapter", "half a chapter"),
    ("Vol.3 Ch.4", "3", "4", "chapter", "dots without spaces after them"),
    ("Episode 33", "", "33", "episode", "the plain case"),
    ("#45", "", "45", "chapter", "a hash alone says chapter"),
    ("S2 E10", "2", "10", "episode", "a season counts around its episodes"),
    ("第12話", "", "12", "episode", "Japanese, digits"),
    ("Chapter 7: Part 2", "", "7", "chapter", "the second part of 7 is not 7.2"),
    ("Глава 5", "", "5", "chapter", "Russian"),
    ("12화", "", "12", "episode", "Korean, number first"),
    ("Chapter XIV", "", "14", "chapter", "roman, right after its counter"),
    ("Prologue", "", "", "prologue", "a label without a number"),
    ("Side Story 3", "", "3", "side", "third of the side stories"),
    ("Chapter 0", "", "0", "chapter", "nought counts"),
    ("Chapter 007", "", "7", "chapter", "noughts in front do not"),
    ("v3c21.5", "3", "21.5", "chapter", "letters, nothing between"),
    ("Vol. 12", "12", "", "volume", "all of a volume"),
    ("Book 3, Chapter 14: Low Tide", "3", "14", "chapter", "a book counts around its chapters"),
    ("B2C7 - Salt", "2", "7", "chapter", "letters of book and chapter"),
    ("2.14 \u2013 Undertow", "", "2.14", "chapter", "an author's own decimal is left whole"),
    ("2-14. The Weir", "2", "14", "chapter", "outer and inner, closed by a full stop"),
    ("12. The Quiet Door", "", "12", "chapter", "at the head with a full stop"),
    ("12 - The Quiet Door", "", "12", "chapter", "at the head with a dash"),
    ("Chapter 12-5", "", "12.5", "chapter", "falling: the dash is a decimal point"),
    ("Chapters 10-11", "", "11", "chapter", "rising: a range, as far as it goes"),
    ("Ch. 12a", "", "12", "chapter", "a letter after it belongs to the title"),
    ("Chapter 41 [END]", "", "41", "chapter", "a tag says nothing"),
    ("[Season 3] Ep. 12 - Frost", "3", "12", "episode", "but for a tag with a season"),
    ("Ep. 120 (Season 2 Finale)", "", "120", "episode", "a season after the number is talk"),
    ("(S4) Episode 9", "4", "9", "episode", "one letter in a tag"),
    ("Season 2 Announcement", "", "", "notice", "no episode, no number"),
    ("Hiatus Notice", "", "", "notice", "not a Chapter of the story"),
    ("Mini Episode: Snow", "", "", "extra", "off the main line"),
    ("Special Episode 2", "", "2", "special", "second of the specials"),
    ("Extra 1.5", "", "1.5", "extra", "decimals count everywhere"),
    ("Vol. 2 Extra", "2", "", "extra", "the volume it belongs to"),
    ("Oneshot", "", "", "oneshot", "in one word"),
    ("One-Shot: A Lamp", "", "", "oneshot", "in two"),
    ("Epilogue II", "", "2", "epilogue", "roman after a label"),
    ("Interlude 4 - Gulls", "", "4", "interlude", "fourth of the interludes"),
    ("Final Chapter", "", "", "chapter", "main line, its number unsaid"),
    ("最終話", "", "", "episode", "the same in Japanese"),
    ("第十二話", "", "12", "episode", "Japanese, numerals"),
    ("第3巻 第21話", "3", "21", "episode", "Japanese volume"),
    ("第３章　海へ", "", "3", "chapter", "full width, and a wide space"),
    ("番外編2", "", "2", "side", "Japanese side story"),
    ("第三卷 第一百零五章 归航", "3", "105", "chapter", "Chinese numerals over a nought"),
    ("제3화 등대", "", "3", "episode", "Korean, marked as a place in a row"),
    ("시즌2 15화", "2", "15", "episode", "Korean season"),
    ("외전 2화", "", "2", "side", "Korean side story"),
    ("프롤로그", "", "", "prologue", "Korean"),
    ("Том 2 Глава 17,5", "2", "17.5", "chapter", "a comma as decimal point"),
    ("Capítulo 33: El faro", "", "33", "chapter", "Spanish, Portuguese"),
    ("Tome 2 Chapitre 8", "2", "8", "chapter", "French"),
    ("Kapitel 9", "", "9", "chapter", "German"),
    ("Bölüm 61", "", "61", "chapter", "Turkish"),
    ("Chương 88: Bến cảng", "", "88", "chapter", "Vietnamese"),
    ("ตอนที่ 24", "", "24", "episode", "Thai"),
    ("Chapter Twenty-One", "", "21", "chapter", "in words"),
    ("Strip #1,204", "", "1204", "chapter", "a comma before three digits groups"),
    ("7 Lamps, 3 Keepers", "", "", "", "lamps are not chapters"),
]

MORE = [
    ("Moth & Lighthouse - Chapter 12: The Door", "", "12", "chapter", "behind the Series' title"),
    ("Vol 1 Ch 3 / Vol 2 Ch 1", "2", "1", "chapter", "the last pair"),
    ("Chapter 7: Return to Chapter 1", "", "7", "chapter", "without pairs the first"),
    ("S02E10 - The One", "2", "10", "episode", "as recordings are named"),
    ("[Season II] Ep. 3", "2", "3", "episode", "roman in a tag"),
    ("(Book 2) 12. The Door", "2", "12", "chapter", "a bare number behind its volume"),
    ("12.灯芯", "", "12", "chapter", "no space before Chinese"),
    ("2 том 17 глава", "2", "17", "chapter", "Russian, numbers first"),
    ("61. Bölüm", "", "61", "chapter", "Turkish, number first"),
    ("卷三 第五章", "3", "5", "chapter", "Chinese, volume first"),
    ("제 12 화", "", "12", "episode", "Korean, with spaces"),
    ("ตอนพิเศษ 2", "", "2", "special", "Thai special, which has episode in it"),
    ("番外編 第2話", "", "2", "side", "a side story that counts episodes"),
    ("Side Story: Chapter 3", "", "3", "side", "the same in English"),
    ("Interlude - Chapter 45", "", "45", "chapter", "an interlude on the main line"),
    ("Capítulo extra 3", "", "3", "extra", "the label after its counter"),
    ("Último capítulo", "", "", "chapter", "the last, in Spanish"),
    ("Chapters 10, 11 and 12", "", "12", "chapter", "a list after a plural"),
    ("Chapter One Hundred and Five", "", "105", "chapter", "more words"),
    ("Chapter No. 12", "", "12", "chapter", "number sign in words"),
    ("Chapter ١٢", "", "12", "chapter", "digits of another script"),
    ("Ch. 12v2", "", "12", "chapter", "a second release"),
    ("45", "", "45", "chapter", "nothing else in the title"),
    ("Book 3: The Reckoning", "3", "", "volume", "a volume with a name"),
    ("Chapter 12 delayed until Friday", "", "", "notice", "told about, not here"),
    ("Chapter 12: The Announcement", "", "12", "chapter", "a chapter of that name"),
    ("Chapter 12 Extra", "", "", "extra", "to 12, not 12 itself"),
]

NONE = [
    "2024 - A Year in Review",
    "1984",
    "2024-05-01",
    "12. März 2024",
    "12:30 - News",
    "v2.3.1 released",
    "Version 2.3 released",
    "$12. Off",
    "12% - growth",
    "10.000 - readers",
    "10 Things I Hate",
    "24-Hour Comic",
    "5 - 10 things",
    "5-2: Ravens win",
    "12 Chapters",
    "Extra 5 chapters this week!",
    "全12話",
    "第二次世界大戦",
    "12화면",
    "My #1 fan",
    "PKCS#1",
    "commit 9b29c63e05",
    "Special Delivery",
    "Something Special",
    "Mix",
    "Chapter Mix",
    "Chapter I Am Legend",
    "Chapter Two Thousand",
    "Chapter 12th",
    "Chapter 1234567",
    "Chapter 2024-05-01",
    "Season 2",
    "S4",
    "Part 2",
    "",
]


@pytest.mark.parametrize(
    ("title", "volume", "number", "label", "why"), RULES + MORE, ids=[row[0] for row in RULES + MORE]
)
def test_a_title_says(title: str, volume: str, number: str, label: str, why: str) -> None:
    assert numbered(title) == Numbered(volume or None, number or None, label), why


@pytest.mark.parametrize("title", NONE)
def test_what_is_not_certainly_a_number_is_none(title: str) -> None:
    assert numbered(title) == NOTHING


def test_a_compact_pair_is_read_with_any_mark_or_none_between() -> None:
    assert {numbered(f"S2{mark}E10") for mark in ("", " ", "-", ":", " · ")} == {Numbered("2", "10", "episode")}


# -- a document


def numbers(*items: Item) -> list[tuple[str | None, str | None, str]]:
    return [(item.volume, item.number, item.label) for item in with_numbers(items)]


def titled(*titles: str) -> list[Item]:
    return [an_item(str(place), title=title) for place, title in enumerate(titles)]


def test_titles_give_what_the_site_did_not() -> None:
    assert numbers(*titled("Chapter 2", "Prologue", "Salt")) == [
        (None, "2", "chapter"),
        (None, None, "prologue"),
        (None, None, ""),
    ]


def test_of_a_document_in_which_fewer_than_half_of_the_titles_parse_no_title_is_believed() -> None:
    blog = titled("Chapter 11 explained", "On lamps", "On moths")
    assert with_numbers(tuple(blog)) == tuple(blog)


def test_half_is_enough_and_items_without_a_title_do_not_count() -> None:
    assert numbers(*titled("12. Salt", "On lamps", "", ""))[0] == (None, "12", "chapter")


def test_what_the_site_gave_stays() -> None:
    given = an_item("a", title="[Season 3] Ep. 12", number="12.0", label="chapter")
    assert numbers(given) == [("3", "12.0", "chapter")]


@pytest.mark.parametrize(
    "given",
    [
        an_item("a", title="Chapter 12", number="13"),
        an_item("a", title="S2 E10", volume="3"),
        an_item("a", title="Episode 12", label="extra"),
        an_item("a", title="Prologue", number="1"),
    ],
)
def test_a_title_that_says_another_thing_than_the_site_adds_nothing(given: Item) -> None:
    assert with_numbers((given,)) == (given,)


# -- the Site feeds


def read(body: str) -> list[tuple[str | None, str | None, str]]:
    reading = feeds.read(body.encode(), None, "https://origin.example/feed")
    assert isinstance(reading, Document)
    return [(item.volume, item.number, item.label) for item in reading.items]


def test_a_feed_s_titles_are_read_and_what_its_podcast_parts_say_wins() -> None:
    """SITES 14, rule 7: the trailer's title names an episode that it is not."""
    items = (
        "<title>S2 E10</title>",
        "<title>Episode 9</title><itunes:episode>12</itunes:episode>",
        "<title>Episode 11</title><itunes:episodeType>trailer</itunes:episodeType>",
    )
    feed = "".join(f"<item>{item}</item>" for item in items)
    assert read(
        f"<rss version='2.0' xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd'><channel><title>T</title>{feed}</channel></rss>"
    ) == [("2", "10", "episode"), (None, "12", "episode"), (None, None, "notice")]


def test_a_json_feed_s_titles_are_read() -> None:
    assert read('{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": "a", "title": "Chapter 4"}]}') == [
        (None, "4", "chapter")
    ]
