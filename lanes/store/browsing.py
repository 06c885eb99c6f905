"""The browser's rows: what Lanes ask of it, what the sidecar answers, and whether it can be asked at all (DESIGN 7).

Owns both sides' verbs, because the row is their contract.  Refuses to own: Chrome, and what a page means.  Must never break: a page is
taken once, opened only while its Poll still holds its lease, and a loss is written once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from psycopg.types.json import Jsonb

from lanes.core.answer import Trouble
from lanes.core.pages import LOST, OTHERS_FIRST, PATIENCE, PLACE, NotShown, Opened, PageAsked, Shown
from lanes.store.pool import Bell, Database, named_sql

_SQL = named_sql("browsing")

SIDECAR_BELL = "lanes_browser"
"""Rung when a page is asked for."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The browser as a Lane finds it `at` an instant: why it cannot be asked (None: it can), and how long that lasts where that is known.
    `lost`: because it was lost."""

    trouble: str | None
    wait: timedelta | None
    at: datetime
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A page that was asked for, as it stands, `waited` after that.  `taken`: a tab has it.  `sent_at`: when its request was written;
    None: not yet.  Sent, and no tab has it: its tab gave it up, which `left` says why, or the sidecar that sent it has ended.  `stopped`:
    why it may not be sent, and how long that lasts."""

    waited: timedelta
    taken: bool
    sent_at: datetime | None
    stopped: Standing | None
    opened: Opened | None
    browser: Standing
    left: str | None = None


@dataclass(frozen=True, slots=True)
class BrowserState:
    """The browser as its owner sees it.  `heartbeat_at` None: no sidecar that can serve was ever there.  `trouble`: why nothing can be
    asked of it, and `until` when, where that is known; `pages` are asked for or in a tab.  `not_held`: what nothing keeps from private
    addresses there."""

    awake: bool
    version: str | None
    heartbeat_at: datetime | None
    trouble: str | None
    until: datetime | None
    pages: int
    not_held: str | None = None


@dataclass(frozen=True, slots=True)
class Loss:
    """The browser is lost, or was when it answered last, `until` an instant that is `over`."""

    until: datetime
    over: bool


def browser(database: Database) -> BrowserState:
    """How the browser is."""
    with database.connection() as connection:
        row = _SQL.browser(connection)
    return BrowserState(bool(row.awake), row.version, row.heartbeat_at, row.trouble, row.until, row.pages, row.not_held)


class AskingStore:
    """A Lane's side."""

    def __init__(self, database: Database, site: str) -> None:
        self._database, self._site = database, site

    def ask(self, asked: PageAsked, host_id: int, *, suspect: bool = False) -> Standing:
        """Asks for a page, unless the browser cannot be asked now.  `suspect`: its Series lost it the last time."""
        with self._database.connection() as connection:
            row = _SQL.ask_page(
                connection,
                token=asked.token,
                site=asked.site,
                host_id=host_id,
                url=asked.url,
                hosts=list(asked.hosts),
                landmark=asked.landmark,
                settles_for=asked.settles_for,
                suspect=suspect,
            )
        return Standing(row.trouble, row.wait, row.at)

    def look(self, token: UUID) -> Page | None:
        """How the page stands; None: its row is gone."""
        with self._database.connection() as connection:
            row = _SQL.look_at_page(connection, token=token)
        if row is None:
            return None
        opened: Opened | None = None
        if row.answered_at is not None:
            opened = (
                NotShown(Trouble(row.trouble), row.detail or "", row.forbidden, row.line_proved)
                if row.trouble is not None
                else Shown(row.status, row.headers, row.final_url, bytes(row.html), row.held)
            )
        stopped = None if row.stop_reason is None else Standing(row.stop_reason, row.stop_wait, row.at)
        browser = Standing(row.trouble_now, row.wait, row.at, row.lost)
        left = row.detail if opened is None else None
        return Page(row.waited, row.taken_at is not None, row.sent_at, stopped, opened, browser, left)

    def renew(self, host_id: int, series_id: int | None, token: UUID, lease: timedelta) -> bool:
        """A Poll whose page still queues holds its host and its Series on; False: its lease is over."""
        with self._database.connection() as connection:
            held: bool = _SQL.renew_lease(connection, host_id=host_id, series_id=series_id, token=token, lease=lease)
            return held

    def withdraw(self, token: UUID, host_id: int, asked_at: datetime) -> datetime | None:
        """The page is not wanted any more, or was read.  When its request was written; None: it was not, and will not be."""
        with self._database.connection() as connection:
            sent_at: datetime | None = _SQL.withdraw_page(connection, token=token, host_id=host_id, asked_at=asked_at)
            return sent_at

    def lose(self) -> bool:
        """The browser is lost; whether that is news."""
        return _lose(self._database)

    def bell(self) -> Bell:
        """Rings when a page of this Site was answered."""
        return self._database.bell(f"lanes_page_{self._site}")


