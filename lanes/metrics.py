"""What a process tells Prometheus and whoever asks whether it is well.

Owns the table of metrics, and the one small endpoint that serves /metrics and /health.  Refuses to own: any row.  What comes from rows
is handed in once a minute at most and never asked for by a scrape.  Must never break: labels come from closed sets, and every series
exists from the start, so that a rate or an alert never meets a hole.
"""

from __future__ import annotations

import io
import json
import logging
import os
import select
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from lanes import __version__
from lanes.core.outcome import Label
from lanes.store.polls import Gauges

log = logging.getLogger("lanes.metrics")

POLLS: Final = ("lanes_polls_total", "Polls ended, by outcome.")
COUNTERS: Final[Mapping[str, str]] = {
    "lanes_bytes_total": "Bytes received on the wire.",
    "lanes_new_chapters_total": "Chapters found that were not known before.",
    "lanes_put_backs_total": "Polls put back: they could not be carried out through no fault of their Series.",
    "lanes_leases_abandoned_total": "Leases of dead workers that this process found.",
    "lanes_host_backoffs_total": "Answers after which their host is asked more slowly.",
    "lanes_waits_obeyed_total": "Answers that named or implied a wait, which was laid on their host or Series.",
    "lanes_refusals_total": "Reads held by a challenge or a block.",
    "lanes_retirements_total": "Series given up after a Poll of this process.",
    "lanes_gap_floor_engagements_total": "Times the Site got too many Series for its Rest: only the floor of its Gap holds.",
}
FETCH_SECONDS: Final = (
    "lanes_fetch_seconds",
    "Seconds from the start of a fetch to its end, hops and their waits included.",
)
FETCH_BUCKETS: Final = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0)  # s: half decades up to the deadline of a whole fetch
GAUGES: Final[Mapping[str, str]] = {
    "lanes_behind_seconds": "How long the most overdue Series that is not held has waited past its due instant.",
    "lanes_due": "Series that are due and not held.",
    "lanes_held": "Series that are due, but kept from being polled.",
    "lanes_eligible": "Series that are polled at all.",
    "lanes_oldest_held_seconds": "How long the longest held Series has waited past its due instant.",
    "lanes_oldest_pending_seconds": "How long the oldest Check now has waited.",
    "lanes_refused_until_timestamp_seconds": "Unix time at which the last refusal window of this Lane or its hosts ends; 0: none is open.",
    "lanes_incidents_open": "Open incidents of this Site and of this machine.",
    "lanes_effective_gap_seconds": "The Gap in force; 0: the Site has none.",
    "lanes_slots": "Fetches that this process runs at a time, at most.",
    "lanes_slots_in_use": "Fetches in hand.",
    "lanes_seconds_since_last_pass": "Seconds since a Pass ended, or since the start.",
    "lanes_database_up": "1 while Postgres answers, else 0.",
}
BUILD: Final = ("lanes_build_info", "Always 1; the version is a label.")

OUTCOMES: Final[tuple[Label, ...]] = tuple(label for label in Label if label not in (Label.REDIRECTED, Label.ROBOTS))
"""What a Poll can end as: a redirected hop is only a part of one."""

RETRY: Final = 10.0  # s between two tries for a port that is taken
DEADLINE: Final = 5.0  # s for one whole request and its answer: a stuck or dripping client blocks nobody for longer

# The instant at which a counter was made is no fact of ours, and would double the series.
disable_created_metrics()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class Health:
    """What /health says.  `ok` decides between 200 and 503; instants are this machine's own clock, only to be shown."""

    ok: bool
    process: str
    site: str | None
    since: datetime
    state: str
    database: str
    last_pass: datetime | None = None

    def as_json(self) -> bytes:
        shown = {
            "ok": self.ok,
            "process": self.process,
            "site": self.site,
            "since": _shown(self.since),
            "state": self.state,
            "database": self.database,
            "last_pass": None if self.last_pass is None else _shown(self.last_pass),
            "version": __version__,
        }
        return json.dumps(shown).encode() + b"\n"


