"""One page in a real Chromium: what is waited for, and what comes back (DESIGN 7)."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

import pytest

from lanes.core.answer import Trouble
from tests.browser.conftest import CHAPTER, PATIENT, QUICK, Tabs, html
from tests.smallnet import Host, Smallnet, drip, never, ok, redirect, reset, status


@pytest.fixture
def site(net: Smallnet) -> Host:
    return net.host("127.1.0.5", name="site.test")


def later(script: str, after: int = 100) -> str:
    return html(f"<div id=list></div><script>setTimeout(() => {{ {script} }}, {after})</script>")


RENDERED = later("list.innerHTML = '<p class=chapter>Chapter é \U0001f600</p>'")
TOO_LATE = "<script>setTimeout(() => document.body.innerHTML = 'too late', 30000)</script>"
"""Of a page that is read at once: whoever waited for more would find nothing else."""


def test_a_page_that_scripts_render_is_read_when_its_landmark_is_there(tabs: Tabs, site: Host) -> None:
    site.page("/title", RENDERED + TOO_LATE)
    came = tabs.shown(site.url("/title"))
    assert came.status == 200
    assert came.held is None
    assert came.url == site.url("/title")
    assert came.headers["content-type"] == "text/html; charset=utf-8"
    assert came.html.startswith(b"<!DOCTYPE html>\n<html>")
    assert '<p class="chapter">Chapter é \U0001f600</p>'.encode() in came.html


def test_it_says_who_it_is_after_what_chrome_says(tabs: Tabs, site: Host, net: Smallnet) -> None:
    site.page("/title", html(CHAPTER))
    tabs.shown(site.url("/title"))
    (visit,) = net.record.of(site)
    assert visit.headers["user-agent"] == "Chrome Lanes/test (+https://example.org; you@example.org)"


def test_one_page_is_one_request_and_no_picture_for_the_tab(tabs: Tabs, site: Host, net: Smallnet) -> None:
    site.page("/title", html(CHAPTER))
    tabs.shown(site.url("/title"))
    tabs.shown(site.url("/title"))
    assert [visit.path for visit in net.record.of(site)] == ["/title", "/title"]


def test_the_next_page_knows_nothing_of_the_last(tabs: Tabs, site: Host, net: Smallnet) -> None:
    site.page(
        "/title", html(CHAPTER + "<script>localStorage.a = 1</script>"), headers={"Set-Cookie": "a=1; Max-Age=999"}
    )
    site.page("/next", later("list.innerHTML = '<p class=chapter>' + (localStorage.a || 'nothing')"))
    tabs.shown(site.url("/title"))
    assert b"nothing" in tabs.shown(site.url("/next")).html
    assert "cookie" not in net.record.of(site)[-1].headers


def test_json_is_read_as_chrome_shows_it(tabs: Tabs, site: Host) -> None:
    site.page("/api", '{"title": "One"}', "application/json")
    came = tabs.shown(site.url("/api"), landmark="pre")
    assert b'<pre>{"title": "One"}</pre>' in came.html
    assert came.headers["content-type"] == "application/json"


def test_a_redirect_within_its_hosts_is_followed_and_the_final_url_told(tabs: Tabs, site: Host, net: Smallnet) -> None:
    www = net.host("127.1.0.6", name="www.site.test")
    www.page("/new", html(CHAPTER), headers={"X-Shown": "this one"})
    site.script("/old", redirect(www.url("/new"), 302))
    came = tabs.shown(site.url("/old"), hosts=("site.test", "www.site.test"))
    assert came.url == www.url("/new")
    assert came.headers["x-shown"] == "this one"


def test_where_scripts_have_gone_by_themselves_is_told_without_its_fragment(tabs: Tabs, site: Host) -> None:
    site.page("/title", later("history.pushState(0, '', '/title/new#top'); list.className = 'chapter'"))
    assert tabs.shown(site.url("/title")).url == site.url("/title/new")


def test_a_page_without_its_landmark_is_read_as_it_is_when_its_time_is_over(tabs: Tabs, site: Host) -> None:
    site.page("/title", html("<p>nothing to see"))
    assert b"nothing to see" in tabs.shown(site.url("/title"), times=QUICK).html


def test_a_page_that_settles_without_its_landmark_is_read_sooner(tabs: Tabs, site: Host) -> None:
    site.page("/title", html(f"<script id=data type=x></script><p>not rendered{TOO_LATE}"))
    patient = replace(PATIENT, settled=0.5)
    assert b"not rendered" in tabs.shown(site.url("/title"), settles_for="script#data", times=patient).html


def test_an_error_page_is_not_waited_for(tabs: Tabs, site: Host) -> None:
    site.script("/gone", status(410, html(f"<p>gone{TOO_LATE}")))
    came = tabs.shown(site.url("/gone"))
    assert (came.status, came.held) == (410, None)
    assert b"<p>gone" in came.html


@pytest.mark.parametrize("code", [404, 500, 503])
def test_an_error_without_a_page_has_its_status_and_nothing_else(tabs: Tabs, site: Host, code: int) -> None:
    site.script("/none", status(code, b"", retry_after=60))
    came = tabs.shown(site.url("/none"))
    assert (came.status, came.html, came.headers["retry-after"]) == (code, b"", "60")


def test_what_is_nothing_to_show_has_no_html(tabs: Tabs, site: Host) -> None:
    site.script("/nothing", status(204))
    site.script("/file", ok(b"abc", "application/octet-stream", {"Content-Disposition": "attachment; filename=x"}))
    found = [tabs.shown(site.url(path)) for path in ("/nothing", "/file")]
    assert [(came.status, came.html) for came in found] == [(204, b""), (200, b"")]


def test_a_wait_before_the_request_is_obeyed(tabs: Tabs, site: Host, net: Smallnet) -> None:
    site.page("/title", html(CHAPTER))
    asked_at = []

    def soon(_: float) -> timedelta:
        asked_at.append(time.monotonic())
        return timedelta(seconds=0.7)

    tabs.shown(site.url("/title"), sending=soon)
    assert net.record.of(site)[0].arrived - asked_at[0] >= 0.7


def test_a_page_that_nobody_waits_for_is_not_sent(tabs: Tabs, site: Host, net: Smallnet) -> None:
    assert tabs(site.url("/title"), sending=lambda _: None) is None
    assert not net.dialled(site.address)


def test_a_large_page_is_read_whole_in_pieces(tabs: Tabs, site: Host) -> None:
    """Pieces do not part what belongs together: the page's characters take two units each."""
    site.page("/title", later("list.innerHTML = '<p class=chapter>x' + '\\u{1f600}'.repeat(1500000)"))
    came = tabs.shown(site.url("/title"))
    assert came.html.count("\U0001f600".encode()) == 1_500_000
    assert b"\xef\xbf\xbd" not in came.html


