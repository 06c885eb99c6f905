"""What Chrome tells of one page, event by event, and what is answered to it at once.

Owns the interception of requests, and the facts of the page's documents.  Refuses to own: waiting, and what it all comes to (`page`).
Must never break: the page's own frame goes to no host but those that were asked for.

Its events come in the reader's thread of the connection; everything that is shared is under `changed`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from browser_sidecar.cdp import Cdp
from browser_sidecar.proxy import Gate
from browser_sidecar.unwanted import MEDIA, is_unwanted
from lanes.core.challenge import by_header
from lanes.core.pages import PageAsked
from lanes.core.urls import Parts, split
from lanes.fetch.guard import Guard
from lanes.fetch.limits import LIMITS

NO_BUFFERS: Final = {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0, "maxPostDataSize": 0}
"""Chrome keeps no bodies for us, and sends none."""
STOPPED_AT_BIRTH: Final = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
"""What a page starts besides itself is told of, and waits until it is let go."""
CRASHED: Final = "the tab crashed"
NOWHERE: Final = "nowhere that can be asked"
MOST: Final = LIMITS.hops + 1
"""Times that the page's frame may go anywhere: whoever reloads itself on and on is not asked again and again."""


@dataclass(slots=True)
class Document:
    """One document of the page's own frame.

    `at`: monotonic instant of its header.  `drawn_before`: what the gate had drawn from its host before it was asked for.  `wire` and
    `size`: its bytes so far, as they came and decompressed.  `told`: Chrome tells of its end (not of one to which scripts led).
    `failed`: what cut it short.
    """

    loader: str
    url: str
    host: str
    port: int
    status: int
    headers: Mapping[str, str]
    at: float
    drawn_before: int = 0
    wire: int = 0
    size: int = 0
    told: bool = True
    ended: bool = False
    failed: str | None = None

    @property
    def announced(self) -> int:
        """Bytes that its header promises."""
        length = self.headers.get("content-length", "")
        return int(length) if length.isascii() and length.isdigit() and len(length) < 16 else 0


