"""Keys of Series: readable, harmless, repeatable."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.core.keys import LONGEST, marked, readable

KEY = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://serial.example.org/feed", "serial-example-org"),
        ("https://www.example.org/the-moth/rss.xml", "example-org-the-moth"),
        ("http://127.1.0.10:8080/a/feed", "127-1-0-10-a"),
        ("https://example.org/", "example-org"),
        ("https://feed.xml/", "feed-xml"),
    ],
)
def test_a_key_comes_from_host_and_path_without_the_words_of_every_feed(url: str, key: str) -> None:
    assert readable(url) == key


def test_a_title_names_what_only_a_query_tells_apart() -> None:
    assert readable("https://tube.example/feeds/videos.xml?channel=UC1", "Émile's Ferry") == "emile-s-ferry"


def test_a_key_holds_no_password_and_no_query() -> None:
    assert readable("https://mira:sesame@priv.example/feed?token=s3cret") == "priv-example"


def test_the_mark_tells_urls_apart_and_stays_the_same() -> None:
    one, two = marked("a", "http://a.test/1"), marked("a", "http://a.test/2")
    assert one != two
    assert one == marked("a", "http://a.test/1")


def test_a_long_url_makes_a_key_of_93_characters_and_its_mark_of_six_makes_it_100() -> None:
    url = f"https://a.test/{'b' * 200}"
    key = readable(url)
    assert key == f"a-test-{'b' * 86}"
    assert re.fullmatch(rf"{key}-[0-9a-f]{{6}}", marked(key, url))
    assert re.fullmatch(rf"{'c' * 93}-[0-9a-f]{{6}}", marked("c" * 200, url))


@given(st.text(), st.none() | st.text())
def test_whatever_is_pasted_makes_a_valid_key_with_room_for_its_mark(url: str, title: str | None) -> None:
    for given_url in (url, f"https://a.test/{url}", f"https://a.test/?{url}"):
        key = readable(given_url, title)
        assert KEY.fullmatch(key)
        assert len(marked(key, given_url)) <= LONGEST
        assert KEY.fullmatch(marked(key, given_url))
