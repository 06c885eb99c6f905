"""What the owner is told: the same as the claim does."""

from __future__ import annotations

from typing import Any

import pytest

from lanes.errors import UnknownReader, UnknownSeries
from lanes.store.asking import AskStore, Hosts
from lanes.store.following import FollowStore
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from tests.fix_database import Clock
from tests.rows import DAY, HOUR, MINUTE, Rows, take

SITES = {"feeds": None}


@pytest.fixture
def asking(database: Database) -> AskStore:
    return AskStore(database, SITES, polling=True)


def poll(rows: Rows, series_id: int, **facts: Any) -> None:
    plain = {
        "claimed_at": rows.now(), "token": "00000000-0000-0000-0000-000000000001", "series_id": series_id, "site": "feeds",
        "host": "a.test",         "machine": "here", "trigger": "its time", "outcome": "new", "host_pace": MINUTE, "address_pace": MINUTE,
    }  # fmt: skip
    facts = plain | facts
    rows(f"INSERT INTO lanes.polls ({', '.join(facts)}) VALUES ({', '.join(['%s'] * len(facts))})", *facts.values())


def chapter(rows: Rows, series_id: int, title: str, **facts: Any) -> None:
    facts = {"series_id": series_id, "title": title, "found_at": rows.now(), "announced": True} | facts
    rows(f"INSERT INTO lanes.chapters ({', '.join(facts)}) VALUES ({', '.join(['%s'] * len(facts))})", *facts.values())


def test_what_is_due_and_free_is_what_the_claim_takes(asking: AskStore, rows: Rows, store: PollStore) -> None:
    rows.series(key="free")
    assert asking.one("free").why.reason == "due (its time): its Lane takes it at its turn"
    assert take(store) is not None
    reason = asking.one("free").why
    assert (reason.reason, reason.until) == ("being polled now, by here", None)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"bookmarks": 0}, "nobody has bookmarked it"),
        ({"url": ""}, "it has no URL"),
        ({"tier": "push", "next_check_at": None}, "its hub pushes it: it is not polled"),
    ],
)
def test_what_is_never_polled_says_why(facts: dict[str, Any], reason: str, asking: AskStore, rows: Rows) -> None:
    rows.series(key="never", **facts)
    assert asking.one("never").why.reason == reason


def test_the_kill_switch_is_told_and_the_series_counts_as_held(database: Database, rows: Rows) -> None:
    """CASES B17."""
    rows.series(key="free")
    reason = AskStore(database, SITES, polling=False).one("free").why
    assert (reason.reason, reason.until, reason.held) == ("polling is switched off", None, True)


def test_the_kill_switch_of_the_lane_that_runs_is_told_wherever_it_is_asked(
    asking: AskStore, rows: Rows, store: PollStore
) -> None:
    """CASES B17."""
    rows.series(key="free")
    store.enrol(polling=False)
    assert asking.one("free").why.reason == "polling is switched off"
    assert asking.lane("feeds").switched_off
    store.enrol()
    assert asking.one("free").why.reason == "due (its time): its Lane takes it at its turn"
    assert not asking.lane("feeds").switched_off


def test_a_series_that_waits_by_itself_is_held_and_counted_though_it_is_not_due(asking: AskStore, rows: Rows) -> None:
    until = rows.now() + DAY
    wait = {"not_before": until, "not_before_reason": "not a public address: 10.0.0.1", "next_check_at": until}
    rows.series(key="blocked", **wait)
    rows.series(key="nobody", bookmarks=0, **wait)
    rows.series(key="over", not_before=rows.now() - DAY, not_before_reason="Retry-After")
    reason = asking.one("blocked").why
    assert (reason.reason, reason.until, reason.held) == ("not a public address: 10.0.0.1", until, True)
    assert [each.why.held for each in asking.series()] == [True, False, False]
    assert asking.totals().waiting == 1


def test_a_wait_that_a_host_asked_for_is_told_with_its_end(asking: AskStore, rows: Rows, store: PollStore) -> None:
    """CASES B6."""
    until = rows.now() + DAY
    host = rows.host(not_before=until, not_before_reason="the host asked to wait: 429")
    rows.series(host, key="held")
    reason = asking.one("held").why
    assert (reason.reason, reason.until, reason.held) == ("the host asked to wait: 429", until, True)
    assert take(store) is None


def test_a_closed_address_bucket_is_told(asking: AskStore, rows: Rows) -> None:
    rows.series(rows.host(address="192.0.2.7"), key="waits")
    rows(
        "INSERT INTO lanes.addresses (address, next_at, used_at) VALUES ('192.0.2.7', lanes.now() + '1 minute'::interval, lanes.now())"
    )
    reason = asking.one("waits").why
    assert (reason.reason, reason.held) == ("the interval of its address", False)


