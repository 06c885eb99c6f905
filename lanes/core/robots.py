"""How long what robots.txt says holds, and what holds while it cannot be had (RFC 9309; DESIGN 5.5).

Owns what is remembered of one origin's robots.txt.  Refuses to own: asking for it and reading its text (`lanes.fetch.robots`), and what a
crawl delay does to a host (`lanes.store`).  Must never break: silence allows nothing that the last copy did not, and drops no delay that
it named, for 30 days.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

FRESH = timedelta(hours=24)  # RFC 9309 2.4: a copy is used no longer than this without asking again
AGAIN = timedelta(hours=1)  # ... and after no answer: soon enough to notice, seldom enough to hurt nobody
PATIENCE = timedelta(days=30)  # RFC 9309 2.3.1.4: of silence, after which it counts as not there
LONGEST_DELAY = timedelta(hours=1)  # beyond this a crawl delay says "go away", for which Disallow is the word
NOT_ALLOWED = "robots.txt does not allow it"
NO_ANSWER = "robots.txt gave no answer"


@dataclass(frozen=True, slots=True)
class Said:
    """An answer: its text, "" where there is none and so everything is allowed, and the crawl delay that it names for us."""

    status: int | None
    text: str
    crawl_delay: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Silent:
    """No answer to go by, and `why` in words; `wait` is what it asked its host to wait."""

    status: int | None
    why: str
    wait: timedelta | None = None


Heard = Said | Silent


@dataclass(frozen=True, slots=True)
class Robots:
    """What is remembered of an origin's robots.txt.  `text` None: it has never answered, and pages wait; `read_at` is when it came.

    `again_at` is when it is asked for again, `unanswered_since` the first silence in a row, `silence` why the last one was.
    """

    origin: str
    asked_at: datetime
    again_at: datetime
    status: int | None = None
    text: str | None = None
    read_at: datetime | None = None
    crawl_delay: timedelta | None = None
    crawl_delay_since: datetime | None = None
    unanswered_since: datetime | None = None
    silence: str | None = None

    def is_fresh(self, now: datetime) -> bool:
        """Whether it need not be asked for."""
        return now < self.again_at

    def why_pages_wait(self) -> str | None:
        """In words, while it has never answered; None: they do not wait."""
        if self.text is not None:
            return None
        return NO_ANSWER if self.silence is None else f"{NO_ANSWER}: {self.silence}"


def after(before: Robots | None, origin: str, heard: Heard, now: datetime) -> Robots:
    """What is remembered once it was asked for, `before` being what was."""
    match heard:
        case Said(status=status, text=text, crawl_delay=delay):
            same = before is not None and before.crawl_delay == delay
            since = None if delay is None else before.crawl_delay_since if before is not None and same else now
            return Robots(origin, now, now + FRESH, status, text, now, delay, since)
        case Silent():
            return _unanswered(before or Robots(origin, now, now), heard, now)
        case _:
            assert_never(heard)


def _unanswered(before: Robots, heard: Silent, now: datetime) -> Robots:
    since = before.unanswered_since or now
    silent = replace(
        before, asked_at=now, again_at=now + AGAIN, status=heard.status, unanswered_since=since, silence=heard.why
    )
    if now - since < PATIENCE:
        return silent
    return replace(silent, text="", read_at=now, crawl_delay=None, crawl_delay_since=None)
