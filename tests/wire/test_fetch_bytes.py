"""Bytes that hurt: caps, deadlines, framing and encodings.  Whatever a Site sends is a value, and it stops at the cap."""

from __future__ import annotations

import gzip
import sys
import zlib
from dataclasses import replace

import brotli  # type: ignore[import-untyped]
import pytest

from lanes.core.answer import Trouble
from lanes.fetch.body import PIECE
from lanes.fetch.limits import LIMITS
from tests.smallnet import Smallnet, big_headers, drip, endless, gzip_bomb, never, ok, raw, reset, status
from tests.wire.fetching import get, response, trouble

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

FEED = b"<rss><channel><title>T</title>" + b"<item><title>One</title></item>" * 500 + b"</channel></rss>"
SHORT = replace(LIMITS, read=0.3, whole=0.6)
BIG = FEED * 40
ENCODERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "GZip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
    "gzip, br": lambda body: brotli.compress(gzip.compress(body)),
}


@pytest.mark.parametrize("coding", ENCODERS)
@pytest.mark.parametrize("body", [b"", b"x", FEED, BIG], ids=["empty", "a byte", "a feed", "many pieces"])
def test_a_compressed_body_is_read(net: Smallnet, coding: str, body: bytes) -> None:
    assert len(BIG) > 2 * PIECE
    host = net.host("127.1.0.5")
    host.script("/feed", ok(ENCODERS[coding](body), headers={"Content-Encoding": coding}).chunked())
    assert response(get(net, host.url())).body == body


def test_deflate_without_its_header_and_gzip_in_several_members_are_read(net: Smallnet) -> None:
    host = net.host("127.1.0.5")
    bare = zlib.compressobj(wbits=-15)
    host.script("/bare", ok(bare.compress(FEED) + bare.flush(), headers={"Content-Encoding": "deflate"}))
    host.script("/many", ok(gzip.compress(FEED) + gzip.compress(FEED), headers={"Content-Encoding": "gzip"}))
    host.script("/tail", ok(gzip.compress(FEED) + b"\0\0rubbish", headers={"Content-Encoding": "gzip"}))
    assert response(get(net, host.url("/bare"))).body == FEED
    assert response(get(net, host.url("/many"))).body == FEED * 2
    assert response(get(net, host.url("/tail"))).body == FEED


@pytest.mark.parametrize("coding", ["utf-8", "identity", "none", ""])
def test_a_coding_that_is_none_leaves_the_body_alone(net: Smallnet, coding: str) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", ok(FEED, headers={"Content-Encoding": coding}))
    assert response(get(net, host.url())).body == FEED


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_plain_bytes_that_claim_a_coding_are_a_clear_error(net: Smallnet, coding: str) -> None:
    """CASES G6."""
    host = net.host("127.1.0.5")
    host.script("/feed", ok(FEED, headers={"Content-Encoding": coding}))
    told = trouble(get(net, host.url()), Trouble.ENCODING)
    assert told.detail == f"Content-Encoding says {coding}, the body is something else"
    assert told.line_proved


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_a_compressed_body_that_ends_early_is_no_shorter_body(net: Smallnet, coding: str) -> None:
    """CASES C4, G4: framed as whole, so that only the coding can tell."""
    host = net.host("127.1.0.5")
    host.script("/feed", ok(ENCODERS[coding](BIG)[:-9], headers={"Content-Encoding": coding}))
    trouble(get(net, host.url()), Trouble.ENCODING)


def test_four_codings_in_a_row_are_refused(net: Smallnet) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", ok(b"", headers={"Content-Encoding": "gzip, gzip, gzip, gzip"}).chunked())
    trouble(get(net, host.url()), Trouble.ENCODING)


@pytest.mark.parametrize("twice", [False, True])
def test_a_bomb_stops_at_the_cap(net: Smallnet, twice: bool) -> None:
    """CASES G5: decompressed bytes are counted at every stage."""
    host = net.host("127.1.0.5")
    host.script("/feed", gzip_bomb(64 << 20, twice=twice))
    told = trouble(get(net, host.url()), Trouble.OVERSIZE)
    assert "31457280 bytes decompressed" in told.detail


def test_a_body_without_end_stops_at_the_cap_on_the_wire(net: Smallnet) -> None:
    """CASES G5."""
    host = net.host("127.1.0.5")
    host.script("/feed", endless())
    limits = replace(LIMITS, wire=100_000)
    told = trouble(get(net, host.url(), limits), Trouble.OVERSIZE)
    assert 100_000 < told.requests[0].wire_bytes < 200_000
    assert told.requests[0].status == 200


def test_a_body_announced_as_too_long_is_not_read(net: Smallnet) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", ok(b"x" * 200_000))
    told = trouble(get(net, host.url(), replace(LIMITS, wire=100_000)), Trouble.OVERSIZE)
    assert told.requests[0].wire_bytes <= 100_000


