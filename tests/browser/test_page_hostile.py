"""Pages that crash, hang, swell and pester: each costs itself, in its time; the next is opened as if nothing were (DESIGN 7)."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar

import psutil
import pytest

from browser_sidecar.cdp import Cdp
from browser_sidecar.page import Lost, open_page
from lanes.core.answer import Trouble
from lanes.core.pages import Shown
from lanes.fetch.guard import Guard
from lanes.fetch.limits import LIMITS
from tests.browser.conftest import AGENT, CHAPTER, PATIENT, QUICK, Tabs, asked_for, html
from tests.browser.scripted import Peer, Scripted
from tests.smallnet import Host, Smallnet, drip, ok

BLOCK = b"<p>forty-two bytes of nothing, again and again</p>\n"


@pytest.fixture
def site(net: Smallnet) -> Host:
    site = net.host("127.1.0.5", name="site.test")
    site.page("/sound", html(CHAPTER))
    return site


def then_sound(tabs: Tabs, site: Host) -> None:
    """The next page is opened in the same Chrome."""
    before = tabs.running.cdp
    assert b"One" in tabs.shown(site.url("/sound")).html
    assert tabs.running.cdp is before


@pytest.mark.parametrize("answered", [True, False])
def test_a_tab_that_crashes_is_lost_and_nobody_waits_for_it(tabs: Tabs, site: Host, answered: bool) -> None:
    """CASES H5."""
    site.page("/title", html("<p>no landmark"))
    hold = site.hold("/title")
    with ThreadPoolExecutor(1) as pool:
        page = pool.submit(tabs, site.url("/title"))
        tabs.net.wait_for_visits(1, site, timeout=30)
        if answered:
            hold.release()
            tabs.net.quiet()
        assert tabs.running.chrome is not None
        for each in psutil.Process(tabs.running.chrome.pid).children(recursive=True):
            if "--type=renderer" in each.cmdline():
                os.kill(each.pid, signal.SIGKILL)
        assert page.result(60) == Lost("the tab crashed")
    then_sound(tabs, site)


def test_of_a_tab_that_has_crashed_nothing_is_asked_any_more(tabs: Tabs, site: Host) -> None:
    """Its page would be asked for, only to be lost."""

    def crash(_: float) -> timedelta:
        assert tabs.running.chrome is not None
        for each in psutil.Process(tabs.running.chrome.pid).children(recursive=True):
            if "--type=renderer" in each.cmdline():
                os.kill(each.pid, signal.SIGKILL)
        return timedelta(seconds=30)

    assert tabs(site.url("/sound"), sending=crash) == Lost("the tab crashed")
    assert tabs.net.record.of(site) == []
    then_sound(tabs, site)


def test_a_page_whose_way_to_the_network_crashes_in_chrome_is_lost(tabs: Tabs, site: Host) -> None:
    """No word came from its Site that it could be charged for."""
    site.hold("/title")
    with ThreadPoolExecutor(1) as pool:
        page = pool.submit(tabs, site.url("/title"))
        tabs.net.wait_for_visits(1, site, timeout=30)
        assert tabs.running.chrome is not None
        (network,) = (
            each
            for each in psutil.Process(tabs.running.chrome.pid).children(recursive=True)
            if "--utility-sub-type=network.mojom.NetworkService" in each.cmdline()
        )
        network.kill()
        assert isinstance(page.result(60), Lost)
    then_sound(tabs, site)


def test_a_chrome_that_is_killed_in_mid_page_is_lost_and_nobody_waits_for_it(tabs: Tabs, site: Host) -> None:
    """CASES H5."""
    site.hold("/title")
    with ThreadPoolExecutor(1) as pool:
        page = pool.submit(tabs, site.url("/title"))
        tabs.net.wait_for_visits(1, site, timeout=30)
        assert tabs.running.chrome is not None
        os.killpg(tabs.running.chrome.pid, signal.SIGKILL)
        assert isinstance(page.result(60), Lost)
    assert isinstance(tabs.shown(site.url("/sound")).html, bytes)


@pytest.mark.parametrize(
    "script",
    ["while (true);", "addEventListener('DOMContentLoaded', () => { while (true); })"],
    ids=["at once", "when the document is there"],
)
def test_scripts_that_run_on_for_ever_are_a_failure_of_their_page_alone(tabs: Tabs, site: Host, script: str) -> None:
    """They begin by no clock: a look that came before they did would find the page as it is."""
    site.page("/title", html(f"<p>x<script>{script}</script>"))
    came = tabs.not_shown(site.url("/title"), times=replace(QUICK, busy=1.0))
    assert (came.trouble, came.line_proved) == (Trouble.TIMEOUT, True)
    then_sound(tabs, site)


def test_a_page_that_makes_wait_for_each_piece_of_it_takes_no_more_than_its_time(tabs: Tabs, site: Host) -> None:
    """Each comes in its own time, all of them long after the page's: the browser would be called lost for it."""
    pester = "const busy = () => { const end = Date.now() + 1500; while (Date.now() < end); setTimeout(busy) }; busy()"
    large = "document.body.hidden = true; document.body.append('y'.repeat(24 * 2 ** 20))"
    site.page("/title", html(f"<p>x<script>{large}; onload = () => {{ {pester} }}</script>"))
    came = tabs.not_shown(site.url("/title"), times=replace(QUICK, document=4.0, whole=12.0, last=1.0))
    assert (came.trouble, came.detail) == (Trouble.TIMEOUT, "its scripts never came to rest")
    then_sound(tabs, site)


