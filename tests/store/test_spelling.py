"""One Series under every spelling of its address (DESIGN 2; SITES 1, 3)."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from lanes.cli.following import wanted
from lanes.cli.spelling import as_followed, url_of
from lanes.sites import by_name, mangadex
from lanes.store.following import FollowStore, Wanted, Was
from lanes.store.pool import Database
from tests.rows import Rows

TOWER = (
    "https://www.webtoons.com/en/fantasy/tower-of-god/list?title_no=95",
    "https://www.webtoons.com/en/FANTASY/Tower-of-God/list?title_no=95",
    "https://m.webtoons.com/en/action/tog/list?title_no=095",
)
OTHERS = (
    "https://www.webtoons.com/fr/fantasy/tower-of-god/list?title_no=95",
    "https://www.webtoons.com/en/canvas/tower-of-god/list?title_no=95",
    "https://www.webtoons.com/en/fantasy/tower-of-god/list?title_no=96",
)


@pytest.fixture
def following(database: Database) -> FollowStore:
    return FollowStore(database)


def follow(following: FollowStore, *urls: str) -> list[Was]:
    """As `lanes add` does, all in one call."""
    found = following.follow(as_followed(following, [wanted(url) for url in urls]))
    return [each.was for each in following.respell(found)]


@pytest.mark.parametrize("spellings", [*permutations(TOWER)], ids=range(6))
def test_a_second_spelling_of_what_is_followed_finds_the_first(
    rows: Rows, following: FollowStore, spellings: tuple[str, ...]
) -> None:
    first, *later = spellings
    assert follow(following, first) == [Was.NEW]
    rows("UPDATE lanes.series SET first_good_at = lanes.now()")
    before = rows.one("SELECT url FROM lanes.series")
    for url in later:
        assert following.stand(as_followed(following, [wanted(url)])) == (Was.FOLLOWED,)
        assert follow(following, url) == [Was.FOLLOWED]
        assert url_of(following, url) == before
    assert rows("SELECT url FROM lanes.series") == [(before,)]


def test_two_spellings_in_one_call_are_one_series(rows: Rows, following: FollowStore) -> None:
    assert sorted(follow(following, *TOWER)) == [Was.FOLLOWED, Was.FOLLOWED, Was.NEW]
    assert rows.one("SELECT count(*) FROM lanes.series") == 1


def test_another_language_kind_or_number_is_another_series(rows: Rows, following: FollowStore) -> None:
    assert follow(following, TOWER[0], *OTHERS) == [Was.NEW] * 4
    assert rows.one("SELECT count(*) FROM lanes.series") == 4


def test_what_was_never_read_takes_the_spelling_that_is_asked_for_now(rows: Rows, following: FollowStore) -> None:
    """A feed wants genre and slug exactly right: a misspelled one would be asked for ever."""
    follow(following, TOWER[2])
    assert follow(following, TOWER[0]) == [Was.FOLLOWED]
    assert rows("SELECT url FROM lanes.series") == [
        ("https://www.webtoons.com/en/fantasy/tower-of-god/rss?title_no=95",)
    ]
    assert following.find(url_of(following, TOWER[2])).url == rows.one("SELECT url FROM lanes.series")
    follow(following, TOWER[0], TOWER[2], TOWER[1])
    assert rows.one("SELECT count(*) FROM lanes.series") == 1
    rows("UPDATE lanes.series SET first_good_at = lanes.now()")
    before = rows.one("SELECT url FROM lanes.series")
    follow(following, TOWER[0], TOWER[2])
    assert rows("SELECT url FROM lanes.series") == [(before,)]


def test_what_it_was_called_before_it_moved_is_known_too(rows: Rows, following: FollowStore) -> None:
    follow(following, TOWER[0])
    moved = "https://www.webtoons.com/en/fantasy/the-tower/rss?title_no=1000"
    rows("UPDATE lanes.series SET first_good_at = lanes.now(), old_url = url, url = %s", moved)
    assert follow(following, TOWER[2]) == [Was.FOLLOWED]
    assert follow(following, moved.replace("the-tower", "x")) == [Was.FOLLOWED]
    assert rows("SELECT url FROM lanes.series") == [(moved,)]
    assert following.find(url_of(following, TOWER[2])).url == moved


def test_a_title_that_was_followed_by_an_older_question_is_the_same(rows: Rows, following: FollowStore) -> None:
    title = "https://mangadex.org/title/6c2e7d10-54b8-4a7f-9f21-0b6d3a18c701"
    today = wanted(f"{title}?lang=fr,en")
    older = today.url.replace("limit=32", "limit=10").replace("&includes[]=manga", "")
    assert older != today.url
    following.follow([replace(today, url=older)])
    rows("UPDATE lanes.series SET first_good_at = lanes.now()")
    assert follow(following, f"{title}?lang=en,fr") == [Was.FOLLOWED]
    assert url_of(following, f"{title}/a-slug?lang=en&lang=fr") != older
    assert url_of(following, f"{title}/a-slug?lang=fr,en") == older
    assert follow(following, f"{title}?lang=fr") == [Was.NEW]


def test_on_feeds_a_url_is_a_series(rows: Rows, following: FollowStore) -> None:
    urls = ("https://a.test/feed", "https://a.test/Feed")
    assert follow(following, *urls) == [Was.NEW, Was.NEW]
    assert url_of(following, urls[1]) == urls[1]


def test_subreddits_have_no_capitals(rows: Rows, following: FollowStore) -> None:
    assert sorted(follow(following, "https://www.reddit.com/r/hfy", "https://old.reddit.com/r/HFY/")) == [
        Was.FOLLOWED,
        Was.NEW,
    ]


def test_an_import_in_many_batches_finds_the_first(rows: Rows, following: FollowStore) -> None:
    asked = [
        Wanted(each.site, each.url, each.host, f"key-{n}")
        for n in range(250)
        for each in [wanted(f"https://www.webtoons.com/en/genre-{n % 3}/slug-{n}/list?title_no={1 + n % 10}")]
    ]
    following.follow(as_followed(following, asked))
    assert rows.one("SELECT count(*) FROM lanes.series") == 10


def test_every_site_that_names_an_identity_takes_any_text() -> None:
    for name in ("webtoons",):
        identity = by_name(name).identity
        assert identity is not None
        for url in ("", "x", "https://", "https://www.webtoons.com/", "https://www.webtoons.com/en/a/b/rss"):
            assert isinstance(identity(url), str)
    assert mangadex.SITE.identity is None
