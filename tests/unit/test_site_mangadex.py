"""The Site mangadex (SITES 1)."""

from __future__ import annotations

import json

import pytest

from lanes.core.chapters import Document, Lifecycle, NotRecognised
from lanes.errors import BadUrl
from lanes.sites import mangadex
from tests.site_samples import AT, dates, document, identities, numbers, sample, unrecognised

SITE = mangadex.SITE
TITLE = "6c2e7d10-54b8-4a7f-9f21-0b6d3a18c701"
FEED = SITE.recognise(f"https://mangadex.org/title/{TITLE}") or ""


def chapter(name: int) -> str:
    return f"2f9b6c30-1d4e-4a58-8c77-{name:012}"


def with_manga(**facts: object) -> Document:
    """The sample, with other words about its title."""
    whole = json.loads(sample("mangadex_feed.json"))
    for raw in whole["data"]:
        for each in raw["relationships"]:
            if each["type"] == "manga":
                each["attributes"] |= facts
    found = mangadex.read(json.dumps(whole).encode(), None, FEED, AT)
    assert isinstance(found, Document)
    return found


@pytest.mark.parametrize(
    "pasted",
    [
        f"https://mangadex.org/title/{TITLE}",
        f"https://mangadex.org/title/{TITLE.upper()}/the-glass-ferry?tab=art",
        f"https://www.mangadex.org/manga/{TITLE}",
        f"http://mangadex.cc/title/{TITLE}/",
        f"https://api.mangadex.org/manga/{TITLE}",
        f"https://mangadex.org/title/{TITLE}?lang=",
    ],
)
def test_every_address_of_a_title_is_one_series(pasted: str) -> None:
    assert SITE.recognise(pasted) == FEED


def test_the_newest_page_is_asked_for_with_every_content_rating_and_no_filter() -> None:
    assert FEED.startswith(
        f"https://api.mangadex.org/manga/{TITLE}/feed?translatedLanguage[]=en&order[readableAt]=desc&"
    )
    assert FEED.count("contentRating[]=") == 4
    assert "limit=32" in FEED
    assert not any(word in FEED for word in ("includeFuture", "includeEmpty", "includeExternal", "includeUnavailable"))


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("lang=fr", ["fr"]),
        ("lang=fr,en", ["en", "fr"]),
        ("lang=PT-BR,%20es-la", ["es-la", "pt-br"]),
        ("translatedLanguage[]=fr&translatedLanguage[]=en", ["en", "fr"]),
        ("translatedLanguage%5B%5D=de", ["de"]),
    ],
)
def test_the_languages_that_a_reader_names_stay_with_the_series(query: str, asked: list[str]) -> None:
    url = SITE.recognise(f"https://mangadex.org/title/{TITLE}?{query}") or ""
    assert url.split("?")[1].split("&order")[0] == "&".join(f"translatedLanguage[]={code}" for code in asked)
    assert SITE.recognise(url) == url


@pytest.mark.parametrize(
    ("pasted", "remedy"),
    [
        ("https://mangadex.org/title/12345/some-slug", "open it once in your browser and paste the new one"),
        (f"https://mangadex.org/chapter/{TITLE}", "paste the address of its title"),
        (f"https://mangadex.org/list/{TITLE}", "paste an address that begins with"),
        (f"https://mangadex.org/group/{TITLE}/x", "paste an address that begins with"),
        ("https://mangadex.org/titles/follows", "paste an address that begins with"),
        ("https://mangadex.org/title/follows", "paste an address that begins with"),
        (f"https://mangadex.org/title/{TITLE}?lang=english!", "write e.g. ?lang=en"),
    ],
)
def test_what_is_no_title_is_refused_with_its_remedy(pasted: str, remedy: str) -> None:
    with pytest.raises(BadUrl) as refused:
        SITE.recognise(pasted)
    assert remedy in str(refused.value)


def test_another_site_is_none_of_its() -> None:
    assert SITE.recognise(f"https://example.org/title/{TITLE}") is None


def test_what_it_fetches_stands_in_one_place() -> None:
    there = mangadex.site("http://127.0.0.9:8080")
    assert there.hosts == ("127.0.0.9",)
    url = there.recognise(f"https://mangadex.org/title/{TITLE}") or ""
    assert url == FEED.replace("https://api.mangadex.org", "http://127.0.0.9:8080")
    assert there.recognise(url) == url


