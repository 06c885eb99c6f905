"""The small internet does on the wire what its steps say, and its record tells the truth about it."""

from __future__ import annotations

import asyncio
import gc
import gzip
import socket
import ssl
import time
import warnings
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPResponse, IncompleteRead
from pathlib import Path
from threading import Thread

import pytest
import trustme

from tests.smallnet import (
    AS_USUAL,
    Feed,
    Host,
    Post,
    Record,
    Request,
    Smallnet,
    Step,
    big_headers,
    drip,
    endless,
    gzip_bomb,
    never,
    not_modified,
    ok,
    raw,
    redirect,
    reset,
    status,
)

BODY = b"<rss>" + b"x" * 995
PATIENCE = 10.0
IMPATIENCE = 0.1


@contextmanager
def connected(host: Host, timeout: float = PATIENCE) -> Iterator[HTTPConnection]:
    connection = HTTPConnection(host.address, host.net.port, timeout=timeout)
    try:
        yield connection
    finally:
        connection.close()


def ask(connection: HTTPConnection, path: str = "/feed", **headers: str) -> HTTPResponse:
    connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    return connection.getresponse()


def get(host: Host, path: str = "/feed", **headers: str) -> tuple[int, dict[str, str], bytes]:
    with connected(host) as connection:
        answer = ask(connection, path, **headers)
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


def everything(host: Host, timeout: float = PATIENCE) -> bytes:
    """All bytes that come in answer to one bare request, until the other side closes."""
    with socket.create_connection((host.address, host.net.port), timeout) as plain:
        plain.sendall(b"GET /feed HTTP/1.1\r\nHost: here\r\n\r\n")
        return b"".join(iter(lambda: plain.recv(65_536), b""))


@pytest.fixture
def host(net: Smallnet) -> Host:
    return net.host("127.1.0.5")


def test_a_script_is_played_in_order_and_its_last_step_repeats(host: Host) -> None:
    host.script("/feed", [status(503, retry_after=1500), status(410), ok("here")])
    assert [get(host)[0] for _ in range(4)] == [503, 410, 200, 200]
    assert host.net.record.statuses(host) == {503: 1, 410: 1, 200: 2}


def test_a_wait_is_asked_for_verbatim_and_twice_when_told_so(host: Host) -> None:
    host.script("/feed", status(429, headers=(("Retry-After", "60"), ("Retry-After", "3_600"))))
    assert b"Retry-After: 60\r\nRetry-After: 3_600\r\n" in host_head(host)


def host_head(host: Host) -> bytes:
    with socket.create_connection((host.address, host.net.port), PATIENCE) as plain:
        plain.sendall(b"GET /feed HTTP/1.1\r\nHost: here\r\n\r\n")
        head = b""
        while b"\r\n\r\n" not in head:
            head += plain.recv(65_536)
        return head


def test_as_usual_in_a_script_is_what_stands_beneath_it(host: Host) -> None:
    host.feed("/feed", ["One"])
    host.script("/feed", [AS_USUAL, status(500)])
    assert b"One" in get(host)[2]
    assert get(host)[0] == 500
    host.unscript("/feed")
    assert b"One" in get(host)[2]


def test_a_redirect_names_its_target_and_sets_its_cookie(host: Host) -> None:
    host.script("/feed", redirect("file:///etc/passwd", 307, cookie="seen=1"))
    code, headers, _ = get(host)
    assert (code, headers["location"], headers["set-cookie"]) == (307, "file:///etc/passwd", "seen=1")


def test_a_cut_answer_promises_more_than_it_brings(host: Host) -> None:
    host.script("/feed", ok(BODY).cut_after(100))
    with pytest.raises(IncompleteRead) as cut:
        get(host)
    assert len(cut.value.partial) == 100


def test_a_cut_chunked_answer_lacks_its_last_chunk(host: Host) -> None:
    """CASES G4."""
    host.script("/feed", ok(BODY).chunked(300).cut_after(500))
    _, _, body = everything(host).partition(b"\r\n\r\n")
    assert len(body) == 500
    assert body.startswith(b"12c\r\n<rss>")
    assert not body.endswith(b"0\r\n\r\n")


