"""How the command shows values: to people, and to programs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from lanes.cli.words import clean, counted, duration, print_json, print_table, relative, size
from lanes.store.following import Was

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.25, "0.2 s"),
        (3, "3 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (3569, "59 min"),
        (3600, "1 h"),
        (200_000, "2 days"),
    ],
)
def test_a_duration_is_told_in_its_largest_unit(seconds: float, words: str) -> None:
    assert duration(timedelta(seconds=seconds)) == words


def test_instants_are_told_from_now() -> None:
    assert relative(NOW + timedelta(minutes=4), NOW) == "in 4 min"
    assert relative(NOW - timedelta(hours=3), NOW) == "3 h ago"
    assert relative(NOW, NOW) == "now"
    assert relative(None, NOW) == "-"


def test_counts_and_sizes_read_well() -> None:
    assert [counted(1, "Chapter"), counted(2000, "Chapter"), counted(2, "Series")] == [
        "1 Chapter",
        "2,000 Chapters",
        "2 Series",
    ]
    assert [size(0), size(1536), size(12 << 20), size(3 << 40)] == ["0 B", "1.5 KiB", "12 MiB", "3.0 TiB"]


def test_what_a_site_writes_cannot_steer_the_terminal() -> None:
    assert clean("One\x1b[2J\nTwo\u202e") == "One [2J Two "


def test_json_has_utc_instants_and_durations_in_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    at = datetime(2026, 1, 31, 14, tzinfo=timezone(timedelta(hours=2)))
    print_json({"at": at, "rest": timedelta(minutes=2), "was": Was.NEW, "title": "春", "none": None})
    assert json.loads(capsys.readouterr().out) == {
        "at": "2026-01-31T12:00:00Z",
        "rest": 120.0,
        "was": "new",
        "title": "春",
        "none": None,
    }


def test_a_table_lines_up_whatever_the_width_of_its_letters(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("KEY", "TITLE", "N"), [("a", "春の歌", 1), ("b", "Moss", 2)])
    assert capsys.readouterr().out.splitlines() == ["KEY  TITLE   N", "a    春の歌  1", "b    Moss    2"]


def test_a_table_is_cut_to_the_terminal_at_the_columns_that_give_way(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_table(("KEY", "TITLE"), [("a-key-that-stays", "A title that is far too long")], give=(1,))
    head, row = capsys.readouterr().out.splitlines()
    assert row == "a-key-that-stays  A title tha…"
    assert len(row) == 30
    assert head == "KEY               TITLE"
