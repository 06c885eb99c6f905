"""list, chapters, polls, status, why, sites."""

from __future__ import annotations

from argparse import Namespace
from datetime import datetime, timedelta

from lanes.cli.door import Store, each_key, open_store, text, word
from lanes.cli.parser import DONE
from lanes.cli.words import counted, duration, masked, print_json, print_table, relative, size, until
from lanes.sites import SITES, by_name
from lanes.store.asking import Attempt, ChapterFound, LaneState, Listed, Totals

SILENT = timedelta(minutes=3)  # a Lane says once a minute that it lives


def series(asked: Namespace) -> int:
    """The Series."""
    site = None if asked.site is None else by_name(asked.site).name
    with open_store() as store:
        words = None if asked.words is None else text(asked.words)
        found = store.asking.series(site=site, words=words, failing=asked.failing)
    found = tuple(each for each in found if not asked.held or each.why.held)
    if asked.json:
        print_json([_series_row(each, whole=asked.whole_urls) for each in found])
        return DONE
    print_table(
        ("KEY", "TITLE", "CHAPTERS", "NEWEST", "CHECKED", "STATE", "URL"),
        (
            (
                each.key,
                each.title or "",
                each.chapters,
                relative(each.newest_at, each.standing.now),
                relative(each.checked_at, each.standing.now),
                _state(each),
                each.url if asked.whole_urls else masked(each.url),
            )
            for each in found
        ),
        cut=("TITLE", "STATE"),
        drop=(*(() if asked.whole_urls else ("URL",)), "CHECKED", "NEWEST", "CHAPTERS"),
    )
    print(counted(len(found), "Series"))
    return DONE


def _state(each: Listed) -> str:
    reason = each.why
    words = f"held: {reason.reason}" if reason.held else reason.reason
    return words if reason.until is None else f"{words}, {relative(reason.until, each.standing.now)}"


def _series_row(each: Listed, *, whole: bool) -> dict[str, object]:
    standing, reason = each.standing, each.why
    return {
        "key": each.key,
        "site": each.site,
        "host": each.host,
        "title": each.title,
        "url": each.url if whole else masked(each.url),
        "home": each.home,
        "tier": standing.tier,
        "lifecycle": standing.lifecycle,
        "bookmarks": standing.bookmarks,
        "chapters": each.chapters,
        "newest_at": each.newest_at,
        "checked_at": each.checked_at,
        "good_at": each.good_at,
        "rest": each.rest,
        "due": standing.due,
        "due_at": standing.due_at,
        "why": reason.reason,
        "until": reason.until,
        "held": reason.held,
        "paused_at": standing.paused_at,
        "retired_at": standing.retired_at,
        "retired_reason": standing.retired_reason,
        "failures": standing.failures,
        "failing_since": each.failing_since,
        "failure": standing.failure,
    }


def chapters(asked: Namespace) -> int:
    """The newest Chapters."""
    with open_store() as store:
        found = store.asking.chapters(_series_id(store, asked.key), asked.most)
        now = store.asking.now()
    if asked.json:
        print_json(found)
        return DONE
    rows = ((_published(each, now), each.series or each.key, each.title, each.url or "") for each in found)
    print_table(("PUBLISHED", "SERIES", "CHAPTER", "LINK"), rows, cut=("SERIES", "CHAPTER"), drop=("LINK",))
    return DONE


def _published(each: ChapterFound, now: datetime) -> str:
    if each.published_at is None:
        return f"found {relative(each.found_at, now)}"
    return ("about " if each.approximate else "") + relative(each.published_at, now)


def polls(asked: Namespace) -> int:
    """The poll record."""
    with open_store() as store:
        found = store.asking.attempts(_series_id(store, asked.key), asked.most)
        now = store.asking.now()
    if asked.json:
        print_json(found)
        return DONE
    print_table(
        ("CLAIMED", "SERIES", "HOST", "TRIGGER", "OUTCOME", "STATUS", "NEW", "BYTES", "TOOK", "DETAIL"),
        (
            (
                relative(each.claimed_at, now),
                each.key or "(deleted)",
                each.host,
                each.trigger,
                each.outcome,
                each.status or "-",
                each.new_chapters or "",
                size(each.wire_bytes),
                _took(each),
                each.detail or "",
            )
            for each in found
        ),
        cut=("HOST", "DETAIL"),
        drop=("BYTES", "TRIGGER", "TOOK", "HOST"),
    )
    return DONE


def _took(each: Attempt) -> str:
    return duration(each.ended_at - (each.sent_at or each.claimed_at)) if each.ended_at else "-"


def _series_id(store: Store, key: str | None) -> int | None:
    return None if key is None else store.following.find(word(key)).series_id


