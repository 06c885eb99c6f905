"""Whose turn it is: of two processes that may not both be at work on a database, one is, and the other stands by.

Owns the advisory lock and the connection that holds it.  Refuses to own: what is done in a turn.  Must never break: a turn ends with its
holder, by kill -9 too.
"""

from __future__ import annotations

from lanes.store.pool import Connection, away_is_one_error, connect


class Turn:
    """The turn of the one process called `name`, such as upkeep."""

    def __init__(self, url: str, name: str) -> None:
        self._url, self._name = url, name
        self._connection: Connection | None = None
        self._ours = False

    def take(self) -> bool:
        """Whether the turn is ours; asks for it where it is not.  Raises DatabaseAway, and then it is not."""
        try:
            with away_is_one_error():
                if self._connection is None:
                    self._connection = connect(self._url, f"{self._name} turn")
                if self._ours:
                    self._connection.execute("SELECT 1")
                else:
                    asked = self._connection.execute(
                        "SELECT pg_try_advisory_lock(hashtext(%s))", (f"lanes.{self._name}",)
                    ).fetchone()
                    self._ours = asked is not None and asked[0]
        except BaseException:
            self.leave()
            raise
        return self._ours

    def leave(self) -> None:
        """Ends the connection, and with it the turn."""
        self._ours = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None
