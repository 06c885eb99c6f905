"""A little internet on loopback, for tests, benches and the demo; it records when it was asked what.

with Smallnet() as net:
    site = net.host("127.1.0.5", name="a.test")
    site.feed("/feed", ["Chapter 1", "Chapter 2"])
    site.script("/feed", [status(503, retry_after=60), AS_USUAL])
    ...                                     # poll site.url("/feed"), resolving names with net.resolver
    assert not net.spacing_offences(1.0, site)
"""

from .feeds import Feed, Page, Post, Request, write_opml
from .hosts import Hold, Host
from .net import ALLOWED, Smallnet, nth_address
from .record import Dial, Offence, Record, Visit
from .resolver import Resolver
from .steps import (
    AS_USUAL,
    NOTHING_HERE,
    Ending,
    Framing,
    Step,
    big_headers,
    drip,
    endless,
    gzip_bomb,
    never,
    not_modified,
    ok,
    raw,
    redirect,
    reset,
    status,
)

__all__ = [
    "ALLOWED",
    "AS_USUAL",
    "NOTHING_HERE",
    "Dial",
    "Ending",
    "Feed",
    "Framing",
    "Hold",
    "Host",
    "Offence",
    "Page",
    "Post",
    "Record",
    "Request",
    "Resolver",
    "Smallnet",
    "Step",
    "Visit",
    "big_headers",
    "drip",
    "endless",
    "gzip_bomb",
    "never",
    "not_modified",
    "nth_address",
    "ok",
    "raw",
    "redirect",
    "reset",
    "status",
    "write_opml",
]
