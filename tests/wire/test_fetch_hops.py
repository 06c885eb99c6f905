"""Redirects: every hop asks its permit, is told, and ends in a value."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import timedelta

import pytest

from lanes.core.answer import Forbidden, Postponed, Resume, Trouble
from lanes.fetch.http import Request
from lanes.fetch.limits import LIMITS
from lanes.fetch.permits import Go, Wait
from tests.smallnet import Smallnet, not_modified, ok, redirect
from tests.wire.fetching import Ledger, client, get, response, trouble

FEED = b"<rss/>"


def test_a_chain_is_followed_and_every_written_request_is_told(net: Smallnet) -> None:
    a, b = net.host("127.1.0.5", name="a.test"), net.host("127.1.0.6", name="b.test")
    a.script("/feed", redirect("/moved", 301))
    a.script("/moved", redirect(b.url("/feed"), 308))
    b.script("/feed", ok(FEED))
    permits = Ledger(hopping=[Go("127.1.0.5"), Go()])
    answer = response(get(net, a.url(), permits=permits))
    assert (answer.url, answer.body, answer.permanent) == (b.url("/feed"), FEED, True)
    assert [(s.url, s.host, s.address, s.status, s.permanent) for s in answer.requests] == [
        (a.url("/feed"), "a.test", "127.1.0.5", 301, True),
        (a.url("/moved"), "a.test", "127.1.0.5", 308, True),
        (b.url("/feed"), "b.test", "127.1.0.6", 200, False),
    ]
    assert permits.hops == ["a.test", "b.test"]
    assert [(host, address) for host, address, _ in permits.sends] == [(s.host, s.address) for s in answer.requests]
    assert len({visit.connection for visit in net.record.of(a)}) == 1, "the connection serves the hop within its host"


@pytest.mark.parametrize("codes", [(302, 301), (301, 302), (301, 307), (303, 308)])
def test_a_chain_with_one_passing_hop_is_not_permanent(net: Smallnet, codes: tuple[int, int]) -> None:
    """CASES E3."""
    host = net.host("127.1.0.5")
    host.script("/feed", redirect("/b", codes[0]))
    host.script("/b", redirect("/c", codes[1]))
    host.script("/c", ok(FEED))
    assert not response(get(net, host.url())).permanent


def test_an_answer_without_hops_is_not_permanent(net: Smallnet) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", ok(FEED))
    assert not response(get(net, host.url())).permanent


@pytest.mark.parametrize("name", [None, "inner.test"])
def test_a_hop_to_a_forbidden_address_is_refused_there_and_never_dialled(net: Smallnet, name: str | None) -> None:
    """CASES E5: a forbidden part of loopback stands in for link-local and mapped addresses."""
    host = net.host("127.1.0.5")
    inner = net.host("127.2.0.6", name=name, forbidden=True)
    host.script("/feed", redirect(inner.url("/secret"), 302))
    answer = get(net, host.url())
    assert isinstance(answer, Forbidden)
    assert (answer.url, answer.address) == (inner.url("/secret"), "127.2.0.6")
    assert [sent.status for sent in answer.requests] == [302]
    assert not net.dialled("127.2.0.6")


@pytest.mark.parametrize("location", ["http://169.254.169.254/", "http://[::ffff:127.1.0.5]/"])
def test_a_forbidden_literal_asks_for_no_permit(net: Smallnet, location: str) -> None:
    """CASES E5."""
    host = net.host("127.1.0.5")
    host.script("/feed", redirect(location, 302))
    permits = Ledger()
    assert isinstance(get(net, host.url(), permits=permits), Forbidden)
    assert permits.hops == []


@pytest.mark.parametrize("location", ["file:///etc/passwd", "", "ftp://127.1.0.5/", "https://", "http://[", "gopher:x"])
def test_a_hop_to_nowhere_is_a_bad_url(net: Smallnet, location: str) -> None:
    """CASES E5."""
    host = net.host("127.1.0.5")
    host.script("/feed", redirect(location, 302))
    told = trouble(get(net, host.url()), Trouble.BAD_URL)
    assert told.line_proved
    assert len(told.requests) == 1


def test_a_redirect_without_a_location_is_a_bad_url(net: Smallnet) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", replace(ok(FEED), status=302))
    trouble(get(net, host.url()), Trouble.BAD_URL)


def test_a_redirect_to_itself_is_a_loop_at_once(net: Smallnet) -> None:
    """CASES E6."""
    host = net.host("127.1.0.5")
    host.script("/feed", redirect("/feed", 307))
    permits = Ledger()
    told = trouble(get(net, host.url(), permits=permits), Trouble.LOOP)
    assert (len(told.requests), permits.hops, len(net.record.of(host))) == (1, [], 1)


def test_a_way_back_with_a_cookie_is_no_loop(net: Smallnet) -> None:
    """CASES E6."""
    host = net.host("127.1.0.5")
    host.script("/a", [redirect("/b", 302), ok(FEED)])
    host.script("/b", redirect("/a", 302, cookie="seen=1; Path=/"))
    assert response(get(net, host.url("/a"))).body == FEED
    assert [v.headers.get("cookie") for v in net.record.of(host)] == [None, None, "seen=1"]


def test_a_cookie_stays_with_its_host_and_is_forgotten_after_the_fetch(net: Smallnet) -> None:
    a, b = net.host("127.1.0.5"), net.host("127.1.0.6")
    a.script("/feed", redirect(b.url("/feed"), 302, cookie="secret=1; Path=/"))
    b.script("/feed", ok(FEED))
    http = client(net)
    for _ in range(2):
        response(http.get(Request(a.url()), Ledger()))
    http.close()
    assert all("cookie" not in visit.headers for visit in net.record)


def test_the_eleventh_hop_is_one_too_many(net: Smallnet) -> None:
    host = net.host("127.1.0.5")
    host.answer_with(
        "*", lambda request: redirect(f"/{int(request.path[1:]) + 1}", 302) if request.path != "/10" else ok(FEED)
    )
    assert len(response(get(net, host.url("/0"))).requests) == 11
    host.script("/10", redirect("/11", 302))
    assert len(trouble(get(net, host.url("/0")), Trouble.HOPS).requests) == 11


def test_validators_go_only_to_the_url_that_gave_them(net: Smallnet) -> None:
    a, b = net.host("127.1.0.5"), net.host("127.1.0.6")
    a.script("/feed", redirect(b.url("/feed"), 301))
    b.script("/feed", ok(FEED))
    http = client(net)
    answer = response(http.get(Request(a.url(), etag='"x"', last_modified="yesterday"), Ledger()))
    http.close()
    first, second = net.record
    assert (first.headers["if-none-match"], first.headers["if-modified-since"]) == ('"x"', "yesterday")
    assert not {"if-none-match", "if-modified-since"} & set(second.headers)
    assert not answer.conditional


def test_the_end_of_a_chain_is_asked_with_the_validators_it_gave(net: Smallnet) -> None:
    """CASES C6."""
    host = net.host("127.1.0.5")
    host.script("/feed", redirect("/feed/", 301))
    host.script("/feed/", not_modified())
    http = client(net)
    answer = http.get(Request(host.url("/feed"), etag='"x"', validators_url=host.url("/feed/")), Ledger())
    http.close()
    assert response(answer, 304).conditional
    assert [visit.headers.get("if-none-match") for visit in net.record] == [None, '"x"']


def test_a_hop_that_opens_soon_is_waited_for(net: Smallnet) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", redirect("/b"))
    host.script("/b", ok(FEED))
    permits = Ledger(hopping=[Wait(timedelta(milliseconds=50), "bucket"), Wait(timedelta(0), "bucket"), Go()])
    assert response(get(net, host.url(), permits=permits)).body == FEED
    assert permits.hops == ["127.1.0.5"] * 3
    first, second = permits.sends
    assert second[2] - first[2] >= 0.05


def test_a_hop_that_opens_late_puts_the_poll_back_where_it_stands_and_it_goes_on_from_there(net: Smallnet) -> None:
    """CASES B13: the wait costs the Poll nothing but time; cookies, hops and permanence come along."""
    host = net.host("127.1.0.5")
    host.script("/feed", redirect("/b", 301, cookie="a=1; Path=/"))
    host.script("/b", redirect("/c", 308))
    host.script("/c", ok(FEED))
    http = client(net)
    late = Wait(timedelta(seconds=60), "crawl delay")
    put_back = http.get(Request(host.url()), Ledger(hopping=[Go(), late]))
    assert isinstance(put_back, Postponed)
    assert (put_back.reason, put_back.wait, len(put_back.requests)) == ("crawl delay", timedelta(seconds=60), 2)
    resume = put_back.resume
    assert isinstance(resume, Resume)
    assert (resume.url, resume.hops, resume.permanent) == (host.url("/c"), 2, True)
    answer = response(http.get(Request(host.url(), address="127.1.0.5", resume=resume), Ledger()))
    http.close()
    assert (answer.url, answer.permanent, len(answer.requests)) == (host.url("/c"), True, 1)
    assert [visit.path for visit in net.record] == ["/feed", "/b", "/c"]
    assert net.record[2].headers["cookie"] == "a=1"


def test_a_resumed_chain_still_knows_where_it_was(net: Smallnet) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", redirect("/b", 302))
    host.script("/b", redirect("/feed", 302))
    http = client(net)
    put_back = http.get(Request(host.url()), Ledger(hopping=[Wait(timedelta(minutes=1), "busy")]))
    assert isinstance(put_back, Postponed)
    told = trouble(http.get(Request(host.url(), resume=put_back.resume), Ledger()), Trouble.LOOP)
    http.close()
    assert [sent.url for sent in told.requests] == [host.url("/b")]


def test_waits_of_a_hop_count_in_the_deadline(net: Smallnet) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", redirect("/b"))
    permits = Ledger(hopping=[Wait(timedelta(seconds=4), "bucket")])
    answer = get(net, host.url(), replace(LIMITS, whole=2), permits)
    assert isinstance(answer, Postponed)
    assert answer.wait == timedelta(seconds=4)


def test_stopping_ends_a_hops_wait(net: Smallnet) -> None:
    host = net.host("127.1.0.5")
    host.script("/feed", redirect("/b"))
    http = client(net)

    class Stopping(Ledger):
        def hop(self, host: str, origin: str) -> Go | Wait:
            http.stop.set()
            return Wait(timedelta(seconds=4), "bucket")

    answer = http.get(Request(host.url()), Stopping())
    http.close()
    assert isinstance(answer, Postponed)
    assert (answer.reason, answer.wait) == ("stopping", timedelta(0))
    assert answer.resume is not None


def test_credentials_are_sent_within_their_host_and_never_told(net: Smallnet) -> None:
    a, b = net.host("127.1.0.5"), net.host("127.1.0.6")
    a.script("/feed", redirect("/b?token=hidden"))
    a.script("/b?token=hidden", redirect(b.url("/c")))
    b.script("/c", redirect("file:///x"))
    url = a.url().replace("http://", "http://me:p%40ss@")
    told = trouble(get(net, url), Trouble.BAD_URL)
    basic = "Basic " + base64.b64encode(b"me:p@ss").decode()
    assert [visit.headers.get("authorization") for visit in net.record] == [basic, basic, None]
    assert not any(secret in told.detail for secret in ("p@ss", "p%40ss", "hidden"))


@pytest.mark.parametrize("url", ["", "feed", "file:///etc/passwd", "http://", "http://a..b/"])
def test_a_stored_url_that_cannot_be_asked_is_a_value(net: Smallnet, url: str) -> None:
    assert trouble(get(net, url), Trouble.BAD_URL).requests == ()
