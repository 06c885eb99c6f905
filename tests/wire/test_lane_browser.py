"""A Lane whose Site is read through the browser: what a page means, and the pace that the Site sees (DESIGN 4.3, 5.1, 5.4, 5.5, 7)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from lanes.core.answer import Trouble
from lanes.core.pages import NotShown, Opened, PageAsked, Shown
from lanes.sites import Rendering
from tests.fix_browser import FEED, MakePageLane, Sidecar, page_site, pages_of, shown
from tests.fix_lane import LaneAtWork, MakeLane, Row
from tests.smallnet import Smallnet
from tests.wire.comics import Seen, comics, open_at, titles_of
from tests.wire.documents import chapters, rss
from tests.wire.tabs import looked_at

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
SLACK = 0.05
"""Seconds by which scheduling may move an instant."""


def held(asked: PageAsked) -> Shown:
    """A challenge that did not clear by itself."""
    return Shown(403, {"content-type": "text/html"}, asked.url, b"<title>Just a moment...</title>", held="a challenge")


def series(lane: LaneAtWork) -> list[Row]:
    """Every Series of the Lane's Site, whole."""
    return lane.all("SELECT * FROM lanes.series WHERE site = %s ORDER BY id", lane.site.name)


def next_page(lane: LaneAtWork, sidecar: Sidecar) -> int:
    """Moves time to where the Lane may ask again, and runs a Pass beside the sidecar."""
    open_at(lane)
    with sidecar.serving():
        return lane.run_once()


def test_a_page_is_read_stored_and_recorded_with_its_sent_instant(
    sidecar: Sidecar, make_page_lane: MakePageLane
) -> None:
    lane, (key,) = make_page_lane("panels", 1)
    assert next_page(lane, sidecar) == 1
    assert lane.titles(key) == ["Chapter 1", "Chapter 2", "Chapter 3"]
    (record,) = lane.polls(key)
    (sent,) = sidecar.sends
    assert (record.outcome, record.status, record.host, record.address) == ("new", 200, "panels.test", None)
    assert record.wire_bytes == len(rss(chapters(1, 3)))
    assert record.lane_gap == 10 * SECOND
    assert abs(record.sent_at - sent.at) < SECOND
    assert record.claimed_at <= record.sent_at <= sent.at
    assert lane.one("SELECT count(*) AS n FROM lanes.browser_pages").n == 0, "its reader takes it away"
    row = lane.series(key)
    assert (row.failures, row.good_at is not None, row.lease_token) == (0, True, None)


def test_the_tab_is_asked_in_the_words_of_the_site(sidecar: Sidecar, make_lane: MakeLane) -> None:
    site = page_site("panels", "panels.test", "www.panels.test")
    lane = make_lane(site=site, slots=1)
    pages_of(lane, 1)
    asked: list[PageAsked] = []

    def note(page: PageAsked) -> Shown:
        asked.append(page)
        return shown(page)

    sidecar.script("http://panels.test/0", note)
    assert next_page(lane, sidecar) == 1
    (page,) = asked
    assert site.rendering == Rendering("main")
    assert (page.site, page.url, page.hosts, page.landmark, page.settles_for) == (
        "panels", "http://panels.test/0", site.hosts, "main", None,
    )  # fmt: skip


def test_a_second_page_with_more_is_news_and_the_same_again_is_none(
    sidecar: Sidecar, make_page_lane: MakePageLane
) -> None:
    lane, (key,) = make_page_lane("panels", 1)
    four = Shown(200, FEED, "http://panels.test/0", rss(chapters(1, 4)).encode())
    sidecar.script("http://panels.test/0", shown, shown, four)
    for _ in range(3):
        assert next_page(lane, sidecar) == 1
        lane.move_to(lane.now() + 2 * HOUR)
    assert lane.outcomes(key) == ["new", "unchanged", "new"]
    assert lane.announced(key) == ["Chapter 4"]


def test_a_held_page_is_a_refusal_of_its_url_alone(sidecar: Sidecar, make_page_lane: MakePageLane) -> None:
    """CASES D1."""
    lane, (key, other) = make_page_lane("panels", 2)
    sidecar.script("http://panels.test/0", held)
    before = lane.series(key)
    assert next_page(lane, sidecar) == 1
    row = lane.series(key)
    assert (lane.polls(key)[-1].outcome, lane.polls(key)[-1].detail) == ("refused", "a challenge")
    assert (row.failures, row.refusals, row.rest) == (0, 1, before.rest)
    assert 14 * MINUTE < row.not_before - lane.now() <= 17 * MINUTE
    assert lane.one("SELECT refused_until FROM lanes.lanes WHERE site = 'panels'").refused_until is None
    assert next_page(lane, sidecar) == 1
    assert lane.outcomes(other) == ["new"]