class LaneMetrics:
    """The metrics and the health of one Lane process; safe for threads.  Every series is there, at 0, from the start."""

    def __init__(self, site: str, slots: int) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self._site, self._slots = site, slots
        self._since = datetime.now(UTC)
        self._last_pass: datetime | None = None
        self._last_pass_clock = time.monotonic()
        self._database: str | None = None
        self._in_use = 0
        self._switched_off = False
        polls = Counter(*POLLS, ("site", "outcome"), registry=self.registry)
        self._polls = {label: polls.labels(site, label.value) for label in OUTCOMES}
        self._counters = {
            name: Counter(name, text, ("site",), registry=self.registry).labels(site) for name, text in COUNTERS.items()
        }
        self._gauges = {
            name: Gauge(name, text, ("site",), registry=self.registry).labels(site) for name, text in GAUGES.items()
        }
        self._fetch = Histogram(*FETCH_SECONDS, ("site",), buckets=FETCH_BUCKETS, registry=self.registry).labels(site)
        Gauge(*BUILD, ("version",), registry=self.registry).labels(__version__).set(1)
        self._gauges["lanes_slots"].set(slots)
        self._gauges["lanes_seconds_since_last_pass"].set_function(lambda: time.monotonic() - self._last_pass_clock)

    def poll_ended(
        self,
        label: Label,
        seconds: float | None,
        wire_bytes: int,
        new_chapters: int,
        backed_off: bool,
        told_to_wait: bool,
        *,
        refused: bool = False,
        retired: bool = False,
    ) -> None:
        """One Poll of this process ended.  `seconds` is the time in its fetch, None where nothing was fetched; `refused`: it was a refused
        read; `retired`: its Series was given up."""
        self._polls[label].inc()
        if seconds is not None:
            self._fetch.observe(seconds)
        counted = {
            "lanes_bytes_total": wire_bytes,
            "lanes_new_chapters_total": new_chapters,
            "lanes_put_backs_total": label is Label.PUT_BACK,
            "lanes_host_backoffs_total": backed_off,
            "lanes_waits_obeyed_total": told_to_wait,
            "lanes_refusals_total": refused,
            "lanes_retirements_total": retired,
        }
        for name, amount in counted.items():
            if amount:
                self._counters[name].inc(amount)

    def lease_abandoned(self) -> None:
        """A claim found the lease of a worker that died."""
        self._counters["lanes_leases_abandoned_total"].inc()

    def gap(self, gap: timedelta) -> None:
        """The Gap in force from now on."""
        self._gauges["lanes_effective_gap_seconds"].set(gap.total_seconds())

    def floor_engaged(self) -> None:
        """The Site got too many Series for its Rest."""
        self._counters["lanes_gap_floor_engagements_total"].inc()

    def pass_ended(self) -> None:
        """Everything that was due has been looked at."""
        self._last_pass, self._last_pass_clock = datetime.now(UTC), time.monotonic()

    def gauges(self, found: Gauges) -> None:
        """The row-derived gauges, once a minute at most."""
        self._gauges["lanes_eligible"].set(found.eligible)
        self._gauges["lanes_due"].set(found.due)
        self._gauges["lanes_held"].set(found.held)
        self._gauges["lanes_behind_seconds"].set(_seconds(found.behind))
        self._gauges["lanes_oldest_held_seconds"].set(_seconds(found.oldest_held))
        self._gauges["lanes_oldest_pending_seconds"].set(_seconds(found.oldest_pending))
        refused_until = found.refused_until
        self._gauges["lanes_refused_until_timestamp_seconds"].set(refused_until.timestamp() if refused_until else 0)
        self._gauges["lanes_incidents_open"].set(found.incidents)

    def slots_in_use(self, n: int) -> None:
        """How many fetches are in hand now."""
        self._in_use = n
        self._gauges["lanes_slots_in_use"].set(n)

    def database(self, up: bool) -> None:
        """Postgres answered, or did not."""
        if up:
            self._database = "up"
        elif self._database in (None, "up"):
            self._database = f"away since {_shown(datetime.now(UTC))}"
        self._gauges["lanes_database_up"].set(up)

    def switched_off(self) -> None:
        """The kill switch stops all claims: this process is well, and polls nothing."""
        self._switched_off = True

    def health(self) -> Health:
        """How this Lane is.  It is well while Postgres answers, and while it has been told to poll nothing."""
        ok = self._database == "up" or self._switched_off
        if self._switched_off:
            state = "polling is switched off"
        elif not ok:
            state = "waiting for Postgres"
        else:
            state = f"polling, {self._in_use} of {self._slots} slots in use" if self._in_use else "at rest"
        database = self._database or "not reached yet"
        return Health(ok, f"lane-{self._site}", self._site, self._since, state, database, self._last_pass)


