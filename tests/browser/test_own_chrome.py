"""A Chrome that we start, as its sidecar has it."""

from __future__ import annotations

import ssl
import time

import trustme

from browser_sidecar.browser import OwnChrome
from browser_sidecar.chrome import Binary
from lanes.core.pages import Shown
from lanes.fetch.guard import Guard
from tests.browser.conftest import CHAPTER, asked_for, at_once, html
from tests.smallnet import ALLOWED, Smallnet, ok

KINDS = ("worker", "shared", "service")
STARTS = """
    new Worker('/begins.js?worker');
    new SharedWorker('/begins.js?shared');
    navigator.serviceWorker.register('/begins.js?service');
    setInterval(async () => {
      if ((await (await fetch('/seen')).text()) === 'all') document.body.innerHTML = `%s`;
    }, 100);
"""


def test_all_that_a_page_starts_says_who_it_is(binary: Binary) -> None:
    """Workers that belong to no page, too; but for a service worker's own script, which Chrome itself asks for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.1.0.5").configure_cert(context)
    with Smallnet(tls=context) as net:
        site = net.host("127.1.0.5")
        wanted = {f"/from?{kind}" for kind in KINDS}
        for kind in KINDS:
            site.page(f"/begins.js?{kind}", f"fetch('/from?{kind}')", "text/javascript")
        site.answer_with("/seen", lambda _: ok("all" if wanted <= {visit.path for visit in net.record} else "not yet"))
        site.page("/title", html(f"<script>{STARTS % CHAPTER}</script>"))
        browser = OwnChrome(
            Guard([str(ALLOWED)]), "Lanes/test", named=binary.path, flags=("--ignore-certificate-errors",)
        )
        try:
            visit = browser.open(asked_for(site.url("/title")), at_once, time.monotonic())
        finally:
            browser.close()
        assert isinstance(visit.came, Shown)
        assert CHAPTER.encode() in visit.came.html.replace(b'"', b"")
        agents = {visit.path: visit.headers["user-agent"] for visit in net.record}
        assert {path for path, agent in agents.items() if not agent.endswith(" Lanes/test")} == {"/begins.js?service"}
