"""What an answer means: one closed union, one pure judgement (DESIGN 4.3).

Owns the table of answers.  Refuses to own: what follows from a meaning (`settlement`).  Must never break: status is judged before the
body, and nothing but a 304 to our own validators or a recognised document is ever "nothing new".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from itertools import pairwise
from typing import assert_never

from lanes.core import challenge, headers
from lanes.core.answer import Answer, Forbidden, NoResponse, Postponed, Response, Resume, Trouble
from lanes.core.chapters import Document, NotRecognised, Reading
from lanes.core.claim import Claim, Unavailable, Validators
from lanes.core.pace import TWO_URLS, Signal


class Label(StrEnum):
    """The closed set of outcomes in metrics and the poll record."""

    NEW = "new"
    UNCHANGED = "unchanged"
    EMPTY = "suspiciously empty"
    FAILED = "failed"
    WAIT = "asked to wait"
    REFUSED = "refused"
    BLOCKED = "blocked"
    DISALLOWED = "disallowed"
    PUT_BACK = "put back"
    ABANDONED = "abandoned"
    FEED_FOUND = "feed found"  # a web page that was added named its feed
    REDIRECTED = "redirected"  # an earlier hop of a Poll: its last hop has the outcome
    ROBOTS = "robots"  # a request for robots.txt, made in the turn of a Poll


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A 304 to our validators, or the same bytes as the last recognised document, perhaps with other `validators`."""

    how: str
    validators: Validators | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """A recognised document whose Chapters are still to be compared with what is known."""

    document: Document
    validators: Validators | None
    body_hash: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """A failure; whose fault it is is decided elsewhere, by whether others of its host fail alike: `kind`.  `reread`: the next Poll is
    unconditional.  `excerpt` is how the document begins, for the owner's eyes alone: never in a log."""

    detail: str
    kind: str
    excerpt: str = ""
    gone: bool = False
    reread: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """The Site did not want this read: no failure, its URL waits."""

    detail: str


@dataclass(frozen=True, slots=True)
class AskedToWait:
    """The Site named or implied a wait of the whole host (or, `whole_host` False, of this URL); no failure of the Series."""

    detail: str
    whole_host: bool


@dataclass(frozen=True, slots=True)
class Blocked:
    """The guard refused an address: never dialled."""

    detail: str


@dataclass(frozen=True, slots=True)
class Disallowed:
    """robots.txt does not allow it: never asked, or asked for a feed and found to be a page."""

    detail: str


@dataclass(frozen=True, slots=True)
class PutBack:
    """The Poll could not be carried out through no fault of the Series.  `lost`: its page was in a tab when the browser was lost."""

    reason: str
    wait: timedelta
    address: str | None
    resume: Resume | None
    lost: bool = False


Meaning = Unchanged | Read | Failed | Refused | AskedToWait | Blocked | Disallowed | PutBack


@dataclass(frozen=True, slots=True)
class Judgement:
    """An answer's meaning, what it says about its host, and the waits and hints its header carries.  `used_up` is how long until its host,
    whose allowance this answer was the last of, gives again.  `moved_to` is where a chain of
    permanent redirects ended, `led_to` every place that a permanent one led to, whatever came before and after it."""

    meaning: Meaning
    signal: Signal
    retry_after: timedelta | None = None
    max_age: timedelta | None = None
    unavailable_url: bytes | None = None
    moved_to: str | None = None
    led_to: tuple[str, ...] = ()
    used_up: timedelta | None = None


NOT_PUBLIC = "not a public address"
"""How the reason of a wait begins that our own guard laid."""
LONGEST_VALIDATOR = 1_024
"""Characters of an ETag or Last-Modified that is kept: servers refuse requests whose header is much longer."""
_WRITABLE = re.compile(r"[\t\x20-\x7e\x80-\xff]+")
REFUSALS = frozenset({401, 402, 403, 451})
NO_ANSWER = "no answer"
"""The kind of every failure in which nothing came from a host that has an address: one that is down resets now and is silent then."""
_NO_ANSWER = frozenset({Trouble.CONNECT, Trouble.TLS, Trouble.TIMEOUT, Trouble.RESET})
_HOST_TROUBLES = _NO_ANSWER | {Trouble.DNS}
_UNREADABLE = frozenset({Trouble.FRAMING, Trouble.ENCODING, Trouble.OVERSIZE})


