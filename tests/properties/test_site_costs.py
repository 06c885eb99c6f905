"""Laws of what a page costs: its length, and not much more than taking it apart, whatever stands in it over and over.

A pattern that backtracks holds every thread of its Lane while it does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from lanes.core import challenge
from lanes.sites import SITES, Site
from lanes.sites.discover import discover
from lanes.sites.page import PAGE, parse, text_of_page
from tests.site_samples import SAMPLES

HTML = "text/html"
AT = datetime(2026, 5, 1, tzinfo=UTC)
FACTOR = 10
"""Four times as long may cost ten times as much: 4 is linear, 16 is quadratic."""
FIRST = 512
"""Bytes of the shortest page that is measured."""
SEEN = 0.005
"""Seconds of CPU from which a measurement says something, and ..."""
LEAST = 0.001
"""... what is less than this counts as this."""

URLS = {
    "mangadex": "https://api.mangadex.org/manga/6c2e7d10-54b8-4a7f-9f21-0b6d3a18c701/feed?translatedLanguage[]=en",
    "royalroad": "https://www.royalroad.com/fiction/71005",
    "webtoons": "https://www.webtoons.com/en/drama/tin-moon/rss?title_no=8801",
    "kagane": "https://kagane.to/api/v2/series/01a1ffff-1111-7222-8333-444455556666",
    "comix": "https://comix.to/title/t1nm",
    "ao3": "https://archiveofourown.org/works/88000123/navigate",
    "feeds": "https://serial.example/feed",
}
ELSEWHERE = "https://serial.example/"


def reader_of(site: Site) -> Callable[[bytes], object]:
    return lambda body: site.read(body, HTML, URLS[site.name], AT)


READERS: dict[str, Callable[[bytes], object]] = {
    **{site.name: reader_of(site) for site in SITES},
    "discovery": lambda body: discover(body, HTML, ELSEWHERE),
    "signs": lambda body: challenge.sign_of(body, HTML, ELSEWHERE),
    "log-in": lambda body: challenge.wants_log_in(body, HTML, ELSEWHERE, ELSEWHERE),
}
OF_PAGES = ("royalroad", "comix", "ao3", "kagane")


@dataclass(frozen=True, slots=True)
class Shape:
    """A page of one piece over and over; in a second half of another, where there is one."""

    start: str
    piece: str
    second: str = ""
    end: str = ""

    def __str__(self) -> str:
        return f"{self.start[-40:]}({self.piece[:40]})*{f'({self.second})*' if self.second else ''}"

    def __call__(self, size: int) -> bytes:
        half = size // 2 if self.second else size
        first = self.piece * (half // len(self.piece) + 1)
        second = self.second * (half // len(self.second) + 1) if self.second else ""
        return (self.start + first + second + self.end).encode()


BODY = "<!doctype html><html><body>"
FEED = "<rss version='2.0'><channel><title>x</title>"
ITEM = f"{FEED}<item><title>y</title>"
ROW = "<div class=mchap-item><a class=mchap-row__primary href=/title/t1nm/12-chapter-1>"

ANYWHERE = [
    Shape(start, piece)
    for start in ("", BODY)
    for piece in ("<", "<!--", "<![CDATA[", "<title>", "<input ", "<input type ", "&amp;", "[", " ", "'", "<a ", "</", "\u00c3")
]  # fmt: skip
PAGES = [
    *(Shape(BODY, piece) for piece in ("<li>", "<p><b>", "<pre>", "<table><tr><td>", "window.chapters = [", "window.chapters = [x ", ROW)),
    Shape("<html><title>", " "),
    Shape("<html><title>", "<title>"),
    Shape("<html><title>security check</title>", "<meta "),
    Shape("<html><title>security check</title>", "<meta name=robots "),
    Shape("<html><title>security check</title><meta ", "name=robots "),
    Shape(f"{BODY}<input ", "type "),
    Shape(f"{BODY}<a ", "href=/a "),
    Shape(BODY, "<b>", "</i>"),
    Shape(BODY, "<div>", "</p>"),
    Shape("<html><div class=fic-header><h1>x</h1></div><script>", "window.chapters = ["),
    Shape("<html><div class=fic-header><h1>x</h1></div><script>", "window.chapters = [ ' "),
    Shape("<html><div class=fic-header><h1>x</h1></div><table id=chapters>", "<tr class=chapter-row><td><a>"),
    Shape("<html><h2 class=heading>Chapter Index for</h2><ol class='chapter index'>", "<li><a href=/works/1/chapters/2>1. x"),
]  # fmt: skip
XML = [
    *(Shape(start, piece) for start in (FEED, ITEM)
      for piece in ("<item>", "<link>", "<title>", "<x:y>", "&", "&#", "<skipHours><hour>", "]]>")),
    *(Shape("<!DOCTYPE rss [", piece) for piece in ("<!ENTITY a 'b'>", "<!ENTITY a ", "<!ENTITY a '", "]", "<?")),
    Shape(f"{ITEM}<link>http://x.example/?&amp;", "amp;", end="</link></item></channel></rss>"),
    Shape(f"{ITEM}<link>http://x.example/?&amp;", "a;", end="</link></item></channel></rss>"),
    Shape(f"{ITEM}<guid>", "\u00c3\u0083", end="</guid></item></channel></rss>"),
    Shape(FEED, f"<item><title>1{'_' * 900}</title></item>", end="</channel></rss>"),
    Shape(FEED, "<x>", "</y>"),
]  # fmt: skip
JSON = [
    *(
        Shape('{"result":"ok","title":"x","data":[', piece)
        for piece in ("{", '{"id":', '"', "1,", "{},", '{"id":"1"},')
    ),
    Shape('{"result":"ok","title":"', "\\u0041"),
    Shape("", "[", "]"),
]
SHAPES = {
    "mangadex": JSON,
    "royalroad": PAGES,
    "webtoons": [],
    "kagane": JSON,
    "comix": PAGES,
    "ao3": PAGES,
    "feeds": XML + JSON,
    "discovery": PAGES,
    "signs": PAGES,
    "log-in": PAGES,
}


def spent(read: Callable[[bytes], object], body: bytes) -> float:
    before = time.process_time()
    read(body)
    return time.process_time() - before


def growth(read: Callable[[bytes], object], shape: Shape, longest: int) -> float:
    """How many times as much a page costs that is four times as long."""
    size = FIRST
    while size * 8 <= longest and spent(read, shape(size)) < SEEN:
        size *= 2
    best = float("inf")
    for _ in range(3):
        best = min(best, spent(read, shape(size * 4)) / max(spent(read, shape(size)), LEAST))
        if best <= FACTOR:
            break
    return best


@pytest.mark.parametrize("reader", READERS)
def test_a_page_costs_no_more_than_its_length(reader: str) -> None:
    longest = challenge.LOOKED_AT if reader in ("signs", "log-in") else PAGE
    found = {str(shape): growth(READERS[reader], shape, longest) for shape in (*ANYWHERE, *SHAPES[reader])}
    assert {shape: times for shape, times in found.items() if times > FACTOR} == {}


def times_the_parse(read: Callable[[bytes], object], body: bytes) -> float:
    """How many times as much reading a page costs as taking it apart."""
    best = float("inf")
    for _ in range(3):
        parsed = spent(lambda page: parse(text_of_page(page, HTML)), body)
        best = min(best, spent(read, body) / max(parsed, LEAST))
        if best <= FACTOR:
            break
    return best


NESTED = {
    "rows": (ROW, "<i>3x</i>"),
    "rows side by side": ("", f"{ROW}</a>{'<i>3x</i>' * 10}</div>"),
    "chapter rows": ("<table id=chapters><tr class=chapter-row><td>", "<a>x</a>"),
    "lines": ("<ol class='chapter index'><li><a href=/works/1/chapters/2>1. x", "<i>x</i>"),
    "headings": ("<h2 class=heading>Chapter Index for x<div>", "<b>x</b>"),
    "headings and paragraphs": ("<h2><p><object>", "<b>x</b>"),
    "labels": ("<span class=label>", "<b>x</b>"),
    "assignments": ("", "window.chapters = [x "),
}
LANDMARKS = "<html><div class=fic-header><h1>x</h1></div><h2 class=heading>Chapter Index for <a>x</a></h2><ol class='chapter index'>"


@pytest.mark.parametrize("reader", OF_PAGES)
def test_a_page_costs_little_more_than_taking_it_apart_however_it_nests_its_parts(reader: str) -> None:
    found = {
        name: times_the_parse(READERS[reader], (start + opened * 45 + inside * 4_000).encode())
        for name, (opened, inside) in NESTED.items()
        for start in (LANDMARKS,)
    }
    assert {name: times for name, times in found.items() if times > FACTOR} == {}


@pytest.mark.parametrize("reader", OF_PAGES)
def test_each_tag_of_a_known_page_inside_itself_costs_little_more_than_taking_it_apart(reader: str) -> None:
    found = {}
    for path in sorted(SAMPLES.glob(f"{reader}_*.html")):
        page = path.read_text()
        for tag in {f"<{part.partition('>')[0]}>" for part in page.split("<")[1:] if part[:1].isalpha()}:
            before, _, after = page.partition(tag)
            body = before + tag * 45 + "<b>x</b>" * 2_000 + after
            found[path.name, tag] = times_the_parse(READERS[reader], body.encode())
    assert {place: times for place, times in found.items() if times > FACTOR} == {}
