"""status: how every Lane stands, what troubles there are, and the totals."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from datetime import datetime

from lanes.cli.door import open_store
from lanes.cli.parser import DONE
from lanes.cli.silent import how_to_start, lane_is_silent
from lanes.cli.telling import incident_row, place_of
from lanes.cli.words import clean, counted, duration, exactly, print_json, print_table, relative, size, until
from lanes.core.why import NO_SIDECAR, Stop, browser_remedy
from lanes.sites import by_name, sites
from lanes.store import browsing
from lanes.store.asking import Incident, LaneState, LineDown, Totals
from lanes.store.browsing import BrowserState

MOST_OPEN = 20  # open incidents in words; --json has all


def status(asked: Namespace) -> int:
    """A row for each Lane, what is wrong, and the totals."""
    with open_store() as store:
        there = [site.name for site in sites()]
        left_out = sorted(site for site, each in store.asking.followed().items() if each.series and site not in there)
        lanes = [store.asking.lane(site) for site in (*there, *left_out)]
        down, troubles = store.asking.lines_down(), store.asking.incidents(None, only_open=True)
        totals = store.asking.totals()
        browser = browsing.browser(store.database)
        polling = store.settings.poll_enabled
    any_runs = any(not lane_is_silent(lane, totals.now) for lane in lanes)
    if asked.json:
        rows = [
            {
                "state": state_of(lane, totals.now, polling=polling, browser=browser, any_runs=any_runs),
                **_flat(lane),
            }
            for lane in lanes
        ]
        polling = polling and not any(lane.switched_off for lane in lanes)
        print_json(
            {
                "polling": polling,
                "lanes": rows,
                "lines_down": down,
                "incidents": [incident_row(each) for each in troubles],
                "browser": browser,
                "totals": totals,
            }
        )
        return DONE
    _table(lanes, browser, totals.now, polling=polling, any_runs=any_runs)
    print()
    for line in (
        *_troubles(lanes, down, troubles, totals.now),
        *browser_told(browser, _eligible_by_browser(lanes), totals.now),
        *_totals_told(totals),
    ):
        print(line)
    return DONE


def _eligible_by_browser(lanes: Sequence[LaneState]) -> int:
    need_one = {site.name for site in sites() if site.browser}
    return sum(lane.gauges.eligible for lane in lanes if lane.site in need_one)


def browser_told(browser: BrowserState, eligible: int, now: datetime) -> Iterator[str]:
    """How the browser is, where anybody needs it or a sidecar ever ran; `eligible` are the Series that are read through it."""
    if not eligible and browser.heartbeat_at is None and browser.trouble == NO_SIDECAR:
        return
    if browser.trouble is not None:
        remedy = browser_remedy(Stop(browser.trouble, browser.until))
        held = (
            f" {counted(eligible, 'Series')} of browser Sites {'waits' if eligible == 1 else 'wait'} for it."
            if eligible
            else ""
        )
        yield f"{capital(clean(browser.trouble))}{until(browser.until, now)}; {remedy}.{held}"
        return
    version = f" (Chrome {clean(browser.version)})" if browser.version else ""
    if browser.awake:
        yield f"The browser is awake{version}: {counted(browser.pages, 'page')} asked for or in a tab."
    else:
        yield f"The browser sleeps{version}: the first page wakes it."
    if browser.not_held is not None:
        yield f"{capital(clean(browser.not_held))}."


def capital(text: str) -> str:
    """The text as a sentence begins."""
    return text[:1].upper() + text[1:]


def _table(lanes: Sequence[LaneState], browser: BrowserState, now: datetime, *, polling: bool, any_runs: bool) -> None:
    print_table(
        ("LANE", "BEHIND", "DUE", "HELD", "HELD FOR", "ELIGIBLE", "GAP", "IN HAND", "HOSTS", "LAST POLL", "STATE"),
        (
            (
                lane.site,
                duration(lane.gauges.behind),
                lane.gauges.due,
                lane.gauges.held,
                duration(lane.gauges.oldest_held),
                lane.gauges.eligible,
                _gap(lane),
                lane.in_hand,
                lane.hosts.known,
                relative(lane.polled_at, now),
                state_of(lane, now, polling=polling, browser=browser, any_runs=any_runs),
            )
            for lane in lanes
        ),
        drop=("HOSTS", "IN HAND", "LAST POLL", "GAP", "ELIGIBLE", "HELD FOR"),
    )


def _gap(lane: LaneState) -> str:
    gap = max((each for each in (lane.gap, lane.owner_gap) if each is not None), default=None)
    return exactly(gap) if lane.owner_gap is None else f"{exactly(gap)} (your word: {exactly(lane.owner_gap)})"


def state_of(lane: LaneState, now: datetime, *, polling: bool, browser: BrowserState, any_runs: bool = True) -> str:
    """How a Lane is, in words; `any_runs`: it or another was seen lately."""
    if lane.site not in {site.name for site in sites()}:
        return "not in the registry: `lanes sites` tells why"
    if not polling:
        return "polling is switched off in this environment"
    if lane.switched_off and not lane_is_silent(lane, now):
        return "polling is switched off"
    if lane.paused_at is not None:
        return f"paused {relative(lane.paused_at, now)}"
    if lane_is_silent(lane, now):
        seen = f" (last seen {relative(lane.seen_at, now)})" if lane.seen_at else ""
        return f"not running{seen}: {how_to_start(lane.site, any_runs=any_runs)}"
    if lane.refused_until is not None:
        return f"refused by its Site{until(lane.refused_until, now)}"
    if lane.gauges.held and browser.trouble is not None and by_name(lane.site).browser:
        return "waits for the browser"
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
        "gap": lane.gap,
        "owner_gap": lane.owner_gap,
        "in_hand": lane.in_hand,
        "hosts": lane.hosts.known,
        "hosts_blocked": lane.hosts.blocked,
        "hosts_dead": lane.hosts.dead,
        "hosts_refusing": lane.hosts.refusing,
        "hosts_waiting": lane.hosts.waiting,
        "paused_at": lane.paused_at,
        "refused_until": lane.refused_until,
        "polled_at": lane.polled_at,
        "seen_at": lane.seen_at,
        "switched_off": lane.switched_off,
    }


def _troubles(
    lanes: Sequence[LaneState], down: Sequence[LineDown], troubles: Sequence[Incident], now: datetime
) -> Iterator[str]:
    for line in down:
        yield f"Our own line is down at {clean(line.machine)}{_since(line.us_since, now)}: one Poll a minute until it is back."
    for each in troubles[:MOST_OPEN]:
        if each.whose != "us":
            yield f"{place_of(each)}: {_trouble(each)}{_since(each.started_at, now)}."
    if len(troubles) > MOST_OPEN:
        yield f"and {len(troubles) - MOST_OPEN:,} more: `lanes incidents --all` shows them."
    for lane in lanes:
        hosts = lane.hosts
        counts = {
            "blocked by you": hosts.blocked,
            "dead": hosts.dead,
            "refusing": hosts.refusing,
            "waiting": hosts.waiting,
        }
        if any(counts.values()):
            told = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
            yield f"Of {counted(hosts.known, 'host')} of {lane.site}: {told}."


def _trouble(each: Incident) -> str:
    spared = f", {each.spared:,} Series spared" if each.spared else ""
    return f"it refuses{spared}" if each.whose == "refusal" else f"it fails ({clean(each.kind or 'no detail')}){spared}"


def _since(instant: datetime, now: datetime) -> str:
    return f", since {relative(instant, now).removesuffix(' ago')}"


def _totals_told(totals: Totals) -> tuple[str, ...]:
    return (
        f"{counted(totals.series, 'Series')}, {totals.bookmarked:,} bookmarked: {totals.never_checked:,} never checked, "
        f"{totals.pending:,} pending, {totals.waiting:,} waiting, {totals.failing:,} failing, {totals.refused:,} refused alone, "
        f"{totals.distrusted:,} with validators that lie, {totals.paused:,} paused, {totals.retired:,} retired",
        f"{counted(totals.chapters, 'Chapter')} in {size(totals.database_bytes)} of Postgres {totals.postgres}",
    )
