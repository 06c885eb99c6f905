"""The one way from Chrome to the network, asked by hand (CASES H11; DESIGN 6, 7)."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import cast

import pytest

from browser_sidecar.proxy import RESOLVERS, Gate, Proxy
from browser_sidecar.sides import Side
from lanes.core.answer import Trouble
from lanes.fetch.guard import Guard
from lanes.fetch.limits import LIMITS
from tests.smallnet import ALLOWED, Host, Smallnet, endless, ok, raw
from tests.waiting import until

DEADLINE = 20.0
QUICK = replace(LIMITS, resolve=0.3, connect=1.0, fall_back=0.3)


@pytest.fixture
def proxy(net: Smallnet) -> Iterator[Proxy]:
    proxy = Proxy(Guard([str(ALLOWED)], net.resolver), QUICK, page_bytes=2**20)
    yield proxy
    proxy.close()


@pytest.fixture
def gate(proxy: Proxy) -> Gate:
    gate = proxy.open()
    assert gate is not None
    return gate


@pytest.fixture
def site(net: Smallnet) -> Host:
    site = net.host("127.1.0.5", name="site.test")
    for path in ("/page", "/page?q=1"):
        site.script(path, ok("hello").closing())
    return site


def credentials(gate: Gate, password: str | None = None) -> str:
    told = base64.b64encode(f"{gate.user}:{gate.password if password is None else password}".encode()).decode()
    return f"Proxy-Authorization: Basic {told}\r\n"


def asked(gate: Gate, first: str, headers: str | None = None, then: bytes = b"") -> bytes:
    """All that the proxy says to one request; `then` is sent once it has begun to answer."""
    with socket.create_connection(("127.0.0.1", gate.port), timeout=DEADLINE) as wire:
        wire.sendall(f"{first} HTTP/1.1\r\n{credentials(gate) if headers is None else headers}\r\n".encode())
        said = b""
        try:
            if then:
                said = wire.recv(65_536)
                wire.sendall(then)
            while piece := wire.recv(65_536):
                said += piece
        except ConnectionResetError:
            pass
        return said


def tunnelled(
    gate: Gate, where: str, request: bytes = b"GET /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
) -> bytes:
    """What comes through a tunnel to `where`."""
    return asked(gate, f"CONNECT {where}", then=request)


def test_a_tunnel_carries_bytes_both_ways_and_counts_them(gate: Gate, site: Host, net: Smallnet) -> None:
    said = tunnelled(gate, f"site.test:{net.port}")
    assert said.startswith(b"HTTP/1.1 200 ")
    assert said.endswith(b"hello")
    assert gate.received == len(said.partition(b"\r\n\r\n")[2])
    assert gate.drawn("site.test", net.port) == gate.received
    assert gate.connections == 1


def test_a_plain_request_arrives_as_the_site_knows_requests_and_its_connection_ends(
    gate: Gate, site: Host, net: Smallnet
) -> None:
    headers = (
        credentials(gate) + "Host: site.test\r\nProxy-Connection: keep-alive\r\nX-Own: 1\r\nConnection: keep-alive\r\n"
    )
    said = asked(gate, f"GET http://site.test:{net.port}/page?q=1", headers)
    assert b"\r\nConnection: close\r\n" in said
    (visit,) = net.record.of(site)
    assert visit.path == "/page?q=1"
    assert visit.headers["connection"] == "close"
    assert visit.headers["x-own"] == "1"
    assert "proxy-authorization" not in visit.headers
    assert "proxy-connection" not in visit.headers


@pytest.mark.parametrize(
    "headers", ["", "Proxy-Authorization: Basic bGFuZXM6d3Jvbmc=\r\n", "Proxy-Authorization: x\r\n"]
)
def test_who_does_not_know_the_credentials_gets_nowhere(gate: Gate, site: Host, net: Smallnet, headers: str) -> None:
    for first in (f"CONNECT site.test:{net.port}", f"GET http://site.test:{net.port}/page"):
        said = asked(gate, first, headers)
        assert said.startswith(b"HTTP/1.1 407 ")
        assert b"\r\nConnection: close\r\n" in said
    assert not net.dialled(site.address)


def test_the_credentials_of_one_gate_open_no_other(proxy: Proxy, gate: Gate, site: Host, net: Smallnet) -> None:
    other = proxy.open()
    assert other is not None
    assert other.port != gate.port
    said = asked(other, f"CONNECT site.test:{net.port}", credentials(gate))
    assert said.startswith(b"HTTP/1.1 407 ")
    assert not net.dialled(site.address)


@pytest.mark.parametrize(
    "host", ["127.2.0.7", "2130837511", "127.1", "0x7f.2.0.7", "[::ffff:127.2.0.7]", "[::1]", "localhost", "0.0.0.0", "turned.test"]
)  # fmt: skip
def test_an_address_that_is_not_public_is_never_dialled_however_it_is_written(
    gate: Gate, net: Smallnet, host: str
) -> None:
    forbidden = net.host("127.2.0.7", forbidden=True)
    net.resolver.set("turned.test", "127.2.0.7")
    net.resolver.set("localhost", "127.0.0.1")
    for number in ("2130837511", "127.1", "0x7f.2.0.7"):
        net.resolver.set(number, "127.2.0.7")  # as the system's resolver reads them
    assert tunnelled(gate, f"{host}:{net.port}").startswith(b"HTTP/1.1 502 ")
    assert asked(gate, f"GET http://{host}:{net.port}/") == b""
    assert not net.dialled(forbidden.address)
    assert len(gate.forbidden) == 2
    failure = gate.failure(host.strip("[]"), net.port)
    assert failure is not None
    assert failure.forbidden in ("127.2.0.7", "::ffff:7f02:7", "::1", "127.0.0.1", "0.0.0.0")


def test_a_name_is_judged_anew_for_each_connection(gate: Gate, site: Host, net: Smallnet) -> None:
    """First it resolves to what may be dialled, then not (rebinding)."""
    forbidden = net.host("127.2.0.7", forbidden=True)
    net.resolver.script("turns.test", [["127.1.0.5"], ["127.2.0.7"]])
    assert tunnelled(gate, f"turns.test:{net.port}").endswith(b"hello")
    assert tunnelled(gate, f"turns.test:{net.port}").startswith(b"HTTP/1.1 502 ")
    assert not net.dialled(forbidden.address)
    assert [asked.name for asked in net.resolver.asked] == ["turns.test", "turns.test"]


def test_of_several_addresses_only_those_that_may_be_are_dialled(gate: Gate, site: Host, net: Smallnet) -> None:
    forbidden = net.host("127.2.0.7", forbidden=True)
    net.resolver.set("both.test", "127.2.0.7", "127.1.0.5")
    assert tunnelled(gate, f"both.test:{net.port}").endswith(b"hello")
    assert not net.dialled(forbidden.address)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]", "[::ffff:0.0.0.0]", "[::]", "[::1]"])
def test_our_own_ports_are_reached_by_nobody_even_where_everything_is_allowed(
    net: Smallnet, site: Host, host: str
) -> None:
    devtools = socket.create_server(("127.0.0.1", 0))
    proxy = Proxy(Guard(["0.0.0.0/0", "::/0"], net.resolver), QUICK)
    try:
        gate, other = proxy.open(), proxy.open()
        assert gate is not None
        assert other is not None
        proxy.off_limits.add(devtools.getsockname()[1])
        for port in (devtools.getsockname()[1], gate.port, other.port):
            assert tunnelled(gate, f"{host}:{port}").startswith(b"HTTP/1.1 502 ")
        proxy.off_limits.add(net.port)
        assert tunnelled(gate, f"127.1.0.5:{net.port}").endswith(b"hello"), (
            "a port of that number elsewhere is not ours"
        )
        assert len(gate.forbidden) == 3
        devtools.setblocking(False)
        with pytest.raises(BlockingIOError):
            devtools.accept()
    finally:
        proxy.close()
        devtools.close()


def test_why_a_host_could_not_be_reached_is_known_until_it_is_reached(gate: Gate, site: Host, net: Smallnet) -> None:
    site.down()
    assert tunnelled(gate, f"site.test:{net.port}").startswith(b"HTTP/1.1 502 ")
    failure = gate.failure("site.test", net.port)
    assert failure is not None
    assert (failure.trouble, failure.line_proved, failure.forbidden) == (Trouble.CONNECT, True, None)
    assert failure.detail == "site.test: connection refused"
    site.up()
    assert tunnelled(gate, f"site.test:{net.port}").endswith(b"hello")
    assert gate.failure("site.test", net.port) is None


def test_a_name_that_is_none_is_a_failure_of_the_name_system(gate: Gate, net: Smallnet) -> None:
    net.resolver.fail(socket.EAI_AGAIN, "away.test")
    net.resolver.delay("slow.test", DEADLINE)
    found = {}
    for host in ("nowhere.test", "away.test", "slow.test"):
        assert tunnelled(gate, f"{host}:{net.port}").startswith(b"HTTP/1.1 502 ")
        failure = gate.failure(host, net.port)
        assert failure is not None
        found[host] = (failure.trouble, failure.line_proved)
    assert found == {
        "nowhere.test": (Trouble.DNS, True),
        "away.test": (Trouble.DNS, False),
        "slow.test": (Trouble.DNS, False),
    }


def test_names_that_hang_are_in_the_way_of_no_other_page(net: Smallnet, site: Host) -> None:
    proxy = Proxy(Guard([str(ALLOWED)], net.resolver))
    names = [f"slow-{n}.test" for n in range(2 * RESOLVERS)]
    with closing(proxy), ExitStack() as stack:
        hanging, other = proxy.open(), proxy.open()
        assert hanging is not None
        assert other is not None
        for name in names:
            net.resolver.delay(name, 10 * DEADLINE)
            wire = stack.enter_context(socket.create_connection(("127.0.0.1", hanging.port), timeout=DEADLINE))
            wire.sendall(f"CONNECT {name}:{net.port} HTTP/1.1\r\n{credentials(hanging)}\r\n".encode())
        until(lambda: len({each.name for each in net.resolver.asked}) >= RESOLVERS)
        assert tunnelled(other, f"site.test:{net.port}").endswith(b"hello")
        assert {hanging.failure(name, net.port) for name in names} == {None}, "they hang still"


def test_a_black_hole_costs_a_connect_deadline(gate: Gate, net: Smallnet) -> None:
    net.host("127.1.0.6", name="hole.test").black_hole()
    assert tunnelled(gate, f"hole.test:{net.port}").startswith(b"HTTP/1.1 502 ")
    failure = gate.failure("hole.test", net.port)
    assert failure is not None
    assert (failure.trouble, failure.line_proved) == (Trouble.CONNECT, False)


def test_a_page_that_draws_too_much_is_cut_off_and_gets_no_more(gate: Gate, site: Host, net: Smallnet) -> None:
    site.script("/endless", endless())
    said = tunnelled(gate, f"site.test:{net.port}", b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
    assert len(said) <= 2**20 + 65_536
    assert gate.is_spent
    dials = len(net.record.dials)
    assert asked(gate, f"CONNECT site.test:{net.port}") == b""
    assert len(net.record.dials) == dials


def test_what_a_page_draws_is_counted_over_all_its_hosts(gate: Gate, site: Host, net: Smallnet) -> None:
    drawn = 0
    for n in range(3):
        net.host(f"127.1.1.{n}", name=f"part-{n}.test").script("/part", ok("x" * 500_000).closing())
        drawn += len(tunnelled(gate, f"part-{n}.test:{net.port}", b"GET /part HTTP/1.1\r\nHost: x\r\n\r\n"))
    assert 2**20 - 65_536 <= drawn <= 2**20 + 65_536
    assert gate.is_spent


class Wire:
    """One connection as its `Side` knows it."""

    ended = False

    def abort(self) -> None:
        self.ended = True

    def resume_reading(self) -> None:
        return


def test_who_may_send_no_more_is_cut_off_at_once_whatever_chrome_has_yet_to_take() -> None:
    async def too_much() -> tuple[bool, bool]:
        chrome, origin, wire = Side(lambda _: None), Side(), Wire()
        origin.transport = cast("asyncio.Transport", wire)
        origin.onto(chrome, lambda _: False)
        origin.data_received(b"one byte too many")
        return wire.ended, origin.over.is_set()

    assert asyncio.run(too_much()) == (True, True)


def test_one_host_may_be_given_less_and_the_page_goes_on_elsewhere(gate: Gate, site: Host, net: Smallnet) -> None:
    site.script("/much", ok("x" * 300_000).closing())
    much = b"GET /much HTTP/1.1\r\nHost: x\r\n\r\n"
    gate.allow("SITE.test", net.port, 100_000)
    assert len(tunnelled(gate, f"site.test:{net.port}", much)) <= 100_100
    assert not gate.is_spent
    net.host("127.1.0.6", name="other.test").script("/page", ok("hello").closing())
    assert tunnelled(gate, f"other.test:{net.port}").endswith(b"hello")
    gate.allow("site.test", net.port, None)
    assert len(tunnelled(gate, f"site.test:{net.port}", much)) > 300_000


def test_a_page_has_so_many_connections_at_a_time_and_no_more(net: Smallnet, site: Host) -> None:
    proxy = Proxy(Guard([str(ALLOWED)], net.resolver), QUICK, connections=2)
    try:
        gate = proxy.open()
        assert gate is not None
        head = f"CONNECT site.test:{net.port} HTTP/1.1\r\n{credentials(gate)}\r\n".encode()
        open_ones = [socket.create_connection(("127.0.0.1", gate.port), timeout=DEADLINE) for _ in range(2)]
        for wire in open_ones:
            wire.sendall(head)
            assert wire.recv(100).startswith(b"HTTP/1.1 200 ")
        assert asked(gate, f"CONNECT site.test:{net.port}") == b""
        for wire in open_ones:
            wire.close()
    finally:
        proxy.close()


def test_with_its_page_a_gate_ends_and_all_that_goes_through_it(gate: Gate, site: Host, net: Smallnet) -> None:
    hold = site.hold("/page")
    with socket.create_connection(("127.0.0.1", gate.port), timeout=DEADLINE) as wire:
        wire.sendall(f"GET http://site.test:{net.port}/page HTTP/1.1\r\n{credentials(gate)}\r\n".encode())
        net.wait_for_visits(1, site)
        gate.close()
        assert wire.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", gate.port), timeout=DEADLINE)
    hold.release()
    gate.close()  # once more does no harm


@pytest.mark.parametrize(
    "answer",
    [
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        raw(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        raw(b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"),
        raw(b"HTTP/1.1 103 Early Hints\n\nHTTP/1.1 200 OK\r\nContent-Length: 5\n\r\nhello"),
        ok("hello").closing(),
        ok("hello").chunked(2).closing(),
    ],
)
def test_a_plain_answer_is_handed_on_as_it_is_but_for_its_connection(
    gate: Gate, site: Host, net: Smallnet, answer: object
) -> None:
    site.script("/odd", answer)  # type: ignore[arg-type]
    said = asked(gate, f"GET http://site.test:{net.port}/odd")
    head, _, body = said.rpartition(b"\r\n\r\n") if b"chunked" not in said else said.partition(b"\r\n\r\n")
    assert b"Connection: close" in head
    assert b"hello" in body or body == b"2\r\nhe\r\n2\r\nll\r\n1\r\no\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "junk",
    [
        b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"CONNECT \xff:1 HTTP/1.1\r\n\r\n",
        b"CONNECT site.test HTTP/1.1\r\n\r\n",
        b"GET ftp://site.test/ HTTP/1.1\r\n\r\n",
        b"GET https://site.test/ HTTP/1.1\r\n\r\n",
        b"A" * 300_000,
    ],
)
def test_what_no_proxy_can_carry_ends_its_connection_alone(gate: Gate, site: Host, net: Smallnet, junk: bytes) -> None:
    with socket.create_connection(("127.0.0.1", gate.port), timeout=DEADLINE) as wire:
        try:
            wire.sendall(junk)
            wire.shutdown(socket.SHUT_WR)
            assert wire.recv(65_536)[:12] in (b"", b"HTTP/1.1 407")
        except ConnectionError:
            pass
    assert tunnelled(gate, f"site.test:{net.port}").endswith(b"hello")


def test_a_closed_proxy_opens_no_gate(net: Smallnet) -> None:
    proxy = Proxy(Guard([str(ALLOWED)], net.resolver))
    gate = proxy.open()
    proxy.close()
    proxy.close()
    assert gate is not None
    gate.close()
    assert proxy.open() is None
