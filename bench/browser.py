"""The browser sidecar: pages an hour of one tab, its own CPU a page (Chrome apart, the proxy included), memory after many pages.

Owns the pages, a process of the sidecar and the reading of /proc.  Refuses to own: judging the figures.
"""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

import psutil
import trustme

from bench.server import database, server
from browser_sidecar.sidecar import RHYTHM
from lanes.core.pages import Shown
from tests.browser.rows import Rows
from tests.smallnet import ALLOWED, Host, Smallnet

TAKES = 5.0
"""s from a page's document to its landmark."""
SLOW = 24
QUEUE = 3
"""Pages that wait for the tab: it is never idle."""
DEADLINE = 150.0
REAPED = 6.0
"""s in which whoever ended is reaped, the sidecar's own turn included."""


@dataclass
class Sidecar:
    """A process of the sidecar, and where its metrics are."""

    process: psutil.Process
    metrics: str

    def cpu(self) -> float:
        """Its own CPU seconds, those of Chrome apart."""
        times = self.process.cpu_times()
        return times.user + times.system

    def pss(self) -> float:
        """Its own memory, MiB."""
        return self.process.memory_full_info().pss / 2**20  # type: ignore[no-any-return]

    def chrome(self) -> tuple[float, int]:
        """Chrome's memory in MiB, and its processes."""
        living = [each for each in self.process.children(recursive=True) if each.status() != psutil.STATUS_ZOMBIE]
        return sum(each.memory_full_info().pss for each in living) / 2**20, len(living)

    def zombies(self) -> int:
        """Those that stay.  Chrome itself takes a second to reap the process of a page that has ended."""
        until, stay = time.monotonic() + REAPED, self._zombies()
        while stay and time.monotonic() < until:
            time.sleep(0.1)
            stay &= self._zombies()
        return len(stay)

    def _zombies(self) -> set[int]:
        family = self.process.children(recursive=True)
        return {each.pid for each in family if each.status() == psutil.STATUS_ZOMBIE}

    def metric(self, name: str) -> float:
        with urllib.request.urlopen(self.metrics, timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))


def main(pages: int) -> None:
    """Prints the tables."""
    authority, tls = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.1.0.5").configure_cert(tls)
    with server() as admin, database(admin) as url, Smallnet(tls=tls) as net, _sidecar(url) as sidecar:
        rows = Rows(url)
        site = net.host("127.1.0.5")
        _describe(site)
        try:
            rows.wait_for("SELECT FROM lanes.browser WHERE heartbeat_at > '-infinity'")
            _serve(rows, site.url("/tiny"), QUEUE)  # Chrome wakes
            print(f"\na million additions cost {_additions():.0f} ms of CPU here now")
            print(f"browser, one tab, version {rows.wait_for('SELECT version FROM lanes.browser').version}")
            began, cpu = time.monotonic(), sidecar.cpu()
            _serve(rows, site.url("/slow"), SLOW)
            took, own = time.monotonic() - began, sidecar.cpu() - cpu
            drawn = sidecar.metric("browser_received_bytes_total") / SLOW / 1024
            print(
                f"{SLOW} pages that take {TAKES:g} s, 30 requests and {drawn:,.0f} KiB each, their 30 pictures not loaded:"
            )
            print(f"  {SLOW / took * 3600:.0f} pages an hour, own CPU {own / SLOW * 1000:.1f} ms a page")
            began, cpu = time.monotonic(), sidecar.cpu()
            _endure(rows, site.url("/tiny"), pages, sidecar)
            took, own = time.monotonic() - began, sidecar.cpu() - cpu
            print(
                f"{pages} tiny pages in a row: {took / pages:.2f} s a page, own CPU {own / pages * 1000:.1f} ms a page"
            )
        finally:
            rows.close()


def _additions() -> float:
    """ms of CPU: what is measured beside others costs more, and by how much this tells."""
    began, total = time.thread_time(), 0
    for n in range(1_000_000):
        total += n
    return (time.thread_time() - began) * 1000


def _endure(rows: Rows, url: str, pages: int, sidecar: Sidecar) -> None:
    for done in range(0, pages, 100):
        _serve(rows, url, min(100, pages - done))
        (memory, processes), zombies = sidecar.chrome(), sidecar.zombies()
        restarts = sidecar.metric("browser_restarts_total")
        print(
            f"  after {done + min(100, pages - done):4d}: sidecar {sidecar.pss():.0f} MiB, Chrome {memory:.0f} MiB in {processes} "
            f"processes, {zombies} zombies that stay, started afresh {restarts:.0f} times"
        )


def _describe(site: Host) -> None:
    text = "// a comment of forty-nine bytes, again and again\n"
    for n in range(25):
        site.page(f"/{n}.js", text * 400, "text/javascript")
    for n in range(5):
        site.page(f"/{n}.json", '{"a": 1}' * 100, "application/json")
    scripts = "".join(f"<script src=/{n}.js></script>" for n in range(25))
    pictures = "".join(f"<img src=/{n}.png>" for n in range(30))
    list_ = "".join(f"<p class=chapter><a href=/c/{n}>Chapter {n}</a></p>" for n in range(100))
    render = f"setTimeout(() => document.body.insertAdjacentHTML('beforeend', `{list_}`), {TAKES * 1000})"
    fetches = "for (let n = 0; n < 5; n++) fetch(`/${n}.json`);"
    site.page(
        "/slow",
        f"<!doctype html><title>A title</title><body><script>{render}</script>{scripts}{pictures}<script>{fetches}</script>",
    )
    site.page("/tiny", "<!doctype html><title>A title</title><p class=chapter>One</p>")


def _serve(rows: Rows, url: str, count: int) -> None:
    """So many pages one after another, some always waiting."""
    waiting: list[UUID] = []
    for n in range(count):
        waiting.append(rows.asked(url, f"site-{n % QUEUE}"))
        if len(waiting) == QUEUE:
            _collect(rows, waiting.pop(0))
    for token in waiting:
        _collect(rows, token)


def _collect(rows: Rows, token: UUID) -> None:
    until = time.monotonic() + DEADLINE
    while (page := rows.look(token)) is not None and page.opened is None:
        if time.monotonic() > until:
            raise TimeoutError(page)
        time.sleep(0.02)
    if page is None or not isinstance(page.opened, Shown):
        raise RuntimeError(page)
    rows.tell("DELETE FROM lanes.browser_pages WHERE token = %s", token)


@contextmanager
def _sidecar(url: str) -> Iterator[Sidecar]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        base = min(int(free.getsockname()[1]), 65_000) - 3
    environment = os.environ | {
        "LANES_DATABASE_URL": url,
        "LANES_CONTACT": "bench@example.org",
        "LANES_METRICS_PORT": str(base),
        "LANES_ALLOW_NETWORKS": str(ALLOWED),
        "LANES_LOG_LEVEL": "ERROR",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.browser.brisk", str(RHYTHM.pages), "--ignore-certificate-errors"], env=environment
    )
    try:
        yield Sidecar(psutil.Process(process.pid), f"http://127.0.0.1:{base + 3}/metrics")
    finally:
        process.terminate()
        process.wait(60)
