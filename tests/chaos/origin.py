"""Was any host asked too soon, by its own record?

Owns the rules as a host would put them.  Refuses to own: what the poll record alone can prove (`lanes audit`).  Must never break: nothing
is excused but by what is counted and printed, and nothing is judged across a move of the clock.

By arrivals alone nobody can judge to the millisecond: a loaded machine delivers some requests late, and then the next seems early.  But a
worker writes down when it sent, never early, and the next request arrives no sooner than its own claim.  So an arrival is held against the
written instant of the request before, exactly; two requests of one Poll against each other's.  Only where the earlier one's worker was
killed before it wrote anything down is there a TOLERANCE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from .events import Events
from .seen import LEASE, Seen
from .world import Told

INTERVAL = 1.0
EXACT = 0.002
"""Seconds by which the database's clock and a worker's monotonic time may drift apart within one Poll, as in `lanes audit`."""
TOLERANCE = 0.25
"""Seconds by which a request of a killed worker may have arrived late."""
HANGING_UP = 0.1
"""Seconds in which a host notices that its client has hung up."""
WINDOW = 900.0
"""The first window after a refusal; later ones are longer."""
ROBOTS = "/robots.txt"
_JUDGED = frozenset({"failed", "asked to wait", "refused", "robots", "suspiciously empty", "unchanged", "new"})
_GOOD = frozenset({"unchanged", "new", "feed found"})


@dataclass(slots=True)
class Verdict:
    """`offences` in words; `counts` is what was judged and what was excused."""

    offences: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    delays: list[float] = field(default_factory=list)
    worst_swallowed: float = 0.0


def judged(hosts: dict[str, list[Seen]], told: list[Told], crawl_delays: dict[str, float], events: Events) -> Verdict:
    """Everything that the origin can say about us."""
    verdict = Verdict()
    for host, seen in hosts.items():
        verdict.delays += [each.delay for each in seen if each.delay is not None]
        verdict.counts["requests"] += len(seen)
        verdict.counts["of workers that were killed"] += sum(each.row is None for each in seen)
        _spacing(host, seen, crawl_delays.get(host), events, verdict)
        _one_at_a_time(host, seen, events, verdict)
        _waits(host, seen, [each for each in told if each.host == host], events, verdict)
    return verdict


def _spacing(host: str, seen: list[Seen], crawl_delay: float | None, events: Events, verdict: Verdict) -> None:
    known = _crawl_delay_known_at(seen)
    for earlier, later in pairwise(seen):
        if not events.unmoved(min(earlier.began, later.began), later.arrived):
            verdict.counts["pairs across a move of the clock"] += 1
            continue
        binds = crawl_delay is not None and known is not None and known <= later.began
        needed = max(INTERVAL, crawl_delay or 0) if binds else INTERVAL
        verdict.counts["pairs held to a crawl delay" if binds else "pairs held to the interval"] += 1
        apart = later.arrived - earlier.arrived
        if apart >= needed:
            continue
        if _sent_in_order(earlier, later, needed):
            verdict.counts["pairs that delivery brought nearer"] += 1
            verdict.worst_swallowed = max(verdict.worst_swallowed, needed - apart)
        else:
            verdict.offences.append(f"{host}: {apart:.3f} s apart, {needed} s needed: {_told(earlier, later, events)}")


def _sent_in_order(earlier: Seen, later: Seen, needed: float) -> bool:
    if earlier.sent is None or earlier.row is None:
        return later.arrived - earlier.arrived >= needed - TOLERANCE
    if later.sent is not None and later.row is not None and later.row.token == earlier.row.token:
        return later.sent - earlier.sent >= needed - EXACT
    return later.arrived - earlier.sent >= needed - EXACT


def _crawl_delay_known_at(seen: list[Seen]) -> float | None:
    """When what robots.txt says was settled."""
    settled = (
        each.settled
        for each in seen
        if each.visit.path == ROBOTS and each.visit.status == 200 and each.settled and each.visit.whole
    )
    return next(settled, None)


def _one_at_a_time(host: str, seen: list[Seen], events: Events, verdict: Verdict) -> None:
    longest = None
    for later in seen:
        if longest is not None and later.arrived < longest.ended:
            if not events.unmoved(min(longest.began, later.began), later.arrived):
                verdict.counts["overlaps across a move of the clock"] += 1
            elif longest.ended - later.arrived <= HANGING_UP:
                verdict.counts["overlaps while a client hung up"] += 1
            elif later.arrived - longest.arrived >= LEASE - HANGING_UP:
                verdict.counts["overlaps after a lease ran out"] += 1
            else:
                verdict.offences.append(f"{host}: two at once: {_told(longest, later, events)}")
        if longest is None or later.ended > longest.ended:
            longest = later


def _waits(host: str, seen: list[Seen], told: list[Told], events: Events, verdict: Verdict) -> None:
    answered = [(each, word) for word in told if (each := _answered_by(seen, word)) is not None]
    windows = [*_named_waits(answered, verdict), *_refusals(seen, answered, verdict)]
    for why, path, begins, ends in windows:
        for each in seen:
            asked = begins < each.arrived < ends - EXACT
            if asked and path in (None, each.visit.path) and events.unmoved(begins, each.arrived):
                verdict.offences.append(f"{host}{path or ''}: asked at {_at(each.arrived, events)} though {why}")


def _answered_by(seen: list[Seen], word: Told) -> Seen | None:
    """The request that was told so, where its Poll was settled."""
    asked = [each for each in seen if each.visit.path == word.path and each.arrived <= word.at + EXACT]
    last = asked[-1] if asked else None
    if last is None or last.row is None or last.settled is None or last.row.outcome not in _JUDGED:
        return None
    return last


Window = tuple[str, str | None, float, float]


def _named_waits(answered: list[tuple[Seen, Told]], verdict: Verdict) -> Iterator[Window]:
    """A 429 stops its host, a 503 its URL."""
    for each, word in answered:
        if word.seconds is not None and each.settled is not None:
            verdict.counts["waits that were named"] += 1
            path = word.path if word.status == 503 and word.path != ROBOTS else None
            why = f"{word.status} of {word.path} had asked for {word.seconds} s"
            yield why, path, each.settled, max(word.at, each.ended) + word.seconds


def _refusals(seen: list[Seen], answered: list[tuple[Seen, Told]], verdict: Verdict) -> Iterator[Window]:
    """A 403 stops its URL; two of different URLs with no good read between stop their host."""
    refused = {id(each) for each, word in answered if word.status == 403 and word.path != ROBOTS}
    last: Seen | None = None
    for each in seen:
        if each.row is not None and each.row.outcome in _GOOD:
            last = None
        if id(each) not in refused or each.settled is None:
            continue
        verdict.counts["refusals"] += 1
        yield f"403 of it at {each.arrived:.3f}", each.visit.path, each.settled, each.settled + WINDOW - HANGING_UP
        if last is not None and last.visit.path != each.visit.path:
            verdict.counts["refusals that stopped a host"] += 1
            why = f"403 of {last.visit.path} and {each.visit.path}"
            yield why, None, each.settled, each.settled + WINDOW - HANGING_UP
        last = each


def _at(instant: float, events: Events) -> str:
    return f"{instant - events.began:.3f}"


def _told(earlier: Seen, later: Seen, events: Events) -> str:
    return " then ".join(
        f"{each.visit.path} {each.visit.status} at {_at(each.arrived, events)}"
        f" (sent {'?' if each.sent is None else _at(each.sent, events)}, ended {_at(each.ended, events)}, "
        f"{'killed' if each.row is None else each.row.outcome})"
        for each in (earlier, later)
    )
