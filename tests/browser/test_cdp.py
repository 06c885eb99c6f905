"""The protocol over one websocket, beside a server that does what no Chrome should (CASES H5)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from browser_sidecar import cdp as protocol
from browser_sidecar.cdp import Cdp, Declined, Gone, Late, Silence
from tests.browser.scripted import Peer, Scripted, frame
from tests.waiting import until

PATIENT = Silence()
IMPATIENT = Silence(ask=0.1, end=0.4)
LONG = 30.0
"""s: what a call would wait for where nothing else ended it; a test that took so long would have failed."""


@contextmanager
def connected(script: Callable[[Peer], None], silence: Silence = PATIENT) -> Iterator[Cdp]:
    with Scripted(script) as server:
        cdp = Cdp(server.url, silence=silence)
        try:
            yield cdp
        finally:
            cdp.close()


def echo(peer: Peer) -> None:
    while True:
        message = peer.heard()
        peer.reply(message, {"method": message["method"], "session": message.get("sessionId"), **message["params"]})


def outcomes(cdp: Cdp, count: int) -> list[Future[Any]]:
    """So many calls at once, each from a thread of its own, all over."""
    with ThreadPoolExecutor(count) as pool:
        return [pool.submit(cdp.call, "Page.navigate", {"n": n}, f"session-{n}", LONG) for n in range(count)]


def test_a_call_gets_its_own_result_and_goes_to_its_session() -> None:
    with connected(echo) as cdp:
        assert cdp.call("Page.navigate", {"url": "x"}, "s1") == {"method": "Page.navigate", "session": "s1", "url": "x"}
        assert cdp.call("Browser.getVersion") == {"method": "Browser.getVersion", "session": None}


def test_replies_in_any_order_find_their_calls() -> None:
    def backwards(peer: Peer) -> None:
        messages = [peer.heard() for _ in range(5)]
        for message in reversed(messages):
            peer.reply(message, message["params"])
        peer.wait_for_the_end()

    with connected(backwards) as cdp:
        assert [each.result() for each in outcomes(cdp, 5)] == [{"n": n} for n in range(5)]


def test_nobody_says_where_he_comes_from() -> None:
    """Chrome lets nobody in who has an Origin."""
    with Scripted(echo) as server:
        Cdp(server.url).close()
    assert "origin" not in server.headers


def test_events_are_told_to_their_session_alone() -> None:
    told = threading.Event()
    heard: list[tuple[str, Any]] = []

    def events(peer: Peer) -> None:
        peer.say({"method": "Page.nobody", "params": {}, "sessionId": "other"})
        peer.say({"method": "Page.mine", "params": {"n": 1}, "sessionId": "mine"})
        peer.say({"method": "Target.all", "params": {"n": 2}})
        peer.wait_for_the_end()

    def hear(method: str, params: Any) -> None:
        heard.append((method, params))
        if len(heard) == 2:
            told.set()

    def and_wait(peer: Peer) -> None:
        peer.heard()
        events(peer)

    with connected(and_wait) as cdp:
        cdp.listen("mine", hear)
        cdp.listen(None, hear)
        cdp.tell("Go.on")
        assert told.wait(LONG)
    assert heard == [("Page.mine", {"n": 1}), ("Target.all", {"n": 2})]


def test_a_bug_in_who_hears_an_event_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def once(peer: Peer) -> None:
        peer.heard()
        peer.say({"method": "Page.event", "params": {}, "sessionId": "s"})
        echo(peer)

    def broken(method: str, params: Any) -> None:
        raise KeyError("a bug")

    with connected(once) as cdp:
        cdp.listen("s", broken)
        cdp.tell("Go.on")
        assert cdp.call("Still.there")["method"] == "Still.there"
    assert "a bug met an event of the browser" in caplog.text


def test_who_hears_an_event_may_answer_it() -> None:
    answered = threading.Event()

    def script(peer: Peer) -> None:
        peer.heard()
        peer.say({"method": "Fetch.requestPaused", "params": {"requestId": "r"}, "sessionId": "s"})
        if peer.heard()["method"] == "Fetch.continueRequest":
            answered.set()
        peer.wait_for_the_end()

    with connected(script) as cdp:
        cdp.listen("s", lambda _, params: cdp.tell("Fetch.continueRequest", params, "s"))
        cdp.tell("Go.on")
        assert answered.wait(LONG)


def test_what_is_declined_says_so() -> None:
    def no(peer: Peer) -> None:
        peer.say({"id": peer.heard()["id"], "error": {"code": -32000, "message": "Cannot find context"}})
        peer.wait_for_the_end()

    with connected(no) as cdp, pytest.raises(Declined, match=r"Runtime.evaluate: Cannot find context"):
        cdp.call("Runtime.evaluate")


def test_a_late_reply_fails_its_call_alone_and_is_forgotten() -> None:
    def late(peer: Peer) -> None:
        first, second = peer.heard(), peer.heard()
        peer.reply(first, {"late": True})
        peer.reply(second, {"good": True})
        peer.wait_for_the_end()

    with connected(late) as cdp:
        with pytest.raises(Late):
            cdp.call("Page.navigate", timeout=0.05)
        assert cdp.dead is None
        assert cdp.call("Page.enable") == {"good": True}


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_server_that_goes_silent_after_some_frames_fails_every_pending_call_at_once(count: int) -> None:
    """CASES H5: the socket stays open."""

    def silent(peer: Peer) -> None:
        for _ in range(count):
            peer.reply(peer.heard(), {})
        peer.answers_pings = False
        peer.wait_for_the_end()

    with connected(silent, IMPATIENT) as cdp:
        for _ in range(count):
            cdp.call("Page.enable")
        for each in outcomes(cdp, 4):
            with pytest.raises(Gone, match="silent"):
                each.result()
        with pytest.raises(Gone, match="silent"):
            cdp.call("Page.enable")


def test_a_server_that_is_idle_but_answers_pings_is_not_silent() -> None:
    pinged = threading.Event()

    def idle(peer: Peer) -> None:
        message = peer.heard()
        for _ in range(6):  # longer than the silence that would end it
            peer.heard_ping()
        pinged.set()
        peer.reply(message, {"good": True})
        peer.wait_for_the_end()

    with connected(idle, IMPATIENT) as cdp:
        assert cdp.call("Page.navigate", timeout=LONG) == {"good": True}
    assert pinged.is_set()


@pytest.mark.parametrize(
    ("ends", "why"),
    [
        (lambda peer: None, "."),
        (lambda peer: peer.write(frame(b"\x03\xe8bye", kind=0x8)), "closed"),
        (lambda peer: peer.write(frame(b"not json")), "no message"),
        (lambda peer: peer.write(frame(b"[1, 2]")), "no message"),
        (lambda peer: peer.write(frame(b"\xff\xfe{")), "no message"),
        (lambda peer: peer.write(frame(b"[" * 100_000)), "no message"),
        (lambda peer: peer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "."),
        (lambda peer: peer.write(b"\xf1\x02{}"), "."),
    ],
    ids=[
        "closes",
        "says goodbye",
        "garbage",
        "no object",
        "no utf-8",
        "too deep",
        "http",
        "reserved bits",
    ],
)
def test_a_server_that_ends_or_talks_nonsense_fails_every_pending_call_at_once(
    ends: Callable[[Peer], None], why: str
) -> None:
    def script(peer: Peer) -> None:
        for _ in range(3):
            peer.heard()
        ends(peer)

    with connected(script) as cdp:
        for each in outcomes(cdp, 3):
            with pytest.raises(Gone, match=why):
                each.result()
        assert cdp.dead is not None


def test_a_frame_too_long_is_left_out_and_nothing_else() -> None:
    """A page can have Chrome tell of it at any length."""

    def long_winded(peer: Peer) -> None:
        first, second = peer.heard(), peer.heard()
        whole = frame(b'{"id": %d, "result": {"text": "%s"}}' % (first["id"], b"x" * protocol.LARGEST))
        step = threading.Event()
        for start, end in [(0, 10), (10, 1_000), (1_000, -1), (-1, None)]:
            peer.write(whole[start:end])
            step.wait(IMPATIENT.ask * 1.5)  # a read times out in between
        peer.reply(second, {"good": True})
        peer.wait_for_the_end()

    with connected(long_winded, Silence(ask=IMPATIENT.ask, end=LONG)) as cdp:
        cdp.tell("Page.enable")
        assert cdp.call("Page.enable", timeout=LONG) == {"good": True}


def test_a_message_in_pieces_is_one_message() -> None:
    """Frames cut anywhere, even inside a length and across a read that timed out, and a message over several frames."""

    def pieces(peer: Peer) -> None:
        message = peer.heard()
        whole = frame(b'{"id": %d, "result": {"text": "%s"}}' % (message["id"], b"x" * 70_000))
        step = threading.Event()
        for start, end in [(0, 1), (1, 5), (5, 11), (11, 40_000), (40_000, None)]:
            peer.write(whole[start:end])
            step.wait(IMPATIENT.ask * 1.5)  # a read times out in between
        message = peer.heard()
        text = b'{"id": %d, "result": {"n": 7}}' % message["id"]
        peer.write(frame(text[:10], final=False) + frame(b"", kind=0x9) + frame(text[10:], kind=0x0))
        peer.wait_for_the_end()

    with connected(pieces, Silence(ask=IMPATIENT.ask, end=LONG)) as cdp:
        assert len(cdp.call("Page.enable", timeout=LONG)["text"]) == 70_000
        assert cdp.call("Page.enable", timeout=LONG) == {"n": 7}


def test_text_that_is_no_utf8_inside_a_message_is_read_around() -> None:
    def odd(peer: Peer) -> None:
        peer.write(frame(b'{"id": %d, "result": {"title": "a\xed\xa0\x80b"}}' % peer.heard()["id"]))
        peer.wait_for_the_end()

    with connected(odd) as cdp:
        assert cdp.call("Page.enable")["title"].strip("ab").strip("\ufffd") == ""


def test_a_session_that_ends_fails_its_own_calls_alone() -> None:
    def script(peer: Peer) -> None:
        first, second = sorted((peer.heard(), peer.heard()), key=lambda message: str(message["sessionId"]))
        peer.say({"method": "Inspector.targetCrashed", "params": {}, "sessionId": first["sessionId"]})
        peer.reply(second, {"good": True})
        peer.wait_for_the_end()

    with connected(script) as cdp, ThreadPoolExecutor(2) as pool:
        cdp.listen("a", lambda *_: cdp.end_session("a", "the tab crashed"))
        crashed = pool.submit(cdp.call, "Page.navigate", None, "a", LONG)
        other = pool.submit(cdp.call, "Page.navigate", None, "b", LONG)
        assert other.result() == {"good": True}
        with pytest.raises(Gone, match="the tab crashed"):
            crashed.result()
        assert cdp.dead is None


def test_closing_fails_what_waits() -> None:
    waiting = threading.Event()

    def script(peer: Peer) -> None:
        peer.heard()
        waiting.set()
        peer.wait_for_the_end()

    with Scripted(script) as server, ThreadPoolExecutor(1) as pool:
        cdp = Cdp(server.url)
        pending = pool.submit(cdp.call, "Page.navigate", None, None, LONG)
        assert waiting.wait(LONG)
        cdp.close()
        with pytest.raises(Gone, match="closed"):
            pending.result()


def test_who_answers_an_event_while_it_is_closed_learns_that_and_nothing_else_happens() -> None:
    heard, closed, learnt = threading.Event(), threading.Event(), list[str]()

    def script(peer: Peer) -> None:
        peer.heard()
        peer.say({"method": "Fetch.requestPaused", "params": {}, "sessionId": "s"})
        peer.wait_for_the_end()

    def answer(*_: object) -> None:
        heard.set()
        assert closed.wait(LONG)
        try:
            cdp.tell("Fetch.continueRequest", {}, "s")
        except Gone as gone:
            learnt.append(str(gone))
            raise

    with connected(script, Silence(ask=IMPATIENT.ask, end=LONG)) as cdp:
        cdp.listen("s", answer)
        cdp.tell("Page.enable", {}, "s")
        assert heard.wait(LONG)
        with ThreadPoolExecutor(1) as pool:
            closing = pool.submit(cdp.close)
            until(lambda: cdp.dead is not None)
            closed.set()
            closing.result(LONG)
    assert learnt == ["closed"]


def test_where_nobody_listens_there_is_no_connection() -> None:
    with Scripted(echo) as server:
        Cdp(server.url).close()
    with pytest.raises(Gone, match="no connection"):
        Cdp(server.url)


def test_who_is_no_websocket_is_no_connection() -> None:
    for greeting in (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", b"hello\r\n\r\n", b""):
        with Scripted(echo, greeting) as server, pytest.raises(Gone, match="no connection"):
            Cdp(server.url)


def test_several_calls_are_asked_before_any_is_answered_and_their_results_stand_in_their_order() -> None:
    def backwards(peer: Peer) -> None:
        messages = [peer.heard() for _ in range(3)]
        for message in reversed(messages):
            peer.reply(message, {"method": message["method"], "session": message.get("sessionId")})
        peer.wait_for_the_end()

    with connected(backwards) as cdp:
        found = cdp.call_all([("Page.enable", {}), ("Network.enable", {"n": 1}), ("Fetch.enable", {})], "mine")
    assert [each["method"] for each in found] == ["Page.enable", "Network.enable", "Fetch.enable"]
    assert {each["session"] for each in found} == {"mine"}


def test_of_several_calls_the_first_that_is_declined_is_told() -> None:
    def choosy(peer: Peer) -> None:
        for _ in range(3):
            message = peer.heard()
            if message["method"] == "Page.enable":
                peer.reply(message, {})
            else:
                peer.say({"id": message["id"], "error": {"message": f"no {message['method']} here"}})
        peer.wait_for_the_end()

    with connected(choosy) as cdp, pytest.raises(Declined, match=r"Network\.enable: no Network\.enable here"):
        cdp.call_all([("Page.enable", {}), ("Network.enable", {}), ("Fetch.enable", {})])


def test_of_several_calls_a_missing_reply_is_late_and_none_waits_after_that() -> None:
    def half(peer: Peer) -> None:
        peer.reply(peer.heard(), {})
        peer.heard()
        peer.wait_for_the_end()

    with connected(half) as cdp:
        with pytest.raises(Late, match=r"Fetch\.enable: no reply within 0\.2 s"):
            cdp.call_all([("Page.enable", {}), ("Fetch.enable", {})], timeout=0.2)
        assert cdp.dead is None
