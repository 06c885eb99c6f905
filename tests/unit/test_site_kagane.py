"""The Site kagane (SITES 4)."""

from __future__ import annotations

import json

import pytest

from lanes.core.chapters import MAX_ITEMS, Document, Lifecycle
from lanes.core.outcome import Refused
from lanes.errors import BadUrl
from lanes.sites import kagane
from tests.site_samples import AT, dates, document, identities, meaning, numbers, sample, unrecognised

SITE = kagane.SITE
SERIES = "01a1ffff-1111-7222-8333-444455556666"
API = f"https://kagane.to/api/v2/series/{SERIES}"


def book(number: int) -> str:
    return f"01a10000-0000-7000-8000-{number:012}"


@pytest.mark.parametrize(
    "pasted",
    [
        f"https://kagane.to/series/{SERIES}",
        f"https://www.kagane.org/series/{SERIES.upper()}?page=2",
        f"https://kagane.org/series/{SERIES}/reader/{book(1)}",
        API,
    ],
)
def test_every_address_of_a_series_leads_to_its_api(pasted: str) -> None:
    assert SITE.recognise(pasted) == API


@pytest.mark.parametrize("pasted", ["https://kagane.to/", "https://kagane.to/series/", "https://kagane.org/search?q=x"])
def test_what_is_no_series_is_refused_with_its_remedy(pasted: str) -> None:
    with pytest.raises(BadUrl, match="paste an address that begins with"):
        SITE.recognise(pasted)


def test_a_short_id_is_refused_with_the_form_of_the_long_one() -> None:
    with pytest.raises(BadUrl, match="its id must be the long one: 8-4-4-4-12 hexadecimal digits"):
        SITE.recognise("https://kagane.org/series/01A1B2C3D4")


def test_what_it_fetches_stands_in_one_place() -> None:
    there = kagane.site("http://127.0.0.9:8080")
    assert there.recognise(API) == API.replace("https://kagane.to", "http://127.0.0.9:8080")


def test_it_is_opened_in_the_browser_and_may_break_any_day() -> None:
    assert SITE.rendering is not None
    assert (SITE.rendering.landmark, SITE.experimental) == ("pre", True)


def test_a_browser_shows_the_same_as_the_api_says() -> None:
    bare = document(SITE, "kagane_series.json", API)
    assert bare == document(SITE, "kagane_series_in_browser.html", API)
    assert identities(bare.items) == [book(n) for n in (1, 2, 3, 4)]
    assert numbers(bare.items) == [
        ("1", "1", "chapter"),
        (None, "1.5", "chapter"),
        ("2", None, "volume"),
        ("2", "3", "chapter"),
    ]
    assert dates(bare.items) == ["2026-03-01T08:00:00Z", "2026-03-08T08:00:00Z", "-", "2026-04-30T21:00:00Z"]
    assert bare.items[3].title == "Chapter 3 <& more> (Quiet Oars)"


def test_a_reader_opens_the_pages_of_the_site() -> None:
    found = document(SITE, "kagane_series.json", API)
    assert (found.title, found.home) == ("Tin Orchard", f"https://kagane.to/series/{SERIES}")
    assert found.items[0].link == f"https://kagane.to/series/{SERIES}/reader/{book(1)}"


def test_how_it_stands_is_read_whatever_its_letters() -> None:
    assert document(SITE, "kagane_series.json", API).lifecycle is Lifecycle.HIATUS
    gone = document(SITE, "kagane_empty.json", API)
    assert (gone.items, gone.lifecycle) == ((), Lifecycle.FINISHED)


def test_of_too_many_books_the_newest_are_read() -> None:
    whole = json.loads(sample("kagane_series.json"))
    whole["series_books"] = [{"book_id": str(n), "title": "", "chapter_no": str(n)} for n in range(MAX_ITEMS + 5)]
    found = kagane.read(json.dumps(whole).encode(), None, API, AT)
    assert isinstance(found, Document)
    assert (found.items[0].guid, found.items[-1].guid) == ("5", str(MAX_ITEMS + 4))


@pytest.mark.parametrize("name", ["kagane_error.html", "maintenance.html", "mangadex_feed.json", "comix_title.html"])
def test_no_other_answer_is_taken_for_a_series(name: str) -> None:
    unrecognised(SITE, name, API)


@pytest.mark.parametrize("beside", [b"<p>And more.</p>", b"<pre>{}</pre>"])
def test_a_page_that_shows_more_than_the_answer_is_none(beside: bytes) -> None:
    body = sample("kagane_series_in_browser.html").replace(b"</pre>", b"</pre>" + beside)
    assert not isinstance(kagane.read(body, None, API, AT), Document)


def test_a_challenge_is_a_refusal() -> None:
    assert isinstance(meaning(SITE, sample("cloudflare.html"), API), Refused)


@pytest.mark.parametrize("identity", [None, "", {}, False])
def test_a_book_without_an_id_is_none(identity: object) -> None:
    whole = json.loads(sample("kagane_series.json"))
    whole["series_books"][1]["book_id"] = whole["series_books"][2]["book_id"] = identity
    found = kagane.read(json.dumps(whole).encode(), None, API, AT)
    assert isinstance(found, Document)
    assert identities(found.items) == [book(1), book(4)]
