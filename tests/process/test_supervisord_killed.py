"""supervisord killed and started again beside the processes that it had started before."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.fix_lane import Owner
from tests.process.fix_supervisor import Supervised
from tests.smallnet import Smallnet
from tests.waiting import until

GOOD = "SELECT FROM lanes.series WHERE key = %s AND good_at > %s"


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that root's database server may enter."""
    place = Path(tempfile.mkdtemp(prefix="lanes-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place, ignore_errors=True)


@pytest.mark.timeout(240)
def test_the_sites_see_one_pace_while_old_and_new_processes_live_side_by_side(net: Smallnet, place: Path) -> None:
    """CASES H4."""
    host = net.host("127.1.0.5")
    first = Supervised(place)
    postgres, lane = first.pid("postgres"), first.pid("lane-feeds")
    until(lambda: first.states().get("migrate", ("",))[0] == "EXITED", first.told)
    second, left = None, set[int]()
    try:
        with closing(Owner(first.database_url)) as owner:
            for n in range(6):
                host.feed(f"/{n}", ["One"])
            keys = [owner.follow(host.url(f"/{n}")) for n in range(6)]
            left = {pid for _, pid in first.states().values() if pid}
            first.kill()
            second = Supervised(place)
            assert second.pid("lane-feeds") != lane
            for program in (postgres, lane):
                os.kill(program, 0)  # they live on
            asked_at = owner.now()
            for key in keys:
                owner.check_now(key)
            for key in keys:
                owner.wait_for(GOOD, key, asked_at, timeout=60)
            assert not net.record.spacing_offences(1.0, host, slack=0.05)
            assert not net.record.overlaps(host)
            assert {row.outcome for row in owner.polls()} <= {"new", "unchanged", "put back"}
    finally:
        if second is not None:
            second.stop()
        for program in left:
            with suppress(ProcessLookupError):
                os.kill(program, signal.SIGINT if program == postgres else signal.SIGTERM)
        until(lambda: not any(Path(f"/proc/{each}").exists() for each in left), lambda: "they did not end")