def test_scripts_that_changed_the_language_change_nothing_for_us(tabs: Tabs, site: Host) -> None:
    site.page(
        "/title",
        html(
            CHAPTER + "<script>document.querySelector = () => null; String.prototype.slice = () => 'fake';"
            "Object.defineProperty(document, 'title', {get() { return 'z'.repeat(5e8) }});"
            "Object.defineProperty(Element.prototype, 'outerHTML', {get() { return 'fake' }})</script>"
        ),
    )
    assert b'<p class="chapter">One</p>' in tabs.shown(site.url("/title")).html


# What goes wrong on the way


def test_how_a_page_fails_is_told_in_the_words_of_any_fetch(tabs: Tabs, site: Host, net: Smallnet) -> None:
    site.script("/reset", reset())
    site.script("/cut", ok(html(CHAPTER) + "x" * 5_000, "text/html").cut_after(300))
    site.script("/chunk", ok(html(CHAPTER) + "x" * 5_000, "text/html").chunked().cut_after(300))
    site.script("/coded", ok(b"<p>plain", "text/html", {"Content-Encoding": "gzip"}))
    site.script("/loop", redirect("/loop", 302))
    site.script("/far", redirect("ftp://site.test/", 302))
    site.script("/script", redirect("javascript:void 0", 302))
    site.script("/304", status(304))
    down = net.host("127.1.0.6", name="down.test")
    down.down()
    net.resolver.fail(-3, "away.test")
    urls = {path: site.url(path) for path in ("/reset", "/cut", "/chunk", "/coded", "/loop", "/far", "/script", "/304")}
    urls |= {name: f"http://{name}:{net.port}/" for name in ("down.test", "nowhere.test", "away.test")}
    found = {name: tabs.not_shown(url) for name, url in urls.items()}
    assert {name: (came.trouble, came.line_proved) for name, came in found.items()} == {
        "/reset": (Trouble.RESET, False),
        "/cut": (Trouble.FRAMING, True),
        "/chunk": (Trouble.FRAMING, True),
        "/coded": (Trouble.ENCODING, True),
        "/loop": (Trouble.HOPS, True),
        "/far": (Trouble.BAD_URL, True),
        "/script": (Trouble.FRAMING, True),
        "/304": (Trouble.FRAMING, True),
        "down.test": (Trouble.CONNECT, True),
        "nowhere.test": (Trouble.DNS, True),
        "away.test": (Trouble.DNS, False),
    }
    assert {came.forbidden for came in found.values()} == {None}


