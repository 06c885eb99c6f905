"""Browser Lanes and their sidecar for store tests: no Chrome, no network, no thread, only the two sides of the rows.

Owns good defaults and the passing of time under a sidecar that lives.  Refuses to own: what is right about any of it.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import timedelta

from lanes.core.claim import Claim
from lanes.core.pages import LEASE, PageAsked, Shown
from lanes.store.browsing import AskingStore, ServingStore, Standing
from lanes.store.polls import Claimed, PollStore
from lanes.store.pool import Database
from tests.fix_database import Clock
from tests.one_host import GAP, REST
from tests.rows import Rows

SECOND = timedelta(seconds=1)
PAGE = Shown(200, {"content-type": "text/html"}, "https://host.test/", b"<main>One</main>")


@dataclass(frozen=True, slots=True)
class PageLane:
    """A Lane that reads its Site through the browser."""

    site: str
    store: PollStore
    asking: AskingStore

    def in_hand(self) -> Claim:
        """The claim of the next Poll; there is one."""
        for _ in range(20):
            if isinstance(turn := self.store.claim(LEASE, REST, None), Claimed):
                return turn.claim
        raise AssertionError("nothing can be claimed")

    def ask(self, claim: Claim, *, suspect: bool = False) -> Standing:
        """Asks for the page of a Poll in hand."""
        asked = PageAsked(claim.token, self.site, claim.url, (claim.host,), "main")
        return self.asking.ask(asked, claim.host_id, suspect=suspect)

    def asked(self) -> Claim:
        """A Poll in hand whose page was asked for."""
        claim = self.in_hand()
        standing = self.ask(claim)
        assert standing.trouble is None, standing
        return claim


def a_page_lane(
    database: Database, rows: Rows, site: str = "panels", *, machine: str = "here", series: int = 1, hosts: int = 1
) -> PageLane:
    """A Lane, with as many due Series on as many hosts, and its Gap in force."""
    store = PollStore(database, site, machine, many_hosts=False, browser=True)
    store.enrol()
    rows.enrol(site, gap=GAP)
    for _ in range(hosts):
        host = rows.host(site=site)
        for _ in range(series):
            rows.series(host, site, rest=None)
    return PageLane(site, store, AskingStore(database, site))


def pass_by(clock: Clock, serving: ServingStore, step: timedelta) -> None:
    """So much time passes; the sidecar is alive at its end."""
    clock.advance(step)
    serving.beat(awake=True, version=None)


def ends_or_waits(rows: Rows, future: Future[object]) -> None:
    """Returns once another thread has its answer, or waits for a lock."""
    deadline = time.monotonic() + 20
    while not future.done() and time.monotonic() < deadline:
        if rows.one(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        ):
            return
    assert future.done(), "it neither ended nor waited"
