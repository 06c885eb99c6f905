"""What Lanes ask of the browser, as rows that a test makes without any Lane."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import namedtuple_row

from lanes.core.pages import PageAsked
from lanes.store.browsing import AskingStore, Page, Standing
from lanes.store.pool import Database
from tests import waiting

DEADLINE = 60.0
until = partial(waiting.until, timeout=DEADLINE)


class Rows:
    """Asks for pages as a browser Lane does, each of a Site of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._database = Database(url, application="a Lane")
        self._connection = psycopg.connect(url, autocommit=True, row_factory=namedtuple_row)

    def close(self) -> None:
        self._connection.close()
        self._database.close()

    def one(self, statement: str, *values: object) -> Any:
        row = self._connection.execute(statement.encode(), values).fetchone()
        assert row is not None
        return row

    def tell(self, statement: str, *values: object) -> None:
        self._connection.execute(statement.encode(), values)

    def ask(self, url: str, site: str = "panels", landmark: str = ".chapter", **more: Any) -> tuple[UUID, Standing]:
        """Asks for a page in a Poll that has its host in hand: the Poll's token, and why not, where nothing can be asked."""
        token = uuid.uuid4()
        self.tell("INSERT INTO lanes.lanes (site, browser) VALUES (%s, true) ON CONFLICT DO NOTHING", site)
        host = self.one(
            "INSERT INTO lanes.hosts (site, name, busy_token, busy_until) VALUES (%s, %s, %s, lanes.now() + '10 minutes') "
            "ON CONFLICT (name) DO UPDATE SET busy_token = EXCLUDED.busy_token, busy_until = EXCLUDED.busy_until RETURNING id",
            site, f"{site}.test", token,
        ).id  # fmt: skip
        asked = PageAsked(token, site, url, **{"hosts": (), "landmark": landmark, **more})
        return token, AskingStore(self._database, site).ask(asked, host)

    def asked(self, url: str, site: str = "panels", **more: Any) -> UUID:
        """The same, where a page can be asked for."""
        token, standing = self.ask(url, site, **more)
        assert standing.trouble is None, standing
        return token

    def look(self, token: UUID) -> Page | None:
        return AskingStore(self._database, "panels").look(token)

    def until(self, token: UUID, condition: Callable[[Page | None], bool]) -> Page | None:
        """The page's row, once it is so.  Raises: AssertionError with what was seen."""

        def so() -> tuple[Page | None] | None:
            page = self.look(token)
            return (page,) if condition(page) else None

        (page,) = until(so, lambda: str(self.look(token)))
        return page

    def opened(self, token: UUID) -> Any:
        """What the page came to."""
        page = self.until(token, lambda page: page is None or page.opened is not None)
        assert page is not None, "its row is gone"
        return page.opened

    def wait_for(self, statement: str, *values: object) -> Any:
        """The first row of a query, once there is one."""
        return until(lambda: self._connection.execute(statement.encode(), values).fetchall(), lambda: statement)[0]

    @property
    def lost_until(self) -> Any:
        """Until when nobody asks anything of the browser; None: it is not lost."""
        return self.one("SELECT browser_lost_until AS it FROM lanes.browser").it
