"""The fast and the tolerant reader read the same, and neither raises, whatever the document."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes.core.chapters import Document, NotRecognised
from lanes.sites import feeds
from lanes.sites.discover import discover
from lanes.sites.feed_bytes import to_utf8
from lanes.sites.feed_fast import read_fast
from lanes.sites.feed_prolog import root
from lanes.sites.feed_raw import document
from lanes.sites.feed_tolerant import read_tolerant

ROOT = Path(__file__).parent.parent.parent
SAMPLES = ROOT / "tests" / "samples"
CORPUS = Path(os.environ.get("LANES_TEST_CORPUS") or ROOT.parent / "shared" / "corpus")
URL = "https://origin.example/dir/feed"

NOT_FEEDS = ("cdf/", "base/cdf_")
"""Corpus documents of a format that is not read: Channel Definition Format, dead since 2000."""

LEFT_TO_THE_TOLERANT = 91
"""Well-formed corpus documents that are odd enough for the fast reader to decline; each was looked at."""


def both(body: bytes) -> tuple[Document | None, Document | None]:
    """What the fast reader makes of it (None: declined), and the tolerant one where the fast one took it."""
    data = to_utf8(body, None)
    fast = read_fast(data)
    if fast is None:
        return None, None
    kind, _ = root(data.decode())
    assert kind is not None, "the fast reader took what has no root of a feed"
    tolerant = read_tolerant(data.decode(), kind)
    assert tolerant is not None, "the fast reader took what the tolerant one finds no feed in"
    return document(fast, URL), document(tolerant, URL)


def corpus(folder: str) -> list[Path]:
    found = sorted(path for path in (CORPUS / "feeds" / folder).rglob("*") if path.is_file())
    if not found:
        if os.environ.get("CI"):
            pytest.fail(f"no corpus at {CORPUS}: set LANES_TEST_CORPUS")
        pytest.skip(f"NO CORPUS at {CORPUS}: set LANES_TEST_CORPUS to read 1,360 more documents")
    return found


def name(path: Path) -> str:
    return path.relative_to(CORPUS / "feeds").as_posix()


# -- our samples and the documents of CASES


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.xml")), ids=lambda path: path.name)
def test_every_sample_takes_the_fast_path_and_reads_the_same_on_both(path: Path) -> None:
    fast, tolerant = both(path.read_bytes())
    assert fast is not None
    assert fast == tolerant


def _rss(*items: str, before: str = "") -> bytes:
    inside = "".join(f"<item>{item}</item>" for item in items)
    return f"{before}<rss version='2.0'><channel><title>T</title><link>https://x.example/</link>{inside}</channel></rss>".encode()


CASES = {
    "F1": _rss(
        *(f"<title>Part {n}</title><link>https://x.example/</link><pubDate>2026-11-29</pubDate>" for n in range(6))
    ),
    "F2": _rss(*["<guid>g</guid><link>https://x.example/</link><pubDate>Invalid Date</pubDate>"] * 3),
    "F4": _rss("<guid>?p=1</guid><title>A</title><link>https://x.example/a</link>"),
    "F8": _rss(
        "<pubDate>Fri, 19 Nov 2021 01:45:08 +02:00</pubDate>",
        "<pubDate>Fri, 19 Nov 2021 06:00:00 EDT</pubDate>",
        "<pubDate>Mon, May 25 2020 04:45:26 +0000</pubDate>",
    ),
    "F13": _rss(*(f"<guid>https://x.example/</guid><title>Part {n}</title>" for n in range(3))),
    "G1": _rss("<title>第12話</title>"),
    "G2 byte order mark": b"\xef\xbb\xbf" + _rss("<title>A</title>", before="<?xml version='1.0'?>"),
    "G2 blank lines": _rss("<title>A</title>", before="\n\n<?xml version='1.0'?>"),
    "G3": _rss("<title>A</title>", before='<!DOCTYPE rss PUBLIC "-//N//DTD RSS 0.91//EN" "http://x.example/rss.dtd">'),
    "D3": _rss("<title>A</title><description>&lt;form&gt;&lt;input type=password&gt; captcha</description>"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_documents_of_cases_take_the_fast_path_and_read_the_same_on_both(case: str) -> None:
    """CASES D3, F1, F2, F4, F8, F13, G1, G2, G3."""
    fast, tolerant = both(CASES[case])
    assert fast is not None
    assert fast == tolerant


@pytest.mark.parametrize(
    "body",
    [
        _rss("<title>A\x08B</title>"),
        _rss("<title>A&nbsp;B</title>"),
        _rss("<title>A &b</title>"),
        _rss("<title>A</title><title>B</title>"),
        _rss("<title>&e;</title>", before='<!DOCTYPE rss [<!ENTITY e "E">]>'),
        _rss("<title>A</title>")[:-3],
        _rss("<title type='xhtml'>A</title>"),
        _rss("<title>A</title><x><link>https://y.example/</link></x>"),
        _rss("<title>A</title><description><title>B</title></description>"),
        b"<html/>",
        b"{}",
        b"",
    ],
)
def test_what_is_out_of_the_ordinary_is_declined_by_the_fast_reader(body: bytes) -> None:
    assert read_fast(body) is None


# -- the corpus


@pytest.mark.parametrize("folder", ["wellformed", "illformed", "encoding", "entities", "json"])
def test_every_document_of_the_corpus_is_read_alike_and_without_an_exception(folder: str) -> None:
    unlike = [name(path) for path in corpus(folder) for fast, tolerant in [both(path.read_bytes())] if fast != tolerant]
    assert unlike == []


@pytest.mark.parametrize("folder", ["wellformed", "illformed", "encoding", "entities"])
def test_every_feed_of_the_corpus_is_recognised(folder: str) -> None:
    readings = {name(path): feeds.read(path.read_bytes(), None, URL) for path in corpus(folder)}
    refused = {path for path, reading in readings.items() if isinstance(reading, NotRecognised)}
    allowed = {path for path in refused if path.startswith(tuple(f"wellformed/{start}" for start in NOT_FEEDS))}
    assert refused - allowed <= {"illformed/rss_empty_document.xml"}


def test_nearly_every_well_formed_document_of_the_corpus_takes_the_fast_path() -> None:
    declined = [name(path) for path in corpus("wellformed") if read_fast(to_utf8(path.read_bytes(), None)) is None]
    of_feeds = [path for path in declined if not path.startswith(tuple(f"wellformed/{start}" for start in NOT_FEEDS))]
    assert len(of_feeds) <= LEFT_TO_THE_TOLERANT, of_feeds
    assert not [
        path for path in of_feeds if path.startswith(("wellformed/amp/", "wellformed/geo/", "wellformed/sgml/"))
    ]


# -- generated feeds

_TEXTS = st.one_of(
    st.text(
        st.characters(codec="utf-8", exclude_characters="\x7f", exclude_categories=["Cc", "Cs", "Cn"]), max_size=30
    ),
    st.lists(
        st.sampled_from(
            [
                "Part 1",
                " ",
                "\n",
                "&",
                "&amp;",
                "&#8217;",
                "&lt;b&gt;",
                "<b>",
                "</b>",
                "<br/>",
                "<System>",
                "<!-- c -->",
                "é",
                "Ã©",
                "\x85",
                "第12話",
                "\xa0",
                "<a href='x>y'>",
                "]]",
                "&nbsp;",
                "\u2028",
                "<",
                ">",
                '"',
                "x" * 1200,
            ]
        ),
        max_size=5,
    ).map("".join),
)
_LINKS = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            "/a",
            "b?c=1&d=2",
            "//other.example/x",
            "https://x.example/1",
            " http://x.example/a b ",
            "HTTP://X.example",
            "#top",
            "ftp://x.example/",
            "http:////x.example/y",
            "https://x.example/?",
            "https://x.example/a;b?c;d",
            "https://x.example/?a=1&amp;b=2",
            "https://x.example/?x=1&copy;=2",
            "http://[x/",
            "https://x.example/é",
            "https://u:p@x.example:81/../y",
            "mailto:x@x.example",
            "?",
            ".",
        ]
    ),
    _TEXTS,
)
_GUIDS = st.one_of(
    st.sampled_from(["g1", "G1", "https://x.example/?p=1", "urn:x", "/rel", "a:///b", "tag:x,2026:1", "\u0096"]), _TEXTS
)
_DATES = st.sampled_from(
    [
        "",
        "Invalid Date",
        "2026-11-29",
        "Sun, 29 Nov 2026 19:00:00 EST",
        "2026-11-29T12:00:00+09:00",
        "2026",
        "Mon, May 25 2020 04:45:26 +0000",
    ]
)
_SMALL = st.sampled_from(["", "1", "010", "2.5", "x", "-1", "12345678"])


def _written(text: str, cdata: bool) -> str:
    return "<![CDATA[" + text.replace("]]", "] ]") + "]]>" if cdata else escape(text)


@st.composite
def _element(draw: st.DrawFn, tag: str, texts: st.SearchStrategy[str], attributes: str = "") -> str:
    return f"<{tag}{attributes}>{_written(draw(texts), draw(st.booleans()))}</{tag}>"


def _some(*elements: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Any of these, at most once each, in any order."""
    return (
        st.permutations(elements)
        .flatmap(lambda order: st.tuples(*(st.one_of(st.just(""), each) for each in order)))
        .map("".join)
    )


