"""URLs taken apart, followed and shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.core.urls import Parts, follow, is_same_place, shown, split


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("http://Example.COM", Parts("http", "example.com", 80, "/")),
        ("https://example.com./feed?a=1#top", Parts("https", "example.com", 443, "/feed?a=1")),
        ("http://user:p%40ss@example.com:8080/x y", Parts("http", "example.com", 8080, "/x%20y", "user:p%40ss")),
        ("http://[2001:DB8::1]:81/é", Parts("http", "2001:db8::1", 81, "/%C3%A9")),
        ("http://bücher.example/", Parts("http", "xn--bcher-kva.example", 80, "/")),
        ("http://under_score.example/%7Ea", Parts("http", "under_score.example", 80, "/%7Ea")),
    ],
)
def test_a_url_is_taken_apart(url: str, parts: Parts) -> None:
    assert split(url) == parts


@pytest.mark.parametrize(
    "url",
    [
        "", "feed", "/feed", "//example.com/", "file:///etc/passwd", "ftp://example.com/", "http://", "http:///feed",
        "http://:80/", "http://a..b/", "http://example.com:0/", "http://example.com:99999/", "http://example.com:x/",
        "http://[::1/", "http://a b/", "http://exa%6dple.com/", "http://" + "a" * 64 + ".com/", "http://example.com/" + "a" * 9_000,
        "javascript:alert(1)", "http://[fe80::1%25eth0]/",
    ],
)  # fmt: skip
def test_what_nobody_can_be_asked_by_is_no_url(url: str) -> None:
    assert split(url) is None


@pytest.mark.parametrize(("long", "asked"), [(8_192, True), (8_193, False)])
def test_a_url_and_a_location_have_eight_thousand_characters_at_most(long: int, asked: bool) -> None:
    url = "http://a.test/".ljust(long, "a")
    assert (split(url) is not None) is asked
    assert (follow("http://b.test/", url) == url) is asked
    # Also one that would lead to a short place.
    assert (follow("http://b.test/", "/feed".ljust(long - 1, "#") + "x") == "http://b.test/feed") is asked


@pytest.mark.parametrize(("long", "asked"), [(253, True), (254, False)])
def test_a_name_has_253_characters_at_most_and_63_between_two_dots(long: int, asked: bool) -> None:
    """RFC 1035 2.3.4."""
    name = ".".join(["a" * 63] * 4)[:253]
    assert (split(f"http://{name.ljust(long, 'a')}/") is not None) is asked


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/feed/", "http://a.test/feed/"),
        ("next?page=2#x", "http://a.test/old/next?page=2"),
        ("//b.test/f", "http://b.test/f"),
        (" https://a.test/feed ", "https://a.test/feed"),
        ("/caf\xe9", "http://a.test/caf%E9"),
        ("/caf\xc3\xa9 au lait", "http://a.test/caf%C3%A9%20au%20lait"),
        ("", None),
        ("   ", None),
        ("file:///etc/passwd", None),
        ("https://", None),
        ("http://[", None),
        ("mailto:me@a.test", None),
    ],
)
def test_where_a_redirect_leads(location: str, url: str | None) -> None:
    """CASES E5 (the last ones)."""
    assert follow("http://a.test/old/feed", location) == url


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/b", "http://me:secret@a.test/b"),
        ("http://a.test/b", "http://me:secret@a.test/b"),
        ("https://a.test/b", "https://me:secret@a.test/b"),
        ("http://a.test:81/b", "http://a.test:81/b"),
        ("http://b.test/b", "http://b.test/b"),
        ("http://you:x@a.test/b", "http://you:x@a.test/b"),
    ],
)
def test_credentials_go_along_within_their_host_alone(location: str, url: str) -> None:
    assert follow("http://me:secret@a.test/feed", location) == url


def test_a_url_is_shown_without_its_secrets() -> None:
    assert shown("http://me:secret@a.test:81/feed?token=hidden#x") == "http://a.test:81/feed?..."
    assert shown("nonsense") == "(no URL)"


@given(st.text(), st.text())
def test_no_text_raises_and_what_is_followed_can_be_asked(base: str, location: str) -> None:
    for start in (base, "http://a.test/feed", f"http://{base}/"):
        url = follow(start, location)
        assert url is None or split(url) is not None


@given(st.text())
def test_a_target_fits_a_request_line(tail: str) -> None:
    parts = split(f"http://a.test/{tail}")
    assert parts is None or all("\x21" <= each <= "\x7e" for each in parts.target)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("https://www.host.test/feed/", True),
        ("http://host.test:80/feed", True),
        ("http://host.test:8080/feed", False),
        ("https://host.test:8443/feed", True),
        ("http://host.test/feeds", False),
        ("http://feed.host.test/feed", False),
        ("http://me:secret@host.test/feed", False),
    ],
)
def test_scheme_slash_and_www_are_the_same_place_and_nothing_else_is(other: str, same: bool) -> None:
    assert is_same_place("http://host.test/feed", other) == same
