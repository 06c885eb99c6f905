"""The instant that a page's row says its request was written, beside when it arrived (CASES B15; DESIGN 4, Sent)."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
import trustme

from browser_sidecar.browser import OwnChrome
from browser_sidecar.chrome import Binary
from browser_sidecar.page import TIMES
from lanes.core.answer import Trouble
from lanes.core.pages import NotShown, Shown
from lanes.fetch.guard import Guard
from tests.browser.conftest import CHAPTER, html
from tests.browser.rows import Rows
from tests.browser.serving import serving
from tests.smallnet import ALLOWED, Host, Smallnet, never, ok, redirect

LATE = timedelta(seconds=2)
"""That the name system takes."""


@pytest.fixture(params=["http", "https"])
def site(request: pytest.FixtureRequest) -> Iterator[Host]:
    """A Site whose name resolves slowly: the proxy dials it, and writes the request where it can read that."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("site.test").configure_cert(context)
    with Smallnet(tls=context if request.param == "https" else None) as net:
        net.resolver.delay("site.test", LATE.total_seconds())
        yield net.host("127.1.0.5", name="site.test")


@pytest.fixture
def at_work(rows: Rows, site: Host, binary: Binary) -> Iterator[None]:
    """A sidecar with a Chrome of its own, whose proxy knows the names of the small internet."""
    browser = OwnChrome(
        Guard([str(ALLOWED)], site.net.resolver),
        "Lanes/test",
        named=binary.path,
        flags=("--ignore-certificate-errors",),
        times=replace(TIMES, document=10.0),
    )
    with serving(rows, browser):
        yield


def sent(rows: Rows, url: str, site: str) -> tuple[object, datetime]:
    """What a page came to, and when its request was written, as its row says."""
    token = rows.asked(url, site)
    opened = rows.opened(token)
    page = rows.look(token)
    assert page is not None
    assert page.sent_at is not None
    return opened, page.sent_at


def arrived(rows: Rows, site: Host) -> list[datetime]:
    """When requests arrived, as Postgres counts, or a little before."""
    now = time.monotonic()
    at: datetime = rows.one("SELECT lanes.now() AS it").it
    return [at - timedelta(seconds=now - visit.arrived) - LATE / 4 for visit in site.net.record.of(site)]


@pytest.mark.usefixtures("at_work")
def test_a_page_is_noted_as_sent_when_its_request_arrives_however_long_its_name_took(rows: Rows, site: Host) -> None:
    for n in range(2):
        site.script(f"/{n}", ok(html(CHAPTER), "text/html").after(3))
    found = [sent(rows, site.url(f"/{n}"), f"site-{n}") for n in range(2)]
    assert all(isinstance(opened, Shown) for opened, _ in found)
    for (_, noted), at in zip(found, arrived(rows, site), strict=True):
        assert at <= noted < at + LATE


@pytest.mark.usefixtures("at_work")
def test_of_a_page_that_was_led_on_the_last_request_counts(rows: Rows, site: Host) -> None:
    site.script("/old", redirect("/title", 302).after(1))
    site.page("/title", html(CHAPTER))
    opened, noted = sent(rows, site.url("/old"), "site")
    assert isinstance(opened, Shown)
    first, last = arrived(rows, site)
    assert first + timedelta(seconds=1) < last <= noted


@pytest.mark.usefixtures("at_work")
def test_where_no_answer_came_the_whole_wait_counts(rows: Rows, site: Host) -> None:
    """Nobody knows when it was written: later is politer."""
    site.script("/never", never())
    asked_at = rows.one("SELECT lanes.now() AS it").it
    opened, noted = sent(rows, site.url("/never"), "site")
    assert isinstance(opened, NotShown)
    assert opened.trouble is Trouble.TIMEOUT
    (at,) = arrived(rows, site)
    assert max(at, asked_at + timedelta(seconds=10)) < noted
