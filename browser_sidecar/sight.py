"""What a page shows: looked at by scripts of ours, in a world of their own inside it.

Owns those scripts and that world.  Refuses to own: what is waited for, and what it comes to (`page`).  Must never break: no script of the
page changes what is seen, and what is seen is of the document that it is said to be of.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any, Final, Protocol

from browser_sidecar.cdp import Declined, Late
from lanes.core.challenge import LOOKED_AT
from lanes.core.pages import PageAsked
from lanes.fetch.limits import LIMITS

PIECE: Final = 2**21
"""Characters of a page that are read at a time: other tabs share the socket."""

# Scripts of a page that end all timers, as some do, do not end `postTask`.
_LOOK: Final = """(async (landmark, settles, before, within) => {
  const has = s => { try { return !!s && document.querySelector(s) !== null } catch { return false } };
  const look = () => [location.href, document.readyState, has(landmark), has(settles), document.title.slice(0, 300)];
  const until = performance.now() + within;
  if (before === null) return look();
  do await scheduler.postTask(() => {}, {delay: 100});
  while (String(look()) === String(before) && performance.now() < until);
  return look();
})(%s)"""
_HEAD: Final = f"(document.documentElement?.outerHTML ?? '').slice(0, {LOOKED_AT})"
_KEEP: Final = """(() => {
  const kind = document.doctype ? '<!DOCTYPE html>\\n' : '';
  globalThis.page = (kind + (document.documentElement?.outerHTML ?? '')).toWellFormed();
  globalThis.piece = at => {
    let end = Math.min(at + %d, page.length);
    if (end < page.length && (page.charCodeAt(end) & 0xfc00) === 0xdc00) end--;
    return [end, page.slice(at, end)];
  };
  return [location.href, page.length, ...piece(0)];
})()"""
_PIECE: Final = "piece(%d)"


class Call(Protocol):
    """Asks the page's session; raises as of `Cdp.call`."""

    def __call__(
        self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Look:
    """A page at one instant: `ready` is its readyState, `landmark` and `settled` whether those are there."""

    url: str
    ready: str
    landmark: bool
    settled: bool
    title: str


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page at one instant: its characters, and as much of its HTML as may be read."""

    url: str
    characters: int
    html: bytes


class Sight:
    """Of the page in one tab's `frame`.  Each look is one at the document with that loader; None where it cannot be looked at: it is just
    going, another is there already, or it is busy for `timeout` seconds.  Raises: Gone."""

    def __init__(self, call: Call, frame: str, asked: PageAsked) -> None:
        self._call, self._frame, self._asked = call, frame, asked
        self._world: tuple[str, int] | None = None

    def look(self, loader: str, timeout: float, before: Look | None = None, within: float = 0.0) -> Look | None:
        """The page now; or, where it was looked at `before`, once it is otherwise, and as it is after `within` seconds."""
        seen = None if before is None else astuple(before)
        asked = json.dumps((self._asked.landmark, self._asked.settles_for, seen, within * 1000))[1:-1]
        found = self._evaluated(loader, _LOOK % asked, timeout + within)
        if not isinstance(found, list) or len(found) != 5:
            return None
        url, ready, landmark, settled, title = found
        return Look(str(url), str(ready), landmark is True, settled is True, str(title))

    def head(self, loader: str, timeout: float) -> bytes | None:
        """As much of its HTML as signs of a challenge are looked for in."""
        head = self._evaluated(loader, _HEAD, timeout)
        return head.encode("utf-8", "replace") if isinstance(head, str) else None

    def page(self, loader: str, timeout: float) -> Page | None:
        """The page as it is now; `timeout` is that of each piece."""
        found = self._evaluated(loader, _KEEP % PIECE, timeout)
        if not isinstance(found, list) or len(found) != 4:
            return None
        url, length, html = str(found[0]), int(found[1]), bytearray()
        at, piece = int(found[2]), found[3]
        while True:
            html += str(piece).encode("utf-8", "replace")
            if at >= length or length > LIMITS.decoded or len(html) > LIMITS.decoded:
                return Page(url, length, bytes(html))
            found = self._evaluated(loader, _PIECE % at, timeout)
            if not isinstance(found, list) or len(found) != 2 or found[0] <= at:
                return None
            at, piece = found

    def has_gone_on(self, loader: str) -> bool:
        """Whether another document than that one was there when it was looked at last."""
        return self._world is not None and self._world[0] != loader

    def _evaluated(self, loader: str, script: str, timeout: float) -> Any:
        try:
            if self._world is None or self._world[0] != loader:
                self._world = self._made_world(timeout)
            if self._world[0] != loader:  # the page has gone on, and we have yet to be told
                return None
            asked = {"expression": script, "contextId": self._world[1], "returnByValue": True, "awaitPromise": True}
            return self._call("Runtime.evaluate", asked, timeout=timeout)["result"].get("value")
        except (Late, Declined):
            self._world = None
            return None

    def _made_world(self, timeout: float) -> tuple[str, int]:
        """A world in the document that is shown, and which one that is: where it answers later, no other had come in between."""
        made = self._call("Page.createIsolatedWorld", {"frameId": self._frame, "worldName": "lanes"}, timeout=timeout)
        tree = self._call("Page.getFrameTree", timeout=timeout)
        return tree["frameTree"]["frame"]["loaderId"], made["executionContextId"]
