"""The documents beside the checkout that say what each Site's reader must yield (SITES 15), where they are there.

LANES_TEST_SITES names another place for them.  A clone without them skips these tests loudly, and fails them where CI is set.
"""

from __future__ import annotations

import csv
import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lanes.core.chapters import Document, Lifecycle
from lanes.core.outcome import Failed, Refused
from lanes.sites import by_name
from lanes.sites.numbers import Numbered, numbered
from tests.site_samples import dates, identities, meaning, numbers

PLACE = Path(os.environ.get("LANES_TEST_SITES", Path(__file__).parents[3] / "shared" / "sites"))
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _there() -> None:
    if not PLACE.is_dir():
        lack = f"the documents of SITES 15 are not at {PLACE}: set LANES_TEST_SITES"
        if os.environ.get("CI"):
            pytest.fail(lack, pytrace=False)
        pytest.skip(f"NOT TESTED: {lack}")


UUID = "019f0000-1111-7222-8333-444455556666"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: `newest` is the identity of the newest main Chapter."""

    file: str
    site: str
    url: str
    chapters: int
    newest: str | None
    locked: int = 0


TABLE = (
    Row("mangadex_feed.json", "mangadex", "https://api.mangadex.org/manga/x/feed", 5, "0f3c1a52-6b7e-4d19-9c40-5a8e2b7d1102"),
    Row("royalroad_feed.xml", "royalroad", "https://www.royalroad.com/fiction/syndication/900001", 3, "3100412"),
    Row("royalroad_fiction.html", "royalroad", "https://www.royalroad.com/fiction/900001", 4, "3100412", locked=1),
    Row("webtoons_feed.xml", "webtoons", "https://www.webtoons.com/en/x/y/rss?title_no=990001", 4, "57"),
    Row("webtoons_feed_zh_hant.xml", "webtoons", "https://www.webtoons.com/zh-hant/x/y/rss?title_no=1", 2, "13"),
    Row("kagane_series.json", "kagane", f"https://kagane.to/api/v2/series/{UUID}", 4, "019f0000-0000-7000-8000-000000000004"),
    Row("kagane_series_in_browser.html", "kagane", f"https://kagane.to/api/v2/series/{UUID}", 4, "019f0000-0000-7000-8000-000000000004"),
    Row("comix_title.html", "comix", "https://comix.to/title/q7x2", 5, "5500104"),
    Row("comix_title_unrendered.html", "comix", "https://comix.to/title/q7x2", 0, None),
    Row("ao3_navigate.html", "ao3", "https://archiveofourown.org/works/99000001/navigate", 4, "250000900"),
    Row("ao3_work.html", "ao3", "https://archiveofourown.org/works/99000001", 0, None),
    Row("ao3_tag_feed.xml", "ao3", "https://archiveofourown.org/tags/990001/feed.atom", 1, "tag:archiveofourown.org,2005:Work/99000001"),
    Row("youtube_feed.xml", "feeds", "https://www.youtube.com/feeds/videos.xml?channel_id=UC", 2, "yt:video:AAAAAAAAAA3"),
    Row("reddit.rss", "feeds", "https://www.reddit.com/r/ExampleSerials/new/.rss", 2, "t3_1zzz02"),
    Row("tapas_feed.xml", "feeds", "https://tapas.io/rss/series/990004", 2, "9900414"),
    Row("scribblehub_feed.xml", "feeds", "https://rssscribblehub.com/rssfeed.php?type=series&sid=990005", 2, "9900509"),
    Row("jsonfeed.json", "feeds", "https://notes.example/feed.json", 3, "https://notes.example/2026/ropes"),
    Row("atom.xml", "feeds", "https://serial.example/atom.xml", 2, "tag:serial.example,2026:ch-13"),
    Row("rdf.xml", "feeds", "https://rdf.example/index.rdf", 2, "https://rdf.example/12"),
    Row("podcast.xml", "feeds", "https://pod.example/feed.xml", 3, "pod-example-s2e10"),
)  # fmt: skip

NOT_RECOGNISED = (
    ("royalroad_missing_200.html", "royalroad", "404"),
    ("mangadex_error_429.json", "mangadex", "api error"),
    ("mangadex_manga.json", "mangadex", "not recognised"),
    ("ao3_adult_gate.html", "ao3", "age"),
    ("ao3_maintenance_200.html", "ao3", "5xx"),
    ("maintenance.html", "royalroad", "not recognised"),
    ("maintenance.html", "ao3", "not recognised"),
    ("maintenance.html", "comix", "not recognised"),
    ("youtube_404.html", "feeds", "not recognised"),
    ("login_page.html", "royalroad", "log-in"),
    ("login_page.html", "ao3", "log-in"),
    ("not_a_challenge.html", "ao3", "not recognised"),
    ("not_a_challenge.html", "feeds", "not recognised"),
)

REFUSED = (
    "challenge_cloudflare.html",
    "challenge_ddosguard.html",
    "challenge_ddosguard_captcha.html",
    "block_cloudflare.html",
    "reddit_blocked.html",
    "comix_held.html",
)


def read(row: Row) -> Document:
    found = by_name(row.site).read((PLACE / row.file).read_bytes(), None, row.url, AT)
    assert isinstance(found, Document), found
    return found


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.file)
def test_each_document_yields_its_chapters(row: Row) -> None:
    found = read(row)
    there = [item for item in found.items if not item.locked]
    main = [item for item in there if item.published_at is not None]
    newest = max(main, key=lambda item: (item.published_at or AT, item.guid or ""), default=None)
    assert (len(there), len(found.items) - len(there)) == (row.chapters, row.locked)
    assert (newest.guid if newest else None) == row.newest
    assert all(item.link is None or item.link.startswith("https://") for item in found.items)


@pytest.mark.parametrize(("file", "site", "kind"), NOT_RECOGNISED)
def test_each_other_page_is_a_failure(file: str, site: str, kind: str) -> None:
    url = by_name(site).recognise(by_name(site).example) if by_name(site).example else "https://x.example/"
    failed = meaning(by_name(site), (PLACE / file).read_bytes(), url or "")
    assert isinstance(failed, Failed)
    assert failed.kind == kind


@pytest.mark.parametrize("file", REFUSED)
@pytest.mark.parametrize("site", ["royalroad", "comix", "ao3", "kagane", "mangadex", "feeds"])
def test_each_challenge_and_block_is_a_refusal_on_every_site(file: str, site: str) -> None:
    assert isinstance(meaning(by_name(site), (PLACE / file).read_bytes(), "https://x.example/"), Refused)


def test_an_item_without_title_guid_and_date_is_a_chapter_all_the_same() -> None:
    found = read(Row("rss2.xml", "feeds", "https://blog.example/feed/", 3, None))
    assert len(found.items) == 3
    assert str(found.items[0].guid).endswith("?p=714")


def test_the_notes_of_the_table_hold() -> None:
    by_file = {row.file: read(row) for row in TABLE}
    assert [number for _, number, _ in numbers(by_file["mangadex_feed.json"].items)][:2] == ["47", "47"]
    assert by_file["royalroad_feed.xml"].items[0].title == "Chapter 3.5 - Tide Table"
    assert identities(by_file["webtoons_feed.xml"].items) == ["57", "56", "55", "53"]
    assert numbers(by_file["webtoons_feed.xml"].items)[:2] == [("2", "3", "episode"), (None, None, "extra")]
    assert "-" not in dates(by_file["webtoons_feed_zh_hant.xml"].items)
    assert by_file["kagane_series.json"] == by_file["kagane_series_in_browser.html"]
    assert by_file["comix_title_unrendered.html"].latest == "88.5"
    assert [number for _, number, _ in numbers(by_file["comix_title.html"].items)].count("88") == 2
    assert [number for _, number, _ in numbers(by_file["ao3_navigate.html"].items)] == ["1", "2", "3", "4"]
    assert by_file["ao3_work.html"].lifecycle is Lifecycle.ONGOING
    assert [number for _, number, _ in numbers(by_file["reddit.rss"].items)] == ["41", "40"]
    assert by_file["jsonfeed.json"].items[1].guid == "41"


def test_what_is_said_of_a_title_is_read_where_its_feed_brings_it() -> None:
    whole = json.loads((PLACE / "mangadex_feed.json").read_bytes())
    whole["data"][0]["relationships"].append(json.loads((PLACE / "mangadex_manga.json").read_bytes())["data"])
    url = "https://api.mangadex.org/manga/x/feed?translatedLanguage[]=en"
    found = by_name("mangadex").read(json.dumps(whole).encode(), None, url, AT)
    assert isinstance(found, Document)
    assert (found.title, found.lifecycle) == ("Lights of the Far Harbour", Lifecycle.ONGOING)


def test_each_title_of_the_table_of_numbers_says_what_stands_beside_it() -> None:
    with (PLACE / "numbers.tsv").open(encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert len(rows) == 60
    said = {row["title"]: numbered(row["title"]) for row in rows}
    assert said == {
        row["title"]: Numbered(row["volume"] or None, row["number"] or None, row["label"] or "") for row in rows
    }


def test_no_document_is_left_unread() -> None:
    read_here = {row.file for row in TABLE} | {file for file, *_ in NOT_RECOGNISED} | set(REFUSED)
    assert {path.name for path in PLACE.iterdir()} - read_here == {"SITES.md", "numbers.tsv", "rss2.xml"}
