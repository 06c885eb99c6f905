"""Instants, durations and tables for people; the same facts for programs.

Owns how values are shown.  Refuses to own: which.  Must never break: what comes from a Site cannot steer the terminal: control
characters never reach it.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from lanes.core.urls import shown, split
from lanes.core.why import Why

READABLE = 40  # a column that may be cut keeps this many places as long as another column may be left out
NARROWEST = 16  # and this many at any width
WIDEST = 80  # where there is no terminal: one long cell must not widen every row


def duration(value: timedelta | None) -> str:
    """Its largest unit alone: 45 s, 4 min, 3 h, 2 days; "-" for None."""
    if value is None:
        return "-"
    seconds = abs(value.total_seconds())
    if seconds < 59.5:
        return f"{seconds:.0f} s" if seconds >= 9.5 or seconds == int(seconds) else f"{seconds:.1f} s"
    if seconds < 3570:
        return f"{seconds / 60:.0f} min"
    if seconds < 47.5 * 3600:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86400:.0f} days"


def exactly(value: timedelta | None) -> str:
    """All of it, as it is typed: 1h30m, 90s as 1m30s, 0.5s; "-" for None."""
    if value is None:
        return "-"
    minutes, seconds = divmod(value.total_seconds(), 60)
    days, hours, minutes = int(minutes) // 1440, int(minutes) // 60 % 24, int(minutes) % 60
    whole = "".join(f"{number}{unit}" for number, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if number)
    return whole + (f"{round(seconds, 2):g}s" if seconds or not whole else "")


def relative(instant: datetime | None, now: datetime) -> str:
    """ "in 4 min", "3 h ago", "now"; "-" for None."""
    if instant is None:
        return "-"
    distance = instant - now
    if abs(distance) < timedelta(seconds=1):
        return "now"
    return f"in {duration(distance)}" if distance > timedelta(0) else f"{duration(distance)} ago"


def local(instant: datetime) -> str:
    """In the owner's own zone, to the second."""
    return instant.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def as_local(text: str) -> str:
    """An instant as programs write it, in the owner's own zone; any other text as it is."""
    with suppress(ValueError):
        instant = datetime.fromisoformat(text)
        return text if instant.tzinfo is None else local(instant)
    return text


def until(instant: datetime | None, now: datetime) -> str:
    """After what lasts: ", until 2026-01-31 14:32:10 (in 4 min)"; "" for None."""
    return "" if instant is None else f", until {local(instant)} ({relative(instant, now)})"


def reason_told(why: Why, now: datetime) -> str:
    """The reason with its instant: until when it lasts, or when its Series is looked at next: ", in 4 min (2026-01-31 14:32:10)"."""
    if why.until is None or not why.is_next:
        return f"{clean(why.reason)}{until(why.until, now)}"
    return f"{clean(why.reason)}, {relative(why.until, now)} ({local(why.until)})"


def masked(url: str) -> str:
    """The URL with *** for user and password and ?... for a query; "(no URL)" where it is none."""
    parts = split(url)
    return shown(url) if parts is None or parts.userinfo is None else shown(url).replace("://", "://***@", 1)


def size(count: int) -> str:
    """Bytes in the unit that reads best."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def counted(number: int, thing: str) -> str:
    """ "1 Chapter", "2 Chapters", "3 Series"."""
    return f"{number:,} {thing}" if number == 1 or thing.endswith("s") else f"{number:,} {thing}s"


def print_json(value: object) -> None:
    """One document on standard output: instants as ISO 8601 in UTC, durations as seconds."""
    sys.stdout.write(json.dumps(_plain(value), ensure_ascii=False, indent=2) + "\n")


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case timedelta():
            return value.total_seconds()
        case Enum():
            return value.value
        case Mapping():
            return {key: _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case _ if dataclasses.is_dataclass(value):
            return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        case _:
            return value


def print_table(
    heads: Sequence[str], rows: Iterable[Sequence[object]], *, cut: Sequence[str] = (), drop: Sequence[str] = ()
) -> None:
    """A table on standard output, made to fit the terminal: the columns `drop` are left out and the columns `cut` get narrower, each in
    that order.  All others are always whole, even where the row is then longer than a line."""
    cells = [list(heads), *([clean(str(cell)) for cell in row] for row in rows)]
    widths = {head: max(_width(row[column]) for row in cells) for column, head in enumerate(heads)}
    _fit(widths, cut, drop)
    kept = [(heads.index(head), width) for head, width in widths.items()]
    for row in cells:
        line = "  ".join(_fitted(row[column], width) for column, width in kept)
        sys.stdout.write(line.rstrip() + "\n")


def _fit(widths: dict[str, int], cut: Sequence[str], drop: Sequence[str]) -> None:
    """Leaves columns out of `widths` and makes others narrower."""
    if not sys.stdout.isatty():
        widths.update({head: min(widths[head], WIDEST) for head in cut})
        return
    terminal = shutil.get_terminal_size().columns
    for head in drop:
        least = sum(min(width, READABLE) if each in cut else width for each, width in widths.items())
        if least + 2 * (len(widths) - 1) <= terminal:
            break
        del widths[head]
    for head in [head for head in cut if head in widths]:
        beyond = sum(widths.values()) + 2 * (len(widths) - 1) - terminal
        widths[head] = min(widths[head], max(NARROWEST, widths[head] - max(0, beyond)))


def clean(text: str) -> str:
    """The text on one line, without anything that a terminal would obey."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp", "Cs") else each for each in text)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(_places(each) for each in text)


def _places(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _fitted(text: str, width: int) -> str:
    if _width(text) > width:
        kept, used = [], 0
        for each in text:
            used += _places(each)
            if used > width - 1:
                break
            kept.append(each)
        text = "".join(kept) + "…"
    return text + " " * (width - _width(text))
