"""The hosts of the chaos proof, what they publish, and what they told us to wait.

Owns the truth of which Chapter came out when and where.  Refuses to own: how hosts misbehave (`weather`).  Must never break: no Chapter is
ever taken from its feed, and no title is used twice in one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from random import Random
from urllib.parse import urlsplit

from tests.smallnet import Feed, Host, Smallnet
from tests.smallnet.feeds import Kind, Request
from tests.smallnet.steps import Step

KINDS: tuple[Kind, ...] = ("rss", "atom", "json")
CRAWL_DELAYS = (2, 3)
"""Seconds that every tenth host's robots.txt demands."""


@dataclass(slots=True)
class Followed:
    """One feed that is a Series, `published` being its titles with the wall instant from which they may have been seen."""

    host: Host
    path: str
    feed: Feed
    published: dict[str, float] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.host.url(self.path)

    def publish(self) -> str:
        """The next Chapter."""
        title = f"Part {len(self.published) + 1} of {self.host.key}{self.path}"
        self.published[title] = time.time()
        self.feed.publish(title)
        return title


@dataclass(frozen=True, slots=True)
class Told:
    """A host answered with this status and, perhaps, named how many seconds to stay away."""

    at: float
    host: str
    path: str
    status: int
    seconds: float | None


class World:
    """`hosts` hosts, each on an address of its own, and `series` feeds spread evenly over them."""

    def __init__(self, net: Smallnet, random: Random, series: int, hosts: int) -> None:
        self.net, self.random = net, random
        self.hosts = net.many(hosts)
        self.followed: list[Followed] = []
        self.told: list[Told] = []
        self.crawl_delays: dict[str, float] = {}
        for number in range(series):
            self._found(self.hosts[number % hosts], number)
        for number, host in enumerate(self.hosts):
            if number % 10 == 3:
                delay = random.choice(CRAWL_DELAYS)
                self.crawl_delays[host.key] = delay
                host.robots(f"User-agent: *\nCrawl-delay: {delay}\n")

    def _found(self, host: Host, number: int) -> None:
        path = f"/serials/{number}"
        feed = host.feed(path, kind=KINDS[number % 3], title=f"Serial {number}", keep=1_000_000)
        followed = Followed(host, path, feed)
        for _ in range(self.random.randint(1, 4)):
            followed.publish()
        self.followed.append(followed)

    @property
    def outlines(self) -> list[tuple[str, str]]:
        """(title, URL) for the OPML."""
        return [(each.feed.title, each.url) for each in self.followed]

    def publish(self) -> None:
        """Somewhere a Chapter comes out."""
        self.random.choice(self.followed).publish()

    def mirrored(self, host: Host, path: str) -> str:
        """The URL of another host where the same document is served."""
        other = self.random.choice([each for each in self.hosts if each is not host])
        mirror = f"/mirrors/{urlsplit(host.url(path)).hostname}{path}"
        other.answer_with(mirror, host.feeds[path])
        return other.url(mirror)

    def tell(self, host: Host, request: Request, step: Step, seconds: float | None) -> Step:
        """Notes what this answer asks of us."""
        self.told.append(Told(time.time(), host.key, request.path, step.status, seconds))
        return step

    @property
    def chapters(self) -> int:
        """How many came out in all."""
        return sum(len(each.published) for each in self.followed)