def _link_element(tag: str) -> st.SearchStrategy[str]:
    rels = st.sampled_from(
        [
            "",
            " rel='alternate'",
            " rel='self'",
            " rel='hub'",
            " rel='enclosure' type='audio/mpeg'",
            " rel='ALTERNATE' type='text/html'",
        ]
    )
    return st.builds(lambda rel, href: f"<{tag}{rel} href={quoteattr(href)}/>", rels, _LINKS)


_CONTENTS = st.sampled_from(
    [
        "",
        "<description>a &lt;b&gt;</description>",
        "<description><p>x <b>y</b></p></description>",
        "<content:encoded><![CDATA[<title>x</title>]]></content:encoded>",
        "<media:group><media:title>m</media:title><media:content url='u'/></media:group>",
        "<source url='https://s.example/'>S</source>",
        "<dc:creator>pen</dc:creator><category>c</category>",
        "<unknown><deep>x</deep></unknown>",
        "<itunes:summary>s</itunes:summary>",
        "<enclosure url='https://c.example/a.mp3' type='audio/mpeg' length='1'/>",
        "<image><url>https://i.example/</url></image>",
    ]
)

_RSS_ITEM = _some(
    _element("title", _TEXTS),
    _element("link", _LINKS),
    _link_element("a:link"),
    st.sampled_from(["", " isPermaLink='false'", " isPermaLink='true'", " isPermaLink='TRUE'"]).flatmap(
        lambda kind: _element("guid", _GUIDS, kind)
    ),
    _element("pubDate", _DATES),
    _element("dc:date", _DATES),
    _element("itunes:season", _SMALL),
    _element("itunes:episode", _SMALL),
    _element("itunes:episodeType", st.sampled_from(["full", "Bonus", "trailer", "x"])),
    _CONTENTS,
)
_RSS_CHANNEL = _some(
    _element("title", _TEXTS),
    _element("link", _LINKS),
    _link_element("a:link"),
    _element("ttl", _SMALL),
    _element("sy:updatePeriod", st.sampled_from(["hourly", "daily", "weekly", "x"])),
    _element("sy:updateFrequency", _SMALL),
    st.just("<skipHours><hour>1</hour><hour> 24 </hour></skipHours>"),
    st.just("<skipDays><day>Monday</day><day>friday</day></skipDays>"),
    _element("itunes:complete", st.sampled_from(["yes", "Yes ", "no"])),
    st.just("<image><title>i</title><url>u</url><link>https://i.example/</link></image>"),
    st.just(
        "<textInput><title>t</title><description>d</description><name>n</name><link>https://t.example/</link></textInput>"
    ),
)
_SPACES = (
    " xmlns:a='http://www.w3.org/2005/Atom' xmlns:dc='http://purl.org/dc/elements/1.1/' xmlns:media='http://search.yahoo.com/mrss/'"
    " xmlns:sy='http://purl.org/rss/1.0/modules/syndication/' xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd'"
    " xmlns:content='http://purl.org/rss/1.0/modules/content/'"
)