def test_a_chunked_answer_arrives_whole_and_the_connection_lives_on(host: Host) -> None:
    host.script("/feed", ok(BODY).chunked(300))
    with connected(host) as connection:
        assert [ask(connection).read() for _ in range(2)] == [BODY, BODY]
    assert len(host.net.record.dials) == 1


def test_a_connection_that_is_lost_already_can_be_hung_up_once_more() -> None:
    """Over TLS the socket is gone one turn of the loop before its connection is told so: a world that ends just then must not trip."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority = trustme.CA()
    authority.issue_cert("127.1.0.5").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with Smallnet(tls=context) as net:
        host = net.host("127.1.0.5")

        async def hang_up_twice() -> int:
            (connection,) = host.listener.connections
            connection.abort()
            await asyncio.sleep(0)
            connection.abort()
            return len(host.listener.connections)

        with (
            socket.create_connection((host.address, net.port)) as wire,
            trusting.wrap_socket(wire, server_hostname=host.address),
        ):
            net.wait_until(lambda record: any(dial.address == host.address for dial in record.dials))
            assert net.in_loop(hang_up_twice()) == 1, "it had not been told yet"


def test_a_world_that_ends_while_somebody_is_being_accepted_leaves_no_socket_open() -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for _ in range(20):
            with ExitStack() as wires, Smallnet() as net:
                host = net.host("127.1.0.5")
                for _ in range(20):
                    wires.enter_context(socket.create_connection((host.address, net.port)))
            del net, host
        gc.collect()
    assert [each for each in warned if issubclass(each.category, ResourceWarning)] == []


def test_a_reset_is_a_reset(host: Host) -> None:
    host.script("/feed", [reset(), ok(BODY).reset_after(10)])
    with pytest.raises(ConnectionResetError):
        everything(host)
    with pytest.raises(ConnectionResetError):
        everything(host)


def test_silence_lasts_until_the_client_goes(host: Host) -> None:
    host.script("/feed", never())
    with pytest.raises(TimeoutError):
        everything(host, IMPATIENCE)
    host.net.quiet()
    (visit,) = host.net.record
    assert visit.status is None
    assert not visit.whole


def test_an_endless_body_outlasts_its_reader(host: Host) -> None:
    host.script("/feed", endless(b"more" * 1_000))
    with connected(host) as connection:
        answer = ask(connection)
        assert len(answer.read(1_000_000)) == 1_000_000
        answer.close()
    host.net.quiet()
    assert host.net.record[0].sent >= 1_000_000
    assert not host.net.record[0].whole


def test_a_drip_comes_byte_by_byte(host: Host) -> None:
    host.script("/feed", drip(b"abcde", every=0.01))
    started = time.monotonic()
    assert get(host)[2] == b"abcde"
    assert time.monotonic() - started >= 0.05


def test_a_delay_comes_before_the_first_byte_also_of_the_usual_answer(host: Host) -> None:
    host.page("/feed", BODY)
    host.script("/feed", AS_USUAL.after(0.05))
    assert get(host)[2] == BODY
    host.net.quiet()
    (visit,) = host.net.record
    assert visit.ended is not None
    assert visit.ended - visit.arrived >= 0.05


def test_raw_bytes_are_all_that_comes(host: Host) -> None:
    host.script("/feed", raw(b"SSH-2.0-nobody\r\n"))
    assert everything(host) == b"SSH-2.0-nobody\r\n"


def test_big_headers_are_big(host: Host) -> None:
    host.script("/feed", big_headers(200_000, BODY, lines=4))
    assert len(host_head(host)) > 200_000


def test_a_bomb_is_small_on_the_wire_and_inflates_to_what_was_asked(host: Host) -> None:
    """CASES G5."""
    host.script("/feed", gzip_bomb(3_000_001))
    _, headers, body = get(host)
    assert headers["content-encoding"] == "gzip"
    assert len(body) < 8_000
    assert gzip.decompress(body) == b" " * 3_000_001


def test_a_bomb_compressed_twice_is_kilobytes_for_a_gigabyte() -> None:
    """CASES G5."""
    bomb = gzip_bomb(1 << 30, twice=True)
    assert len(bomb.body) < 10_000
    assert zlib.crc32(zlib.decompressobj(31).decompress(gzip.decompress(bomb.body), 4_096)) == zlib.crc32(b" " * 4_096)


def test_a_body_may_be_compressed_or_lie_about_it(host: Host) -> None:
    """CASES G6."""
    host.script("/feed", [ok(BODY).gzipped(), ok(BODY, headers={"Content-Encoding": "gzip"})])
    assert gzip.decompress(get(host)[2]) == BODY
    _, headers, body = get(host)
    assert (headers["content-encoding"], body) == ("gzip", BODY)


def test_a_closing_answer_ends_the_connection(host: Host) -> None:
    host.script("/feed", ok(BODY).closing())
    assert everything(host).endswith(BODY)


def test_a_step_may_be_worked_out_from_the_request(host: Host) -> None:
    """CASES C2: 304 to everything conditional."""

    def stubborn(request: Request) -> Step:
        return not_modified() if "if-none-match" in request.headers else ok(BODY, headers={"ETag": '"x"'})

    host.script("/feed", stubborn)
    assert [get(host)[0], get(host, If_None_Match='"y"')[0]] == [200, 304]


def test_a_script_that_raises_fails_the_test_and_not_the_server() -> None:
    def broken(request: Request) -> Step:
        raise LookupError(request.path)

    net = Smallnet().__enter__()
    host = net.host("127.1.0.5")
    host.script("/feed", broken)
    assert [get(host)[0], get(host, "/other")[0]] == [500, 404]
    with pytest.raises(ExceptionGroup, match="scripts raised"):
        net.__exit__(None, None, None)


@pytest.mark.parametrize("kind", ["rss", "atom", "json"])
def test_a_feed_says_304_until_something_is_published(host: Host, kind: str) -> None:
    feed = host.feed("/feed", ["Chapter 1"], kind=kind)  # type: ignore[arg-type]
    _, headers, _ = get(host)
    assert get(host, If_None_Match=headers["etag"])[0] == 304
    assert get(host, If_Modified_Since=headers["last-modified"])[0] == 304
    host.publish("/feed", Post("Chapter 2 & more"))
    code, changed, body = get(host, If_None_Match=headers["etag"], If_Modified_Since=changed_at(feed))
    assert code == 200
    assert changed["etag"] != headers["etag"]
    assert body == feed.body
    assert body.index(b"Chapter 2") < body.index(b"Chapter 1")


def changed_at(feed: Feed) -> str:
    """The current Last-Modified, which must not outweigh an old entity tag."""
    return dict(feed(Request("GET", "/feed", {})).headers)["Last-Modified"]


def test_the_same_posts_give_the_same_bytes_in_every_run() -> None:
    assert Feed("http://a.test/feed", ["One", "Two"]).body == Feed("http://a.test/feed", ["One", "Two"]).body


def test_robots_are_404_until_there_are_some(host: Host) -> None:
    assert get(host, "/robots.txt")[0] == 404
    host.robots("User-agent: *\nCrawl-delay: 2.5\n")
    assert get(host, "/robots.txt")[2].endswith(b"2.5\n")


def test_a_held_request_is_answered_when_it_is_released_and_not_before(host: Host) -> None:
    feed = host.feed("/feed", ["One"])
    hold = host.hold("/feed")
    answers: list[bytes] = []
    asking = Thread(target=lambda: answers.append(get(host)[2]))
    asking.start()
    assert hold.arrived.wait(PATIENCE)
    assert host.net.record[0].ended is None
    assert not answers
    feed.publish("Two")
    hold.release()
    asking.join(PATIENCE)
    assert b"Two" in answers[0]
    assert get(host)[0] == 200


def test_a_host_goes_down_and_comes_up_again(host: Host) -> None:
    host.page("/feed", BODY)
    with connected(host) as connection:
        assert ask(connection).read() == BODY
        host.down()
        with pytest.raises(ConnectionError):
            ask(connection)
    with pytest.raises(ConnectionRefusedError):
        get(host)
    host.up()
    assert get(host)[2] == BODY


def test_a_black_hole_neither_accepts_nor_refuses(host: Host) -> None:
    host.black_hole()
    with pytest.raises(TimeoutError):
        everything(host, IMPATIENCE)
    host.up()
    assert get(host)[0] == 404


def test_names_at_one_address_are_told_apart(net: Smallnet) -> None:
    """CASES B16 needs many."""
    hosts = [net.host("127.1.0.7", name=f"n{number}.test") for number in range(3)]
    for host in hosts:
        host.page("/feed", host.key)
    assert [get(hosts[0], Host=f"{host.name}:{net.port}")[2].decode() for host in hosts] == [host.key for host in hosts]
    assert [visit.host for visit in net.record] == [host.key for host in hosts]
    assert net.spacing_offences(60.0) == []
    assert len(net.spacing_offences(60.0, by_address=True)) == 2


def test_an_arrival_is_stamped_between_sending_and_answer(host: Host) -> None:
    before, wall = time.monotonic(), time.time()
    get(host, "/feed?a=1", User_Agent="Lanes")
    after = time.monotonic()
    (visit,) = host.net.record
    assert visit.ended is not None
    assert before <= visit.arrived <= visit.ended <= after
    assert wall <= visit.wall <= time.time()
    assert (visit.path, visit.status, visit.headers["user-agent"]) == ("/feed?a=1", 404, "Lanes")
    assert visit.host_header == f"127.1.0.5:{host.net.port}"


def test_two_requests_too_close_are_an_offence_and_far_enough_are_none(host: Host) -> None:
    get(host)
    get(host)
    (spacing,) = host.net.record.spacings(host)
    assert host.net.spacing_offences(spacing * 0.99) == []
    (offence,) = host.net.spacing_offences(spacing + 1)
    assert offence.where == "127.1.0.5"
    assert offence.spacing == spacing
    assert host.net.spacing_offences(spacing + 1, slack=2) == []
    assert host.net.overlaps() == []


def test_two_at_once_are_an_overlap(host: Host) -> None:
    with host.hold("/slow") as hold, connected(host) as connection:
        connection.request("GET", "/slow")
        assert hold.arrived.wait(PATIENCE)
        get(host, "/quick")
        (offence,) = host.net.overlaps(host)
        assert (offence.earlier.path, offence.later.path) == ("/slow", "/quick")


def test_a_wait_for_visits_says_what_it_saw(host: Host) -> None:
    get(host)
    assert len(host.net.wait_for_visits(1, host, "/feed")) == 1
    with pytest.raises(AssertionError, match=r"GET 127.1.0.5/feed -> 404"):
        host.net.wait_for_visits(2, timeout=0.01)


def test_the_record_survives_on_disk(tmp_path: Path) -> None:
    journal = tmp_path / "record.jsonl"
    with Smallnet(journal=journal) as net:
        get(net.host("127.1.0.5"))
        seen = net.record.visits
    written = Record.load(journal)
    assert written.visits == seen
    assert [dial.address for dial in written.dials] == ["127.1.0.5"]


def test_five_hundred_hosts_listen_at_once_and_nowhere_else(net: Smallnet) -> None:
    hosts = net.many(500)
    assert {get(host)[0] for host in hosts[::50]} == {404}
    for forbidden in ("127.0.0.1", "127.9.0.1", "127.255.255.254", "127.1.0.2"):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((forbidden, net.port), PATIENCE)


def test_a_host_in_the_forbidden_world_has_to_be_asked_for(net: Smallnet) -> None:
    """CASES E5: stands in for what must never be dialled."""
    with pytest.raises(ValueError, match="forbidden=True"):
        net.host("127.9.0.1")
    with pytest.raises(ValueError, match="not on loopback"):
        net.host("192.0.2.1", forbidden=True)
    trap = net.host("127.9.0.1", forbidden=True)
    assert not net.dialled("127.9.0.1")
    with socket.create_connection((trap.address, net.port), PATIENCE):
        net.wait_until(lambda _: net.dialled("127.9.0.1"))
    assert len(net.record) == 0


def test_two_small_internets_never_share_a_port(net: Smallnet) -> None:
    with Smallnet() as other:
        assert other.port != net.port