@pytest.mark.parametrize("facts", [{"next_at": True}, {"busy_until": True}])
def test_a_series_that_waits_its_turn_on_its_host_is_not_held(
    facts: dict[str, Any], asking: AskStore, rows: Rows
) -> None:
    soon = rows.now() + MINUTE
    token = {"busy_token": "00000000-0000-0000-0000-000000000001"} if "busy_until" in facts else {}
    rows.series(rows.host(**dict.fromkeys(facts, soon), **token), key="waits")
    reason = asking.one("waits").why
    assert (reason.until, reason.held) == (soon, False)


def test_a_resting_series_tells_its_next_check(asking: AskStore, rows: Rows) -> None:
    at = rows.now() + HOUR
    rows.series(key="rests", latest_checked_at=rows.now(), next_check_at=at)
    assert (asking.one("rests").why.reason, asking.one("rests").why.until) == ("it rests until its next check", at)


def test_a_wait_without_end_is_told_without_an_instant(asking: AskStore, rows: Rows) -> None:
    host = rows.host()
    rows(
        "UPDATE lanes.hosts SET not_before = 'infinity', not_before_reason = 'blocked by the owner' WHERE id = %s", host
    )
    rows.series(host, key="blocked")
    assert asking.one("blocked").why.until is None


HOST_WAITS = (
    "the host refuses", "the host asked to wait: 429 too many requests", "the host does not answer: asked once an hour",
)  # fmt: skip
SERIES_WAITS = (
    "the Site asked to wait (Retry-After)", "its URL was refused: 403", "robots.txt does not allow it", "not a public address: 10.0.0.1",
)  # fmt: skip
GATES: dict[str, tuple[str, dict[str, Any], str]] = {
    "its Lane refuses": ("lane", {"refused_until": True}, "the Site refuses"),
    **{why: ("host", {"not_before": True, "not_before_reason": why}, why) for why in HOST_WAITS},
    **{why: ("series", {"not_before": True, "not_before_reason": why}, why) for why in SERIES_WAITS},
    "Gap": ("lane", {"next_at": True}, "the Gap of its Site"),
    "Gap by the owner": (
        "lane", {"next_at": True, "gap": 10 * MINUTE, "owner_gap": HOUR}, "the Gap of its Site (the owner's word)",
    ),
    "host interval": ("host", {"next_at": True}, "the interval of its host"),
    "crawl delay": ("host", {"next_at": True, "crawl_delay": MINUTE}, "the interval of its host (its crawl delay)"),
    "host interval by the owner": (
        "host", {"next_at": True, "crawl_delay": MINUTE, "owner_pace": HOUR}, "the interval of its host (the owner's word)",
    ),
    "crawl delay that is slower than the owner's word": (
        "host", {"next_at": True, "crawl_delay": HOUR, "owner_pace": MINUTE}, "the interval of its host (its crawl delay)",
    ),
    "own pace that is slower than both": (
        "host", {"next_at": True, "pace": 5 * MINUTE, "crawl_delay": MINUTE, "owner_pace": MINUTE}, "the interval of its host",
    ),
    "host in hand": (
        "host", {"busy_until": True, "busy_token": "00000000-0000-0000-0000-000000000001"}, "its host is being fetched",
    ),
    "put back": (
        "series", {"retry_at": True, "retry_reason": "the interval of its address"}, "put back: the interval of its address",
    ),
}  # fmt: skip


@pytest.mark.parametrize("gate", GATES)
def test_each_gate_is_named_with_its_instant_and_nothing_is_claimed_behind_it(
    gate: str, asking: AskStore, rows: Rows, store: PollStore, clock: Clock
) -> None:
    """CASES B6."""
    row, facts, reason = GATES[gate]
    until = rows.now() + DAY
    facts = {name: until if value is True else value for name, value in facts.items()}
    rows.enrol(**facts if row == "lane" else {})
    rows.series(rows.host(**facts if row == "host" else {}), key="moss", **facts if row == "series" else {})
    why = asking.one("moss").why
    assert (why.reason, why.until) == (reason, until)
    assert take(store) is None
    clock.advance(DAY + MINUTE)
    assert asking.one("moss").why.reason.startswith("due (")
    assert take(store) is not None


LINE_DOWN = "our own line is down: one Poll a minute until it is back"


def test_a_line_that_is_down_on_every_machine_that_polls_is_the_reason(
    asking: AskStore, rows: Rows, clock: Clock
) -> None:
    one = rows.series(key="moss")
    since = rows.now()
    rows("INSERT INTO lanes.machines (machine, us_since) VALUES ('attic', %s), ('cellar', %s)", since, since)
    assert asking.one("moss").why.reason.startswith("due")  # nobody polled lately: nobody knows
    poll(rows, one, machine="attic")
    assert asking.one("moss").why.reason == LINE_DOWN
    assert [(note.words, note.since) for note in asking.one("moss").notes] == [("our own line is down", since)]
    poll(rows, one, machine="roof", token="00000000-0000-0000-0000-000000000002")
    assert asking.one("moss").why.reason.startswith("due")
    clock.advance(10 * MINUTE)
    poll(rows, one, machine="cellar", token="00000000-0000-0000-0000-000000000003")
    assert asking.one("moss").why.reason == LINE_DOWN
    assert [each.machine for each in asking.lines_down()] == ["attic", "cellar"]


