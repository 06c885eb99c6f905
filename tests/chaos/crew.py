"""The processes of an installation as supervisord would run them, and what befalls them.

Owns starting them again and noting how each ended.  Refuses to own: when they are struck (`storm`).  Must never break: nothing here waits,
but for the end: the storm goes on while a process starts or ends.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from lanes.postgres import default_database_url
from tests.process.fix_supervisor import ROOT, Running, free_metrics_base, lanes_environ, until

from .events import Events

MACHINES = ("one", "two")
STOP_SECONDS = 75
"""The stopwaitsecs of supervisord.conf."""


class Member:
    """One program.  `asked_to_end` says that the next exit must be 0."""

    def __init__(self, place: Path, events: Events, name: str, *words: str, **environ: str) -> None:
        self.name, self._words, self._events = name, words, events
        self._environ = {"LANES_DATA_DIR": str(place), "LANES_METRICS_PORT": str(free_metrics_base())} | environ
        self.log = place.parent / f"{name}.log"
        self.running: Running | None = None
        self._said_before = 0
        self.wanted = self.suspended = self._killed = self._asked_to_end = False

    def start(self) -> None:
        """From now on it is kept running."""
        self.wanted = True
        self._killed = self._asked_to_end = False
        self._said_before = len(self.said)
        self.running = Running(self.log, *self._words, **self._environ)

    def mind(self) -> None:
        """Notes an end, and starts it again at once."""
        if self.running is None or (code := self.running.process.poll()) is None:
            return
        self.running = None
        expected = -signal.SIGKILL if self._killed else 0 if self._asked_to_end else None
        if code != expected:
            self._events.fault(f"{self.name} exited {code} where {expected} was expected: {self.tail()}")
        if self.wanted:
            self._events.note("start", self.name)
            self.start()

    def kill(self) -> None:
        """kill -9, suspended or not."""
        if self._free():
            self._events.note("kill", self.name)
            self._killed, self.suspended = True, False
            self._send(signal.SIGKILL)

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """An orderly end, once it has begun to listen for one."""
        if self._free() and not self.suspended and self.is_up:
            self._events.note("end", f"{self.name} {how.name}")
            self._asked_to_end = True
            self._send(how)

    def suspend(self) -> bool:
        if not self._free() or self.suspended:
            return False
        self._events.note("suspend", self.name)
        self.suspended = True
        self._send(signal.SIGSTOP)
        return True

    def wake(self) -> None:
        if self.suspended and self.running is not None:
            self._events.note("wake", self.name)
            self._send(signal.SIGCONT)
        self.suspended = False

    def finish(self, how: signal.Signals = signal.SIGTERM) -> None:
        """The orderly end of the whole run, waited for."""
        self.wanted = False
        self.wake()
        if self.running is None:
            return
        until(lambda: self.running is None or self.is_up, self.tail)
        self.end(how)
        try:
            self.running.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._events.fault(f"{self.name} did not end within {STOP_SECONDS} s: {self.tail()}")
            self.running.kill()
            self.running = None
        self.mind()

    def destroy(self) -> None:
        """Whatever happened, nothing is left behind."""
        self.wanted = False
        if self.running is not None:
            self.running.kill()
            self.running = None

    @property
    def is_up(self) -> bool:
        """Whether it has said that it starts."""
        return " starts " in self.said[self._said_before :]

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def tail(self) -> str:
        return self.said[-1_500:]

    def _free(self) -> bool:
        return self.running is not None and not self._killed and not self._asked_to_end

    def _send(self, number: signal.Signals) -> None:
        assert self.running is not None
        self.running.process.send_signal(number)


class Crew:
    """Postgres, two Lanes on two machines, and upkeep, in a place of their own."""

    def __init__(self, place: Path, events: Events) -> None:
        self._var = place / "var"
        self._var.mkdir()
        self.url = default_database_url(self._var)
        self.postgres = Member(self._var, events, "postgres", "postgres")
        self.lanes = [
            Member(self._var, events, f"lane-{machine}", "lane", "feeds", LANES_MACHINE=machine) for machine in MACHINES
        ]
        self.upkeep = Member(self._var, events, "upkeep", "upkeep", LANES_MACHINE="one")

    @property
    def members(self) -> list[Member]:
        return [*self.lanes, self.upkeep, self.postgres]

    def open(self, opml: Path) -> None:
        """Postgres runs, its schema is there, and everything of the OPML is followed by the owner."""
        self.postgres.start()
        until(lambda: "ready to accept connections" in self.postgres.said, self.postgres.tail, 60)
        self.command("migrate")
        self.command("import", str(opml))

    def start(self) -> None:
        for member in (*self.lanes, self.upkeep):
            member.start()

    def mind(self) -> None:
        for member in self.members:
            member.mind()

    def finish_workers(self) -> None:
        """The Lanes and upkeep end in good order, Postgres stays."""
        for member in (*self.lanes, self.upkeep):
            member.finish()

    def command(self, *words: str) -> str:
        """A `lanes` command; what it printed.  Raises: AssertionError where it fails."""
        done = self.ask(*words)
        assert done.returncode == 0, f"lanes {words}: {done.stdout}{done.stderr}"
        return done.stdout

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A `lanes` command, however it ends."""
        return subprocess.run(
            [sys.executable, "-m", "lanes", *words],
            cwd=ROOT,
            env=lanes_environ(LANES_DATA_DIR=str(self._var)),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def destroy(self) -> None:
        for member in self.members:
            member.destroy()
