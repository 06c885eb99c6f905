"""The publishers that the Site `feeds` knows more of than any other host.

Owns the list.  Refuses to own: each of them (one module each).  Must never break: a host is in one of them at most.
"""

from __future__ import annotations

from typing import Final

from lanes.core.urls import split
from lanes.sites.reddit import REDDIT
from lanes.sites.scribblehub import SCRIBBLEHUB
from lanes.sites.site import Recogniser
from lanes.sites.tapas import TAPAS
from lanes.sites.youtube import YOUTUBE

RECOGNISERS: Final[tuple[Recogniser, ...]] = (TAPAS, SCRIBBLEHUB, YOUTUBE, REDDIT)

_BY_HOST: Final = {host: each for each in RECOGNISERS for host in each.hosts}

HOST_FLOORS: Final = {host: floor for each in RECOGNISERS for host, floor in each.host_floors.items()}


def of(url: str) -> Recogniser | None:
    """Whose host a URL names, if it is one of theirs."""
    parts = split(url)
    return _BY_HOST.get(parts.host) if parts else None


def caution_of(url: str) -> str:
    """What the owner should know who follows this URL; mostly nothing."""
    known = of(url)
    return known.caution if known else ""
