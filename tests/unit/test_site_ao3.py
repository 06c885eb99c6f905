"""The Site ao3 (SITES 6)."""

from __future__ import annotations

import pytest

from lanes.core.chapters import Lifecycle
from lanes.core.outcome import Failed, Refused
from lanes.errors import BadUrl
from lanes.sites import ao3
from tests.site_samples import dates, document, identities, meaning, numbers, sample, unrecognised

SITE = ao3.SITE
INDEX = "https://archiveofourown.org/works/88000123/navigate"


@pytest.mark.parametrize(
    "pasted",
    [
        "https://archiveofourown.org/works/88000123",
        "https://www.archiveofourown.org/works/0088000123?view_adult=true",
        "https://archiveofourown.org/works/88000123/chapters/770900",
        "https://ao3.org/collections/tides2026/works/88000123/chapters/770001",
        "http://archiveofourown.gay/works/88000123",
        "https://archive.transformativeworks.org/works/88000123",
        "https://download.archiveofourown.org/downloads/88000123/Low_Water.epub",
        INDEX,
    ],
)
def test_every_address_of_a_work_is_one_series(pasted: str) -> None:
    assert SITE.recognise(pasted) == INDEX


@pytest.mark.parametrize(
    ("pasted", "remedy"),
    [
        ("https://archiveofourown.org/chapters/770900", "paste the address behind Entire Work"),
        ("https://archiveofourown.org/tags/Tides/works", "RSS Feed button"),
        ("https://archiveofourown.org/series/5", "paste the address of each work"),
        ("https://archiveofourown.org/users/nobody/pseuds/nobody", "paste the address of each work"),
        ("https://archiveofourown.org/works/search?q=x", "paste an address such as"),
        ("https://archiveofourown.org/collections/tides2026", "paste an address such as"),
    ],
)
def test_what_is_no_work_is_refused_with_its_remedy(pasted: str, remedy: str) -> None:
    with pytest.raises(BadUrl) as refused:
        SITE.recognise(pasted)
    assert remedy in str(refused.value)


def test_what_it_fetches_stands_in_one_place_and_its_lane_is_not_started_by_itself() -> None:
    there = ao3.site("http://127.0.0.9:8080")
    assert there.recognise(INDEX) == "http://127.0.0.9:8080/works/88000123/navigate"
    assert not SITE.starts


def test_a_chapter_is_known_by_its_number_and_its_position_is_for_showing() -> None:
    found = document(SITE, "ao3_navigate.html", INDEX)
    assert identities(found.items) == ["770001", "770900", "770002", "770003"]
    assert numbers(found.items) == [(None, str(n), "chapter") for n in (1, 2, 3, 4)]
    assert [item.title for item in found.items] == ["Ebb", "Slack & Still", "4. Not a Number", "Chapter 4"]
    assert dates(found.items)[1] == "~2026-04-28T00:00:00Z"
    assert (found.title, found.home) == ("Low Water", "https://archiveofourown.org/works/88000123")
    assert found.items[1].link == "https://archiveofourown.org/works/88000123/chapters/770900"


def test_a_work_of_one_chapter_lists_one() -> None:
    assert identities(document(SITE, "ao3_navigate_single.html", INDEX).items) == ["770001"]


@pytest.mark.parametrize(
    ("name", "lifecycle"), [("ao3_work.html", Lifecycle.ONGOING), ("ao3_work_finished.html", Lifecycle.FINISHED)]
)
def test_the_page_of_a_work_says_whether_it_is_finished(name: str, lifecycle: Lifecycle) -> None:
    found = document(SITE, name, "https://archiveofourown.org/works/88000123")
    assert (found.items, found.title, found.lifecycle) == ((), "Low Water", lifecycle)


def test_a_work_that_is_not_revealed_yet_is_recognised_without_chapters() -> None:
    assert document(SITE, "ao3_unrevealed.html", INDEX).items == ()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ao3_adult_gate.html", "age"),
        ("ao3_maintenance.html", "5xx"),
        ("ao3_deleted.html", "404"),
        ("ao3_members.html", "log-in"),
        ("maintenance.html", "not recognised"),
        ("comix_title.html", "not recognised"),
    ],
)
def test_every_other_page_is_a_failure_of_its_own_kind(name: str, kind: str) -> None:
    assert unrecognised(SITE, name, INDEX).kind == kind
    failed = meaning(SITE, sample(name), INDEX)
    assert isinstance(failed, Failed)
    assert failed.kind == kind


def test_a_shield_is_a_refusal() -> None:
    assert isinstance(meaning(SITE, sample("cloudflare.html"), INDEX), Refused)


def test_the_words_of_a_refusal_in_a_story_prove_nothing() -> None:
    body = sample("ao3_navigate.html").replace(b"1. Ebb", b"1. This work is only available to registered users")
    assert not isinstance(meaning(SITE, body, INDEX), Failed)


def test_the_feed_of_a_tag_is_followed_here_and_dated_by_its_updates() -> None:
    """DESIGN 4.3: a host belongs to one Site, so no other Lane may ask for it."""
    url = SITE.recognise("https://archiveofourown.org/tags/0005501/feed.atom")
    assert url == "https://archiveofourown.org/tags/5501/feed.atom"
    found = document(SITE, "ao3_tag_feed.xml", url)
    assert identities(found.items) == [f"tag:archiveofourown.org,2005:Work/{n}" for n in (88000123, 88000044)]
    assert dates(found.items) == ["2026-04-30T04:00:00Z", "2026-04-29T04:00:00Z"]
