"""Chains of redirects that are interrupted on their way, and fetches that are late, through whole Polls: from the origin's side."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.fix_lane import LaneAtWork, MakeLane
from tests.smallnet import Request, Smallnet, Step, redirect
from tests.smallnet.resolver import Found

SLACK = 0.05
"""Seconds by which the scheduling of two threads may move an arrival."""


class Meanwhile:
    """A resolver that has something happen on the database while it looks, and takes long enough for its request to be late."""

    def __init__(self, net: Smallnet, name: str) -> None:
        self._net, self._name, self.told = net, name, ""
        net.resolver.delay(name, 0.2)

    def __call__(self, host: str, port: int | str | None, **more: Any) -> list[Found]:
        found = self._net.resolver(host, port, **more)
        if host == self._name and self.told:
            self.lane.tell(self.told)
            self.told = ""
        return found

    lane: LaneAtWork


def two_names(net: Smallnet) -> tuple[str, str]:
    """Two names on one address, the first redirecting to the second: the URL of the first, and the second's name."""
    one, two = net.host("127.1.0.5", "one.test"), net.host("127.1.0.5", "two.test")
    one.script("/feed", redirect(two.url("/real"), 302))
    two.feed("/real", ["One"])
    return one.url("/feed"), "two.test"


def bugs(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def queue_of(lane: LaneAtWork, key: str) -> str:
    """The name of the host that a Series queues under."""
    found: str = lane.one(
        "SELECT h.name FROM lanes.hosts h JOIN lanes.series s ON s.queue_host_id = h.id WHERE s.key = %s", key
    ).name
    return found


def test_the_second_name_of_an_address_waits_for_a_slot_of_it_within_the_poll(
    net: Smallnet, lane: LaneAtWork, caplog: pytest.LogCaptureFixture
) -> None:
    url, _ = two_names(net)
    key = lane.follow(url)
    lane.poll(key)
    assert lane.outcomes(key) == ["new"]
    assert [visit.path for visit in net.record] == ["/feed", "/real"]
    assert not net.record.spacing_offences(0.4, by_address=True, slack=SLACK)
    assert bugs(caplog) == []


def test_a_chain_put_back_at_the_dial_of_a_host_it_had_entered_goes_on_there(
    net: Smallnet, lane: LaneAtWork, caplog: pytest.LogCaptureFixture
) -> None:
    url, second = two_names(net)
    target = net.host("127.1.0.5", second).url("/real")

    def first(request: Request) -> Step:
        lane.tell("UPDATE lanes.addresses SET next_at = lanes.now() + '20 seconds', used_by = NULL")
        return redirect(target, 302)

    net.host("127.1.0.5", "one.test").script("/feed", first)
    key = lane.follow(url)
    assert lane.poll(key).outcome == "put back"
    row = lane.series(key)
    assert queue_of(lane, key) == second
    assert (row.lease_token, row.failures, str(row.retry_address)) == (None, 0, "127.1.0.5")
    assert lane.poll(key).outcome == "new"
    assert lane.outcomes(key) == ["put back", "new"]
    assert [visit.path for visit in net.record] == ["/feed", "/real"]
    assert queue_of(lane, key) == "one.test"
    assert bugs(caplog) == []


def test_a_chain_interrupted_while_its_second_host_answers_goes_on_there(
    net: Smallnet, make_lane: MakeLane, caplog: pytest.LogCaptureFixture
) -> None:
    """What SIGTERM does to a fetch that does not end."""
    one, two = net.host("127.1.0.5"), net.host("127.1.0.6")
    one.script("/feed", redirect(two.url("/real"), 302))
    two.feed("/real", ["One"])
    hold = two.hold("/real")
    first = make_lane("machine-1")
    key = first.follow(one.url("/feed"))
    with first.running():
        assert hold.arrived.wait(20)
        first.http.interrupt()
    hold.release()
    assert first.outcomes(key) == ["put back"]
    assert queue_of(first, key) == "127.1.0.6"
    assert first.series(key).lease_token is None
    assert first.all("SELECT name FROM lanes.hosts WHERE busy_token IS NOT NULL") == []
    second = make_lane("machine-2")
    assert second.poll(key).outcome == "new"
    assert second.outcomes(key) == ["put back", "new"]
    assert len(net.record.of(one)) == 1
    assert bugs(caplog) == []


@pytest.mark.parametrize(
    "meanwhile",
    [
        "UPDATE lanes.hosts SET not_before = lanes.now() + '1 hour', not_before_reason = 'Retry-After' WHERE name = 'late.test'",
        "UPDATE lanes.hosts SET busy_token = gen_random_uuid() WHERE name = 'late.test'",
        "UPDATE lanes.clock SET test_offset = test_offset + '91 seconds'",
        "UPDATE lanes.addresses SET next_at = lanes.now() + '3 hours', used_by = gen_random_uuid()",
    ],
    ids=["told to wait", "in another's hand", "the lease ended", "its slot is hours ahead"],
)
def test_a_late_request_that_may_not_be_written_is_put_back_and_the_origin_sees_nothing(
    net: Smallnet, make_lane: MakeLane, caplog: pytest.LogCaptureFixture, meanwhile: str
) -> None:
    host = net.host("127.1.0.5", "late.test")
    host.feed("/feed", ["One"])
    resolver = Meanwhile(net, "late.test")
    lane = resolver.lane = make_lane(resolver=resolver)
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    resolver.told = meanwhile
    host.hang_up()
    net.quiet()
    lane.move_to(lane.open_at(key))
    lane.tell("UPDATE lanes.clock SET latest_seen = '-infinity'")
    assert lane.run_once() >= 1
    assert resolver.told == ""
    record = lane.polls(key)[1]
    assert (record.outcome, record.sent_at) == ("put back", None)
    assert lane.series(key).failures == 0
    assert bugs(caplog) == []
    if "91 seconds" not in meanwhile:  # where its lease alone ended, it was polled again at once
        assert len(net.record.of(host)) == 1