@pytest.mark.parametrize(
    "answer",
    [
        (202, {"x-amzn-waf-action": "challenge"}, b""),
        (403, {"cf-mitigated": "challenge"}, b""),
        (200, {"content-type": "text/html"}, b"<title>Just a moment...</title><script src='/cdn-cgi/challenge-platform/x'>"),
        (403, {"content-type": "text/html"}, b"<p>No."),
    ],
)  # fmt: skip
def test_a_challenge_that_the_tab_did_not_see_is_a_refusal_all_the_same(
    sidecar: Sidecar, make_page_lane: MakePageLane, answer: tuple[int, dict[str, str], bytes]
) -> None:
    """CASES D1, D2."""
    lane, (key,) = make_page_lane("panels", 1)
    status, headers, html = answer
    sidecar.script("http://panels.test/0", Shown(status, headers, "http://panels.test/0", html))
    assert next_page(lane, sidecar) == 1
    assert (lane.outcomes(key), lane.series(key).failures) == (["refused"], 0)


def test_two_refused_urls_stop_their_lane_and_no_other(
    net: Smallnet, sidecar: Sidecar, make_page_lane: MakePageLane, make_lane: MakeLane
) -> None:
    panels, keys = make_page_lane("panels", 4)
    strips, (strip,) = make_page_lane("strips", 1)
    plain = make_lane(site=comics("127.1.0.5", gap=10), slots=1)
    (comic,) = titles_of(net.host("127.1.0.5"), plain, 1)
    sidecar.script("http://panels.test/0", held)
    sidecar.script("http://panels.test/1", held)
    for _ in range(2):
        assert next_page(panels, sidecar) == 1
    stopped = panels.one("SELECT * FROM lanes.lanes WHERE site = 'panels'")
    assert 14 * MINUTE < stopped.refused_until - panels.now() <= 15 * MINUTE
    remaining = series(panels)[2:]
    panels.move_to(stopped.refused_until - 5 * SECOND)
    with sidecar.serving():
        assert (panels.run_once(), strips.run_once(), plain.run_once()) == (0, 1, 1)
    assert series(panels)[2:] == remaining, "what is held stays unstamped and due"
    assert {row.latest_checked_at.year for row in remaining} == {1}
    assert (strips.outcomes(strip), plain.outcomes(comic)) == (["new"], ["new"])
    assert [page.url for page in sidecar.sends if page.site == "panels"] == [
        "http://panels.test/0",
        "http://panels.test/1",
    ]
    panels.move_to(stopped.refused_until)
    assert next_page(panels, sidecar) == 1
    assert panels.outcomes(keys[2]) == ["new"]
    assert {row.failures for row in series(panels)} == {0}


@pytest.mark.parametrize(
    ("trouble", "kind"), [(Trouble.DNS, "dns"), (Trouble.CONNECT, "no answer"), (Trouble.TIMEOUT, "no answer")]
)
def test_a_page_that_does_not_come_fails_as_one_of_a_plain_lane_does(
    sidecar: Sidecar, make_page_lane: MakePageLane, trouble: Trouble, kind: str
) -> None:
    lane, (key,) = make_page_lane("panels", 1)
    sidecar.script("http://panels.test/0", NotShown(trouble, "ERR_SOMETHING", line_proved=True))
    before = lane.host("panels.test").pace
    assert next_page(lane, sidecar) == 1
    record, row = lane.polls(key)[-1], lane.series(key)
    assert (record.outcome, record.detail, record.failure_kind) == ("failed", f"{trouble}: ERR_SOMETHING", kind)
    assert (row.failures, row.good_at) == (1, None)
    assert 2 * HOUR <= row.next_check_at - row.latest_checked_at <= 2.3 * HOUR
    assert lane.host("panels.test").pace == 2 * before
    assert lane.one("SELECT browser_lost_until AS it FROM lanes.browser").it is None


def test_an_address_that_the_guard_refused_is_blocked_and_looked_at_again_after_a_day(
    sidecar: Sidecar, make_page_lane: MakePageLane
) -> None:
    lane, (key,) = make_page_lane("panels", 1)
    sidecar.script("http://panels.test/0", NotShown(Trouble.CONNECT, "", forbidden="10.0.0.7"))
    assert next_page(lane, sidecar) == 1
    record, row = lane.polls(key)[-1], lane.series(key)
    assert record.outcome == "blocked"
    assert "10.0.0.7" in record.detail
    assert 23 * HOUR < row.not_before - lane.now() <= 27 * HOUR
    assert row.failures == 0


