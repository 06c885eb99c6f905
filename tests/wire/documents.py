"""Feeds written by hand, for tests that need what an honest publisher would not write."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def item(title: str | None = None, *, guid: str | None = None, link: str | None = None, date: str | None = None) -> str:
    """One RSS item with exactly these elements."""
    parts = {"title": title, "guid": guid, "link": link, "pubDate": date}
    inner = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in parts.items() if value is not None)
    return f"<item>{inner}</item>"


def rss(items: Iterable[str], channel: str = "") -> str:
    """An RSS document of these items, newest first as they are given."""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0"><channel><title>A Serial</title>'
        f"<link>http://serial.example/</link><description/>{channel}{''.join(items)}</channel></rss>\n"
    )


def chapters(first: int, last: int) -> list[str]:
    """Items of an honest feed, the newest first: chapter n appeared on hour n of 2024."""
    return [
        item(
            f"Chapter {n}",
            guid=f"urn:serial:{n}",
            link=f"http://serial.example/{n}",
            date=f"{('Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun')[(n // 24) % 7]}, {1 + n // 24:02d} Jan 2024 {n % 24:02d}:00:00 GMT",
        )
        for n in range(last, first - 1, -1)
    ]
