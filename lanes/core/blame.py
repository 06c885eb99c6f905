"""Whose fault a failure is: ours (the line of one machine), the Site's, or the Series' own (DESIGN 4.4).

Owns the proof of a line, the last answers of a host, and what both say.  Refuses to own: counting, giving back, telling anybody.
Must never break: a Series is charged only for what is neither ours nor its Site's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from lanes.core.answer import Answer, Forbidden, NoResponse, Postponed, Response, Sent

LAST_ANSWERS = 10
"""Answers of distinct Series by which a host is judged: few enough to see an outage within one round, many enough not to trip on two."""
FEWEST_ANSWERS = 3
"""Below this a Site has too few Series to be told from its Series."""
SPARED_REST = timedelta(hours=1)
"""How long a failure rests that its Site is to blame for: an outage is looked at once an hour by each of its Series."""


@dataclass(frozen=True, slots=True)
class Answered:
    """How a Series of a host answered last: `kind` of failure and since which claim it has failed like that, or None and None: good."""

    series_id: int
    kind: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class SiteFails:
    """More than half of a host's last answers failed alike: `kind`, and the Series that did, with the claim from which each is spared."""

    kind: str
    spared: tuple[tuple[int, datetime], ...]


@dataclass(frozen=True, slots=True)
class SiteHeals:
    """Half or fewer of the last answers still fail in the kind of the open incident."""


SiteTurns = SiteFails | SiteHeals


def proof(answer: Answer) -> bool | None:
    """Whether an attempt proved that our own line works; None where none was made.

    Proof is any HTTP answer, a refused connection, a TLS alert, or a name that is known not to exist.
    """
    match answer:
        case Response():
            return True
        case NoResponse(line_proved=proved):
            return proved or _answered(answer.requests)
        case Forbidden() | Postponed():
            return True if _answered(answer.requests) else None
        case _:
            assert_never(answer)


def _answered(requests: tuple[Sent, ...]) -> bool:
    return any(sent.status is not None for sent in requests)


def answers_after(
    answers: tuple[Answered, ...], series_id: int, kind: str | None, claimed_at: datetime
) -> tuple[Answered, ...]:
    """The last answers of a host once one more has come.  The same tuple where nothing changes that anybody could tell.

    The since of a failure is that of the first of its kind in a row.
    """
    if kind is None and len(answers) == LAST_ANSWERS and all(each.kind is None for each in answers):
        return answers
    mine = next((each for each in answers if each.series_id == series_id), None)
    if mine is not None and mine.kind == kind and (len(answers) < LAST_ANSWERS or mine is answers[-1]):
        return answers
    since = None if kind is None else mine.since if mine is not None and mine.kind == kind else claimed_at
    others = tuple(each for each in answers if each.series_id != series_id)
    return (*others, Answered(series_id, kind, since))[-LAST_ANSWERS:]


def site(answers: tuple[Answered, ...], failing: str | None) -> SiteTurns | None:
    """What the last answers of a host say about it, its open incident's kind being `failing`; None: nothing new."""
    kinds = [each.kind for each in answers]
    if failing is not None:
        return SiteHeals() if 2 * kinds.count(failing) <= len(kinds) else None
    if len(kinds) < FEWEST_ANSWERS:
        return None
    for kind in dict.fromkeys(kind for kind in kinds if kind is not None):
        if 2 * kinds.count(kind) > len(kinds):
            spared = tuple(
                (each.series_id, each.since) for each in answers if each.kind == kind and each.since is not None
            )
            return SiteFails(kind, spared)
    return None