class Endpoint:
    """Serves /metrics and /health, GET and HEAD alone, one short connection at a time, from one daemon thread.

    A thread, because a Lane's own blocks while it waits for a Site; only one, because nobody but Prometheus and the owner asks.  It
    sleeps in `select` without a timeout, so that being idle costs nothing.  A port that is taken is told once and tried again every
    `retry` seconds; the process goes on without.  `port` is the one bound: the one asked for, or the kernel's choice for 0.
    """

    def __init__(
        self,
        bind: str,
        port: int,
        registry: CollectorRegistry,
        health: Callable[[], Health],
        *,
        retry: float = RETRY,
        deadline: float = DEADLINE,
    ) -> None:
        self.port = port
        self._bind, self._retry = bind, retry
        self._pages = _Pages(registry, health, deadline)
        self._stopped, self._stop = os.pipe()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)
        self._server: _Server | None = None

    def start(self) -> None:
        """Binds, if the port is free, and serves until `stop`."""
        self._server = self._listen(first=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread and frees the port."""
        os.write(self._stop, b"!")
        if self._thread.ident is not None:
            self._thread.join()
        os.close(self._stop)
        os.close(self._stopped)

    def _run(self) -> None:
        while self._server is None:
            if self._woken(None, self._retry):
                return
            self._server = self._listen(first=False)
        with self._server:
            while not self._woken(self._server, None):
                self._server.handle_request()

    def _woken(self, server: _Server | None, seconds: float | None) -> bool:
        """Waits for a client or for `stop`; True when it is time to stop."""
        watched: list[Any] = [self._stopped] if server is None else [self._stopped, server]
        ready, _, _ = select.select(watched, [], [], seconds)
        return self._stopped in ready

    def _listen(self, *, first: bool) -> _Server | None:
        try:
            server = _Server(self._bind, self.port, self._pages)
        except OSError as error:
            if first:
                log.warning(
                    "the port of the metrics is taken, going on without bind=%s port=%s error=%s retry=%ss",
                    self._bind,
                    self.port,
                    error.strerror,
                    self._retry,
                )
            return None
        if not first:
            log.info("the port of the metrics became free bind=%s port=%s", self._bind, self.port)
        self.port = server.server_address[1]
        return server


@dataclass(frozen=True, slots=True)
class _Pages:
    registry: CollectorRegistry
    health: Callable[[], Health]
    deadline: float

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Status, content type and body of one page."""
        match path.partition("?")[0]:
            case "/metrics":
                return 200, CONTENT_TYPE_PLAIN_0_0_4, generate_latest(self.registry)
            case "/health":
                health = self.health()
                return 200 if health.ok else 503, "application/json", health.as_json()
            case _:
                return 404, "text/plain; charset=utf-8", b"Here are /metrics and /health.\n"


class _Server(socketserver.TCPServer):
    allow_reuse_address = True
    timeout = 0  # handle_request is called when a client is there; one that left meanwhile is not waited for

    def __init__(self, bind: str, port: int, pages: _Pages) -> None:
        self.address_family = socket.AF_INET6 if ":" in bind else socket.AF_INET
        self.pages = pages
        super().__init__((bind, port), _Handler)

    def handle_error(self, *_: Any) -> None:
        error = sys.exception()
        if not isinstance(error, OSError):  # a client that went away is nobody's fault
            log.error("a bug ended a request for the metrics or the health", exc_info=error)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(self.server.pages.deadline)
        self.rfile = io.BufferedReader(_Deadlined(self.connection, time.monotonic() + self.server.pages.deadline))

    def do_GET(self) -> None:
        status, kind, body = self.server.pages.answer(self.path)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the names by which the library finds them

    def version_string(self) -> str:
        return f"Lanes/{__version__}"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's own name
        """A scrape is no event: an idle healthy process is quiet."""


class _Deadlined(io.RawIOBase):
    """Reads a socket under one deadline for all reads together: a timeout for each would let a dripping client stay for ever."""

    def __init__(self, connection: socket.socket, until: float) -> None:
        self._connection, self._until = connection, until

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection.recv_into(into)


def _seconds(duration: timedelta | None) -> float:
    return 0.0 if duration is None else max(0.0, duration.total_seconds())


def _shown(instant: datetime) -> str:
    return instant.isoformat(timespec="seconds")
