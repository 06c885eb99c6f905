"""yoyo over our own connection.

Owns how yoyo reaches the database.  Refuses to own: what is migrated and when (`schema`).
"""

from __future__ import annotations

from typing import Any

from psycopg.rows import tuple_row
from yoyo import read_migrations
from yoyo.backends.core.postgresql import PostgresqlPsycopgBackend
from yoyo.connections import DatabaseURI

from lanes.store.pool import connect

__all__ = ["backend_of", "read_migrations"]


class _Backend(PostgresqlPsycopgBackend):  # type: ignore[misc]  # yoyo has no types
    """yoyo's own back end, connected by a libpq URL whole (sockets and several hosts included), its tables in our schema."""

    url = ""

    def connect(self, dburi: Any) -> Any:  # noqa: ARG002 - our URL goes to libpq whole, yoyo's parts are not used
        connection = connect(self.url, "lanes migrate")
        connection.row_factory = tuple_row
        connection.execute("SET statement_timeout = 0")
        connection.execute("SET client_min_messages TO warning")
        connection.execute("CREATE SCHEMA IF NOT EXISTS lanes")
        connection.execute("SET search_path TO lanes, public")
        return connection


def backend_of(url: str) -> Any:
    """yoyo's back end for this database."""
    made = type("_Backend", (_Backend,), {"url": url})
    return made(DatabaseURI("postgresql+psycopg", None, None, None, None, "", {}), "_yoyo_migration")
