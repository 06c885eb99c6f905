"""What is remembered of robots.txt, and the crawl delays of hosts.

Owns these rows.  Refuses to own: what follows from an answer (`lanes.core.robots`).  Must never break: a crawl delay is in force, its
bucket spent by it, before anything else is asked of its host.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from lanes.core.robots import Robots
from lanes.store.pool import Database, named_sql

_SQL = named_sql("robots")


class RobotsStore:
    """The rows of robots.txt, for the Lanes that ask for it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def known(self, origin: str) -> Robots | None:
        """What is remembered of an origin."""
        with self._database.connection() as connection:
            row = _SQL.known(connection, origin=origin)
        return None if row is None else Robots(*row)

    def keep(self, robots: Robots, host: str, sent_at: datetime | None) -> None:
        """Remembers it, and brings the crawl delay of its host in force: the largest of the host's fresh origins.  `sent_at` is when the
        host was last asked for it (None: it was not); its bucket moves to that plus the interval in force now, only ever later."""
        with self._database.transaction() as connection:
            host_id = _SQL.lock_host(connection, host=host)
            if host_id is not None:  # else it was pruned meanwhile, with all that is known of it
                _SQL.keep(connection, host_id=host_id, **asdict(robots))
                _SQL.bring_in_force(connection, host_id=host_id, sent_at=sent_at)

    def hold(self, host: str, until: datetime, reason: str) -> None:
        """A host asked to wait: nobody asks it anything until then.  A longer wait stands."""
        with self._database.connection() as connection:
            _SQL.hold(connection, host=host, until=until, reason=reason)
