"""What the `feeds` Site reads out of whole documents of every kind, and what it says of the rest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lanes.core.chapters import MAX_ITEMS, NO_HINTS, Document, Hints, NotRecognised
from lanes.sites import feeds

SAMPLES = Path(__file__).parent.parent / "samples"
URL = "https://origin.example/some/feed"


def read(name: str) -> Document:
    found = feeds.read((SAMPLES / name).read_bytes(), None, URL)
    assert isinstance(found, Document), found
    return found


def rss(inside: str, head: str = "") -> Document:
    found = feeds.read(
        f"<rss version='2.0'><channel><title>T</title>{head}{inside}</channel></rss>".encode(), None, URL
    )
    assert isinstance(found, Document), found
    return found


def refused(body: bytes, url: str = URL) -> NotRecognised:
    found = feeds.read(body, "text/html", url)
    assert isinstance(found, NotRecognised), found
    return found


def test_a_blog_is_read_with_its_links_dates_and_hub() -> None:
    found = read("blog_rss2.xml")
    assert (found.title, found.home) == ("The Lamplighter\u2019s Ledger", "https://ledger.example")
    assert (found.hub, found.topic) == ("https://hub.example/", "https://ledger.example/feed/")
    first = found.items[0]
    assert (first.guid, first.title) == ("https://ledger.example/?p=312", "12. Wick & Oil")
    assert first.link == "https://ledger.example/2026/10/12-wick/?utm=feed&from=rss"
    assert first.published_at == datetime(2026, 10, 13, 10, tzinfo=UTC)


def test_a_title_loses_its_tags_but_not_words_in_angle_brackets() -> None:
    assert read("blog_rss2.xml").items[1].title == "11. The Second <Lantern>"


def test_a_relative_link_of_rss_is_seen_from_the_channels_link() -> None:
    assert read("blog_rss2.xml").items[1].link == "https://ledger.example/2026/10/11/"


def test_an_item_without_title_guid_and_date_is_read_all_the_same() -> None:
    last = read("blog_rss2.xml").items[2]
    assert (last.guid, last.title, last.link, last.published_at) == (None, "", "https://ledger.example/note/", None)


def test_the_wish_for_pace_is_the_longest_one() -> None:
    hints = read("blog_rss2.xml").hints
    assert hints == Hints(timedelta(minutes=90), frozenset({0, 23}), frozenset({6}))


@pytest.mark.parametrize(
    "head",
    [
        "<ttl>1441</ttl>",
        "<ttl>-5</ttl>",
        "<ttl>1.5</ttl>",
        "<ttl>\uff16\uff10</ttl>",
        "<ttl>99999999999999999999</ttl>",
        "<ttl/>",
        "<skipHours><hour>25</hour><hour>x</hour></skipHours>",
        "<skipDays><day>Someday</day></skipDays>",
        "<skipHours>" + "".join(f"<hour>{hour}</hour>" for hour in range(24)) + "</skipHours>",
    ],
)
def test_a_wish_that_is_garbage_or_over_a_day_is_no_wish(head: str) -> None:
    assert rss("", head).hints == NO_HINTS


def test_the_hour_24_of_old_feeds_is_midnight() -> None:
    assert rss("", "<skipHours><hour>24</hour></skipHours>").hints.skip_hours == {0}


def test_atom_links_are_seen_from_xml_base_and_pages_win() -> None:
    found = read("serial_atom.xml")
    assert found.title == "Salt & Tides"
    assert [item.link for item in found.items] == [
        "https://tides.example/book/3.html",
        "https://tides.example/book/part-one/2.html",
    ]
    assert (found.home, found.topic) == ("https://tides.example/book/", "https://tides.example/book/atom.xml")


def test_an_atom_title_is_what_its_type_says() -> None:
    plain, markup = (item.title for item in read("serial_atom.xml").items)
    assert (plain, markup) == ("3: Q <&amp; A>", "2: Ebbing &amp; more")


def test_atom_dates_by_publication_else_by_update() -> None:
    first, second = read("serial_atom.xml").items
    assert (first.published_at, first.approximate) == (datetime(2026, 10, 20, 8, tzinfo=UTC), False)
    assert (second.published_at, second.approximate) == (datetime(2026, 10, 13, tzinfo=UTC), True)


def test_atom_03_is_read() -> None:
    found = read("old_atom03.xml")
    assert found.title == "Old <Papers>"
    assert found.items[0].published_at == datetime(2004, 1, 2, 3, 4, tzinfo=UTC)


def test_rdf_items_are_identified_by_rdf_about() -> None:
    found = read("harbour_rdf.xml")
    assert [(item.guid, item.title, item.approximate) for item in found.items] == [
        ("https://harbour.example/8", "第8話", False),
        ("https://harbour.example/7", "第7話", True),
    ]
    assert found.home == "https://harbour.example/"


def test_a_podcast_gives_number_volume_label_and_the_enclosure_as_link() -> None:
    found = read("podcast.xml")
    watch, outtakes, soon = found.items
    assert found.lifecycle == "finished"
    assert (watch.number, watch.volume, watch.label) == ("7", "3", "episode")
    assert watch.link == "https://cdn.horn.example/s3e7.mp3?u=1&v=2"
    assert (outtakes.label, outtakes.link, outtakes.number) == ("extra", "https://horn.example/outtakes", None)
    assert (soon.label, soon.link) == ("notice", "https://horn.example/soon")


def test_a_json_feed_keeps_the_digits_of_a_numeric_id() -> None:
    found = read("notes.json")
    first, second, third = found.items
    assert (first.guid, first.title, first.link) == ("9007199254740993", "Knots & <Nets>", "https://pier.example/knots")
    assert first.published_at == datetime(2026, 10, 3, 9, 15, tzinfo=UTC)
    assert (second.link, second.title, second.approximate) == ("https://far.example/?a=1&b=2", "", True)
    assert (third.guid, third.link) == (None, "https://pier.example/a.mp3")
    assert (found.lifecycle, found.hub, found.topic) == (
        "finished",
        "https://hub.example/",
        "https://pier.example/feed.json",
    )


def test_a_real_feed_that_talks_of_captchas_and_passwords_is_a_feed() -> None:
    """CASES D3."""
    assert len(read("blog_rss2.xml").items) == 3


def test_a_feed_without_items_is_recognised() -> None:
    assert rss("").items == ()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "the answer is empty"),
        (b" \r\n\t", "the answer is empty"),
        (b"\0\0\0\0\0", "the answer is empty"),
        (b"<html><body>x", "this is a web page, not a feed"),
        (b"<?xml version='1.0'?><!DOCTYPE html PUBLIC 'x'><html xmlns='http://www.w3.org/1999/xhtml'/>", "this is a web page, not a feed"),
        (b"\xef\xbb\xbf <!-- hi --><!doctype HTML><p>x", "this is a web page, not a feed"),
        (b"<urlset xmlns:atom='http://www.w3.org/2005/Atom'/>", "this is XML, but not a feed (its root is <urlset>)"),
        (b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>&x;", "this is XML, but not a feed (its root is <rdf>)"),
        (b'{"error": "not found"}', "this is JSON, but not a JSON Feed"),
        (b'{"version": "https://jsonfeed.org/version/1"', "this is JSON, but not a JSON Feed"),
        (b"[" * 100_000, "this is JSON, but not a JSON Feed"),
        (b"Retry later", "this is text, not a feed"),
    ],
)  # fmt: skip
def test_what_is_no_feed_is_said_in_words(body: bytes, reason: str) -> None:
    assert refused(body).reason == reason


def test_a_log_in_page_is_called_one() -> None:
    assert refused((SAMPLES / "log_in.html").read_bytes()).reason == "this is a log-in page, not a feed"
    assert (
        refused(b"<html>Welcome", "https://x.example/login?next=%2Ffeed").reason == "this is a log-in page, not a feed"
    )


def test_the_first_characters_of_a_page_are_kept_cleaned() -> None:
    """CASES D6."""
    assert refused(b"<html>\n <p>a\0b\x1b[31m  c" + b"x" * 9_999).start.startswith("<html> <p>ab[31m cxxx")
    assert len(refused(b"<html>" + b"x" * 9_999).start) == feeds.START


def test_six_megabytes_of_atom_are_read() -> None:
    """CASES G7."""
    entry = (
        "<entry><id>tag:%d</id><title>Leaf %d</title><link href='https://a.example/%d'/><content>"
        + "x" * 6_000
        + "</content></entry>"
    )
    body = "".join(entry % (n, n, n) for n in range(1_050))
    found = feeds.read(f"<feed xmlns='http://www.w3.org/2005/Atom'><title>Big</title>{body}</feed>".encode(), None, URL)
    assert isinstance(found, Document)
    assert (len(found.items), found.items[-1].title) == (1_050, "Leaf 1049")


@pytest.mark.parametrize("end", ["</channel></rss>", ""])
def test_no_more_than_2000_items_are_read(end: str) -> None:
    body = (
        "<rss version='2.0'><channel>"
        + "".join(f"<item><title>{n}</title></item>" for n in range(MAX_ITEMS + 50))
        + end
    )
    found = feeds.read(body.encode(), None, URL)
    assert isinstance(found, Document)
    assert [found.items[0].title, found.items[-1].title, len(found.items)] == ["0", str(MAX_ITEMS - 1), MAX_ITEMS]


@pytest.mark.parametrize(
    "link", ["ftp://x.example/1", "javascript:alert(1)", "http://", "mailto:a@x.example", "http://[x/", ""]
)
def test_a_link_that_is_no_web_address_is_none(link: str) -> None:
    assert rss(f"<item><title>A</title><link>{link}</link></item>").items[0].link is None


def test_junk_before_the_root_does_not_hide_the_feed() -> None:
    body = b"<br />\n<b>Warning</b>: oops in feed.php\n<?xml version='1.0'?>"
    body += b"<rss version='2.0'><channel><item><title>A</title></item></channel></rss>"
    found = feeds.read(body, None, URL)
    assert isinstance(found, Document)
    assert [item.title for item in found.items] == ["A"]
