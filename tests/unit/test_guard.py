"""The guard's judgement of every range of addresses."""

from __future__ import annotations

import queue
import socket

import pytest

from lanes.fetch.guard import Guard, Named
from tests.smallnet import Resolver

DEADLINE = 20.0
FORBIDDEN = {
    "unspecified": ["0.0.0.0", "0.1.2.3", "::"],
    "loopback": ["127.0.0.1", "127.1.0.5", "127.255.255.255", "::1"],
    "private": ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fdff::1"],
    "shared": ["100.64.0.1", "100.127.255.255"],
    "link-local": ["169.254.169.254", "fe80::1", "fe80::1%eth0", "febf::1"],
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1"],
    "reserved": ["240.0.0.1", "255.255.255.255", "192.0.0.8", "198.18.0.1", "198.19.255.255", "100::1", "5f00::1"],
    "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"],
    "site-local": ["fec0::1"],
    "IPv4-mapped": ["::ffff:8.8.8.8", "::ffff:127.0.0.1", "::ffff:169.254.169.254"],
    "IPv4-compatible": ["::8.8.8.8"],
    "6to4": ["2002:0808:0808::1", "2002:7f00:1::1", "192.88.99.1"],
    "Teredo": ["2001:0:4136:e378:8000:63bf:3fff:fdd2"],
    "ORCHID": ["2001:10::1", "2001:20::1"],
    "NAT64 of a forbidden one": ["64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::a00:1"],
    "local NAT64": ["64:ff9b:1::808:808"],
    "no address": ["", "localhost", "1.2.3", "0x7f.1", "1.2.3.4.5", "8.8.8.8 ", "٨.8.8.8"],
}
PUBLIC = [
    "1.1.1.1", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1", "198.17.0.1", "223.255.255.255",
    "2606:4700::1111", "2001:4860:4860::8888", "2a00::1", "64:ff9b::808:808",
]  # fmt: skip


@pytest.mark.parametrize("address", [address for addresses in FORBIDDEN.values() for address in addresses])
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert not Guard().check(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_let_through(address: str) -> None:
    assert Guard().check(address)


def test_a_network_of_the_allow_list_is_let_through_and_its_neighbours_are_not() -> None:
    guard = Guard(["127.1.0.0/16", "fd00::/64"])
    assert [guard.check(a) for a in ("127.1.0.5", "fd00::1")] == [True, True]
    assert [guard.check(a) for a in ("127.2.0.5", "127.0.0.1", "fd00:0:0:1::1")] == [False, False, False]


def test_an_allowed_ipv4_network_does_not_let_its_disguises_through() -> None:
    guard = Guard(["127.1.0.0/16"])
    assert not guard.check("::ffff:127.1.0.5")
    assert not guard.check("2002:7f01:5::1")
    assert guard.check("64:ff9b::7f01:5"), "NAT64 means the IPv4 address itself"


def test_a_name_is_split_into_what_may_and_what_may_not_be_dialled() -> None:
    names = Resolver()
    names.set("both.test", "127.0.0.1", "127.1.0.5", "::1")
    assert Guard(["127.1.0.0/16"], names).resolve("both.test", 80, 5) == Named(("127.1.0.5",), ("127.0.0.1", "::1"))


def test_a_number_in_disguise_is_judged_by_what_it_resolves_to() -> None:
    assert Guard().resolve("2130706433", 80, 5) == Named((), ("127.0.0.1",))
    assert Guard().resolve("0x7f.1", 80, 5) == Named((), ("127.0.0.1",))


def test_only_a_literal_address_is_forbidden_before_it_is_resolved() -> None:
    assert Guard().forbids("169.254.169.254")
    assert Guard().forbids("::ffff:127.0.0.1")
    assert not Guard().forbids("1.1.1.1")
    assert not Guard().forbids("localhost")


def test_a_resolver_that_hangs_is_given_up() -> None:
    names = Resolver()
    names.set("slow.test", "127.1.0.5")
    names.delay("slow.test", 30)
    try:
        with pytest.raises(TimeoutError):
            Guard(["127.1.0.0/16"], names).resolve("slow.test", 80, 0.01)
    finally:
        names.close()


def test_what_the_resolver_raises_reaches_who_asked() -> None:
    with pytest.raises(socket.gaierror):
        Guard([], Resolver()).resolve("nowhere.test", 80, 5)


def test_without_a_wait_an_address_is_answered_at_once_and_a_name_later_each_once() -> None:
    names, told = Resolver(), queue.SimpleQueue[Named | Exception]()
    names.set("both.test", "127.0.0.1", "127.1.0.5")
    guard = Guard(["127.1.0.0/16"], names)
    guard.resolve_to("127.2.0.7", 80, told.put)
    assert told.get_nowait() == Named((), ("127.2.0.7",))
    guard.resolve_to("both.test", 80, told.put)
    assert told.get(timeout=DEADLINE) == Named(("127.1.0.5",), ("127.0.0.1",))
    guard.resolve_to("nowhere.test", 80, told.put)
    assert isinstance(told.get(timeout=DEADLINE), socket.gaierror)
    assert told.empty()
