"""What a host of the small internet does with one request, as a value.

Owns the kinds of answers and their modifiers.  Refuses to own: sockets (`wire`) and which answer is next (`net`).  Must never break:
a Step says everything about its answer, so that a script reads like the wire.

Start with `ok`, `status`, `redirect`, `raw`, ... and refine: `ok(FEED).after(3).cut_after(100)`.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

RSS = "application/rss+xml"
PIECE = 65_536
"""Bytes handed to the socket at once, unless a step drips."""

Headers = tuple[tuple[str, str], ...]
SomeHeaders = Mapping[str, str] | Headers


class Framing(Enum):
    """How the end of the body is told."""

    LENGTH = "Content-Length"
    CHUNKED = "Transfer-Encoding: chunked"
    CLOSE = "the connection ends"
    RAW = "the body is all that is written: no status line, no headers"


class Ending(Enum):
    """What happens to the connection after the answer."""

    KEEP = "kept alive"
    CLOSE = "closed"
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class Step:
    """One answer.  `delay` seconds pass before it, `every` seconds before each `piece` bytes of its body; `limit` is how many bytes
    of the framed body are written before `ending`; `endless` repeats the body for ever; `silent` never answers."""

    status: int = 200
    body: bytes = b""
    headers: Headers = ()
    framing: Framing = Framing.LENGTH
    ending: Ending = Ending.KEEP
    delay: float = 0.0
    every: float = 0.0
    piece: int = PIECE
    limit: int | None = None
    endless: bool = False
    silent: bool = False
    as_usual: bool = False

    def with_headers(self, headers: SomeHeaders) -> Step:
        """With these headers too; a name may come twice when they are given as pairs."""
        return replace(self, headers=self.headers + pairs(headers))

    def after(self, seconds: float) -> Step:
        """The first byte of the answer comes `seconds` after the request."""
        return replace(self, delay=seconds)

    def dripping(self, every: float, piece: int = 1) -> Step:
        """The body comes `piece` bytes at a time, `every` seconds before each."""
        return replace(self, every=every, piece=piece)

    def chunked(self, piece: int = 1_024) -> Step:
        """The body comes in chunks of `piece` bytes; cut, it lacks the last chunk."""
        return replace(self, framing=Framing.CHUNKED, piece=piece)

    def cut_after(self, count: int) -> Step:
        """The connection closes after `count` bytes of the body, framing included; the header promised all of it."""
        return replace(self, limit=count, ending=Ending.CLOSE)

    def reset_after(self, count: int) -> Step:
        """The connection is reset after `count` bytes of the body."""
        return replace(self, limit=count, ending=Ending.RESET)

    def closing(self) -> Step:
        """The connection closes after a whole answer."""
        return replace(self.with_headers({"Connection": "close"}), ending=Ending.CLOSE)

    def gzipped(self) -> Step:
        """The body is compressed, and says so."""
        return replace(self, body=gzip.compress(self.body, mtime=0)).with_headers({"Content-Encoding": "gzip"})

    @property
    def is_short(self) -> bool:
        """Whether it is one write that fits the socket: most answers are, and a bench wants them cheap."""
        plain = self.framing is Framing.LENGTH and self.ending is Ending.KEEP and self.limit is None
        return plain and not (self.delay or self.every or self.endless or self.silent) and len(self.body) < PIECE

    def head(self, date: str) -> bytes:
        """The status line and headers, as they go over the wire; `Date` and framing are added where the step has none of its own."""
        named = {name.lower() for name, _ in self.headers}
        lines = [f"HTTP/1.1 {self.status} {_REASONS.get(self.status, 'Answer')}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if "date" not in named:
            lines.append(f"Date: {date}")
        if self.framing is Framing.CHUNKED:
            lines.append("Transfer-Encoding: chunked")
        elif self.framing is Framing.CLOSE:
            lines.append("Connection: close")
        elif "content-length" not in named and self.status not in (204, 304):
            lines.append(f"Content-Length: {len(self.body)}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")

    def pieces(self) -> Iterator[bytes]:
        """The framed body, piece by piece, as far as `limit` lets it."""
        left = self.limit
        for piece in self._framed():
            if left is not None:
                piece, left = piece[:left], left - len(piece[:left])
            if piece:
                yield piece
            if left == 0:
                return

    def _framed(self) -> Iterator[bytes]:
        while True:
            for start in range(0, len(self.body), self.piece):
                piece = self.body[start : start + self.piece]
                yield b"%x\r\n%b\r\n" % (len(piece), piece) if self.framing is Framing.CHUNKED else piece
            if not self.endless:
                break
        if self.framing is Framing.CHUNKED:
            yield b"0\r\n\r\n"


AS_USUAL = Step(as_usual=True)
"""In a script: what the path answers when nothing is scripted; `AS_USUAL.after(3)` is that, three seconds later."""


def ok(body: bytes | str = b"", content_type: str = RSS, headers: SomeHeaders = ()) -> Step:
    """200 with this body."""
    return Step(200, _bytes(body), (("Content-Type", content_type), *pairs(headers)))


def status(
    code: int, body: bytes | str = b"", *, retry_after: int | str | None = None, headers: SomeHeaders = ()
) -> Step:
    """Any status; `retry_after` in seconds or verbatim."""
    wait = () if retry_after is None else (("Retry-After", str(retry_after)),)
    return Step(code, _bytes(body), (("Content-Type", "text/html"), *wait, *pairs(headers)))


def not_modified(headers: SomeHeaders = ()) -> Step:
    """304, whatever was asked."""
    return Step(304, b"", pairs(headers))


def redirect(to: str, code: int = 301, *, cookie: str | None = None) -> Step:
    """A hop to `to` (absolute or relative, written verbatim), with a `Set-Cookie` where one is given."""
    jar = () if cookie is None else (("Set-Cookie", cookie),)
    return Step(code, b"", (("Location", to), *jar))


def raw(answer: bytes) -> Step:
    """These bytes instead of an HTTP answer, then the connection closes."""
    return Step(0, answer, framing=Framing.RAW, ending=Ending.CLOSE)


def drip(body: bytes | str, every: float, *, piece: int = 1, content_type: str = RSS) -> Step:
    """200 whose body comes `piece` bytes every `every` seconds."""
    return ok(body, content_type).dripping(every, piece)


def endless(block: bytes = b"<!-- more -->" * 1_000, *, every: float = 0.0, content_type: str = RSS) -> Step:
    """200 whose body never ends: `block` again and again, `every` seconds apart."""
    step = Step(200, block, (("Content-Type", content_type),), Framing.CLOSE, Ending.CLOSE, endless=True)
    return step.dripping(every, len(block))


def never() -> Step:
    """The request is read and nothing is ever answered."""
    return Step(0, silent=True)


def reset() -> Step:
    """The connection is reset as soon as the request was read."""
    return Step(0, framing=Framing.RAW, ending=Ending.RESET)


def big_headers(size: int, body: bytes | str = b"", *, lines: int = 1) -> Step:
    """200 with `lines` padding headers that hold `size` bytes together."""
    return ok(body, headers=tuple((f"X-Padding-{n}", "x" * (size // lines)) for n in range(lines)))


def gzip_bomb(inflated: int = 64 << 20, *, twice: bool = False) -> Step:
    """200 whose gzip body holds `inflated` spaces, about a thousandth of it on the wire, a millionth when compressed `twice`."""
    body, coding = (gzip.compress(_bomb(inflated), mtime=0), "gzip, gzip") if twice else (_bomb(inflated), "gzip")
    return ok(body, headers={"Content-Encoding": coding})


@lru_cache(maxsize=4)
def _bomb(inflated: int) -> bytes:
    """A gzip member made of one compressed block again and again: 10 GB take a second, since only their checksum needs work."""
    block = b" " * (1 << 20)
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    first = squeeze.compress(block) + squeeze.flush(zlib.Z_FULL_FLUSH)
    whole, rest = divmod(inflated, len(block))
    last = squeeze.compress(block[:rest]) + squeeze.flush()
    check = 0
    for _ in range(whole):
        check = zlib.crc32(block, check)
    check = zlib.crc32(block[:rest], check)
    trailer = check.to_bytes(4, "little") + (inflated % 2**32).to_bytes(4, "little")
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + first * whole + last + trailer


def pairs(headers: SomeHeaders) -> Headers:
    return tuple(headers.items()) if isinstance(headers, Mapping) else tuple(headers)


def _bytes(body: bytes | str) -> bytes:
    return body.encode() if isinstance(body, str) else body


_REASONS = {
    200: "OK",
    202: "Accepted",
    301: "Moved Permanently",
    302: "Found",
    304: "Not Modified",
    403: "Forbidden",
    404: "Not Found",
    410: "Gone",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}

NOTHING_HERE = status(404, "<html><title>Not found</title>")
"""What a path answers that nobody described."""
