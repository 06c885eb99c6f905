"""Generated feeds: the fast and the tolerant reader read them alike, whole or damaged, and no bytes raise."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from hypothesis import given, settings
from hypothesis import strategies as st

from lanes.core.chapters import NotRecognised
from lanes.sites import feeds
from lanes.sites.discover import discover
from tests.properties.test_readers import URL, both, rss

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
    fast, tolerant = both(rss(*items))
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
        texts = [text for item in found.items for text in (item.title, item.link) if text] + [found.title or ""]
    assert not any("\0" in text or "\n" in text for text in texts)
    assert [text.encode().decode() for text in texts] == texts


@given(damaged())
@settings(max_examples=60, deadline=None)
def test_a_damaged_feed_that_is_still_well_formed_reads_the_same_on_both(body: bytes) -> None:
    fast, tolerant = both(body)
    assert fast == tolerant