def test_a_large_feed_is_read(net: Smallnet) -> None:
    """CASES G7."""
    host = net.host("127.1.0.5")
    body = b"<feed>" + b"<entry/>" * 750_000 + b"</feed>"
    host.script("/feed", ok(body))
    assert response(get(net, host.url())).body == body


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_drips_for_ever_ends_at_the_deadline_of_the_whole_fetch(net: Smallnet, chunked: bool) -> None:
    """CASES G5: each byte comes well within the read deadline."""
    host = net.host("127.1.0.5")
    step = drip(b"x" * 1_000, 0.02)
    host.script("/feed", step.chunked(1) if chunked else step)
    told = trouble(get(net, host.url(), SHORT), Trouble.TIMEOUT)
    assert told.detail == "127.1.0.5: not finished for 0.6 s"
    assert told.line_proved


def test_a_header_that_drips_for_ever_ends_at_the_deadline_of_the_whole_fetch(net: Smallnet) -> None:
    """CASES G5."""
    host = net.host("127.1.0.5")
    host.script("/feed", raw(b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 10_000).dripping(0.02))
    told = trouble(get(net, host.url(), SHORT), Trouble.TIMEOUT)
    assert told.detail == "127.1.0.5: not finished for 0.6 s"


def test_a_redirect_whose_body_drips_does_not_hold_the_slot(net: Smallnet) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", drip(b"x" * 200_000, 0.02).with_headers({"Location": "/b"}))
    host.script("/feed", replace(drip(b"x" * 200_000, 0.02), status=302).with_headers({"Location": "/b"}))
    host.script("/b", ok(FEED))
    assert response(get(net, host.url(), replace(LIMITS, read=5, whole=5))).body == FEED


def test_silence_ends_at_the_read_deadline_and_proves_nothing(net: Smallnet) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", never())
    told = trouble(get(net, host.url(), replace(LIMITS, read=0.1)), Trouble.TIMEOUT)
    assert told.detail == "127.1.0.5: silent for 0.1 s"
    assert not told.line_proved
    assert [sent.status for sent in told.requests] == [None]


@pytest.mark.parametrize("cut", [0, 1, 100, 3_000])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_cut_short_is_broken_framing(net: Smallnet, cut: int, chunked: bool) -> None:
    """CASES C4, G4."""
    host = net.host("127.1.0.5")
    step = ok(FEED).with_headers({"ETag": '"x"'})
    host.script("/feed", (step.chunked() if chunked else step).cut_after(cut))
    told = trouble(get(net, host.url()), Trouble.FRAMING)
    assert told.requests[0].status == 200
    assert told.line_proved


def test_a_body_whose_connection_is_reset_is_broken_framing(net: Smallnet) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", ok(FEED).reset_after(100))
    trouble(get(net, host.url()), Trouble.FRAMING)


def test_a_reset_before_the_header_is_a_reset_and_is_not_asked_again(net: Smallnet) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", [reset(), ok(FEED)])
    told = trouble(get(net, host.url()), Trouble.RESET)
    assert not told.line_proved
    assert len(net.record.of(host)) == 1


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"", Trouble.RESET),
        (b"HTTP/1.1 200 OK\r\nContent-Ty", Trouble.RESET),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n", Trouble.RESET),
        (b"<rss>an answer as of 1991</rss>", Trouble.FRAMING),
        (b"SSH-2.0-OpenSSH_9.2\r\n", Trouble.FRAMING),
        (b"HTTP/1.1 abc Odd\r\n\r\n", Trouble.FRAMING),
        (b"HTTP/1.1 42 Odd\r\n\r\n", Trouble.FRAMING),
        (b"HTTP/2.0 200 OK\r\n\r\n", Trouble.FRAMING),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", Trouble.FRAMING),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello", Trouble.FRAMING),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n", Trouble.FRAMING),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 70_000, Trouble.FRAMING),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n", Trouble.FRAMING),
        (b"\x16\x03\x01\x00\x05hello", Trouble.FRAMING),
    ],
)  # fmt: skip
def test_what_is_no_http_is_a_value(net: Smallnet, answer: bytes, expected: Trouble) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", raw(answer))
    assert trouble(get(net, host.url()), expected).line_proved == (answer != b"")


@pytest.mark.parametrize(
    "step",
    [
        ok(FEED, headers=tuple((f"X-{n}", "x") for n in range(5_000))),
        big_headers(9_000_000, FEED, lines=5_000),
        big_headers(20_000_000, FEED, lines=90),
    ],
)
def test_a_header_bomb_is_a_value(net: Smallnet, step: object) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", step)  # type: ignore[arg-type]
    told = trouble(get(net, host.url()), Trouble.FRAMING, Trouble.OVERSIZE)
    assert told.requests[0].wire_bytes < 500_000


def test_interim_answers_are_skipped(net: Smallnet) -> None:
    host = net.host("127.1.0.5")
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"
    host.script("/feed", raw(early * 2 + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    answer = response(get(net, host.url()))
    assert (answer.body, "link" in answer.headers) == (b"ok", False)


@pytest.mark.parametrize("code", [101, 204, 205, 206, 299, 300, 304, 404, 418, 500, 999])
def test_any_status_is_a_value(net: Smallnet, code: int) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", status(code))
    assert response(get(net, host.url()), code).body == b""


def test_a_repeated_header_is_joined_and_names_are_lower_case(net: Smallnet) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", ok(FEED, headers=(("X-Two", "a"), ("x-two", "b"), ("RETRY-after", "120"))))
    headers = response(get(net, host.url())).headers
    assert (headers["x-two"], headers["retry-after"]) == ("a, b", "120")
    assert all(name == name.lower() for name in headers)