class ServingStore:
    """The sidecar's side."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, version: str | None) -> None:
        """A sidecar starts: what was asked of its predecessor goes, so that whoever asked puts its Poll back; of what was sent it still
        learns that."""
        with self._database.connection() as connection:
            _SQL.clear_pages(connection)
        self.beat(awake=False, version=version)

    def beat(self, *, awake: bool, version: str | None, not_held: str | None = None) -> Loss | None:
        """The heartbeat; rows that nobody came back for go.  `not_held` as of BrowserState."""
        with self._database.connection() as connection:
            row = _SQL.beat(connection, awake=awake, version=version, not_held=not_held)
            _SQL.sweep_pages(connection)
        return None if row.until is None else Loss(row.until, row.over)

    def unable(self, trouble: str, wait: timedelta | None = None) -> None:
        """The sidecar lives and cannot serve: why, in words, with the remedy, and after what time it tries again, where that is known.
        The browser is down until the next heartbeat."""
        with self._database.connection() as connection:
            _SQL.unable(connection, trouble=trouble, wait=wait)

    def take(self) -> PageAsked | None:
        """The page that has waited longest, for an idle tab; None: there is none, or the browser is lost."""
        with self._database.connection() as connection:
            row = _SQL.take_page(connection, patience=PATIENCE)
        if row is None:
            return None
        return PageAsked(row.token, row.site, row.url, tuple(row.hosts), row.landmark, row.settles_for)

    def sending(self, token: UUID) -> timedelta | None:
        """Called just before the page's request is written: spends its Site's and its host's pace, notes the sent instant, and returns how
        long to wait first (mostly nothing); None: open nothing, and whoever asked, if anybody waits still, is told why."""
        with self._database.connection() as connection:
            wait: timedelta | None = _SQL.send_page(connection, token=token, patience=PLACE)
            return wait

    def leave(self, token: UUID, why: str) -> None:
        """A tab gives this page up without an answer: whoever asked puts its Poll back, and is told why, and whether it was sent."""
        with self._database.connection() as connection:
            _SQL.leave_page(connection, token=token, why=why)

    def answer(self, token: UUID, opened: Opened, later: timedelta = timedelta(0)) -> None:
        """What the tab came to; its last request was written so much `later` than `sending` noted.  An answer that came shows that the
        browser works, whatever was thought of it."""
        shown = opened if isinstance(opened, Shown) else None
        failed = opened if isinstance(opened, NotShown) else None
        with self._database.connection() as connection:
            _SQL.answer_page(
                connection,
                token=token,
                status=shown and shown.status,
                headers=None if shown is None else Jsonb(dict(shown.headers)),
                final_url=shown and shown.url,
                html=shown and shown.html,
                held=shown and shown.held,
                trouble=failed and failed.trouble.value,
                detail=failed and failed.detail,
                forbidden=failed and failed.forbidden,
                line_proved=bool(failed and failed.line_proved),
                later=later,
            )
            _SQL.find_browser(
                connection
            )  # a transaction of its own: whoever has both locks the browser before its pages

    def lose(self) -> bool:
        """The browser is lost; whether that is news.  Its pages stay for whoever asked, who must learn whether they were sent."""
        return _lose(self._database)

    def bell(self) -> Bell:
        """Rings when a page is asked for."""
        return self._database.bell(SIDECAR_BELL)


def _lose(database: Database) -> bool:
    with database.connection() as connection:
        news: bool = _SQL.lose_browser(connection, wait=LOST, others_first=OTHERS_FIRST)
        return news
