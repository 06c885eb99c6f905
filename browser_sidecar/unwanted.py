"""What a page does not get: hosts of ads and trackers, and, where it does not need them, pictures, films and fonts.

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
    "yandex.ru",
)
"""Asked by many pages, needed by none: each request that is not made is one less in Chrome, in the proxy and on the line."""

MEDIA: Final = ("Image", "Media", "Font")
"""Kinds of requests, in Chrome's words, that only a page with `media` makes."""


def blocked_urls() -> list[str]:
    """The hosts as the patterns that Chrome takes, and the picture for a tab that nobody sees."""
    hosts = [pattern for host in HOSTS for pattern in (f"*://{host}/*", f"*://*.{host}/*", f"*://*.{host}:*/*")]
    return [*hosts, "*/favicon.ico"]
