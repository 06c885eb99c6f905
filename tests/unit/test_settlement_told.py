"""Which new Chapters are told where a Site names their numbers itself (DESIGN 4.4), and what a Poll leaves in its record."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lanes.core.chapters import Item
from lanes.core.circumstances import TOLD_ONCE, Known, Numbered
from lanes.core.pace import HostPace
from lanes.core.reissues import words_of
from lanes.core.settlement import AGAIN, Settlement
from tests.answers import ANSWERED, NOT_MODIFIED, a_claim, a_document, a_response, an_item, known, settled


def numbered(name: str, number: str | None, volume: str | None = "1", label: str = "") -> Item:
    return an_item(name, number=number, volume=volume, label=label)


def told(*items: Item, lately: frozenset[Numbered] | None, **claim: Any) -> list[str]:
    """The titles that are announced; all items are new, something older is known."""
    settlement = settled(a_response(200), a_document(*items), a_claim(**claim), Known(any=True, numbers=lately))
    assert len(settlement.chapters) == len(items)
    return [chapter.item.title for chapter in settlement.chapters if chapter.announced]


def test_a_second_release_of_a_chapter_that_was_found_lately_is_stored_and_not_told() -> None:
    assert told(numbered("a", "5"), numbered("b", "6"), lately=frozenset({("1", "5", "")})) == ["title b"]


def test_a_second_release_within_thirty_days_is_not_told() -> None:
    assert timedelta(days=30) == TOLD_ONCE


def test_two_releases_of_one_chapter_in_one_document_are_told_once() -> None:
    assert told(numbered("a", "5"), numbered("b", "5"), lately=frozenset()) == ["title a"]


@pytest.mark.parametrize(
    "other",
    [numbered("b", "5.5"), numbered("b", "5", "2"), numbered("b", "5", None), numbered("b", "5", label="extra")],
)
def test_another_number_volume_or_label_is_another_chapter(other: Item) -> None:
    assert told(numbered("a", "5"), other, lately=frozenset()) == ["title a", "title b"]


def test_a_chapter_without_a_number_is_always_told() -> None:
    assert told(numbered("a", None), numbered("b", None), lately=frozenset()) == ["title a", "title b"]
    assert told(numbered("a", None), lately=frozenset({("1", None, "")})) == ["title a"]


def test_where_numbers_were_read_from_titles_they_silence_nothing() -> None:
    """CASES F15"""
    assert told(numbered("a", "1"), numbered("b", "1"), lately=None) == ["title a", "title b"]


def test_back_fill_is_as_old_as_the_oldest_known_item_or_older_by_a_moment_at_least() -> None:
    old, same, older = an_item("old", -3), an_item("same", -3), an_item("older", -3 - 1e-9)
    settlement = settled(a_response(200), a_document(same, older, old), a_claim(), known(old))
    assert [chapter.item.title for chapter in settlement.chapters if chapter.announced] == ["title same"]


def test_a_known_item_dated_this_very_instant_is_not_in_the_future() -> None:
    now = an_item("now", published_at=ANSWERED)
    settlement = settled(a_response(200), a_document(an_item("older", -1), now), a_claim(), known(now))
    assert [chapter.announced for chapter in settlement.chapters] == [False]


def test_a_chapter_published_again_is_stored_and_not_told_and_its_poll_says_so() -> None:
    old = [an_item(f"{n}") for n in range(50)]
    new = [replace(item, guid=f"new {item.guid}", link=f"{item.link}-new") for item in old]
    words = frozenset(each for item in old if (each := words_of(item)))
    settlement = settled(a_response(200), a_document(*new, an_item("51")), a_claim(), replace(known(*old), words=words))
    assert [chapter.item.title for chapter in settlement.chapters if chapter.announced] == ["title 51"]
    assert (len(settlement.chapters), settlement.detail) == (51, AGAIN)


# What is left behind


def test_a_document_without_validators_drops_those_of_before() -> None:
    without = settled(a_response(200), a_document(an_item("1")), a_claim(), known(an_item("1")))
    assert (without.forget, without.validators) == (True, None)
    assert not settled(a_response(200, etag='"a"'), a_document(an_item("1")), a_claim(), known(an_item("1"))).forget


def test_a_first_sight_is_named_in_the_record() -> None:
    def found(**claim: Any) -> Settlement:
        return settled(a_response(200), a_document(an_item("1")), a_claim(**claim), Known())

    assert found(news_from=None, good_at=None).detail == "first sight"
    assert found().detail is None


def test_the_record_has_what_a_poll_changed_and_what_stood_there_before_and_nothing_else() -> None:
    """What it was us, or its Site, to blame for is given back from there."""
    failed = settled(a_response(502), None, a_claim(failures=2), host=HostPace(timedelta(seconds=4)))
    assert failed.changed == {"failures": [2, 3], "host pace": [4.0, 8.0]}
    ceiling = settled(a_response(502), None, a_claim(), host=HostPace(timedelta(minutes=4), None, 1))
    assert ceiling.changed == {"failures": [0, 1], "host pace": [240.0, 300.0], "host backoffs": [1, 2]}
    refused = settled(a_response(403), None, a_claim(refusals=1))
    assert refused.changed == {"refusals": [1, 2]}
    assert settled(NOT_MODIFIED, None, a_claim()).changed == {"rest": [480.0, 720.0]}
    assert settled(NOT_MODIFIED, None, a_claim(rest=None), site_rest=timedelta(hours=1)).changed == {}
