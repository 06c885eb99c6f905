"""Who is told what, and how often: the Notices owed while a Lane polls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lanes.sites import FEEDS
from lanes.store.following import FollowStore
from lanes.store.owning import OwnStore
from tests.fix_lane import LaneAtWork, MakeLane
from tests.smallnet import AS_USUAL, Host, Post, Smallnet, Step, ok, status
from tests.wire.days import DAILY, DAY, HOUR, bookmark, days_pass, incidents, look_after, notices, told
from tests.wire.documents import chapters, rss

EVERYBODY = ("owner", "ada", "ben", "cal")


def a_serial(net: Smallnet, lane: LaneAtWork, *, polled: bool = True) -> tuple[Host, str]:
    """A Series of two Chapters: the owner and Ada hold it, Ben has muted it, and Cal does not know it."""
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One", "Two"])
    key = lane.follow(host.url("/feed"))
    bookmark(lane, "ada", key)
    bookmark(lane, "ben", key, muted=True)
    lane.tell("INSERT INTO lanes.readers (name) VALUES ('cal')")
    if polled:
        lane.poll(key)
    return host, key


def all_told(lane: LaneAtWork) -> dict[str, list[str]]:
    """The kinds of Notices of each Reader who has some."""
    return {reader: kinds for reader in EVERYBODY if (kinds := told(lane, reader))}


def named(lane: LaneAtWork, reader: str) -> list[list[str]]:
    """Titles of the Chapters of each Notice to a Reader."""
    titles = {row.id: row.title for row in lane.all("SELECT id, title FROM lanes.chapters")}
    return [[titles[each] for each in notice.body["chapters"]] for notice in notices(lane, reader)]


def test_a_first_sight_tells_nobody(net: Smallnet, lane: LaneAtWork) -> None:
    _, key = a_serial(net, lane)
    assert len(lane.chapters(key)) == 2
    assert (all_told(lane), told(lane, None)) == ({}, [])


def test_the_chapters_of_one_poll_are_one_notice_to_each_reader_who_wants_them(net: Smallnet, lane: LaneAtWork) -> None:
    host, key = a_serial(net, lane)
    for title in ("Three", "Four", "Five"):
        host.publish("/feed", title)
    lane.poll(key)
    assert all_told(lane) == {"owner": ["new chapters"], "ada": ["new chapters"]}
    assert [sorted(titles) for titles in named(lane, "ada")] == [["Five", "Four", "Three"]]
    assert notices(lane, "ada")[0].key == key
    host.publish("/feed", "Six")
    lane.poll(key)
    lane.poll(key)
    assert named(lane, "ada")[1:] == [["Six"]]
    assert all(notice.delivered_at is None for notice in notices(lane))


def test_who_bookmarks_later_is_told_only_of_what_comes_then(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES F11."""
    host, key = a_serial(net, lane)
    host.publish("/feed", "Three")
    lane.poll(key)
    bookmark(lane, "cal", key)
    lane.poll(key)
    assert told(lane, "cal") == []
    host.publish("/feed", "Four")
    lane.poll(key)
    assert named(lane, "cal") == [["Four"]]
    assert named(lane, "ada") == [["Three"], ["Four"]]


def test_a_bookmark_that_comes_before_the_first_poll_is_a_first_sight_too(net: Smallnet, lane: LaneAtWork) -> None:
    host, key = a_serial(net, lane, polled=False)
    bookmark(lane, "cal", key)
    lane.poll(key)
    assert all_told(lane) == {}
    host.publish("/feed", "Three")
    lane.poll(key)
    assert all_told(lane).keys() == {"owner", "ada", "cal"}


