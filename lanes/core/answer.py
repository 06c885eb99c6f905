"""What came back from a Site, as a value: `lanes.fetch` makes them, `lanes.core.outcome` judges them.

Owns the shape of an answer.  Refuses to own: what it means.  Must never break: whatever a Site does is a value here, never an exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class Trouble(StrEnum):
    """The ways in which no usable answer came.  Closed: also the `status`-less labels of metrics and poll records."""

    DNS = "dns"  # the name did not resolve
    CONNECT = "connect"  # refused, unreachable, or no connection in time
    TLS = "tls"
    TIMEOUT = "timeout"  # connected, but silent or dripping past a deadline
    RESET = "reset"  # the connection broke before or inside the header
    FRAMING = "framing"  # a body cut short, or framing no client can follow (CASES G4)
    ENCODING = "encoding"  # Content-Encoding that does not match the bytes (CASES G6)
    OVERSIZE = "oversize"  # past the cap on the wire or decompressed (CASES G5)
    LOOP = "redirect loop"
    HOPS = "too many redirects"
    LEFT = "left the Site"  # a redirect of a one-host Site to a host that is not its own: never followed
    BAD_URL = "bad url"  # a Location or stored URL that cannot be asked: no host, not http(s)


@dataclass(frozen=True, slots=True)
class Sent:
    """One request that was written: the facts the poll record keeps about every hop.

    `sent_at` is Postgres time: the claim's `lanes.now()` plus monotonic time up to the writing of the request (DESIGN 4).  `address` None:
    a browser dialled, whose pages take no slot of an address.
    """

    url: str
    host: str
    address: str | None
    sent_at: datetime
    status: int | None = None
    wire_bytes: int = 0
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class Resume:
    """Where a Poll that was put back inside a redirect chain goes on (DESIGN 4.3 Hops); forgotten after 1 h.  `robots`: the chain is that
    of its origin's robots.txt."""

    url: str
    hops: int
    permanent: bool
    cookies: tuple[tuple[str, str, str], ...] = ()
    seen: tuple[str, ...] = ()
    robots: bool = False


@dataclass(frozen=True, slots=True)
class Response:
    """A whole HTTP answer.  `headers` has lower-case names; a repeated header is joined by ", " as RFC 9110 says.

    `permanent` is True when at least one redirect was followed and every hop was 301 or 308.  `conditional` says whether
    validators were sent with the request that got this answer.  `latency` is from the written request to the header.  `held`: in words,
    what held a page in the browser's tab and did not clear by itself.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str
    requests: tuple[Sent, ...]
    latency: timedelta
    permanent: bool = False
    conditional: bool = False
    held: str | None = None


@dataclass(frozen=True, slots=True)
class NoResponse:
    """No usable answer.  `detail` is one cleaned line without secrets.  `line_proved` is True when the failure itself proves that
    our own line works: a refused connection, a TLS alert, NXDOMAIN, or any HTTP header received (DESIGN 4.4)."""

    trouble: Trouble
    detail: str
    requests: tuple[Sent, ...] = ()
    line_proved: bool = False


@dataclass(frozen=True, slots=True)
class Forbidden:
    """The guard refused the address behind `url`: it was never dialled (DESIGN 6)."""

    url: str
    address: str
    requests: tuple[Sent, ...] = ()


@dataclass(frozen=True, slots=True)
class Postponed:
    """The fetch could not go on through no fault of the Series: put back (DESIGN 4).

    `wait` is how long until its obstacle ends, from now.  `address` is the address to dial next without asking DNS again.
    `resume` is set when the obstacle stands in the middle of a redirect chain.  `lost`: its page was in a tab when the browser was lost.
    """

    reason: str
    wait: timedelta
    requests: tuple[Sent, ...] = ()
    address: str | None = None
    resume: Resume | None = None
    lost: bool = False


Answer = Response | NoResponse | Forbidden | Postponed
