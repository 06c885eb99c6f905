"""The Site comix (SITES 5)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lanes.core.chapters import Document, Lifecycle, NotRecognised
from lanes.core.outcome import Refused
from lanes.errors import BadUrl
from lanes.sites import comix
from tests.site_samples import AT, dates, document, identities, meaning, numbers, sample, unrecognised

SITE = comix.SITE
PAGE = "https://comix.to/title/t1nm"


@pytest.mark.parametrize(
    "pasted",
    [
        "https://comix.to/title/t1nm",
        "https://comix.to/title/t1nm-tin-moon?tab=x",
        "https://www.comix.to/title/t1nm-another-name/",
        "https://comix.ws/title/t1nm-tin-moon/6600304-chapter-41",
    ],
)
def test_every_address_of_a_title_is_one_series(pasted: str) -> None:
    assert SITE.recognise(pasted) == PAGE


def test_the_group_that_a_reader_names_stays_with_the_series() -> None:
    one = SITE.recognise("https://comix.to/title/t1nm-tin-moon?group_id=7&page=2")
    assert one == f"{PAGE}?group_id=7"
    assert SITE.recognise(one) == one


@pytest.mark.parametrize(
    ("pasted", "remedy"),
    [
        ("https://comix.to/", "paste an address that begins with"),
        ("https://comix.to/title/-tin-moon", "paste an address that begins with"),
        ("https://comix.to/groups/2", "paste an address that begins with"),
        ("https://comix.to/title/t1nm?group_id=all", "paste the address without it"),
    ],
)
def test_what_is_no_title_is_refused_with_its_remedy(pasted: str, remedy: str) -> None:
    with pytest.raises(BadUrl) as refused:
        SITE.recognise(pasted)
    assert remedy in str(refused.value)


def test_what_it_fetches_stands_in_one_place() -> None:
    there = comix.site("http://127.0.0.9:8080")
    assert there.recognise("https://comix.to/title/t1nm-x?group_id=7") == "http://127.0.0.9:8080/title/t1nm?group_id=7"


def test_each_row_is_a_chapter_by_the_id_in_its_link() -> None:
    found = document(SITE, "comix_title.html", PAGE)
    assert identities(found.items) == ["6600305", "6600304", "6600303", "6600001"]
    assert [number for _, number, _ in numbers(found.items)] == ["41.5", "41", "41", "0"]
    assert {label for _, _, label in numbers(found.items)} == {"chapter"}
    assert [item.title for item in found.items] == ["3 days in Tin", "", "Solder & Rain", "Pilot"]
    assert found.items[0].link == "https://comix.to/title/t1nm-tin-moon/6600305-chapter-41.5"
    assert SITE.named_numbers


def test_dates_count_back_from_the_answer_and_are_approximate() -> None:
    found = document(SITE, "comix_title.html", PAGE)
    assert dates(found.items)[:2] == ["~2026-05-01T09:00:00Z", "~2026-04-29T00:00:00Z"]
    later = SITE.read(sample("comix_title.html"), None, PAGE, AT + timedelta(hours=1))
    assert isinstance(later, Document)
    assert dates(later.items)[0] == "~2026-05-01T10:00:00Z"


def test_the_page_names_its_title_and_how_it_stands() -> None:
    found = document(SITE, "comix_title.html", PAGE)
    assert (found.title, found.home, found.lifecycle, found.latest) == ("Tin Moon", PAGE, Lifecycle.HIATUS, None)


def test_a_page_without_rows_yields_its_newest_number_and_no_chapter() -> None:
    found = document(SITE, "comix_title_unrendered.html", PAGE)
    assert (found.items, found.latest, found.title) == ((), "41.5", "Tin Moon")


def test_where_one_group_is_followed_the_newest_number_of_all_groups_stands_for_no_list() -> None:
    """Once another group is ahead, it would say at each Poll that something is new."""
    found = unrecognised(SITE, "comix_title_unrendered.html", f"{PAGE}?group_id=7")
    assert (found.kind, found.reason) == (
        "list missing",
        "its list of Chapters was not there this time, and number 41.5 may be another group's",
    )
    assert document(SITE, "comix_title_empty.html", f"{PAGE}?group_id=7").items == ()
    assert document(SITE, "comix_title.html", f"{PAGE}?group_id=7").items != ()


def test_a_title_that_has_no_chapters_says_so() -> None:
    found = document(SITE, "comix_title_empty.html", PAGE)
    assert (found.items, found.latest) == ((), None)


def test_a_page_without_rows_and_without_a_number_is_not_recognised() -> None:
    """Else its first sight would be that of an empty title, and all its Chapters news afterwards."""
    body = sample("comix_title_unrendered.html").replace(b'"latestChapter": 41.5', b'"latestChapter": null')
    assert isinstance(SITE.read(body, None, PAGE, AT), NotRecognised)


def test_its_own_check_is_a_refusal() -> None:
    there = "https://comix.to/@waf/challenge?return=%2Ftitle%2Ft1nm"
    unrecognised(SITE, "comix_held.html", there)
    assert isinstance(meaning(SITE, sample("comix_held.html"), PAGE, there), Refused)
    assert isinstance(meaning(SITE, sample("cloudflare.html"), PAGE), Refused)


@pytest.mark.parametrize("name", ["maintenance.html", "royalroad_fiction.html", "kagane_series_in_browser.html"])
def test_no_other_page_is_taken_for_its_own(name: str) -> None:
    unrecognised(SITE, name, PAGE)
