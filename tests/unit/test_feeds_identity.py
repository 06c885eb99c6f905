"""Which items are the same Chapter, from bytes to identities."""

from __future__ import annotations

from lanes.core.chapters import Document, Item, distinct, guids_lie, identities
from lanes.sites import feeds


def polled(*items: str) -> tuple[tuple[Item, tuple[bytes, ...]], ...]:
    body = (
        "<rss version='2.0'><channel><title>T</title>"
        + "".join(f"<item>{item}</item>" for item in items)
        + "</channel></rss>"
    )
    found = feeds.read(body.encode(), None, "https://x.example/feed")
    assert isinstance(found, Document)
    return distinct(found.items, guid_alone=not guids_lie(found.items))


def news(
    known: tuple[tuple[Item, tuple[bytes, ...]], ...], later: tuple[tuple[Item, tuple[bytes, ...]], ...]
) -> list[str]:
    seen = {identity for _, ids in known for identity in ids}
    return [item.title for item, ids in later if seen.isdisjoint(ids)]


def item(title: str = "", link: str = "", guid: str = "", date: str = "") -> str:
    return f"<title>{title}</title><link>{link}</link><guid isPermaLink='false'>{guid}</guid><pubDate>{date}</pubDate>"


HOME = "https://x.example/"


def test_six_titles_behind_one_link_and_date_are_six_chapters_once() -> None:
    """CASES F1."""
    items = [item(f"Part {n}", HOME, date="2026-11-29") for n in range(6)]
    assert len(polled(*items)) == 6
    assert news(polled(*items), polled(*items)) == []


def test_one_guid_and_link_with_an_invalid_date_is_not_new_twice() -> None:
    """CASES F2."""
    items = [item("", HOME, "g", "Invalid Date")] * 3
    assert len(polled(*items)) == 1
    assert news(polled(*items), polled(*items)) == []


def test_a_date_that_moves_makes_no_new_chapter() -> None:
    """CASES F3."""
    assert news(polled(item("A", HOME, date="2026-11-28")), polled(item("A", HOME, date="2026-11-29"))) == []


def test_a_guid_that_changes_under_the_same_link_and_title_is_the_same_chapter() -> None:
    """CASES F4."""
    assert news(polled(item("A", HOME, "?p=1")), polled(item("A", HOME, "?p=2"))) == []


def test_guids_that_differ_in_case_are_two_chapters() -> None:
    """CASES F5."""
    assert len(polled(item("A", HOME + "1", "abc"), item("B", HOME + "2", "ABC"))) == 2


def test_identities_do_not_depend_on_what_is_still_stored_or_where_it_stands() -> None:
    """CASES F6: the hashes alone decide, so pruning half of 100 items announces nothing."""
    items = [item(f"Part {n}", f"{HOME}{n}", f"g{n}") for n in range(100)]
    assert news(polled(*items), polled(*reversed(items))) == []


def test_a_feed_that_gives_every_item_one_guid_has_each_found_once() -> None:
    """CASES F13."""
    before = [item(f"Part {n}", HOME, HOME) for n in range(3)]
    assert len(polled(*before)) == 3
    assert news(polled(*before), polled(item("Part 3", HOME, HOME), *before)) == ["Part 3"]


def test_an_item_without_a_title_does_not_make_a_guid_a_lie() -> None:
    assert not guids_lie((Item("g", "A", None), Item("g", "", None)))
    assert guids_lie((Item("g", "A", None), Item("g", "B", None)))


def test_a_duplicate_hands_its_other_identities_to_the_one_that_is_kept() -> None:
    both = (Item("g1", "A", HOME), Item("g2", "A", HOME))
    ((kept, ids),) = distinct(both)
    assert kept == both[0]
    assert set(ids) == {*identities(both[0]), *identities(both[1])}


def test_an_item_with_nothing_to_go_by_is_no_chapter() -> None:
    assert distinct((Item(None, "", None),)) == ()


def test_a_bare_title_or_link_is_an_identity_only_where_nothing_else_is() -> None:
    assert len(identities(Item(None, "A", None))) == len(identities(Item(None, "", HOME))) == 1
    assert identities(Item(None, "A", None)) != identities(Item(None, "", "A"))


def test_two_thousand_items_of_a_document_are_chapters_each_known_by_sixteen_bytes() -> None:
    found = distinct(tuple(Item(str(n), "", None) for n in range(2_001)))
    assert len(found) == 2_000
    assert {len(identity) for _, ids in found for identity in ids} == {16}
