"""States that must never be are refused by the database itself, each constraint by its name."""

from __future__ import annotations

import psycopg
import pytest

from tests.rows import Rows

SOMEWHEN = "'2031-05-04Z'"
TOKEN = "'00000000-0000-4000-8000-000000000001'"

A_PAGE = (
    "INSERT INTO lanes.browser_pages (token, site, host_id, url, hosts, landmark, asked_at, "
    "taken_at, deadline_at, answered_at, html, trouble) "
    "VALUES (gen_random_uuid(), 'feeds', 1, '', '{}', '', lanes.now()"
)
OFFENCES = [
    # a host
    ("hosts.in_hand_has_a_token", f"UPDATE lanes.hosts SET busy_until = {SOMEWHEN}"),
    ("hosts.in_hand_has_a_token", f"UPDATE lanes.hosts SET busy_token = {TOKEN}"),
    ("hosts.a_wait_has_a_reason", f"UPDATE lanes.hosts SET not_before = {SOMEWHEN}"),
    ("hosts.a_wait_has_a_reason", "UPDATE lanes.hosts SET not_before_reason = 'it asked to wait'"),
    ("hosts.an_address_has_a_bucket", "UPDATE lanes.hosts SET address = '192.0.2.1'"),
    ("hosts.hosts_name_key", "INSERT INTO lanes.hosts (site, name) SELECT site, name FROM lanes.hosts"),
    ("host_name.host_name_check", "UPDATE lanes.hosts SET name = 'Host.Test'"),
    ("host_name.host_name_check", "UPDATE lanes.hosts SET name = ''"),
    ("host_pace.host_pace_check", "UPDATE lanes.hosts SET pace = '-1 second'"),
    ("crawl_delay.crawl_delay_check", "UPDATE lanes.hosts SET crawl_delay = '61 minutes'"),
    ("crawl_delay.crawl_delay_check", "UPDATE lanes.hosts SET crawl_delay = '-1 second'"),
    ("duration.duration_check", "UPDATE lanes.hosts SET owner_pace = '0'"),
    ("number_of.number_of_check", "UPDATE lanes.hosts SET backoffs = -1"),
    # a Series
    ("series.push_is_never_polled", "UPDATE lanes.series SET tier = 'push'"),
    ("series.push_is_never_polled", "UPDATE lanes.series SET next_check_at = NULL"),
    ("series.a_lease_has_a_token_and_a_holder", f"UPDATE lanes.series SET lease_until = {SOMEWHEN}"),
    ("series.a_lease_has_a_token_and_a_holder", f"UPDATE lanes.series SET lease_until = {SOMEWHEN}, lease_token = {TOKEN}"),
    ("series.a_lease_has_a_token_and_a_holder", f"UPDATE lanes.series SET lease_token = {TOKEN}, lease_machine = 'here'"),
    ("series.a_wait_has_a_reason", f"UPDATE lanes.series SET not_before = {SOMEWHEN}"),
    ("series.a_put_back_has_a_reason", f"UPDATE lanes.series SET retry_at = {SOMEWHEN}"),
    ("series.a_put_back_has_a_reason", "UPDATE lanes.series SET retry_reason = 'an obstacle'"),
    ("series.a_resume_is_forgotten", "UPDATE lanes.series SET resume = '{}'"),
    ("series.retirement_has_a_reason", f"UPDATE lanes.series SET retired_at = {SOMEWHEN}"),
    ("series.failing_has_a_start", "UPDATE lanes.series SET failures = 1"),
    ("series.failing_has_a_start", f"UPDATE lanes.series SET failing_since = {SOMEWHEN}"),
    ("series.validators_have_a_url", "UPDATE lanes.series SET etag = '\"a\"'"),
    ("series.validators_have_a_url", "UPDATE lanes.series SET last_modified = 'once'"),
    ("series.series_key_key", "INSERT INTO lanes.series (key, site, host_id, queue_host_id, url) "
                              "SELECT key, site, host_id, queue_host_id, url || '2' FROM lanes.series"),
    ("series_key.series_key_check", "UPDATE lanes.series SET key = 'Not A Key'"),
    ("series_key.series_key_check", "UPDATE lanes.series SET key = ''"),
    ("tier.tier_check", "UPDATE lanes.series SET tier = 'pull'"),
    ("lifecycle.lifecycle_check", "UPDATE lanes.series SET lifecycle = 'dead'"),
    ("number_of.number_of_check", "UPDATE lanes.series SET bookmarks = -1"),
    ("duration.duration_check", "UPDATE lanes.series SET rest = '0'"),
    ("hint.hint_check", "UPDATE lanes.series SET hint_every = '25 hours'"),
    ("hours_of_day.hours_of_day_check", "UPDATE lanes.series SET hint_skip_hours = 16777216"),
    ("days_of_week.days_of_week_check", "UPDATE lanes.series SET hint_skip_days = 128"),
    # a robots.txt
    ("robots.a_copy_has_an_instant", "INSERT INTO lanes.robots (origin, host_id, asked_at, again_at, text) "
                                     "SELECT 'http://a.test', id, lanes.now(), lanes.now(), '' FROM lanes.hosts"),
    ("robots.a_delay_has_a_start", "INSERT INTO lanes.robots (origin, host_id, asked_at, again_at, crawl_delay) "
                                   "SELECT 'http://a.test', id, lanes.now(), lanes.now(), '1 second' FROM lanes.hosts"),
    # a page asked of the browser
    ("browser_pages.browser_pages_site_key", f"{A_PAGE}, NULL, NULL, NULL, NULL, NULL); {A_PAGE}, NULL, NULL, NULL, NULL, NULL)"),
    ("browser_pages.taken_has_a_deadline", f"{A_PAGE}, {SOMEWHEN}, NULL, NULL, NULL, NULL)"),
    ("browser_pages.what_may_not_be_sent_was_not", f"{A_PAGE}, NULL, NULL, NULL, NULL, NULL); "
                                                   f"UPDATE lanes.browser_pages SET stop_reason = 'a block', sent_at = {SOMEWHEN}"),
    ("browser_pages.answered_was_taken", f"{A_PAGE}, NULL, NULL, {SOMEWHEN}, '', NULL)"),
    ("browser_pages.an_answer_is_a_page_or_a_trouble", f"{A_PAGE}, {SOMEWHEN}, {SOMEWHEN}, {SOMEWHEN}, NULL, NULL)"),
    ("browser_pages.an_answer_is_a_page_or_a_trouble", f"{A_PAGE}, {SOMEWHEN}, {SOMEWHEN}, {SOMEWHEN}, '', 'dns')"),
    # the rest
    ("word.word_check", "INSERT INTO lanes.lanes (site) VALUES ('')"),
    ("clock.clock_only_row_check", "INSERT INTO lanes.clock (only_row) VALUES (false)"),
    ("rules.rules_only_row_check", "INSERT INTO lanes.rules (only_row, edition) VALUES (false, 'x')"),
    ("browser.browser_only_row_check", f"INSERT INTO lanes.browser (only_row, heartbeat_at) VALUES (false, {SOMEWHEN})"),
    ("readers.readers_name_check", "INSERT INTO lanes.readers (name) VALUES ('')"),
    ("readers.readers_name_key", "INSERT INTO lanes.readers (name) VALUES ('owner')"),
    ("clock_shifts.clock_shifts_back_check", f"INSERT INTO lanes.clock_shifts (at, back) VALUES ({SOMEWHEN}, '0')"),
    ("words.words_check", "INSERT INTO lanes.words (site, at_least, said_at, ended_at) "
                          f"VALUES ('feeds', '1 hour', {SOMEWHEN}, '2031-05-03Z')"),
    ("words.what_stood_before_has_a_reason", "INSERT INTO lanes.words (site, at_least, said_at, before_until) "
                                             f"VALUES ('feeds', '1 hour', {SOMEWHEN}, {SOMEWHEN})"),
    ("words.about_a_host_or_a_site", f"INSERT INTO lanes.words (at_least, said_at) VALUES ('1 hour', {SOMEWHEN})"),
    ("words.only_a_host_is_blocked", f"INSERT INTO lanes.words (site, said_at) VALUES ('feeds', {SOMEWHEN})"),
    ("series.distrust_has_a_reason", f"UPDATE lanes.series SET distrusted_at = {SOMEWHEN}"),
    ("incidents.incidents_whose_check", f"INSERT INTO lanes.incidents (whose, site, started_at) VALUES ('them', 'feeds', {SOMEWHEN})"),
    ("incidents.incidents_check", "INSERT INTO lanes.incidents (whose, site, started_at, ended_at) "
                                  f"VALUES ('site', 'feeds', {SOMEWHEN}, '2031-05-03Z')"),
    ("incidents.incidents_spared_check", "INSERT INTO lanes.incidents (whose, site, started_at, spared) "
                                         f"VALUES ('site', 'feeds', {SOMEWHEN}, -1)"),
    ("incidents.us_is_a_machine", f"INSERT INTO lanes.incidents (whose, started_at) VALUES ('us', {SOMEWHEN})"),
    ("incidents.us_is_a_machine", "INSERT INTO lanes.incidents (whose, site, machine, started_at) "
                                  f"VALUES ('site', 'feeds', 'here', {SOMEWHEN})"),
    ("incidents.a_site_is_named", f"INSERT INTO lanes.incidents (whose, started_at) VALUES ('site', {SOMEWHEN})"),
    ("notices.notices_kind_check", f"INSERT INTO lanes.notices (kind, event, made_at) VALUES ('', 'x', {SOMEWHEN})"),
    ("notices.notices_event_check", f"INSERT INTO lanes.notices (kind, event, made_at) VALUES ('x', '', {SOMEWHEN})"),
    ("notices.one_per_reader_and_event", "INSERT INTO lanes.notices (kind, event, made_at) "
                                         f"VALUES ('x', 'x', {SOMEWHEN}), ('x', 'x', {SOMEWHEN})"),
]  # fmt: skip