def test_a_request_that_got_no_answer_is_not_written_twice(tabs: Tabs, site: Host, net: Smallnet) -> None:
    site.script("/reset", reset())
    tabs.not_shown(site.url("/reset"))
    assert len(net.record.of(site)) == 1


def test_a_site_that_plays_the_proxy_is_not_given_what_that_is_given(tabs: Tabs, site: Host, net: Smallnet) -> None:
    """Chrome would take a 407 for our gate's own, and ask again."""
    site.script("/title", status(407, html(CHAPTER), headers={"Proxy-Authenticate": 'Basic realm="lanes"'}))
    assert tabs.shown(site.url("/title")).status == 407
    assert len(net.record.of(site)) == 1


def test_a_site_that_never_answers_costs_a_fetch_deadline(tabs: Tabs, site: Host) -> None:
    site.script("/never", never())
    came = tabs.not_shown(site.url("/never"), times=replace(QUICK, document=1.0))
    assert (came.trouble, came.line_proved) == (Trouble.TIMEOUT, False)


def test_a_document_that_never_ends_is_none_though_its_landmark_is_there(tabs: Tabs, site: Host) -> None:
    """It may hold half a list."""
    site.script("/drip", drip(html(CHAPTER) + "x" * 100_000, 0.2, piece=200, content_type="text/html"))
    came = tabs.not_shown(site.url("/drip"), times=QUICK)
    assert (came.trouble, came.detail, came.line_proved) == (Trouble.TIMEOUT, "the document did not end in time", True)


def test_a_page_is_over_before_the_browser_would_be_called_lost_however_long_its_document_took(
    tabs: Tabs, site: Host
) -> None:
    """One deadline from when a tab took it; what its landmark would have been waited for is cut short."""
    times = replace(PATIENT, document=1.0, whole=3.0)
    site.page("/title", html("<p>nothing to see"))
    assert b"nothing to see" in tabs.shown(site.url("/title"), times=times).html
    site.script("/slow", ok(html(CHAPTER), "text/html").after(3))
    came = tabs.not_shown(site.url("/slow"), times=times)
    assert (came.trouble, came.detail, came.line_proved) == (Trouble.TIMEOUT, "no answer within 1 s", False)


def test_where_too_little_of_its_time_is_left_nothing_is_asked(tabs: Tabs, site: Host, net: Smallnet) -> None:
    """Chrome took long to start: its Series would be charged for what is no fault of its Site."""

    def never(_: float) -> timedelta:
        raise AssertionError("the instant of sending was noted")

    times = replace(PATIENT, document=60.0, whole=105.0)
    assert tabs(site.url("/title"), times=times, late=46.0, sending=never) is None
    assert tabs(site.url("/title"), times=times, late=40.0, sending=lambda _: timedelta(seconds=6)) is None
    assert not net.dialled(site.address)


def test_how_long_may_be_asked_whether_it_may_be_sent_is_told(tabs: Tabs, site: Host) -> None:
    site.page("/title", html(CHAPTER))
    told: list[float] = []

    def note(by: float) -> timedelta:
        told.append(by - time.monotonic())
        return timedelta(0)

    tabs.shown(site.url("/title"), times=replace(PATIENT, document=60.0, whole=105.0), sending=note)
    assert 30 < told[0] <= 45
