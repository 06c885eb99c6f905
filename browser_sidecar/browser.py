"""The browser as the rows know it: asleep or awake, and pages opened in it one by one.

Owns that process, protocol and proxy live and end together.  Refuses to own: rows, and what a page came to (`page`).  Must never break:
once it is given up, nothing of it is left, and the next page wakes a new one.
"""

from __future__ import annotations

import http.client
import json
import logging
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from browser_sidecar import chrome
from browser_sidecar.cdp import Cdp, CdpError, Declined
from browser_sidecar.chrome import Binary, Chrome, NotStarted
from browser_sidecar.page import TIMES, Sending, Times, Visit, open_page
from browser_sidecar.proxy import Proxy
from lanes.core.pages import PageAsked
from lanes.fetch.guard import Guard

log = logging.getLogger("browser_sidecar.browser")

LOOKS_AGAIN: Final = 60.0
"""s between two looks for a Chrome that is not installed."""
ASKS_WITHIN: Final = 10.0
"""s for a Chrome elsewhere to say where its DevTools are."""
ANSWERS_WITH: Final = 64 * 1024
"""Bytes that it may say."""
TRIES_AGAIN: Final = 60.0
"""s after which one that did not answer is asked again: it was started meanwhile, or its line is back."""

NOT_HELD: Final = (
    "it runs elsewhere, where nothing keeps WebSockets, shared workers, WebRTC and what it fetches ahead from private "
    "addresses"
)
"""What DevTools has no way to stop in a Chrome elsewhere, for its owner."""
SHARED: Final = {
    "autoAttach": True,
    "waitForDebuggerOnStart": True,
    "flatten": True,
    "filter": [{"type": "shared_worker"}, {"type": "service_worker"}, {"exclude": True}],
}
"""What belongs to no page is told of, and waits until it is let go."""

_ENDING: Final = "it is being ended"


class Browser(Protocol):
    """A Chrome, here or elsewhere.  Safe for threads."""

    @property
    def version(self) -> str | None:
        """Its version, as far as it is known."""

    @property
    def is_awake(self) -> bool:
        """Whether it runs."""

    @property
    def not_held(self) -> str | None:
        """What of its pages is not kept from private addresses; None: nothing."""

    def lack(self) -> str | None:
        """Why no page can be opened, and what the owner can do; None: one can."""

    def open(self, asked: PageAsked, sending: Sending, taken: float) -> Visit:
        """Opens a page that was taken at the monotonic instant `taken`, and wakes it first where it sleeps.  Raises: NotStarted."""

    def died(self) -> str | None:
        """Why it is gone although nobody gave it up; None: it is not."""

    def give_up(self) -> bool:
        """Ends it; whether it was awake."""

    def memory(self) -> int:
        """Bytes that it takes here."""

    def take_over(self) -> None:
        """What a sidecar that was killed left behind here goes."""

    def keep_house(self) -> None:
        """What is done now and then."""

    def close(self) -> None:
        """Ends it for good."""


class OwnChrome:
    """A Chrome that we start, behind our own proxy."""

    def __init__(
        self,
        guard: Guard,
        agent: str,
        *,
        named: str | None = None,
        sandbox: bool = True,
        flags: tuple[str, ...] = (),
        times: Times = TIMES,
    ) -> None:
        self._guard, self._agent, self._named, self._sandbox = guard, agent, named, sandbox
        self._flags, self._times = flags, times
        self._proxy = Proxy(guard)
        self._lock = threading.RLock()
        self._binary: Binary | None = None
        self._lack: str | None = None
        self._look_at = 0.0
        self._chrome: Chrome | None = None
        self._cdp: Cdp | None = None
        self._says = ""
        self._closing = threading.Event()

    @property
    def version(self) -> str | None:
        return None if self._binary is None else self._binary.version

    @property
    def is_awake(self) -> bool:
        return self._chrome is not None

    @property
    def not_held(self) -> str | None:
        return None

    def lack(self) -> str | None:
        if self._binary is None and time.monotonic() >= self._look_at:
            try:
                self._binary, self._lack = chrome.find(self._named), None
            except NotStarted as error:
                self._lack, self._look_at = str(error), time.monotonic() + LOOKS_AGAIN
        return self._lack

    def open(self, asked: PageAsked, sending: Sending, taken: float) -> Visit:
        cdp, agent = self._woken()
        if (gate := self._proxy.open()) is None:
            raise NotStarted(_ENDING)
        until = taken + self._times.whole
        try:
            return open_page(
                cdp, asked, agent=agent, gate=gate, guard=self._guard, sending=sending, until=until, times=self._times
            )
        finally:
            gate.close()

    def died(self) -> str | None:
        awake, cdp = self._chrome, self._cdp
        if awake is None or cdp is None:
            return None
        if awake.is_gone():
            return "Chrome ended"
        return None if cdp.dead is None else f"its DevTools do not answer: {cdp.dead}"

    def give_up(self) -> bool:
        with self._lock:
            awake, cdp = self._chrome, self._cdp
            if awake is None:
                return False
            if cdp is not None:
                cdp.close()
            awake.kill()
            self._proxy.off_limits.discard(awake.port)
            self._chrome = self._cdp = None
            return True

    def memory(self) -> int:
        awake = self._chrome
        return 0 if awake is None else awake.memory()

    def take_over(self) -> None:
        chrome.clear_leavings()

    def keep_house(self) -> None:
        awake = self._chrome
        chrome.reap_orphans(None if awake is None else awake.pid)

    def close(self) -> None:
        self._closing.set()
        self.give_up()
        self._proxy.close()

    def _woken(self) -> tuple[Cdp, str]:
        """The connection to a running Chrome, and its User-Agent with ours.  Raises: NotStarted."""
        with self._lock:
            if self._cdp is None:
                if self._closing.is_set() or self.lack() is not None or self._binary is None:
                    raise NotStarted(self._lack or _ENDING)
                began = time.monotonic()
                self._chrome = Chrome(
                    self._binary, sandbox=self._sandbox, flags=self._flags, given_up=self._closing.is_set
                )
                self._proxy.off_limits.add(self._chrome.port)
                try:
                    self._cdp = Cdp(self._chrome.url)
                    self._says = f"{self._cdp.call('Browser.getVersion')['userAgent']} {self._agent}"
                    self._cdp.listen(None, partial(_introduce, self._cdp, self._says))
                    self._cdp.call("Target.setAutoAttach", SHARED)
                except CdpError as error:
                    self.give_up()
                    raise NotStarted(f"Chrome started, but its DevTools do not answer: {error}") from error
                log.info("Chrome is awake version=%s seconds=%.1f", self.version, time.monotonic() - began)
            return self._cdp, self._says


