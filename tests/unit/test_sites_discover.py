"""Feeds that a web page names."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanes.sites.discover import MOST, FeedLink, discover

PAGE = Path(__file__).parent.parent / "samples" / "page_with_feeds.html"


def test_the_feeds_of_a_page_are_found_with_those_of_comments_last() -> None:
    assert discover(PAGE.read_bytes(), "text/html; charset=utf-8", "https://origin.example/") == (
        FeedLink("https://ledger.example/feed/", "Ledger » Feed", "rss"),
        FeedLink("https://ledger.example/start/atom.xml", "", "atom"),
        FeedLink("https://ledger.example/feed.json", "JSON Feed", "json"),
        FeedLink("https://ledger.example/feed/#again", "", "rss"),
        FeedLink("https://ledger.example/comments/feed/", "Ledger » Comments", "rss"),
    )


def test_without_a_base_links_are_seen_from_the_page() -> None:
    page = b"<link rel=alternate type=application/rss+xml href=feed>"
    assert [feed.url for feed in discover(page, None, "https://x.example/a/b")] == ["https://x.example/a/feed"]


def test_a_feed_named_twice_is_found_once() -> None:
    page = b"<link rel=alternate type=application/rss+xml href=/feed>" * 3
    assert len(discover(page, None, "https://x.example/")) == 1


def test_a_page_of_links_is_cut_off() -> None:
    page = b"".join(b"<link rel=alternate type=application/rss+xml href=/%d>" % n for n in range(1_000))
    assert len(discover(page, None, "https://x.example/")) == MOST


@pytest.mark.parametrize(
    "body", [b"", b"\0", b"<![if x]><![x[", b"<!", b"\xff\xfe<", b"<base href='http://[x/'>", b"<link rel href=" * 99]
)
def test_a_page_without_feeds_or_sense_names_none(body: bytes) -> None:
    assert discover(body, "text/html; charset=nonsense", "https://x.example/") == ()
