"""The publishers that feeds knows more of: tapas, scribblehub, youtube, reddit (SITES 7 to 10)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from lanes.cli.words import masked
from lanes.core.chapters import Item, NotRecognised
from lanes.core.keys import readable
from lanes.core.outcome import Refused
from lanes.core.pace import HOST_DEFAULT
from lanes.core.urls import shown
from lanes.errors import BadUrl
from lanes.sites import FEEDS, recognise
from lanes.sites.discover import FeedLink, discover
from lanes.sites.recognisers import RECOGNISERS, of
from lanes.sites.reddit import REDDIT
from lanes.sites.scribblehub import SCRIBBLEHUB
from lanes.sites.tapas import TAPAS
from lanes.sites.youtube import YOUTUBE
from tests.site_samples import AT, dates, document, identities, meaning, numbers, sample, unrecognised

CHANNEL = "UCtidaltidaltidaltidal_1"
VIDEOS = "https://www.youtube.com/feeds/videos.xml"
SCRIBBLES = "https://rssscribblehub.com/rssfeed.php"
PRIVATE = "https://www.reddit.com/r/tides/new/.rss?feed=0a1b2c3d&user=nobody"


@pytest.mark.parametrize(
    ("pasted", "asked"),
    [
        ("https://tapas.io/series/5102", "https://tapas.io/rss/series/5102"),
        ("https://www.tapas.io/series/5102/info", "https://tapas.io/rss/series/5102"),
        ("https://tapas.io/rss/series/05102", "https://tapas.io/rss/series/5102"),
        ("https://tapas.io/series/copper-heron", "https://tapas.io/series/copper-heron/info"),
        ("https://m.tapas.io/series/copper-heron/info", "https://tapas.io/series/copper-heron/info"),
        ("https://www.scribblehub.com/series/61007/lanterns/", f"{SCRIBBLES}?type=series&sid=61007"),
        ("https://www.scribblehub.com/read/61007-lanterns/chapter/550106/", f"{SCRIBBLES}?type=series&sid=61007"),
        ("https://www.scribblehub.com/rssfeed.php?type=series&sid=61007", f"{SCRIBBLES}?type=series&sid=61007"),
        ("https://www.rssscribblehub.com/rssfeed.php?type=author&uid=9", f"{SCRIBBLES}?type=author&uid=9"),
        (f"https://www.youtube.com/channel/{CHANNEL}/videos", f"{VIDEOS}?channel_id={CHANNEL}"),
        (f"http://m.youtube.com/channel/{CHANNEL}", f"{VIDEOS}?channel_id={CHANNEL}"),
        ("https://www.youtube.com/playlist?list=PLtides_1-2", f"{VIDEOS}?playlist_id=PLtides_1-2"),
        ("https://www.youtube.com/user/tidal", f"{VIDEOS}?user=tidal"),
        (f"{VIDEOS}?channel_id={CHANNEL}&x=1", f"{VIDEOS}?channel_id={CHANNEL}"),
        ("https://youtube.com/@the-tidal.workshop/videos", "https://www.youtube.com/@the-tidal.workshop"),
        ("https://www.youtube.com/c/Tidal", "https://www.youtube.com/c/Tidal"),
        ("https://www.reddit.com/r/tides", "https://www.reddit.com/r/tides/new/.rss"),
        ("https://www.reddit.com/r/TiDes", "https://www.reddit.com/r/tides/new/.rss"),
        ("https://www.reddit.com/r/Tides/Top/.rss?t=Week", "https://www.reddit.com/r/tides/Top/.rss?t=Week"),
        ("https://www.reddit.com/u/NoBody/", "https://www.reddit.com/user/nobody/.rss"),
        ("https://old.reddit.com/r/tides+lamps/top/?t=day", "https://www.reddit.com/r/tides+lamps/new/.rss"),
        ("https://np.reddit.com/u/nobody", "https://www.reddit.com/user/nobody/.rss"),
        ("https://new.reddit.com/user/nobody/submitted/", "https://www.reddit.com/user/nobody/.rss"),
        (
            "https://www.reddit.com/r/tides/search?q=low%20water&sort=top",
            "https://www.reddit.com/r/tides/search.rss?q=low+water&restrict_sr=on&sort=new",
        ),
        (
            "https://reddit.com/r/tides/top/.rss?t=week&limit=100",
            "https://www.reddit.com/r/tides/top/.rss?t=week&limit=100",
        ),
        (PRIVATE.replace("www", "old"), PRIVATE),
        ("https://www.reddit.com/r/tides/?user=nobody&feed=0a1b2c3d", PRIVATE),
        ("https://www.reddit.com/r/tides/?user=nobody", "https://www.reddit.com/r/tides/new/.rss"),
    ],
)
def test_the_addresses_of_a_publisher_lead_to_its_feeds(pasted: str, asked: str) -> None:
    assert recognise(pasted) == (FEEDS, asked)
    assert recognise(asked) == (FEEDS, asked)


@pytest.mark.parametrize(
    ("pasted", "remedy"),
    [
        ("https://tapas.io/episode/330109", "paste the address of its series"),
        ("https://tapas.io/comics", "paste an address that begins with"),
        ("https://www.scribblehub.com/series-ranking/", "paste an address that begins with"),
        ("https://www.scribblehub.com/rssfeed.php?type=series", "paste an address that begins with"),
        ("https://www.youtube.com/watch?v=TTTTTTTTTT2", "paste the address of its channel"),
        ("https://youtu.be/TTTTTTTTTT2", "paste the address of its channel"),
        ("https://www.youtube.com/shorts/TTTTTTTTTT1", "paste the address of its channel"),
        ("https://www.youtube.com/channel/UCshort", "paste an address such as"),
        ("https://www.youtube.com/", "paste an address such as"),
        ("https://www.reddit.com/r/tides/comments/1aaa02/low_water_9/", "paste an address such as"),
        ("https://redd.it/1aaa02", "paste an address such as"),
        ("https://www.reddit.com/r/tides/../.rss", "paste an address such as"),
    ],
)
def test_what_has_no_feed_of_its_own_is_refused_with_its_remedy(pasted: str, remedy: str) -> None:
    with pytest.raises(BadUrl) as refused:
        recognise(pasted)
    assert remedy in str(refused.value)


def test_any_other_host_is_no_publishers() -> None:
    assert of("https://tapas.io.example/series/5102") is None
    assert [each.recognise("https://example.org/r/tides") for each in RECOGNISERS] == [None] * 4


@pytest.mark.parametrize(
    ("name", "url", "known"),
    [
        ("tapas_feed.xml", "https://tapas.io/rss/series/5102", ["330109", "330108"]),
        ("scribblehub_feed.xml", f"{SCRIBBLES}?type=series&sid=61007", ["550106", "550105"]),
        ("youtube_feed.xml", f"{VIDEOS}?channel_id={CHANNEL}", ["yt:video:TTTTTTTTTT2", "yt:video:TTTTTTTTTT1"]),
        ("reddit_feed.xml", "https://www.reddit.com/r/tides/new/.rss", ["t3_1aaa02", "t3_1aaa01"]),
    ],
)
def test_an_item_is_known_by_its_publishers_own_number(name: str, url: str, known: list[str]) -> None:
    assert identities(document(FEEDS, name, url).items) == known


@pytest.mark.parametrize(
    ("publisher", "link", "known"),
    [
        (TAPAS, "https://tapas.io/episode/330109?x=1", "330109"),
        (SCRIBBLEHUB, "https://www.scribblehub.com/read/61007-lanterns/chapter/550106", "550106"),
        (YOUTUBE, "https://www.youtube.com/watch?v=TTTTTTTTTT2&t=3", "yt:video:TTTTTTTTTT2"),
        (YOUTUBE, "https://www.youtube.com/shorts/TTTTTTTTTT1", "yt:video:TTTTTTTTTT1"),
        (REDDIT, "https://www.reddit.com/r/tides/comments/1aaa02/low_water_9/", "t3_1aaa02"),
    ],
)
def test_an_item_without_a_guid_is_known_by_its_link(publisher: object, link: str, known: str) -> None:
    (found,) = (each for each in RECOGNISERS if each is publisher)
    item = Item(None, "A title", link)
    assert found.identify(item) == replace(item, guid=known)
    assert found.identify(replace(item, link=None)) == replace(item, link=None)


def test_a_feed_of_another_host_keeps_its_own_identities() -> None:
    found = document(FEEDS, "tapas_feed.xml", "https://mirror.example/rss")
    assert identities(found.items)[0] == "https://tapas.io/episode/330109"


def test_numbers_come_of_titles_and_a_renamed_video_keeps_its_date() -> None:
    found = document(FEEDS, "reddit_feed.xml", "https://www.reddit.com/r/tides/new/.rss")
    assert [number for _, number, _ in numbers(found.items)] == ["9", "8"]
    assert dates(document(FEEDS, "youtube_feed.xml", VIDEOS).items)[0] == "2026-04-29T15:00:00Z"


def test_a_page_of_tapas_names_its_feed_by_the_address_in_the_app() -> None:
    page = sample("tapas_series.html")
    assert isinstance(FEEDS.read(page, "text/html", "https://tapas.io/series/copper-heron/info", AT), NotRecognised)
    found = discover(page, "text/html", "https://tapas.io/series/copper-heron/info")
    assert found == (FeedLink("https://tapas.io/rss/series/5102", "", "rss"),)
    assert discover(page, "text/html", "https://elsewhere.example/") == ()


def test_a_page_of_youtube_names_its_feed_behind_half_a_megabyte_of_script() -> None:
    script = b"<script>var ytcfg = '" + b"x" * (600 << 10) + b"';</script>"
    link = (
        f'<link rel="alternate" type="application/rss+xml" title="RSS" href="{VIDEOS}?channel_id={CHANNEL}">'.encode()
    )
    page = b"<!DOCTYPE html><html><head>" + script + link + b"</head><body></body></html>"
    (found,) = discover(page, "text/html", "https://www.youtube.com/@the-tidal.workshop")
    assert recognise(found.url) == (FEEDS, f"{VIDEOS}?channel_id={CHANNEL}")


def test_a_missing_feed_and_a_block_are_what_they_are() -> None:
    unrecognised(FEEDS, "youtube_missing.html", VIDEOS)
    assert isinstance(meaning(FEEDS, sample("reddit_blocked.html"), "https://www.reddit.com/r/tides/new/.rss"), Refused)


def test_each_publisher_has_an_interval_of_its_own_that_only_slows() -> None:
    """SITES 8: one request a minute for an address."""
    floors = {each.name: set(each.host_floors.values()) for each in RECOGNISERS}
    assert floors == {
        "tapas": {timedelta(seconds=10)},
        "scribblehub": {timedelta(seconds=10)},
        "youtube": {timedelta(seconds=5)},
        "reddit": {timedelta(seconds=70)},
    }
    assert {host for each in RECOGNISERS for host in each.hosts} == set(FEEDS.host_floors)
    assert min(FEEDS.host_floors.values()) > HOST_DEFAULT


def test_a_private_feed_is_never_told_and_never_merged() -> None:
    """SITES 8: its parameters are a credential."""
    one, other = recognise(PRIVATE)[1], recognise(PRIVATE.replace("0a1b2c3d", "4e5f6071"))[1]
    assert len({one, other, recognise("https://www.reddit.com/r/tides")[1]}) == 3
    for told in (shown(one), masked(one), readable(one)):
        assert "0a1b2c3d" not in told
        assert "nobody" not in told
    with pytest.raises(BadUrl) as refused:
        recognise("https://www.reddit.com/message/inbox?feed=0a1b2c3d&user=nobody")
    assert "0a1b2c3d" not in str(refused.value)
