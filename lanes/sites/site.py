"""What a Site is: how one website is recognised, fetched, read and paced (DESIGN 2).

Owns the shape of a registry entry, and of a publisher within `feeds`.  Refuses to own: any entry (one module each), and their order
(`lanes.sites`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from lanes.core.chapters import Item, Reading
from lanes.core.pace import HOST_DEFAULT

REST: Final = timedelta(hours=1)
"""Between two Polls of a Series of a Site of one host: every Site starts uniform (DESIGN 5.1)."""
GAP: Final = timedelta(seconds=10)
"""Between two fetches of such a Site, start to start (DESIGN 5.1)."""


class Certainty(StrEnum):
    """How sure what we know of a Site is: its own documentation or several sources agree; one source; a guess."""

    SURE = "sure"
    LIKELY = "likely"
    GUESS = "guess"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a Site's reader was made from: where its samples come from, how sure that is, and the month of the newest source."""

    source: str
    certainty: Certainty
    month: str


@dataclass(frozen=True, slots=True)
class Rendering:
    """What a browser is asked to do with a page of a Site.

    `landmark` is the CSS selector to wait for; `settles_for` another with which a page is read as it is, should the landmark not come.
    Pictures, films and fonts are never loaded.
    """

    landmark: str
    settles_for: str | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """One website.

    `recognise` takes a canonical URL, as pasted, and gives the URL to fetch, or None: not of this Site; it raises BadUrl for a URL of
    this Site that cannot be followed, with the remedy.  `read` takes an answer's body, its Content-Type header, its final URL and its
    instant (the server's Date, else when it was asked for: relative dates count from it), and never raises.  `accept` is the Accept
    header.  `gap` None: no Gap.  `slots` is capacity, not pace.  `feed`: its document is a feed, which robots.txt does not keep from
    its Readers.  `rendering` None: fetched plainly, without the browser.

    `hosts` are those of a Site of one host or a fixed few: a redirect that leaves them is not followed; none: any host.  `host_floors`
    names hosts whose interval narrows to something else than the default, shorter or longer.  `named_numbers`: the Site itself names
    groups and numbers.  `republishes`: it is known to publish Chapters again under new ids, with the titles that they had.

    `identity` takes a URL to fetch and gives what of it says which Series that is, so that two of the same are spellings of one; None: all
    of it says so.

    `evidence` None: made for the owner's own use.  `experimental`: its pages change often, or refuse often.  `starts`: its Lane is
    started by default.  `example` is a URL as a Reader would paste it.  `number` is that of an own Site's process (`lanes.sites.own`).
    """

    name: str
    recognise: Callable[[str], str | None]
    read: Callable[[bytes, str | None, str, datetime], Reading]
    accept: str
    rest: timedelta = REST
    gap: timedelta | None = GAP
    slots: int = 1
    many_hosts: bool = False
    feed: bool = False
    rendering: Rendering | None = None
    hosts: tuple[str, ...] = ()
    host_floors: Mapping[str, timedelta] = field(default_factory=dict, hash=False)
    identity: Callable[[str], str] | None = None
    named_numbers: bool = False
    republishes: bool = False
    evidence: Evidence | None = None
    experimental: bool = False
    starts: bool = True
    example: str = ""
    number: int | None = None

    @property
    def browser(self) -> bool:
        """Whether its pages are read through the browser sidecar."""
        return self.rendering is not None

    @property
    def slower_hosts(self) -> dict[str, timedelta]:
        """The hosts that it names as slower than the default: they start there."""
        return {host: floor for host, floor in self.host_floors.items() if floor > HOST_DEFAULT}


@dataclass(frozen=True, slots=True)
class Recogniser:
    """A publisher of feeds that the Site `feeds` knows more of than any other host: how its pages lead to its feeds.

    `recognise` takes a canonical URL and gives that of the feed, or of a page of it that names its feed, or None: not of its `hosts`; it
    raises BadUrl for a URL of theirs that cannot be followed, with the remedy.  `identify` gives an item of its feeds the identity by which
    it is known, wherever else it stands.  `named_by` takes the content of a `meta` element of one of its pages, and gives the feed that it
    names, or None.  `host_floors` as of a Site.  `caution` is what the owner should know who follows something there.
    """

    name: str
    hosts: tuple[str, ...]
    recognise: Callable[[str], str | None]
    identify: Callable[[Item], Item]
    host_floors: Mapping[str, timedelta] = field(default_factory=dict, hash=False)
    named_by: Callable[[str], str | None] = lambda _: None
    caution: str = ""
