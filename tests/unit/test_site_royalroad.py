"""The Site royalroad (SITES 2)."""

from __future__ import annotations

import re

import pytest

from lanes.core.chapters import Document, Item, Lifecycle, NotRecognised
from lanes.core.outcome import Failed, Refused
from lanes.errors import BadUrl
from lanes.sites import royalroad
from tests.site_samples import AT, dates, document, identities, meaning, numbers, sample, unrecognised

SITE = royalroad.SITE
FEED = "https://www.royalroad.com/fiction/syndication/71005"
PAGE = "https://www.royalroad.com/fiction/71005/orchard-of-bells"


@pytest.mark.parametrize(
    "pasted",
    [
        "https://www.royalroad.com/fiction/71005",
        PAGE,
        f"{PAGE}/chapter/480207/2-frost",
        "https://royalroad.com/fiction/0071005?utm=x",
        "http://www.royalroadl.com/fiction/71005/",
        "https://royalroadl.com/fiction/71005/orchard-of-bells",
        FEED,
    ],
)
def test_every_address_of_a_fiction_leads_to_its_feed(pasted: str) -> None:
    assert SITE.recognise(pasted) == FEED


@pytest.mark.parametrize(
    ("pasted", "remedy"),
    [
        ("https://www.royalroad.com/fiction/chapter/480207", "paste the fiction's address"),
        ("https://www.royalroad.com/fiction/syndication/71005,71006", "paste an address such as"),
        ("https://www.royalroad.com/fictions/best-rated", "paste an address such as"),
        ("https://www.royalroad.com/profile/5", "paste an address such as"),
        ("https://www.royalroad.com/fiction/0", "paste an address such as"),
    ],
)
def test_what_is_no_fiction_is_refused_with_its_remedy(pasted: str, remedy: str) -> None:
    with pytest.raises(BadUrl) as refused:
        SITE.recognise(pasted)
    assert remedy in str(refused.value)


def test_what_it_fetches_stands_in_one_place() -> None:
    there = royalroad.site("http://127.0.0.9:8080")
    assert there.hosts == ("127.0.0.9",)
    assert there.recognise(PAGE) == "http://127.0.0.9:8080/fiction/syndication/71005"
    assert there.recognise("http://127.0.0.9:8080/fiction/71005/x") == there.recognise(PAGE)


def test_the_feed_is_read_behind_its_byte_order_mark_and_without_the_fictions_title() -> None:
    assert sample("royalroad_feed.xml").startswith(b"\xef\xbb\xbf")
    found = document(SITE, "royalroad_feed.xml", FEED)
    assert (found.title, found.home) == ("Orchard of Bells", "https://www.royalroad.com/fiction/71005")
    assert [item.title for item in found.items] == ['3. Rope; [and] "Wax"', "2. Frost", "Prologue"]
    assert numbers(found.items) == [(None, "3", "chapter"), (None, "2", "chapter"), (None, None, "prologue")]


def test_feed_and_page_give_a_chapter_one_identity_title_number_and_date() -> None:
    feed = document(SITE, "royalroad_feed.xml", FEED)
    page = document(SITE, "royalroad_fiction.html", PAGE)

    def said(items: tuple[Item, ...]) -> list[object]:
        return [(item.guid, item.title, item.number, item.label, item.published_at) for item in items]

    assert said(feed.items) == said(page.items[2::-1])
    assert identities(feed.items) == ["480310", "480207", "480101"]


def test_a_chapter_in_early_access_is_locked() -> None:
    found = document(SITE, "royalroad_fiction.html", PAGE)
    assert [(item.guid, item.locked) for item in found.items[2:]] == [("480310", False), ("480444", True)]


def test_the_page_says_where_it_is_and_how_the_fiction_stands() -> None:
    found = document(SITE, "royalroad_fiction.html", PAGE)
    assert (found.title, found.home, found.lifecycle) == (
        "Orchard of Bells",
        "https://www.royalroad.com/fiction/71005",
        Lifecycle.HIATUS,
    )
    assert found.items[0].link == "https://www.royalroad.com/fiction/71005/orchard-of-bells/chapter/480101/s"


def test_without_its_script_the_page_is_read_from_its_table_with_dates_of_three_kinds() -> None:
    found = document(SITE, "royalroad_fiction_table.html", PAGE)
    assert identities(found.items) == ["480101", "480207", "480310"]
    assert [item.title for item in found.items] == ["Prologue", "2. Frost", '3. Rope; [and] "Wax"']
    assert dates(found.items) == ["2026-04-15T18:00:00Z", "2026-04-22T18:00:00Z", "~2026-04-30T18:00:00Z"]
    assert found.lifecycle is Lifecycle.FINISHED


def test_a_stub_goes_on_and_may_have_no_chapter_at_all() -> None:
    found = document(SITE, "royalroad_fiction_stub.html", PAGE)
    assert (found.items, found.lifecycle) == ((), Lifecycle.ONGOING)


def test_a_fiction_that_is_gone_is_a_404_whatever_its_status_says() -> None:
    assert unrecognised(SITE, "royalroad_missing.html", PAGE).kind == "404"
    failed = meaning(SITE, sample("royalroad_missing.html"), PAGE)
    assert isinstance(failed, Failed)
    assert failed.kind == "404"


def test_a_log_in_page_a_challenge_and_maintenance_are_each_what_they_are() -> None:
    log_in = meaning(SITE, sample("log_in.html"), FEED, "https://www.royalroad.com/account/login?ReturnUrl=x")
    assert isinstance(log_in, Failed)
    assert log_in.kind == "log-in"
    assert isinstance(meaning(SITE, sample("cloudflare.html"), FEED), Refused)
    assert isinstance(meaning(SITE, sample("maintenance.html"), FEED), Failed)


@pytest.mark.parametrize("name", ["maintenance.html", "comix_title.html", "ao3_navigate.html", "kagane_series.json"])
def test_no_other_page_is_taken_for_its_own(name: str) -> None:
    unrecognised(SITE, name, PAGE)


def test_a_row_of_the_script_that_names_no_chapter_is_none() -> None:
    """Its id may stand in its address alone."""
    rows = '[{"title": "A"}, {"title": "B", "url": "/fiction/71005/x"}, {"title": "C", "url": "/fiction/71005/x/chapter/7/c"}]'
    body = f"<div class='fic-header'><h1>T</h1></div><script>window.chapters = {rows};</script>".encode()
    found = SITE.read(body, "text/html", PAGE, AT)
    assert isinstance(found, Document)
    assert [(item.guid, item.title) for item in found.items] == [("7", "C")]


def test_a_feed_whose_items_name_no_chapter_is_not_recognised() -> None:
    body = re.sub(rb"<guid.*?</guid>|/chapter/[0-9]+", b"", sample("royalroad_feed.xml"))
    found = SITE.read(body, None, FEED, AT)
    assert isinstance(found, NotRecognised)
    assert found.reason == "none of its Chapters has an id"
