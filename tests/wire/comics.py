"""A Site of one host or a few as a value, a Lane of it as a process that can be killed, and what the Site saw in the Lanes' own time.

`python -m tests.wire.comics DATABASE_URL GAP REST HOST...` polls until it is killed, and says "looked" after each Pass.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

from lanes.core.claim import LEASE
from lanes.fetch.guard import Guard
from lanes.fetch.http import Http
from lanes.lane import Lane
from lanes.metrics import LaneMetrics
from lanes.poll import Poller
from lanes.sites import FEEDS, Site
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from tests.fix_lane import AGENT, LaneAtWork
from tests.smallnet import ALLOWED, Host, Smallnet, Visit

ROOT = Path(__file__).parents[2]


def comics(*hosts: str, gap: float, rest: timedelta = timedelta(hours=1)) -> Site:
    """A Site of these hosts; `gap` in seconds.  It is read as `feeds` are."""
    return replace(
        FEEDS, name="comics", gap=timedelta(seconds=gap), rest=rest, slots=1, many_hosts=False, hosts=tuple(hosts)
    )


def titles_of(host: Host, lane: LaneAtWork, count: int) -> list[str]:
    """Series of one host of the Lane's Site, all new and due at once."""
    for n in range(count):
        host.feed(f"/{n}", ["One"])
    return [lane.follow(host.url(f"/{n}"), site=lane.site) for n in range(count)]


class Seen:
    """What the small internet saw since `look` was last called, at instants of lanes.now(), however the test moves it in between."""

    def __init__(self, net: Smallnet, lane: LaneAtWork) -> None:
        self._net, self._lane = net, lane
        self.at: list[float] = []
        self.paths: list[str] = []

    def look(self) -> list[Visit]:
        """The new visits; to be called before the clock is moved."""
        offset = float(self._lane.one("SELECT extract(epoch FROM test_offset) AS it FROM lanes.clock").it)
        new = self._net.record[len(self.at) :]
        self.at += [visit.wall + offset for visit in new]
        self.paths += [visit.path for visit in new]
        return new

    def spacings(self) -> list[float]:
        """Seconds from start to start."""
        return [later - earlier for earlier, later in pairwise(self.at)]


def open_at(lane: LaneAtWork) -> None:
    """Moves time to where the Gap and the hosts of the Lane's Site are open, and no further."""
    found = lane.one(
        "SELECT greatest(l.next_at, (SELECT min(greatest(next_at, busy_until, not_before)) FROM lanes.hosts h WHERE site = l.site "
        "AND EXISTS (SELECT FROM lanes.series s WHERE s.queue_host_id = h.id))) AS at FROM lanes.lanes l WHERE l.site = %s",
        lane.site.name,
    )
    lane.move_to(found.at)


@contextmanager
def process(url: str, site: Site) -> Iterator[subprocess.Popen[str]]:
    """A Lane as a process, killed at the end wherever it is."""
    assert site.gap is not None
    given = [url, str(site.gap.total_seconds()), str(site.rest.total_seconds()), *site.hosts]
    running = subprocess.Popen(
        [sys.executable, "-m", "tests.wire.comics", *given], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        yield running
    finally:
        running.kill()
        running.communicate(timeout=30)


def _poll_until_killed(url: str, gap: str, rest: str, hosts: list[str]) -> None:
    site = comics(*hosts, gap=float(gap), rest=timedelta(seconds=float(rest)))
    store = PollStore(Database(url, application="a Lane to be killed"), site.name, "machine", many_hosts=False)
    store.enrol()
    poller = Poller(site, store, Http(AGENT, Guard([str(ALLOWED)])), LEASE)
    lane = Lane(site, store, poller, LaneMetrics(site.name, site.slots), slots=site.slots)
    with suppress(BrokenPipeError):
        while True:
            lane.run_once()
            print("looked", flush=True)
            time.sleep(0.05)


if __name__ == "__main__":
    _poll_until_killed(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