def test_each_groups_chapter_is_one_by_its_own_id() -> None:
    found = document(SITE, "mangadex_feed.json", FEED)
    assert identities(found.items) == [chapter(n) for n in (12, 13, 11, 10, 9, 1)]
    assert numbers(found.items) == [
        (None, "12", "chapter"),
        (None, "12", "chapter"),
        ("3", "11.5", "chapter"),
        ("3", "11", "chapter"),
        ("2", None, "volume"),
        (None, None, "oneshot"),
    ]
    assert SITE.named_numbers


def test_a_chapter_is_dated_by_when_it_could_be_read() -> None:
    found = document(SITE, "mangadex_feed.json", FEED)
    assert dates(found.items)[:3] == ["2026-04-30T10:00:00Z", "2026-04-30T16:30:00Z", "2026-04-23T15:00:00Z"]


def test_a_chapter_that_only_its_publisher_shows_is_linked_there() -> None:
    found = document(SITE, "mangadex_feed.json", FEED)
    assert [item.link for item in found.items[1:4]] == [
        f"https://mangadex.org/chapter/{chapter(13)}",
        "https://publisher.example/read/115?a=1&b=2",
        f"https://mangadex.org/chapter/{chapter(10)}",
    ]


def test_titles_lose_their_entities_and_may_be_missing() -> None:
    found = document(SITE, "mangadex_feed.json", FEED)
    assert [item.title for item in found.items] == ["Salt & Tar", "Salt and Tar", "", "", "Harbour Lights", "Oneshot"]


def test_a_series_is_named_in_a_language_that_its_reader_reads() -> None:
    found = document(SITE, "mangadex_feed.json", FEED)
    assert (found.title, found.home) == ("The Glass Ferry & Other Crossings", f"https://mangadex.org/title/{TITLE}")
    french = document(SITE, "mangadex_feed.json", FEED.replace("[]=en&", "[]=fr&", 1))
    assert french.title == "Le Bac de verre"
    german = document(SITE, "mangadex_feed.json", FEED.replace("[]=en&", "[]=de&", 1))
    assert german.title == "Garasu no Watashibune"


@pytest.mark.parametrize(
    ("facts", "lifecycle"),
    [
        ({"status": "ongoing"}, Lifecycle.ONGOING),
        ({"status": "hiatus"}, Lifecycle.HIATUS),
        ({"status": "completed", "lastChapter": "12"}, Lifecycle.FINISHED),
        ({"status": "cancelled", "lastChapter": "12"}, Lifecycle.FINISHED),
        ({"status": "completed", "lastChapter": "90"}, Lifecycle.ONGOING),
        ({"status": "completed", "lastChapter": ""}, Lifecycle.ONGOING),
        ({"status": "resting"}, None),
        ({"status": None}, None),
    ],
)
def test_a_series_has_ended_when_its_last_chapter_is_there(
    facts: dict[str, object], lifecycle: Lifecycle | None
) -> None:
    assert with_manga(**facts).lifecycle is lifecycle


def test_a_title_without_chapters_is_recognised() -> None:
    assert document(SITE, "mangadex_empty.json", FEED).items == ()


def test_an_error_is_told_by_its_name() -> None:
    found = unrecognised(SITE, "mangadex_error.json", FEED)
    assert "not_found_http_exception" in found.reason


@pytest.mark.parametrize("name", ["maintenance.html", "cloudflare.html", "kagane_series.json", "royalroad_feed.xml"])
def test_no_other_document_is_taken_for_its_own(name: str) -> None:
    assert unrecognised(SITE, name, FEED).kind == "not recognised"


def test_one_title_alone_is_no_list_of_chapters() -> None:
    body = b'{"result": "ok", "response": "entity", "data": {"id": "x", "type": "manga"}}'
    assert isinstance(mangadex.read(body, None, FEED, AT), NotRecognised)


@pytest.mark.parametrize("identity", [None, "", " ", {}, [], True])
def test_a_chapter_without_an_id_is_none(identity: object) -> None:
    whole = json.loads(sample("mangadex_feed.json"))
    whole["data"][0]["id"] = whole["data"][1]["id"] = identity
    found = mangadex.read(json.dumps(whole).encode(), None, FEED, AT)
    assert isinstance(found, Document)
    assert identities(found.items) == [chapter(n) for n in (11, 10, 9, 1)]


def test_a_page_of_chapters_without_any_id_is_not_recognised() -> None:
    whole = json.loads(sample("mangadex_feed.json"))
    for raw in whole["data"]:
        del raw["id"]
    found = mangadex.read(json.dumps(whole).encode(), None, FEED, AT)
    assert isinstance(found, NotRecognised)
    assert (found.reason, found.start[:9]) == ("none of its Chapters has an id", '{"result"')
