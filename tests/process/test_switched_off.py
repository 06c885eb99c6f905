"""The kill switch in a real process: well, saying so, polling nothing, and ended as any other (DESIGN 3)."""

from __future__ import annotations

import json
from urllib.request import ProxyHandler, build_opener

import pytest

from tests.fix_lane import Owner
from tests.process.fix_supervisor import NUMBER, Start, free_metrics_base, start
from tests.smallnet import Smallnet

__all__ = ["start"]


@pytest.mark.parametrize("switch", ["LANES_POLL_ENABLED", "LATEST_CHAPTER_POLL_ENABLED"])
def test_a_lane_that_is_switched_off_is_healthy_says_so_and_ends_with_0(
    net: Smallnet, owner: Owner, start: Start, switch: str
) -> None:
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One"])
    key = owner.follow(host.url("/feed"))
    owner.check_now(key)
    base = free_metrics_base()
    lane = start("lane", "feeds", LANES_DATABASE_URL=owner.url, LANES_METRICS_PORT=str(base), **{switch: "false"})
    lane.says("polling is switched off")
    with build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{base + NUMBER}/health", timeout=10) as answer:
        assert answer.status == 200
        told = json.load(answer)
    assert told["ok"] is True
    assert told["state"] == "polling is switched off"
    assert lane.ends() == 0
    assert len(net.record) == 0
    assert owner.polls(key) == []
