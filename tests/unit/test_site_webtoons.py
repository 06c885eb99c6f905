"""The Site webtoons (SITES 3)."""

from __future__ import annotations

import re

import pytest

from lanes.core.chapters import Document
from lanes.core.outcome import Failed
from lanes.errors import BadUrl
from lanes.sites import webtoons
from tests.site_samples import AT, dates, document, identities, meaning, numbers, sample, unrecognised

SITE = webtoons.SITE
FEED = "https://www.webtoons.com/en/drama/tin-moon/rss?title_no=8801"


@pytest.mark.parametrize(
    "pasted",
    [
        "https://www.webtoons.com/en/drama/tin-moon/list?title_no=8801",
        "https://www.webtoons.com/en/drama/tin-moon/list?title_no=8801&page=3",
        "https://www.webtoons.com/en/drama/tin-moon/s2-episode-4/viewer?title_no=8801&episode_no=34",
        "https://m.webtoons.com/EN/drama/tin-moon/list?title_no=08801",
        "http://webtoons.com/en/drama/tin-moon/list?titleNo=8801",
        "https://www.webtoons.com/en/DRAMA/Tin-Moon/List?title_no=8801",
        FEED,
    ],
)
def test_every_address_of_a_webcomic_leads_to_its_feed(pasted: str) -> None:
    assert SITE.recognise(pasted) == FEED


def test_a_webcomic_is_its_kind_its_language_and_its_number() -> None:
    def identity(path: str) -> str:
        return webtoons.identity(SITE.recognise(f"https://www.webtoons.com/{path}") or "")

    one = identity("en/drama/tin-moon/list?title_no=8801")
    assert one == identity("en/action/tm/list?title_no=08801")
    assert len({one, *map(identity, ("fr/drama/tin-moon/list?title_no=8801", "en/drama/tin-moon/list?title_no=880",
                                     "en/canvas/tin-moon/list?title_no=8801"))}) == 4  # fmt: skip
    assert identity("en/canvas/x/list?title_no=7") == identity("en/challenge/y/list?title_no=7")


@pytest.mark.parametrize("genre", ["canvas", "CHALLENGE"])
def test_a_feed_of_canvas_has_the_older_word_in_its_path(genre: str) -> None:
    feed = "https://www.webtoons.com/zh-hant/challenge/tin-moon/rss?title_no=7"
    assert SITE.recognise(f"https://www.webtoons.com/zh-hant/{genre}/tin-moon/list?title_no=7") == feed


@pytest.mark.parametrize(
    ("pasted", "remedy"),
    [
        ("https://www.webtoons.com/episodeList?titleNo=8801", "open it once in your browser"),
        ("https://www.webtoons.com/challenge/episodeList?titleNo=8801", "open it once in your browser"),
        ("https://www.webtoons.com/en/drama/tin-moon/list", "paste the address of its list"),
        ("https://www.webtoons.com/en/drama", "paste the address of its list"),
        ("https://www.webtoons.com/xx/drama/tin-moon/list?title_no=8801", "paste the address of its list"),
        ("https://www.webtoons.com/en/../tin-moon/list?title_no=8801", "paste the address of its list"),
    ],
)
def test_what_is_no_webcomic_is_refused_with_its_remedy(pasted: str, remedy: str) -> None:
    with pytest.raises(BadUrl) as refused:
        SITE.recognise(pasted)
    assert remedy in str(refused.value)


def test_what_it_fetches_stands_in_one_place() -> None:
    there = webtoons.site("http://127.0.0.9:8080")
    assert there.recognise(FEED) == FEED.replace("https://www.webtoons.com", "http://127.0.0.9:8080")


def test_an_episode_is_known_by_the_number_in_its_link() -> None:
    found = document(SITE, "webtoons_feed.xml", FEED)
    assert identities(found.items) == ["34", "33", "32", "30"]
    assert numbers(found.items) == [
        ("2", "4", "episode"),
        (None, None, ""),
        ("2", "3", "episode"),
        (None, "28", "episode"),
    ]
    assert dates(found.items)[0] == "2026-04-30T17:00:03Z"
    assert (found.title, found.home) == (
        "Tin Moon & Co",
        "https://www.webtoons.com/en/drama/tin-moon/list?title_no=8801",
    )


def test_dates_are_read_in_the_sites_other_languages_or_are_none() -> None:
    french = document(SITE, "webtoons_feed_fr.xml", FEED.replace("/en/", "/fr/"))
    assert dates(french.items) == ["2026-04-30T17:00:03Z", "2026-04-23T17:00:03Z", "-"]
    chinese = document(SITE, "webtoons_feed_zh.xml", FEED.replace("/en/", "/zh-hant/"))
    assert dates(chinese.items) == ["2026-04-30T17:00:03Z", "2026-04-23T17:00:03Z"]
    assert numbers(chinese.items) == [(None, "6", "episode"), (None, None, "side")]


def test_a_reader_opens_the_list_where_the_feed_names_none() -> None:
    body = re.sub(b"</title><link>.*?</link>", b"</title>", sample("webtoons_feed.xml"), count=1)
    found = SITE.read(body, None, "https://www.webtoons.com/en/challenge/tin-moon/rss?title_no=8801", AT)
    assert isinstance(found, Document)
    assert found.home == "https://www.webtoons.com/en/canvas/tin-moon/list?title_no=8801"


def test_an_age_gate_is_a_log_in_page() -> None:
    gate = "https://www.webtoons.com/en/ageGate?returnUrl=x"
    assert unrecognised(SITE, "webtoons_age_gate.html", gate).kind == "log-in"
    failed = meaning(SITE, sample("webtoons_age_gate.html"), FEED, gate)
    assert isinstance(failed, Failed)
    assert failed.kind == "log-in"


@pytest.mark.parametrize("name", ["maintenance.html", "webtoons_age_gate.html", "kagane_series.json"])
def test_a_page_is_no_feed(name: str) -> None:
    assert unrecognised(SITE, name, FEED).kind == "not recognised"


def test_an_item_that_names_no_episode_is_none() -> None:
    body = sample("webtoons_feed.xml").replace(b"episode_no=33", b"x=33")
    found = SITE.read(body, None, FEED, AT)
    assert isinstance(found, Document)
    assert identities(found.items) == ["34", "32", "30"]
