"""A Lane that goes on for long: what it holds after many Polls is what it held after some."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fix_lane import Owner
from tests.process.fix_supervisor import Start, start
from tests.smallnet import Smallnet

__all__ = ["start"]

HOSTS = 500
WARM, MANY = 1_000, 10_000
POLLED = "SELECT n FROM (SELECT count(*) AS n FROM lanes.polls WHERE outcome IN ('new', 'unchanged')) x WHERE n >= %s"


def held(pid: int) -> int:
    """Bytes of memory that a process has for itself."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    private = (line.split() for line in rollup if line.startswith("Private_"))
    return sum(int(words[1]) for words in private) * 1024


@pytest.mark.timeout(600)
def test_after_ten_thousand_polls_a_lane_holds_no_more_than_after_a_thousand(
    net: Smallnet, owner: Owner, start: Start
) -> None:
    """CASES H9.  A tenth of the Polls finds a new Chapter, the others a 304."""
    hosts = net.many(HOSTS)
    for host in hosts:
        host.feed("/feed", ["One", "Two"])
        owner.follow(host.url())
    owner.tell("UPDATE lanes.hosts SET pace = '0'")
    lane = start("lane", "feeds", LANES_DATABASE_URL=owner.url)
    seen: dict[int, int] = {}
    for polls in range(HOSTS, MANY + 1, HOSTS):
        owner.wait_for(POLLED, polls, timeout=120)
        if polls in (WARM, MANY):
            seen[polls] = held(lane.process.pid)
        for host in hosts[polls // HOSTS % 10 :: 10]:
            host.publish("/feed", f"Chapter {polls}")
        owner.tell("UPDATE lanes.clock SET test_offset = test_offset + '75 minutes'")
        owner.tell("SELECT pg_notify('lanes_feeds', '')")
    assert seen[MANY] <= 1.05 * seen[WARM], seen
