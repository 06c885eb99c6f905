"""One page from the row that asks for it to the row that answers, in a tab's thread (DESIGN 7).

Owns the instant after which it is no longer sent, and what a bug of ours comes to.  Refuses to own: the serving loop, and what a loss is.
Must never break: a page that was sent is answered, whatever happened to it, so that it is not asked for again at once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

from browser_sidecar.browser import Browser
from browser_sidecar.chrome import NotStarted
from browser_sidecar.page import Visit
from lanes.core.answer import Trouble
from lanes.core.pages import PATIENCE, NotShown, Opened, PageAsked
from lanes.errors import DatabaseAway
from lanes.store.browsing import ServingStore

log = logging.getLogger("browser_sidecar.errand")

TRIES: Final = 0.5
"""s between two tries to reach Postgres."""
AGAIN: Final = 60.0
"""s after which a page is taken again where a bug of ours ended one before it was sent: it would end the next one too."""

T = TypeVar("T")


class Errand:
    """One page that a tab took at the monotonic instant `taken`; `ending` is set when the sidecar stops."""

    def __init__(
        self, browser: Browser, store: ServingStore, asked: PageAsked, taken: float, ending: threading.Event
    ) -> None:
        self._browser, self._store, self._ending = browser, store, ending
        self.asked, self.taken = asked, taken
        self.is_granted = False
        """Whether its request might be written; whether it was, nobody knows where what follows ended badly."""

    def run(self) -> Visit:
        """What the page came to.  Raises: NotStarted (nothing was sent), DatabaseAway."""
        try:
            return self._browser.open(self.asked, self._sending, self.taken)
        except (NotStarted, DatabaseAway):
            raise
        except Exception as error:
            log.exception("a bug ended a page site=%s", self.asked.site)
            if not self.is_granted:
                raise NotStarted(_fault(error), AGAIN) from error
            return Visit(NotShown(Trouble.FRAMING, _fault(error)))

    def tell(self, visit: Visit, opened: Opened) -> None:
        """Writes it into its row.  Raises: DatabaseAway."""
        until = time.monotonic() + PATIENCE.total_seconds()
        answer = partial(self._store.answer, self.asked.token, later=timedelta(seconds=visit.later))
        try:
            self._insist(partial(answer, opened), until)
        except DatabaseAway:
            raise
        except Exception as error:
            log.exception("an answer is nothing that a row holds site=%s", self.asked.site)
            fault = NotShown(Trouble.FRAMING, _fault(error))
            self._insist(partial(answer, fault), until)

    def _sending(self, by: float) -> timedelta | None:
        wait = self._insist(partial(self._store.sending, self.asked.token), by)
        self.is_granted = wait is not None
        return wait

    def _insist(self, write: Callable[[], T], until: float) -> T:
        """Writes as soon as Postgres is there, until that monotonic instant.  Raises: DatabaseAway."""
        while True:
            try:
                return write()
            except DatabaseAway:
                if time.monotonic() >= until or self._ending.wait(TRIES):
                    raise


def _fault(error: Exception) -> str:
    return f"a fault of ours: {type(error).__name__}"
