"""Six Lanes and the sidecar under supervisord, on stand-ins of their Sites, with a real Chromium whose whole group is killed."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from lanes.cli.demo_story import chrome_group
from tests.fix_lane import Owner
from tests.process.fix_supervisor import ROOT, Supervised
from tests.smallnet import Smallnet
from tests.smallnet.standins import StandIn, build, write_sites
from tests.waiting import until

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("binary")]

BROWSER, PLAIN = ("kagane", "comix"), ("mangadex", "royalroad", "webtoons")


@pytest.fixture
def stand_ins(net: Smallnet) -> dict[str, StandIn]:
    return build(net)


@pytest.fixture
def supervised(stand_ins: dict[str, StandIn]) -> Iterator[Supervised]:
    """An installation whose Sites are the stand-ins, put there as an owner's own Sites are."""
    place = Path(tempfile.mkdtemp(prefix="lanes-"))
    place.chmod(0o755)
    write_sites(place / "sites", {site: each.origin for site, each in stand_ins.items()})
    supervised = Supervised(place, PYTHONPATH=f"{place / 'sites'}{os.pathsep}{ROOT}")
    try:
        for site in (*BROWSER, *PLAIN, "feeds"):
            supervised.pid(f"lane-{site}")
        supervised.pid("browser")
        until(lambda: supervised.states().get("migrate", ("",))[0] == "EXITED", supervised.told)
        yield supervised
    finally:
        supervised.stop()
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def owner(supervised: Supervised) -> Iterator[Owner]:
    with closing(Owner(supervised.database_url)) as owner:
        yield owner


def _follow(supervised: Supervised, owner: Owner, stand_in: StandIn) -> str:
    """As the owner does: `lanes add` of the URL as a Reader would paste it."""
    supervised.lanes("add", stand_in.titles[0].pasted)
    key: str = owner.one("SELECT key FROM lanes.series WHERE site = %s", stand_in.site).key
    owner.check_now(key)
    return key


def _published(owner: Owner, key: str, stand_in: StandIn) -> None:
    """A Chapter that comes out now is found, once the owner asks."""
    stand_in.titles[0].publish()
    owner.check_now(key)
    owner.wait_for(
        "SELECT FROM lanes.chapters c JOIN lanes.series s ON s.id = c.series_id WHERE s.key = %s AND c.number = %s",
        *(key, str(len(stand_in.titles[0].parts))),
        timeout=60.0,
    )


def test_a_chrome_killed_in_mid_page_gates_both_browser_lanes_and_nobody_else_then_all_goes_on(
    supervised: Supervised, owner: Owner, stand_ins: dict[str, StandIn]
) -> None:
    """CASES H5, with two browser Lanes and three plain ones running."""
    keys = {site: _follow(supervised, owner, stand_ins[site]) for site in (*BROWSER, *PLAIN)}
    for key in keys.values():
        owner.wait_for("SELECT FROM lanes.series WHERE key = %s AND good_at IS NOT NULL", key, timeout=60.0)
    pids = {name: pid for name, (_, pid) in supervised.states().items()}
    before = {site: owner.series(key) for site, key in keys.items()}

    hold = stand_ins["comix"].host.hold("*")
    owner.check_now(keys["comix"])
    assert hold.arrived.wait(60), supervised.told()
    group = chrome_group(supervised.environ["LANES_DATA_DIR"])
    assert group is not None
    family = [each for each in psutil.process_iter() if _group_of(each) == group]
    os.killpg(group, signal.SIGKILL)

    lost = owner.wait_for(
        "SELECT browser_lost_until AS until, lanes.now() AS now FROM lanes.browser WHERE browser_lost_until > lanes.now()"
    )
    assert 880 < (lost.until - lost.now).total_seconds() <= 900
    owner.wait_for(
        "SELECT FROM lanes.series WHERE key = %s AND lease_until IS NULL AND retry_at IS NOT NULL", keys["comix"]
    )
    until(lambda: not any(each.is_running() for each in family), supervised.told)
    for site in PLAIN:
        _published(owner, keys[site], stand_ins[site])
    owner.check_now(keys["kagane"])
    for site in BROWSER:
        row = owner.series(keys[site])
        assert (row.failures, row.refusals) == (0, 0)
        assert (row.good_at, row.failure, row.refused_since) == (before[site].good_at, None, None)
    assert owner.series(keys["kagane"]).latest_checked_at == before["kagane"].latest_checked_at
    assert "the browser is lost" in supervised.lanes("why", keys["kagane"])
    assert owner.one("SELECT browser_lost_until AS until FROM lanes.browser").until == lost.until
    assert owner.one("SELECT count(*) AS n FROM lanes.notices WHERE kind = 'browser lost'").n == 1

    hold.release()
    stand_ins["kagane"].titles[0].publish()
    owner.tell("UPDATE lanes.clock SET test_offset = test_offset + '16 minutes 10 seconds'")
    for site in BROWSER:
        _published(owner, keys[site], stand_ins[site])
    assert owner.one("SELECT browser_lost_until AS until FROM lanes.browser").until is None
    assert {name: pid for name, (_, pid) in supervised.states().items()} == pids
    children = psutil.Process(supervised.pid("browser")).children(recursive=True)
    assert not [each for each in children if each.status() == psutil.STATUS_ZOMBIE]


def _group_of(process: psutil.Process) -> int | None:
    try:
        return os.getpgid(process.pid)
    except ProcessLookupError:
        return None