@pytest.mark.parametrize("ends", [True, False])
def test_a_page_that_chrome_does_not_end_is_told_to_be_left_there(ends: bool) -> None:
    """One that floods Chrome may outlive its time in it."""

    def script(peer: Peer) -> None:
        while True:
            message = peer.heard()
            if ends or message["method"] != "Target.disposeBrowserContext":
                peer.reply(message, {"browserContextId": "c", "targetId": "t", "sessionId": "s"})

    with Scripted(script) as server, closing(Cdp(server.url)) as cdp:
        visit = open_page(
            cdp,
            asked_for("http://site.test/"),
            agent=AGENT,
            gate=None,
            guard=Guard(),
            sending=lambda _: None,
            until=time.monotonic() + QUICK.whole,
            times=QUICK,
        )
    assert (visit.came, visit.is_left) == (None, not ends)


@pytest.mark.parametrize("says", ["prompt('', long)", "open('data:,' + long)", "fetch('data:,' + long)"])
def test_a_page_of_which_chrome_tells_at_length_takes_the_browser_from_nobody(
    tabs: Tabs, site: Host, says: str
) -> None:
    """An event is as long as its page likes."""
    site.page("/title", html(f"{CHAPTER}<script>const long = 'x'.repeat(7e7); {says}</script>"))
    assert not isinstance(tabs(site.url("/title"), times=QUICK), Lost)
    then_sound(tabs, site)


def test_a_page_that_goes_on_while_it_is_read_is_read_where_it_went(tabs: Tabs, site: Host) -> None:
    """Never half of the one, nor the words of the other under its status; a large one takes a while."""
    large = "<div hidden>" + "<i>nothing</i>" * 300_000 + "</div>"
    late = f"document.body.insertAdjacentHTML('afterbegin', '{CHAPTER}'); setTimeout(() => location = '/two', 150)"
    site.page("/title", html(f"{large}<script>onload = () => setTimeout(() => {{ {late} }}, 500)</script>"))
    site.page("/two", html("<p class=chapter>Two</p>"))
    came = tabs.shown(site.url("/title"))
    assert (b">Two<" in came.html, b">One<" in came.html) == (
        came.url == site.url("/two"),
        came.url == site.url("/title"),
    )


def test_scripts_that_end_every_timer_hide_no_chapter(tabs: Tabs, site: Host) -> None:
    """Pages do so against whoever debugs them."""
    site.script("/late", ok("", "text/plain").after(2))
    ends = "const own = setInterval(() => { for (let n = 1; n < 9999; n++) if (n !== own) clearTimeout(n) }, 1);"
    late = f"fetch('/late').then(() => document.body.insertAdjacentHTML('beforeend', '{CHAPTER}'))"
    site.page("/title", html(f"<script>{ends}{late}</script>"))
    assert CHAPTER.encode() in tabs.shown(site.url("/title"), times=replace(PATIENT, busy=200.0)).html


