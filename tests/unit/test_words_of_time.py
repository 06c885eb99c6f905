"""Dates as Sites write them for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.sites.words_of_time import localised, relative

NOW = datetime(2026, 11, 29, 12, 34, 56, 789, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("just now", "2026-11-29T12:34:00"),
        ("18 hours", "2026-11-28T18:00:00"),
        ("18 hours ago", "2026-11-28T18:00:00"),
        ("3h", "2026-11-29T09:00:00"),
        ("3h ago", "2026-11-29T09:00:00"),
        ("45 seconds ago", "2026-11-29T12:34:11"),
        ("6 minutes ago", "2026-11-29T12:28:00"),
        ("6m", "2026-11-29T12:28:00"),
        ("2d", "2026-11-27"),
        ("2 Days Ago", "2026-11-27"),
        ("1w", "2026-11-22"),
        ("a month ago", "2026-10-30"),
        ("5mo", "2026-07-02"),
        ("5 mth", "2026-07-02"),
        ("1yr", "2025-11-29"),
        ("2yrs ago", "2024-11-29"),
        ("about an hour ago", "2026-11-29T11:00:00"),
        ("today", "2026-11-29"),
        ("yesterday", "2026-11-28"),
        ("3時間前", "2026-11-29T09:00:00"),
        ("３時間前", "2026-11-29T09:00:00"),
        ("1か月前", "2026-10-30"),
        ("昨日", "2026-11-28"),
        ("2天前", "2026-11-27"),
        ("3個月前", "2026-08-31"),
        ("刚刚", "2026-11-29T12:34:00"),
        ("5분 전", "2026-11-29T12:29:00"),
        ("어제", "2026-11-28"),
        ("3 часа назад", "2026-11-29T09:00:00"),
        ("час назад", "2026-11-29T11:00:00"),
        ("вчера", "2026-11-28"),
        ("hace 2 días", "2026-11-27"),
        ("hace una semana", "2026-11-22"),
        ("il y a 3 jours", "2026-11-26"),
        ("il y a une heure", "2026-11-29T11:00:00"),
        ("avant-hier", "2026-11-27"),
        ("vor 3 Tagen", "2026-11-26"),
        ("há 2 dias", "2026-11-27"),
        ("2 hari yang lalu", "2026-11-27"),
    ],
)
def test_an_amount_is_taken_from_the_instant_and_floored_to_its_unit(written: str, read: str) -> None:
    """SITES 13: months are 30 days, years 365; always approximate."""
    assert relative(written, NOW) == (datetime.fromisoformat(read).replace(tzinfo=UTC), True)


@pytest.mark.parametrize(
    "written",
    ["", None, "in 3 hours", "3 lamps", "hours", "m", "3", "26年", "3 jours", "1 day, 3 hours ago", "Nov 28, 2026", "999999 years ago",
     "57 years ago", "1234567 seconds ago", "x" * 101],
)  # fmt: skip
def test_what_is_no_amount_of_time_before_now_is_none(written: str | None) -> None:
    """CJK and other words need their "ago": 26年 is also a year."""
    assert relative(written, NOW) == (None, False)


def test_two_polls_of_one_hour_say_the_same() -> None:
    assert relative("3h", NOW) == relative("3h", NOW + timedelta(minutes=25))


def test_the_instant_may_be_of_any_zone() -> None:
    assert relative("2d", NOW.astimezone(timezone(timedelta(hours=14)))) == relative("2d", NOW)


INSTANT = (datetime(2026, 11, 28, 17, 0, 21, tzinfo=UTC), False)
DAY = (datetime(2026, 11, 28, tzinfo=UTC), True)


@pytest.mark.parametrize(
    "written",
    [
        "Saturday, 28 Nov 2026 17:00:21 GMT",
        "星期六, 28 十一月 2026 17:00:21 GMT",
        "星期六, 28 11月 2026 17:00:21 GMT",
        "sábado, 28 noviembre 2026 17:00:21 GMT",
        "sábado, 28 de nov. de 2026 17:00:21 GMT",
        "samedi, 28 novembre 2026 17:00:21 GMT",
        "samedi, 28 NOV. 2026 à 17:00:21",
        "Samstag, 28. November 2026 17:00:21 Uhr",
        "Sabtu, 28 November 2026 17:00:21 GMT",
        "วันเสาร์, 28 พ.ย. 2026 17:00:21 GMT",
        "วันเสาร์ที่ 28 พฤศจิกายน 2569 17:00:21 GMT",
        "２０２６年１１月２８日 17:00:21",
    ],
)
def test_an_instant_in_the_language_of_its_edition_is_read(written: str) -> None:
    """SITES 3; a Thai year may be of the Thai calendar."""
    assert localised(written) == INSTANT


@pytest.mark.parametrize(
    "written",
    [
        "Nov 28, 2026",
        "2026年11月28日",
        "2026年11月28日(土)",
        "2026년 11월 28일",
        "28 nov. 2026",
        "28. November 2026",
        "28 พ.ย. 2569",
    ],
)
def test_a_day_alone_is_approximate(written: str) -> None:
    assert localised(written) == DAY


@pytest.mark.parametrize(
    ("word", "month"),
    [("enero", 1), ("févr.", 2), ("März", 3), ("Mei", 5), ("juin", 6), ("juil.", 7), ("août", 8), ("aout", 8),
     ("Agustus", 8), ("ago", 8), ("septiembre", 9), ("Oktober", 10), ("ธ.ค.", 12), ("十月", 10), ("十二月", 12)],
)  # fmt: skip
def test_each_language_has_its_months(word: str, month: int) -> None:
    assert localised(f"1 {word} 2026") == (datetime(2026, month, 1, tzinfo=UTC), True)


@pytest.mark.parametrize(
    "written",
    [
        "",
        None,
        "yesterday",
        "28 brumaire 2026",
        "32 noviembre 2026",
        "2026年13月28日",
        "29 févr. 2026",
        "noviembre",
        "x" * 101,
    ],
)
def test_what_is_no_date_is_none(written: str | None) -> None:
    assert localised(written) == (None, False)


@given(st.text(max_size=120), st.datetimes(timezones=st.just(UTC)))
def test_no_text_and_no_instant_raises(text: str, at: datetime) -> None:
    for moment, _ in (
        relative(text, at),
        relative(f"{text} days ago", at),
        localised(text),
        localised(f"28 {text} 2026"),
    ):
        assert moment is None or moment.tzinfo is UTC
