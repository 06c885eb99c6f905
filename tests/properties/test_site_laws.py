"""Laws of every Site's reader and recogniser: whatever a page or a URL says, neither raises, and what comes out can be stored."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.core.chapters import MAX_ITEMS, Document, Item, NotRecognised, Reading, distinct
from lanes.core.urls import split
from lanes.errors import BadUrl
from lanes.sites import SITES, Site, recognise
from lanes.sites.discover import discover
from lanes.sites.recognisers import RECOGNISERS
from lanes.sites.urls import canonical
from tests.site_samples import SAMPLES

DOCUMENTS = sorted(path.read_bytes() for path in SAMPLES.iterdir())
URLS = (
    "https://api.mangadex.org/manga/6c2e7d10-54b8-4a7f-9f21-0b6d3a18c701/feed?translatedLanguage[]=en",
    "https://www.royalroad.com/fiction/syndication/71005",
    "https://www.royalroad.com/fiction/71005/orchard-of-bells",
    "https://www.webtoons.com/en/drama/tin-moon/rss?title_no=8801",
    "https://kagane.to/api/v2/series/01a1ffff-1111-7222-8333-444455556666",
    "https://comix.to/title/t1nm",
    "https://archiveofourown.org/works/88000123/navigate",
    "https://archiveofourown.org/tags/5501/feed.atom",
    "https://tapas.io/rss/series/5102",
    "https://rssscribblehub.com/rssfeed.php?type=series&sid=61007",
    "https://www.youtube.com/feeds/videos.xml?channel_id=UCtidaltidaltidaltidal_1",
    "https://www.reddit.com/r/tides/new/.rss",
    "http://[::1]/?%5B%5D=&&=;",
    "no url at all",
)
LABELS = frozenset(
    [
        "chapter",
        "episode",
        "volume",
        "prologue",
        "epilogue",
        "interlude",
        "side",
        "extra",
        "special",
        "oneshot",
        "notice",
        "",
    ]
)
DECIMAL = re.compile(r"[0-9]{1,6}(\.[0-9]{1,3})?")

_instants = st.datetimes(datetime(1970, 1, 2), datetime(9999, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
_words = [
    b"<", b">", b"\"", b"'", b"[", b"]", b"{", b"}", b",", b":", b"null", b"true", b"-1", b"1e999", b"99999999999999999999",
    b"\0", b"\xff", b"&#0;", b"&#xd800;", b"\\ud800", b"</script>", b"<pre>", b"<!--", b"]]>", b"<![CDATA[", b"<li>", b"<td>",
    b"9999-99-99", b"unixtime=\"9999999999\"", b"\xe2\x80\xae", b"/chapter/", b"window.chapters = [", b"data", b"id",
]  # fmt: skip


@st.composite
def _mutated(draw: st.DrawFn) -> bytes:
    """A sample with some pieces cut out, doubled or replaced."""
    body = draw(st.sampled_from(DOCUMENTS))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(body)))
        end = draw(st.integers(start, min(len(body), start + 200)))
        piece = draw(st.sampled_from([b"", body[start:end] * 3, *_words]) | st.binary(max_size=8))
        body = body[:start] + piece + body[end:]
    return body


def is_absolute(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def is_sound(item: Item) -> bool:
    """Whether the store can take it."""
    texts = [text for text in (item.guid, item.title, item.link) if text is not None]
    return (
        item.guid != ""
        and not any("\0" in text or "\n" in item.title for text in texts)
        and all(text.encode("utf-8", "strict") is not None for text in texts)
        and (item.link is None or is_absolute(item.link))
        and (item.published_at is None or item.published_at.utcoffset() is not None)
        and all(value is None or DECIMAL.fullmatch(value) is not None for value in (item.number, item.volume))
        and item.label in LABELS
    )


def assert_sound(found: Reading) -> None:
    if isinstance(found, NotRecognised):
        assert found.reason
        assert len(found.start) <= 200
        return
    assert isinstance(found, Document)
    assert len(found.items) <= MAX_ITEMS
    assert [item for item in found.items if not is_sound(item)] == []
    assert found.latest is None or Decimal(found.latest) >= 0
    assert found.home is None or is_absolute(found.home)
    distinct(found.items)


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.name)
@given(
    body=_mutated() | st.binary(max_size=300),
    url=st.sampled_from(URLS),
    at=_instants,
    header=st.none() | st.text(max_size=30),
)
def test_no_document_makes_a_reader_raise_and_a_site_of_one_host_knows_each_chapter_by_its_id(
    site: Site, body: bytes, url: str, at: datetime, header: str | None
) -> None:
    found = site.read(body, header, url, at)
    assert_sound(found)
    assert site.many_hosts or isinstance(found, NotRecognised) or all(item.guid for item in found.items)


@given(body=_mutated() | st.binary(max_size=300), url=st.sampled_from(URLS))
def test_no_page_makes_discovery_raise(body: bytes, url: str) -> None:
    assert all(is_absolute(link.url) for link in discover(body, None, url))


_hosts = st.sampled_from(
    [host for site in SITES for host in site.hosts] + [host for each in RECOGNISERS for host in each.hosts]
)
_segments = st.sampled_from(
    [
        "title", "manga", "chapter", "fiction", "syndication", "series", "works", "navigate", "chapters", "collections", "tags",
        "feed.atom", "feed", "feeds", "rss", "list", "viewer", "en", "zh-hant", "canvas", "episodeList", "api", "v2", "episode", "info",
        "r", "u", "user", "search", "new", ".rss", "x.rss", "channel", "playlist", "@name", "c", "read", "rssfeed.php", "..", ".", "%2e%2e",
        "0", "007", "12", "12-slug", "q7x2-name", "-", "6c2e7d10-54b8-4a7f-9f21-0b6d3a18c701", "UCtidaltidaltidaltidal_1", "a+b", "ü",
        "%FF",
    ]
) | st.text(max_size=12)  # fmt: skip
_queries = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "lang", "translatedLanguage[]", "title_no", "titleNo", "group_id", "list", "channel_id", "type", "sid", "uid", "q", "feed",
                "user",
            ]
        ),
        st.sampled_from(["", "en", "fr,en", "7", "007", "series", "author", "PLx", "[]", "%", "a b", "&", "#", "ü", "9" * 30])
        | st.text(max_size=8),
    ),
    max_size=4,
)  # fmt: skip


@st.composite
def _pasted(draw: st.DrawFn) -> str:
    path = "/".join(draw(st.lists(_segments, max_size=6)))
    query = "&".join(f"{name}={value}" for name, value in draw(_queries))
    return f"{draw(st.sampled_from(['https', 'http', 'HTTPS']))}://{draw(_hosts)}/{path}?{query}"


@given(given=_pasted() | st.text(max_size=60))
def test_a_pasted_url_has_one_series_or_a_remedy(given: str) -> None:
    """Recognised, it stays what it is when it is pasted again; its host is that Site's."""
    try:
        site, url = recognise(given)
    except BadUrl:
        return
    assert recognise(url) == (site, url)
    parts = split(url)
    assert parts is not None
    assert not site.hosts or parts.host == site.hosts[0]
    assert canonical(url) == url


@pytest.mark.parametrize("recogniser", [*SITES, *RECOGNISERS], ids=lambda each: each.name)
@given(url=st.text(max_size=80) | _pasted())
def test_no_text_makes_a_recogniser_raise_anything_but_a_remedy(recogniser: Site, url: str) -> None:
    try:
        found = recogniser.recognise(url)
    except BadUrl:
        return
    assert found is None or isinstance(found, str)
