"""A scripted origin: hosts of two feeds each, and the moods in which they answer.

Owns what is answered, and that each answer is kept in the order of arrival.  Refuses to own: what follows from it (`tests.witness`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import count

from tests.smallnet import Feed, Request, Smallnet, Step, never, not_modified, ok, redirect, reset, status

PATHS = ("/one", "/two")
MOVED = "/moved"
"""Below it each host serves the feeds of others, for redirects: `/moved/b.test/two`."""
FORBIDDEN = "127.2.0.9"
CHALLENGE_PAGE = "<html><title>Just a moment...</title><script src='/cdn-cgi/challenge-platform/x.js'></script></html>"


class Mood(StrEnum):
    """How a feed is answered for."""

    WELL = "well"
    NO_VALIDATORS = "200 without validators"
    NOT_MODIFIED = "304 whatever is asked"
    EMPTY = "a feed without items"
    NOT_FOUND = "404"
    NOT_FOUND_FOR = "404, Retry-After 10 min"
    GONE = "410"
    FORBIDDEN = "403"
    FORBIDDEN_FOR = "403, Retry-After 1 h"
    CHALLENGE = "200 and a challenge"
    BUSY = "429"
    BUSY_FOR = "429, Retry-After 2 min"
    BUSY_FOR_A_DAY = "429, Retry-After 24 h"
    ERROR = "500"
    ERROR_FOR = "500, Retry-After 10 min"
    UNAVAILABLE = "503"
    UNAVAILABLE_FOR = "503, Retry-After 25 min"
    SILENT = "no answer"
    RESET = "reset"
    MOVED = "301 on this host"
    FOUND = "302 on this host"
    MOVED_AWAY = "301 to another host"
    FOUND_AWAY = "302 to another host"
    FOUND_AT_COMICS = "302 to the host of another Site"
    MOVED_TO_TWIN = "301 to another Series"
    FORBIDDEN_PLACE = "302 to an address that is not public"


REFUSES = frozenset({Mood.FORBIDDEN, Mood.FORBIDDEN_FOR, Mood.CHALLENGE})
ASKS_TO_WAIT = frozenset({Mood.BUSY, Mood.BUSY_FOR, Mood.BUSY_FOR_A_DAY, Mood.UNAVAILABLE_FOR})
LEADS_ON = frozenset(
    {
        Mood.MOVED,
        Mood.FOUND,
        Mood.MOVED_AWAY,
        Mood.FOUND_AWAY,
        Mood.FOUND_AT_COMICS,
        Mood.MOVED_TO_TWIN,
        Mood.FORBIDDEN_PLACE,
    }
)
GOOD = frozenset({Mood.WELL, Mood.NO_VALIDATORS})
RETRY_AFTER: Mapping[Mood, int] = {
    Mood.NOT_FOUND_FOR: 600,
    Mood.FORBIDDEN_FOR: 3600,
    Mood.BUSY_FOR: 120,
    Mood.BUSY_FOR_A_DAY: 86_400,
    Mood.ERROR_FOR: 600,
    Mood.UNAVAILABLE_FOR: 1500,
}
"""Seconds."""

_PLAIN: Mapping[Mood, Callable[[], Step]] = {
    Mood.NOT_MODIFIED: not_modified,
    Mood.NOT_FOUND: lambda: status(404, "<html><title>Not found</title>"),
    Mood.NOT_FOUND_FOR: lambda: status(404, retry_after=RETRY_AFTER[Mood.NOT_FOUND_FOR]),
    Mood.GONE: lambda: status(410),
    Mood.FORBIDDEN: lambda: status(403),
    Mood.FORBIDDEN_FOR: lambda: status(403, retry_after=RETRY_AFTER[Mood.FORBIDDEN_FOR]),
    Mood.CHALLENGE: lambda: ok(CHALLENGE_PAGE, "text/html"),
    Mood.BUSY: lambda: status(429),
    Mood.BUSY_FOR: lambda: status(429, retry_after=RETRY_AFTER[Mood.BUSY_FOR]),
    Mood.BUSY_FOR_A_DAY: lambda: status(429, retry_after=RETRY_AFTER[Mood.BUSY_FOR_A_DAY]),
    Mood.ERROR: lambda: status(500),
    Mood.ERROR_FOR: lambda: status(500, retry_after=RETRY_AFTER[Mood.ERROR_FOR]),
    Mood.UNAVAILABLE: lambda: status(503),
    Mood.UNAVAILABLE_FOR: lambda: status(503, retry_after=RETRY_AFTER[Mood.UNAVAILABLE_FOR]),
    Mood.SILENT: never,
    Mood.RESET: reset,
}


class Robots(StrEnum):
    """How robots.txt is answered for."""

    NONE = "no robots.txt"
    SLOW = "Crawl-delay: 7"
    SLOWER = "Crawl-delay: 40"
    DISALLOW = "Disallow: /"
    ERROR = "robots.txt: 500"
    BUSY = "robots.txt: 429, Retry-After 5 min"


CRAWL_DELAY: Mapping[Robots, float] = {Robots.SLOW: 7.0, Robots.SLOWER: 40.0}
ROBOTS_RETRY_AFTER = 300


@dataclass(frozen=True, slots=True)
class Given:
    """One answer that was given: to which path, and in which mood (of robots.txt or of a feed)."""

    path: str
    mood: Mood | Robots


class Origin:
    """One host.  `given` has its answers in the order in which they were asked for."""

    def __init__(self, net: Smallnet, address: str, name: str, world: dict[str, Origin]) -> None:
        self.name, self.address, self._world = name, address, world
        self.host = net.host(address, name)
        self.feeds = {path: Feed(self.host.url(path), [f"{name}{path} 0"]) for path in PATHS}
        self.moods = dict.fromkeys((*PATHS, MOVED), Mood.WELL)
        self.robots = Robots.NONE
        self.away = self.twin = self.comics = ""
        self.given: list[Given] = []
        self._numbers = count(1)
        self.host.answer_with("*", self._answer)

    def publish(self, path: str) -> None:
        self.feeds[path].publish(f"{self.name}{path} {next(self._numbers)}")

    def titles(self, path: str) -> set[str]:
        """What the feed shows."""
        return {post.title for post in self.feeds[path].posts}

    def heal(self) -> None:
        self.robots = Robots.NONE
        self.moods = dict.fromkeys(self.moods, Mood.WELL)

    def _answer(self, request: Request) -> Step:
        path = request.path
        if path == "/robots.txt":
            self.given.append(Given(path, self.robots))
            return _robots(self.robots)
        mood = self.moods[MOVED if path.startswith(MOVED) else path]
        self.given.append(Given(path, mood))
        return self._in(mood, request)

    def _in(self, mood: Mood, request: Request) -> Step:
        if mood in _PLAIN:
            return _PLAIN[mood]()
        feed, name, path = self._feed(request.path)
        onward = f"{MOVED}/{name}{path}"
        code = 301 if mood in (Mood.MOVED, Mood.MOVED_AWAY, Mood.MOVED_TO_TWIN) else 302
        match mood:
            case Mood.NO_VALIDATORS:
                return ok(feed.body)
            case Mood.EMPTY:
                return ok(Feed(feed.url).body)
            case Mood.MOVED | Mood.FOUND:
                return redirect(self.host.url(onward), code)
            case Mood.MOVED_AWAY | Mood.FOUND_AWAY:
                return redirect(self._world[self.away].host.url(onward), code)
            case Mood.FOUND_AT_COMICS:
                return redirect(self._world[self.comics].host.url(onward), code)
            case Mood.MOVED_TO_TWIN:
                return redirect(self._world[self.twin].host.url(path), code)
            case Mood.FORBIDDEN_PLACE:
                return redirect(f"http://{FORBIDDEN}:{self.host.net.port}{path}", code)
            case _:
                return feed(request)

    def _feed(self, path: str) -> tuple[Feed, str, str]:
        if not path.startswith(MOVED):
            return self.feeds[path], self.name, path
        name, _, rest = path.removeprefix(f"{MOVED}/").partition("/")
        return self._world[name].feeds[f"/{rest}"], name, f"/{rest}"


def _robots(mood: Robots) -> Step:
    match mood:
        case Robots.NONE:
            return status(404)
        case Robots.SLOW | Robots.SLOWER | Robots.DISALLOW:
            return ok(f"User-agent: *\n{mood.value}\n", "text/plain")
        case Robots.ERROR:
            return status(500)
        case Robots.BUSY:
            return status(429, retry_after=ROBOTS_RETRY_AFTER)
