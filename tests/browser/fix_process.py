"""Fixture: the `browser-sidecar` command as a process, with a real Chromium, on a test's own database."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import psutil
import pytest

from browser_sidecar.chrome import Binary
from tests.browser.rows import Rows, until
from tests.process.fix_supervisor import lanes_environ

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
NUMBER = 3


def free_base() -> int:
    """A base of metrics ports whose port for the sidecar is free."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return min(int(server.getsockname()[1]), 65_000) - NUMBER


class Process:
    """One sidecar; its output in a file.  Killed at the end where it has not ended."""

    def __init__(self, log: Path, url: str, *words: str, **environ: str) -> None:
        self.log, base = log, free_base()
        self.metrics = f"http://127.0.0.1:{base + NUMBER}"
        given = {"LANES_DATABASE_URL": url, "LANES_METRICS_PORT": str(base)} | environ
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *(words or ("browser_sidecar.sidecar",))],
                cwd=ROOT,
                env=lanes_environ(**given),
                stdout=output,
                stderr=output,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            members = self.family()
            self.ends()
            assert alive(members) == set(), self.said

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def says(self, words: str) -> None:
        """Wait for words in its output."""
        until(lambda: words in self.said, lambda: f"{words!r} in:\n{self.said}")

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def family(self) -> set[int]:
        """It and all that descends from it."""
        return {self.process.pid, *(each.pid for each in self.children())}

    def chrome(self) -> int:
        """The process group of its Chrome."""
        found = until(
            lambda: [
                each
                for each in self.children()
                if still(each, lambda it: os.getpgid(it.pid) == it.pid and "--headless=new" in it.cmdline(), False)
            ],
            lambda: self.said,
        )
        return found[0].pid  # type: ignore[no-any-return,index]

    def weight(self) -> int:
        """Bytes that Chrome's family has for itself, what it shares counted once, when the process of its last page has ended.  Pages of
        files are left out: whether another Chrome runs on this machine decides what they weigh."""
        until(
            lambda: (
                not any(still(each, lambda it: "--type=renderer" in it.cmdline(), False) for each in self.children())
            ),
            lambda: str(self.children()),
        )
        return sum(still(each, _own_memory, 0) for each in self.children())

    def zombies(self) -> list[psutil.Process]:
        return [each for each in self.children() if still(each, lambda it: it.status(), "") == psutil.STATUS_ZOMBIE]

    def metric(self, name: str) -> float:
        """The value of a metric, labels as they are written."""
        with urllib.request.urlopen(f"{self.metrics}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        (line,) = (line for line in text.splitlines() if line.startswith(f"{name} "))
        return float(line.rpartition(" ")[2])

    def health(self) -> tuple[int, str]:
        """The status of /health, and the state that it tells."""
        try:
            answer = urllib.request.urlopen(f"{self.metrics}/health", timeout=10)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            return answer.status, json.load(answer)["state"]

    def ends(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Its exit code, after a signal."""
        self.process.send_signal(how)
        return self.process.wait(30)


def still(process: psutil.Process, ask: Callable[[psutil.Process], T], gone: T) -> T:
    """What a process says of itself; `gone` where it has ended since it was found."""
    try:
        return ask(process)
    except (psutil.NoSuchProcess, ProcessLookupError, FileNotFoundError):
        return gone


def _own_memory(process: psutil.Process) -> int:
    text = Path("/proc", str(process.pid), "smaps_rollup").read_text(encoding="ascii")
    return sum(int(kib) * 1024 for kib in re.findall(r"^Pss_(?:Anon|Shmem): +([0-9]+) kB$", text, re.MULTILINE))


def alive(pids: set[int]) -> set[int]:
    """Those that still run."""
    return {pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE}


StartSidecar = Callable[..., Process]


@pytest.fixture
def rows(database_url: str) -> Iterator[Rows]:
    """What Lanes ask, on the test's own database."""
    rows = Rows(database_url)
    yield rows
    rows.close()


@pytest.fixture
def start_sidecar(binary: Binary, rows: Rows, tmp_path: Path) -> Iterator[StartSidecar]:
    """Starts a sidecar and waits until it serves: `start_sidecar(LANES_BROWSER_TABS="2")`."""
    with ExitStack() as stack:
        count = iter(range(100))

        def start(*words: str, **environ: str) -> Process:
            process = stack.enter_context(Process(tmp_path / f"{next(count)}.log", rows.url, *words, **environ))
            process.says("the sidecar starts")
            until(lambda: process.metric("browser_up") == 1, lambda: process.said)
            return process

        yield start
