"""One Poll in hand: what the claim hands to whoever carries it out.

Owns the facts a decision needs about the Series and its host as they stood at the claim.  Refuses to own: deciding.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from lanes.core.answer import Resume
from lanes.core.chapters import NO_HINTS, Hints
from lanes.core.pace import HostPace

LEASE = timedelta(seconds=90)
"""How long a claimed plain Poll may take: its fetch has a deadline of 60 s well inside it (DESIGN 4)."""


class Trigger(StrEnum):
    """Why a Series was due (DESIGN 4.2); the same words as SQL's lanes.due()."""

    PENDING = "pending"
    PUT_BACK = "put back"
    ABANDONED = "abandoned"
    ITS_TIME = "its time"
    WEEKLY_LOOK = "weekly look"


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
class Claim:
    """A claimed Poll.  Instants are Postgres time.  `rest` is the Series' own interval, None where the registry's Rest rules.

    `dial` is the address a put back Poll waited for (asked of no DNS again); `address` the one its host was last dialled at.
    `news_from` None: the next good Poll is a first sight, nobody is told.  `host_pace` has all the host's lower bounds.
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
    unavailable: Unavailable | None = None
