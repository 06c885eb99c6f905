"""Chapters: the database resolves conflicts, and what was really inserted is what is new (DESIGN 4, 4.4)."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from lanes.core.chapters import Hints, Item, distinct, identities
from lanes.core.claim import Claim
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from tests.answers import a_document, a_response, an_item, settled
from tests.fix_database import Clock
from tests.rows import DAY, HOUR, LEASE, Rows, settle_read, take, trail

ONE, TWO, THREE = an_item("1"), an_item("2"), an_item("3")


def taken(store: PollStore, clock: Clock | None = None) -> Claim:
    if clock is not None:
        clock.advance(DAY)
    claim = take(store)
    assert claim is not None
    return claim


def told(rows: Rows) -> list[str]:
    return [title for (title,) in rows("SELECT title FROM lanes.chapters WHERE announced ORDER BY id")]


def titles(rows: Rows) -> list[str]:
    return [title for (title,) in rows("SELECT title FROM lanes.chapters ORDER BY id")]


def test_the_first_sight_stores_and_tells_nobody_and_what_comes_after_is_told(
    rows: Rows, store: PollStore, clock: Clock
) -> None:
    series = rows.series()
    settle_read(store, taken(store), TWO, ONE)
    assert sorted(titles(rows)) == ["title 1", "title 2"]
    assert told(rows) == []
    assert rows.the_series(series).news_from is not None
    settle_read(store, taken(store, clock), THREE, TWO, ONE)
    assert told(rows) == ["title 3"]


def test_the_older_of_two_new_chapters_is_stored_first(rows: Rows, store: PollStore) -> None:
    """Documents list the newest first; ids grow with age."""
    rows.series()
    settle_read(store, taken(store), THREE, TWO, ONE)
    assert titles(rows) == ["title 1", "title 2", "title 3"]


def test_the_same_document_twice_stores_nothing_more(rows: Rows, store: PollStore, clock: Clock) -> None:
    """CASES F1, F2, F3"""
    rows.series()
    six = [an_item(str(n), guid=None, link="https://host.test/", title=f"title {n}") for n in range(6)]
    settle_read(store, taken(store), *six)
    settle_read(store, taken(store, clock), *six)
    assert len(titles(rows)) == 6


def test_pruned_text_does_not_make_a_chapter_new_again(rows: Rows, store: PollStore, clock: Clock) -> None:
    """CASES F6"""
    rows.series()
    items = [an_item(str(n)) for n in range(100)]
    settle_read(store, taken(store), *items)
    rows("DELETE FROM lanes.chapters WHERE mod(id, 2) = 0")
    settle_read(store, taken(store, clock), *items)
    assert len(titles(rows)) == 50
    assert told(rows) == []


def test_a_new_guid_for_a_known_link_and_title_becomes_known_too(rows: Rows, store: PollStore, clock: Clock) -> None:
    """CASES F10: afterwards the guid alone is enough."""
    rows.series()
    settle_read(store, taken(store), ONE)
    moved = replace(ONE, guid="of the new engine")
    settle_read(store, taken(store, clock), moved)
    settle_read(store, taken(store, clock), replace(moved, title="retitled", link="https://host.test/elsewhere"))
    assert titles(rows) == ["title 1"]


def test_a_guid_that_lied_once_is_remembered_on_the_row(rows: Rows, store: PollStore, clock: Clock) -> None:
    """CASES F13"""
    series = rows.series()
    home = "https://host.test/"
    settle_read(store, taken(store), an_item("1", guid=home), an_item("2", guid=home))
    assert not rows.the_series(series).guid_alone
    settle_read(store, taken(store, clock), an_item("3", guid=home))
    assert told(rows) == ["title 3"]
    settle_read(store, taken(store, clock), an_item("3", guid=home))
    assert told(rows) == ["title 3"]
    assert not rows.the_series(series).guid_alone


def test_what_another_stored_meanwhile_is_not_new(rows: Rows, store: PollStore) -> None:
    series = rows.series(news_from=rows.now() - DAY)
    claim = taken(store)
    for identity in identities(TWO):
        rows("INSERT INTO lanes.identities (series_id, identity) VALUES (%s, %s)", series, UUID(bytes=identity))
    settle_read(store, claim, TWO, ONE)
    assert titles(rows) == ["title 1"]


def test_the_same_chapter_of_two_series_is_two_chapters(rows: Rows, store: PollStore) -> None:
    rows.series()
    rows.series()
    for _ in range(2):
        settle_read(store, taken(store), ONE)
    assert titles(rows) == ["title 1", "title 1"]


def test_after_a_year_without_a_bookmark_nothing_is_announced(rows: Rows, store: PollStore, clock: Clock) -> None:
    """CASES F14"""
    series = rows.series()
    settle_read(store, taken(store), ONE)
    rows.set_series(series, bookmarks=0, news_from=None)
    clock.advance(365 * DAY)
    rows.bookmark(series)
    rows("UPDATE lanes.hosts SET ready_at = lanes.now()")
    settle_read(store, taken(store), THREE, TWO, ONE)
    assert len(titles(rows)) == 3
    assert told(rows) == []
    settle_read(store, taken(store, clock), an_item("4"), THREE)
    assert told(rows) == ["title 4"]


def test_a_date_in_the_future_sorts_by_first_sight(rows: Rows, store: PollStore) -> None:
    """CASES F9"""
    rows.series()
    now = rows.now()
    settle_read(
        store, taken(store), replace(ONE, published_at=now + 30 * DAY), replace(TWO, published_at=now - DAY), THREE
    )
    first, second, third = rows("SELECT title, sort_at, found_at, published_at FROM lanes.chapters ORDER BY title")
    assert first.sort_at == first.found_at
    assert first.published_at == now + 30 * DAY
    assert second.sort_at == now - DAY
    assert third.sort_at == third.found_at


def test_hints_and_titles_of_the_document_are_kept_on_the_row(rows: Rows, store: PollStore) -> None:
    """CASES C7"""
    series = rows.series()
    hints = Hints(6 * HOUR, frozenset({0, 23}), frozenset({5, 6}))
    settle_read(store, taken(store), ONE, title="A title", home="https://host.test/", hints=hints)
    row = rows.the_series(series)
    assert (row.title, row.home, row.hint_every) == ("A title", "https://host.test/", 6 * HOUR)
    assert row.hint_skip_hours == 1 | 1 << 23
    assert row.hint_skip_days == 0b1100000
    assert row.discovering is False


def test_a_late_document_stores_nothing(rows: Rows, store: PollStore, clock: Clock) -> None:
    """CASES B14"""
    rows.series()
    late = taken(store)
    clock.advance(LEASE * 2)
    taken(store)
    read = a_document(ONE)
    held, _ = store.settle_document(
        late,
        distinct((ONE,)),
        lambda known: settled(a_response(200), read, late, known, now=late.claimed_at),
        trail(late),
    )
    assert not held
    assert titles(rows) == []
    assert rows.one("SELECT count(*) FROM lanes.identities") == 0


def test_a_decision_that_fails_leaves_nothing_half_written(rows: Rows, store: PollStore) -> None:
    series = rows.series()
    claim = taken(store)
    try:
        settle_read(store, claim, replace(ONE, number="\x00"), TWO)
    except Exception:
        assert titles(rows) == []
        assert rows.one("SELECT count(*) FROM lanes.identities") == 0
        assert rows.the_series(series).lease_token == claim.token
    else:
        raise AssertionError("Postgres took a NUL character")


def test_chapters_published_again_are_known_by_their_words(rows: Rows, database: Database, clock: Clock) -> None:
    """Decision 0016: by the title, else by volume, number and label, as they are stored."""
    store = PollStore(database, "feeds", "here", republishes=True)
    store.enrol()
    rows.series()
    untitled = [
        Item(f"u{n}", "", f"https://host.test/u{n}", number=str(n), volume=None, label="chapter") for n in range(2)
    ]
    old = [*untitled, *(an_item(f"{n}") for n in range(3))]
    settle_read(store, taken(store), *old)
    clock.advance(DAY)
    new = [replace(item, guid=f"new {item.guid}", link=f"{item.link}-new") for item in old]
    others = [an_item("9"), replace(untitled[0], guid="v", volume="2"), replace(untitled[0], guid="l", label="extra")]
    settle_read(store, taken(store), *new, *others)
    found = rows("SELECT title, volume, label FROM lanes.chapters WHERE announced ORDER BY id DESC")
    assert found == [("title 9", None, ""), ("", "2", "chapter"), ("", None, "extra")]
    assert rows.one("SELECT count(*) FROM lanes.chapters") == 13


def test_elsewhere_nothing_is_known_by_its_words(rows: Rows, store: PollStore, clock: Clock) -> None:
    rows.series()
    old = [an_item(f"{n}") for n in range(3)]
    settle_read(store, taken(store), *old)
    clock.advance(DAY)
    settle_read(store, taken(store), *(replace(item, guid=f"new {item.guid}", link=f"{item.link}-new") for item in old))
    assert rows.one("SELECT count(*) FROM lanes.chapters WHERE announced") == 3
