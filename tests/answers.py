"""Claims, answers and documents as values, with good defaults, for tests of pure decisions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from lanes.core.answer import Answer, Response
from lanes.core.blame import Answered
from lanes.core.chapters import Document, Item, Reading, distinct, guids_lie
from lanes.core.circumstances import Circumstances, Known
from lanes.core.claim import Claim, Memory, Trigger
from lanes.core.consequences import Consequence
from lanes.core.outcome import Judgement, body_hash, judge, wants_reading
from lanes.core.pace import HostPace
from lanes.core.settlement import Settlement, decide

STAMP = datetime(2031, 5, 4, 12, tzinfo=UTC)
"""When the Poll was claimed."""

ANSWERED = STAMP + timedelta(seconds=2)
"""When its answer had come."""

REST = timedelta(minutes=8)
URL = "https://host.test/feed"


def a_claim(**facts: Any) -> Claim:
    """The claim of a Series that was read before and is healthy."""
    plain: dict[str, Any] = {
        "series_id": 1,
        "key": "a-series",
        "token": UUID(int=1),
        "trigger": Trigger.ITS_TIME,
        "claimed_at": STAMP,
        "url": URL,
        "host_id": 1,
        "host": "host.test",
        "host_pace": timedelta(seconds=1),
        "pace": HostPace(),
        "rest": REST,
        "news_from": STAMP - timedelta(days=30),
        "good_at": STAMP - timedelta(minutes=9),
        "unconditional_at": STAMP - timedelta(days=1),
        "body_hash": body_hash(b"what was read last time"),
    }
    return Claim(**(plain | facts))


def a_response(status: int = 200, body: bytes = b"a document", **headers: str) -> Response:
    """An answer of the Series' own URL; header names with "_" for "-"."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, named, body, URL, (), timedelta(seconds=0.1))


def an_item(name: str, days: float | None = None, **facts: Any) -> Item:
    """A Chapter with a guid, a title and a link of its own, dated `days` from the Poll, or undated."""
    published_at = None if days is None else STAMP + timedelta(days=days)
    plain: dict[str, Any] = {"guid": f"guid {name}", "title": f"title {name}", "link": f"https://host.test/{name}"}
    return Item(**(plain | {"published_at": published_at} | facts))


def a_document(*items: Item, **facts: Any) -> Document:
    return Document(items, **facts)


def known(*items: Item, guid_alone: bool = True) -> Known:
    """What the database knows once these items of one earlier document are stored."""
    guid_alone = guid_alone and not guids_lie(items)
    return Known(frozenset(each for _, ids in distinct(items, guid_alone=guid_alone) for each in ids), bool(items))


def judged(
    answer: Answer, reading: Reading | None = None, claim: Claim | None = None, now: datetime = ANSWERED
) -> Judgement:
    """The judgement of an answer, its document read only where it wants reading."""
    claim = claim or a_claim()
    return judge(answer, reading if wants_reading(answer, claim) else None, claim, now)


def settled(
    answer: Answer,
    reading: Reading | None = None,
    claim: Claim | None = None,
    before: Known | None = None,
    **around: Any,
) -> Settlement:
    """The whole decision about one answer: judged, then decided."""
    claim = claim or a_claim()
    plain: dict[str, Any] = {
        "now": ANSWERED,
        "chance": 0.5,
        "site_rest": None,
        "host": claim.pace,
        "interval": claim.host_pace,
    }
    circumstances = Circumstances(**(plain | around))
    return decide(claim, judged(answer, reading, claim, circumstances.now), before or Known(), circumstances)


NOT_MODIFIED = replace(a_response(304), conditional=True)
"""An answer to a Series' own validators."""

C = TypeVar("C", bound=Consequence)


def a_quiet_claim(**facts: Any) -> Claim:
    """The claim of a Series whose host remembers that it answered well: one more good answer says nothing new."""
    return a_claim(**({"answers": (Answered(1),)} | facts))


def remembering(**facts: Any) -> Claim:
    """A quiet claim with this in its `Memory`."""
    return a_quiet_claim(memory=Memory(**facts))


def followed(
    answer: Answer,
    claim: Claim | None = None,
    reading: Reading | None = None,
    before: Known | None = None,
    **around: Any,
) -> tuple[Consequence, ...]:
    """What else follows from an answer; unless told otherwise its document has two Chapters, and both are known."""
    two = an_item("1", -2), an_item("2", -1)
    reading, before = reading or a_document(*two), before or known(*two)
    return settled(answer, reading, claim or a_quiet_claim(), before, **around).consequences


def only(kind: type[C], found: tuple[Consequence, ...]) -> C:
    """The one consequence of this kind."""
    (one,) = (each for each in found if isinstance(each, kind))
    return one
