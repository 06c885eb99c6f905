"""Fixture: the `lanes` command of an installation that has Sites of the owner's own (`tests.own_sites`)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.smallnet import ALLOWED

Own = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def own(database_url: str, tmp_path: Path) -> Own:
    """Runs a command in a process that finds the distributions laid down in `tmp_path`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LANES_")}
    environment |= {
        "LANES_DATABASE_URL": database_url,
        "LANES_CONTACT": "you@example.org",
        "LANES_ALLOW_NETWORKS": str(ALLOWED),
        "LANES_MACHINE": "machine-1",
        "PYTHONPATH": str(tmp_path),
    }

    def run(*command: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command],
            input=stdin, capture_output=True, text=True, cwd=tmp_path, env=environment | more, check=False, timeout=180,
        )  # fmt: skip

    return run


def the_lanes(own: Own, *argv: str, stdin: str = "") -> tuple[int, str, str]:
    """One `lanes` command: exit code, standard output, standard error."""
    done = own("-m", "lanes", *argv, stdin=stdin)
    return done.returncode, done.stdout, done.stderr


def pip_installs(own: Own, place: Path, distribution: Path) -> subprocess.CompletedProcess[str]:
    """An own Site's distribution, laid down in `place` by pip and nothing but what is there."""
    how = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(place)]
    return own("-m", "pip", "--disable-pip-version-check", *how, str(distribution), PIP_ROOT_USER_ACTION="ignore")
