"""What the wire tests of `lanes.fetch` share: permits that tell what they were asked, and a client of the small internet."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from lanes.core.answer import Answer, NoResponse, Response, Trouble
from lanes.fetch.guard import Guard
from lanes.fetch.http import Http, Request
from lanes.fetch.limits import LIMITS, Limits
from lanes.fetch.permits import Go, Wait
from tests.smallnet import ALLOWED, Smallnet

CLAIMED_AT = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


@dataclass
class Ledger:
    """Permits: gives what it is told to, Go where it is told nothing, and keeps what it was asked, with instants of the monotonic clock."""

    dialling: list[Go | Wait] = field(default_factory=list)
    hopping: list[Go | Wait] = field(default_factory=list)
    dials: list[tuple[str, str]] = field(default_factory=list)
    hops: list[str] = field(default_factory=list)
    sends: list[tuple[str, str, float]] = field(default_factory=list)
    claimed: float = field(default_factory=time.monotonic)

    def dial(self, host: str, address: str) -> Go | Wait:
        self.dials.append((host, address))
        return self.dialling.pop(0) if self.dialling else Go()

    def hop(self, host: str, origin: str) -> Go | Wait:
        self.hops.append(host)
        return self.hopping.pop(0) if self.hopping else Go()

    def sending(self, host: str, address: str) -> datetime:
        now = time.monotonic()
        self.sends.append((host, address, now))
        return CLAIMED_AT + timedelta(seconds=now - self.claimed)


def client(net: Smallnet, limits: Limits = LIMITS, allow: Iterable[str] = (str(ALLOWED),)) -> Http:
    """A client that asks the small internet's own resolver and may go to its allowed part."""
    return Http("Lanes/test (+mailto:owner@example.test)", Guard(allow, net.resolver), limits=limits)


def response(answer: Answer, status: int = 200) -> Response:
    assert isinstance(answer, Response), answer
    assert answer.status == status
    return answer


def trouble(answer: Answer, *expected: Trouble) -> NoResponse:
    assert isinstance(answer, NoResponse), answer
    assert answer.trouble in expected, answer
    assert "\n" not in answer.detail
    return answer


def get(net: Smallnet, url: str, limits: Limits = LIMITS, permits: Ledger | None = None) -> Answer:
    """One fetch by a client of its own."""
    http = client(net, limits)
    try:
        return http.get(Request(url), permits or Ledger())
    finally:
        http.close()


def paths(visits: Sequence[object]) -> list[str]:
    return [getattr(visit, "path") for visit in visits]  # noqa: B009
