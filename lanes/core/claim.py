"""One Poll in hand: what the claim hands to whoever carries it out.

Owns the facts a decision needs about the Series and its host as they stood at the claim.  Refuses to own: deciding.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from lanes.core.answer import Resume
from lanes.core.blame import Answered
from lanes.core.chapters import NO_HINTS, Hints
from lanes.core.pace import HostPace

LEASE = timedelta(seconds=90)
"""How long a claimed plain Poll may take: its fetch has a deadline of 60 s well inside it (DESIGN 4)."""


TRIED: Final = 0
"""The `series_id` of a URL that the owner tries: it is of no Series, and goes the way of a Poll all the same."""


class Trigger(StrEnum):
    """Why a Series was due (DESIGN 4.2); the same words as SQL's lanes.due(), but for the last."""

    PENDING = "pending"
    PUT_BACK = "put back"
    ABANDONED = "abandoned"
    ITS_TIME = "its time"
    WEEKLY_LOOK = "weekly look"
    TRIED = "tried"  # nothing was: the owner tries a URL


@dataclass(frozen=True, slots=True)
class Validators:
    """What a server gave to be sent back, verbatim, and the URL that gave it: only that URL ever gets it."""

    etag: str | None
    last_modified: str | None
    url: str


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The last 503 of a host: the hash of its URL, and when."""

    url_hash: bytes
    at: datetime


@dataclass(frozen=True, slots=True)
class Moving:
    """Where a Series' permanent redirects have led so far: the target, since when, and in how many Polls."""

    to: str
    since: datetime
    polls: int


@dataclass(frozen=True, slots=True)
class Memory:
    """What is remembered of trouble with a Series, its host and its Lane; nothing of it for nearly every Poll.

    `gone_at` is the first 410 in a row.  `stays_off` is the target of a move that the owner took back.  `distrusted`: its server says
    304 while its body changes.  `refused_since`: its own URL has been refused without a good answer.  `dead`: its host is probed
    hourly.  `refusing`: its host or its Lane has a refused read, or a window, on its record.
    """

    retired: bool = False
    gone_at: datetime | None = None
    moving: Moving | None = None
    stays_off: str | None = None
    distrusted: bool = False
    refused_since: datetime | None = None
    dead: bool = False
    refusing: bool = False


NO_MEMORY = Memory()


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed Poll.  Instants are Postgres time.  `rest` is the Series' own interval, None where the registry's Rest rules.

    `dial` is the address a put back Poll waited for (asked of no DNS again); `address` the one its host was last dialled at.
    `news_from` None: the next good Poll is a first sight, nobody is told.  `host_pace` has all the host's lower bounds.
    `gap` is that of its Site, None where it has none.
    `answers` are the last answers of distinct Series of its host, oldest first; `failing` is the kind in which the Site fails while its
    incident is open.  `us`: the line of this machine is down, and this Poll is its probe.  `abandoned` counts the Polls in a row that took
    down whoever carried them, a worker or the browser; `lapsed`: of the last it was the worker.
    """

    series_id: int
    key: str
    token: UUID
    trigger: Trigger
    claimed_at: datetime
    url: str
    host_id: int
    host: str
    host_pace: timedelta
    pace: HostPace
    gap: timedelta | None = None
    address: str | None = None
    dial: str | None = None
    resume: Resume | None = None
    validators: Validators | None = None
    body_hash: bytes | None = None
    unconditional_at: datetime | None = None
    rest: timedelta | None = None
    failures: int = 0
    refusals: int = 0
    failing_since: datetime | None = None
    good_at: datetime | None = None
    news_from: datetime | None = None
    guid_alone: bool = True
    hints: Hints = NO_HINTS
    discovering: bool = False
    abandoned: int = 0
    lapsed: bool = False
    unavailable: Unavailable | None = None
    answers: tuple[Answered, ...] = ()
    failing: str | None = None
    us: bool = False
    memory: Memory = NO_MEMORY
