"""The command as its owner types it, against a real database."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lanes.cli import main
from lanes.store import schema
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from tests.fix_database import Clock

Said = tuple[int, str, str]
Lanes = Callable[..., Said]


def opml(path: Path, *outlines: str) -> str:
    path.write_text(f'<opml version="2.0"><body>{"".join(outlines)}</body></opml>', encoding="utf-8")
    return str(path)


def test_adding_says_site_and_key_and_adding_again_that_it_is_followed(lanes: Lanes) -> None:
    code, out, err = lanes("add", "http://A.test:80/feed#top")
    assert (code, out) == (0, "Following a-test (feeds): http://a.test/feed\n")
    assert err == "lanes add: No Lane of feeds runs (last seen: -): `make run` starts it.\n"
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
    assert "No Lane of feeds runs (last seen: -)" in out


def test_why_and_list_say_that_the_lane_of_a_series_does_not_run_and_what_starts_it(
    lanes: Lanes, database_url: str
) -> None:
    lanes("add", "http://a.test/feed", "https://www.royalroad.com/fiction/12345")
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "UPDATE lanes.lanes SET seen_at = lanes.now() - CASE site WHEN 'feeds' THEN interval '6 min' ELSE '0' END"
        )
    remedy = "(last seen: 6 min ago): `.venv/bin/supervisorctl start lane-feeds` starts it"
    assert lanes("why", "a-test")[1].splitlines()[1:] == [f"  its Lane does not run {remedy}"]
    (row,) = json.loads(lanes("why", "a-test", "--json")[1])
    assert row["notes"][0]["note"] == f"its Lane does not run {remedy}"
    assert lanes("list")[1].endswith(f"2 Series\nNo Lane of feeds runs {remedy}.\n")
    assert (
        "not running (last seen 6 min ago): `.venv/bin/supervisorctl start lane-feeds`" in lanes("status", "--json")[1]
    )
    lanes("pause", "a-test")
    assert lanes("why", "a-test")[1] == "a-test: it is paused\n"
    assert "No Lane" not in lanes("list")[1]


def test_urls_are_shown_without_their_secrets_unless_asked_for(lanes: Lanes) -> None:
    url = "https://mira:sesame@priv.test/feed?token=s3cret"
    everything = (
        lanes("add", url)[1] + lanes("list")[1] + lanes("list", "--json")[1] + lanes("why", "priv-test", "--json")[1]
    )
    assert "priv.test" in everything
    assert "sesame" not in everything
    assert "s3cret" not in everything
    assert url in lanes("list", "--whole-urls")[1]


def test_series_that_differ_only_in_a_secret_have_keys_and_marks_that_tell_so(lanes: Lanes) -> None:
    lanes("add", "http://a.test/feed", "http://mira:sesame@a.test/feed", "http://a.test/feed?token=s3cret")
    found = json.loads(lanes("list", "--json")[1])
    assert {each["url"] for each in found} == {
        "http://a.test/feed",
        "http://***@a.test/feed",
        "http://a.test/feed?...",
    }
    assert len({each["key"] for each in found}) == 3


@pytest.mark.parametrize(
    "argv",
    [
        (name,)
        for name in ("check", "why", "pause", "resume", "remove", "chapters", "polls", "retire", "revive", "back")
    ],
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
        ("pause", "a-test"),
        ("resume", "a-test"),
        ("remove", "a-test"),
        ("version",),
        ("audit",),
        ("slow",),
        ("slow", "a.test", "1h"),
        ("slow", "a.test", "--undo"),
        ("slow", "feeds", "1m"),
        ("slow", "feeds", "--undo"),
        ("block",),
        ("block", "a.test"),
        ("block", "a.test", "--undo"),
        ("retire", "a-test"),
        ("revive", "a-test"),
        ("incidents",),
        ("notices",),
    ],
)
def test_json_is_one_document(argv: tuple[str, ...], lanes: Lanes) -> None:
    lanes("add", "http://a.test/")
    code, out, err = lanes(*argv, "--json")
    assert (code, err) == (0, "")
    assert isinstance(json.loads(out), list | dict)


def test_under_json_an_error_is_told_in_the_document_too(lanes: Lanes) -> None:
    lanes("add", "http://a.test/")
    for command in ("check", "why", "pause", "resume", "remove", "chapters", "polls", "retire", "revive", "back"):
        code, out, err = lanes(command, "nobody", "--json")
        assert (code, f"lanes {command}: {json.loads(out)['error']}\n") == (3, err)
    code, out, _ = lanes("why", "a-test", "nobody", "--json")
    assert (code, [next(iter(each)) for each in json.loads(out)]) == (3, ["key", "error"])
    code, out, _ = lanes("add", "gopher://a.test/", "--json")
    assert (code, list(json.loads(out))) == (2, ["error"])
    code, out, _ = lanes("add", "gopher://a.test/", "http://b.test/", "--json")
    assert (code, [next(iter(each)) for each in json.loads(out)]) == (2, ["key", "error"])


def test_what_a_verb_did_is_told_to_programs_too(lanes: Lanes) -> None:
    lanes("add", "http://a.test/")

    def told(*argv: str) -> Any:
        return json.loads(lanes(*argv, "--json")[1])

    assert told("pause", "a-test") == [{"key": "a-test", "paused": True, "changed": True}]
    assert told("resume", "a-test") == [{"key": "a-test", "paused": False, "changed": True}]
    assert told("resume", "a-test") == [{"key": "a-test", "paused": False, "changed": False}]
    assert told("pause", "--site", "feeds") == {"site": "feeds", "paused": True, "changed": True}
    assert told("resume", "--site", "feeds") == {"site": "feeds", "paused": False, "changed": True}
    assert told("remove", "a-test") == [{"key": "a-test", "purged": False, "changed": True}]
    assert told("remove", "--purge", "--yes", "a-test") == [{"key": "a-test", "purged": True, "changed": True}]


def test_status_tells_lanes_totals_and_that_nothing_runs(lanes: Lanes) -> None:
    lanes("add", "http://a.test/", "http://b.test/")
    code, out, _ = lanes("status")
    assert code == 0
    assert "not running: `make run` starts it" in out
    assert "2 Series, 2 bookmarked: 2 never checked" in out
    found = json.loads(lanes("status", "--json")[1])
    due = {lane["site"]: lane["due"] for lane in found["lanes"]}
    assert (found["polling"], due["feeds"], sum(due.values()), found["totals"]["series"]) == (True, 2, 2, 2)


def test_the_kill_switch_under_either_name_is_told_by_status_and_why(
    lanes: Lanes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CASES B17."""
    lanes("add", "http://a.test/")
    monkeypatch.setenv("LATEST_CHAPTER_POLL_ENABLED", "false")
    assert lanes("why", "a-test")[1] == "a-test: polling is switched off\n"
    assert "polling is switched off in this environment" in lanes("status")[1]
    assert [each["key"] for each in json.loads(lanes("list", "--held", "--json")[1])] == ["a-test"]


