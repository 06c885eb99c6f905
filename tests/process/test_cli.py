"""The command as its owner types it, against a real database."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lanes.cli import main
from lanes.store import schema

Said = tuple[int, str, str]
Lanes = Callable[..., Said]


@pytest.fixture
def lanes(database_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Lanes:
    """Runs one command on this test's database: exit code, standard output, standard error."""
    monkeypatch.setenv("LANES_DATABASE_URL", database_url)

    def run(*argv: str) -> Said:
        code = main(argv)
        out, err = capsys.readouterr()
        return code, out, err

    return run


def opml(path: Path, *outlines: str) -> str:
    path.write_text(f'<opml version="2.0"><body>{"".join(outlines)}</body></opml>', encoding="utf-8")
    return str(path)


def test_adding_says_site_and_key_and_adding_again_that_it_is_followed(lanes: Lanes) -> None:
    assert lanes("add", "http://A.test:80/feed#top") == (0, "Following a-test (feeds): http://a.test/feed\n", "")
    assert lanes("add", "http://a.test/feed") == (0, "Already followed: a-test (feeds): http://a.test/feed\n", "")


def test_a_bad_url_is_refused_and_the_others_are_followed(lanes: Lanes) -> None:
    code, out, err = lanes("add", "gopher://a.test/", "http://b.test/")
    assert code == 2
    assert "Following b-test" in out
    assert err.startswith("lanes add: 'gopher://a.test/' cannot be followed: ")


def test_adding_with_wait_fails_where_no_lane_runs_and_says_so(lanes: Lanes) -> None:
    code, out, _ = lanes("add", "--wait", "1", "http://a.test/feed")
    assert code == 1
    assert "not polled yet: due (its time)" in out
    assert "No Lane runs" in out


def test_urls_are_shown_without_their_secrets_unless_asked_for(lanes: Lanes) -> None:
    url = "https://mira:sesame@priv.test/feed?token=s3cret"
    everything = (
        lanes("add", url)[1] + lanes("list")[1] + lanes("list", "--json")[1] + lanes("why", "priv-test", "--json")[1]
    )
    assert "priv.test" in everything
    assert "sesame" not in everything
    assert "s3cret" not in everything
    assert url in lanes("list", "--whole-urls")[1]


@pytest.mark.parametrize(
    "argv", [("check",), ("why",), ("pause",), ("resume",), ("remove",), ("chapters",), ("polls",)]
)
def test_an_unknown_key_has_an_exit_code_of_its_own(argv: tuple[str, ...], lanes: Lanes) -> None:
    code, _, err = lanes(*argv, "nobody")
    assert code == 3
    assert err == f"lanes {argv[0]}: There is no Series 'nobody'. `lanes list` shows the keys.\n"


def test_an_unknown_site_has_the_same_exit_code(lanes: Lanes) -> None:
    assert lanes("list", "--site", "nowhere")[0] == 3
    assert lanes("pause", "--site", "nowhere")[0] == 3


@pytest.mark.parametrize(
    "argv",
    [
        ("list",),
        ("chapters",),
        ("polls",),
        ("status",),
        ("sites",),
        ("why", "a-test"),
        ("check", "a-test"),
        ("add", "http://a.test/"),
        ("audit",),
    ],
)
def test_json_is_one_document(argv: tuple[str, ...], lanes: Lanes) -> None:
    lanes("add", "http://a.test/")
    code, out, err = lanes(*argv, "--json")
    assert (code, err) == (0, "")
    assert isinstance(json.loads(out), list | dict)


def test_status_tells_lanes_totals_and_that_nothing_runs(lanes: Lanes) -> None:
    lanes("add", "http://a.test/", "http://b.test/")
    code, out, _ = lanes("status")
    assert code == 0
    assert "not running: `make run` starts it" in out
    assert "2 Series, 2 bookmarked: 2 never checked" in out
    found = json.loads(lanes("status", "--json")[1])
    assert (found["polling"], found["lanes"][0]["due"], found["totals"]["series"]) == (True, 2, 2)


