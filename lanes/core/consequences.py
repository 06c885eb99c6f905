"""What else follows from a Poll, beyond schedule, counters and Chapters: a closed union, rare by nature.

Owns which of them follow.  Refuses to own: their rules (`moving`, `retirement`, `blame`, `refusal`, `pace`) and writing them
(`lanes.store`).  Must never break: each is written in the transaction that settles its Poll, fenced on the same lease.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lanes.core import blame, moving, pace, retirement
from lanes.core.blame import Answered, SiteFails, SiteHeals, SiteTurns
from lanes.core.circumstances import Circumstances, Known
from lanes.core.claim import Claim, Moving, Validators
from lanes.core.outcome import AskedToWait, Blocked, Disallowed, Judgement, Read, Refused, Unchanged, url_hash
from lanes.core.pace import HostPace, RefusedPace, Signal
from lanes.core.refusal import Read as Heard


@dataclass(frozen=True, slots=True)
class Retire:
    """The Series is given up; its Readers are told why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Revive:
    """A retired Series gave a good answer to its weekly look: it lives again, its Readers are told; not where any of `led_to`,
    where permanent redirects led on the way, is another Series."""

    led_to: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gather:
    """What is known of a move so far; None: nothing any more."""

    moving: Moving | None


@dataclass(frozen=True, slots=True)
class Adopt:
    """The Series moves to `url`; where that is a Series already, this one retires and its Bookmarks are copied."""

    url: str


@dataclass(frozen=True, slots=True)
class Distrust:
    """The Series' validators lied or never match, in words; None: they are trusted again."""

    reason: str | None


@dataclass(frozen=True, slots=True)
class Remember:
    """This Poll answered last of these distinct Series of its host, whose answers may have changed since the claim."""

    answers: tuple[Answered, ...]


@dataclass(frozen=True, slots=True)
class Spare:
    """The open incident of its Site spares the Series this failure."""


@dataclass(frozen=True, slots=True)
class Heed:
    """A read that may open, double or reset the refusal window of its host, or of its Lane on a Site of one host; `learnt` where a window
    opens by it."""

    read: Heard
    learnt: RefusedPace


@dataclass(frozen=True, slots=True)
class Learn:
    """The interval at which the host refused us, to be kept from for a long time."""

    refused: RefusedPace


@dataclass(frozen=True, slots=True)
class Bury:
    """The host is dead, or (`dead` False) answers again."""

    dead: bool


@dataclass(frozen=True, slots=True)
class Ease:
    """A host on the way answered, by a redirect: its interval as after any healthy answer."""

    host_id: int
    before: HostPace
    after: HostPace


@dataclass(frozen=True, slots=True)
class Forbid:
    """Our own guard, or robots.txt, says no: Readers and owner are told once."""

    detail: str


OfSeries = Retire | Revive | Gather | Adopt | Distrust | Forbid
OfHost = Remember | SiteFails | SiteHeals | Spare | Heed | Learn | Bury | Ease
Consequence = OfSeries | OfHost


@dataclass(frozen=True, slots=True)
class SiteView:
    """The last answers of a host with this Poll's, what they say anew, and whether the Site is to blame for this failure."""

    answers: tuple[Answered, ...]
    turns: SiteTurns | None
    spared: bool


def site_view(claim: Claim, kind: str | None) -> SiteView:
    """`kind` of failure, None: a good answer.  What is retired, or was found at the end of a chain, says nothing about its host."""
    if claim.memory.retired or claim.resume is not None:
        return SiteView(claim.answers, None, spared=False)
    answers = blame.answers_after(claim.answers, claim.series_id, kind, claim.claimed_at)
    turns = blame.site(answers, claim.failing)
    match turns:
        case SiteFails(kind=theirs):
            return SiteView(answers, turns, spared=kind == theirs)
        case SiteHeals():
            return SiteView(answers, turns, spared=False)
        case None:
            return SiteView(answers, None, spared=kind is not None and kind == claim.failing)


def of_good(claim: Claim, judged: Judgement, known: Known, around: Circumstances) -> tuple[Consequence, ...]:
    """After a good answer, in the order in which they are written."""
    found = [*_of_site(claim, site_view(claim, None))]
    if (around.refusing or claim.memory.refusing) and around.sent_at is not None:
        found.append(_heed(claim, around, around.sent_at, refused=False))
    if claim.memory.retired:
        found.append(Revive(judged.led_to))
    else:
        found += _of_move(claim, judged, known, around)
    return (*found, *_of_validators(claim, judged, around))


