"""Stand-ins of the Sites that have a Lane of their own: their documents in shape, with invented Series, on loopback.

Owns what each answers, and its moods: it may refuse.  Refuses to own: which Site reads it how (`lanes.sites`).  Must never break: a
Chapter keeps its identity and its date for as long as the stand-in lives.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

from .feeds import Request
from .hosts import Host
from .net import Smallnet
from .steps import NOTHING_HERE, Step, ok, status

REFUSED = status(
    403,
    "<!doctype html><html><head><title>Just a moment...</title></head><body>"
    "<script>window._cf_chl_opt = {};</script></body></html>",
).with_headers({"cf-mitigated": "challenge", "content-type": "text/html"})
"""A challenge, as the most common one says of itself."""


@dataclass(frozen=True, slots=True)
class Part:
    """One Chapter of a stand-in: its number in the order of publication, from 1, and when it came out."""

    number: int
    at: datetime


@dataclass
class Title:
    """One Series of a stand-in.  `pasted` is its URL as a Reader would paste it, `name` what its document calls it, `key` its place in
    the URLs."""

    name: str
    key: str
    pasted: str
    parts: list[Part] = field(default_factory=list)

    def publish(self, at: datetime | None = None) -> Part:
        """The next Chapter comes out."""
        part = Part(len(self.parts) + 1, at or datetime.now(UTC))
        self.parts.append(part)
        return part


@dataclass
class StandIn:
    """One Site's stand-in.  `refuses`: it answers every request with a challenge."""

    site: str
    host: Host
    titles: list[Title]
    document: Callable[[Title], Step]
    refuses: bool = False

    def __call__(self, request: Request) -> Step:
        path = urlsplit(request.path).path
        if path == "/robots.txt":
            return NOTHING_HERE
        if self.refuses:
            return REFUSED
        return next((self.document(title) for title in self.titles if title.key in request.path), NOTHING_HERE)

    @property
    def origin(self) -> str:
        """What the Site's module is given in the place of the real one."""
        return self.host.url("").rstrip("/")


def build(net: Smallnet, first: str = "127.1.20.1") -> dict[str, StandIn]:
    """The five, each at an address of its own from `first` on, two Series each, three Chapters old."""
    place, number = first.rpartition(".")[0], int(first.rpartition(".")[2])
    made: dict[str, StandIn] = {}
    for site, document, pasted, titles in _SITES:
        host = net.host(f"{place}.{number + len(made)}")
        stand_in = StandIn(site, host, [Title(name, key, pasted.format(key)) for name, key in titles], document)
        for title in stand_in.titles:
            for days in (20, 13, 6):
                title.publish(datetime.now(UTC) - timedelta(days=days))
        host.answer_with("*", stand_in)
        made[site] = stand_in
    return made


def write_sites(place: Path, origins: dict[str, str]) -> None:
    """A directory for PYTHONPATH that puts these Sites in the place of the shipped ones, as an owner's own Sites are put there."""
    place.mkdir(parents=True, exist_ok=True)
    about = place / "standins-0.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: standins\nVersion: 0\n", encoding="utf-8")
    points = "".join(f"{site} = standin_sites:{site.upper()}\n" for site in origins)
    (about / "entry_points.txt").write_text(f"[lanes.sites]\n{points}", encoding="utf-8")
    imported = ", ".join(origins)
    values = "".join(f'{site.upper()} = {site}.site("{origin}")\n' for site, origin in origins.items())
    (place / "standin_sites.py").write_text(f"from lanes.sites import {imported}\n\n{values}", encoding="utf-8")


def _mangadex(title: Title) -> Step:
    chapters = [
        {
            "id": f"{part.number:08x}-6b7e-4d19-9c40-{title.key[-12:]}",
            "type": "chapter",
            "attributes": {
                "volume": None,
                "chapter": str(part.number),
                "title": f"Part the {part.number}.",
                "translatedLanguage": "en",
                "externalUrl": None,
                "isUnavailable": False,
                "publishAt": _iso(part.at),
                "readableAt": _iso(part.at),
                "createdAt": _iso(part.at),
                "updatedAt": _iso(part.at),
                "pages": 20,
                "version": 1,
            },
            "relationships": [{"id": title.key, "type": "manga"}],
        }
        for part in reversed(title.parts)
    ]
    body = {
        "result": "ok",
        "response": "collection",
        "data": chapters,
        "limit": 32,
        "offset": 0,
        "total": len(chapters),
    }
    return ok(json.dumps(body), "application/json")


def _royalroad(title: Title) -> Step:
    items = "".join(
        f'<item><guid isPermaLink="false">{_id(title, part)}</guid>'
        f"<link>https://www.royalroad.com/fiction/chapter/{_id(title, part)}</link>"
        f"<title>{escape(title.name)} - Chapter {part.number}</title>"
        f"<pubDate>{format_datetime(part.at, usegmt=True)}</pubDate></item>"
        for part in reversed(title.parts[-10:])
    )
    return ok(f"\ufeff{_rss(title, items)}", "application/rss+xml; charset=utf-8")


