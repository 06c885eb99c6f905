"""What the owner tries and verifies of a browser Site of their own, through the command, the rows, a sidecar and a real Chromium."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.browser.conftest import html
from tests.browser.fix_process import StartSidecar
from tests.fix_lane import Owner
from tests.fix_own import Own, the_lanes
from tests.own_sites import by_browser, install
from tests.smallnet import Host, Smallnet

RENDERED = html(
    "<script>setTimeout(() => document.body.innerHTML = '<p class=chapter>Low Water</p><p class=chapter>The Keeper</p>', 100)</script>"
)
BARE = html("<p>We have a new look</p>")


@pytest.fixture
def inn(net: Smallnet, tmp_path: Path, start_sidecar: StartSidecar) -> Host:
    """The stand-in of an own browser Site, whose example is one of its pages, with a sidecar that serves."""
    host = net.host("127.1.0.5")
    install(tmp_path, "inn", by_browser("inn", host.address, host.url("/title").removeprefix(f"http://{host.address}")))
    start_sidecar()
    return host


def test_a_url_is_tried_after_its_robots_as_scripts_left_it_and_nothing_is_stored(
    inn: Host, own: Own, owner: Owner
) -> None:
    inn.page("/title", RENDERED)
    code, out, err = the_lanes(own, "try", "inn", inn.url("/title"), "--wait", "60", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert (found["verdict"], found["title"]) == ("recognised", "The Ferry")
    assert [chapter["title"] for chapter in found["chapters"]] == ["Low Water", "The Keeper"]
    visits = inn.net.record.of(inn)
    assert [visit.path for visit in visits] == ["/robots.txt", "/title"]
    assert ["Chrome/" in visit.headers["user-agent"] for visit in visits] == [False, True]
    assert "you@example.org" in visits[-1].headers["user-agent"]
    assert owner.one("SELECT count(*) AS n FROM lanes.series").n == 0
    assert owner.one("SELECT count(*) AS n FROM lanes.browser_pages").n == 0
    assert owner.one("SELECT busy_token FROM lanes.hosts").busy_token is None
    assert {row.trigger for row in owner.all("SELECT trigger FROM lanes.polls")} == {"tried"}


@pytest.mark.parametrize(
    ("page", "code", "verdict", "told"),
    [(RENDERED, 0, "there", "its example: its landmarks are there"), (BARE, 1, "gone", "no Chapter in it")],
)
def test_where_nothing_is_followed_the_example_shows_whether_the_landmarks_are_there(
    inn: Host, own: Own, owner: Owner, page: str, code: int, verdict: str, told: str
) -> None:
    inn.page("/title", page)
    ended, out, err = the_lanes(own, "sites", "verify", "inn", "--example", "--wait", "90", "--json")
    (row,) = json.loads(out)
    assert (ended, row["found"]) == (code, verdict), err
    assert told in row["words"]
    assert len(inn.net.record.of(inn, "/title")) == 1
    assert owner.one("SELECT count(*) AS n FROM lanes.series").n == 0