def test_an_open_incident_that_spares_a_series_is_its_reason(asking: AskStore, rows: Rows) -> None:
    host, until = rows.host(), rows.now() + HOUR
    (incident,) = rows(
        "INSERT INTO lanes.incidents (whose, site, host_id, kind, started_at) "
        "VALUES ('site', 'feeds', %s, '404', lanes.now()) RETURNING id",
        host,
    )
    rows.series(host, key="moss", spared_by=incident.id, latest_checked_at=rows.now(), next_check_at=until)
    why = asking.one("moss").why
    assert (why.reason, why.until) == (
        "its Site is failing (404): that is not charged to it, and it is looked at once an hour",
        until,
    )
    rows("UPDATE lanes.incidents SET ended_at = lanes.now()")
    assert asking.one("moss").why.reason == "it rests until its next check"


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"retired_at": True, "retired_reason": "gone"}, "retired (gone), with a weekly look left"),
        ({"lifecycle": "finished"}, "finished, with a weekly look left"),
    ],
)
def test_what_is_retired_or_finished_tells_its_weekly_look(
    facts: dict[str, Any], reason: str, asking: AskStore, rows: Rows
) -> None:
    now = rows.now()
    facts = {name: now if value is True else value for name, value in facts.items()}
    rows.series(key="moss", latest_checked_at=now, **facts)
    assert (asking.one("moss").why.reason, asking.one("moss").why.until) == (reason, now + 7 * DAY)


def test_incidents_come_open_ones_first_then_the_newest(asking: AskStore, rows: Rows) -> None:
    host, now = rows.host("a.test"), rows.now()
    for whose, machine, site, host_id, since, ended in (
        ("us", "attic", None, None, 5 * DAY, None),
        ("site", None, "feeds", host, 3 * DAY, 2 * DAY),
        ("refusal", None, "feeds", host, 4 * DAY, HOUR),
        ("site", None, "feeds", host, DAY, None),
    ):
        rows(
            "INSERT INTO lanes.incidents (whose, machine, site, host_id, kind, started_at, ended_at, spared) "
            "VALUES (%s, %s, %s, %s, '404', %s, %s, 2)",
            whose, machine, site, host_id, now - since, ended and now - ended,
        )  # fmt: skip
    found = asking.incidents(None)
    assert [(each.whose, each.machine or each.host, each.ended_at is None) for each in found] == [
        ("site", "a.test", True),
        ("us", "attic", True),
        ("site", "a.test", False),
        ("refusal", "a.test", False),
    ]
    assert [each.spared for each in asking.incidents(1)] == [2]
    assert len(asking.incidents(None, only_open=True)) == 2


def test_notices_come_newest_first_and_can_be_narrowed(asking: AskStore, rows: Rows) -> None:
    series = rows.series(key="moss", bookmarks=0)
    rows.bookmark(series)
    rows("SELECT lanes.tell_readers(%s, 'stopped', 'stopped:1', %s)", series, '{"reason": "gone"}')
    rows("SELECT lanes.tell_owner('incident', 'incident:1', '{}')")
    rows("UPDATE lanes.notices SET delivered_at = lanes.now() WHERE kind = 'stopped'")
    found = asking.notices(10)
    assert [(each.reader, each.kind, each.key, each.body) for each in found] == [
        (None, "incident", None, {}),
        ("owner", "stopped", "moss", {"reason": "gone"}),
    ]
    assert [each.kind for each in asking.notices(10, owed=True)] == ["incident"]
    assert [each.kind for each in asking.notices(10, reader="owner")] == ["stopped"]
    assert [each.kind for each in asking.notices(1)] == ["incident"]
    with pytest.raises(UnknownReader):
        asking.notices(10, reader="nobody")


def test_hosts_are_counted_once_each_by_how_they_are(asking: AskStore, rows: Rows) -> None:
    ahead = rows.now() + HOUR
    rows.host(not_before=ahead, not_before_reason="the host refuses")
    rows.host(not_before=ahead, not_before_reason="the host asked to wait: 429")
    rows.host(not_before=rows.now() - HOUR, not_before_reason="the host asked to wait: 429")
    dead = {
        "dead_since": rows.now(),
        "not_before": ahead,
        "not_before_reason": "the host does not answer: asked once an hour",
    }
    rows.host(**dead)
    host = rows.host(**dead)
    rows(
        "UPDATE lanes.hosts SET not_before = 'infinity', not_before_reason = 'the owner blocked it' WHERE id = %s", host
    )
    assert asking.lane("feeds").hosts == Hosts(known=5, blocked=1, dead=1, refusing=1, waiting=1)