def _webtoons(title: Title) -> Step:
    items = "".join(
        f"<item><title><![CDATA[Ep. {part.number} - Low Water]]></title>"
        f"<link><![CDATA[https://www.webtoons.com/en/fantasy/{title.name.lower().replace(' ', '-')}/ep-{part.number}/viewer"
        f"?title_no={title.key.rpartition('=')[2]}&episode_no={part.number}]]></link>"
        f"<pubDate>{part.at:%A, %d %b %Y %H:%M:%S GMT}</pubDate></item>"
        for part in reversed(title.parts[-10:])
    )
    return ok(_rss(title, items), "application/xml; charset=utf-8")


def _kagane(title: Title) -> Step:
    books = [
        {
            "book_id": f"{part.number:08x}-0000-7000-8000-{title.key[-12:]}",
            "title": f"Chapter {part.number}",
            "created_at": f"{part.at:%Y-%m-%dT%H:%M:%S}",
            "page_count": 20,
            "sort_no": float(part.number),
            "chapter_no": str(part.number),
            "volume_no": None,
            "groups": [],
        }
        for part in title.parts
    ]
    body = {
        "series_id": title.key,
        "title": title.name,
        "upload_status": "ONGOING",
        "series_covers": [],
        "series_books": books,
    }
    return ok(json.dumps(body), "application/json")


def _comix(title: Title) -> Step:
    """Its rows are drawn by a script, a moment after the page is there."""
    hid = title.key
    facts = {"hid": hid, "title": title.name, "status": "releasing", "latestChapter": len(title.parts)}
    first = {"manga": {"hid": hid}, "queries": {json.dumps(["manga", "detail", hid]): facts}}
    now = datetime.now(UTC)
    rows = [
        [f"/title/{title.key}/{_id(title, part)}-chapter-{part.number}", str(part.number), _age(now - part.at)]
        for part in reversed(title.parts[-20:])
    ]
    page = textwrap.dedent(
        """\
        <!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title>
        <script id="initial-data" type="application/json">{first}</script></head>
        <body><h1>{name}</h1><ul class="mchap-list"></ul><script>
        const rows = {rows};
        setTimeout(() => {{
          for (const [href, number, age] of rows) {{
            const row = document.createElement("li");
            row.className = "mchap-item";
            row.innerHTML = `<a class="mchap-row__primary" href="${{href}}"><span class="mchap-row__ch">Ch.${{number}}</span>` +
              `<span class="mchap-row__title">Span ${{number}}</span></a><span class="mchap-row__date">${{age}}</span>`;
            document.querySelector(".mchap-list").append(row);
          }}
        }}, 300);
        </script></body></html>
        """
    ).format(name=escape(title.name), first=json.dumps(first), rows=json.dumps(rows))
    return ok(page, "text/html; charset=utf-8")


def _rss(title: Title, items: str) -> str:
    return (
        f'<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel><title>{escape(title.name)}</title>'
        f"<link>{escape(title.pasted)}</link><description>Invented.</description>{items}</channel></rss>"
    )


def _id(title: Title, part: Part) -> int:
    return 1000 * sum(title.key.encode()) + part.number


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="seconds")


def _age(age: timedelta) -> str:
    return f"{age.days}d" if age.days else f"{max(age.seconds // 60, 1)} minutes ago"


_SITES: tuple[tuple[str, Callable[[Title], Step], str, tuple[tuple[str, str], ...]], ...] = (
    (
        "mangadex",
        _mangadex,
        "https://mangadex.org/title/{}",
        (
            ("A Lamp Below the Weir", "b9d0f4a8-2c63-4f0a-93d7-100000000001"),
            ("The Ferryman's Daughter", "b9d0f4a8-2c63-4f0a-93d7-100000000002"),
        ),
    ),
    (
        "royalroad",
        _royalroad,
        "https://www.royalroad.com/fiction/{}",
        (("Salt Roads", "910001"), ("The Understairs, Rewritten", "910002")),
    ),
    (
        "webtoons",
        _webtoons,
        "https://www.webtoons.com/en/fantasy/moth-hours/list?title_no={}",
        (("Moth Hours", "990101"), ("Low Water", "990102")),
    ),
    (
        "kagane",
        _kagane,
        "https://kagane.to/series/{}",
        (
            ("Clockwork Weather", "019f0000-1111-7222-8333-100000000001"),
            ("Paper Tides", "019f0000-1111-7222-8333-100000000002"),
        ),
    ),
    (
        "comix",
        _comix,
        "https://comix.to/title/{}-as-pasted",
        (("Eleven Bridges", "e1ev"), ("The Toll Keeper", "t0ll")),
    ),
)