def test_the_kill_switch_of_the_lane_that_runs_is_told_by_every_command(lanes: Lanes, database: Database) -> None:
    """CASES B17."""
    PollStore(database, "feeds", "here").enrol(polling=False)
    code, out, _ = lanes("add", "--wait", "600", "http://a.test/")
    assert code == 1
    assert "  a-test: not polled yet: polling is switched off\n" in out
    assert lanes("why", "a-test")[1] == "a-test: polling is switched off\n"
    assert lanes("check", "a-test")[:2] == (0, "Asked for a-test: polling is switched off\n")
    assert "held: polling is switched off" in lanes("list")[1]
    (row,) = [line for line in lanes("status")[1].splitlines() if line.startswith("feeds ")]
    assert row.endswith("  polling is switched off")
    assert json.loads(lanes("status", "--json")[1])["polling"] is False


def test_status_says_of_each_lane_when_it_was_last_seen(lanes: Lanes, database: Database, clock: Clock) -> None:
    PollStore(database, "feeds", "here").enrol()
    assert "idle: nothing is due" in lanes("status")[1]
    clock.advance(timedelta(hours=2))
    assert "not running (last seen 2 h ago): `make run` starts it" in lanes("status")[1]


def test_a_series_that_our_guard_blocked_is_held_in_the_list_and_counted_by_status(
    lanes: Lanes, database_url: str
) -> None:
    lanes("add", "http://a.test/", "http://b.test/")
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "UPDATE lanes.series SET not_before = lanes.now() + interval '1 day', next_check_at = lanes.now() + interval '1 day', "
            "not_before_reason = 'not a public address: 10.0.0.1' WHERE key = 'a-test'"
        )
    listed = lanes("list", "--held")[1]
    assert "held: not a public address: 10.0.0.1, in 24 h" in listed
    assert "b-test" not in listed
    assert " 1 waiting," in lanes("status")[1]
    assert "a-test" not in lanes("list", "--failing")[1]