def test_a_page_that_leads_out_of_its_site_is_a_failure_that_says_so(
    sidecar: Sidecar, make_page_lane: MakePageLane
) -> None:
    lane, (key,) = make_page_lane("panels", 1)
    sidecar.script("http://panels.test/0", NotShown(Trouble.LEFT, "elsewhere.test", line_proved=True))
    assert next_page(lane, sidecar) == 1
    record = lane.polls(key)[-1]
    assert (record.outcome, record.failure_kind) == ("failed", "left the Site")
    assert "elsewhere.test" in record.detail
    assert lane.series(key).failures == 1


@pytest.mark.parametrize(
    ("opened", "outcome"),
    [
        (Shown(404, {}, "http://panels.test/0", b"<p>Not here."), "failed"),
        (Shown(500, {}, "http://panels.test/0", b"<p>Sorry."), "failed"),
        (Shown(429, {"retry-after": "600"}, "http://panels.test/0", b""), "asked to wait"),
        (Shown(200, {"content-type": "text/html"}, "http://panels.test/0", b"<html><p>An empty page."), "failed"),
    ],
)
def test_a_status_means_what_it_means_anywhere(
    sidecar: Sidecar, make_page_lane: MakePageLane, opened: Opened, outcome: str
) -> None:
    lane, (key,) = make_page_lane("panels", 1)
    sidecar.script("http://panels.test/0", opened)
    assert next_page(lane, sidecar) == 1
    assert lane.outcomes(key) == [outcome]
    if outcome == "asked to wait":
        assert 9 * MINUTE < lane.host("panels.test").not_before - lane.now() <= 10 * MINUTE
        assert lane.series(key).failures == 0


def test_a_log_in_page_is_a_failure_that_says_so_and_moves_nothing(
    sidecar: Sidecar, make_page_lane: MakePageLane
) -> None:
    """CASES D5."""
    lane, (key,) = make_page_lane("panels", 1)
    members = b"<html><title>Members</title><p>Please say who you are."
    sidecar.script(
        "http://panels.test/0", Shown(200, {"content-type": "text/html"}, "http://panels.test/login?next=%2F0", members)
    )
    assert next_page(lane, sidecar) == 1
    record, row = lane.polls(key)[-1], lane.series(key)
    assert (record.outcome, record.detail) == ("failed", "log-in required")
    assert (row.url, row.moving_to, row.failures) == ("http://panels.test/0", None, 1)


def test_a_page_that_talks_of_captchas_is_a_page(sidecar: Sidecar, make_page_lane: MakePageLane) -> None:
    """CASES D3."""
    lane, (key,) = make_page_lane("panels", 1)
    talk = "Just a moment... /cdn-cgi/challenge-platform/ wants you to log in"
    html = rss(chapters(1, 2), f"<title>{talk}</title><description>&lt;input type='password'&gt;</description>")
    sidecar.script(
        "http://panels.test/0", Shown(200, {"content-type": "text/html"}, "http://panels.test/0", html.encode())
    )
    assert next_page(lane, sidecar) == 1
    assert lane.outcomes(key) == ["new"]
    assert len(lane.chapters(key)) == 2


def test_a_tab_that_takes_its_time_does_not_slow_its_host(sidecar: Sidecar, make_page_lane: MakePageLane) -> None:
    """Scripts, a challenge, a landmark: what a page takes says nothing of its server (DESIGN 5.3 measures answers)."""
    lane, (key,) = make_page_lane("panels", 1)

    def slow(asked: PageAsked) -> Shown:
        sidecar.pass_by(40 * SECOND)
        return shown(asked)

    before = lane.host("panels.test")
    sidecar.script("http://panels.test/0", slow)
    for _ in range(3):
        assert next_page(lane, sidecar) == 1
        lane.check_now(key)
    after = lane.host("panels.test")
    assert (after.pace, after.latency) == (before.pace, before.latency)


def test_the_pages_of_a_site_are_sent_a_gap_apart(sidecar: Sidecar, make_page_lane: MakePageLane) -> None:
    lane, keys = make_page_lane("panels", 5)
    for _ in keys:
        assert next_page(lane, sidecar) == 1
    assert len(sidecar.sends) == 5
    assert min(sidecar.spacings("panels")) >= 10 - SLACK
    assert {record.lane_gap for record in lane.polls()} == {10 * SECOND}


