"""The sidecar as a process with a real Chromium: loss, recycling, its end, and no Chromium at all (CASES H5, H6; DESIGN 7)."""

from __future__ import annotations

import os
import re
import signal
import sys
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import pytest

from browser_sidecar.chrome import Binary
from lanes.core.pages import LOST, Shown
from tests.browser.conftest import CHAPTER, html
from tests.browser.fix_process import Process, StartSidecar, alive
from tests.browser.rows import Rows, until
from tests.fix_database import Clock
from tests.smallnet import Host, Smallnet

MANY = 40
"""CASES H6 asks for 500 pages: they take five minutes, so `python -m bench browser` opens that many and prints what Chrome and sidecar take
after every hundred; here are as many as make two and a half rounds of a Chrome that is started afresh after every 15."""
GROWS = 1.25
"""Times what it took in its first round that Chrome may take in any; 1.01 was measured."""


@pytest.fixture
def site(net: Smallnet) -> Host:
    """Known by its address: a process asks the machine's own name system."""
    site = net.host("127.1.0.5")
    site.page("/title", html(f"<script>setTimeout(() => document.body.innerHTML = '{CHAPTER}', 50)</script>"))
    return site


def test_a_page_is_asked_by_a_row_and_answered_in_it(rows: Rows, site: Host, start_sidecar: StartSidecar) -> None:
    sidecar = start_sidecar()
    token = rows.asked(site.url("/title"))
    came = rows.opened(token)
    assert isinstance(came, Shown), came
    assert b'<p class="chapter">One</p>' in came.html
    (visit,) = site.net.record.of(site)
    agent = r"Mozilla/5\.0 .*HeadlessChrome/[0-9.]+ Safari/[0-9.]+ Lanes/[^ ]+ \(\+https?://\S+; you@example\.org\)"
    assert re.fullmatch(agent, visit.headers["user-agent"])
    until(lambda: sidecar.metric("browser_tabs_in_use") == 0, lambda: sidecar.said)
    assert sidecar.metric('browser_pages_total{outcome="shown"}') == 1
    assert sidecar.metric("browser_up") == 1
    assert sidecar.metric("browser_received_bytes_total") > 0


def test_chromes_group_killed_in_mid_page_is_a_loss_that_is_over_after_the_probe(
    rows: Rows, site: Host, start_sidecar: StartSidecar, clock: Clock
) -> None:
    """CASES H5."""
    sidecar = start_sidecar()
    hold = site.hold("/title")
    token = rows.asked(site.url("/title"))
    site.net.wait_for_visits(1, site, timeout=60)
    members = sidecar.family() - {sidecar.process.pid}
    os.killpg(sidecar.chrome(), signal.SIGKILL)
    rows.until(token, lambda page: page is not None and page.browser.trouble == "the browser is lost")
    until(lambda: not alive(members) and not sidecar.zombies(), lambda: sidecar.said)
    hold.release()
    assert rows.ask(site.url("/title"), "other")[1].trouble == "the browser is lost"
    assert len(site.net.record.of(site)) == 1
    rows.tell("DELETE FROM lanes.browser_pages")
    clock.advance(LOST + timedelta(seconds=1))
    rows.tell("UPDATE lanes.browser SET heartbeat_at = lanes.now()")
    assert isinstance(rows.opened(rows.asked(site.url("/title"))), Shown)
    rows.wait_for("SELECT FROM lanes.browser WHERE browser_lost_until IS NULL")
    assert sidecar.metric("browser_lost_total") == 1


@pytest.mark.parametrize("in_hand", [False, True])
def test_a_chrome_that_is_silent_and_closes_nothing_is_a_loss_and_its_group_is_ended(
    rows: Rows, site: Host, start_sidecar: StartSidecar, in_hand: bool
) -> None:
    """CASES H5: stopped, it holds its socket open and says no more."""
    sidecar = start_sidecar()
    if in_hand:
        site.hold("/title")
        rows.asked(site.url("/title"))
        site.net.wait_for_visits(1, site, timeout=60)
    else:
        rows.opened(rows.asked(site.url("/title")))
    members = sidecar.family() - {sidecar.process.pid}
    os.killpg(sidecar.chrome(), signal.SIGSTOP)
    rows.wait_for("SELECT FROM lanes.browser WHERE browser_lost_until > lanes.now()")
    until(lambda: not alive(members) and not sidecar.zombies(), lambda: sidecar.said)
    before = rows.lost_until
    rows.tell("UPDATE lanes.browser SET heartbeat_at = '2000-01-01'")
    rows.wait_for("SELECT FROM lanes.browser WHERE heartbeat_at > '2001-01-01'")
    assert (rows.lost_until, sidecar.metric("browser_lost_total")) == (before, 1)


def test_chromes_group_killed_while_it_idles_is_noticed_too(
    rows: Rows, site: Host, start_sidecar: StartSidecar
) -> None:
    sidecar = start_sidecar()
    rows.opened(rows.asked(site.url("/title")))
    os.killpg(sidecar.chrome(), signal.SIGKILL)
    rows.wait_for("SELECT FROM lanes.browser WHERE browser_lost_until > lanes.now()")
    until(lambda: not sidecar.children(), lambda: sidecar.said)


