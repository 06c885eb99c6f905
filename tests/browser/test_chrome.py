"""Chrome as a process: found, started with its sandbox, and ended with all its family."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from browser_sidecar import chrome
from browser_sidecar.cdp import Cdp
from browser_sidecar.chrome import Binary, Chrome, NotStarted

ROOT = Path(__file__).parents[2]


@pytest.fixture
def started(binary: Binary) -> Iterator[Chrome]:
    started = Chrome(binary)
    yield started
    started.kill()


def alive(pids: set[int]) -> set[int]:
    """Those that still run; a zombie that waits for somebody else does not."""
    return {pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE}


def family(of: Chrome) -> set[int]:
    """What runs with its profile, or descends from it, as another than itself sees it."""
    found = {each.pid for each in psutil.Process(of.pid).children(recursive=True)} | {of.pid}
    for each in psutil.process_iter(["cmdline"]):
        if any(str(of.profile) in word for word in each.info["cmdline"] or ()):
            found.add(each.pid)
    return found


def a_program(tmp_path: Path, text: str) -> str:
    """An executable script."""
    program = tmp_path / "chrome"
    program.write_text("#!/bin/sh\n" + textwrap.dedent(text))
    program.chmod(0o755)
    for place in (tmp_path, *tmp_path.parents):  # root's Chrome runs as somebody else, who must reach it
        if place.owner() == "root" and place != Path("/"):
            place.chmod(place.stat().st_mode | 0o011)
    return str(program)


def test_it_says_which_version_it_is_and_devtools_agree(started: Chrome, binary: Binary) -> None:
    cdp = Cdp(started.url)
    assert cdp.call("Browser.getVersion")["product"].endswith(f"/{binary.version}")
    cdp.close()


def test_it_runs_in_its_sandbox_and_not_as_root(started: Chrome) -> None:
    zygotes = [each for each in psutil.Process(started.pid).children(True) if "--type=zygote" in each.cmdline()]
    namespaces = {Path(f"/proc/{each.pid}/ns/pid_for_children").readlink() for each in zygotes}
    assert len(namespaces) > 1, "no process of it has a namespace of its own"
    assert "--no-sandbox" not in psutil.Process(started.pid).cmdline()
    assert psutil.Process(started.pid).uids().real != 0


def test_nothing_of_our_environment_reaches_it(binary: Binary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANES_DATABASE_URL", "postgresql://lanes:secret@db.test/lanes")
    started = Chrome(binary)
    try:
        environ = psutil.Process(started.pid).environ()
        assert "secret" not in str(environ)
        assert environ["HOME"] == str(started.profile)
    finally:
        started.kill()


def test_when_it_is_killed_nothing_of_it_is_left(started: Chrome) -> None:
    members = family(started)
    assert len(members) > 3
    started.kill()
    assert alive(members) == set()
    assert not started.profile.exists()
    started.kill()  # once more does no harm


def test_nor_is_its_socket_which_it_makes_in_a_place_for_all(started: Chrome) -> None:
    """One more directory each time that it sleeps or is started afresh."""
    socket = (started.profile / "SingletonSocket").readlink()
    assert socket.is_socket()
    started.kill()
    assert not socket.parent.exists()


def test_when_its_first_process_is_gone_the_rest_is_ended_all_the_same(started: Chrome) -> None:
    members = family(started)
    os.kill(started.pid, signal.SIGKILL)
    assert psutil.Process(started.pid).wait(20) is not None or started.is_gone()
    assert started.is_gone()
    started.kill()
    assert alive(members) == set()


def test_its_memory_is_that_of_all_its_processes(started: Chrome) -> None:
    whole = started.memory()
    first = psutil.Process(started.pid).memory_full_info().pss
    assert first < whole < sum(psutil.Process(pid).memory_info().rss for pid in family(started))


def test_two_share_nothing(binary: Binary, started: Chrome) -> None:
    other = Chrome(binary)
    try:
        assert other.profile != started.profile
        assert other.port != started.port
        members = family(started)
    finally:
        other.kill()
    assert alive(members) == members
    assert not started.is_gone()


_KILLED = """
import os, sys
from browser_sidecar import chrome
chrome.adopt_orphans()
started = chrome.Chrome(chrome.find())
print(started.pid, started.profile, flush=True)
sys.stdin.read()
"""


def test_what_a_killed_sidecar_left_behind_is_ended_by_the_next(binary: Binary) -> None:
    """And what belongs to one that lives is not touched."""
    with subprocess.Popen(
        [sys.executable, "-c", _KILLED], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        pid, profile = owner.stdout.readline().split()
        chrome.clear_leavings()
        assert alive({int(pid)}) == {int(pid)}
        owner.kill()
        owner.wait(20)
    assert Path(profile).exists()
    chrome.clear_leavings()
    assert not Path(profile).exists()
    assert psutil.wait_procs([psutil.Process(int(pid))] if psutil.pid_exists(int(pid)) else [], 20)
    assert alive({int(pid)}) == set()


_ADOPTS = """
import os, subprocess, sys, time
from browser_sidecar import chrome
chrome.adopt_orphans()
subprocess.run(["sh", "-c", "sleep 0.01 & echo $!"], check=True)
while True:
    mine = [p for p in chrome._processes() if p.parent == os.getpid()]
    if mine and all(p.state == "Z" for p in mine):
        break