def test_check_says_what_stands_in_its_way_or_why_it_is_of_no_use(lanes: Lanes, database_url: str) -> None:
    lanes("add", "http://a.test/", "http://b.test/")
    code, out, _ = lanes("check", "a-test")
    assert code == 0
    assert out.startswith("Asked for a-test: due (pending): its Lane takes it at its turn\n  No Lane of feeds runs")
    lanes("pause", "b-test")
    code, out, _ = lanes("check", "a-test", "b-test")
    assert code == 1
    assert "Asked for a-test: " in out
    assert "b-test cannot be checked now: it is paused.\n" in out
    assert [each["asked"] for each in json.loads(lanes("check", "a-test", "b-test", "--json")[1])] == [True, False]
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "UPDATE lanes.series SET retired_at = lanes.now(), retired_reason = 'gone' WHERE key = 'a-test'"
        )
    assert lanes("check", "a-test")[:2] == (1, "a-test cannot be checked now: it is retired (gone).\n")


def test_a_series_in_hand_is_told_without_an_instant(lanes: Lanes, database: Database) -> None:
    lanes("add", "http://a.test/")
    store = PollStore(database, "feeds", "here")
    store.enrol()
    store.claim(timedelta(seconds=90), None, None)
    assert lanes("check", "a-test")[1] == "Asked for a-test: being polled now, by here\n"


def test_pause_resume_and_check_say_what_they_did(lanes: Lanes) -> None:
    lanes("add", "http://a.test/")
    assert lanes("pause", "a-test")[1] == "a-test is paused.\n"
    assert lanes("pause", "http://a.test/")[1] == "a-test was paused already.\n"
    assert lanes("check", "a-test")[:2] == (1, "a-test cannot be checked now: it is paused.\n")
    assert lanes("resume", "a-test")[1] == "a-test goes on.\n"
    assert lanes("why", "a-test")[1].startswith("a-test: due (pending): its Lane takes it at its turn\n")
    assert lanes("pause", "--site", "feeds")[1] == "The Lane feeds is paused.\n"
    assert lanes("why", "a-test")[1].startswith("a-test: the Lane is paused\n")
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
        code, out, _ = lanes(*argv, "--json")
        found = json.loads(out)
        assert code == 2
        counts = {name: len(each) for name, each in found.items() if isinstance(each, list)}
        assert found["outlines"] == 4
        assert counts == {"new": 1, "known": 0, "followed": 1, "repeated": 1, "refused": 1}
    listed = json.loads(lanes("list", "--json")[1])
    assert [(each["key"], each["title"]) for each in listed] == [("a-test-known", None), ("a-test-new", "New & old")]


def test_an_import_of_nothing_but_duplicates_is_a_success(lanes: Lanes, tmp_path: Path) -> None:
    file = opml(tmp_path / "two.opml", '<outline xmlUrl="http://a.test/"/>', '<outline xmlUrl="http://a.test/"/>')
    assert [lanes("import", file)[0], lanes("import", file)[0]] == [0, 0]


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


@pytest.mark.parametrize(
    "command", ["check", "why", "chapters", "polls", "pause", "resume", "remove", "retire", "back"]
)
def test_a_key_whose_bytes_are_no_text_is_an_unknown_series(lanes: Lanes, command: str) -> None:
    code, _, err = lanes(command, "\udcff")
    assert code == 3
    assert "There is no Series" in err


def test_words_whose_bytes_are_no_text_are_found_nowhere(lanes: Lanes) -> None:
    assert lanes("list", "\udcff")[0] == 0
