"""Permanent moves over days: what is adopted and on what evidence, what happens to Bookmarks where two Series meet, and the way back."""

from __future__ import annotations

import pytest

from lanes.store.owning import OwnStore
from tests.fix_lane import LaneAtWork, Row
from tests.smallnet import Host, Post, Smallnet, ok, redirect
from tests.wire.days import DAILY, DAY, HOUR, bookmark, days_pass, notices, pass_by, told
from tests.wire.documents import chapters, rss


def moving(net: Smallnet, lane: LaneAtWork, *, there: list[str], channel: str = DAILY) -> tuple[Host, Host, str]:
    """A Series with one good answer whose host then redirects it for good to another, which has the Chapters `there`."""
    old, new = net.host("127.1.0.5"), net.host("127.1.0.6")
    old.script("/feed", [ok(rss(chapters(1, 3), channel)), redirect(new.url("/feed"))])
    new.script("/feed", ok(rss(there, "<ttl>480</ttl>")))
    lane.has_no_robots(new.url())
    key = lane.follow(old.url("/feed"))
    lane.poll(key)
    return old, new, key


def test_a_day_of_maintenance_is_never_adopted(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES E1."""
    host, hoster = net.host("127.1.0.5"), net.host("127.1.0.6")
    host.feed("/feed", ["One"])
    hoster.page("/maintenance", "<html><title>Back tomorrow</title><p>We are moving house.</p>")
    lane.has_no_robots(hoster.url())
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    host.script("/feed", redirect(hoster.url("/maintenance")))
    pass_by(lane, 26 * HOUR)
    assert lane.outcomes(key).count("failed") > 6
    host.unscript("/feed")
    host.publish("/feed", "Two")
    pass_by(lane, 7 * HOUR)
    row = lane.series(key)
    assert (row.url, row.old_url, row.moving_to, row.failures) == (host.url("/feed"), None, None, 0)
    assert told(lane) == ["new chapters"]


def test_a_move_is_adopted_after_three_polls_over_a_day_and_asked_there_from_then_on(
    net: Smallnet, lane: LaneAtWork
) -> None:
    """CASES E2."""
    old, new, key = moving(net, lane, there=chapters(2, 4))
    pass_by(lane, 47 * HOUR)
    assert lane.series(key).url == old.url("/feed")
    pass_by(lane, 12 * HOUR)
    row = lane.series(key)
    assert (row.url, row.old_url) == (new.url("/feed"), old.url("/feed"))
    assert lane.one("SELECT name FROM lanes.hosts WHERE id = %s", row.host_id).name == "127.1.0.6"
    assert (row.moving_to, row.retired_at, row.failures) == (None, None, 0)
    assert told(lane) == ["new chapters", "moved"]
    assert notices(lane)[1].body == {"to": key, "merged": False}
    assert lane.announced(key) == ["Chapter 4"]
    asked = len(net.record.of(old, "/feed"))
    pass_by(lane, 14 * DAY)
    assert len(net.record.of(old, "/feed")) == asked
    assert set(lane.outcomes(key)[-30:]) == {"unchanged"}
    assert told(lane) == ["new chapters", "moved"]


def test_three_polls_within_a_day_are_not_enough(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES E2."""
    old, _, key = moving(net, lane, there=chapters(1, 3))
    for _ in range(6):
        lane.check_now(key)
        pass_by(lane, 3 * HOUR)
    assert len(net.record.of(old, "/feed")) >= 7
    row = lane.series(key)
    assert (row.url, row.moving_polls >= 3) == (old.url("/feed"), True)


def test_two_polls_over_a_day_are_not_enough(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES E2."""
    old, _, key = moving(net, lane, there=chapters(1, 3))
    lane.poll(key)
    lane.move_to(lane.now() + 30 * HOUR)
    lane.run_once()
    assert (lane.series(key).url, lane.series(key).moving_polls) == (old.url("/feed"), 2)


def test_a_target_that_shares_nothing_is_never_adopted(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES E2."""
    old, new, key = moving(net, lane, there=chapters(7, 9))
    pass_by(lane, 5 * DAY)
    assert len(net.record.of(new, "/feed")) > 5
    assert (lane.series(key).url, lane.series(key).old_url) == (old.url("/feed"), None)


def test_a_target_that_changes_is_waited_for_anew(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES E2."""
    old, new, key = moving(net, lane, there=chapters(1, 3), channel="<ttl>480</ttl>")
    for _ in range(2):
        lane.move_to(lane.now() + 13 * HOUR)
        lane.run_once()
    elsewhere = net.host("127.1.0.7")
    lane.has_no_robots(elsewhere.url())
    elsewhere.script("/feed", ok(rss(chapters(1, 3), DAILY)))
    old.script("/feed", redirect(elsewhere.url("/feed")))
    lane.move_to(lane.now() + 13 * HOUR)
    lane.run_once()
    row = lane.series(key)
    assert (row.url, row.moving_to, row.moving_polls) == (old.url("/feed"), elsewhere.url("/feed"), 1)
    assert len(net.record.of(new, "/feed")) == 2


@pytest.mark.parametrize("codes", [(302, 301), (301, 302), (307, 308)])
def test_a_chain_with_a_temporary_hop_is_no_move_however_long_it_lasts(
    net: Smallnet, lane: LaneAtWork, codes: tuple[int, int]
) -> None:
    """CASES E3."""
    hosts = net.many(3)
    for host in hosts:
        lane.has_no_robots(host.url())
    for here, there, code in zip(hosts, hosts[1:], codes, strict=False):
        here.script("/feed", redirect(there.url("/feed"), code))
    hosts[-1].script("/feed", ok(rss(chapters(1, 3), DAILY)))
    key = lane.follow(hosts[0].url("/feed"))
    pass_by(lane, 6 * DAY)
    assert len(net.record.of(hosts[-1], "/feed")) >= 5
    row = lane.series(key)
    assert (row.url, row.moving_to, row.failures) == (hosts[0].url("/feed"), None, 0)


def bookmarks(lane: LaneAtWork, key: str) -> dict[str, Row]:
    """The Bookmarks of a Series, by Reader."""
    rows = lane.all(
        "SELECT b.*, r.name FROM lanes.bookmarks b JOIN lanes.readers r ON r.id = b.reader_id "
        "JOIN lanes.series s ON s.id = b.series_id WHERE s.key = %s",
        key,
    )
    return {row.name: row for row in rows}


def two_that_meet(net: Smallnet, lane: LaneAtWork) -> tuple[Host, Host, str, str]:
    """Two Series, the first of which is redirected to the second for days.  The owner and Ada hold both, Ben and the muted Cal the first
    alone."""
    old, new = net.host("127.1.0.5"), net.host("127.1.0.6")
    for host in (old, new):
        host.feed("/feed", [Post(title, guid=f"urn:{title}") for title in ("One", "Two")], channel="<ttl>480</ttl>")
    mover = lane.follow(old.url("/feed"))
    bookmark(lane, "ben", mover)
    bookmark(lane, "cal", mover, muted=True)
    bookmark(lane, "ada", mover)
    pass_by(lane, DAY)
    other = lane.follow(new.url("/feed"))
    bookmark(lane, "ada", other)
    pass_by(lane, DAY)
    old.script("/feed", redirect(new.url("/feed")))
    pass_by(lane, 3 * DAY)
    return old, new, mover, other


def test_two_series_that_meet_become_one_with_everybodys_bookmarks(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES E4."""
    old, new, mover, other = two_that_meet(net, lane)
    row = lane.series(mover)
    assert (row.retired_reason, row.url) == (f"moved to {other}", old.url("/feed"))
    before, after = bookmarks(lane, mover), bookmarks(lane, other)
    assert before.keys() == after.keys() == {"owner", "ada", "ben", "cal"}
    assert lane.series(other).bookmarks == 4
    assert {name: after[name].bookmarked_at for name in ("ben", "cal")} == {
        name: before[name].bookmarked_at for name in ("ben", "cal")
    }
    assert [(name, b.copied_from is not None, b.muted) for name, b in sorted(after.items())] == [
        ("ada", False, False), ("ben", True, False), ("cal", True, True), ("owner", False, False),
    ]  # fmt: skip
    assert after["ada"].bookmarked_at > before["ada"].bookmarked_at
    assert (told(lane), told(lane, "ada"), told(lane, "ben"), told(lane, "cal")) == (
        ["moved"],
        ["moved"],
        ["moved"],
        [],
    )
    assert notices(lane, "ben")[0].body == {"to": other, "merged": True}
    asked_there, asked_here = len(net.record.of(new, "/feed")), len(net.record.of(old, "/feed"))
    new.publish("/feed", "Three")
    pass_by(lane, 5 * DAY)
    assert len(net.record.of(old, "/feed")) == asked_here
    assert 13 <= len(net.record.of(new, "/feed")) - asked_there <= 16
    assert (told(lane, "ben"), told(lane, "ada")) == (["moved", "new chapters"],) * 2
    assert [notice.key for notice in notices(lane, "ben")] == [mover, other]


def test_reviving_what_moved_takes_the_copies_back_and_it_stays_off_that_url(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES E4."""
    old, new, mover, other = two_that_meet(net, lane)
    lane.tell(
        "UPDATE lanes.bookmarks SET muted = false WHERE copied_from IS NOT NULL AND reader_id = "
        "(SELECT id FROM lanes.readers WHERE name = 'cal')"
    )
    revived = OwnStore(lane.database).revive(mover)
    assert (revived.moved_to, revived.copies) == (other, 1)
    assert bookmarks(lane, mover).keys() == {"owner", "ada", "ben", "cal"}
    assert bookmarks(lane, other).keys() == {"owner", "ada", "cal"}, "Cal changed the copy: it is Cal's own now"
    assert lane.series(other).bookmarks == 3
    pass_by(lane, 5 * DAY)
    row = lane.series(mover)
    assert (row.retired_at, row.url, row.failures) == (None, old.url("/feed"), 0)
    assert told(lane, "ben") == ["moved", "back again"]
    old.unscript("/feed")
    old.publish("/feed", "Three")
    pass_by(lane, DAY)
    assert told(lane, "ben") == ["moved", "back again", "new chapters"]
    assert len(net.record.of(new, "/feed")) > 0


def test_what_moved_and_answers_again_by_itself_takes_its_copies_back(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES E4, A15's counterpart: the weekly look revives as the button does."""
    old, _, mover, other = two_that_meet(net, lane)
    old.unscript("/feed")
    old.feed("/feed", ["Three"])
    pass_by(lane, 8 * DAY)
    assert lane.series(mover).retired_at is None
    assert bookmarks(lane, other).keys() == {"owner", "ada"}
    assert lane.series(other).bookmarks == 2


def test_the_owners_words_are_no_move(lane: LaneAtWork, net: Smallnet) -> None:
    host = net.host("127.1.0.5")
    for path in ("/a", "/b"):
        host.feed(path, ["One"])
    one, two = lane.follow(host.url("/a")), lane.follow(host.url("/b"))
    verbs = OwnStore(lane.database)
    verbs.retire(one, f"moved to {two}")
    assert verbs.revive(one).moved_to is None
    assert lane.series(one).stays_off is None


def test_going_back_returns_to_the_old_url_and_does_not_move_again(net: Smallnet, lane: LaneAtWork) -> None:
    old, new, key = moving(net, lane, there=chapters(1, 3))
    pass_by(lane, 3 * DAY)
    assert lane.series(key).url == new.url("/feed")
    there, left = OwnStore(lane.database).back(key)
    assert (there.url, left) == (old.url("/feed"), new.url("/feed"))
    pass_by(lane, 6 * DAY)
    row = lane.series(key)
    assert (row.url, row.failures, row.retired_at) == (old.url("/feed"), 0, None)
    assert told(lane) == ["moved"]
    third = net.host("127.1.0.7")
    lane.has_no_robots(third.url())
    third.script("/feed", ok(rss(chapters(1, 3), DAILY)))
    old.script("/feed", redirect(third.url("/feed")))
    pass_by(lane, 6 * DAY)
    assert lane.series(key).url == third.url("/feed"), "it stays off the one URL it was taken back from, and no other"


def test_a_move_to_what_is_retired_itself_is_not_followed_into_silence(net: Smallnet, lane: LaneAtWork) -> None:
    old, new = net.host("127.1.0.5"), net.host("127.1.0.6")
    for host in (old, new):
        host.feed("/feed", ["One"], channel=DAILY)
    key, other = lane.follow(old.url("/feed")), lane.follow(new.url("/feed"))
    days_pass(lane, 1)
    lane.tell("UPDATE lanes.series SET retired_at = lanes.now(), retired_reason = 'gone' WHERE key = %s", other)
    old.script("/feed", redirect(new.url("/feed")))
    days_pass(lane, 5)
    assert (lane.series(key).retired_at, lane.series(key).failures) == (None, 0)
    new.publish("/feed", "Two")
    days_pass(lane, 2)
    assert "new chapters" in told(lane)


def test_two_series_that_a_slash_tells_apart_become_one(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES E4's kind: the one that is asked by way of the other's URL retires, there too."""
    host = net.host("127.1.0.5")
    host.feed("/feed/", ["One"], channel=DAILY)
    host.script("/feed", redirect(host.url("/feed/")))
    there, mover = lane.follow(host.url("/feed/")), lane.follow(host.url("/feed"))
    pass_by(lane, 4 * DAY)
    assert lane.series(mover).retired_reason == f"moved to {there}"
    assert lane.series(there).retired_at is None
