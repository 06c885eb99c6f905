"""What a settle writes: the Series, its host, the poll record, in one transaction under its own lease (DESIGN 4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from lanes.core.answer import NoResponse, Sent, Trouble
from lanes.core.claim import Claim
from lanes.store.polls import PollStore
from lanes.store.settled import Trail
from tests.answers import a_response
from tests.fix_database import Clock
from tests.rows import DAY, HOUR, MINUTE, NEVER, Rows, settle, take

NOT_MODIFIED = replace(a_response(304), conditional=True)


def taken(store: PollStore) -> Claim:
    claim = take(store)
    assert claim is not None
    return claim


def test_a_settle_ends_the_lease_and_frees_the_host(rows: Rows, store: PollStore) -> None:
    host = rows.host()
    series = rows.series(host)
    claim = taken(store)
    assert settle(store, claim, NOT_MODIFIED)
    row, the_host = rows.the_series(series), rows.the_host(host)
    assert row.lease_token is row.lease_until is row.lease_machine is None
    assert the_host.busy_token is None
    assert the_host.busy_until == NEVER
    assert row.latest_checked_at == claim.claimed_at


def test_after_a_settle_the_host_is_ready_when_its_series_is_due(rows: Rows, store: PollStore) -> None:
    host = rows.host()
    series = rows.series(host)
    settle(store, taken(store), NOT_MODIFIED)
    assert rows.the_host(host).ready_at == rows.the_series(series).claimable_at


def test_after_a_settle_a_host_with_more_to_do_is_ready_when_its_bucket_opens(rows: Rows, store: PollStore) -> None:
    host = rows.host(pace=timedelta(seconds=20))
    rows.series(host)
    rows.series(host)
    claim = taken(store)
    settle(store, claim, NOT_MODIFIED)
    assert rows.the_host(host).ready_at == claim.claimed_at + timedelta(seconds=20)


def test_a_good_answer_lengthens_and_zeroes(rows: Rows, store: PollStore) -> None:
    now = rows.now()
    series = rows.series(
        failures=4, failing_since=now - DAY, failure="404", gone_at=now - DAY, rest=10 * MINUTE, news_from=now - DAY
    )
    settle(store, taken(store), NOT_MODIFIED)
    row = rows.the_series(series)
    assert row.failures == 0
    assert row.failing_since is None
    assert row.gone_at is None
    assert row.rest == 15 * MINUTE
    assert row.good_at is not None
    assert row.first_good_at == row.good_at


def test_a_failure_is_counted_from_the_first_of_its_row(rows: Rows, store: PollStore, clock: Clock) -> None:
    series = rows.series()
    settle(store, taken(store), a_response(404))
    first = rows.the_series(series)
    assert (first.failures, first.good_at) == (1, None)
    assert first.failure
    clock.advance(DAY)
    settle(store, taken(store), a_response(404))
    second = rows.the_series(series)
    assert second.failures == 2
    assert second.failing_since == first.failing_since


def test_the_first_410_of_a_row_is_remembered_until_a_good_answer(rows: Rows, store: PollStore, clock: Clock) -> None:
    """CASES A6"""
    series = rows.series()
    settle(store, taken(store), a_response(410))
    first = rows.the_series(series).gone_at
    assert first is not None
    clock.advance(DAY / 2)
    settle(store, taken(store), a_response(410))
    assert rows.the_series(series).gone_at == first
    assert rows.the_series(series).retired_at is None
    clock.advance(DAY)
    settle(store, taken(store), NOT_MODIFIED)
    assert rows.the_series(series).gone_at is None


def test_a_second_410_a_day_after_the_first_retires_and_tells(rows: Rows, store: PollStore, clock: Clock) -> None:
    """CASES A6"""
    series = rows.series()
    rows.bookmark(series)
    settle(store, taken(store), a_response(410))
    assert rows("SELECT * FROM lanes.notices") == []
    clock.advance(DAY)
    settle(store, taken(store), a_response(410))
    row = rows.the_series(series)
    assert row.retired_reason == "gone"
    assert [notice.kind for notice in rows("SELECT * FROM lanes.notices")] == ["stopped"]


def test_a_failure_keeps_validators_and_one_that_broke_while_read_drops_them(
    rows: Rows, store: PollStore, clock: Clock
) -> None:
    """CASES C4, G4"""
    series = rows.series(etag='"a"', last_modified="once", validators_url="https://host.test/", body_hash=b"hash")
    settle(store, taken(store), a_response(500))
    assert rows.the_series(series).etag == '"a"'
    clock.advance(DAY)
    settle(store, taken(store), NoResponse(Trouble.FRAMING, "cut short"))
    row = rows.the_series(series)
    assert (row.etag, row.last_modified, row.validators_url, row.body_hash) == (None, None, None, None)
    clock.advance(DAY)
    assert taken(store).validators is None


def test_a_push_series_settles_without_a_next_check(rows: Rows, store: PollStore) -> None:
    series = rows.series()
    claim = taken(store)
    rows.set_series(series, tier="push", next_check_at=None)
    assert settle(store, claim, NOT_MODIFIED)
    assert rows.the_series(series).next_check_at is None


def test_a_wait_of_the_host_is_stored_with_its_reason(rows: Rows, store: PollStore, clock: Clock) -> None:
    """CASES B2, B6"""
    host = rows.host()
    series = rows.series(host)
    other = rows.series(host)
    claim = taken(store)
    settle(store, claim, a_response(429, retry_after="86400"))
    row = rows.the_host(host)
    assert row.not_before == claim.claimed_at + DAY
    assert row.not_before_reason
    assert rows.the_series(series).failures == 0
    clock.advance(DAY - MINUTE)
    assert take(store) is None
    clock.advance(2 * MINUTE)
    assert taken(store).series_id in {series, other}


def test_a_shorter_wait_never_shortens_a_longer_one(rows: Rows, store: PollStore) -> None:
    host = rows.host()
    rows.series(host)
    claim = taken(store)
    until = rows.now() + DAY
    rows.set_host(host, not_before=until, not_before_reason="the owner's word")
    settle(store, claim, a_response(429, retry_after="60"))
    row = rows.the_host(host)
    assert (row.not_before, row.not_before_reason) == (until, "the owner's word")


def test_a_wait_of_one_series_leaves_its_host_open(rows: Rows, store: PollStore, clock: Clock) -> None:
    """CASES B1"""
    host = rows.host()
    waits = rows.series(host)
    claim = taken(store)
    settle(store, claim, a_response(503, retry_after="1500"))
    neighbour = rows.series(host)
    rows.set_host(host, ready_at=rows.now())
    clock.advance(MINUTE)
    settle(store, taken(store), NOT_MODIFIED)
    assert rows.the_series(neighbour).good_at is not None
    rows.set_series(neighbour, bookmarks=0)
    clock.advance(timedelta(seconds=1500) - 2 * MINUTE)
    assert take(store) is None
    clock.advance(HOUR)
    assert taken(store).series_id == waits


def test_two_urls_of_a_host_refused_within_ten_minutes_make_the_host_wait(
    rows: Rows, store: PollStore, clock: Clock
) -> None:
    """CASES B1, through the stored memory of the first"""
    host = rows.host()
    rows.series(host)
    rows.series(host)
    settle_at_own_url(store, taken(store), retry_after="30")
    assert rows.the_host(host).not_before == NEVER
    clock.advance(MINUTE)
    second = taken(store)
    settle_at_own_url(store, second, retry_after="1500")
    assert rows.the_host(host).not_before == second.claimed_at + timedelta(seconds=1500)


def settle_at_own_url(store: PollStore, claim: Claim, retry_after: str) -> None:
    settle(store, claim, replace(a_response(503, retry_after=retry_after), url=claim.url))


def test_a_learnt_interval_survives_in_the_row_and_is_spent_at_once(rows: Rows, store: PollStore, clock: Clock) -> None:
    """CASES B3"""
    host = rows.host()
    rows.series(host)
    rows.series(host)
    claim = taken(store)
    settle(store, claim, a_response(429))
    assert rows.the_host(host).pace == timedelta(seconds=90)
    clock.advance(timedelta(seconds=89))
    assert take(store) is None
    clock.advance(timedelta(seconds=2))
    assert taken(store).host_pace == timedelta(seconds=90)


def test_trouble_slows_the_host_from_its_last_request_on(rows: Rows, store: PollStore) -> None:
    host = rows.host(pace=timedelta(seconds=10))
    rows.series(host)
    claim = taken(store)
    settle(store, claim, NoResponse(Trouble.TIMEOUT, "silent"))
    assert rows.the_host(host).next_at == claim.claimed_at + timedelta(seconds=20)


def test_a_url_that_moved_to_its_hosts_other_name_queues_there(rows: Rows, store: PollStore, clock: Clock) -> None:
    """DESIGN 4.3, Hops: www is the same host to a person, another bucket to us."""
    series = rows.series(rows.host("host.test"), url="https://host.test/feed", news_from=rows.now())
    claim = taken(store)
    entered = store.enter("www.host.test", claim, claim.claimed_at + MINUTE)
    answer = replace(NOT_MODIFIED, url="https://www.host.test/feed", permanent=True)
    hosts = (claim.host_id, entered.host_id)
    settle(store, claim, answer, on=Trail(entered.host_id, hosts, (None, None), (), ()))
    row = rows.the_series(series)
    assert (row.url, row.old_url) == ("https://www.host.test/feed", "https://host.test/feed")
    assert rows.late_hints() == []
    clock.advance(DAY)
    assert taken(store).host == "www.host.test"


# The poll record


def test_a_poll_without_a_request_leaves_one_row_without_a_sent_instant(rows: Rows, store: PollStore) -> None:
    series = rows.series(rows.host("named.test"))
    claim = taken(store)
    settle(store, claim, NoResponse(Trouble.DNS, "no such host"))
    (row,) = rows.polls()
    assert (row.series_id, row.token, row.hop) == (series, claim.token, 0)
    assert (row.site, row.host, row.machine, row.trigger) == ("feeds", "named.test", "here", "its time")
    assert row.sent_at is None
    assert row.outcome == "failed"
    assert row.claimed_at == claim.claimed_at


def test_a_poll_leaves_a_row_per_hop_and_the_last_has_the_outcome(rows: Rows, store: PollStore) -> None:
    rows.series(rows.host("one.test"))
    rows.host("two.test", pace=timedelta(seconds=5))
    claim = taken(store)
    entered = store.enter("two.test", claim, claim.claimed_at + MINUTE)
    at = [claim.claimed_at + timedelta(seconds=n) for n in (1, 3)]
    requests = (
        Sent("https://one.test/", "one.test", "192.0.2.1", at[0], 302, 120),
        Sent("https://two.test/", "two.test", "192.0.2.2", at[1], 304, 80),
    )
    paces = (claim.host_pace, entered.interval)
    settle(
        store,
        claim,
        NOT_MODIFIED,
        on=Trail(entered.host_id, (claim.host_id, entered.host_id), (at[0], at[1]), requests, paces),
    )
    first, second = rows.polls()
    assert (first.hop, first.host, first.status, first.wire_bytes, first.sent_at) == (0, "one.test", 302, 120, at[0])
    assert (second.hop, second.host, second.status, second.wire_bytes, second.sent_at) == (
        1,
        "two.test",
        304,
        80,
        at[1],
    )
    assert (first.outcome, second.outcome) == ("redirected", "unchanged")
    assert second.host_pace == timedelta(seconds=5)
    assert rows.one("SELECT count(*) FROM lanes.hosts WHERE busy_token IS NOT NULL") == 0
    assert rows.one("SELECT next_at FROM lanes.hosts WHERE name = 'one.test'") == at[0] + timedelta(seconds=1)


def test_the_record_keeps_the_waits_and_what_stood_there_before(rows: Rows, store: PollStore) -> None:
    rows.series(failures=2, failing_since=rows.now())
    claim = taken(store)
    settle(store, claim, a_response(404, retry_after="600"))
    (row,) = rows.polls()
    assert row.series_wait_until == claim.claimed_at + timedelta(seconds=600)
    assert row.host_wait_until is None
    assert [2, 3] in row.changed.values()


def test_a_series_that_is_gone_settles_into_nothing_but_what_slows(rows: Rows, store: PollStore) -> None:
    host = rows.host()
    series = rows.series(host)
    claim = taken(store)
    rows("DELETE FROM lanes.series WHERE id = %s", series)
    assert not settle(store, claim, a_response(429))
    assert rows.the_host(host).pace == timedelta(seconds=90)
    assert rows.the_host(host).busy_token is None
