"""Names, addresses and connections: what was checked is dialled, and nothing is written before its permit."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import NoReturn

import pytest
import trustme

from lanes.core.answer import Forbidden, Postponed, Trouble
from lanes.fetch.connection import Connection
from lanes.fetch.guard import Guard
from lanes.fetch.http import Http, Request
from lanes.fetch.limits import LIMITS
from lanes.fetch.permits import Wait
from tests.smallnet import Smallnet, not_modified, ok, redirect, reset
from tests.wire.fetching import CLAIMED_AT, Ledger, client, get, response, trouble

FEED = b"<rss/>"

AUTHORITY = trustme.CA()
"""Signs for this run alone."""


@pytest.fixture
def http(net: Smallnet) -> Iterator[Http]:
    made = client(net)
    yield made
    made.close()


def test_a_request_says_who_asks_and_takes_every_coding(net: Smallnet, http: Http) -> None:
    host = net.host("127.1.0.5", name="a.test")
    host.script("/feed", ok(FEED))
    answer = response(http.get(Request(host.url(), accept="application/atom+xml"), Ledger()))
    assert not answer.conditional
    assert answer.latency > timedelta(0)
    assert net.record[0].headers == {
        "host": f"a.test:{net.port}",
        "user-agent": "Lanes/test (+mailto:owner@example.test)",
        "accept": "application/atom+xml",
        "accept-encoding": "gzip, deflate, br, zstd",
    }


@pytest.mark.parametrize(
    "odd", ["Donnerstag, 32. Mai 2041, 25:61 Uhr", "Fri, 01 Jan 2041 00:00:00 GMT", "-1", 'W/"a, b"', "caf\xe9 \x01\t;"]
)
def test_validators_go_back_byte_for_byte_however_odd(net: Smallnet, http: Http, odd: str) -> None:
    """CASES C5."""
    host = net.host("127.1.0.5")
    host.script("/feed", not_modified())
    answer = response(http.get(Request(host.url(), etag=odd, last_modified=odd), Ledger()), 304)
    assert answer.conditional
    asked = net.record[0].headers
    assert asked["if-none-match"] == asked["if-modified-since"] == odd


@pytest.mark.parametrize("impossible", ["a\r\nX-Injected: 1", "a\nb", "\u2603", "a\0"])
def test_a_validator_that_no_header_can_hold_is_left_out(net: Smallnet, http: Http, impossible: str) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", ok(FEED))
    assert not response(http.get(Request(host.url(), etag=impossible), Ledger())).conditional


def test_a_slow_name_makes_the_sent_instant_late_not_wrong(net: Smallnet, http: Http) -> None:
    """CASES B15: the permit to send is asked after the name came and just before the request is written."""
    host = net.host("127.1.0.5", name="slow.test")
    host.script("/feed", ok(FEED))
    net.resolver.delay("slow.test", 0.3)
    permits = Ledger()
    answer = response(http.get(Request(host.url()), permits))
    sent_after = (answer.requests[0].sent_at - CLAIMED_AT).total_seconds()
    assert sent_after >= 0.3
    assert permits.sends[0][2] <= net.record[0].arrived
    assert answer.latency < timedelta(seconds=0.3)


def test_the_address_that_was_checked_is_the_one_dialled(net: Smallnet, http: Http) -> None:
    """CASES H11's kind: a name that is allowed when asked first and forbidden when asked again."""
    allowed = net.host("127.1.0.5", name="turns.test")
    net.host("127.2.0.5", forbidden=True)
    allowed.script("/feed", ok(FEED).closing())
    net.resolver.script("turns.test", [["127.1.0.5"], ["127.2.0.5"]])
    assert response(http.get(Request(allowed.url()), Ledger())).requests[0].address == "127.1.0.5"
    assert len(net.resolver.asked) == 1
    answer = http.get(Request(allowed.url()), Ledger())
    assert isinstance(answer, Forbidden)
    assert (answer.address, answer.requests) == ("127.2.0.5", ())
    assert not net.dialled("127.2.0.5")


def test_of_a_names_addresses_only_an_allowed_one_is_dialled(net: Smallnet, http: Http) -> None:
    host = net.host("127.1.0.5", name="both.test")
    net.host("127.2.0.5", forbidden=True)
    host.script("/feed", ok(FEED))
    net.resolver.set("both.test", "127.2.0.5", "127.1.0.5")
    assert response(http.get(Request(host.url()), Ledger())).requests[0].address == "127.1.0.5"
    assert not net.dialled("127.2.0.5")


