"""Connections to Postgres and the named SQL.

Owns how a connection is made, and that a lost server is one error (`DatabaseAway`).  Refuses to own: any statement.  Must never break:
no wait for a connection is without an end.
"""

from __future__ import annotations

import select
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import aiosql
import psycopg
from psycopg import sql
from psycopg.rows import namedtuple_row
from psycopg_pool import ConnectionPool, PoolTimeout

from lanes.errors import DatabaseAway, DatabaseBusy, SchemaReplaced

CONNECT_TIMEOUT = 5  # seconds for one attempt to connect, per host of a multi-host URL
CHECK_OUT_TIMEOUT = 10.0  # seconds to wait for a connection before saying that Postgres is away

Connection = psycopg.Connection[Any]

_BUSY = (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled)

_REPLACED = (
    psycopg.errors.UndefinedFunction,
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.FeatureNotSupported,  # "cached plan must not change result type"
)


def named_sql(name: str) -> Any:
    """The named statements of sql/<name>.sql."""
    return aiosql.from_path(
        Path(str(files("lanes.store") / "sql" / f"{name}.sql")), "psycopg", mandatory_parameters=False
    )


def array_of(values: Iterable[int | datetime | None]) -> str:
    """An array as Postgres writes it.  psycopg looks for the type of a list's items at each call, which costs a Poll 0.1 ms."""
    return "{" + ",".join("NULL" if each is None else str(each) for each in values) + "}"


class Database:
    """A small pool of connections, every statement its own transaction unless `transaction` is asked for.

    Made closed; the first use opens it.  Safe for threads.  Every verb raises DatabaseAway when the server is gone.
    """

    def __init__(self, url: str, *, largest: int = 4, application: str = "lanes") -> None:
        self._url = url
        self._application = application
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            url,
            min_size=1,
            max_size=largest,
            open=False,
            timeout=CHECK_OUT_TIMEOUT,
            max_idle=60,
            reconnect_timeout=30,
            check=None,
            num_workers=1,
            kwargs=_options(application),
        )

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection in autocommit; given back whatever happens."""
        with away_is_one_error():
            self._pool.open()
            # Not the pool's own context: it ends every use with a COMMIT, and there is nothing to commit.
            connection = self._pool.getconn()
            try:
                yield connection
            finally:
                self._pool.putconn(connection)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A connection inside one transaction, committed at the end or not at all."""
        with self.connection() as connection, connection.transaction():
            yield connection

    def bell(self, channel: str) -> Bell:
        """Listens on a channel over a connection of its own."""
        return Bell(self._url, channel, self._application)

    def close(self) -> None:
        """Closes every connection; nothing is lost by it."""
        self._pool.close(timeout=2)


class Bell:
    """NOTIFY as a mere hint: shortens a sleep, and everything stays correct when every hint is lost (DESIGN 3)."""

    def __init__(self, url: str, channel: str, application: str) -> None:
        self._url, self._channel, self._application = url, channel, application
        self._connection: Connection | None = None

    def wait(self, seconds: float, *others: int) -> None:
        """Sleeps at most `seconds`, less when the bell rings or one of the file descriptors `others` becomes readable."""
        watched: list[Any] = [*others]
        try:
            if self._connection is None:
                self._connection = connect(self._url, self._application + " bell")
                self._connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
            watched.append(self._connection)
            ready, _, _ = select.select(watched, [], [], seconds)
            if self._connection in ready:
                for _ in self._connection.notifies(timeout=0):
                    pass
        except (psycopg.Error, OSError):
            self.close()
            select.select(others, [], [], min(seconds, 1.0))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def ring(connection: Connection, channel: str) -> None:
    """Rings the bell of a channel when the transaction commits."""
    connection.execute("SELECT pg_notify(%s, '')", (channel,))


@contextmanager
def away_is_one_error() -> Iterator[None]:
    """A server that is gone, going, starting, or read-only after a failover raises DatabaseAway, one that is merely busy DatabaseBusy, one
    whose schema was replaced under us SchemaReplaced; everything else is a bug and passes."""
    try:
        yield
    except _REPLACED as error:
        raise SchemaReplaced(str(error)) from error
    except psycopg.errors.InternalError_ as error:
        if "cache lookup failed" not in str(error):
            raise
        raise SchemaReplaced(str(error)) from error  # dropped in the middle of a call
    except _BUSY as error:
        raise DatabaseBusy(str(error)) from error
    except (
        psycopg.OperationalError,
        psycopg.InterfaceError,
        PoolTimeout,
        psycopg.errors.ReadOnlySqlTransaction,
    ) as error:
        raise DatabaseAway(str(error)) from error


def connect(url: str, application: str = "lanes") -> Connection:
    """One connection outside the pool, with the same deadlines."""
    return psycopg.connect(url, **_options(application))


_SERVER_SIDE = {
    "TimeZone": "UTC",  # instants come back in UTC, so that adding to them never meets a change of clocks
    "lock_timeout": "10s",  # a frozen worker's row costs an error, not a wait without end
    "statement_timeout": "120s",
    "idle_in_transaction_session_timeout": "60s",  # a worker that froze inside a transaction lets its rows go
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}


def _options(application: str) -> dict[str, Any]:
    return {
        "autocommit": True,
        "row_factory": namedtuple_row,
        "connect_timeout": CONNECT_TIMEOUT,
        "application_name": application,
        "prepare_threshold": 3,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
        "target_session_attrs": "read-write",
        "options": " ".join(f"-c {name}={value}" for name, value in _SERVER_SIDE.items()),
    }