@pytest.mark.parametrize("announced", [True, False])
def test_twenty_megabytes_are_cut_off_at_the_cap(tabs: Tabs, site: Host, announced: bool) -> None:
    whole = ok(html("").encode() + BLOCK * 420_000, "text/html")
    site.script("/title", whole if announced else whole.chunked(65_536))
    came = tabs.not_shown(site.url("/title"))
    assert (came.trouble, came.line_proved) == (Trouble.OVERSIZE, True)
    assert tabs.gates[-1].received < LIMITS.wire + 2**20
    then_sound(tabs, site)


def test_a_page_that_swells_is_not_read(tabs: Tabs, site: Host) -> None:
    """31 MiB of HTML made by a script: nothing of it is carried over the socket."""
    swell = "document.body.hidden = true; document.body.append('y'.repeat(31 * 2 ** 20))"
    site.page("/title", html(f"<script>{swell}; document.body.className = 'chapter'</script>"))
    came = tabs.not_shown(site.url("/title"))
    assert (came.trouble, came.line_proved) == (Trouble.OVERSIZE, True)
    then_sound(tabs, site)


def test_a_page_that_fetches_without_end_is_cut_off(tabs: Tabs, site: Host) -> None:
    site.script("/more", ok(BLOCK * 200_000, "text/plain"))
    site.page("/title", html("<script>setInterval(() => fetch('/more', {cache: 'no-store'}), 20)</script>"))
    came = tabs.not_shown(site.url("/title"))
    assert came.trouble is Trouble.OVERSIZE
    assert "in all" in came.detail
    then_sound(tabs, site)


def test_dialogs_are_dismissed(tabs: Tabs, site: Host) -> None:
    site.page(
        "/title",
        html(
            "<script>alert(1); const yes = confirm(2), text = prompt(3); onbeforeunload = e => { e.preventDefault(); return 'x' };"
            "document.write(`<p class=chapter>${yes} ${text}</p>`)</script>"
        ),
    )
    assert b"false null" in tabs.shown(site.url("/title")).html
    then_sound(tabs, site)


def test_no_new_window_is_opened(tabs: Tabs, site: Host, net: Smallnet) -> None:
    site.page(
        "/title",
        html(
            "<a id=a href=/opened target=_blank></a><form id=f action=/posted target=_blank></form><script>"
            "const w = window.open('/opened'); a.click(); f.submit();"
            "setTimeout(() => document.body.insertAdjacentHTML('beforeend', `<p class=chapter>${w}</p>`), 500)</script>"
        ),
    )
    assert b'<p class="chapter">null</p>' in tabs.shown(site.url("/title")).html
    assert {visit.path for visit in net.record.of(site)} == {"/title"}


class Downloads(Cdp):
    """Knows how many bytes of a download Chrome had, each time that it told."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.told: list[tuple[str, int]] = []
        self.listen(None, self._hear)

    def call_all(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]], *rest: Any, **more: Any
    ) -> list[Mapping[str, Any]]:
        tells = {"Browser.setDownloadBehavior": {"eventsEnabled": True}}
        return super().call_all(
            [(method, {**asked, **tells.get(method, {})}) for method, asked in calls], *rest, **more
        )

    def _hear(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "Browser.downloadProgress":
            self.told.append((params["state"], int(params["receivedBytes"])))


def test_nothing_is_downloaded(tabs: Tabs, site: Host) -> None:
    """By Chrome's own word: a file that is begun ends with its page, and leaves no trace."""
    site.script("/file", drip(b"abc" * 100_000, 0.02, piece=1_000, content_type="application/octet-stream"))
    site.page(
        "/title",
        html(
            "<a id=a href=/file download=taken.bin></a><script>a.click();"
            "setTimeout(() => document.body.insertAdjacentHTML('beforeend', '<p class=chapter>'), 2000)</script>"
        ),
    )
    tabs.running.connection()
    assert tabs.running.chrome is not None
    with closing(Downloads(tabs.running.chrome.url)) as watched:
        tabs.shown(site.url("/title"), by=lambda _: watched)
    assert watched.told[-1] == ("canceled", 0)
    assert {received for _, received in watched.told} == {0}


