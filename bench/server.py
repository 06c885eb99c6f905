"""The database a bench works on: LANES_TEST_DATABASE_URL, or the embedded server with its usual settings; and its CPU seconds.

Owns making it and reading /proc.  Refuses to own: what is measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg

from lanes.postgres import default_database_url
from lanes.store import schema

_RUN = (
    "import os, sys; from lanes import postgres, settings; sys.exit(postgres.run(settings.Settings.load(os.environ)))"
)
DEADLINE = 60.0


@contextmanager
def server() -> Iterator[str]:
    """The URL of a server on which databases may be made: the one named by LANES_TEST_DATABASE_URL, else an embedded one."""
    given = os.environ.get("LANES_TEST_DATABASE_URL")
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        data_dir = Path(folder) / "data"
        process = subprocess.Popen([sys.executable, "-c", _RUN], env=os.environ | {"LANES_DATA_DIR": str(data_dir)})
        try:
            yield _answering(default_database_url(data_dir))
        finally:
            process.terminate()
            process.wait(DEADLINE)


def _answering(url: str) -> str:
    until = time.monotonic() + DEADLINE
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return url


@contextmanager
def database(admin_url: str) -> Iterator[str]:
    """A migrated database of its own."""
    name = f"lanes_bench_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(admin_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        parts = urlsplit(admin_url)
        url = f"{parts.scheme}://{parts.netloc}/{name}?{parts.query}"
        try:
            schema.migrate(url)
            yield url
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


class ServerCpu:
    """CPU seconds of a Postgres server: every process of it, those that ended included."""

    def __init__(self, url: str) -> None:
        with psycopg.connect(url) as connection:
            self._postmaster = psutil.Process(connection.info.backend_pid).parent()

    def seconds(self) -> float:
        assert self._postmaster is not None
        own = self._postmaster.cpu_times()
        total = own.user + own.system + own.children_user + own.children_system
        for child in self._postmaster.children():
            try:
                times = child.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system
        return total
