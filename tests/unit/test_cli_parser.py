"""What is typed, what --help teaches, and the exit codes of what is mistyped."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module

import pytest

from lanes import __version__
from lanes.cli import main
from lanes.cli.parser import AWAY, FAILED, UNKNOWN, USAGE, build

COMMANDS = (
    "add", "import", "check", "pause", "resume", "remove", "slow", "block", "retire", "revive", "back", "list", "chapters", "polls",
    "incidents", "notices", "status", "why", "sites", "site", "try", "lane", "postgres", "migrate", "audit", "demo", "version",
)  # fmt: skip
ARGUMENTS = {
    "add": ["http://a.test/"], "import": ["a.opml"], "check": ["k"], "pause": ["k"], "resume": ["k"], "remove": ["k"], "why": ["k"],
    "lane": ["feeds"], "try": ["feeds", "a.xml"], "site": ["new", "lantern", "--url", "http://a.test/1"],
    "retire": ["k"], "revive": ["k"], "back": ["k"],
}  # fmt: skip


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one call."""
    try:
        code = main(argv)
    except SystemExit as left:
        code = int(left.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def test_help_names_every_command_and_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "--help")
    assert code == 0
    assert [name for name in COMMANDS if f"\n    {name}" not in out] == []
    assert [number for number in (0, FAILED, USAGE, UNKNOWN, AWAY, 130) if f"\n  {number} " not in out] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_teaches_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, command, "--help")
    assert code == 0
    assert f"example:\n  lanes {command}" in out


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_leads_to_a_function(command: str) -> None:
    module, _, name = build().parse_args([command, *ARGUMENTS.get(command, [])]).run.partition(":")
    assert callable(getattr(import_module(module), name))


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("nonsense",),
        ("add",),
        ("chapters", "-n", "0"),
        ("chapters", "-n", "٣"),
        ("audit", "--since", "yesterday"),
        ("add", "--wait", "soon", "http://a.test/"),
        ("pause",),
        ("retire",),
        ("retire", "--reason", " ", "k"),
        ("back",),
        ("notices", "-n", "0"),
        ("slow", "a.test"),
        ("slow", "--undo"),
        ("slow", "a.test", "1h", "--undo"),
        ("slow", "a.test", "25h"),
        ("slow", "a.test", "0s"),
        ("slow", "not a host", "1h"),
        ("block", "--undo"),
        ("block", "not a host"),
        ("try", "feeds"),
        ("try", "feeds", "a.xml", "--wait", "soon"),
        ("site",),
        ("site", "new", "lantern"),
        ("site", "new", "Lantern", "--url", "http://a.test/1"),
        ("site", "new", "lantern", "--url", "http://a.test/1", "--page", "--feed"),
        ("sites", "nonsense"),
    ],
)
def test_what_is_mistyped_is_a_usage_error(argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, *argv)[0] == USAGE


@pytest.mark.parametrize(
    "argv",
    [
        ("list", "--nonsense"),
        ("list", "one", "two"),
        ("status", "extra"),
        ("chapters", "-n", "0"),
        ("add",),
        ("pause", "a", "--site", "feeds"),
    ],
)
def test_what_is_mistyped_is_answered_with_the_usage_of_that_command(
    argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = said(capsys, *argv)
    assert (code, out) == (USAGE, "")
    assert err.startswith(f"usage: lanes {argv[0]} ")


def test_no_command_at_all_is_answered_with_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys)
    assert (code, out) == (USAGE, "")
    assert "exit codes:" in err


def test_an_error_under_json_is_an_object_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANES_DATABASE_URL", "postgresql://lanes@127.0.0.1:1/lanes")
    code, out, err = said(capsys, "status", "--json")
    assert code == AWAY
    assert err == f"lanes status: {json.loads(out)['error']}\n"


def test_the_version_is_an_object_under_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(said(capsys, "version", "--json")[1]) == {"version": __version__}


def test_a_wrong_setting_is_named_with_its_remedy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """CASES B17: the deleted pace variables are refused by name."""
    monkeypatch.setenv("LATEST_CHAPTER_POLL_STAGGER", "20s")
    code, out, err = said(capsys, "list")
    assert (code, out) == (USAGE, "")
    assert "LATEST_CHAPTER_POLL_STAGGER no longer exists: remove it" in err


def test_a_database_that_is_away_says_how_to_start_it_and_shows_no_password(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANES_DATABASE_URL", "postgresql://lanes:sesame@127.0.0.1:1/lanes")
    code, _, err = said(capsys, "list")
    assert code == AWAY
    assert "`make run`" in err
    assert "LANES_DATABASE_URL" in err
    assert "sesame" not in err


def test_an_unknown_site_is_told_with_those_that_are_known(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANES_CONTACT", "owner@example.org")
    code, _, err = said(capsys, "lane", "nowhere")
    assert code == UNKNOWN
    assert "feeds" in err


def test_a_lane_cannot_run_without_a_contact_address(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LANES_CONTACT", raising=False)
    code, _, err = said(capsys, "lane", "feeds")
    assert code == USAGE
    assert "LANES_CONTACT" in err


def test_the_parser_brings_nothing_that_a_lane_does_not_need() -> None:
    program = (
        "import sys, lanes.cli; print(*sorted(set(sys.modules) & {'tqdm', 'yoyo', 'psycopg', 'feedparser', 'urllib3'}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("argv", [("sites", "verify"), ("site", "new")])
def test_help_of_what_is_typed_in_two_words_teaches_with_an_example(
    argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = said(capsys, *argv, "--help")
    assert code == 0
    assert f"example:\n  lanes {' '.join(argv)}" in out


def test_sites_verify_leads_to_its_own_function() -> None:
    module, _, name = build().parse_args(["sites", "verify", "feeds"]).run.partition(":")
    assert callable(getattr(import_module(module), name))
    assert name == "verify"
