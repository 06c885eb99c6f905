"""What the sidecar tells Prometheus and whoever asks whether it is well.

Owns its table of metrics.  Refuses to own: the endpoint (`lanes.metrics`) and any row.  Must never break: every series is there from the
start, and its labels come from a closed set.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from browser_sidecar.page import Lost, Visit
from lanes import __version__
from lanes.core.answer import Trouble
from lanes.core.pages import NotShown, Shown
from lanes.metrics import BUILD, GAUGES, Health
from lanes.store.browsing import Loss

OUTCOMES: Final = ("shown", "held", "forbidden", "lost", "unwanted", *(trouble.value for trouble in Trouble))
"""What a page can come to.  unwanted: its Poll was over before anything was sent; lost: with the browser."""
PAGES: Final = ("browser_pages_total", "Pages that a tab took, by what they came to.")
PAGE_SECONDS: Final = ("browser_page_seconds", "Seconds that a page had a tab, from its taking to its answer.")
PAGE_BUCKETS: Final = (1.0, 3.0, 6.0, 10.0, 20.0, 40.0, 80.0, 120.0)  # s: up to the time that a page has
COUNTERS: Final = {
    "browser_restarts_total": "Times that Chrome was ended to be started afresh: after so many pages, or past its memory bound.",
    "browser_lost_total": "Times that this sidecar found the browser lost.",
    "browser_received_bytes_total": "Bytes that pages drew through the proxy, on the wire.",
    "browser_forbidden_total": "Times that a page asked for an address that may not be dialled.",
}
BROWSER_GAUGES: Final = {
    "browser_up": "1 while pages can be opened by this sidecar, else 0 (it stands by, Chrome is missing or does not start, or it is lost).",
    "browser_awake": "1 while Chrome runs.",
    "browser_tabs": "Pages that are opened at a time, at most.",
    "browser_tabs_in_use": "Pages that have a tab.",
    "browser_memory_bytes": "What all processes of Chrome take, weighed once a minute; 0: it sleeps, or runs elsewhere.",
    "browser_lost_until_timestamp_seconds": "When a browser that was lost is asked again (Unix time), as its row says; 0: it is not lost.",
    "lanes_database_up": GAUGES["lanes_database_up"],
}


class SidecarMetrics:
    """The metrics and the health of the sidecar; safe for threads."""

    def __init__(self, tabs: int) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self._since = datetime.now(UTC)
        self._database: str | None = None
        self._state, self._well = "starting", True
        self._tabs = tabs
        self._last_page: datetime | None = None
        pages = Counter(*PAGES, ("outcome",), registry=self.registry)
        self._pages = {outcome: pages.labels(outcome) for outcome in OUTCOMES}
        self._seconds = Histogram(*PAGE_SECONDS, buckets=PAGE_BUCKETS, registry=self.registry)
        self._counters = {name: Counter(name, text, registry=self.registry) for name, text in COUNTERS.items()}
        self._gauges = {name: Gauge(name, text, registry=self.registry) for name, text in BROWSER_GAUGES.items()}
        self._gauges["browser_tabs"].set(tabs)
        Gauge(*BUILD, ("version",), registry=self.registry).labels(__version__).set(1)

    def page_ended(self, visit: Visit, seconds: float) -> None:
        """A tab is done with a page."""
        self._pages[_outcome(visit)].inc()
        self._seconds.observe(seconds)
        self._counters["browser_received_bytes_total"].inc(visit.received)
        self._counters["browser_forbidden_total"].inc(visit.forbidden)
        self._last_page = datetime.now(UTC)

    def lost(self) -> None:
        """The browser was lost."""
        self._counters["browser_lost_total"].inc()

    def lost_until(self, loss: Loss | None) -> None:
        """Until when nobody asks anything of the browser, as its row says."""
        self._gauges["browser_lost_until_timestamp_seconds"].set(0 if loss is None else loss.until.timestamp())

    def restarted(self) -> None:
        """Chrome was ended to be started afresh."""
        self._counters["browser_restarts_total"].inc()

    def stands(self, state: str, *, up: bool, awake: bool, in_use: int, well: bool | None = None) -> None:
        """How it is, in words, and whether pages can be opened.  `well`: whether that is as it should be; None: where they can."""
        self._state, self._well = state, up if well is None else well
        self._gauges["browser_up"].set(up)
        self._gauges["browser_awake"].set(awake)
        self._gauges["browser_tabs_in_use"].set(in_use)

    def weighs(self, memory: int) -> None:
        """Bytes that Chrome takes."""
        self._gauges["browser_memory_bytes"].set(memory)

    def database(self, *, up: bool) -> None:
        """Postgres answered, or did not."""
        if up:
            self._database = "up"
        elif self._database in (None, "up"):
            self._database = f"away since {datetime.now(UTC).isoformat(timespec='seconds')}"
        self._gauges["lanes_database_up"].set(up)

    def health(self) -> Health:
        """Well while whoever asks for a page can have it, or another sidecar serves, or there is no Chrome here and none was asked for by
        a setting, which is as good as no browser at all (DESIGN 7)."""
        reached = self._database == "up"
        state = self._state if reached else "waiting for Postgres"
        ok = reached and self._well
        return Health(ok, "browser", None, self._since, state, self._database or "not reached yet", self._last_page)


def _outcome(visit: Visit) -> str:
    match visit.came:
        case None:
            return "unwanted"
        case Lost():
            return "lost"
        case Shown(held=held):
            return "shown" if held is None else "held"
        case NotShown(forbidden=str()):
            return "forbidden"
        case NotShown(trouble=trouble):
            return trouble.value
