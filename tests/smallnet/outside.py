"""A small internet in a process of its own, for tests and benches whose own CPU time must not be mixed with it.

Owns starting, asking and ending that process.  Refuses to own: its worlds.  Must never break: the process ends with the `with` block.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

from .record import Record

ROOT = Path(__file__).parents[2]
_open = build_opener(ProxyHandler({})).open
ASK_SECONDS = 60


class Outside:
    """`with Outside("bench", hosts=500, feeds=10, opml=FILE) as world: ... world.summary(minimum=1.0)`.

    Options are those of `python -m tests.smallnet`.  `port`, `control` (URL) and `pid` are set when everything listens.
    """

    def __init__(self, scenario: str, **options: object) -> None:
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        self._command = [sys.executable, "-m", "tests.smallnet", scenario, *words]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the small internet did not start: it exited {self._process.wait()}")
        ready = json.loads(line)
        self.pid: int = self._process.pid
        self.port: int = ready["port"]
        self.control: str = ready["control"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(ASK_SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def publish(self, url: str, title: str) -> str:
        """Add an item to the feed at `url`; returns its link."""
        return self.ask("publish", url=url, title=title)

    def record(self) -> Record:
        """Everything so far."""
        return Record.load(self.ask("record").splitlines())

    def summary(self, minimum: float = 1.0) -> dict[str, Any]:
        """Counts, offences and overlaps (see `control`)."""
        found: dict[str, Any] = json.loads(self.ask("summary", minimum=minimum))
        return found

    def ask(self, verb: str, **values: object) -> str:
        """Any verb of the control.  Raises: urllib.error.HTTPError where it refuses."""
        with _open(f"{self.control}{verb}?{urlencode(values)}", timeout=ASK_SECONDS) as answer:
            text: str = answer.read().decode()
        return text