def _joined(start: str, head: str, items: Iterable[str], tag: str, end: str, tail: str = "") -> bytes:
    return (start + head + "".join(f"<{tag}>{item}</{tag}>" for item in items) + tail + end).encode()


@st.composite
def rss_feeds(draw: st.DrawFn) -> bytes:
    head, items = draw(_RSS_CHANNEL), draw(st.lists(_RSS_ITEM, max_size=4))
    last = draw(st.booleans())
    return _joined(
        f"<rss version='2.0'{_SPACES}><channel>",
        "" if last else head,
        items,
        "item",
        "</channel></rss>",
        head if last else "",
    )


def _atom_title() -> st.SearchStrategy[str]:
    xhtml = st.sampled_from(
        ["<div xmlns='http://www.w3.org/1999/xhtml'>a <b>b</b>c &amp;amp; &lt;i><br/>d<p>e</p> </div>", "", " x "]
    )
    return st.one_of(
        st.sampled_from(["", " type='text'", " type='html'", " type='text/html'", " type='HTML'"]).flatmap(
            lambda kind: _element("title", _TEXTS, kind)
        ),
        xhtml.map(lambda inside: f"<title type='xhtml'>{inside}</title>"),
    )


_ATOM_ENTRY = _some(
    _atom_title(),
    _link_element("link"),
    _link_element("link"),
    _element("id", _GUIDS),
    _element("published", _DATES),
    _element("updated", _DATES),
    st.just("<author><name>pen</name><uri>https://pen.example/</uri></author>"),
    st.just(
        "<source><id>s</id><title>S</title><link href='https://s.example/'/><updated>2001-01-01</updated></source>"
    ),
    st.sampled_from(
        [
            "<content type='html'>&lt;p>x&lt;/p></content>",
            "<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>x<p>y</p></div></content>",
            "<summary>s</summary>",
            "<content type='application/xml'><id>no</id></content>",
        ]
    ),
)


