"""Fixture: the browser's sidecar played by a script: it takes pages, sends them when it is allowed to, and comes to what the test says.

Owns the script and the instants at which it was allowed to send: politeness is asserted from `sidecar.sends`.  Refuses to own: Chrome, of
which there is none here, and the rows, which are `ServingStore`'s.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from itertools import pairwise

import psycopg
import pytest

from lanes.core.pages import Opened, PageAsked, Shown
from lanes.sites import Rendering, Site
from lanes.store.browsing import ServingStore
from lanes.store.pool import Database
from tests.fix_lane import LaneAtWork, MakeLane
from tests.wire.comics import comics
from tests.wire.documents import chapters, rss

VERSION = "Chrome/1"
FEED = {"content-type": "application/rss+xml; charset=utf-8"}


class Fate(Enum):
    """What becomes of a page that is not answered: before its request was written, or after."""

    SILENT_UNSENT = auto()
    SILENT = auto()
    LOST_UNSENT = auto()
    LOST = auto()
    GONE_UNSENT = auto()  # the sidecar was killed, and its successor starts
    GONE = auto()

    @property
    def unsent(self) -> bool:
        return self.name.endswith("UNSENT")


Deed = Opened | Fate | Callable[[PageAsked], Opened]


@dataclass(frozen=True, slots=True)
class SentPage:
    """A page that the sidecar was allowed to send, and when it did, by lanes.now()."""

    site: str
    url: str
    at: datetime


def shown(asked: PageAsked) -> Shown:
    """The page that was asked for, with three Chapters."""
    return Shown(200, FEED, asked.url, rss(chapters(1, 3)).encode())


class Ticks:
    """Monotonic time: a process's own, and as much more as a test says has passed."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


class Sidecar:
    """It lives, and Chrome is awake, unless it is told otherwise; a page that nothing is said about is a good one."""

    def __init__(self, url: str) -> None:
        self._database = Database(url, application="the sidecar")
        self._connection = psycopg.connect(url, autocommit=True)
        self._scripts: dict[str, list[Deed]] = {}
        self.store = ServingStore(self._database)
        self.sends: list[SentPage] = []
        self.ticks = Ticks()
        self.store.begin(VERSION)
        self.beat()

    def close(self) -> None:
        self._connection.close()
        self._database.close()

    def beat(self, *, awake: bool = True) -> None:
        """It lives."""
        self.store.beat(awake=awake, version=VERSION)

    def script(self, url: str, *deeds: Deed) -> None:
        """What becomes of the page at this URL, time after time; the last of it for ever."""
        self._scripts[url] = list(deeds)

    def now(self) -> datetime:
        row = self._connection.execute("SELECT lanes.now()").fetchone()
        assert row is not None
        found: datetime = row[0]
        return found

    def pass_by(self, step: timedelta) -> None:
        """So much time passes, by every clock, and the sidecar has lived all along."""
        self.leap(step)
        self.ticks.ahead += step.total_seconds()

    def leap(self, step: timedelta) -> None:
        """Only the clock of Postgres goes on by so much; the sidecar lives."""
        self._connection.execute(
            "WITH beat AS (UPDATE lanes.browser SET heartbeat_at = heartbeat_at + %s) "
            "UPDATE lanes.clock SET test_offset = test_offset + %s",
            (step, step),
        )

    def take(self) -> PageAsked | None:
        """A tab takes a page, and Chrome is awake for it."""
        taken = self.store.take()
        if taken is not None:
            self.beat()
        return taken

    def send(self, asked: PageAsked) -> bool:
        """Sends a page as soon as it may be; whether it may."""
        wait = self.store.sending(asked.token)
        if wait is None:
            return False
        self.pass_by(wait)
        self.sends.append(SentPage(asked.site, asked.url, self.now()))
        return True

    def serve_one(self) -> bool:
        """Takes a page and does with it what its script says; whether there was one."""
        if (asked := self.take()) is None:
            return False
        script = self._scripts.get(asked.url, [shown])
        deed = script.pop(0) if len(script) > 1 else script[0]
        if (isinstance(deed, Fate) and deed.unsent) or self.send(asked):
            self._end(asked, deed)
        return True

    def _end(self, asked: PageAsked, deed: Deed) -> None:
        match deed:
            case Fate.SILENT | Fate.SILENT_UNSENT:
                pass
            case Fate.LOST | Fate.LOST_UNSENT:
                self.store.lose()
            case Fate.GONE | Fate.GONE_UNSENT:
                self.store.begin(VERSION)
                self.beat()
            case _:
                self.store.answer(asked.token, deed(asked) if callable(deed) else deed)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """It serves in a thread meanwhile."""
        stop, bell, faults = threading.Event(), self.store.bell(), list[Exception]()

        def serve() -> None:
            try:
                while not stop.is_set():
                    if not self.serve_one():
                        bell.wait(0.05)
            except Exception as fault:
                faults.append(fault)

        thread = threading.Thread(target=serve, name="sidecar")
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(30)
            bell.close()
        assert not thread.is_alive(), "the sidecar did not stop"
        assert not faults, faults

    def spacings(self, site: str) -> list[float]:
        """Seconds between the pages of a Site, from send to send."""
        sent = [page.at for page in self.sends if page.site == site]
        return [(later - earlier).total_seconds() for earlier, later in pairwise(sent)]


@pytest.fixture
def sidecar(database_url: str) -> Iterator[Sidecar]:
    """The sidecar of the test's database."""
    sidecar = Sidecar(database_url)
    yield sidecar
    sidecar.close()


def page_site(name: str, *hosts: str, gap: float = 10, rest: timedelta = timedelta(hours=1)) -> Site:
    """A Site that is read through the browser, of these hosts; none: of one that has its name.  `gap` in seconds."""
    return replace(
        comics(*(hosts or (f"{name}.test",)), gap=gap, rest=rest), name=name, feed=False, rendering=Rendering("main")
    )


def pages_of(lane: LaneAtWork, count: int, first: int = 0) -> list[str]:
    """Series of the Lane's first host, all new and due at once: their keys, in the order of their paths /0, /1, ..."""
    host = lane.site.hosts[0]
    return [lane.follow(f"http://{host}/{n}", site=lane.site) for n in range(first, first + count)]


MakePageLane = Callable[..., tuple[LaneAtWork, list[str]]]


@pytest.fixture
def make_page_lane(make_lane: MakeLane, sidecar: Sidecar) -> MakePageLane:
    """Makes a Lane that is read through the browser, and its Series: `make_page_lane("panels", 3)`.  Its time is the sidecar's."""

    def make(name: str, count: int, machine: str = "machine-1", gap: float = 10) -> tuple[LaneAtWork, list[str]]:
        lane = make_lane(machine, site=page_site(name, gap=gap), slots=1, ticks=sidecar.ticks)
        return lane, pages_of(lane, count)

    return make
