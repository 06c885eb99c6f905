"""`ready_at` is a hint that is early at will and late only by a booked place: else a host, and all it has, goes quiet (DESIGN 4.1).

Hypothesis drives Polls through every verb on a small world whose hosts have addresses of their own, so that no place is ever booked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lanes.core.answer import NoResponse, Resume, Trouble
from lanes.core.claim import Claim
from lanes.core.outcome import PutBack
from lanes.store import schema
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from tests.answers import a_response, an_item
from tests.rows import LEASE, MINUTE, Rows, open_rows, settle, settle_read, take, trail

STEPS = 60
HOSTS = 4
ANSWERS = (
    replace(a_response(304), conditional=True),
    a_response(404),
    a_response(403),
    a_response(429, retry_after="40"),
    a_response(429),
    a_response(503, retry_after="500"),
    NoResponse(Trouble.TIMEOUT, "silent"),
)


@pytest.fixture(scope="module")
def url(empty_database: Callable[[], AbstractContextManager[str]]) -> Iterator[str]:
    with empty_database() as url:
        schema.migrate(url)
        yield url


class World:
    """Four hosts with one or two Series each, the Polls in hand, and one random step after another."""

    def __init__(self, rows: Rows, store: PollStore, seed: int) -> None:
        self.rows, self.store, self.random = rows, store, random.Random(seed)
        rows("TRUNCATE lanes.series, lanes.hosts, lanes.addresses CASCADE")
        rows("UPDATE lanes.clock SET latest_seen = '-infinity', test_offset = '0'")
        self.hosts = [rows.host(f"host{n}.test", address=f"192.0.2.{n + 1}") for n in range(HOSTS)]
        self.series = [
            rows.series(host, news_from=rows.now()) for n, host in enumerate(self.hosts) for _ in range(1 + n % 2)
        ]
        self.in_hand: list[Claim] = []

    def step(self) -> str:
        if not self.in_hand:
            return self.random.choice((self.claim, self.claim, self.wait))()
        return self.random.choice(
            (
                self.claim,
                self.claim,
                self.settle,
                self.settle,
                self.read,
                self.put_back,
                self.go_on_elsewhere,
                self.go_on_elsewhere,
                self.wait,
                self.die,
            )
        )()

    def claim(self) -> str:
        claim = take(self.store)
        if claim is not None:
            self.in_hand.append(claim)
        return f"claimed {claim and claim.key}"

    def settle(self) -> str:
        claim, answer = self._one(), self.random.choice(ANSWERS)
        settle(self.store, claim, answer)
        return f"settled {claim.key} {answer}"

    def read(self) -> str:
        claim = self._one()
        if self.rows.the_series(claim.series_id).lease_token == claim.token:
            settle_read(self.store, claim, an_item(str(self.random.randrange(9))))
        return f"read {claim.key}"

    def put_back(self) -> str:
        claim = self._one()
        self.store.put_back(claim, PutBack("an obstacle", self._while(), None, None), trail(claim))
        return f"put back {claim.key}"

    def go_on_elsewhere(self) -> str:
        claim, elsewhere = self._one(), self.random.choice(self.hosts)
        resume = Resume("https://elsewhere.test/", 1, permanent=False)
        self.store.put_back(claim, PutBack("its hop waits", self._while(), None, resume), trail(claim), elsewhere)
        return f"{claim.key} goes on at {elsewhere}"

    def wait(self) -> str:
        step = self.random.choice((timedelta(seconds=2), MINUTE, 10 * MINUTE, LEASE, 70 * MINUTE))
        self.rows("UPDATE lanes.clock SET test_offset = test_offset + %s", step)
        return f"waited {step}"

    def die(self) -> str:
        return f"died with {self._one().key}"

    def _one(self) -> Claim:
        return self.in_hand.pop(self.random.randrange(len(self.in_hand)))

    def _while(self) -> timedelta:
        return self.random.choice((timedelta(0), timedelta(seconds=30), 20 * MINUTE))


@settings(max_examples=12, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_no_verb_leaves_a_hint_that_is_late(url: str, seed: int) -> None:
    database = Database(url, application="a test")
    try:
        with open_rows(url) as rows:
            rows.enrol()
            world = World(rows, PollStore(database, "feeds", "here"), seed)
            history: list[str] = []
            for _ in range(STEPS):
                history.append(world.step())
                assert rows.late_hints() == [], history
            _nobody_is_forgotten(world)
    finally:
        database.close()


def _nobody_is_forgotten(world: World) -> None:
    """Once everything in hand is lost and a day has passed, each Series gets its turn."""
    seen: set[int] = set()
    for _ in range(8):
        world.rows("UPDATE lanes.clock SET test_offset = test_offset + interval '1 day'")
        for _ in range(30):
            claim = take(world.store)
            if claim is None:
                break
            seen.add(claim.series_id)
            settle(world.store, claim, ANSWERS[0])
    assert seen == set(world.series)
