"""What a Lane asks of the browser, and what a tab came to: the values that cross in the row of one page (DESIGN 7).

Owns these shapes and the numbers of their time.  Refuses to own: the rows (`lanes.store.browsing`), whether the browser can be asked (the
rules in store/sql/rules), Chrome (`browser_sidecar`), and what a page means (`lanes.core.outcome`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from lanes.core.answer import Trouble

PATIENCE: Final = timedelta(seconds=120)
"""A page's time, from when a tab takes it: opening, waiting, reading (DESIGN 4)."""
LEASE: Final = timedelta(seconds=150)
"""The lease of a Poll through the browser: its page's time well inside it (DESIGN 4)."""
LATE: Final = timedelta(seconds=10)
"""How much longer the Lane that asked waits than a page has: the sidecar that had it notices first (and the lease stands for both)."""
RENEW: Final = timedelta(seconds=30)
"""How often a Lane whose page still queues renews that lease (DESIGN 7)."""
SETTLING: Final = timedelta(seconds=30)
"""For the landmark to appear, or a challenge to clear by itself, once the document is there (DESIGN 7)."""
LOST: Final = timedelta(minutes=15)
"""For how long nobody asks anything of a browser that was lost; then the first page is the probe (DESIGN 7)."""
OTHERS_FIRST: Final = timedelta(minutes=1)
"""How much longer than anybody a Series waits whose page was in a tab when the browser was lost: what loses it each time would be the
probe for ever, and a page or two of others show in that time that Chrome works."""
BEAT: Final = timedelta(seconds=5)
"""Between two heartbeats of the sidecar's serving loop (DESIGN 7)."""
PLACE: Final = timedelta(seconds=10)
"""For the pace of a Site whose other host was asked meanwhile, a tab waits no longer than this: a Gap."""


@dataclass(frozen=True, slots=True)
class PageAsked:
    """One page that a Poll asks for; `token` is the lease of that Poll.

    `hosts` are the only ones that the document itself may come from, redirects included; none: any.  `landmark` is the CSS selector to
    wait for, `settles_for` one with which the page is read as it is where the landmark does not come.
    """

    token: UUID
    site: str
    url: str
    hosts: tuple[str, ...]
    landmark: str
    settles_for: str | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """A document came.  `status` and `headers` (lower-case names) are those of the document finally shown, `url` is its own, `html` the
    page as scripts left it (UTF-8).  `held`: in words, what refused us and did not clear by itself."""

    status: int
    headers: Mapping[str, str]
    url: str
    html: bytes
    held: str | None = None


@dataclass(frozen=True, slots=True)
class NotShown:
    """No document came, through no fault of the browser: the ways are those of any fetch.  `forbidden`: the address (or the host) that
    the guard refused.  `line_proved` as of `NoResponse`."""

    trouble: Trouble
    detail: str
    forbidden: str | None = None
    line_proved: bool = False


Opened = Shown | NotShown
