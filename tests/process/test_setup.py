"""The two commands that set everything up, run on a fresh clone as README says them."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from lanes.settings import process_numbers
from tests.smallnet import ALLOWED, Smallnet

ROOT = Path(__file__).parents[2]
STARTED = "Lanes is up."
FEED = "https://example.org/feed.xml"
"""The feed that README adds; a test puts one of its own in its place."""

pytestmark = pytest.mark.timeout(400)


def fresh_environ(**more: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LANES_", "MAKE", "MFLAGS", "VIRTUAL_ENV"))
    }
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = min(server.getsockname()[1], 65000) - process_numbers()["lane-feeds"]
    return {**kept, "LANES_METRICS_PORT": str(free), **more}


def readme_commands() -> list[list[str]]:
    """The commands of each sh block under README's heading "Set-up", without those that get a clone in the first place."""
    section = re.search(
        r"^## Set-up\n(.*?)(?=^## |\Z)",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        flags=re.MULTILINE | re.DOTALL,
    )
    assert section, 'README.md has no section "## Set-up"'
    blocks = [block.splitlines() for block in re.findall(r"```sh\n(.*?)```", section[1], flags=re.DOTALL)]
    getting = ("git clone", "cd ", "apt", "sudo apt", "#")
    return [
        commands
        for block in blocks
        if (commands := [line for line in block if line.strip() and not line.startswith(getting)])
    ]


@pytest.fixture(scope="module")
def clone() -> Iterator[Path]:
    """A fresh clone of what is committed, where every user may enter, so that it serves root's server too."""
    place = Path(tempfile.mkdtemp(prefix="lanes-"))
    place.chmod(0o755)
    subprocess.run(["git", "clone", "--quiet", ROOT, place / "lanes"], check=True)
    yield place / "lanes"
    shutil.rmtree(place)


class Terminal:
    """A shell command on a terminal of its own, which it may ask questions on."""

    def __init__(self, command: str, cwd: Path, **environ: str) -> None:
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            ["sh", "-c", command],
            cwd=cwd,
            env=fresh_environ(**environ),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.said = ""

    def says(self, words: str) -> None:
        while words not in self.said:
            try:
                self.said += os.read(self.ours, 4096).decode()
            except OSError:  # the other end is closed
                raise AssertionError(f"never said {words!r}:\n{self.said}") from None

    def type(self, line: str) -> None:
        os.write(self.ours, f"{line}\n".encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """Ctrl-C, as a person would press it; everything must end by itself."""
        os.killpg(self.process.pid, signal.SIGINT)
        with contextlib.suppress(OSError):
            while os.read(self.ours, 4096):
                pass
        self.process.wait(timeout=100)
        os.close(self.ours)


def run(command: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", command],
        cwd=cwd,
        env=fresh_environ(**environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_make_run_asks_for_the_contact_on_a_terminal_keeps_it_and_stops_on_ctrl_c(clone: Path) -> None:
    (clone / "var" / "lanes.env").unlink(missing_ok=True)
    with Terminal("make run", clone) as terminal:
        terminal.says("Your contact address: ")
        terminal.type("you@example.org")
        terminal.says(STARTED)
        kept = clone / "var" / "lanes.env"
        assert kept.read_text() == "LANES_CONTACT='you@example.org'\n"
        assert kept.stat().st_mode & 0o777 == 0o600
        assert "postgresql://lanes@/lanes?host=" in terminal.said
    assert not (clone / "var" / "supervisor.sock").exists()


def test_without_a_terminal_make_run_says_how_to_give_the_contact(clone: Path) -> None:
    (clone / "var" / "lanes.env").unlink(missing_ok=True)
    ended = run("make run", clone)
    assert ended.returncode == 2
    assert "LANES_CONTACT=you@example.org make run" in ended.stderr


def test_make_run_refuses_settings_that_it_would_ignore_before_it_starts_anything(clone: Path) -> None:
    ended = run("make run", clone, LANES_CONTACT="you@example.org", LATEST_CHAPTER_POLL_STAGGER="20s")
    assert ended.returncode == 2
    assert "LATEST_CHAPTER_POLL_STAGGER" in ended.stderr
    assert "In a second terminal" not in ended.stdout
    assert not (clone / "var" / "supervisord.pid").exists()


def test_a_second_make_has_nothing_to_install(clone: Path) -> None:
    assert run("make .venv/.all", clone).returncode == 0
    assert run("make --question .venv/.all", clone).returncode == 0


@pytest.mark.parametrize(
    ("lacking", "told"),
    [("version_info", "Lanes needs Python 3.11 or newer"), ("ensurepip", "apt install python3-venv")],
)
def test_a_python_that_will_not_do_is_named_with_the_remedy(lacking: str, told: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("setup.cfg", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).touch()
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\ncase "$2" in *{lacking}*) exit 1;; esac\n')
    python.chmod(0o755)
    ended = run(f"make test PYTHON={python}", tmp_path)
    assert ended.returncode == 2
    assert told in ended.stderr


def test_make_run_waits_for_the_end_of_what_is_still_stopping_and_keeps_the_contact_it_was_given(
    tmp_path: Path,
) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    commands = tmp_path / ".venv" / "bin"
    commands.mkdir(parents=True)
    for name in ("setup.cfg", "pyproject.toml", "constraints.txt", ".venv/.all"):
        (tmp_path / name).touch()
    stopping = "echo \"error: <class 'xmlrpc.client.Fault'>, <Fault 6: 'SHUTDOWN_STATE'>: file: client.py\""
    for name, does in {
        "python": "true",
        "lanes": "true",
        "supervisorctl": f"[ $3 = status ] && echo RUNNING && exit; [ -e asked ] && exit 7; touch asked; {stopping}; exit 1",
        "supervisord": "[ -e asked ] && echo it starts",
    }.items():
        (commands / name).write_text(f"#!/bin/sh\n{does}\n")
        (commands / name).chmod(0o755)
    ended = run("touch .venv/.all; timeout 100 make run", tmp_path, LANES_CONTACT="you@example.org")
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "var" / "lanes.env").read_text() == "LANES_CONTACT='you@example.org'\n"
    assert run("touch .venv/.all; timeout 100 make run", tmp_path, LANES_CONTACT="new@example.org").returncode == 0
    assert (tmp_path / "var" / "lanes.env").read_text() == "LANES_CONTACT='you@example.org'\n", "for that once"
    assert ended.stdout.index("still stopping here") < ended.stdout.index("it starts")


def test_the_commands_of_the_readme_lead_to_chapters_within_ten_seconds(clone: Path) -> None:
    first, second = readme_commands()
    allowed = {"LANES_ALLOW_NETWORKS": str(ALLOWED), "LANES_CONTACT": "you@example.org"}
    with Smallnet() as net, Terminal("\n".join(first), clone, **allowed) as terminal:
        feed = net.host("127.1.0.5").feed("/feed.xml", ["Chapter 1", "Chapter 2"])
        terminal.says(STARTED)
        for command in second:
            ended = run(command.replace(FEED, feed.url), clone)
            assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
        deadline = time.monotonic() + 10
        while "Chapter 2" not in (shown := run(".venv/bin/lanes chapters", clone).stdout):
            assert time.monotonic() < deadline, shown