chrome.reap_orphans()
print([p for p in chrome._processes() if p.parent == os.getpid()])
"""


def test_orphans_are_adopted_and_reaped() -> None:
    said = subprocess.run(
        [sys.executable, "-c", _ADOPTS], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert said.stdout.splitlines()[1] == "[]"


def test_without_chrome_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotStarted, match="apt install chromium"):
        chrome.find()


def test_a_binary_that_is_named_is_the_one_that_is_used(tmp_path: Path) -> None:
    program = a_program(tmp_path, 'echo "Chromium 99.1.2.3 built on a test"')
    assert chrome.find(program) == Binary(program, "99.1.2.3")
    with pytest.raises(
        NotStarted, match="names /nowhere/chrome, which is no program: let LANES_BROWSER_BINARY name a Chrome"
    ):
        chrome.find("/nowhere/chrome")


@pytest.mark.parametrize("says", ["hello", "Python 3.11.2", "Mozilla Firefox 140.0"])
def test_what_does_not_say_a_version_of_chrome_is_none(tmp_path: Path, says: str) -> None:
    with pytest.raises(NotStarted, match="let LANES_BROWSER_BINARY name a Chrome"):
        chrome.find(a_program(tmp_path, f"echo {says}"))


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ("[1:1:FATAL:zygote_host_impl_linux.cc(128)] No usable sandbox!", "LANES_BROWSER_SANDBOX=false"),
        ("[1:1:ERROR:ozone_platform_x11.cc] Missing X server", "Missing X server"),
        ("", "it said nothing"),
    ],
)
def test_one_that_ends_at_once_leaves_its_last_words_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, told: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program = a_program(tmp_path, f"echo '{says}' >&2; exit 1")
    with pytest.raises(NotStarted, match=told):
        Chrome(Binary(program, "1"))
    assert list(tmp_path.glob("lanes-chrome-*")) == []


def test_one_that_is_given_up_while_it_starts_is_ended(tmp_path: Path) -> None:
    program = a_program(tmp_path, "exec sleep 1000")
    with pytest.raises(NotStarted, match="being ended"):
        Chrome(Binary(program, "1"), given_up=lambda: True)
    assert [each for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"] == ["sleep", "1000"]] == []


def test_a_program_that_cannot_be_run_is_not_started(tmp_path: Path) -> None:
    (tmp_path / "chrome").write_text("no program")
    with pytest.raises(NotStarted, match="cannot be started"):
        Chrome(Binary(str(tmp_path / "chrome"), "1"))


def test_every_flag_stands_once_and_has_its_reason() -> None:
    flags = [flag for flag, _ in chrome.FLAGS]
    assert len(flags) == len(set(flags))
    assert all(flag.startswith("--") and reason for flag, reason in chrome.FLAGS)
    assert not [flag for flag in flags if "sandbox" in flag or "user-data-dir" in flag or "disable-features" in flag]
    assert len({name for name, _ in chrome.OFF}) == len(chrome.OFF)