def test_a_host_keeps_its_address_while_its_name_has_it(net: Smallnet, http: Http) -> None:
    host = net.host("127.1.0.6", name="many.test")
    host.script("/feed", ok(FEED))
    net.resolver.set("many.test", "127.1.0.5", "127.1.0.6")
    permits = Ledger()
    answer = response(http.get(Request(host.url(), address="127.1.0.6"), permits))
    assert answer.requests[0].address == "127.1.0.6"
    assert permits.dials == []


def test_a_changed_address_takes_a_slot_before_it_is_dialled(net: Smallnet, http: Http) -> None:
    host = net.host("127.1.0.6", name="moved.test")
    host.script("/feed", ok(FEED))
    permits = Ledger()
    response(http.get(Request(host.url(), address="127.1.0.5"), permits))
    assert permits.dials == [("moved.test", "127.1.0.6")]


def test_an_address_without_a_slot_is_put_back_and_dialled_by_the_next_claim_without_asking_dns(
    net: Smallnet, http: Http
) -> None:
    host = net.host("127.1.0.6", name="moved.test")
    host.script("/feed", ok(FEED))
    answer = http.get(Request(host.url()), Ledger(dialling=[Wait(timedelta(seconds=3), "address")]))
    assert answer == Postponed("address", timedelta(seconds=3), (), "127.1.0.6", None)
    assert not net.dialled("127.1.0.6")
    permits = Ledger()
    response(http.get(Request(host.url(), dial=answer.address), permits))
    assert (permits.dials, len(net.resolver.asked)) == ([], 1)


def test_the_guard_is_repeated_for_an_address_put_back(net: Smallnet, http: Http) -> None:
    net.host("127.2.0.5", forbidden=True)
    answer = http.get(Request(f"http://a.test:{net.port}/", dial="127.2.0.5"), Ledger())
    assert isinstance(answer, Forbidden)
    assert not net.dialled("127.2.0.5")


@pytest.mark.parametrize("given", [False, True])
def test_a_black_holed_address_falls_back_to_the_next_within_its_own_slot(net: Smallnet, given: bool) -> None:
    dead, alive = net.host("127.1.0.5"), net.host("127.1.0.6", name="both.test")
    dead.black_hole()
    alive.script("/feed", ok(FEED))
    net.resolver.set("both.test", "127.1.0.5", "127.1.0.6")
    http = client(net, replace(LIMITS, fall_back=0.1))
    permits = Ledger()
    request = Request(alive.url(), dial="127.1.0.5") if given else Request(alive.url(), address="127.1.0.5")
    assert response(http.get(request, permits)).requests[0].address == "127.1.0.6"
    http.close()
    assert permits.dials == [("both.test", "127.1.0.6")]


def test_after_one_family_the_other_is_tried(net: Smallnet) -> None:
    alive = net.host("127.1.0.6", name="both.test")
    alive.script("/feed", ok(FEED))
    net.resolver.set("both.test", "::1", "::2", "::3", "::4", "::5", "127.1.0.6")
    http = client(net, replace(LIMITS, fall_back=0.1), ["127.1.0.0/16", "::/64"])
    permits = Ledger()
    response(http.get(Request(alive.url()), permits))
    http.close()
    assert [address for _, address in permits.dials] == ["::1", "127.1.0.6"]


def test_a_connection_that_does_not_come_ends_at_its_deadline(net: Smallnet) -> None:
    host = net.host("127.1.0.5")
    host.black_hole()
    told = trouble(get(net, host.url(), replace(LIMITS, connect=0.1)), Trouble.CONNECT)
    assert (told.detail, told.line_proved, told.requests) == ("127.1.0.5: no connection in time", False, ())


def test_a_refused_connection_proves_our_line(net: Smallnet, http: Http) -> None:
    host = net.host("127.1.0.5")
    host.down()
    told = trouble(http.get(Request(host.url()), Ledger()), Trouble.CONNECT)
    assert told.detail == "127.1.0.5: connection refused"
    assert told.line_proved


@pytest.mark.parametrize(
    ("error", "proved"),
    [(socket.EAI_NONAME, True), (socket.EAI_NODATA, True), (socket.EAI_AGAIN, False), (socket.EAI_FAIL, False)],
)
def test_only_a_definite_no_of_the_name_system_proves_our_line(
    net: Smallnet, http: Http, error: int, proved: bool
) -> None:
    """CASES A1, A10."""
    net.resolver.fail(error, "a.test")
    told = trouble(http.get(Request("http://a.test/feed"), Ledger()), Trouble.DNS)
    assert (told.line_proved, told.requests) == (proved, ())


