"""Bringing a database up to what this code needs, and refusing to work on one that is not.

Owns migrations (tables, by yoyo) and the rules (deciding functions, replaced whole).  Refuses to own: any row of the running system.
Must never break: no process works on a schema older than its code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path

import psycopg

from lanes.errors import DatabaseAway, StoreError
from lanes.store.pool import connect

OLDEST_POSTGRES = 15  # NULLS NOT DISTINCT, and what the tests were run on
POLL_SCHEMA = 2.0  # seconds between two looks while waiting for `lanes migrate`

_DROP_RULES = """
DO $$ DECLARE every text; BEGIN
    SELECT string_agg(p.oid::regprocedure::text, ', ') INTO every FROM pg_proc p
    WHERE p.pronamespace = 'lanes'::regnamespace AND p.proname NOT IN ('now', 'later', 'bucket', 'place_in_queue', 'shifted');
    IF every IS NOT NULL THEN EXECUTE 'DROP FUNCTION ' || every || ' CASCADE'; END IF;
END $$
"""


def migrate(url: str) -> tuple[str, ...]:
    """Brings the database up to this code; returns what was done, a line each (nothing: it was up to date).

    Raises DatabaseAway when it cannot be reached, StoreError when it is too old, newer than this code, or may not be changed.
    """
    with _translated():
        _check_version(url)
        from lanes.store.migrating import backend_of, read_migrations  # noqa: PLC0415 - 3 MiB that a Lane never needs

        backend = backend_of(url)
        with closing(backend.connection):
            backend.init_database()
            ours = read_migrations(str(_migration_files()[0].parent))
            with backend.lock():
                wanted = backend.to_apply(ours)
                _refuse_newer(url, {migration.id for migration in ours})
                done = [migration.id for migration in wanted]
                backend.apply_migrations(wanted)
                if _put_rules(url):
                    done.append("rules " + _edition())
        return tuple(done)


def missing(url: str) -> str | None:
    """What this database lacks for this code, in words, or None when it is ready."""
    with _translated():
        _check_version(url)
        with connect(url) as connection:
            if connection.execute("SELECT to_regclass('lanes.rules')").fetchone() == (None,):
                return "it has no Lanes tables yet"
            have = {row[0] for row in connection.execute("SELECT migration_id FROM lanes._yoyo_migration")}
            want = _migration_names()
            if want - have:
                return f"it lacks the migration {min(want - have)}"
            if have - want:
                return f"it has the migration {max(have - want)}, which is newer than this program"
            if connection.execute("SELECT edition FROM lanes.rules").fetchone() != (_edition(),):
                return "its rules are of another edition"
    return None


def wait_until_ready(url: str, say: Callable[[str], None], stopped: Callable[[float], bool]) -> bool:
    """Waits, as long as it takes, for a database that fits this code.  `stopped(seconds)` sleeps and says whether to give up.

    Says once what it waits for, and again only when that changes.  False when stopped.
    """
    told = ""
    while True:
        try:
            lack = missing(url)
            wants = (
                f"The database is not ready: {lack}. Run `lanes migrate`; this process waits for it." if lack else ""
            )
        except DatabaseAway as away:
            wants = str(away)
        if not wants:
            return True
        if wants != told:
            say(wants)
            told = wants
        if stopped(POLL_SCHEMA):
            return False


def _migration_files() -> list[Path]:
    return sorted(Path(str(entry)) for entry in files("lanes.migrations").iterdir() if entry.name.endswith(".sql"))


def _migration_names() -> set[str]:
    return {entry.stem for entry in _migration_files()}


def _rules() -> tuple[str, ...]:
    folder = files("lanes.store") / "sql" / "rules"
    return tuple(entry.read_text(encoding="utf-8") for entry in sorted(folder.iterdir(), key=lambda each: each.name))


def _edition() -> str:
    return blake2b("\n".join(_rules()).encode(), digest_size=6).hexdigest()


def _put_rules(url: str) -> bool:
    with connect(url) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('lanes.rules'))")
        if connection.execute("SELECT edition FROM lanes.rules").fetchone() == (_edition(),):
            return False
        connection.execute(_DROP_RULES)
        for text in _rules():
            connection.execute(text.encode())
        connection.execute(
            "INSERT INTO lanes.rules (edition) VALUES (%s) ON CONFLICT (only_row) DO UPDATE SET edition = EXCLUDED.edition",
            (_edition(),),
        )
        connection.execute("SELECT lanes.make_partitions()")
    return True


def _check_version(url: str) -> None:
    with connect(url) as connection:
        major = connection.info.server_version // 10_000
    if major < OLDEST_POSTGRES:
        raise StoreError(f"Postgres {major} is too old: Lanes needs {OLDEST_POSTGRES} or newer.")


def _refuse_newer(url: str, ours: set[str]) -> None:
    with connect(url) as connection:
        have = {row[0] for row in connection.execute("SELECT migration_id FROM lanes._yoyo_migration")}
    if have - ours:
        raise StoreError(
            f"The database has the migration {max(have - ours)}, which this program does not know: it is newer. Upgrade Lanes."
        )


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except psycopg.OperationalError as error:
        raise DatabaseAway(str(error)) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(f"The database role may not do this: {error}. Grant it CREATE on the database.") from error
