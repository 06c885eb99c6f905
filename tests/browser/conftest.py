"""Fixtures: a real Chromium for the session, and pages opened in it by themselves, without rows.

Where there is no Chromium, tests fail when CI is set and are skipped, loudly, at a desk.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from browser_sidecar.cdp import Cdp
from browser_sidecar.chrome import Binary, Chrome
from browser_sidecar.page import Lost, Sending, Times, Visit, open_page
from browser_sidecar.proxy import Gate, Proxy
from lanes.core.pages import NotShown, Opened, PageAsked, Shown
from lanes.fetch.guard import Guard
from tests.browser.fix_process import rows, start_sidecar  # noqa: F401 - fixtures of this folder
from tests.smallnet import ALLOWED, Smallnet

AGENT = "Lanes/test (+https://example.org; you@example.org)"
PATIENT = Times(document=60.0, settling=90.0, settled=80.0, busy=5.0, call=15.0, whole=100.0)
"""Deadlines for tests of what must come: whoever waited for something else would outlast the test."""
QUICK = replace(PATIENT, settling=2.0, settled=1.0)
"""And for tests of what a page never becomes; Chrome itself, and its document, have all the time that a busy machine needs."""


def at_once(by: float) -> timedelta:
    """Nothing stands between a page and its request."""
    return timedelta(0)


def asked_for(url: str, landmark: str = ".chapter", **more: Any) -> PageAsked:
    """A page of some Site, its landmark a Chapter."""
    return PageAsked(uuid.uuid4(), "panels", url, **{"hosts": (), "landmark": landmark, **more})


def html(body: str, head: str = "<title>A page</title>") -> str:
    return f"<!DOCTYPE html><html><head>{head}</head><body>{body}</body></html>"


CHAPTER = "<p class=chapter>One</p>"


class Running:
    """One Chromium, started again where a test has ended it."""

    def __init__(self, binary: Binary, *flags: str) -> None:
        self._binary, self._flags = binary, flags
        self.chrome: Chrome | None = None
        self.cdp: Cdp | None = None

    def connection(self) -> Cdp:
        if self.cdp is None or self.cdp.dead is not None or self.chrome is None or self.chrome.is_gone():
            self.close()
            self.chrome = Chrome(self._binary, flags=self._flags)
            self.cdp = Cdp(self.chrome.url)
        return self.cdp

    def close(self) -> None:
        if self.cdp is not None:
            self.cdp.close()
        if self.chrome is not None:
            self.chrome.kill()


@pytest.fixture(scope="session")
def running(binary: Binary) -> Iterator[Running]:
    """The session's own."""
    running = Running(binary)
    yield running
    running.close()


class Tabs:
    """Opens pages behind a proxy that knows the names of the small internet."""

    def __init__(self, running: Running, net: Smallnet) -> None:
        self.running, self.net = running, net
        self.guard = Guard([str(ALLOWED)], net.resolver)
        self.proxy = Proxy(self.guard)
        self.gates: list[Gate] = []

    def __call__(self, url: str, **more: Any) -> Opened | Lost | None:
        """What became of the page at `url`; more as of `visit`."""
        return self.visit(url, **more).came

    def visit(
        self,
        url: str,
        *,
        sending: Sending = at_once,
        times: Times = PATIENT,
        late: float = 0.0,
        by: Callable[[str], Cdp] | None = None,
        **more: Any,
    ) -> Visit:
        """The same, and all else that is known of it; a tab took it `late` seconds ago, `by` a connection that a test makes to the DevTools
        there.  More as of `asked_for`."""
        cdp = self.running.connection()
        assert self.running.chrome is not None
        self.proxy.off_limits.add(self.running.chrome.port)
        gate = self.proxy.open()
        assert gate is not None
        self.gates.append(gate)
        try:
            return open_page(
                cdp if by is None else by(self.running.chrome.url),
                asked_for(url, **more),
                agent=f"Chrome {AGENT}",
                gate=gate,
                guard=self.guard,
                sending=sending,
                until=time.monotonic() - late + times.whole,
                times=times,
            )
        finally:
            gate.close()

    def shown(self, url: str, **more: Any) -> Shown:
        """The same, of a page that is shown."""
        came = self(url, **more)
        assert isinstance(came, Shown), came
        return came

    def not_shown(self, url: str, **more: Any) -> NotShown:
        """The same, of one that is not."""
        came = self(url, **more)
        assert isinstance(came, NotShown), came
        return came

    def close(self) -> None:
        self.proxy.close()


@pytest.fixture
def tabs(running: Running, net: Smallnet) -> Iterator[Tabs]:
    """Opens pages: `tabs.shown(site.url("/title"))`."""
    tabs = Tabs(running, net)
    yield tabs
    tabs.close()
