"""Workers that are suspended with an answer in hand: they go on late, or die.

Owns the moment at which they stand still.  Refuses to own: what they claimed, and when they go on (`tests.histories`).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from lanes.core.answer import Answer
from lanes.core.claim import Claim
from lanes.fetch.guard import Guard
from lanes.fetch.http import Http, Request
from lanes.fetch.limits import LIMITS
from lanes.fetch.permits import Permits
from tests.fix_lane import AGENT
from tests.smallnet import ALLOWED, Smallnet
from tests.witness import Arrival

QUICK = replace(LIMITS, connect=1.0, read=0.5, whole=2.0, hop_wait=0.0)
"""A hop never waits in its slot: its Poll is put back, for the clock to move."""


class LateHttp(Http):
    """The worker that asked is suspended between its answer and what it makes of it, until it goes on or dies."""

    def __init__(self, net: Smallnet) -> None:
        super().__init__(AGENT, Guard([str(ALLOWED)], net.resolver), limits=QUICK)
        self.answered, self.goes_on, self.dies = threading.Event(), threading.Event(), False

    def get(self, request: Request, permits: Permits) -> Answer:
        answer = super().get(request, permits)
        if not request.url.endswith("/robots.txt"):
            self.answered.set()
            self.goes_on.wait()
            if self.dies:
                raise SystemExit
        return answer


@dataclass(slots=True)
class Worker:
    """One that has been suspended with a Poll in hand."""

    claim: Claim
    http: LateHttp
    thread: threading.Thread
    arrivals: list[Arrival]

    def end(self, *, dies: bool) -> None:
        self.http.dies = dies
        self.http.goes_on.set()
        self.thread.join(20)
        assert not self.thread.is_alive(), "a worker that was late did not end"
        self.http.close()
