"""What a page does not get: hosts of ads and trackers, pictures, films and fonts.

Owns the lists.  Refuses to own: blocking.  Must never break: nothing on which a challenge or a list of Chapters depends is named here.
"""

from __future__ import annotations

from typing import Final

HOSTS: Final = (
    "adnxs.com",
    "adsafeprotected.com",
    "amazon-adsystem.com",
    "bidswitch.net",
    "casalemedia.com",
    "chartbeat.com",
    "clarity.ms",
    "cloudflareinsights.com",
    "criteo.com",
    "criteo.net",
    "doubleclick.net",
    "doubleverify.com",
    "exoclick.com",
    "facebook.net",
    "google-analytics.com",
    "googlesyndication.com",
    "googletagmanager.com",
    "googletagservices.com",
    "hotjar.com",
    "juicyads.com",
    "mc.yandex.ru",
    "mgid.com",
    "openx.net",
    "outbrain.com",
    "popads.net",
    "pubmatic.com",
    "quantserve.com",
    "rubiconproject.com",
    "scorecardresearch.com",
    "sentry.io",
    "taboola.com",
)
"""Asked by many pages, needed by none: each request that is not made is one less in Chrome, in the proxy and on the line."""

MEDIA: Final = ("Image", "Media", "Font")
"""Kinds of requests, in Chrome's words, that no list of Chapters needs.  A Chrome of our own does not even make those for pictures."""


def is_unwanted(host: str) -> bool:
    """Whether a host is one of them, or belongs to one."""
    return any(host == each or host.endswith(f".{each}") for each in HOSTS)


def patterns() -> list[str]:
    """The URLs of those hosts as Chrome's wildcards, a few too many; and the picture for a tab that nobody sees."""
    return [*(f"*{host}*" for host in HOSTS), "*/favicon.ico"]