def test_the_kill_switch_under_either_name_is_told_by_status_and_why(
    lanes: Lanes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CASES B17."""
    lanes("add", "http://a.test/")
    monkeypatch.setenv("LATEST_CHAPTER_POLL_ENABLED", "false")
    assert lanes("why", "a-test")[1] == "a-test: polling is switched off\n"
    assert "polling is switched off in this environment" in lanes("status")[1]
    assert [each["key"] for each in json.loads(lanes("list", "--held", "--json")[1])] == ["a-test"]


def test_pause_resume_and_check_say_what_they_did(lanes: Lanes) -> None:
    lanes("add", "http://a.test/")
    assert lanes("pause", "a-test")[1] == "a-test is paused.\n"
    assert lanes("pause", "http://a.test/")[1] == "a-test was paused already.\n"
    assert lanes("check", "a-test")[1] == "a-test: it is paused\n"
    assert lanes("resume", "a-test")[1] == "a-test goes on.\n"
    assert lanes("why", "a-test")[1] == "a-test: due (pending): its Lane takes it at its turn\n"
    assert lanes("pause", "--site", "feeds")[1] == "The Lane feeds is paused.\n"
    assert lanes("why", "a-test")[1] == "a-test: the Lane is paused\n"
    assert lanes("resume", "--site", "feeds")[1] == "The Lane feeds goes on.\n"


def test_what_is_removed_is_kept_unless_purged(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    lanes("add", "http://a.test/")
    assert "no longer bookmarked" in lanes("remove", "a-test")[1]
    assert lanes("why", "a-test")[1] == "a-test: nobody has bookmarked it\n"
    assert lanes("add", "http://a.test/")[1].startswith("Following a-test (feeds) again")
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    code, out, err = lanes("remove", "--purge", "a-test")
    assert (code, out) == (2, "")
    assert "--yes" in err
    assert lanes("remove", "--purge", "--yes", "a-test")[0] == 0
    assert lanes("list", "--json")[1] == "[]\n"


def test_an_import_accounts_for_every_outline(lanes: Lanes, tmp_path: Path) -> None:
    lanes("add", "http://a.test/known")
    file = opml(
        tmp_path / "all.opml",
        '<outline text="New &amp; old" xmlUrl="http://a.test/new"/>',
        '<outline text="Twice" xmlUrl="http://A.test/new#x"/>',
        '<outline text="Known" xmlUrl="http://a.test/known"/>',
        '<outline text="Bad" xmlUrl="ftp://a.test/"/>',
        '<outline text="A folder"/>',
    )
    for argv in (("import", "--dry-run", file), ("import", file)):
        found = json.loads(lanes(*argv, "--json")[1])
        counts = {name: len(each) for name, each in found.items() if isinstance(each, list)}
        assert found["outlines"] == 4
        assert counts == {"new": 1, "known": 0, "followed": 1, "repeated": 1, "refused": 1}
    listed = json.loads(lanes("list", "--json")[1])
    assert [(each["key"], each["title"]) for each in listed] == [("a-test-known", None), ("a-test-new", "New & old")]


def test_a_dry_run_changes_nothing(lanes: Lanes, tmp_path: Path) -> None:
    file = opml(tmp_path / "one.opml", '<outline xmlUrl="http://a.test/"/>')
    assert "1 Series would be followed" in lanes("import", "--dry-run", file)[1]
    assert lanes("list", "--json")[1] == "[]\n"


def test_five_thousand_outlines_are_imported_and_a_second_time_recognised(lanes: Lanes, tmp_path: Path) -> None:
    outlines = [f'<outline text="S {n}" xmlUrl="http://host{n % 500}.test/{n // 500}/feed"/>' for n in range(5000)]
    file = opml(tmp_path / "many.opml", *outlines)
    assert "5,000 Series are followed from now on." in lanes("import", file)[1]
    assert "Followed already: 5,000" in lanes("import", file)[1]
    assert "5,000 Series, 5,000 bookmarked" in lanes("status")[1]


def test_a_file_that_is_missing_or_broken_is_one_line(lanes: Lanes, tmp_path: Path) -> None:
    assert lanes("import", str(tmp_path / "none.opml"))[::2] == (
        1,
        f"lanes import: {tmp_path}/none.opml cannot be read: No such file or directory.\n",
    )
    broken = tmp_path / "broken.opml"
    broken.write_text("<opml>\n<body>", encoding="utf-8")
    assert lanes("import", str(broken))[::2] == (1, f"lanes import: {broken}, line 2: no element found.\n")


def test_standard_input_is_a_file_too(database_url: str, tmp_path: Path) -> None:
    file = opml(tmp_path / "one.opml", '<outline xmlUrl="http://a.test/"/>')
    with Path(file).open("rb") as stdin:
        done = subprocess.run(
            [sys.executable, "-m", "lanes", "import", "-"],
            stdin=stdin,
            capture_output=True,
            text=True,
            check=False,
            env={"LANES_DATABASE_URL": database_url},
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 Series are followed" in done.stdout


def test_a_reader_that_stops_reading_is_no_traceback(database_url: str) -> None:
    program = "import os, sys, lanes.cli; os.close(1); r, w = os.pipe(); os.close(r); os.dup2(w, 1); sys.exit(lanes.cli.main(['sites']))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={"LANES_DATABASE_URL": database_url},
    )
    assert (done.returncode, done.stderr) == (1, "")


def test_the_poll_record_and_the_chapters_are_shown(lanes: Lanes, database_url: str) -> None:
    lanes("add", "http://a.test/")
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO lanes.chapters (series_id, title, url, published_at, found_at, announced) "
            "SELECT id, E'One\\x1b[2J', 'http://a.test/1', lanes.now() - interval '2 hours', lanes.now(), true FROM lanes.series"
        )
        connection.execute(
            "INSERT INTO lanes.polls (claimed_at, token, series_id, site, host, machine, trigger, sent_at, ended_at, outcome, status, "
            "wire_bytes, new_chapters, host_pace, address_pace) "
            "SELECT lanes.now(), gen_random_uuid(), id, site, 'a.test', 'here', 'its time', lanes.now(), "
            "lanes.now() + interval '0.3 s', 'new', 200, 2048, 1, '1 s', '0.5 s' FROM lanes.series"
        )
    chapters = lanes("chapters", "a-test")[1]
    assert "2 h ago" in chapters
    assert "\x1b" not in chapters
    assert lanes("polls", "a-test")[1].splitlines()[1].split()[-6:] == ["200", "1", "2.0", "KiB", "0.3", "s"]
    [attempt] = json.loads(lanes("polls", "--json")[1])
    assert (attempt["outcome"], attempt["wire_bytes"], attempt["key"]) == ("new", 2048, "a-test")


def test_an_audit_of_a_clean_record_is_clean(lanes: Lanes) -> None:
    assert lanes("audit", "--since", "1d")[:2] == (
        0,
        "Clean: 0 requests to 0 hosts at 0 addresses, none of them too early.\n",
    )


def test_a_database_without_tables_is_not_ready_and_migrate_makes_it_so(
    empty_database: Callable[[], Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with empty_database() as url:
        monkeypatch.setenv("LANES_DATABASE_URL", url)
        assert main(["list"]) == 4
        assert "`lanes migrate`" in capsys.readouterr().err
        assert main(["migrate"]) == 0
        assert "applied 0001" in capsys.readouterr().out
        assert main(["migrate", "--wait"]) == 0
        assert capsys.readouterr().out == "The database is up to date.\n"
        assert schema.missing(url) is None
