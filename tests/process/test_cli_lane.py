"""The command and a Lane, each a process of its own: what is added is polled, and the owner is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.smallnet import ALLOWED, Smallnet, status


@pytest.fixture
def environ(database_url: str) -> dict[str, str]:
    """Of an installation whose metrics port is anybody's: a Lane goes on without."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("LANES_")}
    return ours | {
        "LANES_DATABASE_URL": database_url,
        "LANES_CONTACT": "owner@example.org",
        "LANES_ALLOW_NETWORKS": str(ALLOWED),
        "LANES_METRICS_PORT": "19700",
    }


@pytest.fixture
def lane(environ: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    lane = subprocess.Popen([sys.executable, "-m", "lanes", "lane", "feeds"], env=environ, stderr=subprocess.DEVNULL)
    yield lane
    lane.send_signal(signal.SIGTERM)
    assert lane.wait(timeout=60) == 0


def lanes(environ: dict[str, str], *argv: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "lanes", *argv], env=environ, capture_output=True, text=True, check=False, timeout=90
    )
    return done.returncode, done.stdout


@pytest.mark.usefixtures("lane")
def test_what_is_added_is_polled_and_its_chapters_are_told(environ: dict[str, str], net: Smallnet) -> None:
    host = net.host("127.1.0.10")
    host.feed("/feed", ["Chapter 1", "Chapter 2"])
    code, out = lanes(environ, "add", "--wait", "60", host.url("/feed"))
    assert code == 0
    assert "2 Chapters found" in out
    assert "Chapter 2" in lanes(environ, "chapters")[1]
    assert "first sight" in lanes(environ, "polls")[1]
    assert "it rests until its next check" in lanes(environ, "why", host.url("/feed"))[1]
    assert lanes(environ, "audit")[0] == 0


@pytest.mark.usefixtures("lane")
def test_what_cannot_be_read_is_told_with_its_reason(environ: dict[str, str], net: Smallnet) -> None:
    host = net.host("127.1.0.11")
    host.script("*", status(404))
    code, out = lanes(environ, "add", "--wait", "60", host.url("/gone"))
    assert code == 1
    assert "failed: 404" in out
    assert "it failed once (404" in lanes(environ, "why", host.url("/gone"))[1]
