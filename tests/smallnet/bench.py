"""The bench's world: many hosts, many feeds of a usual size, answered at next to no cost to the machine it shares with the Lane.

Owns documents made from a template.  Refuses to own: measuring.  Must never break: bodies and validators depend on host, feed and version
alone, so that every run serves the same bytes.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache

from .control import Verb
from .feeds import FIRST_POST_AT, TYPES, Post, Request, render
from .net import Smallnet
from .steps import Step, ok

ITEMS = 35
TEXT = 950
"""Bytes of text in an item before escaping: makes a feed of 35 items 53 KB, the size of DESIGN 12."""
MARK = "@feed@"


@lru_cache(maxsize=256)
def template(version: int, items: int = ITEMS) -> bytes:
    """The document of that version, with MARK where the feed's own place belongs; each version has one new item and loses the oldest."""
    posts = [_post(number) for number in range(version + items, version, -1)]
    return render("rss", f"http://{MARK}", f"Serial {MARK}", posts)


def _post(number: int) -> Post:
    sentence = (
        f"<p>In part {number} the <em>road</em> bends & goes on, past mill no. {number * 7 % 100} and the ferry.</p>\n"
    )
    text = (sentence * (TEXT // len(sentence) + 1))[:TEXT]
    link = f"http://{MARK}/chapters/{number}"
    return Post(
        f"Part {number}: the road & the mill",
        guid=link,
        link=link,
        at=FIRST_POST_AT + timedelta(hours=number),
        text=text,
    )


@dataclass(slots=True)
class World:
    """`share` is the part of repeated requests that find one new item (0 to 1); it may be changed between rounds."""

    share: float = 0.0
    items: int = ITEMS
    outlines: list[tuple[str, str]] = field(default_factory=list)

    @property
    def urls(self) -> list[str]:
        """Every feed."""
        return [url for _, url in self.outlines]

    def verbs(self) -> dict[str, Verb]:
        """What the control adds for this world."""
        return {"share": self._set_share}

    def _set_share(self, asked: dict[str, str]) -> Step:
        self.share = float(asked["value"])
        return ok(f"{self.share}", "text/plain")


class BenchFeed:
    """One feed.  Whether a repeated request finds a new item follows from its name and how often it was asked: no chance in it."""

    __slots__ = ("_asked", "_key", "_place", "_version", "_world")

    def __init__(self, world: World, place: str, key: str) -> None:
        self._world, self._place, self._key = world, place, key
        self._asked = self._version = 0

    def __call__(self, request: Request) -> Step:
        if self._asked and zlib.crc32(f"{self._key} {self._asked}".encode()) % 10_000 < self._world.share * 10_000:
            self._version += 1
        self._asked += 1
        tag = f'"{self._version}"'
        if request.headers.get("if-none-match") == tag:
            return Step(304, b"", (("ETag", tag),))
        body = template(self._version, self._world.items).replace(MARK.encode(), self._place.encode())
        return Step(200, body, (("Content-Type", TYPES["rss"]), ("ETag", tag)))


def build(net: Smallnet, hosts: int = 500, feeds: int = 10, *, share: float = 0.0, items: int = ITEMS) -> World:
    """`hosts` hosts from 127.1.1.1 on, each with `feeds` feeds /0, /1, ..."""
    world = World(share, items)
    for host in net.many(hosts):
        for number in range(feeds):
            place = f"{host.address}:{net.port}/{number}"
            host.answer_with(f"/{number}", BenchFeed(world, place, f"{host.address} {number}"))
            world.outlines.append((f"Serial {place}", host.url(f"/{number}")))
    return world
