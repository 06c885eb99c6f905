"""try: what a Site's reader sees in a URL or a file, and nothing of it stored.

Owns how that is told, and what a file stands for: an answer with 200.  Refuses to own: the fetch and its pace (`lanes.trying`).
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final, assert_never
from uuid import UUID

from lanes.browser import Browser
from lanes.cli.door import Store, open_store
from lanes.cli.parser import AWAY, DONE, FAILED, NotMeant
from lanes.cli.words import clean, counted, duration, local, masked, print_json, print_table, until
from lanes.core.answer import Response, Sent
from lanes.core.chapters import Document, Item, NotRecognised, distinct, guids_lie
from lanes.core.claim import TRIED, Claim, Trigger
from lanes.core.outcome import (
    AskedToWait,
    Blocked,
    Disallowed,
    Failed,
    Judgement,
    PutBack,
    Read,
    Refused,
    Unchanged,
    judge,
)
from lanes.core.pace import HOST_DEFAULT, HostPace, Signal
from lanes.core.why import Stop, with_remedy
from lanes.errors import BadUrl
from lanes.fetch.guard import Guard
from lanes.fetch.http import Http
from lanes.poll import lease_of, reading_of, rows_of
from lanes.sites import Site, by_name, recognise
from lanes.sites.discover import discover
from lanes.sites.urls import canonical
from lanes.store.browsing import AskingStore
from lanes.store.trying import Shut, TryStore
from lanes.trying import Tried, Trier, reader_failed

LARGEST_FILE: Final = 30 * 2**20
"""Bytes: as much as an answer may have, unpacked."""


def run(asked: Namespace) -> int:
    """Tries a URL or a file."""
    site = by_name(asked.site)
    if "://" in asked.what:
        url = url_of(site, asked.what)
        with open_store() as store:
            tried = attempt(store, site, url, timedelta(seconds=asked.wait), quiet=asked.json)
            now = store.asking.now()
    else:
        url, now = _stands_for(site, asked.url), datetime.now(UTC)
        tried = of_file(site, _bytes(asked.what), url, now)
    tell(asked, site, url, tried, now)
    return code_of(tried)


def url_of(site: Site, typed: str) -> str:
    """The URL to fetch of one as typed.  Raises BadUrl where it is not of this Site."""
    given = canonical(typed)
    found = site.recognise(given)
    if found is None:
        raise BadUrl(typed, f"it is not of the Site {site.name}, but of {recognise(typed)[0].name}.")
    return found


def attempt(store: Store, site: Site, url: str, patience: timedelta, *, quiet: bool) -> Tried | Shut:
    """The URL, fetched politely; mere pace is waited for so long in all."""
    if not store.settings.poll_enabled:
        return Shut("polling is switched off", None, None)
    with _trier(store, site, quiet=quiet) as trier:
        return trier.attempt(url, patience)


@contextmanager
def _trier(store: Store, site: Site, *, quiet: bool) -> Iterator[Trier]:
    settings, database = store.settings, store.database
    http = Http(settings.user_agent(), Guard(settings.allow_networks))
    rows = TryStore(database, site.name, settings.machine, gap=site.gap, browser=site.browser)
    polls = rows_of(site, database, settings.machine)

    def told(reason: str, wait: timedelta) -> None:
        if not quiet:
            sys.stderr.write(f"lanes try: waits {duration(wait)}: {clean(reason)}\n")

    with closing(http):
        if not site.browser:
            yield Trier(site, rows, polls, http, lease_of(site), told=told)
            return
        with closing(Browser(AskingStore(database, site.name), site, http.stop)) as browser:
            yield Trier(site, rows, polls, http, lease_of(site), browser, told)


def _bytes(name: str) -> bytes:
    try:
        if name == "-":
            return sys.stdin.buffer.read(LARGEST_FILE)
        with Path(name).open("rb") as file:
            return file.read(LARGEST_FILE)
    except OSError as error:
        raise NotMeant(f"{name} cannot be read: {error.strerror}. A URL begins with http:// or https://.") from None


def _stands_for(site: Site, given: str | None) -> str:
    """The URL from which a file is said to come: relative links start there."""
    if given is not None:
        return canonical(given)
    with suppress(BadUrl):
        if site.example and (found := site.recognise(canonical(site.example))) is not None:
            return found
    return f"https://{next(iter(site.hosts), 'localhost')}/"


def of_file(site: Site, body: bytes, url: str, now: datetime) -> Tried:
    """What these bytes would come to as an answer of the URL."""
    pace = HostPace(HOST_DEFAULT)
    claim = Claim(TRIED, "", UUID(int=0), Trigger.TRIED, now, url, 0, "", HOST_DEFAULT, pace)
    answer = Response(200, {}, body, url, (Sent(url, "", None, now, 200, len(body)),), timedelta(0))
    try:
        reading = reading_of(site, answer, claim)
    except Exception as bug:  # noqa: BLE001 - a reader in the making: its author is told where it failed
        return Tried(Judgement(reader_failed(bug), Signal.SILENT), answer)
    return Tried(judge(answer, reading, claim, now), answer, reading)


def _read(document: Document) -> tuple[str, str]:
    if document.latest is not None and not document.items:
        return "list missing", f"its list of Chapters is not there, only its newest number, {document.latest}"
    return "recognised", "its landmarks are there"


def code_of(tried: Tried | Shut) -> int:
    """Exit code: recognised, to be tried again later, or neither."""
    if isinstance(tried, Shut) or isinstance(tried.judged.meaning, PutBack):
        return AWAY
    return DONE if verdict(tried)[0] == "recognised" else FAILED


def verdict(tried: Tried | Shut) -> tuple[str, str]:
    """What came of it: in one or two words of a closed set, and in words."""
    if isinstance(tried, Shut):
        return "not asked", with_remedy(Stop(tried.reason, tried.until))
    match tried.judged.meaning:
        case Read(document=document):
            return _read(document)
        case Unchanged(how=how):
            return "unchanged", how
        case Failed(detail=detail):
            return ("not recognised" if isinstance(tried.reading, NotRecognised) else "failed"), detail
        case Refused(detail=detail):
            return "refused", detail
        case AskedToWait(detail=detail):
            return "asked to wait", detail
        case Blocked(detail=detail):
            return "blocked", detail
        case Disallowed(detail=detail):
            return "disallowed", detail
        case PutBack(reason=reason):
            return "not asked", reason
        case _:
            assert_never(tried.judged.meaning)


def tell(asked: Namespace, site: Site, url: str, tried: Tried | Shut, now: datetime) -> None:
    """Prints it."""
    if asked.json:
        print_json(as_json(site, url, tried, now))
        return
    if isinstance(tried, Tried) and isinstance(tried.reading, Document) and isinstance(tried.judged.meaning, Read):
        _tell_document(tried.reading, asked.most)
        return
    short, words = verdict(tried)
    print(f"{short[0].upper()}{short[1:]}: {clean(words)}{until(_until(tried, now), now)}")
    if isinstance(tried, Tried) and isinstance(tried.judged.meaning, Failed) and tried.judged.meaning.excerpt:
        print(f"It begins: {clean(tried.judged.meaning.excerpt)}")
    for feed in _feeds(site, tried):
        print(f"It names a feed: {masked(feed)}")


def _until(tried: Tried | Shut, now: datetime) -> datetime | None:
    if isinstance(tried, Shut):
        return tried.until
    wait = tried.judged.meaning.wait if isinstance(tried.judged.meaning, PutBack) else tried.judged.retry_after
    return None if not wait else now + wait


def _feeds(site: Site, tried: Tried | Shut) -> tuple[str, ...]:
    """The feeds that a page names, where a feed was looked for."""
    if isinstance(tried, Shut) or not site.many_hosts or not isinstance(tried.reading, NotRecognised):
        return ()
    answer = tried.answer
    if not isinstance(answer, Response):
        return ()
    return tuple(each.url for each in discover(answer.body, answer.headers.get("content-type"), answer.url))


def _tell_document(document: Document, most: int) -> None:
    listed = listed_of(document)
    locked = sum(item.locked for item in listed)
    state = document.lifecycle.value if document.lifecycle else "whether it goes on is not said"
    count = counted(len(listed) - locked, "Chapter") + (f" and {locked:,} locked" if locked else "")
    print(f"{clean(document.title or 'No title')} ({state}): {count}")
    if document.latest is not None:
        print(f"Its list of Chapters is not there; its newest number is {clean(document.latest)}.")
    print_table(
        ("NUMBER", "PUBLISHED", *(("LOCKED",) if locked else ()), "CHAPTER", "IDENTITY"),
        (
            (
                numbered(item),
                _published(item),
                *(("yes" if item.locked else "",) if locked else ()),
                item.title,
                item.guid or item.link or "",
            )
            for item in listed[:most]
        ),
        cut=("CHAPTER", "IDENTITY"),
    )
    if len(listed) > most:
        print(f"and {len(listed) - most:,} more (-n shows more of them)")


def listed_of(document: Document) -> tuple[Item, ...]:
    """What would be Chapters, each once, newest first: in document order, turned round where that goes from old to new."""
    items = tuple(item for item, _ in distinct(document.items, guid_alone=not guids_lie(document.items)))
    return items[::-1] if _ascends(items) else items


def _ascends(items: tuple[Item, ...]) -> bool:
    dates = [item.published_at for item in items if item.published_at is not None]
    if len(dates) > 1 and dates[0] != dates[-1]:
        return dates[0] < dates[-1]
    numbers = [number for item in items if (number := _number(item)) is not None]
    return len(numbers) > 1 and numbers[0] < numbers[-1]


def _number(item: Item) -> Decimal | None:
    with suppress(InvalidOperation):
        return None if item.number is None else Decimal(item.number)
    return None


def numbered(item: Item) -> str:
    """ "volume 2, chapter 12.5", "extra"; "" where it has none of that."""
    volume = f"volume {item.volume}" if item.volume else ""
    return ", ".join(part for part in (volume, f"{item.label} {item.number or ''}".strip()) if part)


def _published(item: Item) -> str:
    if item.published_at is None:
        return "-"
    return ("about " if item.approximate else "") + local(item.published_at)[:16]


def as_json(site: Site, url: str, tried: Tried | Shut, now: datetime) -> dict[str, object]:
    """It for a program."""
    short, words = verdict(tried)
    answer = tried.answer if isinstance(tried, Tried) else None
    document = tried.reading if isinstance(tried, Tried) and short == "recognised" else None
    shown: dict[str, object] = {
        "site": site.name,
        "url": masked(url),
        "verdict": short,
        "detail": words,
        "until": _until(tried, now),
        "status": answer.status if isinstance(answer, Response) else None,
        "final_url": masked(answer.url) if isinstance(answer, Response) else None,
    }
    if isinstance(tried, Tried) and isinstance(tried.judged.meaning, Failed):
        shown |= {"begins": tried.judged.meaning.excerpt, "feeds": [masked(each) for each in _feeds(site, tried)]}
    if isinstance(document, Document):
        shown |= {
            "title": document.title,
            "home": document.home,
            "lifecycle": document.lifecycle,
            "latest": document.latest,
            "chapters": [_row(item) for item in listed_of(document)],
        }
    return shown


def _row(item: Item) -> dict[str, object]:
    return {
        "identity": item.guid or item.link,
        "title": item.title,
        "volume": item.volume,
        "number": item.number,
        "label": item.label,
        "published_at": item.published_at,
        "approximate": item.approximate,
        "locked": item.locked,
        "link": item.link,
    }
