"""The owner's word, and what the owner is shown, as it is typed, against a real database."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

import psycopg
import pytest

from lanes.cli.words import local
from lanes.sites import FEEDS
from tests.fix_lane import Owner
from tests.poll_record import PollRecord

Lanes = Callable[..., tuple[int, str, str]]


def test_a_word_is_told_with_what_it_does_and_how_it_ends(lanes: Lanes) -> None:
    lanes("add", "http://a.test/")
    assert lanes("slow")[1] == "No host and no Site is slowed.\n"
    told = "a.test: at least 1h30m between two requests from now on (1 Series there). `lanes slow a.test --undo` ends it.\n"
    assert lanes("slow", "http://A.test/feed", "90m")[:2] == (0, told)
    assert lanes("slow", "a.test", "2m30s")[1].startswith(
        "a.test: nothing changed, your word of 1h30m between two requests"
    )
    assert [line.split() for line in lanes("slow")[1].splitlines()] == [
        ["HOST", "AT", "LEAST", "SAID", "SERIES"],
        ["a.test", "1h30m", "now", "1"],
    ]
    assert lanes("slow", "a.test", "--undo")[1] == (
        "a.test: your word of 1h30m is over: 1s between two requests from now on.\n"
    )
    assert lanes("slow", "a.test", "--undo")[1] == "a.test: nothing changed, you had not slowed it.\n"


def test_a_word_that_binds_nothing_yet_says_so(lanes: Lanes, database_url: str) -> None:
    lanes("add", "http://a.test/")
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE lanes.hosts SET crawl_delay = '10 minutes'")
    assert "It changes nothing yet: 10m are kept there already" in lanes("slow", "a.test", "1m")[1]


def test_a_block_is_told_by_why_and_status_and_its_end_by_what_stands_there_then(
    lanes: Lanes, database_url: str
) -> None:
    lanes("add", "http://a.test/", "http://www.b.test/")
    assert lanes("block")[1] == "No host is blocked.\n"
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "UPDATE lanes.hosts SET not_before = lanes.now() + interval '2 h', not_before_reason = 'the host refuses' WHERE name = 'a.test'"
        )
    assert lanes("block", "a.test")[1].startswith("a.test is blocked from now on: nothing is asked there (1 Series).")
    assert lanes("block", "a.test")[1].startswith("a.test was blocked already")
    assert "at www.b.test: each host has its own word" in lanes("block", "b.test")[1]
    assert lanes("why", "a-test")[1].splitlines()[0] == "a-test: the owner blocked its host"
    assert "Of 3 hosts of feeds: 2 blocked by you." in lanes("status")[1]
    assert "a.test  now" in lanes("block")[1]
    assert lanes("block", "a.test", "--undo")[1].startswith(
        "a.test is blocked no longer, but waits: the host refuses, until "
    )
    assert lanes("block", "b.test", "--undo")[1] == "b.test is blocked no longer.\n"
    assert lanes("block", "b.test", "--undo")[1] == "b.test: nothing changed, it was not blocked.\n"


@pytest.mark.parametrize("argv", [("slow", "mangadx", "1h"), ("block", "a-test"), ("slow", "a-test", "--undo")])
def test_a_bare_word_that_is_no_site_and_no_known_host_is_a_slip(argv: tuple[str, ...], lanes: Lanes) -> None:
    code, _, err = lanes(*argv)
    assert code == 3
    assert err.startswith(f"lanes {argv[0]}: There is no Site {argv[1]!r}. Registered: mangadex, ")
    assert json.loads(lanes("block", "--json")[1]) == []


def test_a_series_given_up_is_told_and_taken_back(lanes: Lanes) -> None:
    lanes("add", "http://a.test/")
    code, out, _ = lanes("retire", "--reason", "its author ended it", "a-test")
    assert (code, out) == (
        0,
        "a-test is given up, its Readers are told: its author ended it. `lanes revive a-test` takes it back.\n",
    )
    assert lanes("retire", "a-test")[1] == "a-test was given up already.\n"
    assert "1 retired" in lanes("status")[1]
    assert lanes("revive", "a-test")[1] == (
        "a-test is back, its counters at zero, its Readers told: due (pending): its Lane takes it at its turn\n"
    )
    assert lanes("revive", "a-test")[1] == "a-test was not given up.\n"
    rows = [line.split("  ") for line in lanes("notices")[1].splitlines()]
    assert [[cell.strip() for cell in row if cell.strip()][:4] for row in rows[1:3]] == [
        ["Reader owner", "back again", "a-test", "a-test is back again"],
        ["Reader owner", "stopped", "a-test", "a-test is given up: its author ended it"],
    ]
    assert lanes("notices", "--reader", "nobody")[::2] == (3, "lanes notices: There is no Reader 'nobody'.\n")
    assert [each["words"] for each in json.loads(lanes("notices", "--owed", "-n", "1", "--json")[1])] == [
        "a-test is back again"
    ]


def test_going_back_names_both_urls_without_their_secrets(lanes: Lanes, database_url: str) -> None:
    lanes("add", "http://a.test/feed")
    code, _, err = lanes("back", "a-test")
    assert (code, err) == (1, "lanes back: a-test has not moved: there is no URL to go back to.\n")
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE lanes.series SET old_url = url, url = 'http://b.test/feed?token=s3cret'")
    assert "it moved from there; `lanes back` returns: http://a.test/feed\n" in lanes("why", "a-test")[1]
    assert lanes("back", "a-test")[1] == (
        "a-test is followed at http://a.test/feed again, and stays off http://b.test/feed?....\n"
        "  due (pending): its Lane takes it at its turn\n"
    )
    assert lanes("why", "http://a.test/feed")[1].startswith("a-test: due (pending)")


def test_what_is_true_beside_the_reason_is_told_beneath_it_and_in_the_list(lanes: Lanes, database_url: str) -> None:
    lanes("add", "http://a.test/")
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "UPDATE lanes.series SET distrusted_at = lanes.now() - interval '3 h', distrusted_reason = 'it lied', "
            "refused_since = lanes.now() - interval '5 h', moving_to = 'http://u:p@b.test/', moving_since = lanes.now()"
        )
    _, lane, refused, moving, distrusted = lanes("why", "a-test")[1].splitlines()
    assert lane == "  its Lane does not run (last seen: -): `make run` starts it"
    assert refused.startswith("  its URL is refused, since 5 h (")
    assert moving.startswith(
        "  its Site redirects it for good; followed there once that has proved true: http://***@b.test/"
    )
    assert distrusted.startswith("  its validators are not trusted (it lied), since 3 h (")
    [listed] = json.loads(lanes("list", "--json")[1])
    assert (listed["distrusted_reason"], listed["moving_to"]) == ("it lied", "http://***@b.test/")
    assert listed["refused_since"] is not None
    [why] = json.loads(lanes("why", "a-test", "--json")[1])
    assert [note["url"] for note in why["notes"]] == [None, None, "http://***@b.test/", None]
    assert "1 refused alone, 1 with validators that lie" in lanes("status")[1]


def test_troubles_are_told_by_status_and_incidents(lanes: Lanes, database_url: str) -> None:
    lanes("add", "http://a.test/")
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO lanes.machines (machine, us_since) VALUES ('attic', lanes.now() - interval '2 h')"
        )
        connection.execute(
            "INSERT INTO lanes.incidents (whose, machine, started_at, spared) VALUES ('us', 'attic', lanes.now() - interval '2 h', 7)"
        )
        connection.execute(
            "INSERT INTO lanes.incidents (whose, site, host_id, kind, started_at, spared, evidence) "
            "SELECT 'site', site, id, '404', lanes.now() - interval '4 h', 50, '{\"series\": [1, 2, 3, 4, 5, 6]}' FROM lanes.hosts"
        )
    out = lanes("status")[1]
    assert "Our own line is down at attic, since 2 h: one Poll a minute until it is back.\n" in out
    assert "a.test: it fails (404), 50 Series spared, since 4 h.\n" in out
    lines = lanes("incidents")[1].splitlines()
    assert lines[1].split() == ["us", "attic", "-", "2", "h", "ago", "still", "open", "7"]
    assert lines[2].endswith("50      series 1, 2, 3, 4, 5 and 1 more")
    assert lines[3] == "2 incidents, 2 open"
    found = json.loads(lanes("status", "--json")[1])
    assert (found["lines_down"][0]["machine"], len(found["incidents"])) == ("attic", 2)


@pytest.fixture
def five_hours_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The owner's zone."""
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "UTC-5")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("five_hours_east")
def test_instants_that_were_kept_as_text_or_by_the_record_are_shown_as_all_others(lanes: Lanes, owner: Owner) -> None:
    evidence = {"since": ["2026-03-01T12:00:00.123456+00:00"], "attempts": [{"at": "2026-03-01T12:00:01.5Z"}]}
    owner.tell(
        "INSERT INTO lanes.incidents (whose, machine, started_at, spared, evidence) VALUES ('us', 'attic', lanes.now(), 1, %s)",
        json.dumps(evidence),
    )
    record = PollRecord(owner.database)
    record.write(0)
    record.write(0.9)
    code, out, _ = lanes("audit", "--since", "9999d")
    owner.tell("DELETE FROM lanes.polls")  # which are no record of this test
    assert code == 1
    assert "0.900 s from 2026-03-01 17:00:00 to 2026-03-01 17:00:00, and 1.000 s were needed" in out
    assert "since 2026-03-01 17:00:00; attempts at 2026-03-01 17:00:01\n" in lanes("incidents")[1]
    assert json.loads(lanes("incidents", "--json")[1])[0]["evidence"] == evidence


