"""The files an owner deploys say what the code says: settings, processes, scrape targets, packages."""

from __future__ import annotations

import argparse
import ast
import configparser
import re
import sys
from collections.abc import Collection
from pathlib import Path

from browser_sidecar import chrome
from lanes.cli.parser import build
from lanes.cli.sites import SECTION
from lanes.lane import GRACE
from lanes.settings import TABLE, Settings, process_numbers
from lanes.sites import SITES
from lanes.store.pool import CHECK_OUT_TIMEOUT, CONNECT_TIMEOUT

ROOT = Path(__file__).parents[2]
ONCE = {"postgres", "migrate"}
"""Programs that serve no metrics: Postgres itself, and one that ends."""


def read_config(name: str) -> configparser.RawConfigParser:
    config = configparser.RawConfigParser(inline_comment_prefixes=(";",), strict=True)
    config.read_string((ROOT / name).read_text(encoding="utf-8"))
    return config


def commands() -> Collection[str]:
    """What may follow the word lanes."""
    (found,) = (action.choices for action in build()._actions if isinstance(action, argparse._SubParsersAction))
    assert found
    return found


def programs() -> dict[str, dict[str, str]]:
    config = read_config("supervisord.conf")
    return {
        section.removeprefix("program:"): dict(config[section])
        for section in config.sections()
        if section.startswith("program:")
    }


def test_the_example_environment_holds_every_setting_with_its_default_and_its_words() -> None:
    text = (ROOT / "deploy/lanes.env.example").read_text(encoding="utf-8")
    assert re.findall(r"^#?(\w+)=(.*)$", text, flags=re.MULTILINE) == [
        (setting.name, setting.default) for setting in TABLE
    ]
    words = " ".join(line.removeprefix("#").strip() for line in text.splitlines())
    assert [setting.name for setting in TABLE if setting.help not in words] == []


def test_the_example_environment_names_no_command_that_does_not_exist() -> None:
    text = (ROOT / "deploy/lanes.env.example").read_text(encoding="utf-8")
    named = set(re.findall(r"`lanes ([a-z]+)", text))
    assert "postgres" in named
    assert named <= set(commands())


def test_supervisord_runs_one_lane_for_each_registered_site() -> None:
    lanes = {name: program["command"] for name, program in programs().items() if name.startswith("lane-")}
    assert lanes == {f"lane-{site.name}": f"%(here)s/.venv/bin/lanes lane {site.name}" for site in SITES}


def test_every_other_program_is_a_command_of_its_own_name() -> None:
    others = {
        name: program["command"].split()[1:] for name, program in programs().items() if not name.startswith("lane-")
    }
    assert others.pop("browser") == []  # the sidecar is a program of its own, which no Lane imports
    assert {name: words[0] for name, words in others.items()} == {
        name: name for name in ("postgres", "migrate", "upkeep")
    }
    assert {words[0] for words in others.values()} <= set(commands())


def test_every_running_program_has_a_number_of_its_own() -> None:
    assert set(process_numbers()) == set(programs()) - ONCE
    assert len(set(process_numbers().values())) == len(process_numbers())


def test_prometheus_scrapes_every_running_program_on_its_port() -> None:
    text = (ROOT / "deploy/prometheus.yml").read_text(encoding="utf-8")
    scraped = re.findall(r'- targets: \["([^"]+)"\]\n\s+labels:\n\s+program: (\S+)', text)
    settings = Settings.load({})
    ports = {
        name: f"{settings.metrics_bind}:{settings.metrics_port_of(name)}" for name in programs() if name not in ONCE
    }
    assert {program: target for target, program in scraped} == ports
    assert len(scraped) == len(ports) == text.count("targets:")


def test_a_lane_gets_longer_to_stop_than_a_fetch_may_take() -> None:
    """DESIGN 4: a plain fetch has a deadline of 60 s."""
    assert [
        name for name, program in programs().items() if name.startswith("lane-") and int(program["stopwaitsecs"]) <= 60
    ] == []


def test_every_lane_gets_the_same_time_to_stop_that_its_own_graces_fit_in() -> None:
    """A page in a tab too is given up after a grace: nothing depends on how long it might still take."""
    times = {program["stopwaitsecs"] for name, program in programs().items() if name.startswith("lane-")}
    own = re.search(r"^stopwaitsecs = (\d+)$", SECTION, re.MULTILINE)
    assert own is not None
    assert times == {own[1]}
    assert int(own[1]) > 2 * GRACE + CONNECT_TIMEOUT + CHECK_OUT_TIMEOUT


def test_upkeep_gets_longer_to_stop_than_a_row_may_keep_it_waiting() -> None:
    """The store gives a lock 10 s."""
    assert int(programs()["upkeep"]["stopwaitsecs"]) > 10


def test_the_sidecar_gets_longer_to_stop_than_chrome_may_take_to_end() -> None:
    assert int(programs()["browser"]["stopwaitsecs"]) > 2 * chrome.ENDS_WITHIN
    assert programs()["browser"]["command"] == "%(here)s/.venv/bin/browser-sidecar"


def test_every_package_of_the_tree_is_shipped() -> None:
    found = {
        ".".join(init.parent.relative_to(ROOT).parts)
        for top in ("lanes", "browser_sidecar")
        for init in (ROOT / top).rglob("__init__.py")
    }
    assert set(read_config("setup.cfg")["options"]["packages"].split()) == found


def test_every_sql_file_of_the_tree_is_shipped() -> None:
    config = read_config("setup.cfg")["options.package_data"]
    shipped = {
        file
        for package, globs in config.items()
        for glob in globs.split()
        for file in (ROOT / package.replace(".", "/")).glob(glob)
    }
    assert {file.resolve() for file in (ROOT / "migrations").glob("*.sql")} <= {file.resolve() for file in shipped}
    assert set((ROOT / "lanes/store").rglob("*.sql")) <= shipped


def test_every_dependency_has_its_tested_version() -> None:
    pinned = {
        re.split("==", line)[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line
    }
    config = read_config("setup.cfg")
    wanted = config["options"]["install_requires"] + "".join(config["options.extras_require"].values())
    names = {
        re.split(r"[\[>=;]", line)[0].strip().lower()
        for line in wanted.splitlines()
        if line.strip() and not line.startswith("lanes[")
    }
    assert {name.replace("-", "_") for name in names} - {"lanes"} <= {name.replace("-", "_") for name in pinned}


def test_core_imports_the_standard_library_and_itself_alone() -> None:
    imported = {
        name
        for module in (ROOT / "lanes/core").glob("*.py")
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [a.name for a in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }
    assert {
        name
        for name in imported
        if name.partition(".")[0] not in sys.stdlib_module_names and not name.startswith("lanes.core")
    } == set()
