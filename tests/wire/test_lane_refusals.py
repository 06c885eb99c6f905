"""Refusals: what counts as one whatever its status says, and the windows in which a host that refuses is left alone."""

from __future__ import annotations

from datetime import timedelta

from tests.fix_lane import LaneAtWork, MakeLane
from tests.smallnet import AS_USUAL, Host, Smallnet, Step, ok, redirect, status
from tests.wire.days import DAILY, DAY, incidents, look_after, pass_by, told
from tests.wire.documents import chapters, item, rss

MINUTE = timedelta(minutes=1)
GOOD = ok(rss(chapters(1, 3)))
CHALLENGE = (
    "<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>"
    '<script src="/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1?ray=0"></script></body></html>'
)
CHALLENGES = {
    "CASES D1": ok(CHALLENGE, "text/html"),
    "CASES D1, as a 503": status(503, CHALLENGE),
    "CASES D2, 202": Step(202, b"", (("x-amzn-waf-action", "challenge"),)),
    "CASES D2, 403": status(403, CHALLENGE, headers={"cf-mitigated": "challenge"}),
    "CASES D2, 200": ok("", "text/html", headers={"cf-mitigated": "challenge"}),
}


def answered_once(net: Smallnet, lane: LaneAtWork, answers: dict[str, Step]) -> dict[str, str]:
    """A Series for each of these answers, good the first time and then answered like that; every one is polled twice."""
    keys = {}
    for (name, answer), host in zip(answers.items(), net.many(len(answers)), strict=True):
        host.script("/feed", [GOOD, answer])
        keys[name] = lane.follow(host.url("/feed"))
    for _ in range(2):
        lane.move_to(max(lane.open_at(key) for key in keys.values()))
        lane.run_once()
    return keys


