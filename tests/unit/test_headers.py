"""Numbers and dates from headers, read as a person would, within bounds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lanes.core.headers import LONGEST_DELAY, LONGEST_HINT, delay, keep_alive, max_age, used_up

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
AN_HOUR_LATER = "Fri, 01 May 2026 13:00:00 GMT"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 120 ", 120),
        ("\t86400", 86_400),
        ("0000000000000000060", 60),
        ("1000000", 1_000_000),
        ("7".rjust(1_024), 7),
        ("120, 60", 120),
        ("60, 120, soon", 120),
        (AN_HOUR_LATER, 3_600),
        ("Friday, 01-May-26 13:00:00 GMT", 3_600),
        ("Fri May  1 13:00:00 2026", 3_600),
        ("Fri, 01 May 2026 15:00:00 +0200", 3_600),
        (f"Fri, 01 May 2026 12:10:00 GMT, {AN_HOUR_LATER}", 3_600),
        (f"60, {AN_HOUR_LATER}", 3_600),
    ],
)
def test_a_readable_retry_after_is_waited_out(value: str, seconds: int) -> None:
    """CASES B4, B6."""
    assert delay({"retry-after": value}, NOW) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "value",
    ["-5", "1.5", "3_600", "\uff11\uff12\uff10", "", "   ", "soon", "0", "+60", "60s", "0x10", "\x00", "²", ","],
)
def test_an_unreadable_retry_after_says_nothing(value: str) -> None:
    """CASES B4."""
    assert delay({"retry-after": value}, NOW) is None


def test_of_a_value_a_thousand_characters_are_read() -> None:
    assert delay({"retry-after": "7".rjust(1_025)}, NOW) is None


def test_no_retry_after_says_nothing() -> None:
    assert delay({}, NOW) is None


@pytest.mark.parametrize("value", ["99999999999", "9" * 10_000, "2592001", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_retry_after_beyond_thirty_days_is_thirty_days(value: str) -> None:
    """CASES B4."""
    assert delay({"retry-after": value}, NOW) == LONGEST_DELAY == timedelta(days=30)


def test_a_date_counts_from_the_servers_own_clock() -> None:
    """CASES B5: the server's clock is an hour ahead of ours, and it asks for two minutes."""
    headers = {"date": AN_HOUR_LATER, "retry-after": "Fri, 01 May 2026 13:02:00 GMT"}
    assert delay(headers, NOW) == timedelta(minutes=2)


def test_a_date_gone_by_on_the_servers_clock_says_nothing() -> None:
    assert delay({"date": AN_HOUR_LATER, "retry-after": "Fri, 01 May 2026 12:59:59 GMT"}, NOW) is None


def test_an_unreadable_date_of_the_server_leaves_ours() -> None:
    assert delay({"date": "yesterday", "retry-after": AN_HOUR_LATER}, NOW) == timedelta(hours=1)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"cache-control": "max-age=300"}, 300),
        ({"cache-control": 'public, MAX-AGE="300"'}, 300),
        ({"cache-control": "max-age=300, max-age=600"}, 600),
        ({"cache-control": "s-maxage=9, max-age=300", "expires": AN_HOUR_LATER}, 300),
        ({"cache-control": "max-age=86400"}, 86_400),
        ({"expires": AN_HOUR_LATER}, 3_600),
        ({"expires": "Fri, 01 May 2026 13:02:00 GMT", "date": AN_HOUR_LATER}, 120),
    ],
)
def test_a_freshness_is_a_hint(headers: dict[str, str], seconds: int) -> None:
    assert max_age(headers, NOW) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"cache-control": "max-age=0"},
        {"cache-control": "max-age=-1"},
        {"cache-control": "max-age=3_600"},
        {"cache-control": "max-age"},
        {"cache-control": "no-cache, max-age=300"},
        {"cache-control": "max-age=300, no-store"},
        {"cache-control": "max-age=junk", "expires": AN_HOUR_LATER},
        {"expires": "0"},
        {"expires": "-1"},
        {"expires": "Fri, 01 May 2026 11:00:00 GMT"},
    ],
)
def test_no_freshness_is_no_hint(headers: dict[str, str]) -> None:
    assert max_age(headers, NOW) is None


@pytest.mark.parametrize("headers", [{"cache-control": "max-age=999999999999"}, {"cache-control": "max-age=86401"},
                                     {"expires": "Sun, 03 May 2026 13:00:00 GMT"}])  # fmt: skip
def test_a_hint_over_a_day_is_no_hint(headers: dict[str, str]) -> None:
    """CASES B4."""
    assert timedelta(hours=24) == LONGEST_HINT
    assert max_age(headers, NOW) is None


def test_a_server_says_how_long_it_keeps_an_idle_connection() -> None:
    assert keep_alive({"keep-alive": "timeout=5, max=100"}) == timedelta(seconds=5)
    assert keep_alive({"keep-alive": "max=100"}) is None
    assert keep_alive({}) is None


def test_a_wait_may_be_given_as_the_unix_time_at_which_it_ends() -> None:
    dated = {"date": "Mon, 30 Nov 2026 18:00:00 GMT", "x-ratelimit-retry-after": "1796061720"}
    assert delay(dated, NOW) == timedelta(minutes=2)
    assert delay({**dated, "retry-after": "300"}, NOW) == timedelta(minutes=5)


@pytest.mark.parametrize(
    ("remaining", "reset", "wait"),
    [
        ("0", "57", timedelta(seconds=57)),
        ("0.0", "57.0", timedelta(seconds=57)),
        ("0", "1796061720", timedelta(minutes=2)),
        ("0", "86399", timedelta(seconds=86_399)),
        ("0", "999999999", timedelta(hours=24)),
        ("0", "1000000000", None),
        ("0", "0", None),
        ("1.0", "57", None),
        ("", "57", None),
        ("0", "soon", None),
        ("0", "99999999999", None),
    ],
)
def test_an_allowance_that_is_used_up_comes_back_when_its_server_says(
    remaining: str, reset: str, wait: timedelta | None
) -> None:
    told = {"date": "Mon, 30 Nov 2026 18:00:00 GMT", "x-ratelimit-remaining": remaining, "x-ratelimit-reset": reset}
    assert used_up(told, NOW) == wait