def of_failure(
    claim: Claim, around: Circumstances, view: SiteView, failures: int, detail: str, *, gone: bool
) -> tuple[Consequence, ...]:
    """After a failure; one that its Site is to blame for, or of what is retired already, retires nothing."""
    found = [*_of_site(claim, view)]
    if view.spared or claim.memory.retired:
        return tuple(found)
    if gone and retirement.gone_twice(claim.memory.gone_at, around.now):
        found.append(Retire(retirement.GONE))
    elif retirement.retires(failures, claim.failing_since, around.now):
        found.append(Retire(retirement.failed_for_good(failures, detail)))
    return tuple(found)


def of_pace(claim: Claim, judged: Judgement, host: HostPace, around: Circumstances) -> tuple[Consequence, ...]:
    """What the host's own answer does beyond its interval: refusals heeded, but not of a weekly look, what was refused
    learnt, death and its end."""
    found: list[Consequence] = []
    match judged.meaning:
        case Refused() if around.sent_at is not None and not claim.memory.retired:
            found.append(_heed(claim, around, around.sent_at, refused=True))
        case AskedToWait(whole_host=True) if judged.unavailable_url is None:
            found.append(Learn(_learnt(around)))
        case Blocked(detail=detail) | Disallowed(detail=detail):
            found.append(Forbid(detail))
        case _:
            pass
    for host_id, before in around.passed:
        eased = pace.after(before, Signal.HEALTHY, None, around.now)
        if (eased.pace, eased.backoffs) != (before.pace, before.backoffs):
            found.append(Ease(host_id, before, eased))
    # The claim remembers of its own host whether it is dead; where a hop led elsewhere, only the answering host's pace tells.
    dead, was_dead = pace.is_dead(host), pace.is_dead(around.host)
    if dead != was_dead or dead != claim.memory.dead:
        found.append(Bury(dead))
    return tuple(found)


def _of_site(claim: Claim, view: SiteView) -> list[Consequence]:
    found: list[Consequence] = [] if view.answers is claim.answers else [Remember(view.answers)]
    if view.turns is not None:
        found.append(view.turns)
    elif view.spared:
        found.append(Spare())
    return found


def _heed(claim: Claim, around: Circumstances, sent_at: datetime, *, refused: bool) -> Heed:
    return Heed(Heard(refused, url_hash(claim.url), sent_at), _learnt(around))


def _learnt(around: Circumstances) -> RefusedPace:
    return pace.refused_at(around.host, around.interval, around.now, around.host_floor)


def _of_move(claim: Claim, judged: Judgement, known: Known, around: Circumstances) -> list[Consequence]:
    memory, to = claim.memory, judged.moved_to
    if to is None or to == memory.stays_off:
        return [] if memory.moving is None else [Gather(None)]
    gathered = moving.after(memory.moving, to, around.now, shares=_shares(judged, known))
    if moving.is_proved(gathered, around.now):
        return [Adopt(to)]
    return [] if gathered == memory.moving else [Gather(gathered)]


def _shares(judged: Judgement, known: Known) -> bool:
    """Whether what came was known: a 304 and the same bytes are; of a document, some of it, or there was nothing to know yet."""
    match judged.meaning:
        case Read():
            return not known.any or bool(known.identities)
        case _:
            return True


def _of_validators(claim: Claim, judged: Judgement, around: Circumstances) -> list[Consequence]:
    """Validators that lie (CASES C2) or never match (C3) are marked; a new body under a new validator clears them."""
    before = claim.validators
    match judged.meaning:
        case Read(validators=now) if before is not None and claim.body_hash is not None:
            if _same(before, now) and around.unconditional and not claim.memory.distrusted:
                return [
                    Distrust(
                        "its server would have said that nothing changed: its validators stayed the same while its body changed"
                    )
                ]
            return [Distrust(None)] if claim.memory.distrusted and not _same(before, now) else []
        case Unchanged(validators=now) if now is not None and not around.unconditional and _same(before, now):
            return [
                Distrust("its server sends the whole document although it has not changed: its validators never match")
            ]
        case _:
            return []


def _same(before: Validators | None, now: Validators | None) -> bool:
    return (
        before is not None and now is not None and (before.etag, before.last_modified) == (now.etag, now.last_modified)
    )
