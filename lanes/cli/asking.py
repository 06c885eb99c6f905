"""list, chapters, polls, why."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from datetime import datetime

from lanes.cli.door import Store, each_key, open_store, text, word
from lanes.cli.parser import DONE
from lanes.cli.silent import is_polled, silent_lanes_of
from lanes.cli.words import (
    clean,
    counted,
    duration,
    local,
    masked,
    print_json,
    print_table,
    reason_told,
    relative,
    size,
    until,
)
from lanes.core.claim import Trigger
from lanes.core.why import Note
from lanes.sites import by_name
from lanes.store.asking import Attempt, ChapterFound, Listed


def series(asked: Namespace) -> int:
    """The Series."""
    site = None if asked.site is None else by_name(asked.site).name
    with open_store() as store:
        words = None if asked.words is None else text(asked.words)
        found = store.asking.series(site=site, words=words, failing=asked.failing)
        found = tuple(each for each in found if not asked.held or each.why.held)
        silent = {} if asked.json else silent_lanes_of(store, found)
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
    for site, told in silent.items():
        print(f"No Lane of {site} runs {told}.")
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
        "refused_since": standing.refused_since,
        "distrusted_at": standing.distrusted_at,
        "distrusted_reason": standing.distrusted_reason,
        "spared": standing.spared,
        "moving_to": _shown(standing.moving_to, whole=whole),
        "moving_since": standing.moving_since,
        "old_url": _shown(standing.old_url, whole=whole),
    }


def _shown(url: str | None, *, whole: bool) -> str | None:
    return url if url is None or whole else masked(url)


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
                each.key or ("(tried)" if each.trigger == Trigger.TRIED else "(deleted)"),
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
    return None if key is None else store.following.find(word(store, key)).series_id


def why(asked: Namespace) -> int:
    """Why Series are not being polled."""
    with open_store() as store:
        found, missed, code = each_key(
            store, "why", asked.keys, lambda key: store.asking.one(store.following.find(key).key)
        )
        silent = {site: f"its Lane does not run {told}" for site, told in silent_lanes_of(store, found).items()}
    beside = {each.key: (*_lane_noted(each, silent), *each.notes) for each in found}
    if asked.json:
        print_json([*(reason(each, beside[each.key]) for each in found), *missed])
        return code
    for each in found:
        print(f"{each.key}: {reason_told(each.why, each.standing.now)}")
        for note in beside[each.key]:
            print(f"  {_noted(note, each.standing.now)}")
    return code


def _lane_noted(each: Listed, silent: Mapping[str, str]) -> tuple[Note, ...]:
    return (Note(silent[each.site]),) if each.site in silent and is_polled(each) else ()


def _noted(note: Note, now: datetime) -> str:
    where = "" if note.url is None else f": {masked(note.url)}"
    since = (
        "" if note.since is None else f", since {relative(note.since, now).removesuffix(' ago')} ({local(note.since)})"
    )
    remedy = "" if note.remedy is None else f"; {note.remedy}"
    return f"{clean(note.words)}{where}{since}{until(note.until, now)}{remedy}"


def reason(each: Listed, beside: tuple[Note, ...] | None = None) -> dict[str, object]:
    """Why it is not polled just now, for a program; `beside`: what is true beside that, where it is more than its own notes."""
    return {
        "key": each.key,
        "why": each.why.reason,
        "until": each.why.until,
        "held": each.why.held,
        "due": each.standing.due,
        "due_at": each.standing.due_at,
        "notes": [_note_row(note) for note in (each.notes if beside is None else beside)],
    }


def _note_row(note: Note) -> dict[str, object]:
    return {
        "note": note.words,
        "since": note.since,
        "until": note.until,
        "remedy": note.remedy,
        "url": note.url and masked(note.url),
    }
