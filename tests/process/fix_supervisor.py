"""Real processes for tests: one `lanes` command, and a whole supervisord with the programs of the top-level supervisord.conf.

Every process writes into a file, and a test waits for its words, for a row or for a request at the small internet; never for time.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from xmlrpc.client import ServerProxy

import pytest
from supervisor.xmlrpc import SupervisorTransport  # type: ignore[import-untyped]  # supervisor has no types

from lanes.postgres import default_database_url
from lanes.settings import process_numbers
from tests.smallnet import ALLOWED
from tests.waiting import until

ROOT = Path(__file__).parents[2]
CONTACT = "you@example.org"
NUMBER = process_numbers()["lane-feeds"]


def free_metrics_base() -> int:
    """A base of metrics ports whose port for the `feeds` Lane is free."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return min(int(server.getsockname()[1]), 65_000) - NUMBER


def lanes_environ(**more: str) -> dict[str, str]:
    """The environment of an installation that may fetch the small internet; a value of "" takes a setting away."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LANES_", "LATEST_CHAPTER_"))}
    given = {
        "LANES_CONTACT": CONTACT,
        "LANES_ALLOW_NETWORKS": str(ALLOWED),
        "LANES_METRICS_PORT": str(free_metrics_base()),
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": str(ROOT),  # the programs are those of this very tree, whatever is installed
    }
    return kept | {name: value for name, value in (given | more).items() if value}


class Running:
    """One `lanes` command as a process, its output in a file.  Killed at the end where it has not ended."""

    def __init__(self, log: Path, *words: str, **environ: str) -> None:
        self.log, self.environ = log, lanes_environ(**environ)
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "lanes", *words], cwd=ROOT, env=self.environ, stdout=output, stderr=output
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def says(self, words: str, timeout: float = 30.0) -> None:
        """Wait for words in its output."""

        def said() -> bool:
            return words in self.said or (self.process.poll() is not None and words in self.said)

        until(said, lambda: f"{words!r} in:\n{self.said}", timeout)

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait(30)

    def ends(self, how: signal.Signals | None = signal.SIGTERM, timeout: float = 75.0) -> int:
        """Its exit code, after a signal.  `timeout` is the stopwaitsecs of supervisord.conf."""
        if how is not None:
            self.process.send_signal(how)
        return self.process.wait(timeout)


Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts `lanes WORDS...`: `start("lane", "feeds", LANES_MACHINE="a")`."""
    with ExitStack() as stack:
        count = iter(range(1_000))

        def start(*words: str, **environ: str) -> Running:
            return stack.enter_context(Running(tmp_path / f"{next(count)}.log", *words, **environ))

        yield start


class Supervised:
    """supervisord with the programs of the top-level supervisord.conf, everything it writes in a directory of its own."""

    def __init__(self, place: Path, **environ: str) -> None:
        self.place, self.environ = place, lanes_environ(LANES_DATA_DIR=str(place / "var"), **environ)
        self.database_url = default_database_url(place / "var")
        (place / "var" / "log").mkdir(parents=True, exist_ok=True)
        commands = Path(sys.executable).parent
        conf = (ROOT / "supervisord.conf").read_text().replace("%(here)s/.venv/bin", str(commands))
        (place / "supervisord.conf").write_text(conf)
        with (place / "supervisord.out").open("wb") as output:
            self._process = subprocess.Popen(
                [commands / "supervisord", "--nodaemon", "--configuration", place / "supervisord.conf"],
                env=self.environ,
                cwd=place,
                stdout=output,
                stderr=output,
            )

    def states(self) -> dict[str, tuple[str, int]]:
        """Program: its state and pid; empty while supervisord does not answer."""
        transport = SupervisorTransport(None, None, f"unix://{self.place}/var/supervisor.sock")
        try:
            rpc: Any = ServerProxy("http://127.0.0.1", transport=transport)
            return {each["name"]: (each["statename"], each["pid"]) for each in rpc.supervisor.getAllProcessInfo()}
        except OSError:
            return {}
        finally:
            transport.close()

    def pid(self, program: str) -> int:
        """The pid of a program, once it runs for good."""

        def running() -> int:
            state, pid = self.states().get(program, ("", 0))
            return pid if state == "RUNNING" else 0

        found: int = until(running, self.told)
        return found

    def ctl(self, *words: str) -> None:
        """supervisorctl, as the owner types it."""
        done = subprocess.run(
            [Path(sys.executable).parent / "supervisorctl", "-c", self.place / "supervisord.conf", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}\n{self.told()}"

    def lanes(self, *words: str) -> str:
        """What a `lanes` command says, which must succeed."""
        command = [sys.executable, "-m", "lanes", *words]
        done = subprocess.run(command, cwd=ROOT, env=self.environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}\n{self.told()}"
        return done.stdout

    def log(self, program: str) -> str:
        file = self.place / "var" / "log" / f"{program}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def says(self, program: str, words: str, *, after: int = 0, timeout: float = 30.0) -> None:
        """Wait for words in the log of a program, from the character `after` on."""
        until(lambda: words in self.log(program)[after:], lambda: f"{words!r} in {program}:\n{self.told()}", timeout)

    def told(self) -> str:
        """All that a failing test wants to know."""
        logs = [
            f"--- {name}\n{self.log(name)}" for name in ("supervisord", "postgres", "migrate", "lane-feeds", "browser")
        ]
        return "\n".join([str(self.states()), (self.place / "supervisord.out").read_text(), *logs])

    def kill(self) -> None:
        """kill -9 of supervisord alone: what it had started lives on."""
        self._process.kill()
        self._process.wait(30)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(100)


@pytest.fixture(scope="module")
def supervised() -> Iterator[Supervised]:
    """One for the tests of a module, with the embedded Postgres; in a place that root's server may enter."""
    place = Path(tempfile.mkdtemp(prefix="lanes-"))
    place.chmod(0o755)
    supervised = Supervised(place)
    try:
        supervised.pid("lane-feeds")
        until(lambda: supervised.states().get("migrate", ("",))[0] == "EXITED", supervised.told)
        yield supervised
    finally:
        supervised.stop()
        shutil.rmtree(place, ignore_errors=True)
