"""The two sides of what passes through the proxy: one connection of Chrome's, one to an origin.

Owns how bytes go from one to the other, and no faster than that takes them.  Refuses to own: which connections there are, and what may
pass.  Must never break: no side is read ahead of the other by more than a head.

Of asyncio's protocols rather than its streams: a task, a buffer and a wake-up for each piece would cost as much as all else that the
sidecar does for a page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from browser_sidecar.heads import END, split_head

HEAD: Final = 256 * 1024
"""Bytes of one head: Chrome's own cap."""
PATIENCE: Final = 120.0
"""s for a head, and for Chrome to take what was written: the longest that a page lives."""

GoesOn = Callable[[int], bool]
"""Told how many bytes came in; whether more may."""


class NoHead(Exception):
    """What came is none, or too much of one.  Its text is nobody's."""


class Side(asyncio.Protocol):
    """One connection.  Until it is spliced what comes in is kept, as much as a head; `made` is called once it stands."""

    transport: asyncio.Transport

    def __init__(self, made: Callable[[Side], None] | None = None) -> None:
        self._made = made
        self._is_chromes = made is not None
        self._said = bytearray()
        self._ended = False
        self._other: Side | None = None
        self._goes_on: GoesOn = lambda _: True
        self._stirred: asyncio.Future[None] | None = None
        self.over = asyncio.Event()
        """Set once nothing comes in any more, or no more may; by Chrome's side once it is gone."""
        self._closed = asyncio.Event()

    def write(self, data: bytes) -> None:
        self.transport.write(data)

    async def head(self) -> bytes:
        """All up to an empty line.  Raises: NoHead, TimeoutError."""
        looked = 0
        async with asyncio.timeout(PATIENCE):
            while (end := END.search(self._said, looked)) is None:
                looked = max(0, len(self._said) - 2)
                if not await self._more():
                    raise NoHead
        head = bytes(self._said[: end.end()])
        del self._said[: end.end()]
        return head

    def rest(self) -> bytes:
        """What came in beyond the heads that were read."""
        rest, self._said = bytes(self._said), bytearray()
        return rest

    def onto(self, other: Side, goes_on: GoesOn) -> None:
        """From now on what comes in goes out at the other side, where it may."""
        self._other, self._goes_on = other, goes_on
        if rest := self.rest():
            self.data_received(rest)
        self.transport.resume_reading()
        if self._ended:
            self.eof_received()

    async def finished(self) -> None:
        """Ends it, once it has taken what was written.  Raises: TimeoutError."""
        self.transport.close()
        async with asyncio.timeout(PATIENCE):
            await self._closed.wait()

    # From here on: called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        if self._made is not None:
            self._made(self)

    def data_received(self, data: bytes) -> None:
        if self._other is None:
            self._said += data
            if len(self._said) > HEAD:
                self.transport.pause_reading()
            self._stir()
        elif self._goes_on(len(data)):
            self._other.write(data)
        else:  # Chrome may take a while for what was written, and meanwhile more would come in
            self.over.set()
            self.transport.abort()

    def eof_received(self) -> bool:
        self._ended = True
        self._stir()
        if self._other is not None:
            if not self._is_chromes:
                self.over.set()
            if not self._other.transport.is_closing():
                self._other.transport.write_eof()
        return True

    def pause_writing(self) -> None:
        if self._other is not None:
            self._other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._other is not None:
            self._other.transport.resume_reading()

    def connection_lost(self, _: Exception | None) -> None:
        self._ended = True
        self._stir()
        self.over.set()
        self._closed.set()

    async def _more(self) -> bool:
        """Until more has come in; False where none will, or it is too much."""
        if self._ended or len(self._said) > HEAD:
            return False
        self._stirred = asyncio.get_running_loop().create_future()
        await self._stirred
        return True

    def _stir(self) -> None:
        if self._stirred is not None and not self._stirred.done():
            self._stirred.set_result(None)


async def splice(chrome: Side, origin: Side, goes_on: GoesOn) -> None:
    """Bytes both ways, until the origin or Chrome has ended, or no more may; however long that takes, it ends with the page."""
    chrome.over = origin.over
    chrome.onto(origin, lambda _: True)
    origin.onto(chrome, goes_on)
    await origin.over.wait()
    await chrome.finished()


async def pass_head(origin: Side, chrome: Side, goes_on: GoesOn) -> None:
    """The head of a plain answer, after which Chrome uses the connection no more: its next request may be to another host.  Lines end as
    the origin likes; what is no head is handed on as it is, for Chrome to judge."""
    while True:
        try:
            head = await origin.head()
        except NoHead:
            said = origin.rest()
            if goes_on(len(said)) and not said.startswith(b"HTTP/"):  # half a head Chrome would take for a whole one
                chrome.write(said)
            return
        first, lines = split_head(head)
        is_head = first.startswith(b"HTTP/")
        if not goes_on(len(head)):
            return
        chrome.write(b"\r\n".join([first, *lines, b"Connection: close", b"", b""]) if is_head else head)
        if not (is_head and first.partition(b" ")[2].startswith(b"1")):
            return
