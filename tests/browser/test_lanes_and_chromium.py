"""Two browser Lanes and two plain Lanes beside a real sidecar whose Chrome is killed in mid page (CASES H5; DESIGN 7)."""

from __future__ import annotations

import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from lanes.core.chapters import Document, Item, NotRecognised, Reading
from lanes.core.pages import LOST
from lanes.sites import Site
from tests.browser.conftest import html
from tests.browser.fix_process import StartSidecar
from tests.fix_browser import page_site
from tests.fix_lane import LaneAtWork, MakeLane
from tests.smallnet import Host, Smallnet
from tests.wire.comics import comics, titles_of


def read(body: bytes, content_type: str | None, url: str, at: datetime) -> Reading:
    """Chapters that a script wrote into the page's main."""
    found = re.findall(r'<p class="chapter">(.*?)</p>', body.decode())
    items = tuple(Item(title, title, f"{url}#{title}") for title in found)
    return Document(items) if items else NotRecognised("no Chapter in it")


def rendered_site(name: str, host: str) -> Site:
    return replace(page_site(name, host), read=read)


def render(host: Host, path: str, *titles: str) -> None:
    rows = "".join(f"<p class=chapter>{title}</p>" for title in titles)
    host.page(path, html(f"<script>setTimeout(() => document.body.innerHTML = '<main>{rows}</main>', 100)</script>"))


def follow(lane: LaneAtWork, host: Host) -> str:
    render(host, "/title", "One", "Two")
    return lane.follow(host.url("/title"), site=lane.site)


@pytest.mark.parametrize("tabs", ["1", "2"])
def test_a_chrome_killed_in_mid_page_costs_no_series_stops_browser_lanes_alone_and_is_back_by_itself(
    net: Smallnet, make_lane: MakeLane, start_sidecar: StartSidecar, tabs: str
) -> None:
    sidecar = start_sidecar(LANES_BROWSER_TABS=tabs)
    panels = make_lane("panels", site=rendered_site("panels", "127.1.0.5"), slots=1)
    strips = make_lane("strips", site=rendered_site("strips", "127.1.0.6"), slots=1)
    plain = make_lane("comics", site=comics("127.1.0.7", gap=1), slots=1)
    feeds = make_lane("feeds")
    host = net.host("127.1.0.5")
    keys = {panels: follow(panels, host), strips: follow(strips, net.host("127.1.0.6"))}
    comic_keys = titles_of(net.host("127.1.0.7"), plain, 1)
    net.host("127.1.0.8").feed("/feed", ["One"])
    feed_key = feeds.follow(net.host("127.1.0.8").url())
    hold = host.hold("/title")
    panels.has_no_robots(host.url(), panels.site)
    strips.has_no_robots(net.host("127.1.0.6").url(), strips.site)

    for lane, key in keys.items():
        lane.check_now(key)  # one due Series alone would not wake Chrome

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(panels.run_once)
        net.wait_for_visits(1, host, "/title", timeout=60)
        second = pool.submit(strips.run_once) if tabs == "1" else None  # it queues behind the first
        if second is not None:
            panels.wait_for("SELECT FROM lanes.browser_pages HAVING count(*) = 2")
        os.killpg(sidecar.chrome(), signal.SIGKILL)
        for each in (first, second):
            if each is not None:
                each.result(60)
    hold.release()

    until = panels.one("SELECT browser_lost_until AS it FROM lanes.browser").it
    assert until is not None
    rows = panels.all(
        "SELECT key, failures, retired_at, retry_reason FROM lanes.series WHERE site IN ('panels', 'strips')"
    )
    assert {(row.failures, row.retired_at) for row in rows} == {(0, None)}
    assert panels.all("SELECT FROM lanes.incidents") == []
    assert plain.run_once() == 1
    assert feeds.run_once() == 1
    assert (plain.titles(comic_keys[0]), feeds.titles(feed_key)) == (["One"], ["One"])

    panels.move_to(until - timedelta(minutes=1))
    assert (panels.run_once(), strips.run_once()) == (0, 0)
    assert len(net.record.of(host, "/title")) == 1
    assert panels.one("SELECT browser_lost_until AS it FROM lanes.browser").it == until, "written once"

    panels.move_to(until + LOST)
    for lane, key in keys.items():
        lane.move_to(lane.open_at(key))
        assert lane.run_once() == 1
        assert lane.titles(key) == ["One", "Two"]
    assert panels.one("SELECT browser_lost_until AS it FROM lanes.browser").it is None
    assert sidecar.metric("browser_lost_total") == 1
