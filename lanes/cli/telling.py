"""incidents, notices: what troubles there were, and who was told what."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping

from lanes.cli.door import open_store, text
from lanes.cli.parser import DONE
from lanes.cli.words import as_local, clean, counted, print_json, print_table, relative
from lanes.core.notices import Kind
from lanes.store.asking import Incident, Told

NEWEST = 25  # incidents, unless all are asked for
MOST_NAMED = 5  # things of one list that are named on a line


def incidents(asked: Namespace) -> int:
    """The troubles, open ones first."""
    with open_store() as store:
        found = store.asking.incidents(None if asked.all else NEWEST)
        if not asked.all and all(each.ended_at is None for each in found):
            found = store.asking.incidents(None, only_open=True)
        now = store.asking.now()
    if asked.json:
        print_json([incident_row(each) for each in found])
        return DONE
    if not found:
        print("No incidents.")
        return DONE
    print_table(
        ("WHOSE", "WHERE", "KIND", "SINCE", "UNTIL", "SPARED", "EVIDENCE"),
        (
            (
                each.whose,
                place_of(each),
                each.kind or "-",
                relative(each.started_at, now),
                "still open" if each.ended_at is None else relative(each.ended_at, now),
                each.spared,
                _in_a_line(each.evidence),
            )
            for each in found
        ),
        cut=("EVIDENCE",),
        drop=("KIND",),
    )
    print(f"{counted(len(found), 'incident')}, {sum(each.ended_at is None for each in found):,} open")
    return DONE


def incident_row(each: Incident) -> dict[str, object]:
    """An incident for a program."""
    return {
        "id": each.incident_id,
        "whose": each.whose,
        "machine": each.machine,
        "site": each.site,
        "host": each.host,
        "kind": each.kind,
        "started_at": each.started_at,
        "ended_at": each.ended_at,
        "spared": each.spared,
        "evidence": each.evidence,
    }


def place_of(each: Incident) -> str:
    """Where it is: a machine, a host, or a whole Site."""
    return clean(each.machine or each.host or each.site or "-")


def notices(asked: Namespace) -> int:
    """What was told or is owed, newest first."""
    reader = None if asked.reader is None else text(asked.reader)
    with open_store() as store:
        found = store.asking.notices(asked.most, reader=reader, owed=asked.owed)
        now = store.asking.now()
    if asked.json:
        print_json([{**_plain(each), "words": in_words(each)} for each in found])
        return DONE
    if not found:
        print("No Notices.")
        return DONE
    print_table(
        ("TO", "KIND", "SERIES", "WORDS", "MADE", "DELIVERED"),
        (
            (
                "you, the owner" if each.reader is None else f"Reader {each.reader}",
                each.kind,
                each.key or "-",
                in_words(each),
                relative(each.made_at, now),
                "owed" if each.delivered_at is None else relative(each.delivered_at, now),
            )
            for each in found
        ),
        cut=("WORDS",),
        drop=("KIND",),
    )
    print(f"{counted(len(found), 'Notice')}, {sum(each.delivered_at is None for each in found):,} owed")
    return DONE


def _plain(each: Told) -> dict[str, object]:
    return {
        "id": each.notice_id,
        "reader": each.reader,
        "kind": each.kind,
        "key": each.key,
        "body": each.body,
        "made_at": each.made_at,
        "delivered_at": each.delivered_at,
    }


def in_words(told: Told) -> str:
    """What a Notice says, on one line."""
    body = told.body
    what = told.series or told.key or _where(body)
    match told.kind:
        case Kind.NEW_CHAPTERS:
            said = f"{what}: {counted(len(body.get('chapters', ())), 'new Chapter')}"
        case Kind.STOPPED:
            said = f"{what} is given up: {body.get('reason', 'no reason was kept')}"
        case Kind.MOVED:
            said = f"{what} goes on as {body.get('to')}" if body.get("merged") else f"{what} is followed at a new URL"
        case Kind.BACK_AGAIN:
            said = f"{what} is back again"
        case Kind.REFUSED:
            said = f"{what} has been refused for three days"
        case Kind.DEAD:
            said = f"{what} has failed for three days"
        case Kind.DISALLOWED:
            said = f"{what} may not be asked: {body.get('reason', 'no reason was kept')}"
        case _:
            said = _to_owner(told.kind, body)
    return clean(said)


def _to_owner(kind: str, body: Mapping[str, object]) -> str:
    where = body.get("host") or body.get("site")
    match kind:
        case Kind.INCIDENT | Kind.INCIDENT_OVER if "whose" in body:
            return _of_incident(body, over=kind == Kind.INCIDENT_OVER)
        case Kind.REFUSED_FOR_AN_HOUR:
            return f"{where} has refused us for an hour"
        case Kind.BROWSER_LOST:
            return "the browser was lost: the Series of browser Sites wait, and nothing is charged to them"
        case Kind.REFUSAL_OVER:
            return f"{where}: {_over(body, 'it refuses us no longer')}"
        case _:
            return _in_a_line(body)


def _of_incident(body: Mapping[str, object], *, over: bool) -> str:
    """Begin or end of a trouble of ours or of a Site; what it spared is counted at its end, since it grows until then."""
    spared = body.get("spared")
    cost = f" ({counted(spared, 'Series')} spared)" if over and isinstance(spared, int) and spared else ""
    if body.get("whose") == "us":
        return (
            f"our own line works again on {body.get('machine')}{cost}"
            if over
            else f"our own line is down on {body.get('machine')}"
        )
    where = body.get("host") or body.get("site")
    return (
        f"{where}: {_over(body, 'its Series answer again')}{cost}"
        if over
        else f"{where} fails all its Series alike: {body.get('kind')}"
    )


def _over(body: Mapping[str, object], healed: str) -> str:
    return "nothing is polled there any more" if body.get("deserted") else healed


def _where(body: Mapping[str, object]) -> str:
    """The host or the Site of a Notice about several Series."""
    count = body.get("count")
    series = f" ({counted(count, 'Series')})" if isinstance(count, int) else ""
    return f"{body.get('host') or body.get('site') or 'something'}{series}"


def _in_a_line(facts: Mapping[str, object]) -> str:
    """The facts as they are kept, a few words each."""
    return "; ".join(f"{name.replace('_', ' ')} {_few(value)}" for name, value in facts.items() if value is not None)


def _few(value: object) -> str:
    match value:
        case list():
            more = f" and {len(value) - MOST_NAMED} more" if len(value) > MOST_NAMED else ""
            return ", ".join(_few(each) for each in value[:MOST_NAMED]) + more
        case dict():
            return ", ".join(f"{name} {_few(each)}" for name, each in value.items())
        case _:
            return as_local(str(value))