def url_hash(url: str) -> bytes:
    """Names a URL in a row without showing it."""
    return blake2b(url.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def body_hash(body: bytes) -> bytes:
    """Names a body, to see that the same bytes came again."""
    return blake2b(body, digest_size=16).digest()


def wants_reading(answer: Answer, claim: Claim) -> bool:
    """True when the body must be read: a 200 whose bytes are not those of the last recognised document."""
    return isinstance(answer, Response) and answer.status in (200, 203) and body_hash(answer.body) != claim.body_hash


def judge(answer: Answer, reading: Reading | None, claim: Claim, now: datetime) -> Judgement:
    """The meaning of one answer.  `reading` is there exactly when `wants_reading` said so."""
    match answer:
        case Response():
            judged, used_up = _judge_response(answer, reading, claim, now), headers.used_up(answer.headers, now)
            return judged if used_up is None else replace(judged, used_up=used_up)
        case NoResponse(trouble=trouble, detail=detail):
            signal = Signal.TROUBLED if trouble in _HOST_TROUBLES else Signal.SILENT
            kind = NO_ANSWER if trouble in _NO_ANSWER else trouble.value
            return Judgement(Failed(f"{trouble}: {detail}", kind, reread=trouble in _UNREADABLE), signal)
        case Forbidden(address=address):
            return Judgement(
                Blocked(f"{NOT_PUBLIC}: {address} (LANES_ALLOW_NETWORKS lets more through)"), Signal.SILENT
            )
        case Postponed():
            back = PutBack(answer.reason, answer.wait, answer.address, answer.resume, answer.lost)
            return Judgement(back, Signal.SILENT)
        case _:
            assert_never(answer)


def _judge_response(answer: Response, reading: Reading | None, claim: Claim, now: datetime) -> Judgement:
    retry_after = headers.delay(answer.headers, now)
    status = answer.status
    if (refused := answer.held or _challenge(answer, reading)) is not None:
        return Judgement(Refused(refused), Signal.SILENT, retry_after)
    if status == 429:
        signal = Signal.SILENT if retry_after is not None else Signal.TOO_FAST
        return Judgement(AskedToWait("429 too many requests", whole_host=True), signal, retry_after)
    if status == 503:
        return _judge_unavailable(answer, claim, retry_after, now)
    if status >= 500:
        return Judgement(Failed(f"{status} from the server", "5xx"), Signal.TROUBLED, retry_after)
    meaning = _meaning_of_answer(answer, reading, claim.url)
    signal = Signal.SILENT if isinstance(meaning, Refused) else Signal.HEALTHY
    moved_to = answer.url if answer.permanent else None
    max_age = headers.max_age(answer.headers, now)
    return Judgement(meaning, signal, retry_after, max_age, moved_to=moved_to, led_to=_led_to(answer, claim.resume))


def _led_to(answer: Response, resume: Resume | None) -> tuple[str, ...]:
    led = [later.url for earlier, later in pairwise(answer.requests) if earlier.permanent]
    if resume is not None and resume.permanent:
        led.append(resume.url)
    if answer.permanent:
        led.append(answer.url)
    return tuple(dict.fromkeys(led))


def _challenge(answer: Response, reading: Reading | None) -> str | None:
    """What refuses us, by header on any status, by landmark on any answer that is neither a recognised document nor known already."""
    if (told := challenge.by_header(answer.headers)) is not None:
        return told
    if isinstance(reading, Document) or (reading is None and answer.status in (200, 203, 304)):
        return None
    return challenge.by_page(answer.body, answer.headers.get("content-type"))


def _judge_unavailable(answer: Response, claim: Claim, retry_after: timedelta | None, now: datetime) -> Judgement:
    mine = url_hash(answer.url)
    last = claim.unavailable if _recent(claim.unavailable, now) else None
    if last is not None and last.url_hash != mine:
        signal = Signal.SILENT if retry_after is not None else Signal.TROUBLED
        return Judgement(
            AskedToWait("503 from two of its URLs", whole_host=True), signal, retry_after, unavailable_url=mine
        )
    signal = Signal.SILENT if last is None else Signal.TROUBLED
    if retry_after is not None:
        return Judgement(
            AskedToWait("503 unavailable", whole_host=False), Signal.SILENT, retry_after, unavailable_url=mine
        )
    return Judgement(Failed("503 unavailable", "5xx"), signal, unavailable_url=mine)


def _recent(last: Unavailable | None, now: datetime) -> bool:
    return last is not None and now - last.at <= TWO_URLS


def _meaning_of_answer(answer: Response, reading: Reading | None, asked: str) -> Meaning:
    status = answer.status
    if status == 304:
        if answer.conditional:
            return Unchanged("304")
        return Failed("304 to a question without validators", "304", reread=True)
    if status in REFUSALS:
        return Refused(f"{status} from the server")
    if status == 410:
        return Failed("410 gone", "410", gone=True)
    if status not in (200, 203):
        # A validator that the server cannot stand must not be sent for ever.
        return Failed(f"{status} from the server", str(status), reread=status < 300 or answer.conditional)
    match reading:
        case None:
            return Unchanged("the same bytes", _validators(answer))
        case NotRecognised(reason=reason, start=start, kind=kind):
            content_type = answer.headers.get("content-type")
            if challenge.wants_log_in(answer.body, content_type, asked, answer.url):
                return Failed("log-in required", "log-in", excerpt=start, reread=True)
            return Failed(reason, kind, excerpt=start, reread=True)
        case Document():
            return Read(reading, _validators(answer), body_hash(answer.body))
        case _:
            assert_never(reading)


def _validators(answer: Response) -> Validators | None:
    """What the answer gives to be sent back, as a pair; what cannot be stored and sent whole is none."""
    etag, last_modified = (_kept(answer.headers.get(name)) for name in ("etag", "last-modified"))
    return None if etag is None and last_modified is None else Validators(etag, last_modified, answer.url)


def _kept(value: str | None) -> str | None:
    return value if value and len(value) <= LONGEST_VALIDATOR and _WRITABLE.fullmatch(value) else None