def test_a_challenge_is_a_refusal_whatever_its_status_says(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES D1, D2."""
    keys = answered_once(net, lane, CHALLENGES)
    assert {name: lane.outcomes(key)[1:] for name, key in keys.items()} == {name: ["refused"] for name in keys}
    rows = {name: lane.series(key) for name, key in keys.items()}
    assert {(row.failures, row.refusals, row.good_at is None) for row in rows.values()} == {(0, 1, False)}
    assert all(len(lane.chapters(key)) == 3 for key in keys.values())
    assert all(14 * MINUTE < lane.open_at(key) - lane.now() < 20 * MINUTE for key in keys.values())


def test_a_feed_that_talks_of_captchas_and_asks_for_passwords_is_a_feed(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES D3."""
    text = "Just a moment... our captcha service /cdn-cgi/challenge-platform/ wants you to log in"
    form = '<form action="/login"><input type="password" name="p"></form>'
    host = net.host("127.1.0.5")
    host.script("/feed", ok(rss([item(text, guid="1"), item(form, guid="2")], f"<title>{text}</title>"), "text/html"))
    key = lane.follow(host.url("/feed"))
    assert lane.poll(key).outcome == "new"
    assert len(lane.chapters(key)) == 2


def test_a_log_in_page_is_a_failure_that_says_so_and_moves_nothing(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES D5."""
    host = net.host("127.1.0.5")
    host.script("/feed", [GOOD, redirect("/login?next=%2Ffeed", 302)])
    host.page("/login?next=%2Ffeed", "<html><title>Members</title><p>Please say who you are.</p></html>")
    key = lane.follow(host.url("/feed"))
    for _ in range(4):
        record = lane.poll(key)
        lane.move_to(lane.now() + 13 * 60 * MINUTE)
    assert (record.outcome, record.detail) == ("failed", "log-in required")
    row = lane.series(key)
    assert (row.url, row.moving_to, row.failures, len(lane.chapters(key))) == (host.url("/feed"), None, 3, 3)


def host_of(net: Smallnet, lane: LaneAtWork, address: str, **scripts: list[Step]) -> tuple[Host, list[str]]:
    """A host and its Series, one for each path, all looked at once a day while they are good."""
    host = net.host(address)
    keys = []
    for name, script in scripts.items():
        host.feed(f"/{name}", ["One"], channel=DAILY)
        host.script(f"/{name}", script)
        keys.append(lane.follow(host.url(f"/{name}")))
    return host, keys


REFUSED = status(403)
TWO_REFUSE = {"a": [REFUSED, GOOD], "b": [REFUSED, GOOD], "c": [REFUSED, GOOD]}


def test_two_refused_urls_stop_their_host_and_no_other(net: Smallnet, lane: LaneAtWork) -> None:
    host, (a, b, c) = host_of(net, lane, "127.1.0.5", **TWO_REFUSE)
    other, (d,) = host_of(net, lane, "127.1.0.6", d=[AS_USUAL])
    lane.poll(a)
    assert lane.host("127.1.0.5").refused_until is None
    lane.poll(b)
    stopped = lane.host("127.1.0.5")
    assert 14 * MINUTE < stopped.refused_until - lane.now() <= 15 * MINUTE
    lane.check_now(c)
    lane.check_now(d)
    arrived = len(net.record.of(host))
    lane.move_to(stopped.refused_until - timedelta(seconds=5))
    lane.run_once()
    assert len(net.record.of(host)) == arrived == 2
    assert len(net.record.of(other)) == 2
    assert lane.polls(c) == []
    assert lane.series(c).latest_checked_at.year == 1, "what is held keeps no stamp"
    assert {lane.series(key).failures for key in (a, b, c, d)} == {0}


def test_a_window_outlives_its_lane_doubles_when_its_probe_is_refused_and_ends_when_one_is_good(
    net: Smallnet, make_lane: MakeLane
) -> None:
    first = make_lane()
    host, keys = host_of(net, first, "127.1.0.5", **TWO_REFUSE)
    for key in keys[:2]:
        first.poll(key)
    first_ends = first.host("127.1.0.5").refused_until
    lane, another = make_lane("machine-1"), make_lane("machine-2")
    lane.move_to(first_ends - timedelta(seconds=5))
    assert (lane.run_once(), another.run_once(), first.run_once()) == (0, 0, 0)
    lane.move_to(first_ends + timedelta(seconds=1))
    assert lane.run_once() == 1
    assert lane.outcomes(keys[2]) == ["refused"]
    second_ends = lane.host("127.1.0.5").refused_until
    assert 29 * MINUTE < second_ends - lane.now() <= 30 * MINUTE
    lane.move_to(second_ends - timedelta(seconds=5))
    assert (lane.run_once(), another.run_once(), first.run_once()) == (0, 0, 0)
    assert len(net.record.of(host)) == 3
    lane.move_to(second_ends + timedelta(seconds=1))
    assert lane.run_once() == 1
    row = lane.host("127.1.0.5")
    assert (row.refused_until, row.refused_since, row.refusals) == (None, None, 0)
    assert [(each.whose, each.ended_at is None) for each in incidents(lane)] == [("refusal", False)]
    pass_by(lane, 2 * DAY)
    assert all(lane.outcomes(key)[1:].count("refused") == 0 for key in keys)
    assert all(lane.series(key).good_at is not None for key in keys)


def test_a_host_that_refuses_for_ever_gets_one_request_a_window_and_windows_grow_to_four_hours(
    net: Smallnet, lane: LaneAtWork
) -> None:
    host, keys = host_of(net, lane, "127.1.0.5", **{name: [REFUSED] for name in ("a", "b", "c", "d", "e")})
    for key in keys[:2]:
        lane.poll(key)
    windows, requests = [], []
    for _ in range(6):
        until = lane.host("127.1.0.5").refused_until
        windows.append(round((until - lane.now()) / MINUTE))
        arrived = len(net.record.of(host))
        lane.move_to(until - timedelta(seconds=5))
        lane.run_once()
        assert len(net.record.of(host)) == arrived
        lane.move_to(until + timedelta(seconds=1))
        lane.run_once()
        requests.append(len(net.record.of(host)) - arrived)
    assert windows == [15, 30, 60, 120, 240, 240]
    assert requests == [1] * 6


def test_a_good_read_between_two_refused_ones_opens_no_window(net: Smallnet, lane: LaneAtWork) -> None:
    _, keys = host_of(net, lane, "127.1.0.5", a=[REFUSED], b=[GOOD], c=[REFUSED])
    for key in keys:
        lane.poll(key)
    assert [lane.outcomes(key) for key in keys] == [["refused"], ["new"], ["refused"]]
    assert lane.host("127.1.0.5").refused_until is None


def test_one_url_that_is_refused_again_and_again_waits_alone_beside_a_good_one(net: Smallnet, lane: LaneAtWork) -> None:
    _, (a, b) = host_of(net, lane, "127.1.0.5", a=[REFUSED], b=[AS_USUAL])
    pass_by(lane, 9 * 60 * MINUTE)
    assert lane.outcomes(a) == ["refused"] * 6
    assert lane.outcomes(b) == ["new"]
    assert lane.host("127.1.0.5").refused_until is None
    assert (lane.series(a).failures, incidents(lane)) == (0, [])


def test_the_only_url_of_a_host_refused_twice_opens_its_window(net: Smallnet, lane: LaneAtWork) -> None:
    host_of(net, lane, "127.1.0.6", fine=[AS_USUAL])
    _, (a,) = host_of(net, lane, "127.1.0.5", a=[REFUSED])
    lane.poll(a)
    assert lane.host("127.1.0.5").refused_until is None
    lane.poll(a)
    assert lane.host("127.1.0.5").refused_until > lane.now()


def test_the_owner_is_told_of_a_refusal_that_lasts_and_of_its_end_and_of_no_shorter_one(
    net: Smallnet, lane: LaneAtWork
) -> None:
    _, keys = host_of(net, lane, "127.1.0.5", **{name: [REFUSED, REFUSED, AS_USUAL] for name in ("a", "b", "c")})
    host_of(net, lane, "127.1.0.6", a=[REFUSED, AS_USUAL], b=[REFUSED, AS_USUAL])
    for _ in range(50):
        pass_by(lane, 10 * MINUTE)
        look_after(lane)
    assert told(lane, None) == ["refused for an hour", "refusal over"]
    assert told(lane) == []
    assert all(lane.series(key).good_at is not None for key in keys)


def test_a_refused_host_is_remembered_at_the_interval_at_which_it_refused(net: Smallnet, lane: LaneAtWork) -> None:
    _, keys = host_of(net, lane, "127.1.0.5", **TWO_REFUSE)
    lane.tell("UPDATE lanes.hosts SET pace = '8 seconds' WHERE name = '127.1.0.5'")
    for key in keys[:2]:
        lane.poll(key)
    assert lane.host("127.1.0.5").refused_pace == timedelta(seconds=8)
    pass_by(lane, 3 * 60 * MINUTE)
    assert all(lane.series(key).good_at is not None for key in keys)
    assert lane.host("127.1.0.5").pace >= timedelta(seconds=8)


def test_two_urls_unavailable_far_apart_hold_no_host(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES B1."""
    busy = status(503, retry_after=60)
    _, (a, b) = host_of(net, lane, "127.1.0.5", a=[busy], b=[busy])
    lane.poll(a)
    lane.move_to(lane.now() + 11 * MINUTE)
    lane.poll(b)
    assert lane.host("127.1.0.5").not_before <= lane.now()
    assert {lane.series(key).failures for key in (a, b)} == {0}
