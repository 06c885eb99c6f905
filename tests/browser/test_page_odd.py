"""Answers that break what HTTP says, in a real Chromium: what they come to can be written down, and proves our line (DESIGN 7)."""

from __future__ import annotations

import pytest

from lanes.core.answer import Trouble
from tests.browser.conftest import CHAPTER, Tabs, html
from tests.smallnet import Host, Smallnet, raw

BODY = html(CHAPTER).encode()


@pytest.fixture
def site(net: Smallnet) -> Host:
    return net.host("127.1.0.5", name="site.test")


def odd(first: bytes = b"HTTP/1.1 200 OK", *lines: bytes, end: bytes = b"\r\n", body: bytes = BODY) -> object:
    head = [first, b"Content-Type: text/html", b"Content-Length: %d" % len(body), *lines, b"", b""]
    return raw(end.join(head) + body)


@pytest.mark.parametrize("status", [b"99999", b"40000", b"999", b"600"])
def test_a_status_that_is_none_is_broken_framing(tabs: Tabs, site: Host, status: bytes) -> None:
    """It would not go into its row, and the page would be asked again at once, and again."""
    site.script("/title", odd(b"HTTP/1.1 " + status + b" Odd"))  # type: ignore[arg-type]
    came = tabs.not_shown(site.url("/title"))
    assert (came.trouble, came.line_proved) == (Trouble.FRAMING, True)


@pytest.mark.parametrize("value", [b"\xff\xfe\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"x" * 30_000])
def test_a_header_of_any_bytes_is_written_down_as_far_as_it_can_be(tabs: Tabs, site: Host, value: bytes) -> None:
    site.script("/title", odd(b"HTTP/1.1 200 OK", b"X-Odd: a" + value))  # type: ignore[arg-type]
    came = tabs.shown(site.url("/title"))
    assert came.headers["x-odd"].startswith("a")
    assert len(came.headers["x-odd"].encode()) <= 20_000


def test_a_thousand_headers_are_not_kept(tabs: Tabs, site: Host) -> None:
    site.script("/title", odd(b"HTTP/1.1 200 OK", *(b"X-%d: y" % n for n in range(1_000))))  # type: ignore[arg-type]
    assert len(tabs.shown(site.url("/title")).headers) == 200


def test_where_scripts_have_gone_that_nobody_can_ask_the_documents_own_url_is_told(tabs: Tabs, site: Host) -> None:
    script = "history.pushState(0, '', '/' + '\\ud800%00x'.repeat(5000))"
    site.page("/title", html(f"{CHAPTER}<script>{script}</script>"))
    assert tabs.shown(site.url("/title")).url == site.url("/title")


def test_a_head_whose_lines_end_in_lf_alone_is_a_head(tabs: Tabs, site: Host) -> None:
    site.script("/title", odd(b"HTTP/1.1 200 OK", b"X-A: b", end=b"\n"))  # type: ignore[arg-type]
    came = tabs.shown(site.url("/title"))
    assert (came.status, came.headers["x-a"]) == (200, "b")
    assert CHAPTER.encode() not in came.html  # as scripts left it
    assert b'<p class="chapter">One</p>' in came.html


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        (BODY, Trouble.FRAMING),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Cut", Trouble.RESET),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", Trouble.FRAMING),
        (b"\0" * 300_000, Trouble.FRAMING),
    ],
    ids=["no head", "half a head", "no HTTP", "no end"],
)
def test_whatever_came_came_by_our_line(tabs: Tabs, site: Host, answer: bytes, trouble: Trouble) -> None:
    """Failures without proof would have us ask whether our own line works (DESIGN 4.4)."""
    site.script("/title", raw(answer))
    came = tabs.not_shown(site.url("/title"))
    assert (came.trouble, came.line_proved) == (trouble, True)
