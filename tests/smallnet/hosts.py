"""One host of the small internet, as a test describes it.

Owns what a host answers: pages, feeds, scripts, holds.  Refuses to own: listening (`net`), bytes (`wire`).  Must never break: anything may
be changed at any time from any thread, and acts on the next request.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

from .feeds import Feed, Kind, Page, Post, Request
from .steps import NOTHING_HERE, SomeHeaders, Step

if TYPE_CHECKING:
    from .net import Listener, Smallnet

EVERY_PATH = "*"

Answerer = Callable[[Request], Step]
Answering = Step | Answerer


class Hold:
    """Requests to a path wait until `release`.  `arrived` is set when the first one waits.  Also a context manager that releases."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.arrived = threading.Event()
        self._loop = loop
        self._gates: list[asyncio.Future[None]] = []
        self._open = False

    def passed(self) -> asyncio.Future[None]:
        """Done when the hold is over (called by the server)."""
        gate = self._loop.create_future()
        if self._open:
            gate.set_result(None)
        self._gates.append(gate)
        self.arrived.set()
        return gate

    def release(self) -> None:
        """Let all go on, and everyone after them.  They get what the path answers then."""
        self._loop.call_soon_threadsafe(self._let_go)

    def _let_go(self) -> None:
        self._open = True
        for gate in self._gates:
            if not gate.done():
                gate.set_result(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class Script:
    """Answers in order; the last repeats."""

    def __init__(self, steps: Sequence[Answering]) -> None:
        self._steps = list(steps)
        if not self._steps:
            raise ValueError("a script needs at least one step")

    def __call__(self, request: Request) -> Step:
        step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        return step if isinstance(step, Step) else step(request)


class Host:
    """One host.  What it answers may be changed at any time, from any thread."""

    def __init__(self, net: Smallnet, address: str, name: str | None, listener: Listener) -> None:
        self.net, self.address, self.name, self.listener = net, address, name, listener
        self.key = name or address
        self.feeds: dict[str, Feed] = {}
        self._usual: dict[str, Answerer] = {}
        self._scripts: dict[str, Script] = {}
        self._holds: dict[str, Hold] = {}

    def url(self, path: str = "/feed") -> str:
        """The absolute URL of a path, by name where the host has one (dial it with `net.resolver`), else by address."""
        shown = self.name or (f"[{self.address}]" if ":" in self.address else self.address)
        return f"{self.listener.scheme}://{shown}:{self.net.port}{path}"

    def feed(
        self, path: str = "/feed", items: Iterable[Post | str] = (), *, kind: Kind = "rss", **options: Any
    ) -> Feed:
        """Publish a feed here.  `items` oldest first, as titles or Posts; options as of `Feed` (title, etag, keep, channel, ...)."""
        feed = Feed(self.url(path), items, kind=kind, **options)
        self.feeds[path] = feed
        self._usual[path] = feed
        return feed

    def publish(self, path: str, post: Post | str) -> Post:
        """Add the newest item to the feed at `path`."""
        return self.feeds[path].publish(post)

    def page(
        self,
        path: str,
        body: bytes | str,
        content_type: str = "text/html; charset=utf-8",
        *,
        etag: str | None = None,
        last_modified: str | None = None,
        headers: SomeHeaders = (),
    ) -> None:
        """Serve these bytes at `path`, with 304s where it has validators."""
        self._usual[path] = Page(body, content_type, etag=etag, last_modified=last_modified, headers=headers)

    def robots(self, text: bytes | str) -> None:
        """Serve this robots.txt (without one, 404)."""
        self.page("/robots.txt", text, "text/plain")

    def answer_with(self, path: str, answerer: Answerer) -> None:
        """Answer `path` (or every undescribed one: "*") by calling this, in the server's thread."""
        self._usual[path] = answerer

    def script(self, path: str, steps: Answering | Sequence[Answering]) -> None:
        """Answer `path` (or every unscripted one: "*") with these in order, the last again and again.  AS_USUAL is what it was before."""
        self._scripts[path] = Script([steps] if isinstance(steps, Step) or callable(steps) else steps)

    def unscript(self, path: str) -> None:
        """Answer as usual again."""
        self._scripts.pop(path, None)

    def hold(self, path: str) -> Hold:
        """Keep requests to `path` (or "*") waiting from now on, until the hold is released."""
        hold = self._holds[path] = self.net.new_hold()
        return hold

    def down(self, *, hang_up: bool = True) -> None:
        """Refuse connections from now on; `hang_up` also resets those there are.  All names at the address share its fate."""
        self.listener.stop(hang_up=hang_up)

    def black_hole(self) -> None:
        """Let connection attempts go unanswered: neither accepted nor refused."""
        self.listener.stop(hang_up=True)
        self.listener.swallow()

    def up(self) -> None:
        """Listen again."""
        self.listener.start()

    def hang_up(self) -> None:
        """Reset every open connection, idle or not."""
        self.listener.hang_up()

    def hold_on(self, path: str) -> Hold | None:
        """The hold that a request to `path` meets."""
        return self._holds.get(path) or self._holds.get(EVERY_PATH) if self._holds else None

    def answer(self, request: Request) -> Step:
        """The answer that is due now."""
        path = request.path
        script = (self._scripts.get(path) or self._scripts.get(EVERY_PATH)) if self._scripts else None
        step = script(request) if script is not None else None
        if step is not None and not step.as_usual:
            return step
        answerer = self._usual.get(path) or self._usual.get(EVERY_PATH)
        usual = answerer(request) if answerer is not None else NOTHING_HERE
        return usual if step is None or not step.delay else usual.after(step.delay)
