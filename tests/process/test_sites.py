"""Sites as their owner sees, tries and makes them, on the command line."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lanes.cli.parser import parse
from lanes.sites import SITES
from tests.fix_lane import Owner
from tests.fix_own import Own, pip_installs, the_lanes
from tests.own_sites import install, sound
from tests.process.conftest import Lanes
from tests.smallnet import ALLOWED, Smallnet

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "tests" / "samples"


def test_the_table_has_every_site_with_how_sure_it_is_and_what_is_followed(lanes: Lanes) -> None:
    lanes("add", "http://a.test/feed", "http://b.test/feed")
    code, out, err = lanes("sites", "--json")
    assert (code, err) == (0, "")
    rows = {row["site"]: row for row in json.loads(out)}
    assert list(rows) == [site.name for site in SITES]
    assert rows["feeds"]["followed"] == 2
    assert (rows["feeds"]["rest"], rows["feeds"]["gap"], rows["feeds"]["own"]) == (3600, None, None)
    for site in SITES:
        row = rows[site.name]
        assert (row["experimental"], row["starts"], row["browser"]) == (site.experimental, site.starts, site.browser)
        assert row["evidence"] is None or row["evidence"]["certainty"] == site.evidence.certainty  # type: ignore[union-attr]
    table = lanes("sites")[1].splitlines()
    assert table[0].split()[:5] == ["SITE", "READ", "REST", "GAP", "STARTED"]
    for line, site in zip(table[1:], SITES, strict=True):
        assert line.startswith(f"{site.name} (experimental) " if site.experimental else f"{site.name} ")
        assert ("by browser" if site.browser else "plainly") in line
        assert ("not by default" in line) is not site.starts


def test_the_table_is_shown_without_a_database_too(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANES_DATABASE_URL", "postgresql://lanes@127.0.0.1:1/lanes")
    code, out, err = lanes("sites")
    assert code == 0
    assert "feeds" in out
    assert err.startswith("lanes sites: what is followed is not known. ")


def test_an_own_site_is_shown_as_the_owners_and_a_broken_one_is_told_and_left_out(own: Own, tmp_path: Path) -> None:
    install(tmp_path, "inn", sound("inn", "inn.test"))
    install(tmp_path, "royalroad", sound("royalroad", "road.test"), distribution="my-road")
    install(tmp_path, "barn", "import nowhere_to_be_found", distribution="my-barn")
    code, out, err = the_lanes(own, "sites", "--json")
    rows = json.loads(out)
    assert [row["site"] for row in rows[:2]] == ["inn", "royalroad"]
    assert [row["site"] for row in rows].count("royalroad") == 1
    assert (rows[0]["own"], rows[0]["replaces_the_shipped"], rows[0]["hosts"]) == ("my-sites 1.5", False, ["inn.test"])
    assert (rows[1]["own"], rows[1]["replaces_the_shipped"], rows[1]["hosts"]) == ("my-road 1.5", True, ["road.test"])
    assert code == 1
    assert "The own Site 'barn' of my-barn 1.5 is left out: " in err
    code, out, err = the_lanes(own, "add", "http://inn.test/12", "http://elsewhere.test/feed")
    assert code == 0
    assert "Following inn-test-12 (inn): http://inn.test/12" in out
    assert "elsewhere-test (feeds)" in out
    assert "lanes add: The own Site 'barn' of my-barn 1.5 is left out: " in err
    (tmp_path / "list.opml").write_text("<opml><body><outline xmlUrl='http://a.test/1'/></body></opml>", "utf-8")
    assert "lanes import: The own Site 'barn' of my-barn 1.5 is left out: " in the_lanes(own, "import", "list.opml")[2]
    assert the_lanes(own, "lane", "barn")[0] == 3
    assert "The own Site 'barn' of my-barn 1.5 is left out: " in the_lanes(own, "lane", "barn")[2]


def test_where_another_site_has_series_already_nothing_is_followed_that_would_never_be_polled(
    own: Own, tmp_path: Path
) -> None:
    (tmp_path / "list.opml").write_text(
        '<opml><body><outline xmlUrl="http://inn.test/13"/></body></opml>', encoding="utf-8"
    )
    assert the_lanes(own, "add", "http://inn.test/feed")[0] == 0  # of feeds, for there is no other Site yet
    install(tmp_path, "inn", sound("inn", "inn.test"))
    why = (
        "1 Series at inn.test (such as inn-test) is of the Site feeds, and a host has one Site: "
        "`lanes remove --purge` ends that"
    )
    code, out, err = the_lanes(own, "add", "http://inn.test/12")
    assert (code, out, err) == (2, "", f"lanes add: 'http://inn.test/12' cannot be followed: {why}.\n")
    assert why in the_lanes(own, "import", "list.opml")[1]
    assert the_lanes(own, "remove", "--purge", "--yes", "inn-test")[0] == 0
    assert "(inn): http://inn.test/12" in the_lanes(own, "add", "http://inn.test/12")[1]


def test_a_lane_that_starts_says_once_whose_site_it_has_and_what_is_left_out(own: Own, tmp_path: Path) -> None:
    install(tmp_path, "royalroad", sound("royalroad", "road.test"), distribution="my-road")
    install(tmp_path, "barn", "SITE = None", distribution="my-barn")
    program = "import logging, lanes.sites as s; logging.basicConfig(level='INFO'); s.tell_own(s.by_name('royalroad'))"
    told = own("-c", program).stderr
    assert told.count("this is an own Site site=royalroad of=my-road 1.5 replaces=True") == 1
    assert told.count("The own Site 'barn' of my-barn 1.5 is left out: ") == 1


def test_a_file_is_read_without_a_database_newest_first(own: Own) -> None:
    sample = str(SAMPLES / "blog_rss2.xml")
    done = own(
        "-m", "lanes", "try", "feeds", sample, "--json", LANES_DATABASE_URL="postgresql://lanes@127.0.0.1:1/lanes"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["verdict"], found["site"], found["status"]) == ("recognised", "feeds", 200)
    dates = [each["published_at"] for each in found["chapters"] if each["published_at"]]
    assert dates == sorted(dates, reverse=True)
    table = own("-m", "lanes", "try", "feeds", sample).stdout.splitlines()
    assert table[1].split() == ["NUMBER", "PUBLISHED", "CHAPTER", "IDENTITY"]


def test_what_is_not_recognised_is_told_with_its_beginning_and_fails(own: Own) -> None:
    page = "<html><title>Be right back</title><link rel=alternate type=application/rss+xml href=/feed></html>"
    code, out, _ = the_lanes(own, "try", "feeds", "-", "--url", "https://blog.example/", stdin=page)
    assert code == 1
    lines = out.splitlines()
    assert lines[0] == "Not recognised: this is a web page, not a feed"
    assert lines[1].startswith("It begins: <html><title>Be right back")
    assert lines[2] == "It names a feed: https://blog.example/feed"


def test_a_challenge_in_a_file_is_a_refusal(own: Own) -> None:
    page = "<html><title>Just a moment...</title><script>window._cf_chl_opt={}</script></html>"
    code, out, _ = the_lanes(own, "try", "feeds", "-", stdin=page)
    assert code == 1
    assert out.startswith("Refused: ")


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (("nowhere", "x"), 3, "There is no Site 'nowhere'"),
        (("feeds", "no-such-file.xml"), 2, "no-such-file.xml cannot be read"),
        (("feeds", "gopher://a.test/"), 2, "only http:// and https://"),
        (("royalroad", "https://blog.example/feed"), 2, "it is not of the Site royalroad, but of feeds"),
    ],
)
def test_what_cannot_be_tried_is_said_before_anything_is_asked(
    own: Own, argv: tuple[str, ...], code: int, said: str
) -> None:
    done = own("-m", "lanes", "try", *argv)
    assert done.returncode == code
    assert said in done.stderr


def test_a_url_is_tried_and_its_host_is_let_go(own: Own, net: Smallnet, owner: Owner) -> None:
    host = net.host("127.1.0.5")
    host.feed("/feed", ["Chapter 2", "Chapter 1"])
    code, out, err = the_lanes(own, "try", "feeds", host.url("/feed"), "--json")
    assert code == 0, err
    assert [each["number"] for each in json.loads(out)["chapters"]] == ["1", "2"]
    assert [visit.path for visit in net.record] == ["/robots.txt", "/feed"]
    assert owner.one("SELECT busy_token FROM lanes.hosts").busy_token is None
    assert owner.one("SELECT count(*) AS n FROM lanes.series").n == 0
    agent = net.record[-1].headers["user-agent"]
    assert "you@example.org" in agent


def test_a_closed_gate_is_told_with_its_end_and_an_exit_code_of_its_own(own: Own, net: Smallnet, lanes: Lanes) -> None:
    host = net.host("127.1.0.5")
    lanes("add", host.url("/feed"))
    lanes("block", host.address)
    code, out, _ = the_lanes(own, "try", "feeds", host.url("/feed"))
    assert code == 4
    assert out.startswith("Not asked: the owner blocked it")
    assert not net.record


def test_killed_in_mid_fetch_it_leaves_nothing_closed_longer_than_its_lease(
    own: Own, net: Smallnet, owner: Owner, tmp_path: Path
) -> None:
    """CASES H1, by the owner's own hand."""
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One"])
    owner.has_no_robots(host.url())
    environment = os.environ | {
        "LANES_DATABASE_URL": owner.url,
        "LANES_CONTACT": "you@example.org",
        "LANES_ALLOW_NETWORKS": str(ALLOWED),
    }
    with host.hold("/feed"):
        running = subprocess.Popen(
            [sys.executable, "-m", "lanes", "try", "feeds", host.url("/feed")],
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        try:
            net.wait_until(lambda record: bool(record.underway))
        finally:
            running.kill()
            running.wait()
    row = owner.host(host.address)
    assert row.busy_until > owner.now()
    owner.tell("UPDATE lanes.clock SET test_offset = '5 seconds'")  # its interval is over
    code, out, _ = the_lanes(own, "try", "feeds", host.url("/feed"), "--wait", "0")
    assert code == 4
    assert out.startswith("Not asked: its host is being fetched")
    owner.tell("UPDATE lanes.clock SET test_offset = '90 seconds'")
    assert the_lanes(own, "try", "feeds", host.url("/feed"), "--wait", "5")[0] == 0


@pytest.mark.parametrize("kind", ["page", "feed", "browser"])
def test_what_site_new_writes_is_installed_passes_its_test_and_is_tried_at_once(
    own: Own, tmp_path: Path, kind: str
) -> None:
    code, out, err = the_lanes(
        own, "site", "new", "lantern-8", "--url", "https://lantern.example/serial/12?o=1", f"--{kind}"
    )
    assert code == 0, err
    made = tmp_path / "lanes-site-lantern-8"
    sample = made / ("sample.xml" if kind == "feed" else "sample.html")
    assert f"lanes try lantern-8 lanes-site-lantern-8/{sample.name}" in out
    installed = pip_installs(own, tmp_path, made)
    assert installed.returncode == 0, installed.stderr
    row = json.loads(the_lanes(own, "sites", "--json")[1])[0]
    assert (row["site"], row["own"], row["browser"]) == ("lantern-8", "lanes-site-lantern-8 0.1.0", kind == "browser")
    assert row["hosts"] == ["lantern.example", "www.lantern.example"]
    code, out, err = the_lanes(own, "try", "lantern-8", str(sample), "--json")
    assert code == 0, err
    assert [each["number"] for each in json.loads(out)["chapters"]] == ["2", "1"]
    tests = own("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--rootdir", str(made), str(made))
    assert tests.returncode == 0, tests.stdout
    assert "3 passed" in tests.stdout
    by_itself = own(str(made / "test_lanes_site_lantern_8.py"))
    assert by_itself.stdout.count(" passed") == 3
    assert "TO FILL IN" in (made / "lanes_site_lantern_8.py").read_text(encoding="utf-8")


def test_what_site_new_writes_for_a_shipped_name_says_what_becomes_of_its_series_and_has_them(
    own: Own, lanes: Lanes, tmp_path: Path
) -> None:
    url = "https://www.royalroad.com/fiction/21220"
    lanes("add", url)
    (before,) = json.loads(lanes("list", "--json", "--whole-urls")[1])
    code, _, err = the_lanes(own, "site", "new", "royalroad", "--url", url)
    assert (code, err) == (
        0,
        "lanes site: once installed it replaces the shipped Site royalroad, and has its Series.\n",
    )
    made = tmp_path / "lanes-site-royalroad"
    assert pip_installs(own, tmp_path, made).returncode == 0
    readme = (made / "README.md").read_text(encoding="utf-8")
    assert "replaces the shipped Site `royalroad`" in readme
    assert "all stay, with their Chapters" in readme
    assert "--supervisord" not in readme, "its section is there"
    assert (
        "Run its test: `" + f"{Path(sys.executable).parent}/python test_lanes_site_royalroad.py` (with pytest" in readme
    )
    bin_ = Path(sys.executable).parent
    for words in re.findall(rf"`{bin_}/lanes ([^`]*)`", readme):
        asked = parse([word.replace("FILE", "x") for word in shlex.split(words)])
        assert asked.run, words
    programs = set(re.findall(r"\blane-[a-z]+", readme))
    assert programs == {"lane-royalroad", "lane-feeds"}
    sites = {row["site"]: row for row in json.loads(the_lanes(own, "sites", "--json")[1])}
    royalroad = next(site for site in SITES if site.name == "royalroad")
    assert (sites["royalroad"]["replaces_the_shipped"], sites["royalroad"]["followed"]) == (True, 1)
    assert sites["royalroad"]["hosts"] == list(royalroad.hosts)
    (after,) = json.loads(the_lanes(own, "list", "--json", "--whole-urls", "--site", "royalroad")[1])
    assert (after["key"], after["url"], after["bookmarks"]) == (before["key"], before["url"], before["bookmarks"])
    assert own("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(made), str(made)).returncode == 0


def test_one_that_replaces_a_shipped_site_keeps_its_hosts_where_the_site_has_moved(own: Own, tmp_path: Path) -> None:
    code, _, err = the_lanes(own, "site", "new", "royalroad", "--url", "https://roads.example/fiction/1")
    assert code == 0, err
    source = (tmp_path / "lanes-site-royalroad" / "lanes_site_royalroad.py").read_text(encoding="utf-8")
    shipped = next(site for site in SITES if site.name == "royalroad").hosts
    assert f"HOSTS = {(*shipped, 'roads.example', 'www.roads.example')!r}" in source


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("new", "feeds", "--url", "https://lantern.example/1"), "`feeds` has every host"),
        (("new", "Lantern", "--url", "https://lantern.example/1"), "is not a name of 1 to 40"),
        (("new", "lantern", "--url", "https://www.royalroad.com/fiction/1"), "belongs to the Site royalroad"),
        (("new", "lantern", "--url", "lantern.example"), "only http:// and https://"),
        (("new", "lantern", "--url", "https://lantern.example/1", "--into", "."), "nothing is written over"),
    ],
)
def test_no_skeleton_is_written_that_could_not_work(own: Own, tmp_path: Path, argv: tuple[str, ...], said: str) -> None:
    (tmp_path / "here.txt").write_text("something", encoding="utf-8")
    code, _, err = the_lanes(own, "site", *argv)
    assert code == 2
    assert said in err
    assert [each.name for each in tmp_path.iterdir()] == ["here.txt"]


def test_a_page_that_lost_its_list_is_no_success_of_a_try(own: Own, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    first = '{"queries": {"[\\"manga\\",\\"detail\\",\\"e1ev\\"]": {"hid": "e1ev", "title": "Eleven Bridges", "latestChapter": 9}}}'
    page.write_text(
        f'<!doctype html><html><head><title>Eleven Bridges</title><script id="initial-data" type="application/json">{first}</script>'
        "</head><body></body></html>",
        encoding="utf-8",
    )
    code, out, _ = the_lanes(own, "try", "comix", str(page))
    assert (code, "its newest number" in out) == (1, True), out


def test_who_follows_a_publisher_that_disallows_everything_is_told(lanes: Lanes) -> None:
    code, out, _ = lanes("add", "https://www.reddit.com/r/HFY/")
    assert code == 0
    assert "robots.txt disallows everything" in out
