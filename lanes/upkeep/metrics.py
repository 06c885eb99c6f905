"""What `lanes upkeep` tells Prometheus and whoever asks whether it is well.

Owns its table of metrics.  Refuses to own: the endpoint (`lanes.metrics`) and any row.  Must never break: every duty has its series from
the start.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from lanes import __version__
from lanes.metrics import BUILD, GAUGES, Health
from lanes.store.upkeep import Owed

DUTY_COUNTERS: Final[Mapping[str, str]] = {
    "lanes_upkeep_runs_total": "Runs of a duty, failed ones included.",
    "lanes_upkeep_failures_total": "Runs of a duty that an error ended; the other duties went on.",
    "lanes_upkeep_done_total": "What a duty did: Notices made, Series given up, rows and partitions that went.",
}
SECONDS_SINCE: Final = (
    "lanes_upkeep_seconds_since_success",
    "Seconds since a duty last came to its end, or since the start; 0 while another upkeep is at work.",
)
UPKEEP_GAUGES: Final[Mapping[str, str]] = {
    "lanes_upkeep_at_work": "1 while this process is the one upkeep of its database, 0 while it stands by.",
    "lanes_notices_owed": "Notices that wait for delivery.",
    "lanes_notices_oldest_seconds": "How long the oldest of them has waited.",
    "lanes_database_up": GAUGES["lanes_database_up"],
}


class UpkeepMetrics:
    """The metrics and the health of the upkeep process; safe for threads.  Every series is there, at 0, from the start."""

    def __init__(self, duties: Iterable[str]) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self._since = datetime.now(UTC)
        self._database: str | None = None
        self._at_work = False
        self._last_round: datetime | None = None
        self._succeeded = dict.fromkeys(duties, time.monotonic())
        self._counters = {
            name: Counter(name, text, ("duty",), registry=self.registry) for name, text in DUTY_COUNTERS.items()
        }
        since = Gauge(*SECONDS_SINCE, ("duty",), registry=self.registry)
        for duty in self._succeeded:
            for counter in self._counters.values():
                counter.labels(duty)
            since.labels(duty).set_function(lambda duty=duty: self._seconds_since(duty))  # type: ignore[misc]
        self._gauges = {name: Gauge(name, text, registry=self.registry) for name, text in UPKEEP_GAUGES.items()}
        Gauge(*BUILD, ("version",), registry=self.registry).labels(__version__).set(1)

    def duty_done(self, duty: str, done: int) -> None:
        """A duty came to its end, having done so much."""
        self._counters["lanes_upkeep_runs_total"].labels(duty).inc()
        self._counters["lanes_upkeep_done_total"].labels(duty).inc(done)
        self._succeeded[duty] = time.monotonic()

    def duty_failed(self, duty: str) -> None:
        """An error ended a duty."""
        self._counters["lanes_upkeep_runs_total"].labels(duty).inc()
        self._counters["lanes_upkeep_failures_total"].labels(duty).inc()

    def round_ended(self, owed: Owed) -> None:
        """Every duty whose time had come was done or failed; so many Notices are owed."""
        self._last_round = datetime.now(UTC)
        self._gauges["lanes_notices_owed"].set(owed.count)
        self._gauges["lanes_notices_oldest_seconds"].set(owed.oldest.total_seconds() if owed.oldest else 0)

    def at_work(self, ours: bool) -> None:
        """Postgres answers, and this process is at work or stands by."""
        if ours and not self._at_work:
            self._succeeded = dict.fromkeys(self._succeeded, time.monotonic())
        self._database, self._at_work = "up", ours
        self._gauges["lanes_upkeep_at_work"].set(ours)
        self._gauges["lanes_database_up"].set(1)

    def away(self) -> None:
        """Postgres does not answer."""
        if self._database in (None, "up"):
            self._database = f"away since {datetime.now(UTC).isoformat(timespec='seconds')}"
        self._at_work = False
        self._gauges["lanes_upkeep_at_work"].set(0)
        self._gauges["lanes_database_up"].set(0)

    def health(self) -> Health:
        """How it is: well while Postgres answers, at work or standing by."""
        ok = self._database == "up"
        standing = "at work" if self._at_work else "standing by: another upkeep is at work"
        state = standing if ok else "waiting for Postgres"
        return Health(ok, "upkeep", None, self._since, state, self._database or "not reached yet", self._last_round)

    def _seconds_since(self, duty: str) -> float:
        return time.monotonic() - self._succeeded[duty] if self._at_work or self._database != "up" else 0.0
