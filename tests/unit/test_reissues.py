"""When Chapters are published again under new ids (decision 0016)."""

from __future__ import annotations

import pytest

from lanes.core.chapters import Item, distinct
from lanes.core.reissues import FEWEST, Words, published_again, to_look_up, words_of
from lanes.sites import SITES

KNOWN = [Item(f"old {n}", f"Part {n}", None) for n in range(6)]


def again(item: Item) -> Item:
    """The same under another id."""
    return Item(f"new {item.guid}", item.title, None, None, False, item.number, item.volume, item.label)


def fresh(n: int) -> Item:
    return Item(f"fresh {n}", f"Another {n}", None)


def told_again(*document: Item, stored: list[Item] | None = None) -> list[str]:
    """The titles of what is published again, where these are stored."""
    stored = KNOWN if stored is None else stored
    known = frozenset(each for _, ids in distinct(tuple(stored)) for each in ids)
    words = frozenset(each for item in stored if (each := words_of(item)))
    listed = distinct(document)
    found = published_again(listed, known, to_look_up(listed, known) & words)
    return [item.title or f"#{item.number}" for item in document if words_of(item) in found]


def test_three_at_once_are_published_again() -> None:
    assert FEWEST == 3
    assert told_again(*map(again, KNOWN[:3])) == ["Part 0", "Part 1", "Part 2"]
    assert told_again(*map(again, KNOWN[:2])) == []


def test_they_are_more_than_half_of_what_is_unknown() -> None:
    assert told_again(*map(again, KNOWN[:3]), fresh(1), fresh(2)) == ["Part 0", "Part 1", "Part 2"]
    assert told_again(*map(again, KNOWN[:3]), fresh(1), fresh(2), fresh(3)) == []


def test_known_items_of_the_document_do_not_count() -> None:
    assert told_again(*KNOWN[3:], *map(again, KNOWN[:3])) == ["Part 0", "Part 1", "Part 2"]


def test_where_the_old_one_is_still_there_another_of_its_name_is_another() -> None:
    assert told_again(*KNOWN, *map(again, KNOWN)) == []
    assert told_again(KNOWN[0], *map(again, KNOWN)) == [item.title for item in KNOWN[1:]]


def test_an_item_without_title_is_known_by_what_the_site_numbers_it() -> None:
    stored = [Item(f"old {n}", "", None, number=str(n), volume="1", label="chapter") for n in range(3)]
    assert told_again(*map(again, stored), stored=stored) == ["#0", "#1", "#2"]
    other = [Item(f"new {n}", "", None, number=str(n), volume="2", label="chapter") for n in range(3)]
    assert told_again(*other, stored=stored) == []


def test_an_item_without_title_and_number_has_no_words() -> None:
    nameless = [Item(f"old {n}", "", None) for n in range(3)]
    assert told_again(*map(again, nameless), stored=nameless) == []


def test_locked_items_take_no_part() -> None:
    locked = [Item(f"new {n}", f"Part {n}", None, locked=True) for n in range(3)]
    assert told_again(*locked) == []


@pytest.mark.parametrize("few", range(FEWEST))
def test_nothing_is_looked_up_where_too_little_is_unknown(few: int) -> None:
    listed = distinct((*KNOWN, *map(fresh, range(few))))
    known = frozenset(each for _, ids in distinct(tuple(KNOWN)) for each in ids)
    assert to_look_up(listed, known) == frozenset()


def test_words_are_the_title_alone_where_there_is_one() -> None:
    wordy: Words = ("A", None, None, "")
    assert words_of(Item("1", "A", None, number="1", volume="2", label="chapter")) == wordy


def test_the_sites_that_are_known_to_do_it_say_so() -> None:
    assert {site.name for site in SITES if site.republishes} == {"kagane", "royalroad"}
