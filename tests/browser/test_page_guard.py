"""What a page may reach: its own frame its Site alone, everything else public addresses alone, each dialled as it was checked (CASES H11,
E5; DESIGN 6, 7).

A forbidden part of 127.0.0.0/8 stands in for what is not public; that nothing was ever dialled there is its own listener's word."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from browser_sidecar.chrome import Binary
from lanes.core.answer import Trouble
from tests.browser.conftest import CHAPTER, Running, Tabs, html
from tests.smallnet import Host, Smallnet, ok, redirect
from tests.waiting import until


@pytest.fixture
def site(net: Smallnet) -> Host:
    return net.host("127.1.0.5", name="site.test")


@pytest.fixture
def forbidden(net: Smallnet) -> Iterator[Host]:
    forbidden = net.host("127.2.0.7", forbidden=True)
    forbidden.page("/", html("<p class=chapter>a secret"))
    yield forbidden
    assert not net.dialled(forbidden.address)


def told(script: str) -> str:
    """A page that runs an async script and shows what it returns."""
    show = "x => document.body.insertAdjacentHTML('beforeend', `<p class=chapter>${x}</p>`)"
    return html(f"<script>(async () => {{ {script} }})().then({show})</script>")


def says(came: bytes) -> str:
    return came.decode().rpartition('<p class="chapter">')[2].partition("</p>")[0]


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_to_an_address_that_is_not_public_is_refused_there(
    tabs: Tabs, site: Host, forbidden: Host, code: int
) -> None:
    site.script("/title", redirect(forbidden.url("/"), code))
    came = tabs.not_shown(site.url("/title"))
    assert (came.forbidden, came.line_proved) == ("127.2.0.7", True)


@pytest.mark.parametrize(
    "head",
    ['<meta http-equiv=refresh content="0;url={}">', "<script>location = '{}'</script>"],
    ids=["refresh", "script"],
)
def test_so_is_where_the_page_itself_goes(tabs: Tabs, site: Host, forbidden: Host, head: str) -> None:
    site.page("/title", html("", head.format(forbidden.url("/"))))
    assert tabs.not_shown(site.url("/title")).forbidden == "127.2.0.7"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_so_is_the_page_itself_by_number_and_by_name(tabs: Tabs, net: Smallnet, forbidden: Host, scheme: str) -> None:
    net.resolver.set("turned.test", forbidden.address)
    for host in (forbidden.address, "turned.test", "2130837511"):
        assert tabs.not_shown(f"{scheme}://{host}:{net.port}/").forbidden == "127.2.0.7"


def test_a_redirect_off_the_site_is_not_followed(tabs: Tabs, site: Host, net: Smallnet) -> None:
    other = net.host("127.1.0.6", name="other.test")
    site.script("/title", redirect(other.url("/"), 302))
    came = tabs.not_shown(site.url("/title"), hosts=("site.test",))
    assert (came.trouble, came.detail, came.line_proved) == (Trouble.LEFT, "it leads to other.test", True)
    assert not net.dialled(other.address)


def test_a_page_that_goes_off_the_site_by_itself_is_kept_from_it(tabs: Tabs, site: Host, net: Smallnet) -> None:
    other = net.host("127.1.0.6", name="other.test")
    site.page("/title", html(f"<script>location = '{other.url('/')}'</script>"))
    assert tabs.not_shown(site.url("/title"), hosts=("site.test",)).trouble is Trouble.LEFT
    assert not net.dialled(other.address)


def test_the_frames_in_a_page_are_not_the_page(tabs: Tabs, site: Host, net: Smallnet) -> None:
    other = net.host("127.1.0.6", name="other.test")
    other.page("/", html("a frame"))
    site.page("/title", html(f"<iframe src='{other.url('/')}'></iframe>{CHAPTER}"))
    assert tabs.shown(site.url("/title"), hosts=("site.test",)).held is None


def test_what_a_page_asks_for_besides_never_reaches_an_address_that_is_not_public(
    tabs: Tabs, site: Host, forbidden: Host, net: Smallnet
) -> None:
    """By number, in other spellings, by names, by fetch, frame, picture, worker, beacon and websocket."""
    net.resolver.set("turned.test", forbidden.address)
    net.resolver.set("localhost.test", "127.0.0.1")
    hosts = [
        f"{host}:{net.port}"
        for host in (forbidden.address, "2130837511", "0x7f020007", "turned.test", "localhost.test")
    ]
    site.page(
        "/title",
        told(
            f"const hosts = {hosts}; let all = [];"
            "for (const host of hosts) {"
            " all.push(await fetch(`http://${host}/`, {mode: 'no-cors'}).then(() => 'OPEN', () => 'no'));"
            " all.push(await fetch(`https://${host}/`, {mode: 'no-cors'}).then(() => 'OPEN', () => 'no'));"
            " all.push(await new Promise(done => { const w = new WebSocket(`ws://${host}/`); w.onopen = () => done('OPEN');"
            "  w.onerror = () => done('no') }));"
            " for (const [tag, at] of [['iframe', 'src'], ['img', 'src'], ['script', 'src'], ['link', 'href']])"
            "  { const e = document.createElement(tag); e.rel = 'stylesheet'; e[at] = `http://${host}/`; document.body.append(e) }"
            " navigator.sendBeacon(`http://${host}/`, 'x');"
            " new Worker(URL.createObjectURL(new Blob([`fetch('http://${host}/')`])));"
            "} return all.join()"
        ),
    )
    came = tabs.shown(site.url("/title"))
    assert says(came.html) == ",".join(["no"] * 15)
    assert len(tabs.gates[-1].forbidden) >= 15


def test_a_name_that_turns_to_a_forbidden_address_after_it_was_asked_is_not_followed_there(
    tabs: Tabs, site: Host, forbidden: Host, net: Smallnet
) -> None:
    turning = net.host("127.1.0.6", name="turns.test")
    for n in range(4):
        turning.script(f"/{n}", ok("fine", "text/plain", {"Access-Control-Allow-Origin": "*"}).closing())
    net.resolver.script("turns.test", [["127.1.0.6"], ["127.2.0.7"]])
    site.page(
        "/title",
        told(
            f"let all = []; for (let n = 0; n < 4; n++) all.push(await fetch(`http://turns.test:{net.port}/${{n}}`)"
            ".then(r => r.text(), () => 'no')); return all.join()"
        ),
    )
    assert says(tabs.shown(site.url("/title")).html) == "fine,no,no,no"


def test_a_page_does_not_reach_the_browsers_own_ports(tabs: Tabs, site: Host) -> None:
    tabs.running.connection()
    assert tabs.running.chrome is not None
    site.page(
        "/title",
        told(
            f"let all = []; for (const host of ['127.0.0.1', 'localhost', '[::1]']) all.push(await "
            f"fetch(`http://${{host}}:{tabs.running.chrome.port}/json/version`, {{mode: 'no-cors'}}).then(() => 'OPEN', () => 'no'));"
            "return all.join()"
        ),
    )
    assert says(tabs.shown(site.url("/title")).html) == "no,no,no"


def test_nothing_leaves_by_udp(tabs: Tabs, site: Host) -> None:
    """WebRTC would ask a server for our address past the proxy."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.2.0.7", 0))
        listener.setblocking(False)
        site.page(
            "/title",
            told(
                f"const all = [], pc = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.2.0.7:{listener.getsockname()[1]}'}}]}});"
                "pc.createDataChannel('x'); pc.onicecandidate = e => { if (e.candidate) all.push(e.candidate.candidate) };"
                "await pc.setLocalDescription(await pc.createOffer()); await new Promise(done => setTimeout(done, 1500));"
                "return all.length"
            ),
        )
        assert says(tabs.shown(site.url("/title")).html) == "0"
        with pytest.raises(BlockingIOError):
            listener.recv(1)