def why(asked: Namespace) -> int:
    """Why Series are not being polled."""
    with open_store() as store:
        found, missed, code = each_key("why", asked.keys, lambda key: store.asking.one(store.following.find(key).key))
    if asked.json:
        print_json([*map(reason, found), *missed])
        return code
    for each in found:
        print(f"{each.key}: {each.why.reason}{until(each.why.until, each.standing.now)}")
    return code


def reason(each: Listed) -> dict[str, object]:
    """Why it is not polled just now, for a program."""
    return {
        "key": each.key,
        "why": each.why.reason,
        "until": each.why.until,
        "held": each.why.held,
        "due": each.standing.due,
        "due_at": each.standing.due_at,
    }


def status(asked: Namespace) -> int:
    """A row for each Lane, and the totals."""
    with open_store() as store:
        lanes = [store.asking.lane(site.name) for site in SITES]
        totals = store.asking.totals()
        polling = store.settings.poll_enabled
    if asked.json:
        rows = [{"state": _lane_state(lane, totals.now, polling=polling), **_flat(lane)} for lane in lanes]
        polling = polling and not any(lane.switched_off for lane in lanes)
        print_json({"polling": polling, "lanes": rows, "totals": totals})
        return DONE
    print_table(
        ("LANE", "BEHIND", "DUE", "HELD", "ELIGIBLE", "IN HAND", "HOSTS", "LAST POLL", "STATE"),
        (
            (
                lane.site,
                duration(lane.gauges.behind),
                lane.gauges.due,
                lane.gauges.held,
                lane.gauges.eligible,
                lane.in_hand,
                lane.hosts,
                relative(lane.polled_at, totals.now),
                _lane_state(lane, totals.now, polling=polling),
            )
            for lane in lanes
        ),
        drop=("HOSTS", "IN HAND", "LAST POLL", "ELIGIBLE"),
    )
    print()
    for line in _totals_told(totals):
        print(line)
    return DONE


def lane_is_silent(lane: LaneState, now: datetime) -> bool:
    """Whether its Lane does not run, by its own word."""
    return lane.seen_at is None or now - lane.seen_at > SILENT


def _lane_state(lane: LaneState, now: datetime, *, polling: bool) -> str:
    if not polling:
        return "polling is switched off in this environment"
    if lane.switched_off and not lane_is_silent(lane, now):
        return "polling is switched off"
    if lane.paused_at is not None:
        return f"paused {relative(lane.paused_at, now)}"
    if lane.refused_until is not None:
        return f"refused by its Site{until(lane.refused_until, now)}"
    if lane_is_silent(lane, now):
        seen = f" (last seen {relative(lane.seen_at, now)})" if lane.seen_at else ""
        return f"not running{seen}: `make run` starts it"
    if lane.in_hand:
        return f"polling {lane.in_hand}"
    return "its due Series wait their turn" if lane.gauges.due else "idle: nothing is due"


def _flat(lane: LaneState) -> dict[str, object]:
    gauges = lane.gauges
    return {
        "site": lane.site,
        "eligible": gauges.eligible,
        "due": gauges.due,
        "held": gauges.held,
        "behind": gauges.behind,
        "oldest_held": gauges.oldest_held,
        "oldest_pending": gauges.oldest_pending,
        "in_hand": lane.in_hand,
        "hosts": lane.hosts,
        "paused_at": lane.paused_at,
        "refused_until": lane.refused_until,
        "polled_at": lane.polled_at,
        "seen_at": lane.seen_at,
        "switched_off": lane.switched_off,
    }


def _totals_told(totals: Totals) -> tuple[str, ...]:
    return (
        f"{counted(totals.series, 'Series')}, {totals.bookmarked:,} bookmarked: {totals.never_checked:,} never checked, "
        f"{totals.pending:,} pending, {totals.waiting:,} waiting, {totals.failing:,} failing, {totals.paused:,} paused, "
        f"{totals.retired:,} retired",
        f"{counted(totals.chapters, 'Chapter')} in {size(totals.database_bytes)} of Postgres {totals.postgres}",
    )


def sites(asked: Namespace) -> int:
    """The registry."""
    if asked.json:
        print_json(
            [
                {
                    "site": site.name,
                    "rest": site.rest,
                    "gap": site.gap,
                    "slots": site.slots,
                    "browser": site.browser,
                    "many_hosts": site.many_hosts,
                }
                for site in SITES
            ]
        )
        return DONE
    print_table(
        ("SITE", "REST", "GAP", "SLOTS", "BROWSER", "HOSTS"),
        (
            (
                site.name,
                f"up to {duration(site.rest)}" if site.many_hosts else duration(site.rest),
                duration(site.gap),
                site.slots,
                "yes" if site.browser else "no",
                "many" if site.many_hosts else "one",
            )
            for site in SITES
        ),
    )
    return DONE
