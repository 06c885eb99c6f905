"""The fast and the tolerant reader read the same, and neither raises, whatever the document."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from lanes.core.chapters import Document, NotRecognised
from lanes.sites import feeds
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

LEFT_TO_THE_TOLERANT = {
    "atom": 15,  # titles in base64 or with bare markup, foreign default namespaces, links without href
    "atom10": 15,  # markup inside source, titles in base64 or of no known type, links without href, a root without namespace
    "base": 15,  # RSS bodies in XHTML, titles in base64, relative or unsafe xml:base, items in an Atom feed
    "itunes": 1,  # a foreign namespace under the prefix itunes
    "lang": 4,  # RSS bodies in XHTML
    "media-rss": 2,  # only the media have a title
    "namespace": 15,  # usual prefixes bound to other namespaces or unknown ones (SVG, XLink, old modules), an item in an Atom feed
    "node_precedence": 3,  # an image inside an entry with parts that could be the entry's
    "psc": 1,  # a root without namespace
    "rdf": 1,  # a declared entity
    "rss": 16,  # RSS bodies in XHTML, images with links inside items, dc:title, odd namespaces, a declared entity, a guid no parser takes
    "xml": 3,  # an empty or foreign default namespace, an RSS title with a type
}
"""Well-formed documents of feeds that the fast reader declines, by folder, and why; all others it takes."""


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


def rss(*items: str, before: str = "") -> bytes:
    inside = "".join(f"<item>{item}</item>" for item in items)
    return f"{before}<rss version='2.0'><channel><title>T</title><link>https://x.example/</link>{inside}</channel></rss>".encode()


CASES = {
    "F1": rss(
        *(f"<title>Part {n}</title><link>https://x.example/</link><pubDate>2026-11-29</pubDate>" for n in range(6))
    ),
    "F2": rss(*["<guid>g</guid><link>https://x.example/</link><pubDate>Invalid Date</pubDate>"] * 3),
    "F4": rss("<guid>?p=1</guid><title>A</title><link>https://x.example/a</link>"),
    "F8": rss(
        "<pubDate>Fri, 19 Nov 2021 01:45:08 +02:00</pubDate>",
        "<pubDate>Fri, 19 Nov 2021 06:00:00 EDT</pubDate>",
        "<pubDate>Mon, May 25 2020 04:45:26 +0000</pubDate>",
    ),
    "F13": rss(*(f"<guid>https://x.example/</guid><title>Part {n}</title>" for n in range(3))),
    "G1": rss("<title>第12話</title>"),
    "G2 byte order mark": b"\xef\xbb\xbf" + rss("<title>A</title>", before="<?xml version='1.0'?>"),
    "G2 blank lines": rss("<title>A</title>", before="\n\n<?xml version='1.0'?>"),
    "G3": rss("<title>A</title>", before='<!DOCTYPE rss PUBLIC "-//N//DTD RSS 0.91//EN" "http://x.example/rss.dtd">'),
    "D3": rss("<title>A</title><description>&lt;form&gt;&lt;input type=password&gt; captcha</description>"),
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
        rss("<title>A\x08B</title>"),
        rss("<title>A&nbsp;B</title>"),
        rss("<title>A &b</title>"),
        rss("<title>A</title><title>B</title>"),
        rss("<title>&e;</title>", before='<!DOCTYPE rss [<!ENTITY e "E">]>'),
        rss("<title>A</title>")[:-3],
        rss("<title type='xhtml'>A</title>"),
        rss("<title>A</title><x><link>https://y.example/</link></x>"),
        rss("<title>A</title><description><title>B</title></description>"),
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


def test_well_formed_documents_of_the_corpus_take_the_fast_path_but_for_those_known_to_be_odd() -> None:
    declined = [name(path) for path in corpus("wellformed") if read_fast(to_utf8(path.read_bytes(), None)) is None]
    of_feeds = [path for path in declined if not path.startswith(tuple(f"wellformed/{start}" for start in NOT_FEEDS))]
    assert Counter(path.split("/")[1] for path in of_feeds) == LEFT_TO_THE_TOLERANT, of_feeds