class Seen:
    """The page in one session.  `gate`: its way out; None in a Chrome elsewhere, where `guard` judges what is reported."""

    def __init__(
        self, cdp: Cdp, session: str, frame: str, asked: PageAsked, gate: Gate | None, guard: Guard, agent: str
    ) -> None:
        self.changed = threading.Condition()
        self.current: Document | None = None
        """The document that is shown."""
        self.coming: Document | None = None
        """The last whose header came."""
        self.asking = asked.url
        """Where the page's frame went last."""
        self.left: str | None = None
        """The host that it was kept from."""
        self.broken: str | None = None
        """The error that is shown instead of a document."""
        self.forbidden: str | None = None
        """An address that may not be dialled, as a Chrome elsewhere reported it."""
        self.crashed = False
        self.answered = False
        """Whether any header came for its frame: our line works."""
        self.went = 0
        """How often its frame went anywhere, redirects included."""
        self.written_at: float | None = None
        """Monotonic instant at which its frame's last request was written at the latest; None: no header has come for that."""
        self._cdp, self._session, self._frame, self._gate, self._guard = cdp, session, frame, gate, guard
        self._hosts, self._agent = frozenset(asked.hosts), agent
        self._sessions = [session]
        self._failed: dict[str, str] = {}
        self._documents: dict[str, Document] = {}
        self._drawn = 0
        self._tried = 0
        self._following, self._late = True, False
        self._going = False
        self._answers: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
            "Fetch.requestPaused": self._request,
            "Fetch.authRequired": self._log_in,
            "Network.requestWillBeSent": self._will_be_sent,
            "Network.webSocketCreated": self._web_socket,
            "Network.responseReceived": self._response,
            "Network.dataReceived": self._data,
            "Network.loadingFinished": self._finished,
            "Network.loadingFailed": self._loading_failed,
            "Page.frameNavigated": self._navigated,
            "Page.javascriptDialogOpening": self._dialog,
            "Inspector.targetCrashed": self._crash,
            "Target.attachedToTarget": self._adopt,
        }

    def hear(self, method: str, params: Mapping[str, Any]) -> None:
        """One event."""
        if (answer := self._answers.get(method)) is None:
            return
        with self.changed:
            answer(params)
            self.changed.notify_all()

    def forget(self) -> None:
        """No event is heard any more."""
        for session in self._sessions:
            self._cdp.end_session(session, "its page is over")

    def wire(self, document: Document) -> int:
        """Bytes of a document on the wire so far, or those it announces: the most that can be told.  While it is on its way Chrome tells
        late, so all that its host sends counts."""
        drawn = 0
        if self._gate is not None and not document.ended:
            drawn = self._gate.drawn(document.host, document.port) - document.drawn_before
        return max(document.wire, document.announced, drawn)

    def _rest(self) -> None:
        """Once the document is there only its scripts are waited for: Chrome tells of no request any more, which would cost more than all
        else.  Where no gate is, the addresses of all are wanted; and what may be a challenge leads to another document."""
        there, gated = self.current, self._gate is not None
        is_there = there is not None and there.ended and there.status < 400 and by_header(there.headers) is None
        if is_there and gated and self._following and not self._going:
            self._following = False
            self._tell("Network.disable")

    def wait(self, seconds: float) -> None:
        """Until something happens, at most so long."""
        with self.changed:
            self.changed.wait(seconds)

    def _tell(self, method: str, **params: Any) -> None:
        self._cdp.tell(method, params, self._session)

    def _adopt(self, params: Mapping[str, Any]) -> None:
        """A frame in a process of its own or a worker, of the page or of another such: it begins once its requests are looked at too.

        A Chrome elsewhere alone tells of them: behind a gate nothing of a page gets past that."""
        child = params["sessionId"]
        self._sessions.append(child)
        self._cdp.listen(child, lambda method, params: self._hear_child(child, method, params))
        everything = {"handleAuthRequests": True, "patterns": [{"urlPattern": "*"}]}
        for first, more in (
            ("Fetch.enable", everything),
            ("Network.enable", NO_BUFFERS),
            ("Emulation.setUserAgentOverride", {"userAgent": self._agent}),
            ("Target.setAutoAttach", STOPPED_AT_BIRTH),
            ("Runtime.runIfWaitingForDebugger", {}),
        ):
            self._cdp.tell(first, more, child)

    def _hear_child(self, child: str, method: str, params: Mapping[str, Any]) -> None:
        with self.changed:
            match method:
                case "Fetch.requestPaused":
                    goes = self._is_wanted(params.get("resourceType"), params["request"]["url"])
                    self._cdp.tell(*_decided(params["requestId"], goes=goes), child)
                case "Fetch.authRequired":
                    self._cdp.tell(*_no_password(params["requestId"]), child)
                case "Network.responseReceived":
                    self._judge_address(params["response"])
                case "Network.webSocketCreated":
                    self._web_socket(params)
                case "Target.attachedToTarget":
                    self._adopt(params)
                case _:
                    return
            self.changed.notify_all()

    def _request(self, params: Mapping[str, Any]) -> None:
        if params.get("resourceType") == "Document" and params.get("frameId") == self._frame:
            goes = self._may_go(params["request"]["url"])
        else:
            goes = self._is_wanted(params.get("resourceType"), params["request"]["url"])
        self._cdp.tell(*_decided(params["requestId"], goes=goes), self._session)

    def _may_go(self, url: str) -> bool:
        """Whether the page's own frame may go there."""
        parts = split(url)
        if parts is None or (self._hosts and parts.host not in self._hosts):
            self.left = parts.host if parts else NOWHERE
        else:
            self._judge_host(url)
            self.asking = url
            self.went += 1
            self.written_at = None
            self._drawn = 0 if self._gate is None else self._gate.drawn(parts.host, parts.port)
            self._allow(parts.host, parts.port, LIMITS.wire)
        if self.left is not None or self.forbidden is not None or self.went > MOST:
            return False
        self._going = True
        if not self._following:
            self._following, self._late = True, True
            self._tell("Network.enable", **NO_BUFFERS)
        return True

    def _allow(self, host: str, port: int, more: int | None) -> None:
        """A document on its way is cut off at its cap: it is the gate that is in time, for Chrome tells of it late."""
        if self._gate is not None:
            self._gate.allow(host, port, more)

    def _is_wanted(self, kind: str | None, url: str) -> bool:
        if kind in MEDIA:
            return False
        self._judge_host(url)
        parts = split(url)
        return self.forbidden is None and (
            parts is None or not (is_unwanted(parts.host) or parts.target == "/favicon.ico")
        )

    def _log_in(self, params: Mapping[str, Any]) -> None:
        """Our own gate alone is given what it asks for; a Site that asks shows its page."""
        answer: dict[str, str] = {"response": "CancelAuth"}
        if self._gate is not None and params["authChallenge"].get("source") == "Proxy" and self._tried < 3:
            self._tried += 1
            answer = {
                "response": "ProvideCredentials",
                "username": self._gate.user,
                "password": self._gate.password,
            }
        self._tell("Fetch.continueWithAuth", requestId=params["requestId"], authChallengeResponse=answer)

    def _will_be_sent(self, params: Mapping[str, Any]) -> None:
        url = params["request"]["url"]
        if params.get("type") == "Document" and params.get("frameId") == self._frame and "redirectResponse" in params:
            self.answered = True
            if split(url) is None:  # what Chrome would not ask it does not hold up for us either
                self.left = NOWHERE

    def _web_socket(self, params: Mapping[str, Any]) -> None:
        self._judge_host("http" + params["url"].removeprefix("ws"))

    def _response(self, params: Mapping[str, Any]) -> None:
        response = params["response"]
        self._judge_address(response)
        parts = split(response["url"])
        if params.get("type") != "Document" or params.get("frameId") != self._frame or parts is None:
            return
        self.answered = True
        self.written_at = self._written(response.get("timing") or {}, parts)
        headers = {name.lower(): ", ".join(value.split("\n")) for name, value in response["headers"].items()}
        loader = params["loaderId"]
        place = response["url"], parts.host, parts.port
        self.coming = Document(
            loader, *place, response["status"], headers, time.monotonic(), self._drawn, told=not self._late
        )
        self._documents = {loader: self.coming} | ({self.current.loader: self.current} if self.current else {})

    def _written(self, timing: Mapping[str, float], parts: Parts) -> float:
        """When the request of a document was written whose header came just now.  Chrome tells how long it then waited for the header; a
        plain request it had only handed to the gate by then."""
        waited = max(0.0, timing.get("receiveHeadersEnd", 0.0) - timing.get("sendEnd", 0.0)) / 1000
        passed_on = self._gate.written_at(parts.host, parts.port) if self._gate else 0.0
        return max(time.monotonic() - waited, passed_on)

    def _data(self, params: Mapping[str, Any]) -> None:
        if (document := self._documents.get(params["requestId"])) is not None:
            document.wire += params.get("encodedDataLength", 0)
            document.size += params.get("dataLength", 0)

    def _finished(self, params: Mapping[str, Any]) -> None:
        if (document := self._documents.get(params["requestId"])) is not None:
            document.ended = True
            self._allow(document.host, document.port, None)
            self._rest()
            document.wire = max(document.wire, int(params.get("encodedDataLength", 0)))

    def _loading_failed(self, params: Mapping[str, Any]) -> None:
        if params.get("type") != "Document":
            return
        self._going = False
        if (asked := split(self.asking)) is not None:
            self._allow(asked.host, asked.port, None)
        self._failed = {params["requestId"]: params["errorText"]}
        if (document := self._documents.get(params["requestId"])) is not None:
            document.failed = params["errorText"]

    def _navigated(self, params: Mapping[str, Any]) -> None:
        frame = params["frame"]
        if frame["id"] != self._frame:
            return
        self._going = False
        loader = frame["loaderId"]
        document = self._documents.get(loader)
        if "unreachableUrl" in frame:
            self.broken = self._failed.get(loader, "net::ERR_FAILED")
        elif document is not None:
            self.broken = None
            self.current = document
            self._rest()
        elif self.current is not None:
            self.left = "a page without an address"  # blob:, about:blank: what scripts made up

    def _dialog(self, params: Mapping[str, Any]) -> None:
        """Nobody is there: a question is answered with no, and who asks whether to leave may leave."""
        self._tell("Page.handleJavaScriptDialog", accept=params.get("type") == "beforeunload")

    def _crash(self, _: Mapping[str, Any]) -> None:
        self.crashed = True
        self._cdp.end_session(self._session, CRASHED)

    def _judge_address(self, response: Mapping[str, Any]) -> None:
        address = response.get("remoteIPAddress", "").strip("[]")
        if self._gate is None and address and not self._guard.check(address):
            self.forbidden = address

    def _judge_host(self, url: str) -> None:
        if self._gate is None and (parts := split(url)) is not None and self._guard.forbids(parts.host):
            self.forbidden = parts.host


def _decided(request: str, *, goes: bool) -> tuple[str, Mapping[str, Any]]:
    """The answer to a request that waits for it."""
    if goes:
        return "Fetch.continueRequest", {"requestId": request}
    return "Fetch.failRequest", {"requestId": request, "errorReason": "Aborted"}


def _no_password(request: str) -> tuple[str, Mapping[str, Any]]:
    return "Fetch.continueWithAuth", {"requestId": request, "authChallengeResponse": {"response": "CancelAuth"}}
