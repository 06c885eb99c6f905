"""Content-Encoding undone, in bounded steps.

Owns gzip, deflate, br and zstd as streams.  Refuses to own: reading from the socket, and what the bytes say.  Must never break: no stage
gives out more than the cap, and a compressed stream that was cut is an error, not a shorter body (CASES G4, G5, G6).
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable, Iterator

import brotli  # type: ignore[import-untyped]

from lanes.core.answer import Trouble
from lanes.fetch.broken import Broken

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ACCEPTED = "gzip, deflate, br, zstd"

PIECE = 64 * 1024
"""Bytes that a decoder gives out at once."""

_MOST_CODINGS = 3
"""More than one is rare, more than three is an attack on our CPU."""

Pieces = Iterable[bytes]


def decoded(pieces: Pieces, encoding: str, most: int, cut: int | None = None) -> bytes:
    """The whole body behind `Content-Encoding: encoding`, or its first `cut` bytes; a coding that nobody knows is taken for a label and
    left alone.

    Raises: Broken (ENCODING where the bytes are not what the header says, OVERSIZE past `most` bytes).
    """
    codings = [name for part in encoding.lower().split(",") if (name := part.strip()) in _DECODERS]
    if len(codings) > _MOST_CODINGS:
        raise Broken(Trouble.ENCODING, f"{len(codings)} content codings in a row", line_proved=True)
    for coding in reversed(codings):
        pieces = _bounded(_DECODERS[coding](pieces), most)
    try:
        pieces = _bounded(pieces, most)
        return b"".join(pieces if cut is None else _first(pieces, cut))
    except (zlib.error, brotli.error, zstd.ZstdError, EOFError) as error:
        what = "ends early" if isinstance(error, EOFError) else "is something else"
        raise Broken(Trouble.ENCODING, f"Content-Encoding says {', '.join(codings)}, the body {what}", True) from error


def _bounded(pieces: Pieces, most: int) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            raise Broken(Trouble.OVERSIZE, f"more than {most} bytes decompressed", line_proved=True)
        yield piece


def _first(pieces: Pieces, cut: int) -> Iterator[bytes]:
    """The first `cut` bytes; what follows is not even asked for."""
    for piece in pieces:
        yield piece[:cut]
        cut -= len(piece)
        if cut <= 0:
            return


def _zlib(pieces: Pieces, wbits: int, *, members: bool = False) -> Iterator[bytes]:
    """One zlib stream, or several gzip members in a row; what follows a whole stream and is none itself is ignored, as gzip does."""
    stream, begun, ended = zlib.decompressobj(wbits), False, False
    for piece in pieces:
        rest = piece
        while rest:
            if stream.eof:
                if not members:
                    return
                stream, ended = zlib.decompressobj(wbits), True
            begun = True
            try:
                yield from _inflated(stream, rest)
            except zlib.error:
                if ended:
                    return
                raise
            rest = stream.unused_data
    if begun and not stream.eof and not ended:
        raise EOFError


def _inflated(stream: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """All that `data` gives, a piece at a time: zlib may hold back output although all input is taken."""
    while True:
        piece = stream.decompress(data, PIECE)
        yield piece
        data = stream.unconsumed_tail
        if stream.eof or (not data and len(piece) < PIECE):
            return


def _gzip(pieces: Pieces) -> Iterator[bytes]:
    return _zlib(pieces, zlib.MAX_WBITS | 16, members=True)


def _deflate(pieces: Pieces) -> Iterator[bytes]:
    """With the zlib header that RFC 9110 asks for, or without it, as some servers send."""
    stream = iter(pieces)
    head = b""
    while len(head) < 2 and (piece := next(stream, b"")):
        head += piece
    has_header = len(head) >= 2 and head[0] & 0x0F == 8 and int.from_bytes(head[:2], "big") % 31 == 0
    return _zlib(_chained(head, stream), zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)


def _chained(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from rest


def _brotli(pieces: Pieces) -> Iterator[bytes]:
    stream, begun = brotli.Decompressor(), False
    for piece in pieces:
        begun, out = True, stream.process(piece, output_buffer_limit=PIECE)
        yield out
        while out and not stream.is_finished():  # it may hold back output although it would take more input
            out = stream.process(b"", output_buffer_limit=PIECE)
            yield out
    if begun and not stream.is_finished():
        raise EOFError


def _zstd(pieces: Pieces) -> Iterator[bytes]:
    """One frame or several."""
    stream, begun = zstd.ZstdDecompressor(), False
    for piece in pieces:
        rest = piece
        while rest or not (stream.needs_input or stream.eof):
            if stream.eof:
                stream = zstd.ZstdDecompressor()
            begun = True
            yield stream.decompress(rest, PIECE)
            rest = stream.unused_data if stream.eof else b""
    if begun and not stream.eof:
        raise EOFError


_DECODERS: dict[str, Callable[[Pieces], Iterator[bytes]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
