"""What a page cannot do to how it is looked at: names that hide what a document is asked, and borders of the pieces it is read in."""

from __future__ import annotations

import pytest

from browser_sidecar.sight import PIECE
from lanes.core.answer import Trouble
from lanes.fetch.limits import LIMITS
from tests.browser.conftest import CHAPTER, QUICK, Tabs, html
from tests.smallnet import Host, Smallnet

WAITED = "<script>setTimeout(() => document.body.className = 'waited', 30000)</script>"
"""What a page looks like whose landmark was not seen."""


@pytest.fixture
def site(net: Smallnet) -> Host:
    return net.host("127.1.0.5", name="site.test")


@pytest.mark.parametrize("name", ["title", "querySelector", "readyState", "documentElement", "doctype", "body"])
def test_an_element_named_as_what_a_document_is_asked_hides_nothing(tabs: Tabs, site: Host, name: str) -> None:
    """HTML lets `document.title` be a form of that name."""
    site.page("/title", html(f"<form name={name}><input name=outerHTML></form>{CHAPTER}{WAITED}"))
    came = tabs.shown(site.url("/title"))
    assert came.html.startswith(b"<!DOCTYPE html>\n<html>")
    assert b">One<" in came.html
    assert b'class="waited"' not in came.html


@pytest.mark.parametrize("over", [-1, 0, 1, PIECE, PIECE + 1])
def test_a_page_is_read_whole_wherever_its_pieces_end(tabs: Tabs, site: Host, over: int) -> None:
    """Its characters are pairs of two, the first of them at an odd place or an even one."""
    script = (
        "document.body.hidden = true; document.body.className = 'chapter'; document.currentScript.remove();"
        f"const left = {PIECE + over} - 16 - document.documentElement.outerHTML.length;"
        "document.body.append((left % 2 ? 'x' : '') + '\\u{1F600}'.repeat(left >> 1))"
    )
    site.page("/title", html(f"<script>{script}</script>"))
    came = tabs.shown(site.url("/title"), times=QUICK)
    assert len(came.html.decode().encode("utf-16-le")) // 2 == PIECE + over
    assert set(came.html[2_000:-2_000].decode("utf-8", "ignore")) == {"\U0001f600"}


def test_lone_halves_of_a_character_are_told_as_such(tabs: Tabs, site: Host) -> None:
    script = f"document.body.hidden = true; document.body.append('\\ud83d'.repeat({PIECE} + 5)); document.body.className = 'chapter'"
    site.page("/title", html(f"<script>{script}</script>"))
    came = tabs.shown(site.url("/title"), times=QUICK)
    assert came.html.decode().count("\ufffd") == PIECE + 5


@pytest.mark.parametrize("what", ["document.documentElement.remove()", "document.replaceChildren()"])
def test_a_document_without_an_element_is_read_as_nothing(tabs: Tabs, site: Host, what: str) -> None:
    site.page("/title", html(f"<script>onload = () => {what}</script>"))
    came = tabs.shown(site.url("/title"), times=QUICK)
    assert came.html in (b"<!DOCTYPE html>\n", b"")


@pytest.mark.parametrize("kind", ["image/svg+xml", "application/xml", "application/xhtml+xml"])
def test_documents_of_other_kinds_are_read_too(tabs: Tabs, site: Host, kind: str) -> None:
    ns = "http://www.w3.org/1999/xhtml" if "xhtml" in kind else "http://www.w3.org/2000/svg"
    site.page("/title", f'<svg xmlns="{ns}"><g class="chapter">One</g></svg>', kind)
    came = tabs.shown(site.url("/title"), times=QUICK)
    assert b"One" in came.html


def test_a_page_larger_than_may_be_is_oversize(tabs: Tabs, site: Host) -> None:
    swell = (
        "document.body.hidden = true; document.body.className = 'chapter';"
        f"document.body.append('\\u4e00'.repeat({LIMITS.decoded} / 3 + 1))"
    )
    site.page("/title", html(f"<script>{swell}</script>"))
    assert tabs.not_shown(site.url("/title"), times=QUICK).trouble is Trouble.OVERSIZE


def test_scripts_of_a_page_reach_nothing_of_how_it_is_read(tabs: Tabs, site: Host) -> None:
    tamper = (
        "const trap = () => 'tampered'; for (const n of ['page', 'piece']) Object.defineProperty(window, n,"
        " {value: trap, writable: false, configurable: false});"
        "String.prototype.toWellFormed = String.prototype.slice = Document.prototype.querySelector = trap;"
        "Object.defineProperty(Element.prototype, 'outerHTML', {get: trap});"
        "Object.defineProperty(Object.prototype, 'value', {get: trap});"
        "performance.now = () => 1e99; Scheduler.prototype.postTask = trap; Promise.prototype.then = trap;"
    )
    site.page("/title", html(f"<i id=page></i><i id=piece></i>{CHAPTER}{WAITED}<script>{tamper}</script>"))
    came = tabs.shown(site.url("/title"))
    assert b">One<" in came.html
    assert b'class="waited"' not in came.html
