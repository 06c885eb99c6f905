"""The small internet's names answer like the machine's own resolver."""

from __future__ import annotations

import socket

import pytest

from tests.smallnet import Smallnet


def test_the_resolver_answers_like_getaddrinfo(net: Smallnet) -> None:
    net.host("127.1.0.5", name="a.test")
    (found,) = net.resolver("A.test", 80, type=socket.SOCK_STREAM)
    assert found == (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.1.0.5", 80))
    assert net.resolver("127.1.0.9", 80)[0][4] == ("127.1.0.9", 80)
    with pytest.raises(socket.gaierror) as unknown:
        net.resolver("b.test", 80)
    assert unknown.value.errno == socket.EAI_NONAME


def test_a_name_changes_its_address_over_time(net: Smallnet) -> None:
    net.resolver.script("a.test", [["127.1.0.5"], socket.EAI_AGAIN, ["127.9.0.1", "::1"]])
    assert net.resolver("a.test", 80)[0][4][0] == "127.1.0.5"
    with pytest.raises(socket.gaierror):
        net.resolver("a.test", 80)
    assert [found[4][0] for found in net.resolver("a.test", 80)] == ["127.9.0.1", "::1"]
    assert [found[4][0] for found in net.resolver("a.test", 80, socket.AF_INET)] == ["127.9.0.1"]


def test_an_outage_of_names_ends_when_it_is_healed(net: Smallnet) -> None:
    """CASES A1."""
    net.host("127.1.0.5", name="a.test")
    net.resolver.fail(socket.EAI_AGAIN)
    with pytest.raises(socket.gaierror) as outage:
        net.resolver("a.test", 80)
    net.resolver.heal()
    assert outage.value.errno == socket.EAI_AGAIN
    assert net.resolver("a.test", 80)
    assert [asked.name for asked in net.resolver.asked] == ["a.test", "a.test"]