def test_a_name_that_takes_too_long_is_no_answer(net: Smallnet) -> None:
    net.resolver.delay("a.test", 30)
    told = trouble(get(net, "http://a.test/feed", replace(LIMITS, resolve=0.05)), Trouble.DNS)
    assert not told.line_proved


def test_a_connection_is_kept_and_used_again(net: Smallnet, http: Http) -> None:
    host = net.host("127.1.0.5", name="a.test")
    host.script("/feed", [ok(FEED), not_modified(), ok(FEED).chunked()])
    permits = Ledger()
    for _ in range(3):
        http.get(Request(host.url(), address="127.1.0.5"), permits)
    assert len(net.record.dials) == 1
    assert (len(net.resolver.asked), len(permits.sends), permits.dials) == (1, 3, [])


def test_a_kept_connection_to_another_address_than_the_claims_is_not_used(net: Smallnet, http: Http) -> None:
    host = net.host("127.1.0.5", name="a.test")
    net.host("127.1.0.6").script("/feed", ok(FEED))
    host.script("/feed", ok(FEED))
    response(http.get(Request(host.url()), Ledger()))
    net.resolver.set("a.test", "127.1.0.6")
    answer = response(http.get(Request(host.url(), address="127.1.0.6"), Ledger()))
    assert answer.requests[0].address == "127.1.0.6"


def test_a_connection_that_was_closed_meanwhile_is_noticed_before_anything_is_written(
    net: Smallnet, http: Http
) -> None:
    host = net.host("127.1.0.5")
    closed = replace(ok(FEED), ending=ok(FEED).closing().ending)  # closes without having said so
    host.script("/feed", [closed, ok(FEED)])
    response(http.get(Request(host.url(), address="127.1.0.5"), Ledger()))
    net.wait_until(lambda _: not host.listener.connections)
    net.in_loop(asyncio.sleep(0))  # its socket is closed right after it was told
    response(http.get(Request(host.url(), address="127.1.0.5"), Ledger()))
    assert [visit.whole for visit in net.record] == [True, True]
    assert len(net.record.dials) == 2


def test_a_kept_connection_that_breaks_after_the_request_was_written_is_not_asked_again(
    net: Smallnet, http: Http
) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", [ok(FEED), reset(), ok(FEED)])
    permits = Ledger()
    response(http.get(Request(host.url(), address="127.1.0.5"), permits))
    told = trouble(http.get(Request(host.url(), address="127.1.0.5"), permits), Trouble.RESET)
    assert (len(told.requests), len(permits.sends), len(net.record)) == (1, 2, 2)


def test_a_connection_the_server_keeps_for_a_second_is_not_kept(net: Smallnet, http: Http) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", ok(FEED, headers={"Keep-Alive": "timeout=1"}))
    for _ in range(2):
        response(http.get(Request(host.url(), address="127.1.0.5"), Ledger()))
    assert len(net.record.dials) == 2


def test_idle_connections_are_bounded_and_the_longest_idle_goes_first(net: Smallnet) -> None:
    http = client(net, replace(LIMITS, idle=2))
    hosts = [net.host(f"127.1.0.{n}") for n in (5, 6, 7)]
    for host in [*hosts, hosts[2], hosts[1], hosts[0]]:
        host.script("/feed", ok(FEED))
        response(http.get(Request(host.url(), address=host.address), Ledger()))
    http.close()
    assert [sum(dial.address == host.address for dial in net.record.dials) for host in hosts] == [2, 1, 1]


def test_a_closed_connection_is_gone_at_once_and_does_not_wait_for_the_collector(net: Smallnet, http: Http) -> None:
    """CASES H9: thousands of them would stand about between two full collections."""
    host = net.host("127.1.0.5")
    host.script(
        "/feed",
        [ok(FEED).closing(), not_modified().closing(), redirect("/other").closing(), reset(), ok(FEED).closing()],
    )
    gc.collect()
    gc.disable()
    try:
        for _ in range(10):
            http.get(Request(host.url(), address="127.1.0.5"), Ledger())
        assert [each for each in gc.get_objects() if isinstance(each, Connection)] == []
    finally:
        gc.enable()


