"""What is typed becomes a value, or is answered with what would be one."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import timedelta

import pytest

from lanes.cli import arguments
from lanes.cli.words import exactly


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("2m30s", 150),
        ("1h", 3600),
        ("2d", 172_800),
        ("1d1h1m1s", 90_061),
        ("0h5s", 5),
        ("999999s", 999_999),
    ],
)
def test_a_duration_is_days_hours_minutes_and_seconds(text: str, seconds: int) -> None:
    assert arguments.duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "1", "h", "1 h", "1.5h", "-1h", "0s", "30s2m", "1h1h", "٣s", "1000000s", "1w", "inf", "1h\n"]
)
def test_what_is_no_duration_is_answered_with_examples(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is not a duration such as 90s, 2m30s, 12h or 2d"):
        arguments.duration(text)


def test_a_word_is_a_day_at_most_and_names_what_asks_nothing_at_all() -> None:
    assert arguments.word("24h") == timedelta(days=1)
    with pytest.raises(ArgumentTypeError, match="longer than 24h: `lanes block HOST`"):
        arguments.word("24h1s")


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("Serial.Example.org", "serial.example.org"),
        ("serial.example.org.", "serial.example.org"),
        ("https://serial.example.org/feed?x=1", "serial.example.org"),
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
        ("[::1]", "::1"),
        ("bücher.example", "xn--bcher-kva.example"),
    ],
)
def test_a_host_has_one_spelling(text: str, host: str) -> None:
    assert arguments.host(text) == host


@pytest.mark.parametrize(
    "text", ["", "a b", "a.test/feed", "mira:sesame@a.test", "ftp://a.test/", "a..test", "*.a.test"]
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is not a host such as"):
        arguments.host(text)


@pytest.mark.parametrize("text", ["1h30m", "1m30s", "2d", "1d1h", "5s"])
def test_a_duration_is_told_as_it_is_typed(text: str) -> None:
    assert exactly(arguments.duration(text)) == text


def test_parts_of_a_second_and_no_duration_at_all_are_told_too() -> None:
    assert [exactly(timedelta(seconds=0.5)), exactly(timedelta(0)), exactly(None)] == ["0.5s", "0s", "-"]
