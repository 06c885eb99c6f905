"""The demo: a few serials that come out fast, every kind of difficult neighbour, and stand-ins of the Sites with Lanes of their own.

Owns what `make demo` polls.  Refuses to own: polling it.  Must never break: it needs no network beyond loopback.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import cycle

from . import standins
from .feeds import Feed, Kind, Post, Request
from .hosts import Host
from .net import Smallnet
from .standins import StandIn, Title
from .steps import AS_USUAL, Step, redirect, status

SERIALS = (
    "The Lantern Road",
    "Salt and Cinders",
    "A Clockwork Orchard",
    "Nine Lives of a Ferry",
    "The Understairs",
    "Moss Kingdom",
    "Tidewater Detectives",
    "The Last Cartographer",
    "Owls of the Night Train",
    "Paper Dragons",
    "The Quiet Foundry",
    "Beekeeper in Orbit",
)
KINDS: tuple[Kind, ...] = ("rss", "atom", "json")
SLOW = 3.0
"""Seconds the slow host takes."""
WAIT = 20
"""Seconds the host that asks to wait asks for."""


class AsksToWait:
    """Refuses every third request with 429 and Retry-After, and everything until that time is over; counts who came early."""

    def __init__(self, seconds: int = WAIT) -> None:
        self.seconds, self.early = seconds, 0
        self._asked = 0
        self._until = 0.0

    def __call__(self, request: Request) -> Step:
        now = time.monotonic()
        if now < self._until:
            self.early += 1
        else:
            self._asked += 1
            if self._asked % 3 != 1:
                return AS_USUAL
            self._until = now + self.seconds
        return status(429, retry_after=self.seconds)


@dataclass
class Demo:
    """The demo world: `outlines` are (title, url) for the OPML, `publish` brings out the next Chapter somewhere."""

    outlines: list[tuple[str, str]] = field(default_factory=list)
    feeds: list[Feed] = field(default_factory=list)
    asks_to_wait: AsksToWait = field(default_factory=AsksToWait)
    stand_ins: dict[str, StandIn] = field(default_factory=dict)
    _turn: Iterator[Feed | Title] = field(default_factory=lambda: iter(()))

    def publish(self) -> str:
        """The next Chapter of the feed or the title whose turn it is, told in a sentence."""
        feed = next(self._turn)
        if isinstance(feed, Title):
            return f"{feed.name} published Chapter {feed.publish().number}."
        post = feed.publish(Post(f"Chapter {feed.version + 1}", text="It was a fine day for it.", at=datetime.now(UTC)))
        return f"{feed.title} published {post.title}."


def build(net: Smallnet) -> Demo:
    """Lively hosts at 127.1.0.10 to .13 with three serials each; one slow, one asking to wait, one moved, one broken, one dead."""
    demo = Demo()
    for number, title in enumerate(SERIALS):
        host = net.host(f"127.1.0.{10 + number // 3}")
        _serial(demo, host, f"/{'abc'[number % 3]}/feed", title, KINDS[number % 3])
        host.page("/", _home(host))
    slow = net.host("127.1.0.20")
    _serial(demo, slow, "/feed", "The Slow Boat (slow host)", "rss")
    slow.script("*", AS_USUAL.after(SLOW))
    waiting = net.host("127.1.0.21")
    _serial(demo, waiting, "/feed", "Patience (asks to wait)", "atom")
    waiting.script("*", demo.asks_to_wait)
    new_home = net.host("127.1.0.23")
    moved = Demo()
    _serial(moved, new_home, "/feed", "A Change of Address (moved)", "rss")
    net.host("127.1.0.22").script("/feed", redirect(new_home.url("/feed")))
    demo.feeds += moved.feeds
    demo.outlines.append(("A Change of Address (moved)", net.host("127.1.0.22").url("/feed")))
    net.host("127.1.0.24").script("*", status(500))
    demo.outlines.append(("The Broken Press (server error)", net.host("127.1.0.24").url("/feed")))
    demo.outlines.append(("Nobody Home (dead: refuses connections)", f"http://127.1.0.25:{net.port}/feed"))
    demo._turn = cycle(demo.feeds)
    return demo


def add_stand_ins(demo: Demo, net: Smallnet) -> None:
    """The Sites with Lanes of their own come to it, at 127.1.20.1 and on."""
    demo.stand_ins = standins.build(net)
    titles = [title for stand_in in demo.stand_ins.values() for title in stand_in.titles]
    demo.outlines += [(title.name, title.pasted) for title in titles]
    demo._turn = cycle([*demo.feeds, *titles])


def _serial(demo: Demo, host: Host, path: str, title: str, kind: Kind) -> None:
    now = datetime.now(UTC)
    earlier = [Post(f"Chapter {n}", text="How it began.", at=now - timedelta(days=6 - n)) for n in range(1, 6)]
    demo.feeds.append(host.feed(path, earlier, kind=kind, title=title, keep=40))
    demo.outlines.append((title, host.url(path)))


def _home(host: Host) -> str:
    links = "".join(
        f'<link rel="alternate" type="{kind}" title="{feed.title}" href="{path}">'
        for (path, feed), kind in zip(
            host.feeds.items(), ("application/rss+xml", "application/atom+xml", "application/feed+json"), strict=False
        )
    )
    return f"<!doctype html><html><head><title>Serials</title>{links}</head><body><h1>Serials</h1></body></html>"