def test_a_browser_site_without_a_browser_is_told_by_status_and_why(lanes: Lanes, database_url: str) -> None:
    lanes("add", "https://kagane.to/series/01234567-89ab-7def-8123-456789abcdef")
    key = json.loads(lanes("list", "--json")[1])[0]["key"]
    down = (
        "The browser is down: its sidecar does not run; `make run` starts it. 1 Series of browser Sites waits for it.\n"
    )
    assert down in lanes("status")[1]
    assert lanes("why", key)[1].splitlines() == [
        f"{key}: the browser is down: its sidecar does not run",
        "  its Lane does not run (last seen: -): `make run` starts it",
        "  its pages are read through the browser, and the browser is down: its sidecar does not run; `make run` starts it",
    ]
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE lanes.lanes SET seen_at = lanes.now() WHERE site = 'kagane'")
        connection.execute(
            "INSERT INTO lanes.browser (heartbeat_at, browser_lost_until) VALUES (lanes.now(), lanes.now() + interval '15 min')"
        )
    state = json.loads(lanes("status", "--json")[1])
    assert state["browser"]["trouble"] == "the browser is lost"
    assert {lane["site"]: lane["state"] for lane in state["lanes"]}["kagane"] == "waits for the browser"
    until = local(datetime.fromisoformat(state["browser"]["until"]))
    assert lanes("why", key)[1].splitlines() == [
        f"{key}: the browser is lost, until {until} (in 15 min)",
        f"  its pages are read through the browser, and the browser is lost, until {until} (in 15 min); "
        "nothing is charged for that, and it is tried again by itself",
    ]


def test_series_whose_site_is_in_the_registry_no_more_say_so_everywhere(lanes: Lanes, owner: Owner) -> None:
    key = owner.follow("http://inn.test/feed", site=replace(FEEDS, name="inn", many_hosts=False))
    assert "inn" in lanes("status")[1]
    assert "not in the registry" in lanes("status")[1]
    for command in (("why", key), ("check", key), ("list", "--held")):
        code, out, err = lanes(*command)
        assert "its Site is not in the registry" in out + err, command
        assert code in (0, 1)
    assert json.loads(lanes("status", "--json")[1])["lanes"][-1]["site"] == "inn"
