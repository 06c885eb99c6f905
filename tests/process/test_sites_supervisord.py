"""The sections that `lanes sites --supervisord` prints, as supervisord itself reads them where they are kept."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from supervisor.options import ServerOptions  # type: ignore[import-untyped]  # supervisor has no types

from lanes.cli.sites import section
from lanes.settings import Settings
from lanes.sites import SITES, Site
from lanes.sites.own import number_of
from tests.fix_own import Own, the_lanes
from tests.own_sites import install, sound

ROOT = Path(__file__).parents[2]
CONF = (ROOT / "supervisord.conf").read_text(encoding="utf-8")
SETTINGS = Settings.load({"LANES_CONTACT": "you@example.org"})


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A place as `make run` leaves it: supervisord.conf, and var/ with its logs."""
    tree = tmp_path / "tree"
    (tree / "var" / "log").mkdir(parents=True)
    (tree / "var" / "sites").mkdir()
    (tree / "supervisord.conf").write_text(CONF, encoding="utf-8")
    return tree


def programs(tree: Path) -> dict[str, dict[str, Any]]:
    """What supervisord would run there, every option of it.  Raises where it would not start."""
    options = ServerOptions()
    options.realize(["-n", "-c", str(tree / "supervisord.conf")])
    return {
        program.name: {name: getattr(program, name) for name in program.req_param_names + program.optional_param_names}
        for group in options.process_group_configs
        for program in group.process_configs
    }


def without(conf: str, program: str) -> str:
    """The file without a section."""
    before, _, rest = conf.partition(f"[program:{program}]\n")
    assert rest
    return before + rest[rest.index("[") :]


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.name)
def test_the_section_of_a_shipped_site_pasted_as_it_stands_is_the_shipped_one(tree: Path, site: Site) -> None:
    shipped = programs(tree)
    (tree / "supervisord.conf").write_text(
        without(CONF, f"lane-{site.name}") + section(site, SETTINGS), encoding="utf-8"
    )
    assert programs(tree) == shipped


def test_the_section_of_an_own_site_runs_its_lane_as_a_shipped_one_is_run(own: Own, tree: Path, tmp_path: Path) -> None:
    """Kept where its comment says, whatever LANES_DATA_DIR is there."""
    install(tmp_path, "inn", sound("inn", "inn.test"))
    install(tmp_path, "royalroad", sound("royalroad", "road.test"))
    done = own("-m", "lanes", "sites", "--supervisord", LANES_DATA_DIR="/nowhere/at all")
    assert done.returncode == 0, done.stderr
    assert "Keep this file as var/sites/inn.conf" in done.stdout
    assert f'targets: ["127.0.0.1:{9600 + number_of("inn")}"]' in done.stdout
    assert "program: lane-inn" in done.stdout
    (tree / "var" / "sites" / "inn.conf").write_text(done.stdout, encoding="utf-8")
    found = programs(tree)
    assert "lane-royalroad" in found  # the other has the shipped one's section
    ours, theirs = found["lane-inn"], found["lane-royalroad"]
    assert Path(ours["stdout_logfile"]).resolve() == tree / "var" / "log" / "lane-inn.log"
    program, *words = ours["command"].split()
    assert Path(program).name == "lanes"
    assert Path(program).is_file()
    assert words == ["lane", "inn"]
    for differs in ("name", "command", "stdout_logfile"):
        del ours[differs], theirs[differs]
    assert ours == theirs


def test_the_section_of_a_site_that_is_not_started_by_default_says_so(own: Own, tree: Path, tmp_path: Path) -> None:
    install(tmp_path, "inn", sound("inn", "inn.test", "starts=False"))
    (tree / "var" / "sites" / "inn.conf").write_text(
        the_lanes(own, "sites", "--supervisord", "inn")[1], encoding="utf-8"
    )
    assert programs(tree)["lane-inn"]["autostart"] is False


def test_without_a_tree_the_places_are_those_of_the_settings(own: Own, tmp_path: Path) -> None:
    """Installed from a wheel, beside a supervisord.conf of its owner's."""
    package = tmp_path / "site packages"
    shutil.copytree(ROOT / "lanes", package / "lanes", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "data 5%" / "log").mkdir(parents=True)
    data = {"LANES_DATA_DIR": str(tmp_path / "data 5%"), "PYTHONPATH": str(package)}
    printed = own("-m", "lanes", "sites", "--supervisord", "royalroad", **data).stdout
    (tmp_path / "supervisord.conf").write_text("[supervisord]\n" + printed, encoding="utf-8")
    found = programs(tmp_path)["lane-royalroad"]
    assert found["stdout_logfile"] == str(tmp_path / "data 5%" / "log" / "lane-royalroad.log")
    assert "here" not in printed