def test_a_year_without_a_reader_tells_nobody_and_then_news_goes_on(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES F14."""
    host = net.host("127.1.0.5")
    host.feed("/feed", ["One"])
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    lane.unbookmark(key)
    for n in range(50):
        host.publish("/feed", f"Of the year {n}")
    lane.move_to(lane.now() + 365 * DAY)
    assert lane.run_once() == 0
    bookmark(lane, "ada", key)
    lane.poll(key)
    assert (len(lane.chapters(key)), all_told(lane)) == (51, {})
    host.publish("/feed", "After")
    lane.poll(key)
    assert (all_told(lane), named(lane, "ada")) == ({"ada": ["new chapters"]}, [["After"]])


def test_while_one_reader_stays_nobodys_coming_and_going_silences_the_others(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES A9, F11."""
    host, key = a_serial(net, lane)
    lane.unbookmark(key)
    host.publish("/feed", "Three")
    lane.poll(key)
    assert all_told(lane) == {"ada": ["new chapters"]}
    lane.follow(host.url("/feed"))
    host.publish("/feed", "Four")
    lane.poll(key)
    assert (named(lane, "owner"), named(lane, "ada")) == ([["Four"]], [["Three"], ["Four"]])


BLIPS: dict[str, Step] = {
    "404": status(404),
    "500": status(500),
    "503": status(503),
    "429": status(429, retry_after=60),
    "410": status(410),
    "403": status(403),
    "CASES D4": ok(rss([])),
    "a page": ok("<html><title>Oops</title>", "text/html"),
    "a broken body": ok(rss(chapters(1, 9))).cut_after(50),
}


def test_no_single_blip_of_any_kind_is_anybodys_news(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES A5, A6, D4."""
    good = ok(rss(chapters(1, 3)))
    keys = []
    for blip, host in zip(BLIPS.values(), net.many(len(BLIPS)), strict=True):
        host.script("/feed", [good, blip, good])
        keys.append(lane.follow(host.url("/feed")))
    for _ in range(3):
        lane.move_to(max(lane.open_at(key) for key in keys))
        lane.run_once()
        look_after(lane)
    assert all(lane.series(key).failures == 0 for key in keys)
    assert [lane.outcomes(key)[2] for key in keys] == ["unchanged"] * len(keys)
    assert (all_told(lane), told(lane, None), incidents(lane)) == ({}, [], [])


def test_a_retirement_is_told_once_with_its_reason_to_all_but_the_muted(net: Smallnet, lane: LaneAtWork) -> None:
    host, key = a_serial(net, lane)
    host.script("/feed", status(410))
    lane.poll(key)
    assert all_told(lane) == {}
    lane.move_to(lane.now() + 25 * HOUR)
    lane.poll(key)
    days_pass(lane, 16)
    assert all_told(lane) == {"owner": ["stopped"], "ada": ["stopped"]}
    assert notices(lane, "ada")[0].body == {"reason": "gone"}
    assert (notices(lane, "ada")[0].key, told(lane, None)) == (key, [])


def retired(net: Smallnet, lane: LaneAtWork) -> tuple[Host, str]:
    host, key = a_serial(net, lane)
    host.script("/feed", status(410))
    lane.poll(key)
    lane.move_to(lane.now() + 25 * HOUR)
    lane.poll(key)
    return host, key


def by_its_owner(lane: LaneAtWork, key: str) -> None:
    OwnStore(lane.database).revive(key)
    lane.poll(key)


def by_itself(lane: LaneAtWork, key: str) -> None:
    days_pass(lane, 8)


@pytest.mark.parametrize("revive", [by_its_owner, by_itself])
def test_a_revival_is_told_once_and_what_came_meanwhile_is_news(
    net: Smallnet, lane: LaneAtWork, revive: Callable[[LaneAtWork, str], None]
) -> None:
    host, key = retired(net, lane)
    host.unscript("/feed")
    host.publish("/feed", "Three")
    revive(lane, key)
    days_pass(lane, 1)
    assert lane.series(key).retired_at is None
    assert sorted(told(lane, "ada")) == sorted(told(lane)) == ["back again", "new chapters", "stopped"]
    assert told(lane, "ben") == []


def test_what_retires_lives_and_retires_again_is_told_each_time(net: Smallnet, lane: LaneAtWork) -> None:
    host, key = retired(net, lane)
    host.unscript("/feed")
    by_its_owner(lane, key)
    host.script("/feed", status(410))
    lane.check_now(key)
    lane.poll(key)
    lane.move_to(lane.now() + 25 * HOUR)
    lane.poll(key)
    assert told(lane, "ada") == ["stopped", "back again", "stopped"]


def test_a_host_that_is_dead_for_days_is_one_notice_to_each_reader_and_one_when_it_is_back(
    net: Smallnet, lane: LaneAtWork
) -> None:
    host = net.host("127.1.0.5")
    for n in range(4):
        host.feed(f"/{n}", ["One"], channel=DAILY)
    keys = [lane.follow(host.url(f"/{n}")) for n in range(4)]
    bookmark(lane, "ada", keys[0])
    bookmark(lane, "ben", keys[1], muted=True)
    days_pass(lane, 2)
    host.script("*", status(404, "<html><title>Not found</title>"))
    days_pass(lane, 3)
    assert all_told(lane) == {}
    assert told(lane, None) == ["incident"]
    days_pass(lane, 5)
    assert all_told(lane) == {"owner": ["dead"], "ada": ["dead"]}
    assert notices(lane)[0].body["count"] == 4
    assert [series["key"] for series in notices(lane, "ada")[0].body["series"]] == [keys[0]]
    bookmark(lane, "cal", keys[0])
    host.unscript("*")
    days_pass(lane, 3)
    assert all_told(lane) == {"owner": ["dead", "back again"], "ada": ["dead", "back again"]}
    assert told(lane, None) == ["incident", "incident over"]
    assert all(lane.series(key).failures == 0 for key in keys)


def test_a_host_that_refuses_for_days_is_told_and_so_is_its_end(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    for n in range(3):
        host.feed(f"/{n}", ["One"], channel=DAILY)
    for n in range(3):
        lane.follow(host.url(f"/{n}"))
    days_pass(lane, 1)
    host.script("*", status(403))
    days_pass(lane, 6)
    assert (told(lane), told(lane, None)) == (["refused"], ["refused for an hour"])
    host.unscript("*")
    days_pass(lane, 2)
    assert (told(lane), told(lane, None)) == (["refused", "back again"], ["refused for an hour", "refusal over"])


def test_a_url_refused_alone_for_days_is_told_and_so_is_its_end(net: Smallnet, lane: LaneAtWork) -> None:
    host = net.host("127.1.0.5")
    for path in ("/a", "/b"):
        host.feed(path, ["One"], channel="<ttl>180</ttl>")
    a, b = lane.follow(host.url("/a")), lane.follow(host.url("/b"))
    bookmark(lane, "ada", b)
    days_pass(lane, 1)
    host.script("/a", status(403))
    days_pass(lane, 5)
    assert all_told(lane) == {"owner": ["refused"]}
    assert (notices(lane)[0].key, told(lane, None)) == (a, [])
    host.script("/a", AS_USUAL)
    days_pass(lane, 1)
    assert all_told(lane) == {"owner": ["refused", "back again"]}
    days_pass(lane, 2)
    assert all_told(lane) == {"owner": ["refused", "back again"]}


def test_a_forbidden_address_is_told_once_to_readers_and_owner(net: Smallnet, lane: LaneAtWork) -> None:
    net.host("127.2.0.9", forbidden=True).feed("/feed", ["Secret"])
    key = lane.follow(f"http://127.2.0.9:{net.port}/feed")
    bookmark(lane, "ada", key)
    days_pass(lane, 6)
    assert lane.outcomes(key).count("blocked") >= 5
    assert all_told(lane) == {"owner": ["disallowed"], "ada": ["disallowed"]}
    assert told(lane, None) == ["disallowed"]
    assert not net.dialled("127.2.0.9")


def test_what_is_removed_is_owed_to_nobody(net: Smallnet, lane: LaneAtWork) -> None:
    host, key = a_serial(net, lane)
    FollowStore(lane.database, "ada").drop_bookmark(key)
    host.publish("/feed", "Three")
    lane.poll(key)
    assert all_told(lane) == {"owner": ["new chapters"]}


def test_what_a_site_publishes_again_under_new_ids_is_stored_and_told_to_nobody(
    net: Smallnet, make_lane: MakeLane
) -> None:
    """A Site that bundles its Chapters gives each a new id (SITES 2 and 4); what comes with them is news all the same."""
    lane = make_lane(site=replace(FEEDS, republishes=True))
    host = net.host("127.1.0.5")
    titles = ["One", "Two", "Three", "Four"]
    host.feed("/feed", [Post(title, guid=f"first {title}") for title in titles])
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    host.feed(
        "/feed", [Post(title, guid=f"again {title}", link=host.url(f"/again/{title}")) for title in [*titles, "Five"]]
    )
    lane.poll(key)
    assert lane.titles(key) == sorted([*titles, *titles, "Five"])
    assert lane.announced(key) == ["Five"]