@st.composite
def atom_feeds(draw: st.DrawFn) -> bytes:
    space = draw(st.sampled_from(["http://www.w3.org/2005/Atom", "http://purl.org/atom/ns#"]))
    base = draw(st.sampled_from(["", " xml:base='https://b.example/x/'", " xml:base='rel/'"]))
    head = draw(
        _some(
            _atom_title(),
            _link_element("link"),
            _link_element("link"),
            _element("id", _GUIDS),
            _element("updated", _DATES),
        )
    )
    return _joined(f"<feed xmlns='{space}'{base}>", head, draw(st.lists(_ATOM_ENTRY, max_size=4)), "entry", "</feed>")


@st.composite
def rdf_feeds(draw: st.DrawFn) -> bytes:
    start = f"<r:RDF xmlns='http://purl.org/rss/1.0/' xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'{_SPACES}>"
    item = _some(_element("title", _TEXTS), _element("link", _LINKS), _element("dc:date", _DATES), _CONTENTS)
    items = draw(st.lists(st.tuples(_GUIDS, item), max_size=4))
    inside = "".join(f"<item r:about={quoteattr(guid)}>{each}</item>" for guid, each in items)
    return (start + f"<channel>{draw(_RSS_CHANNEL)}</channel>" + inside + "</r:RDF>").encode()


ANY_FEED = st.one_of(rss_feeds(), atom_feeds(), rdf_feeds())


@given(ANY_FEED)
@settings(max_examples=60, deadline=None)
def test_a_generated_feed_reads_the_same_on_both(body: bytes) -> None:
    fast, tolerant = both(body)
    assert fast == tolerant


@given(st.lists(st.tuples(st.text("abc 第é&<", min_size=1, max_size=12), st.integers(1, 99)), max_size=9))
@settings(max_examples=25, deadline=None)
def test_an_ordinary_feed_takes_the_fast_path_with_every_item(chapters: list[tuple[str, int]]) -> None:
    items = [
        f"<title>{escape(title)}</title><link>https://x.example/{n}</link><guid>{n}</guid>" for title, n in chapters
    ]
    fast, tolerant = both(_rss(*items))
    assert fast is not None
    assert len(fast.items) == len(chapters)
    assert fast == tolerant


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A feed with a few bytes cut out, doubled or replaced."""
    body = bytearray(draw(ANY_FEED))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(body)))
        body[at : at + draw(st.integers(0, 30))] = draw(
            st.one_of(
                st.binary(max_size=6), st.sampled_from([b"<", b"&", b"]]>", b"<!DOCTYPE", b"<title>", b"<![CDATA["])
            )
        )
    return bytes(body)


@given(
    st.one_of(damaged(), st.binary(max_size=200)),
    st.sampled_from([None, "", "text/html", "x; charset=utf-16", "text/xml; charset=idna"]),
)
@settings(max_examples=100, deadline=None)
def test_no_bytes_raise_and_every_text_can_be_stored(body: bytes, content_type: str | None) -> None:
    """CASES C8."""
    found = feeds.read(body, content_type, URL)
    discover(body, content_type, URL)
    if isinstance(found, NotRecognised):
        assert found.reason
        texts = [found.reason, found.start]
    else:
        texts = [text for item in found.items for text in (item.guid, item.title, item.link) if text] + [
            found.title or ""
        ]
    assert not any("\0" in text or "\n" in text for text in texts)
    assert [text.encode().decode() for text in texts] == texts


@given(damaged())
@settings(max_examples=60, deadline=None)
def test_a_damaged_feed_that_is_still_well_formed_reads_the_same_on_both(body: bytes) -> None:
    fast, tolerant = both(body)
    assert fast == tolerant
