"""What is remembered of robots.txt, and the crawl delays of hosts.

Owns these rows.  Refuses to own: what follows from an answer (`lanes.core.robots`).  Must never break: a crawl delay is in force, its
bucket spent by it, before anything else is asked of its host.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime, timedelta

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
                back = _SQL.ahead(connection, at=robots.asked_at)
                if back:  # it was asked before the clock went back
                    robots, sent_at = _moved_back(robots, back), sent_at and sent_at - back
                _SQL.keep(connection, host_id=host_id, **asdict(robots))
                _SQL.bring_in_force(connection, host_id=host_id, sent_at=sent_at)

    def hold(self, host: str, at: datetime, wait: timedelta, reason: str) -> None:
        """A host asked at `at` to wait: nobody asks it anything for so long.  A longer wait stands."""
        with self._database.connection() as connection:
            _SQL.hold(connection, host=host, at=at, wait=wait, reason=reason)


def _moved_back(robots: Robots, back: timedelta) -> Robots:
    return replace(
        robots,
        asked_at=robots.asked_at - back,
        again_at=robots.again_at - back,
        read_at=robots.read_at and robots.read_at - back,
        crawl_delay_since=robots.crawl_delay_since and robots.crawl_delay_since - back,
        unanswered_since=robots.unanswered_since and robots.unanswered_since - back,
    )
