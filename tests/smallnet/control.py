"""The owner's word to a small internet that runs as its own process: `http://127.1.0.1:PORT/-/...`, never recorded.

Owns the few verbs.  Refuses to own: what they act on.  Must never break: an unknown verb or host is a 4xx with a reason.

  /-/publish?url=URL&title=TITLE    a new item in the feed at URL
  /-/record                         the record so far, as JSON lines (visits under way have no end)
  /-/summary?minimum=SECONDS        counts by status, spacing offences and overlaps of hosts, as JSON
  /-/refuse?site=webtoons&value=yes demo: that stand-in answers with challenges from now on (value=no: no more)
  /-/share?value=0.1                bench: the share of requests that find a new item from now on
"""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

from .feeds import Request
from .net import Smallnet
from .record import lines
from .steps import Step, ok, status

Verb = Callable[[dict[str, str]], Step]


def open_control(net: Smallnet, more: dict[str, Verb] | None = None) -> None:
    """Answer the verbs at the anchor, and `more` ones of a scenario."""
    verbs: dict[str, Verb] = {
        "publish": lambda asked: _publish(net, asked),
        "record": lambda _: ok("".join(lines(net.record)), "application/jsonl"),
        "summary": lambda asked: ok(json.dumps(summary(net, float(asked.get("minimum", 1)))), "application/json"),
        **(more or {}),
    }

    def answer(request: Request) -> Step:
        where = urlsplit(request.path)
        verb = verbs.get(where.path.removeprefix("/-/"))
        try:
            return status(404, "no such verb") if verb is None else verb(dict(parse_qsl(where.query)))
        except (KeyError, ValueError) as error:
            return status(400, f"{type(error).__name__}: {error}")

    net.anchor.listener.control = answer


def summary(net: Smallnet, minimum: float) -> dict[str, object]:
    """What a bench or a demo wants to know at the end.  `minimum` seconds from start to start at one host."""
    record = net.record
    return {
        "visits": len(record),
        "connections": len(record.dials),
        "statuses": {str(code): count for code, count in record.statuses().items()},
        "offences": [str(offence) for offence in record.spacing_offences(minimum)],
        "overlaps": [str(offence) for offence in record.overlaps()],
    }


def _publish(net: Smallnet, asked: dict[str, str]) -> Step:
    feeds = {host.url(path): feed for host in net.hosts for path, feed in host.feeds.items()}
    return ok(feeds[asked["url"]].publish(asked["title"]).link or "", "text/plain")
