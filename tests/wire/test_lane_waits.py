"""What a Lane does when a host asks to wait, refuses, or hurts, and what that costs everybody else: nothing."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from tests.fix_lane import IMPATIENT, LaneAtWork, MakeLane
from tests.smallnet import Ending, Framing, Smallnet, Step, drip, endless, gzip_bomb, never, ok, raw, reset, status
from tests.wire.documents import chapters, rss

GOOD = ok(rss(chapters(1, 3)))


def waits(lane: LaneAtWork, key: str) -> float:
    """Seconds from the last claim of a Series until every wait laid on it or its host is over."""
    row = lane.one(
        "SELECT greatest(s.not_before, h.not_before) - s.latest_checked_at AS wait "
        "FROM lanes.series s JOIN lanes.hosts h ON h.id = s.host_id WHERE s.key = %s",
        key,
    )
    found: float = row.wait.total_seconds()
    return found


def two_series(net: Smallnet, lane: LaneAtWork, a: Sequence[Step], b: Sequence[Step]) -> tuple[str, str]:
    """Two Series of one host."""
    host = net.host("127.1.0.5")
    host.script("/a", a)
    host.script("/b", b)
    return lane.follow(host.url("/a")), lane.follow(host.url("/b"))


def test_a_503_with_a_wait_holds_its_series_alone(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES B1."""
    a, b = two_series(net, lane, [status(503, retry_after=1500), GOOD], [GOOD])
    assert lane.poll(a).outcome == "asked to wait"
    assert lane.poll(b).outcome == "new"
    lane.move_to(lane.polls(a)[0].sent_at + timedelta(seconds=1490))
    lane.run_once()
    assert lane.outcomes(a) == ["asked to wait"]
    lane.move_to(lane.polls(a)[0].sent_at + timedelta(seconds=1502))
    lane.run_once()
    assert lane.outcomes(a) == ["asked to wait", "new"]
    assert lane.polls(a)[0].series_wait_until is not None