def test_the_gap_counts_from_when_a_page_was_sent_and_not_from_its_claim(
    sidecar: Sidecar, make_page_lane: MakePageLane
) -> None:
    lane, (first, second) = make_page_lane("panels", 2)
    with ThreadPoolExecutor(1) as pool:
        passed = pool.submit(lane.run_once)
        lane.wait_for("SELECT FROM lanes.browser_pages")
        sidecar.pass_by(25 * SECOND)  # in the queue
        assert sidecar.serve_one()
        assert passed.result(30) == 1
    gap_ends = lane.one("SELECT next_at FROM lanes.lanes WHERE site = 'panels'").next_at
    assert gap_ends == lane.polls(first)[0].sent_at + 10 * SECOND
    assert next_page(lane, sidecar) == 1
    assert min(sidecar.spacings("panels")) >= 10 - SLACK
    assert lane.outcomes(second) == ["new"]


def test_the_gap_counts_from_when_the_browser_had_dialled_however_long_that_took(
    sidecar: Sidecar, make_page_lane: MakePageLane
) -> None:
    """CASES B15: the name took 4 s, so the request was written that much later than noted."""
    lane, (key,) = make_page_lane("panels", 1)
    with ThreadPoolExecutor(1) as pool:
        passed = pool.submit(lane.run_once)
        lane.wait_for("SELECT FROM lanes.browser_pages")
        asked = sidecar.take()
        assert asked is not None
        assert sidecar.send(asked)
        looked_at(lane)  # it has seen the earlier instant
        noted = lane.one("SELECT sent_at FROM lanes.browser_pages").sent_at
        sidecar.store.answer(asked.token, shown(asked), 4 * SECOND)
        assert passed.result(30) == 1
    sent_at = noted + 4 * SECOND
    assert lane.polls(key)[0].sent_at == lane.host("panels.test").sent_at == sent_at
    assert lane.one("SELECT next_at FROM lanes.lanes WHERE site = 'panels'").next_at == sent_at + 10 * SECOND


def test_two_processes_of_a_site_share_its_gap(sidecar: Sidecar, make_lane: MakeLane) -> None:
    site = page_site("panels", "a.panels.test", "b.panels.test", gap=1)
    one, two = (make_lane(machine, site=site, slots=1) for machine in ("machine-1", "machine-2"))
    for host in site.hosts:
        for n in range(2):
            one.follow(f"http://{host}/{n}", site=site)
    with sidecar.serving(), one.running(), two.running():
        one.wait_for("SELECT FROM lanes.series HAVING count(good_at) = 4", timeout=60)
    assert len(sidecar.sends) == 4
    assert min(sidecar.spacings("panels")) >= 1 - SLACK


def test_a_page_that_robots_txt_disallows_is_not_asked_for(
    net: Smallnet, sidecar: Sidecar, make_lane: MakeLane
) -> None:
    host = net.host("127.1.0.5")
    host.robots("User-agent: *\nDisallow: /0\n")
    lane = make_lane(site=page_site("panels", "127.1.0.5"), slots=1)
    key = lane.follow(host.url("/0"), robots=True, site=lane.site)
    assert next_page(lane, sidecar) == 1
    assert [visit.path for visit in net.record] == ["/robots.txt"]
    assert sidecar.sends == []
    assert lane.outcomes(key)[-1] == "disallowed"
    assert lane.series(key).failures == 0
    assert 23 * HOUR < lane.series(key).not_before - lane.now() <= 27 * HOUR


def test_robots_txt_is_asked_plainly_and_the_page_a_gap_later(
    net: Smallnet, sidecar: Sidecar, make_lane: MakeLane
) -> None:
    host = net.host("127.1.0.5")
    host.robots("User-agent: *\nDisallow: /private\n")
    lane = make_lane(site=page_site("panels", "127.1.0.5"), slots=1)
    key = lane.follow(host.url("/0"), robots=True, site=lane.site)
    seen = Seen(net, lane)
    for _ in range(2):
        assert next_page(lane, sidecar) == 1
        seen.look()
    assert seen.paths == ["/robots.txt"]
    (sent,) = sidecar.sends
    assert sent.at.timestamp() - seen.at[0] >= 10 - SLACK
    assert lane.outcomes(key)[-1] == "new"


def test_a_crawl_delay_spaces_pages(net: Smallnet, sidecar: Sidecar, make_lane: MakeLane) -> None:
    host = net.host("127.1.0.5")
    host.robots("User-agent: *\nCrawl-delay: 60\n")
    lane = make_lane(site=page_site("panels", "127.1.0.5"), slots=1)
    for n in range(3):
        lane.follow(host.url(f"/{n}"), robots=True, site=lane.site)
    for _ in range(6):
        next_page(lane, sidecar)
    assert len(sidecar.sends) >= 2
    assert min(sidecar.spacings("panels")) >= 60 - SLACK