class ChromeElsewhere:
    """A Chrome that somebody else runs, reached by its DevTools.  It has its own way to the network, where little can be kept from it.

    What a page, its frames and its workers ask of a literal address is judged before it is asked; where a name led is judged when Chrome
    reports it.  Nothing there holds WebSockets (one to a literal address ends its page, once it is made), shared workers (they belong to no
    page), what Chrome fetches and connects to ahead (speculation rules, preconnect) and WebRTC: DevTools has no way to stop them."""

    def __init__(self, url: str, guard: Guard, agent: str, *, times: Times = TIMES) -> None:
        self._url, self._guard, self._agent, self._times = url, guard, agent, times
        self._lock = threading.Lock()
        self._cdp: Cdp | None = None
        self._says = ""
        self._version: str | None = None

    @property
    def version(self) -> str | None:
        return self._version

    @property
    def is_awake(self) -> bool:
        return self._cdp is not None

    @property
    def not_held(self) -> str | None:
        return NOT_HELD

    def lack(self) -> str | None:
        return None

    def open(self, asked: PageAsked, sending: Sending, taken: float) -> Visit:
        with self._lock:
            if self._cdp is None:
                self._cdp = self._attached()
            cdp, agent = self._cdp, self._says
        until = taken + self._times.whole
        return open_page(
            cdp, asked, agent=agent, gate=None, guard=self._guard, sending=sending, until=until, times=self._times
        )

    def died(self) -> str | None:
        cdp = self._cdp
        return None if cdp is None or cdp.dead is None else f"its DevTools do not answer: {cdp.dead}"

    def give_up(self) -> bool:
        with self._lock:
            cdp, self._cdp = self._cdp, None
        if cdp is None:
            return False
        cdp.close()
        return True

    def memory(self) -> int:
        return 0

    def take_over(self) -> None:
        return

    def keep_house(self) -> None:
        return

    def close(self) -> None:
        self.give_up()

    def _attached(self) -> Cdp:
        """Raises: NotStarted.  Whoever is there may say anything, secrets of the address included: none of its words are told."""
        cdp: Cdp | None = None
        cause: Exception
        try:
            cdp = Cdp(_devtools(self._url))
            said = cdp.call("Browser.getVersion")
            self._version = str(said["product"]).rpartition("/")[2]
            self._says = f"{said['userAgent']} {self._agent}"
        except Declined as error:
            why, cause = "its DevTools decline to say which version it is", error
        except CdpError as error:
            why, cause = str(error), error
        except OSError as error:
            why, cause = (error.strerror or type(error).__name__).lower(), error
        except (http.client.HTTPException, LookupError, TypeError, ValueError) as error:
            why, cause = "what is there does not say where its DevTools are", error
        else:
            return cdp
        if cdp is not None:
            cdp.close()
        raise NotStarted(f"no Chrome answers at LANES_BROWSER_WS_URL: {why}", TRIES_AGAIN) from cause


def _introduce(cdp: Cdp, agent: str, method: str, params: Mapping[str, Any]) -> None:
    """Has a worker that belongs to no page say who it is before it begins: what a page says of itself does not reach it."""
    if method == "Target.attachedToTarget":
        cdp.tell("Network.setUserAgentOverride", {"userAgent": agent}, params["sessionId"])
        cdp.tell("Runtime.runIfWaitingForDebugger", {}, params["sessionId"])


def _devtools(url: str) -> str:
    """The address of the browser's own DevTools: the one given, or, where that names no path, the one that Chrome says; it makes a new
    one at each start.  Raises: OSError, and what reading nonsense raises."""
    parts = urlsplit(url)
    if parts.path not in ("", "/") or parts.query:
        return url
    secure = parts.scheme == "wss"
    connection = (http.client.HTTPSConnection if secure else http.client.HTTPConnection)(
        parts.hostname or "", parts.port or (443 if secure else 80), timeout=ASKS_WITHIN
    )
    try:
        connection.request("GET", "/json/version")
        place = json.loads(connection.getresponse().read(ANSWERS_WITH))["webSocketDebuggerUrl"]
    finally:
        with suppress(OSError):
            connection.close()
    if not isinstance(place, str) or not (said := urlsplit(place)).path.startswith("/"):
        raise ValueError
    return said._replace(scheme=parts.scheme, netloc=parts.netloc).geturl()
