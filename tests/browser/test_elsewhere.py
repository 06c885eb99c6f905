"""A Chrome that runs elsewhere: attached to, and what can be kept from it there (DESIGN 7)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psutil
import pytest

from browser_sidecar.browser import TRIES_AGAIN, ChromeElsewhere
from browser_sidecar.chrome import Binary, Chrome, NotStarted
from lanes.core.answer import Trouble
from lanes.core.pages import NotShown, Shown
from lanes.fetch.guard import Guard
from tests.browser.conftest import CHAPTER, asked_for, at_once, html
from tests.browser.fix_process import StartSidecar
from tests.browser.rows import Rows
from tests.browser.scripted import Peer, Scripted
from tests.smallnet import ALLOWED, Host, Smallnet, redirect


@pytest.fixture
def site(net: Smallnet) -> Host:
    """Known by its address: a Chrome elsewhere asks its own name system."""
    site = net.host("127.1.0.5")
    site.page("/title", html(f"<script>setTimeout(() => document.body.innerHTML = '{CHAPTER}', 50)</script>"))
    return site


@pytest.fixture
def elsewhere(binary: Binary) -> object:
    """A Chrome that reaches loopback by itself."""
    started = Chrome(binary, flags=("--no-proxy-server", "--host-resolver-rules=MAP turned.test 127.2.0.7"))
    yield started
    started.kill()


@pytest.mark.parametrize("path", ["", "/", "the browser's own"])
def test_a_chrome_elsewhere_is_attached_to_and_outlives_us(
    rows: Rows, site: Host, start_sidecar: StartSidecar, elsewhere: Chrome, path: str
) -> None:
    url = elsewhere.url if path.startswith("the") else f"ws://127.0.0.1:{elsewhere.port}{path}"
    sidecar = start_sidecar(LANES_BROWSER_WS_URL=url)
    sidecar.says("only literal addresses, and those that it reports, are checked")
    assert isinstance(rows.opened(rows.asked(site.url("/title"))), Shown)
    assert "runs elsewhere, where nothing keeps WebSockets" in sidecar.health()[1]
    assert sidecar.health()[0] == 200
    assert sidecar.children() == []
    assert sidecar.ends() == 0
    assert not elsewhere.is_gone()
    assert [each for each in psutil.Process(elsewhere.pid).children(True) if "--type=renderer" in each.cmdline()] == []


def test_in_a_chrome_elsewhere_literal_addresses_are_refused_and_reported_ones_end_the_page(
    rows: Rows, site: Host, start_sidecar: StartSidecar, elsewhere: Chrome
) -> None:
    forbidden = site.net.host("127.2.0.7", forbidden=True)
    forbidden.page("/", html(CHAPTER))
    other = site.net.host("127.2.0.8", forbidden=True)
    site.script("/there", redirect(other.url("/"), 302))
    site.page("/inside", html(f"<iframe src={other.url('/')}></iframe>"))
    turned = f"http://turned.test:{site.net.port}/"
    start_sidecar(LANES_BROWSER_WS_URL=elsewhere.url)
    found = []
    for n, url in enumerate((other.url("/"), site.url("/there"), site.url("/inside"), turned)):
        came = rows.opened(rows.asked(url, f"site-{n}"))
        assert isinstance(came, NotShown), came
        found.append((came.trouble, came.forbidden))
    assert found == [(Trouble.CONNECT, "127.2.0.8")] * 3 + [(Trouble.CONNECT, "127.2.0.7")]
    assert site.net.record.of(other) == []  # it may have been dialled: Chrome opens connections ahead


FETCH = "fetch('THERE/', {mode: 'no-cors'})"
FRAME = "const e = document.createElement('iframe'); e.src = 'PLACE'; document.body.append(e)"
STARTED = {
    "a fetch": FETCH,
    "a frame": FRAME.replace("PLACE", "/frame"),
    "a frame of another site": FRAME.replace("PLACE", "OTHER/frame"),
    "a worker": "new Worker('/worker.js')",
    "a worker made up": f"new Worker(URL.createObjectURL(new Blob([`{FETCH}`])))",
    "a worker's worker": "new Worker('/nested.js')",
    "a worker of a frame of another site": FRAME.replace("PLACE", "OTHER/working"),
    "a service worker": "navigator.serviceWorker.register('/worker.js')",
}
"""Scripts; THERE is what may not be asked, OTHER another site."""


def refused_within(elsewhere: Chrome, site: Host) -> None:
    """The page that begins is ended for what it asks of 127.2.0.7."""
    browser = ChromeElsewhere(elsewhere.url, Guard([str(ALLOWED)]), "Lanes/test")
    try:
        came = browser.open(asked_for(site.url("/begins")), at_once, time.monotonic()).came
    finally:
        browser.close()
    assert isinstance(came, NotShown), came
    assert (came.trouble, came.forbidden) == (Trouble.CONNECT, "127.2.0.7")


@pytest.mark.parametrize("what", STARTED)
def test_whatever_a_page_starts_in_a_chrome_elsewhere_asks_no_literal_that_is_not_public(
    site: Host, elsewhere: Chrome, what: str
) -> None:
    """Frames in processes of their own and workers are told of in sessions of their own, and begin once those are looked at."""
    forbidden, other = site.net.host("127.2.0.7", forbidden=True), site.net.host("127.1.0.6")

    def script(text: str) -> str:
        return text.replace("THERE", forbidden.url("")).replace("OTHER", other.url(""))

    for host in (site, other):
        host.page("/worker.js", script(FETCH), "text/javascript")
        host.page("/nested.js", "new Worker('/worker.js')", "text/javascript")
        host.page("/frame", html(f"<script>{script(FETCH)}</script>"))
        host.page("/working", html("<script>new Worker('/worker.js')</script>"))
    site.page("/begins", html(f"<p>nothing to see<script>{script(STARTED[what])}</script>"))
    refused_within(elsewhere, site)
    assert site.net.record.of(forbidden) == []


def test_a_websocket_to_a_literal_that_is_not_public_ends_its_page(site: Host, elsewhere: Chrome) -> None:
    """Nothing holds it back there, so it may have been made by then."""
    forbidden = site.net.host("127.2.0.7", forbidden=True)
    there = forbidden.url("/").replace("http", "ws")
    for begins in (
        f"new WebSocket('{there}')",
        f"new Worker(URL.createObjectURL(new Blob([`new WebSocket('{there}')`])))",
    ):
        site.page("/begins", html(f"<p>nothing to see<script>{begins}</script>"))
        refused_within(elsewhere, site)


def test_all_that_a_page_starts_says_who_it_is(site: Host, elsewhere: Chrome) -> None:
    other = site.net.host("127.1.0.6")
    other.page("/frame", html("<script>fetch('/from-frame')</script>"))
    site.page("/worker.js", "fetch('/from-worker')", "text/javascript")
    site.page(
        "/begins",
        html(f"{CHAPTER}<script>new Worker('/worker.js')</script><iframe src={other.url('/frame')}></iframe>"),
    )
    browser = ChromeElsewhere(elsewhere.url, Guard([str(ALLOWED)]), "Lanes/test")
    try:
        asked = asked_for(site.url("/begins"), landmark=".never", settles_for=".chapter")
        assert isinstance(browser.open(asked, at_once, time.monotonic()).came, Shown)
    finally:
        browser.close()
    seen = {
        visit.path: visit.headers["user-agent"] for visit in (*site.net.record.of(site), *site.net.record.of(other))
    }
    assert {path for path, agent in seen.items() if not agent.endswith(" Lanes/test")} == set()
    assert {"/begins", "/worker.js", "/from-worker", "/frame", "/from-frame"} <= set(seen)


def test_what_is_not_held_there_is_said(rows: Rows, start_sidecar: StartSidecar, elsewhere: Chrome) -> None:
    sidecar = start_sidecar(LANES_BROWSER_WS_URL=elsewhere.url)
    for word in ("WebSockets", "shared workers", "fetches ahead"):
        sidecar.says(word)


def test_a_chrome_elsewhere_that_does_not_answer_is_down(rows: Rows, site: Host, start_sidecar: StartSidecar) -> None:
    start_sidecar(LANES_BROWSER_WS_URL="ws://127.0.0.1:9")
    rows.asked(site.url("/title"))
    told = rows.wait_for("SELECT trouble FROM lanes.browser WHERE trouble IS NOT NULL").trouble
    assert told.startswith("no Chrome answers at LANES_BROWSER_WS_URL")


def answering(body: bytes, status: int = 200, **headers: str) -> type[BaseHTTPRequestHandler]:
    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the library names it
            return

    return Answering


@contextmanager
def server(answers: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Where an HTTP server stands instead of DevTools: host and port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), answers) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


def not_attached(url: str) -> NotStarted:
    browser = ChromeElsewhere(url, Guard(), "Lanes/test")
    with pytest.raises(NotStarted) as raised:
        browser.open(asked_for("http://site.test/"), at_once, time.monotonic())
    assert not browser.is_awake
    assert raised.value.again == TRIES_AGAIN
    return raised.value


@pytest.mark.parametrize(
    "body",
    [
        b"[]", b"{}", b"5", b"null", b'"text"', b"<html>", b"", b"\xff", b'{"webSocketDebuggerUrl": 5}', b'{"webSocketDebuggerUrl": "x"}',
        b'{"webSocketDebuggerUrl": "ws://[secret"}',
    ],
)  # fmt: skip
def test_who_does_not_say_where_devtools_are_is_no_chrome(body: bytes) -> None:
    with server(answering(body)) as place:
        why = str(not_attached(f"ws://{place}"))
    assert why == "no Chrome answers at LANES_BROWSER_WS_URL: what is there does not say where its DevTools are"


@pytest.mark.parametrize("status", [200, 302, 403, 502])
def test_nothing_that_the_other_side_says_is_told_but_its_status(status: int, caplog: pytest.LogCaptureFixture) -> None:
    """It may hold what nobody else must know: the address has a token in it."""
    caplog.set_level(logging.DEBUG)
    secret = {"Location": "ws://x.test/SECRET?token=abc", "X-Secret": "SECRET", "Set-Cookie": "SECRET=1"}
    with server(answering(b"you asked for SECRET?token=abc", status, **secret)) as place:
        why = str(not_attached(f"ws://{place}/devtools/browser/SECRET?token=abc"))
    said = "what is there is no WebSocket" if status == 302 else f"status {status}"
    assert why == f"no Chrome answers at LANES_BROWSER_WS_URL: no connection: {said}"
    assert "SECRET" not in caplog.text


@pytest.mark.parametrize(
    "greeting", [b"SECRET token=abc\r\n\r\n", b"HTTP/1.1 SECRET\r\n\r\n", b"HTTP/1.1 101 Yes\r\nSECRET\r\n\r\n"]
)
def test_nor_is_what_is_no_http(greeting: bytes) -> None:
    def nothing(_: Peer) -> None:
        raise AssertionError

    with Scripted(nothing, greeting) as there:
        why = str(not_attached(there.url))
    assert why == "no Chrome answers at LANES_BROWSER_WS_URL: no connection: what is there is no WebSocket"


@pytest.mark.parametrize(
    ("says", "why"),
    [
        (lambda peer, asked: peer.reply(asked, {}), "what is there does not say where its DevTools are"),
        (
            lambda peer, asked: peer.say({"id": asked["id"], "error": {"message": "SECRET"}}),
            "its DevTools decline to say which version it is",
        ),
    ],
    ids=["no version", "declines"],
)
def test_a_connection_to_what_is_no_chrome_is_closed(says: Callable[[Peer, object], None], why: str) -> None:
    gone = threading.Event()

    def script(peer: Peer) -> None:
        says(peer, peer.heard())
        peer.wait_for_the_end()
        gone.set()

    with Scripted(script) as there:
        assert str(not_attached(there.url)) == f"no Chrome answers at LANES_BROWSER_WS_URL: {why}"
        assert gone.wait(20)


def test_a_chrome_elsewhere_that_was_off_is_back_after_a_minute(
    rows: Rows, site: Host, start_sidecar: StartSidecar
) -> None:
    start_sidecar(LANES_BROWSER_WS_URL="ws://127.0.0.1:9")
    token = rows.asked(site.url("/title"))
    page = rows.until(token, lambda page: page is None or page.browser.trouble is not None)
    assert page is not None
    assert page.browser.wait is not None
    assert timedelta(0) < page.browser.wait <= timedelta(minutes=1)
