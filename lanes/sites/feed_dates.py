"""Dates as feeds write them.

Owns reading one date.  Refuses to own: which of an item's dates counts.  Must never break: a date is what its publisher wrote or None,
never "now"; nothing here raises (CASES F8).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

FIRST_YEAR, LAST_YEAR = 1970, 2200
"""Dates outside are mistakes (0001-01-01, 9999-12-31), not history."""

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}

_ZONES = {
    "est": -300, "edt": -240, "cst": -360, "cdt": -300, "mst": -420, "mdt": -360, "pst": -480, "pdt": -420, "ast": -240,
    "adt": -180, "akst": -540, "akdt": -480, "hst": -600, "nst": -210, "ndt": -150, "brt": -180, "art": -180, "bst": 60,
    "west": 60, "cet": 60, "cest": 120, "met": 60, "mest": 120, "eet": 120, "eest": 180, "msk": 180, "ist": 330, "ict": 420,
    "wib": 420, "sgt": 480, "hkt": 480, "pht": 480, "awst": 480, "jst": 540, "kst": 540, "acst": 570, "aest": 600,
    "aedt": 660, "nzst": 720, "nzdt": 780,
}  # fmt: skip
"""Minutes east of UTC of the zone names with one meaning in practice.  Any other name counts as UTC, as RFC 5322 section 4.3 says."""

_CLOCK = (
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,][0-9]+)?)?\s*(?P<half>[ap]\.?m\.?\b)?"
)
_ZONE = r"(?P<zone>(?:[a-z]+(?:/[a-z_]+)?)?\s*(?P<offset>[+-][0-9]{1,2}(?::?[0-9]{2})?)?)"
_WEEKDAY = r"(?:[a-z]{3,9}\.?,?\s+)?"
_TAIL = rf"(?:,?\s+(?:at\s+)?{_CLOCK}\s*{_ZONE})?"
_DAY = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_MONTH = r"(?P<month>[a-z]{3,9})\.?"

_SHAPES = tuple(
    re.compile(shape, re.IGNORECASE)
    for shape in (
        rf"{_WEEKDAY},?\s*{_DAY}[\s-]+{_MONTH},?[\s-]+(?P<year>[0-9]{{2,4}}){_TAIL}",
        r"(?P<year>[0-9]{4})(?:[-/.]?(?P<month>[0-9]{2})(?:[-/.]?(?P<day>[0-9]{2})"
        r"(?:(?:\s*t\s*|\s+)(?P<hour>[0-9]{2}):?(?P<minute>[0-9]{2})(?::?(?P<second>[0-9]{2})(?:[.,][0-9]+)?)?"
        rf"(?P<half>)\s*{_ZONE})?)?)?",
        rf"{_WEEKDAY}{_MONTH}\s+{_DAY},?\s+(?P<year>[0-9]{{4}}){_TAIL}",
        rf"{_WEEKDAY}{_MONTH}\s+{_DAY}\s+{_CLOCK}\s*{_ZONE}\s+(?P<year>[0-9]{{4}})",
    )
)
"""RFC 822 and its kin; ISO 8601 of every precision; month before day; asctime."""

_COMMENT = re.compile(r"\s*\([^()]*\)")


def _month(text: str | None) -> int:
    if not text:
        return 1
    return int(text) if text.isdigit() else _MONTHS[text[:3].lower()]


def _year(text: str) -> int:
    year = int(text)
    if len(text) == 4:
        return year
    return year + (1900 if len(text) == 3 or year >= 70 else 2000)  # RFC 5322 section 4.3


def _hour(text: str, half: str | None) -> int:
    hour = int(text)
    if not half:
        return hour
    return hour % 12 + (12 if half[0] in "pP" else 0)


def _minutes_east(zone: str, offset: str | None) -> int:
    if not offset:
        return _ZONES.get(zone.strip().lower(), 0)
    minutes = int(offset[-2:]) if len(offset) > 3 else 0
    total = int(offset[1:3].rstrip(":")) * 60 + minutes
    if total > 14 * 60 or minutes > 59:
        raise ValueError(offset)
    return -total if offset[0] == "-" else total


def _instant(found: re.Match[str]) -> tuple[datetime, bool]:
    year, month, day, clock = found["year"], found["month"], found["day"], found["hour"]
    if clock is None:
        moment = datetime(_year(year), _month(month), int(day or 1), tzinfo=UTC)
    else:
        hour, minute, second = _hour(clock, found["half"]), int(found["minute"]), min(int(found["second"] or 0), 59)
        late = hour == 24 and not minute + second
        moment = datetime(_year(year), _month(month), int(day), 0 if late else hour, minute, second, tzinfo=UTC)
        east = _minutes_east(found["zone"], found["offset"])
        if late or east:
            moment += timedelta(days=late, minutes=-east)
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise ValueError(found[0])
    return moment, clock is None


def read_date(text: str | None) -> tuple[datetime | None, bool]:
    """The instant in UTC, and whether it is only a day (or a month, a year); (None, False) for what is no date.

    RFC 822 with odd zones, ISO 8601 of every precision, and the shapes that blogs make up.  A date without a zone is UTC.
    """
    if not text or len(text) > 100:
        return None, False
    text = " ".join((_COMMENT.sub("", text) if "(" in text else text).split())
    for shape in _SHAPES:
        if found := shape.fullmatch(text):
            try:
                return _instant(found)
            except (KeyError, ValueError, OverflowError):
                return None, False
    return None, False