def test_many_pages_in_a_row_leave_no_zombie_and_see_chrome_started_afresh(
    rows: Rows, site: Host, start_sidecar: StartSidecar
) -> None:
    """CASES H6."""
    sidecar = start_sidecar("tests.browser.brisk", "15")
    groups: list[int] = []
    weights: list[int] = []
    for n in range(MANY):
        token = rows.asked(site.url("/title"), f"site-{n % 2}")
        assert isinstance(rows.opened(token), Shown)
        if n % 15 in (4, 13):
            until(lambda: sidecar.metric("browser_tabs_in_use") == 0, lambda: sidecar.said)
            groups.append(sidecar.chrome())
            weights.append(sidecar.weight())
        rows.tell("DELETE FROM lanes.browser_pages WHERE token = %s", token)
    until(lambda: not sidecar.zombies(), lambda: str(sidecar.zombies()))
    assert len(sidecar.children()) < 20, "processes of pages are left"
    assert len(set(groups)) == 3
    assert len(weights) == 5
    assert max(weights) <= GROWS * weights[0], weights
    assert sidecar.metric("browser_restarts_total") == 2
    assert sidecar.metric('browser_pages_total{outcome="shown"}') == MANY
    assert rows.lost_until is None
    assert len(site.net.record.of(site)) == MANY


@pytest.mark.parametrize("in_hand", [False, True])
def test_it_ends_with_its_chrome_and_says_so(
    rows: Rows, site: Host, start_sidecar: StartSidecar, in_hand: bool
) -> None:
    sidecar = start_sidecar()
    if in_hand:
        site.hold("/title")
        token = rows.asked(site.url("/title"))
        site.net.wait_for_visits(1, site, timeout=60)
    else:
        token = rows.asked(site.url("/title"))
        rows.opened(token)
    members = sidecar.family()
    assert len(members) > 4
    assert sidecar.ends() == 0
    assert alive(members) == set()
    page = rows.look(token)
    assert page is not None
    assert page.browser.trouble == "the browser is down: its sidecar was stopped"
    assert (page.opened is None) is in_hand
    assert rows.lost_until is None


@pytest.mark.parametrize("stands_by", [False, True])
def test_one_that_is_killed_leaves_a_chrome_that_the_next_one_ends(
    rows: Rows, site: Host, start_sidecar: StartSidecar, tmp_path: Path, stands_by: bool
) -> None:
    first = start_sidecar()
    rows.opened(rows.asked(site.url("/title")))
    orphans = first.family() - {first.process.pid}
    with Process(tmp_path / "second", rows.url) if stands_by else nullcontext() as second:
        if second is not None:
            second.says("this one stands by")
        orphans = alive(orphans)  # what its page alone needed is gone by now, or soon
        assert orphans
        first.process.kill()
        first.process.wait(30)
        rows.tell("DELETE FROM lanes.browser_pages")
        if second is None:
            start_sidecar()
        else:
            until(lambda: second.metric("browser_up") == 1, lambda: second.said)
        until(lambda: alive(orphans) == set(), lambda: str(orphans))
        assert isinstance(rows.opened(rows.asked(site.url("/title"))), Shown)


def test_without_a_chromium_it_stays_up_says_what_to_install_and_does_not_beat(rows: Rows, tmp_path: Path) -> None:
    with Process(tmp_path / "log", rows.url, PATH=str(tmp_path)) as sidecar:
        told = rows.wait_for("SELECT trouble FROM lanes.browser WHERE trouble IS NOT NULL").trouble
        assert "apt install chromium" in told
        assert "LANES_BROWSER_BINARY" in told
        assert rows.one("SELECT heartbeat_at = '-infinity' AS it FROM lanes.browser").it
        assert rows.ask("http://site.test/")[1].trouble == f"the browser is down: {told}"
        assert sidecar.metric("browser_up") == 0
        assert sidecar.process.poll() is None
        assert sidecar.health() == (200, told), "as good as no browser at all"


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ("/nowhere/chrome", "names /nowhere/chrome, which is no program"),
        (sys.executable, "does not say which version of Chrome"),
    ],
)
def test_a_binary_that_is_no_chrome_is_told_with_the_remedy_and_is_not_healthy(
    rows: Rows, tmp_path: Path, named: str, why: str
) -> None:
    with Process(tmp_path / "log", rows.url, LANES_BROWSER_BINARY=named) as sidecar:
        told = rows.wait_for("SELECT trouble FROM lanes.browser WHERE trouble IS NOT NULL").trouble
        assert why in told
        assert told.endswith("let LANES_BROWSER_BINARY name a Chrome, and start Lanes again")
        assert sidecar.health() == (503, told)
        assert sidecar.process.poll() is None


def test_with_wrong_settings_it_ends_and_says_what_is_wrong(rows: Rows, tmp_path: Path) -> None:
    with Process(tmp_path / "log", rows.url, LANES_CONTACT="") as sidecar:
        assert sidecar.process.wait(30) == 2
        assert "LANES_CONTACT is not set" in sidecar.said


def test_help_teaches(rows: Rows, tmp_path: Path) -> None:
    with Process(tmp_path / "log", rows.url, "browser_sidecar.sidecar", "--help") as sidecar:
        assert sidecar.process.wait(30) == 0
        for word in ("apt install chromium", "LANES_BROWSER_TABS", "LANES_BROWSER_WS_URL", "lanes status"):
            assert word in sidecar.said


def test_it_waits_for_its_tables(empty_database: object, binary: Binary, tmp_path: Path) -> None:
    with empty_database() as url, Process(tmp_path / "log", url) as sidecar:  # type: ignore[operator]
        sidecar.says("Run `lanes migrate`")
        assert sidecar.ends() == 0
