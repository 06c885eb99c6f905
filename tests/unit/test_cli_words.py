"""How the command shows values: to people, and to programs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from lanes.cli.words import (
    as_local,
    clean,
    counted,
    duration,
    local,
    masked,
    print_json,
    print_table,
    reason_told,
    relative,
    size,
)
from lanes.core.why import Why
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


def test_a_reason_that_lasts_is_told_until_when_and_one_that_ends_with_a_look_when_that_comes() -> None:
    later = NOW + timedelta(hours=4)
    lasts, comes = (
        Why("the browser is lost", later, held=True),
        Why("it failed once and is tried again", later, is_next=True),
    )
    assert reason_told(lasts, NOW) == f"the browser is lost, until {local(later)} (in 4 h)"
    assert reason_told(comes, NOW) == f"it failed once and is tried again, in 4 h ({local(later)})"
    assert reason_told(Why("nobody has bookmarked it", None), NOW) == "nobody has bookmarked it"


def test_an_instant_is_shown_in_the_owners_zone_to_the_second_however_it_is_kept() -> None:
    assert as_local("2026-01-31T12:00:00.123456+00:00") == local(NOW)
    assert as_local("2026-01-31T12:00:00Z") == local(NOW)
    assert [as_local(text) for text in ("404", "2026", "2026-01-31", "2026-01-31T12:00:00", "")] == [
        "404",
        "2026",
        "2026-01-31",
        "2026-01-31T12:00:00",
        "",
    ]


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


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (61, "a-key-that-stays  A title that is far too long  http://a.test"),
        (46, "a-key-that-stays  A title that is far too long"),
        (40, "a-key-that-stays  A title that is far t…"),
        (9, "a-key-that-stays  A title that is…"),
    ],
)
def test_a_table_leaves_columns_out_then_cuts_others_and_never_a_key(
    width: int, line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    row = ("a-key-that-stays", "A title that is far too long", "http://a.test")
    print_table(("KEY", "TITLE", "URL"), [row], cut=("TITLE",), drop=("URL",))
    assert capsys.readouterr().out.splitlines()[1] == line


def test_columns_get_narrower_one_after_another_so_that_the_last_stays_whole_longest(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_table(("TITLE", "STATE"), [("t" * 30, "s" * 20)], cut=("TITLE", "STATE"))
    assert capsys.readouterr().out.splitlines()[1] == f"{'t' * 17}…  {'s' * 20}"


def test_without_a_terminal_one_long_cell_widens_no_row_beyond_eighty_places(
    capsys: pytest.CaptureFixture[str],
) -> None:
    key, url = "k" * 100, f"http://a.test/{'u' * 300}"
    print_table(("KEY", "STATE", "URL"), [(key, "s" * 250, url), ("b", "idle", "-")], cut=("STATE",), drop=("URL",))
    _, long, short = capsys.readouterr().out.splitlines()
    assert long == f"{key}  {'s' * 79}…  {url}"
    assert len(short) == 100 + 2 + 80 + 2 + 1


def test_a_url_is_shown_with_a_mark_for_each_secret_it_may_hold() -> None:
    assert masked("https://mira:sesame@a.test/feed?t=1") == "https://***@a.test/feed?..."
    assert masked("https://a.test/feed") == "https://a.test/feed"
    assert masked("") == "(no URL)"