def test_a_503_from_two_urls_holds_the_host(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES B1."""
    busy = status(503, retry_after=1500)
    a, b = two_series(net, lane, [busy, GOOD], [busy, GOOD])
    lane.poll(a)
    lane.poll(b)
    assert waits(lane, b) == pytest.approx(1500, abs=2)
    assert lane.host("127.1.0.5").not_before > lane.now() + timedelta(seconds=1490)
    assert (lane.series(a).failures, lane.series(b).failures) == (0, 0)
    c = lane.follow(net.host("127.1.0.5").url("/c"))
    assert lane.run_once() == 0
    assert lane.polls(c) == []


def test_a_429_holds_the_host_for_every_process_and_over_a_restart(net: Smallnet, make_lane: MakeLane) -> None:
    """CASES B2."""
    lane = make_lane()
    a, b = two_series(net, lane, [status(429, retry_after=60)], [GOOD])
    lane.poll(a)
    another = make_lane("machine-2")
    again = make_lane()
    another.check_now(b)
    lane.move_to(lane.polls(a)[0].sent_at + timedelta(seconds=59))
    assert [each.run_once() for each in (lane, another, again)] == [0, 0, 0]
    lane.move_to(lane.polls(a)[0].sent_at + timedelta(seconds=61))
    assert again.run_once() == 1
    assert lane.outcomes(b) == ["new"]
    assert lane.series(a).failures == 0


def test_a_429_without_a_wait_is_not_asked_again_for_ninety_seconds(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES B3, its first half."""
    a, b = two_series(net, lane, [status(429), GOOD], [GOOD])
    lane.poll(a)
    lane.move_to(lane.polls(a)[0].sent_at + timedelta(seconds=89))
    assert lane.run_once() == 0
    lane.move_to(lane.polls(a)[0].sent_at + timedelta(seconds=92))
    assert lane.run_once() == 1
    assert lane.host("127.1.0.5").pace >= timedelta(seconds=80)
    assert lane.outcomes(b) == ["new"]


def test_what_a_429_teaches_binds_the_very_next_request(net: Smallnet, lane: LaneAtWork) -> None:
    """Its wait is over before the interval is that it taught: 1.25 times the one at which it refused."""
    host = net.host("127.1.0.5")
    keys = []
    for path in ("/0", "/1"):
        host.feed(path, ["One"])
        keys.append(lane.follow(host.url(path)))
    host.script("/0", status(429, retry_after=1))
    refused, next_one = (lane.poll(key) for key in keys)
    assert next_one.host_pace == timedelta(seconds=1.25)
    assert next_one.sent_at - refused.sent_at >= next_one.host_pace


MONTH = 30 * 86_400
ODD_WAITS: dict[str, tuple[list[tuple[str, str]], float]] = {
    "no end": ([("Retry-After", "99999999999")], MONTH),
    "5,000 digits": ([("Retry-After", "9" * 5_000)], MONTH),
    "blanks": ([("Retry-After", " 120 ")], 120),
    "a day": ([("Retry-After", "86400")], 86_400),
    "negative": ([("Retry-After", "-5")], 90),
    "fraction": ([("Retry-After", "1.5")], 90),
    "underscore": ([("Retry-After", "3_600")], 90),
    "full width": ([("Retry-After", "\uff11\uff12\uff10")], 90),
    "empty": ([("Retry-After", "")], 90),
    "two": ([("Retry-After", "120"), ("Retry-After", "240")], 240),
    "another header": ([("Cache-Control", "max-age=999999999999")], 90),
}


def test_no_wait_however_odd_is_unbounded_or_touches_another_series(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES B4, B6: a wait that cannot be read is none, and a 429 without one is asked again after 90 s at the earliest."""
    good, *hosts = net.many(1 + len(ODD_WAITS))
    good.feed("/feed", ["One"])
    keys = {}
    for (name, (headers, _)), host in zip(ODD_WAITS.items(), hosts, strict=True):
        host.script("/feed", status(429, headers=tuple(headers)))
        keys[name] = lane.follow(host.url("/feed"))
    other = lane.follow(good.url("/feed"))
    lane.run_once()
    assert lane.outcomes(other) == ["new"]
    assert {name: lane.outcomes(key) for name, key in keys.items()} == {name: ["asked to wait"] for name in keys}
    expected = {name: pytest.approx(seconds, abs=5) for name, (_, seconds) in ODD_WAITS.items()}
    assert {name: waits(lane, key) for name, key in keys.items()} == expected


def test_a_huge_max_age_is_no_hint(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES B4."""
    host = net.host("127.1.0.5")
    host.script("/feed", ok(rss(chapters(1, 1)), headers={"Cache-Control": "max-age=999999999999"}))
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    assert lane.open_at(key) - lane.now() < timedelta(hours=2)


@pytest.mark.parametrize("theirs", [timedelta(hours=-1), timedelta(hours=1)])
def test_a_date_to_wait_for_is_read_by_the_servers_own_clock(
    net: Smallnet, lane: LaneAtWork, theirs: timedelta
) -> None:
    """CASES B5."""
    host = net.host("127.1.0.5")
    there = datetime.now(UTC) + theirs
    headers = {
        "Date": format_datetime(there, usegmt=True),
        "Retry-After": format_datetime(there + timedelta(seconds=300), usegmt=True),
    }
    host.script("/feed", status(429, headers=headers))
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    assert waits(lane, key) == pytest.approx(300, abs=3)


def test_a_day_is_waited_out_and_says_until_when_and_why(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES B6."""
    a, _ = two_series(net, lane, [status(429, retry_after=86_400), GOOD], [GOOD])
    lane.poll(a)
    asked_at = lane.polls(a)[0].sent_at
    lane.move_to(asked_at + timedelta(seconds=86_390))
    assert lane.run_once() == 0
    assert "429" in lane.host("127.1.0.5").not_before_reason
    lane.move_to(asked_at + timedelta(seconds=86_402))
    assert lane.run_once() >= 1


def test_a_wait_on_any_other_answer_holds_that_series(net: Smallnet, lane: LaneAtWork) -> None:
    failures = {200: 0, 404: 1, 500: 1, 503: 0}
    keys = {}
    for code, host in zip(failures, net.many(4), strict=True):
        host.script("/feed", status(code, rss(chapters(1, 1)) if code == 200 else "", retry_after=7200))
        keys[code] = lane.follow(host.url("/feed"))
    lane.run_once()
    assert {code: lane.series(key).failures for code, key in keys.items()} == failures
    held = [lane.open_at(key) - lane.polls(key)[0].sent_at >= timedelta(seconds=7199) for key in keys.values()]
    assert held == [True] * 4


def test_a_late_worker_brings_only_its_wait(net: Smallnet, make_lane: MakeLane) -> None:
    """CASES B14."""
    host = net.host("127.1.0.5")
    host.script("/feed", GOOD)
    lane, other = make_lane(slots=1), make_lane("machine-2")  # with a second slot the first would claim it again itself
    key = lane.follow(host.url("/feed"))
    paused = host.hold("/feed")
    late = threading.Thread(target=lane.run_once)
    late.start()
    assert paused.arrived.wait(10)
    host.hold("/feed").release()
    lane.move_to(lane.now() + timedelta(seconds=91))
    assert other.run_once() == 1
    host.script("/feed", status(429, rss(chapters(1, 30)), retry_after=1500))
    paused.release()
    late.join(20)
    row = lane.series(key)
    assert lane.titles(key) == ["Chapter 1", "Chapter 2", "Chapter 3"]
    assert (row.failures, row.lease_token) == (0, None)
    assert row.good_at is not None
    assert lane.host("127.1.0.5").not_before > lane.now() + timedelta(seconds=1300)
    assert other.run_once() == 0


def test_a_refused_url_waits_by_itself_and_longer_each_time(net: Smallnet, lane: LaneAtWork) -> None:
    keys = []
    for code, host in zip((401, 402, 403, 451), net.many(4), strict=True):
        host.script("/feed", status(code))
        keys.append(lane.follow(host.url("/feed")))
    seen = []
    for _ in range(3):
        lane.move_to(max(lane.open_at(key) for key in keys))
        lane.run_once()
        seen.append([waits(lane, key) for key in keys])
    assert seen == [pytest.approx([wait] * 4, abs=5) for wait in (900, 1800, 3600)]
    assert [lane.outcomes(key) for key in keys] == [["refused"] * 3] * 4
    assert {(row.failures, row.rest) for row in map(lane.series, keys)} == {(0, timedelta(minutes=2))}


NESTED = "".join(f"<!ENTITY c{n} '{f'&c{n - 1};' * 10}'>" for n in range(1, 9))
HURTS = {
    "CASES G5, a bomb": gzip_bomb(1 << 30),
    "CASES G5, no end": endless(),
    "CASES G5, a slow drip": drip(rss(chapters(1, 50)), every=0.4),
    "CASES G4": ok(rss(chapters(1, 10))).chunked(100).cut_after(400),
    "CASES G3, nested entities": ok(f"<!DOCTYPE a [<!ENTITY c0 'bb'>{NESTED}]><a>&c8;</a>"),
    "no answer": never(),
    "a reset": reset(),
    "no HTTP": raw(b"\x00\xff not HTTP at all\r\n\r\n"),
    "206": Step(206, rss(chapters(1, 3)).encode(), (("Content-Type", "application/rss+xml"), ("ETag", '"x"'))),
}


def test_what_hurts_costs_one_series_one_failure_and_the_others_nothing(net: Smallnet, make_lane: MakeLane) -> None:
    """CASES G3, G4, G5."""
    lane = make_lane(limits=IMPATIENT)
    keys, others = {}, []
    for (name, hurt), host in zip(HURTS.items(), net.many(len(HURTS)), strict=True):
        host.script("/feed", [hurt, GOOD])
        keys[name] = lane.follow(host.url("/feed"))
    for host in net.many(4, first=len(HURTS)):
        host.feed("/feed", ["One"])
        others.append(lane.follow(host.url("/feed")))
    lane.run_once()
    assert {name: lane.outcomes(key) for name, key in keys.items()} == {name: ["failed"] for name in keys}
    assert [lane.outcomes(key) for key in others] == [["new"]] * 4
    assert {(row.etag, row.failures) for row in map(lane.series, keys.values())} == {(None, 1)}
    assert all(lane.chapters(key) == [] for key in keys.values())
    lane.move_to(max(lane.open_at(key) for key in keys.values()))
    lane.run_once()
    assert {name: lane.outcomes(key) for name, key in keys.items()} == {name: ["failed", "new"] for name in keys}


def test_plain_bytes_that_claim_to_be_gzip_are_read_or_fail_clearly(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES G6."""
    host = net.host("127.1.0.5")
    host.script("/feed", ok(rss(chapters(1, 3)), headers={"Content-Encoding": "gzip"}))
    key = lane.follow(host.url("/feed"))
    record = lane.poll(key)
    assert (record.outcome, len(lane.chapters(key))) in [("new", 3), ("failed", 0)]
    if record.outcome == "failed":
        assert "encoding" in record.detail.lower()


@pytest.mark.parametrize("framing", [Framing.LENGTH, Framing.CHUNKED, Framing.CLOSE])
def test_six_megabytes_of_atom_are_read(net: Smallnet, lane: LaneAtWork, framing: Framing) -> None:
    """CASES G7."""
    host = net.host("127.1.0.5")
    text = "word " * 1_250
    entries = "".join(
        f"<entry><title>Part {n}</title><id>urn:{n}</id><updated>2024-01-01T00:00:00Z</updated><content>{text}</content></entry>"
        for n in range(1_000)
    )
    body = f'<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>Big</title>{entries}</feed>'.encode()
    assert len(body) > 6_000_000
    ending = Ending.CLOSE if framing is Framing.CLOSE else Ending.KEEP
    host.script("/feed", Step(200, body, (("Content-Type", "application/atom+xml"),), framing, ending))
    key = lane.follow(host.url("/feed"))
    assert lane.poll(key).outcome == "new"
    assert len(lane.chapters(key)) == 1_000


def test_a_host_that_refuses_connections_is_a_failure_and_backs_off(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    key = lane.follow(host.url("/feed"))
    host.down()
    record = lane.poll(key)
    assert (record.outcome, record.status, lane.series(key).failures) == ("failed", None, 1)
    assert lane.host("127.1.0.5").pace == timedelta(seconds=2)


def test_a_name_that_does_not_exist_is_a_failure(net: Smallnet, lane: LaneAtWork) -> None:
    key = lane.follow(f"http://gone.test:{net.port}/feed")
    assert lane.poll(key).outcome == "failed"