def test_the_list_is_narrowed_by_words_site_and_failure(asking: AskStore, rows: Rows) -> None:
    rows.series(key="moss", title="Moss Kingdom")
    rows.series(key="salt", failures=2, failing_since=rows.now(), failure="404")
    rows.series(key="other", site="elsewhere")
    assert [each.key for each in asking.series()] == ["moss", "other", "salt"]
    assert [each.key for each in asking.series(words="KINGdom")] == ["moss"]
    assert [each.key for each in asking.series(words="100%_")] == []
    assert [each.key for each in asking.series(failing=True)] == ["salt"]
    assert [each.key for each in asking.series(site="elsewhere")] == ["other"]


def test_an_unknown_key_is_an_error(asking: AskStore) -> None:
    with pytest.raises(UnknownSeries):
        asking.one("nobody")


def test_chapters_come_newest_first_and_a_date_in_the_future_counts_from_its_first_sight(
    asking: AskStore, rows: Rows
) -> None:
    """CASES F9."""
    one, two = rows.series(key="one"), rows.series(key="two")
    now = rows.now()
    chapter(rows, one, "old", published_at=now - DAY)
    chapter(rows, one, "ahead", published_at=now + 30 * DAY, found_at=now - HOUR)
    chapter(rows, two, "new", published_at=now - MINUTE)
    assert [each.title for each in asking.chapters(None, 10)] == ["new", "ahead", "old"]
    assert [each.title for each in asking.chapters(one, 1)] == ["ahead"]
    assert (asking.one("one").chapters, asking.one("one").newest_at) == (2, now - HOUR)


def test_the_poll_record_comes_newest_first_and_keeps_what_was_deleted(
    asking: AskStore, rows: Rows, clock: Clock
) -> None:
    one = rows.series(key="one")
    poll(rows, one, detail="first", address="192.0.2.7")
    clock.advance(HOUR)
    poll(rows, one + 1000, detail="second")
    first, second = asking.attempts(None, 10)
    assert (first.key, first.detail) == (None, "second")
    assert (second.key, second.detail, second.address) == ("one", "first", "192.0.2.7")
    assert [each.detail for each in asking.attempts(one, 10)] == ["first"]


def test_the_first_outcome_is_that_of_the_poll_and_not_of_what_led_to_it(
    asking: AskStore, rows: Rows, clock: Clock
) -> None:
    one = rows.series()
    since = rows.now()
    for outcome in ("redirected", "put back", "feed found", "abandoned"):
        poll(rows, one, outcome=outcome)
        clock.advance(MINUTE)
    assert asking.first_outcome(one, since) is None
    poll(rows, one, outcome="new", new_chapters=7)
    found = asking.first_outcome(one, since)
    assert found is not None
    assert (found.outcome, found.new_chapters) == ("new", 7)
    assert asking.first_outcome(one, rows.now() + MINUTE) is None


def test_a_lane_and_the_totals_are_counted_from_rows(
    asking: AskStore, rows: Rows, store: PollStore, database: Database, clock: Clock
) -> None:
    rows.series(key="one")
    rows.series(key="two")
    rows.series(rows.host(not_before=rows.now() + DAY, not_before_reason="429"), key="held")
    rows.series(key="retired", retired_at=rows.now(), retired_reason="gone")
    rows.series(
        key="failing",
        failures=1,
        failing_since=rows.now(),
        latest_checked_at=rows.now(),
        next_check_at=rows.now() + HOUR,
    )
    rows.series(key="nobody", bookmarks=0)
    assert take(store) is not None
    FollowStore(database).check_now("failing")
    lane, totals = asking.lane("feeds"), asking.totals()
    assert (lane.in_hand, lane.hosts.known, lane.gauges.eligible, lane.gauges.held) == (1, 6, 4, 1)
    assert (totals.series, totals.bookmarked, totals.retired, totals.failing, totals.pending) == (6, 5, 1, 1, 1)
    assert totals.database_bytes > 0
    assert lane.seen_at is not None
    clock.advance(5 * MINUTE)
    assert asking.totals().now - lane.seen_at > 4 * MINUTE
    store.keep_house()
    assert asking.lane("feeds").seen_at != lane.seen_at


def test_a_lane_that_never_ran_is_all_zero(database: Database) -> None:
    lane = AskStore(database, {"elsewhere": HOUR}, polling=True).lane("elsewhere")
    assert (lane.in_hand, lane.gauges.eligible, lane.polled_at, lane.seen_at) == (0, 0, None, None)
