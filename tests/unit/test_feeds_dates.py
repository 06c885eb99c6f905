"""Dates as feeds write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lanes.sites.feed_dates import read_date


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Fri, 19 Nov 2021 01:45:08 +02:00", "2021-11-18T23:45:08"),
        ("Fri, 19 Nov 2021 06:00:00 EDT", "2021-11-19T10:00:00"),
        ("Mon, May 25 2020 04:45:26 +0000", "2020-05-25T04:45:26"),
        ("Sun, 29 Nov 2026 19:00:00 GMT", "2026-11-29T19:00:00"),
        ("29 Nov 2026 19:00 Z", "2026-11-29T19:00:00"),
        ("Saturday, 28 Nov 2026 17:00:21 GMT", "2026-11-28T17:00:21"),
        ("Sun, 29 Nov 26 19:00:00 -0530", "2026-11-30T00:30:00"),
        ("29-Nov-2026 19:00:00 UTC+2", "2026-11-29T17:00:00"),
        ("Sun, 29 Nov 2026 24:00:00 GMT", "2026-11-30T00:00:00"),
        ("Sun, 29 Nov 2026 23:59:60 GMT", "2026-11-29T23:59:59"),
        ("Sun, 29 Nov 2026 9:05:00 PM EST", "2026-11-30T02:05:00"),
        ("Sun,  29  November 2026\n 19:00:00 +0000 (UTC)", "2026-11-29T19:00:00"),
        ("Sun Jan  4 16:29:06 PST 2026", "2026-01-05T00:29:06"),
        ("November 28, 2026 4:45 pm", "2026-11-28T16:45:00"),
        ("2026-11-29T12:00:00Z", "2026-11-29T12:00:00"),
        ("2026-11-29t12:00:00.123456789+05:30", "2026-11-29T06:30:00"),
        ("2026-11-29 12:00", "2026-11-29T12:00:00"),
        ("20261129T120000-0800", "2026-11-29T20:00:00"),
        ("2026-11-29T12:00:00 Europe/Somewhere", "2026-11-29T12:00:00"),
        ("Wed, 01 Jan 2098 00:00:00 GMT", "2098-01-01T00:00:00"),
    ],
)
def test_an_instant_is_read_in_utc(written: str, read: str) -> None:
    """CASES F8; a date in the future stays."""
    assert read_date(written) == (datetime.fromisoformat(read).replace(tzinfo=UTC), False)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2026-11-29", "2026-11-29"),
        ("2026-11", "2026-11-01"),
        ("2026", "2026-01-01"),
        ("29 Nov 2026", "2026-11-29"),
        ("Nov 28, 2026", "2026-11-28"),
    ],
)
def test_a_day_or_less_is_marked_approximate(written: str, read: str) -> None:
    assert read_date(written) == (datetime.fromisoformat(read).replace(tzinfo=UTC), True)


@pytest.mark.parametrize(
    "written",
    [
        None, "", " ", "Invalid Date", "not a date", "now", "yesterday", "0000-00-00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
        "1969-12-31", "2201-01-01", "31 Feb 2026", "2026-13-01", "2026-11-29T25:00:00Z", "2026-11-29T12:61:00Z", "1606780800",
        "Sun, 29 Nov 2026 19:00:00 +9999", "29 Foo 2026", "\uff12\uff10\uff12\uff16-11-29", "Mon, " * 19, "1" * 5_000,
        "2026-11-29T12:00:00Z\0",
    ],
)  # fmt: skip
def test_what_is_no_date_is_none_and_never_now(written: str | None) -> None:
    """CASES F8, F2."""
    assert read_date(written) == (None, False)
