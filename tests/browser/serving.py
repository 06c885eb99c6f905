"""The serving loop at work beside a browser that does what a test says, or any other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from browser_sidecar.browser import Browser
from browser_sidecar.metrics import SidecarMetrics
from browser_sidecar.page import Sending, Visit
from browser_sidecar.rhythm import Rhythm
from browser_sidecar.sidecar import Sidecar
from lanes.core.pages import PageAsked, Shown
from lanes.store.browsing import ServingStore
from lanes.store.pool import Database
from lanes.store.turn import Turn
from tests.browser.rows import Rows

QUICK = Rhythm(beat=0.05, idle=300.0)
PAGE = Shown(200, {"content-type": "text/html"}, "http://site.test/", b"<p class=chapter>One</p>")


@dataclass
class Scripted:
    """A browser: what a page comes to is `deed`, which may wait, raise, or be None."""

    deed: Callable[[PageAsked], object] = lambda _: PAGE
    fault: Exception | None = None
    """What ends every page before it is sent."""
    later: float = 0.0
    leaves: bool = False
    """Whether it ends no page."""
    lacking: str | None = None
    weight: int = 1
    version: str | None = "156.0"
    not_held: str | None = None
    is_awake: bool = False
    dead: str | None = None
    opened: list[str] = field(default_factory=list)
    ended: int = 0
    """How often it was given up while awake."""
    taken_over: int = 0
    ends: threading.Event | None = None
    """Set when it is given up."""

    def lack(self) -> str | None:
        return self.lacking

    def open(self, asked: PageAsked, sending: Sending, taken: float) -> Visit:
        self.opened.append(asked.url)
        if self.fault is not None:
            raise self.fault
        self.is_awake = True
        if sending(taken + 60) is None:
            return Visit(None)
        return Visit(self.deed(asked), self.later, received=10, is_left=self.leaves)  # type: ignore[arg-type]

    def died(self) -> str | None:
        return self.dead

    def give_up(self) -> bool:
        awake, self.is_awake, self.dead = self.is_awake, False, None
        self.ended += awake
        if self.ends is not None:
            self.ends.set()
        return awake

    def memory(self) -> int:
        return self.weight

    def take_over(self) -> None:
        self.taken_over += 1

    def keep_house(self) -> None:
        return

    def close(self) -> None:
        self.give_up()


class Serving:
    """A sidecar at work in a thread."""

    def __init__(self, url: str, browser: Browser, rhythm: Rhythm = QUICK, tabs: int = 1) -> None:
        self.browser = browser
        self.database = Database(url, application="the sidecar")
        self.turn = Turn(url, "browser")
        self.store = ServingStore(self.database)
        self.metrics = SidecarMetrics(tabs)
        self.sidecar = Sidecar(self.store, self.turn, browser, self.metrics, tabs=tabs, rhythm=rhythm)
        self._bell = self.store.bell()
        self._thread = threading.Thread(target=self.sidecar.run, args=(self._bell,), name="sidecar")
        self._thread.start()

    def stop(self) -> None:
        if self.sidecar.stopping and not self._thread.is_alive():
            return
        self.sidecar.stop()
        self._thread.join(60)
        assert not self._thread.is_alive()
        self.sidecar.finish()
        self._bell.close()
        self.turn.leave()
        self.database.close()

    def count(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0


@contextmanager
def serving(rows: Rows, browser: Browser, rhythm: Rhythm = QUICK, tabs: int = 1) -> Iterator[Serving]:
    serving = Serving(rows.url, browser, rhythm, tabs)
    try:
        rows.wait_for("SELECT FROM lanes.browser WHERE heartbeat_at > '-infinity' OR trouble IS NOT NULL")
        yield serving
    finally:
        serving.stop()


def held(gate: threading.Event, then: object = PAGE) -> Callable[[PageAsked], object]:
    """A page that waits."""

    def deed(_: PageAsked) -> object:
        assert gate.wait(60)
        return then

    return deed
