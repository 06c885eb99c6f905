"""lanes sites verify: whether the landmarks of a Site are still there, by a Poll of its own Lane."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from lanes.cli.verifying import Found, code_for, of_poll
from lanes.store.asking import Outcome
from tests.fix_lane import LaneAtWork, Owner
from tests.fix_own import Own, the_lanes
from tests.own_sites import by_browser, install
from tests.process.conftest import Lanes
from tests.smallnet import Smallnet, status


def one(lanes: Lanes, *argv: str) -> tuple[int, dict[str, object]]:
    """The exit code, and what is said of the one Site."""
    code, out, _ = lanes("sites", "verify", "feeds", *argv, "--json")
    (row,) = json.loads(out)
    return code, row


def test_the_series_that_was_lately_good_is_polled_now_and_its_landmarks_are_there(
    net: Smallnet, lane: LaneAtWork, lanes: Lanes
) -> None:
    host = net.host("127.1.0.5")
    for path in ("/a", "/b"):
        host.feed(path, ["One"])
    keys = [lane.follow(host.url(path)) for path in ("/a", "/b")]
    lane.poll(keys[0])
    lane.poll(keys[1])
    before = len(net.record)
    with lane.running():
        code, row = one(lanes, "--wait", "30")
    assert (code, row["found"], row["key"]) == (0, "there", keys[1])
    assert [visit.path for visit in net.record][before:] == ["/b"]


def test_a_landmark_that_is_gone_fails_with_the_reason(net: Smallnet, lane: LaneAtWork, lanes: Lanes) -> None:
    host = net.host("127.1.0.5")
    host.feed("/a", ["One"])
    key = lane.follow(host.url("/a"))
    lane.poll(key)
    host.page("/a", "<html><title>We have a new look</title></html>")
    with lane.running():
        code, row = one(lanes, "--wait", "30")
    assert (code, row["found"]) == (1, "gone")
    assert "not recognised: this is a web page, not a feed" in str(row["words"])


def test_a_refusal_is_told_and_is_no_landmark_gone(net: Smallnet, lane: LaneAtWork, lanes: Lanes) -> None:
    host = net.host("127.1.0.5")
    host.feed("/a", ["One"])
    lane.poll(lane.follow(host.url("/a")))
    host.script("/a", status(403))
    with lane.running():
        code, row = one(lanes, "--wait", "30")
    assert (code, row["found"], row["words"]) == (0, "refused", "refused: 403 from the server")


def test_what_is_held_is_told_at_once_with_its_end(net: Smallnet, lane: LaneAtWork, lanes: Lanes) -> None:
    lane.follow(net.host("127.1.0.5").url("/a"))
    lane.tell(
        "UPDATE lanes.hosts SET not_before = lanes.now() + '1 hour', not_before_reason = 'the host asked to wait: 429'"
    )
    code, row = one(lanes, "--wait", "600")
    assert (code, row["found"], row["words"]) == (0, "held", "the host asked to wait: 429")
    assert row["until"] is not None


@pytest.mark.parametrize(
    ("stands", "words"),
    [
        (
            "UPDATE lanes.series SET retry_at = lanes.now() + interval '1 hour', retry_reason = 'robots.txt gave no answer'",
            "put back: robots.txt gave no answer",
        ),
        (
            "UPDATE lanes.machines SET us_since = lanes.now(), probe_at = lanes.now() + interval '1 min'",
            "our own line is down: one Poll a minute until it is back",
        ),
    ],
)
def test_what_is_put_back_for_longer_than_the_wait_and_our_line_down_are_told_at_once(
    net: Smallnet, lane: LaneAtWork, lanes: Lanes, stands: str, words: str
) -> None:
    host = net.host("127.1.0.5")
    host.feed("/a", ["One"])
    lane.poll(lane.follow(host.url("/a")))
    lane.tell(stands)
    code, row = one(lanes, "--wait", "3")
    assert (code, row["found"], row["words"]) == (0, "held", words)


def test_no_example_is_offered_where_a_site_has_none(lanes: Lanes) -> None:
    for more in ((), ("--example",)):
        (row,) = json.loads(lanes("sites", "verify", "kagane", *more, "--json")[1])
        assert row["words"] == "nothing of it is followed: it has no example to ask for: `lanes add` one"


def test_without_its_lane_nothing_is_known_and_how_to_start_it_is_said(
    net: Smallnet, lane: LaneAtWork, lanes: Lanes
) -> None:
    lane.follow(net.host("127.1.0.5").url("/a"))
    lane.tell("UPDATE lanes.lanes SET seen_at = NULL")
    before = lane.one("SELECT force_poll_at FROM lanes.series")
    code, row = one(lanes, "--wait", "600")
    assert (code, row["found"], row["words"]) == (4, "not running", "no Lane of feeds runs: `make run` starts it")
    assert lane.one("SELECT force_poll_at FROM lanes.series") == before


def test_a_lane_that_ends_while_it_is_waited_for_is_told_at_the_end(
    net: Smallnet, lane: LaneAtWork, lanes: Lanes
) -> None:
    lane.follow(net.host("127.1.0.5").url("/a"))
    assert one(lanes, "--wait", "1")[:1] == (4,), "it was seen lately, and polls nothing"
    lane.move_to(lane.now() + timedelta(minutes=4))
    assert one(lanes, "--wait", "600")[1]["found"] == "not running"


def test_without_its_browser_a_site_is_not_waited_for_and_what_starts_it_is_said(lanes: Lanes, owner: Owner) -> None:
    lanes("add", "https://kagane.to/series/01234567-89ab-7def-8123-456789abcdef")
    owner.tell("UPDATE lanes.lanes SET seen_at = lanes.now() WHERE site = 'kagane'")
    code, out, _ = lanes("sites", "verify", "kagane", "--wait", "600", "--json")
    (row,) = json.loads(out)
    down = "the browser is down: its sidecar does not run; `make run` starts it"
    assert (code, row["found"], row["words"]) == (4, "not running", down)
    owner.tell(
        "INSERT INTO lanes.browser (heartbeat_at, browser_lost_until) VALUES (lanes.now(), lanes.now() + interval '15 min')"
    )
    code, out, _ = lanes("sites", "verify", "kagane", "--wait", "600", "--json")
    (row,) = json.loads(out)
    lost = "the browser is lost; nothing is charged for that, and it is tried again by itself"
    assert (code, row["found"], row["words"]) == (4, "not running", lost)


def test_without_its_browser_no_example_is_asked_for_and_what_starts_it_is_said(
    own: Own, owner: Owner, tmp_path: Path
) -> None:
    install(tmp_path, "inn", by_browser("inn", "inn.test"))
    command = ("sites", "verify", "inn", "--example", "--wait", "600", "--json")
    code, out, _ = the_lanes(own, *command)
    (row,) = json.loads(out)
    down = "its example: the browser is down: its sidecar does not run; `make run` starts it"
    assert (code, row["found"], row["words"]) == (4, "not running", down)
    code, out, _ = the_lanes(own, "try", "inn", "http://inn.test/title", "--wait", "600")
    assert (code, out) == (4, f"Not asked: {down.removeprefix('its example: ')}\n")
    owner.tell(
        "INSERT INTO lanes.browser (heartbeat_at, browser_lost_until) VALUES (lanes.now(), lanes.now() + interval '15 min')"
    )
    code, out, _ = the_lanes(own, *command)
    (row,) = json.loads(out)
    lost = "its example: the browser is lost; nothing is charged for that, and it is tried again by itself"
    assert (code, row["found"], row["words"]) == (4, "not running", lost)
    assert row["until"] is not None


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ((), 0),
        ((Found.THERE, Found.REFUSED, Found.FAILED, Found.HELD, Found.NOTHING), 0),
        ((Found.THERE, Found.STOPPED), 4),
        ((Found.UNKNOWN, Found.HELD), 4),
        ((Found.STOPPED, Found.GONE), 1),
        ((Found.EMPTY, Found.UNKNOWN), 1),
    ],
)
def test_the_exit_code_says_the_worst_of_what_was_found(found: tuple[Found, ...], code: int) -> None:
    assert code_for(found) == code


def test_where_nothing_is_followed_nothing_is_asked(net: Smallnet, lane: LaneAtWork, lanes: Lanes) -> None:
    code, out, _ = lanes("sites", "verify")
    assert code == 0
    assert out.count("nothing followed") == len(out.splitlines()) - 1
    assert not net.record
    assert lanes("sites", "verify", "nowhere", "--json")[0] == 3


@pytest.mark.parametrize(
    ("outcome", "found"),
    [
        (Outcome("new", 200, 3, None), Found.THERE),
        (Outcome("unchanged", 304, 0, None), Found.THERE),
        (Outcome("unchanged", 200, 0, "no list, but its newest number is known"), Found.GONE),
        (Outcome("suspiciously empty", 200, 0, None, "empty"), Found.EMPTY),
        (Outcome("failed", 200, 0, "no list", "not recognised"), Found.GONE),
        (Outcome("failed", 200, 0, "its list was not there", "list missing"), Found.GONE),
        (Outcome("failed", None, 0, "a fault of ours: KeyError", "fault"), Found.GONE),
        (Outcome("failed", 404, 0, "404 from the server", "404"), Found.FAILED),
        (Outcome("failed", None, 0, "timeout", "no answer"), Found.FAILED),
        (Outcome("refused", 403, 0, "403 from the server"), Found.REFUSED),
        (Outcome("asked to wait", 429, 0, "429 too many requests"), Found.REFUSED),
        (Outcome("disallowed", None, 0, "robots.txt"), Found.REFUSED),
        (Outcome("blocked", None, 0, "not public"), Found.REFUSED),
    ],
)  # fmt: skip
def test_what_a_poll_says_of_the_landmarks(outcome: Outcome, found: Found) -> None:
    assert of_poll("inn", "key", outcome).found is found