def test_threads_share_a_client(net: Smallnet, http: Http) -> None:
    hosts = net.many(16)
    for host in hosts:
        host.script("/feed", ok(host.address.encode()))
    wrong: list[object] = []

    def ask(url: str, address: str) -> None:
        for _ in range(20):
            answer = http.get(Request(url, address=address), Ledger())
            if getattr(answer, "body", None) != address.encode():
                wrong.append(answer)

    threads = [threading.Thread(target=ask, args=(host.url(), host.address)) for host in hosts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert sum(dial.address != net.anchor.address for dial in net.record.dials) == 16


def test_interrupting_puts_the_fetch_in_hand_back(net: Smallnet, http: Http) -> None:
    host = net.host("127.1.0.5")
    hold = host.hold("/feed")
    answers: list[object] = []
    thread = threading.Thread(target=lambda: answers.append(http.get(Request(host.url()), Ledger())))
    thread.start()
    assert hold.arrived.wait(10)
    http.interrupt()
    thread.join(10)
    hold.release()
    (answer,) = answers
    assert isinstance(answer, Postponed)
    assert (answer.reason, len(answer.requests)) == ("stopping", 1), "a request was sent, so the stamp stays"
    assert isinstance(http.get(Request(host.url()), Ledger()), Postponed), "nothing is begun any more"
    assert sum(dial.address == host.address for dial in net.record.dials) == 1


def test_what_a_permit_raises_passes_through_and_nothing_is_written(net: Smallnet, http: Http) -> None:
    host = net.host("127.1.0.5")

    class Broken(Ledger):
        def sending(self, host: str, address: str) -> NoReturn:
            raise LookupError("no database")

    with pytest.raises(LookupError):
        http.get(Request(host.url()), Broken())
    assert len(net.record) == 0


@pytest.fixture
def secure_net() -> Iterator[Smallnet]:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert("b.test", "127.1.0.8").configure_cert(server)
    with Smallnet(tls=server) as net:
        yield net


def _trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    AUTHORITY.configure_trust(context)
    return context


def test_tls_is_spoken_with_the_hosts_name_at_the_checked_address(secure_net: Smallnet) -> None:
    host = secure_net.host("127.1.0.7", name="b.test")
    host.script("/feed", ok(FEED * 50_000))
    trusting = _trusting()
    http = Http("Lanes/test", Guard(["127.1.0.0/16"], secure_net.resolver), tls=trusting)
    for _ in range(2):
        answer = response(http.get(Request(host.url(), address="127.1.0.7"), Ledger()))
        assert (answer.body, answer.requests[0].address) == (FEED * 50_000, "127.1.0.7")
    http.close()
    assert sum(dial.address == "127.1.0.7" for dial in secure_net.record.dials) == 1


@pytest.mark.parametrize(("name", "trust"), [("b.test", False), ("c.test", True)])
def test_a_certificate_that_is_unknown_or_anothers_is_a_value(secure_net: Smallnet, name: str, trust: bool) -> None:
    host = secure_net.host("127.1.0.7", name=name)
    trusting = _trusting() if trust else None
    http = Http("Lanes/test", Guard(["127.1.0.0/16"], secure_net.resolver), tls=trusting)
    told = trouble(http.get(Request(host.url()), Ledger()), Trouble.TLS)
    assert told.detail.startswith(f"{name}: TLS: ")
    assert (told.requests, len(secure_net.record)) == ((), 0)


def test_a_handshake_that_does_not_come_ends_at_the_connect_deadline(net: Smallnet) -> None:
    host = net.host("127.1.0.5")
    url = host.url().replace("http:", "https:")
    told = trouble(get(net, url, replace(LIMITS, connect=0.2)), Trouble.TIMEOUT)
    assert (told.detail, told.line_proved) == ("127.1.0.5: no TLS handshake in time", False)


@pytest.mark.parametrize(
    ("answer", "proved"),
    [(b"\x15\x03\x03\x00\x02\x02\x28", True), (b"HTTP/1.1 400 Bad Request\r\n\r\n", False), (b"", False)],
)
def test_of_what_is_no_handshake_only_a_tls_alert_proves_our_line(net: Smallnet, answer: bytes, proved: bool) -> None:
    with socket.create_server(("127.1.0.9", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        told = get(net, f"https://127.1.0.9:{listening.getsockname()[1]}/")
        thread.join(10)
    assert trouble(told, Trouble.TLS, Trouble.RESET).line_proved == proved
