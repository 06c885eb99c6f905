"""The settle decision: from a judged answer to everything that is written down (DESIGN 4, steps 4 and 5).

Owns what follows from a meaning: schedule, counters, validators, waits, which Chapters are stored and which are news.  Refuses to own:
writing it.  Must never break: a failure or a refusal never writes content and never brings a fetch forward.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, assert_never

from lanes.core import blame, consequences, pace, schedule, urls
from lanes.core.chapters import LIST_MISSING, NO_HINTS, Document, Hints, Item, distinct, guids_lie
from lanes.core.circumstances import Circumstances, Known, Numbered
from lanes.core.claim import Claim, Validators
from lanes.core.consequences import Consequence, Retire
from lanes.core.outcome import (
    AskedToWait,
    Blocked,
    Disallowed,
    Failed,
    Judgement,
    Label,
    PutBack,
    Read,
    Refused,
    Unchanged,
)
from lanes.core.pace import HostPace, Signal
from lanes.core.reissues import published_again, words_of

NO_LIST: Final = "no list, but its newest number is known"
"""How a good Poll is told whose document had lost its list: nothing is new, and yet something is wrong."""

AGAIN: Final = "Chapters of known titles under new ids: stored, and not told again"
"""How a Poll is told that found such Chapters: nothing goes quiet silently."""


@dataclass(frozen=True, slots=True)
class NewChapter:
    """A Chapter to be stored; `announced` when it is news and neither first sight, back-fill nor published again."""

    item: Item
    identities: tuple[bytes, ...]
    announced: bool


@dataclass(frozen=True, slots=True)
class Wait:
    """Until when something waits, and why, in words."""

    until: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Settlement:
    """Everything a settled Poll writes.  `validators` None keeps what is stored; `forget` drops it (the next Poll is unconditional).

    `url` is asked first from now on, where it is not None.  `chapters` are in document order; `seen` are all identities not known before,
    those of the new Chapters and those that known Chapters have gained.  `kind` is that of a failure; `spared`: its Site is to blame.
    """

    label: Label
    detail: str | None
    next_check_at: datetime
    rest: timedelta | None
    host: HostPace
    host_before: HostPace = field(default_factory=HostPace)
    failures: int = 0
    refusals: int = 0
    good: bool = False
    gone: bool = False
    forget: bool = False
    unconditional: bool = False
    validators: Validators | None = None
    body_hash: bytes | None = None
    document: Document | None = None
    url: str | None = None
    hints: Hints = NO_HINTS
    guid_alone: bool = True
    chapters: tuple[NewChapter, ...] = ()
    seen: tuple[bytes, ...] = ()
    series_wait: Wait | None = None
    host_wait: Wait | None = None
    unavailable_url: bytes | None = None
    excerpt: str = ""
    kind: str | None = None
    spared: bool = False
    consequences: tuple[Consequence, ...] = ()
    changed: dict[str, list[object]] = field(default_factory=dict)


def decide(claim: Claim, judged: Judgement, known: Known, around: Circumstances) -> Settlement:
    """The settlement of one judged answer; a PutBack is not one and must not come here."""
    host = pace.after(around.host, judged.signal, around.latency, around.now, around.host_floor)
    series_wait = _retry_after(judged, around.now) if judged.retry_after is not None else None
    match judged.meaning:
        case Unchanged(how=how, validators=validators):
            settled = _good(claim, judged, around, host, how, validators)
        case Read():
            settled = _document(claim, judged, judged.meaning, known, around, host)
        case Failed():
            settled = _failed(claim, around, host, Label.FAILED, judged.meaning)
        case Refused(detail=detail):
            settled = _refused(claim, around, host, detail)
            series_wait = _later(series_wait, settled.series_wait)
        case AskedToWait():
            settled, series_wait = _asked_to_wait(claim, judged, judged.meaning, around, host, series_wait)
        case Blocked(detail=detail):
            settled = _held_back(claim, around, host, Label.BLOCKED, detail)
            series_wait = Wait(around.now + schedule.DISALLOWED, detail)
        case Disallowed(detail=detail):
            settled = _held_back(claim, around, host, Label.DISALLOWED, detail)
            series_wait = Wait(around.now + schedule.DISALLOWED, detail)
        case PutBack():
            raise ValueError("a Poll that was put back is not settled")
        case _:
            assert_never(judged.meaning)
    return _with(settled, series_wait, judged, known, claim, around)


def _rest(claim: Claim, around: Circumstances) -> timedelta:
    if claim.rest is not None:
        return claim.rest
    return around.site_rest if around.site_rest is not None else schedule.INITIAL


def _good(
    claim: Claim,
    judged: Judgement,
    around: Circumstances,
    host: HostPace,
    detail: str | None,
    validators: Validators | None = None,
) -> Settlement:
    """Nothing new."""
    hints = _slowed(claim.hints, judged.max_age)
    rest, due = _adapted(claim, around, hints, new=None if claim.news_from is None else False)
    return Settlement(
        Label.UNCHANGED,
        detail,
        due,
        rest,
        host,
        good=True,
        guid_alone=claim.guid_alone,
        hints=claim.hints,
        validators=validators,
    )


def _adapted(
    claim: Claim, around: Circumstances, hints: Hints, *, new: bool | None
) -> tuple[timedelta | None, datetime]:
    """The stored interval and the next check after a good answer.  A first sight (`new` None) says nothing about liveliness.
    Sites without an adaptive schedule are due again by their Rest alone."""
    if claim.rest is None:
        return None, claim.claimed_at
    rest = claim.rest if new is None else schedule.shortened(claim.rest) if new else schedule.lengthened(claim.rest)
    return rest, schedule.next_check(claim.claimed_at, rest, hints, series_id=claim.series_id, chance=around.chance)


def _slowed(hints: Hints, max_age: timedelta | None) -> Hints:
    every = max((each for each in (hints.every, max_age) if each is not None), default=None)
    return Hints(every, hints.skip_hours, hints.skip_days)


def _document(
    claim: Claim, judged: Judgement, read: Read, known: Known, around: Circumstances, host: HostPace
) -> Settlement:
    document = read.document
    if document.latest is not None and not document.items:
        return _without_list(claim, judged, document, document.latest, known, around, host)
    guid_alone = claim.guid_alone and not guids_lie(document.items)
    listed = distinct(document.items, guid_alone=guid_alone)
    if not listed and known.any:
        empty = Failed("no Chapter where some were known", "empty", reread=True)
        return _failed(claim, around, host, Label.EMPTY, empty)
    items = tuple((item, ids) for item, ids in listed if not item.locked)
    fresh = [(item, ids) for item, ids in items if known.identities.isdisjoint(ids)]
    oldest = _oldest_known(items, known, around.now)
    again = published_again(listed, known.identities, known.words)
    told = _Told(known.numbers)
    chapters = tuple(
        NewChapter(
            item,
            ids,
            announced=claim.news_from is not None
            and not _back_fill(item, oldest)
            and words_of(item) not in again
            and told.is_news(item),
        )
        for item, ids in fresh
    )
    hints = _slowed(document.hints, judged.max_age)
    first_sight = claim.news_from is None
    rest, due = _adapted(claim, around, hints, new=None if first_sight else bool(chapters))
    return Settlement(
        Label.NEW if chapters else Label.UNCHANGED,
        "first sight" if first_sight else AGAIN if again else None,
        due,
        rest,
        host,
        good=True,
        validators=read.validators,
        forget=read.validators is None,
        body_hash=read.body_hash,
        document=document,
        hints=hints,
        guid_alone=guid_alone,
        chapters=chapters,
        seen=tuple(identity for _, ids in items for identity in ids if identity not in known.identities),
    )


def _without_list(
    claim: Claim,
    judged: Judgement,
    document: Document,
    latest: str,
    known: Known,
    around: Circumstances,
    host: HostPace,
) -> Settlement:
    """A document that names its newest number and shows no list this time: an identity is never made from a number.  What else it says
    of its Series counts."""
    if claim.news_from is not None and known.latest is not None and Decimal(latest) <= known.latest:
        return replace(_good(claim, judged, around, host, NO_LIST), document=document)
    missing = Failed(f"its list of Chapters was not there this time, up to number {latest}", LIST_MISSING, reread=True)
    return _failed(claim, around, host, Label.FAILED, missing)


def _oldest_known(items: tuple[tuple[Item, tuple[bytes, ...]], ...], known: Known, now: datetime) -> datetime | None:
    """The date of the oldest already known item of the same document; dates in the future take no part."""
    dates = (
        item.published_at
        for item, ids in items
        if item.published_at is not None and item.published_at <= now and not known.identities.isdisjoint(ids)
    )
    return min(dates, default=None)


class _Told:
    """Which volumes, numbers and labels were told lately, on a Site that names them itself (DESIGN 4.4)."""

    def __init__(self, numbers: frozenset[Numbered] | None) -> None:
        self._numbers = None if numbers is None else set(numbers)

    def is_news(self, item: Item) -> bool:
        """False for a second Chapter of the same; a Chapter without a number is always news."""
        if self._numbers is None or item.number is None:
            return True
        numbered = (item.volume, item.number, item.label)
        is_news = numbered not in self._numbers
        self._numbers.add(numbered)
        return is_news


def _back_fill(item: Item, oldest_known: datetime | None) -> bool:
    return oldest_known is not None and item.published_at is not None and item.published_at < oldest_known


def _failed(claim: Claim, around: Circumstances, host: HostPace, label: Label, failed: Failed) -> Settlement:
    """Counted, unless its Site is to blame: then it rests an hour and costs nothing."""
    view = consequences.site_view(claim, failed.kind)
    failures = claim.failures + (not view.spared)
    wait = (
        max(_rest(claim, around), blame.SPARED_REST)
        if view.spared
        else schedule.after_failure(_rest(claim, around), failures)
    )
    due = schedule.next_check(claim.claimed_at, wait, claim.hints, series_id=claim.series_id, chance=around.chance)
    return Settlement(
        label,
        failed.detail,
        due,
        claim.rest,
        host,
        failures=failures,
        refusals=claim.refusals,
        gone=failed.gone and not view.spared,
        forget=failed.reread,
        guid_alone=claim.guid_alone,
        hints=claim.hints,
        excerpt=failed.excerpt,
        kind=failed.kind,
        spared=view.spared,
        consequences=consequences.of_failure(claim, around, view, failures, failed.detail, gone=failed.gone),
    )


def _held_back(claim: Claim, around: Circumstances, host: HostPace, label: Label, detail: str) -> Settlement:
    """Neither good nor a failure: interval and counters stay, the next check is a Rest away."""
    due = schedule.next_check(
        claim.claimed_at, _rest(claim, around), claim.hints, series_id=claim.series_id, chance=around.chance
    )
    return Settlement(
        label,
        detail,
        due,
        claim.rest,
        host,
        failures=claim.failures,
        refusals=claim.refusals,
        guid_alone=claim.guid_alone,
        hints=claim.hints,
    )


def _refused(claim: Claim, around: Circumstances, host: HostPace, detail: str) -> Settlement:
    held = _held_back(claim, around, host, Label.REFUSED, detail)
    refusals = claim.refusals + 1
    wait = Wait(around.now + schedule.after_refusal(refusals), f"its URL was refused: {detail}")
    return replace(held, refusals=refusals, series_wait=wait)


def _asked_to_wait(
    claim: Claim,
    judged: Judgement,
    meaning: AskedToWait,
    around: Circumstances,
    host: HostPace,
    series_wait: Wait | None,
) -> tuple[Settlement, Wait | None]:
    held = _held_back(claim, around, host, Label.WAIT, meaning.detail)
    if not meaning.whole_host:
        return held, series_wait
    wait = judged.retry_after if judged.retry_after is not None else host.pace
    return replace(held, host_wait=Wait(around.now + wait, f"the host asked to wait: {meaning.detail}")), None


def _retry_after(judged: Judgement, now: datetime) -> Wait | None:
    return (
        None if judged.retry_after is None else Wait(now + judged.retry_after, "the Site asked to wait (Retry-After)")
    )


def _later(one: Wait | None, other: Wait | None) -> Wait | None:
    waits = [wait for wait in (one, other) if wait is not None]
    return max(waits, key=lambda wait: wait.until, default=None)


def _with(
    settled: Settlement,
    series_wait: Wait | None,
    judged: Judgement,
    known: Known,
    claim: Claim,
    around: Circumstances,
) -> Settlement:
    found = consequences.of_good(claim, judged, known, around) if settled.good else settled.consequences
    return replace(
        settled,
        consequences=(*found, *consequences.of_pace(claim, judged, settled.host, around)),
        host_wait=_later(_dead_wait(settled, judged, around) or settled.host_wait, _allowance(judged, around.now)),
        host_before=around.host,
        url=_asked_first(claim, judged.moved_to) if settled.good else None,
        series_wait=series_wait,
        unavailable_url=judged.unavailable_url,
        unconditional=around.unconditional,
        changed=_changed(settled, claim, around),
    )


def _dead_wait(settled: Settlement, judged: Judgement, around: Circumstances) -> Wait | None:
    """A dead host is probed once an hour, by whichever of its Series is due."""
    if judged.signal is not Signal.TROUBLED or not pace.is_dead(settled.host):
        return None
    return Wait(around.now + pace.DEAD_PROBE, "the host does not answer: asked once an hour")


def _allowance(judged: Judgement, now: datetime) -> Wait | None:
    """A host that says that its allowance for us is used up is asked again when it gives again, whatever this answer was."""
    return None if judged.used_up is None else Wait(now + judged.used_up, "its allowance for us is used up")


def _asked_first(claim: Claim, moved_to: str | None) -> str | None:
    """A permanent move inside one host (scheme, slash, www) that led to a good answer is asked first from then on (DESIGN 4.3 Hops),
    unless the owner took that very move back."""
    if moved_to is None or moved_to in (claim.url, claim.memory.stays_off):
        return None
    return moved_to if urls.is_same_place(claim.url, moved_to) else None


def _changed(settled: Settlement, claim: Claim, around: Circumstances) -> dict[str, list[object]]:
    """What the Poll changes and what stood there before, for the poll record (durations in seconds)."""
    pairs: dict[str, tuple[object, object]] = {
        "failures": (claim.failures, settled.failures),
        "refusals": (claim.refusals, settled.refusals),
        "rest": (_seconds(claim.rest), _seconds(settled.rest)),
        "host pace": (_seconds(around.host.pace), _seconds(settled.host.pace)),
        "host backoffs": (around.host.backoffs, settled.host.backoffs),
    }
    changed = {name: list(pair) for name, pair in pairs.items() if pair[0] != pair[1]}
    if any(isinstance(each, Retire) for each in settled.consequences):
        changed["retired"] = [False, True]
    return changed


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()