def test_every_constraint_refuses_what_it_forbids(rows: Rows) -> None:
    rows.series()
    for constraint, offence in OFFENCES:
        with pytest.raises(psycopg.errors.IntegrityError) as refused:
            rows(offence)
        assert refused.value.diag.constraint_name == constraint.rpartition(".")[2], offence


def test_no_constraint_is_without_its_offence(rows: Rows) -> None:
    names = rows(
        """SELECT coalesce(c.relname, t.typname) || '.' || x.conname FROM pg_constraint x
           LEFT JOIN pg_class c ON c.oid = x.conrelid LEFT JOIN pg_type t ON t.oid = x.contypid
           WHERE x.connamespace = 'lanes'::regnamespace AND x.contype IN ('c', 'u')"""
    )
    assert {name for (name,) in names} == {constraint for constraint, _ in OFFENCES}


def test_two_series_of_a_site_never_share_a_url(rows: Rows) -> None:
    rows.series(url="https://host.test/feed")
    with pytest.raises(psycopg.errors.UniqueViolation):
        rows.series(url="https://host.test/feed")


def test_a_chapter_has_one_row_per_identity_and_series(rows: Rows) -> None:
    series = rows.series()
    keep = f"INSERT INTO lanes.identities (series_id, identity) VALUES ({series}, {TOKEN})"
    rows(keep)
    with pytest.raises(psycopg.errors.UniqueViolation):
        rows(keep)


def test_one_trouble_has_one_open_incident(rows: Rows) -> None:
    rows.enrol()
    begin = f"INSERT INTO lanes.incidents (whose, site, started_at) VALUES ('site', 'feeds', {SOMEWHEN})"
    rows(begin)
    with pytest.raises(psycopg.errors.UniqueViolation):
        rows(begin)
    rows(f"UPDATE lanes.incidents SET ended_at = {SOMEWHEN}")
    rows(begin)
