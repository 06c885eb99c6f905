"""Retirement: when a Series is given up, and what trouble owes once it is old (DESIGN 4.4, 5.4).

Owns every number of giving up and of telling.  Refuses to own: whose fault a failure is (`blame`), and what a Notice says (`notices`).
Must never break: nobody is given up over a single bad day, nor without its Readers being told.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from typing import Final

FAILURES: Final = 20
"""Failures of the Series' own in a row: with 6 h between them at the end, some four days of trying."""
FAILING_FOR: Final = timedelta(days=3)
"""... and over at least this long, so that Check now pressed twenty times in a bad weekend gives nothing up."""
GONE_APART: Final = timedelta(hours=24)
"""Between two 410: a server that says "gone" for good says so tomorrow too; a botched deployment does not."""
TOLD_AFTER: Final = timedelta(days=3)
"""An incident or refusal of this age is told to Readers: most outages end sooner, and a blip is nobody's news."""
GIVEN_UP_AFTER: Final = timedelta(days=30)
"""... and at this age its Series are given up: a lapsed domain is renewed, and a quarrel with a firewall settled, within a month."""
OWNER_TOLD_AFTER: Final = timedelta(hours=1)
"""A refusal of this age is the owner's business: the first two windows (15 and 30 min) did not appease the Site."""
MACHINE_LOST_AFTER: Final = timedelta(days=1)
"""A machine whose line is down asks once a minute: one that has not for a day was taken away, or renamed."""

GONE: Final = "gone"
SITE_GONE: Final = "site gone"


class Owed(Enum):
    """What a trouble of some age owes to the Readers of a Series without a good answer since."""

    NOTHING = "nothing"
    WORD = "word"
    RETIREMENT = "retirement"


def retires(failures: int, failing_since: datetime | None, now: datetime) -> bool:
    """Whether a Series with this many failures of its own in a row is given up."""
    return failures >= FAILURES and failing_since is not None and now - failing_since >= FAILING_FOR


def gone_twice(gone_at: datetime | None, now: datetime) -> bool:
    """Whether a 410 now retires its Series, the first in a row having come at `gone_at`."""
    return gone_at is not None and now - gone_at >= GONE_APART


def owed(age: timedelta) -> Owed:
    """What a trouble of this age, be it an incident, a refusal window or a URL refused alone, owes the Readers of its Series by now."""
    if age >= GIVEN_UP_AFTER:
        return Owed.RETIREMENT
    return Owed.WORD if age >= TOLD_AFTER else Owed.NOTHING


def owner_is_told(age: timedelta) -> bool:
    """Whether a refusal of this age is owed to the owner by now."""
    return age >= OWNER_TOLD_AFTER


def failed_for_good(failures: int, detail: str | None) -> str:
    """The reason of a retirement by failures, in words."""
    return f"failed {failures} times in a row" + (f", last: {detail}" if detail else "")