def test_permissions_are_denied_without_a_question(tabs: Tabs, site: Host) -> None:
    names = ["notifications", "geolocation", "camera", "microphone", "clipboard-read", "midi", "persistent-storage"]
    site.page(
        "/title",
        html(
            f"<script>Promise.all({names}.map(name => navigator.permissions.query({{name}}).then(s => s.state)))"
            ".then(found => document.body.insertAdjacentHTML('beforeend', `<p class=chapter>${found}</p>`))</script>"
        ),
    )
    assert ",".join(["denied"] * len(names)).encode() in tabs.shown(site.url("/title")).html


def test_pictures_films_fonts_and_ads_are_never_loaded_however_a_page_wants_them(tabs: Tabs, net: Smallnet) -> None:
    site = net.host("127.1.0.5", name="site.test")
    ads = net.host("127.1.0.6", name="ads.doubleclick.net")
    style = "@font-face { font-family: hand; src: url(/hand.woff2) } body { font-family: hand; background: url(/paper.png) }"
    site.page(
        "/title",
        html(
            f"<style>{style}</style><img src=/cover.png><picture><source srcset=/wide.webp><img src=/narrow.jpg></picture>"
            "<video src=/film.mp4 poster=/poster.png autoplay></video><audio src=/voice.mp3 preload=auto></audio>"
            "<input type=image src=/button.gif><svg><image href=/drawn.svg></image></svg>"
            f"<script src={ads.url('/ad.js')}></script><img src={ads.url('/ad.png')}><p>hand</p>"
            "<script>new Image().src = '/late.png'; document.fonts.load('1em hand');"
            f"addEventListener('load', () => document.body.insertAdjacentHTML('beforeend', '{CHAPTER}'))</script>"
        ),
    )
    assert CHAPTER.encode() in tabs.shown(site.url("/title")).html
    assert {visit.path for visit in net.record.of(site)} == {"/title"}
    assert not net.dialled(ads.address)


def test_a_page_that_reloads_itself_is_not_asked_for_again_and_again(tabs: Tabs, site: Host, net: Smallnet) -> None:
    site.page("/title", html("<script>setTimeout(() => location.reload(), 50)</script>"))
    came = tabs.not_shown(site.url("/title"))
    assert (came.trouble, came.detail) == (Trouble.HOPS, "one document after the other")
    assert len(net.record.of(site)) <= 11


@pytest.mark.parametrize(
    "script",
    [
        "location = 'about:blank'",
        "location = URL.createObjectURL(new Blob(['<p class=chapter>made up'], {type: 'text/html'}))",
    ],
)
def test_a_document_that_scripts_made_up_is_none(tabs: Tabs, site: Host, script: str) -> None:
    site.page("/title", html(f"<script>{script}</script>"))
    assert tabs.not_shown(site.url("/title")).trouble is Trouble.LEFT


def test_many_pages_at_once_do_not_meet(tabs: Tabs, site: Host) -> None:
    for n in range(4):
        site.page(
            f"/{n}",
            html(f"<script>setTimeout(() => document.body.innerHTML = '<p class=chapter>page {n}', {n * 50})</script>"),
        )
    tabs.shown(site.url("/sound"))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: tabs.shown(site.url(f"/{n}")).html, range(4)))
    assert [f"page {n}".encode() in text for n, text in enumerate(found)] == [True] * 4


class Counting(Cdp):
    """Knows what it was asked."""

    asked: ClassVar[list[str]] = []

    def call_all(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]], *rest: Any, **more: Any
    ) -> list[Mapping[str, Any]]:
        self.asked += [method for method, _ in calls]
        return super().call_all(calls, *rest, **more)


def test_a_page_that_changes_all_the_time_is_looked_at_four_times_a_second_at_most(tabs: Tabs, site: Host) -> None:
    site.page("/restless", "<title>1</title><script>setInterval(() => document.title += '1', 20)</script>")
    Counting.asked.clear()
    with ExitStack() as stack:
        visit = tabs.visit(
            site.url("/restless"),
            by=lambda url: stack.enter_context(closing(Counting(url))),
            times=QUICK,
        )
    assert isinstance(visit.came, Shown)
    looks = Counting.asked.count("Runtime.evaluate")
    assert looks <= 2 * 2.0 / QUICK.look + 6, "a look and a head each time, and the reading"