@pytest.fixture
def noting(binary: Binary) -> Iterator[Running]:
    """A Chrome of its own, which notes in its profile what it does on the network."""
    noting = Running(binary, "--log-net-log=noted.json")
    yield noting
    noting.close()


def noted(running: Running) -> list[tuple[str, dict[str, Any]]]:
    """Kind and particulars of all that it noted; it ends, in peace, to have it whole."""
    assert running.cdp is not None
    assert running.chrome is not None
    running.cdp.tell("Browser.close")
    until(running.chrome.is_gone)
    found = json.loads((running.chrome.profile / "noted.json").read_text(encoding="utf-8"))
    kinds = {number: name for name, number in found["constants"]["logEventTypes"].items()}
    return [(kinds[each["type"]], each.get("params", {})) for each in found["events"]]


def test_no_name_is_resolved_but_by_the_proxy_and_nothing_is_sent_by_udp(
    noting: Running, site: Host, net: Smallnet
) -> None:
    """By Chrome's own word, hints and what it wants for itself included."""
    hints = "".join(f"<link rel={rel} href=http://{rel}.test/x>" for rel in ("dns-prefetch", "preconnect", "prefetch"))
    site.page("/title", html(CHAPTER + "<script>fetch('http://fetched.test/').catch(() => 0)</script>", hints))
    with closing(Tabs(noting, net)) as tabs:
        tabs.shown(site.url("/title"))
        told = noted(noting)
    assert "site.test" in {asked.name for asked in net.resolver.asked}
    asked = [each["host"] for kind, each in told if kind == "HOST_RESOLVER_MANAGER_REQUEST" and "host" in each]
    assert asked, "it notes what it looks up"
    assert {urlsplit(each).hostname or each for each in asked} <= {"~notfound", "127.0.0.1"}
    assert [kind for kind, _ in told if kind == "UDP_BYTES_SENT"] == []
