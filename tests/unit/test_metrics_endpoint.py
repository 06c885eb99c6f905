"""The endpoint of a process: two pages, no client that holds it up, and a port that may be taken."""

from __future__ import annotations

import http.client
import json
import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from lanes.metrics import Endpoint, LaneMetrics

Serve = Callable[..., Endpoint]


@pytest.fixture
def metrics() -> LaneMetrics:
    return LaneMetrics("feeds", 16)


@pytest.fixture
def serve(metrics: LaneMetrics) -> Iterator[Serve]:
    """Starts an endpoint that ends with the test."""
    with ExitStack() as stack:

        def start(bind: str = "127.0.0.1", port: int = 0, *, retry: float = 10.0, deadline: float = 5.0) -> Endpoint:
            endpoint = Endpoint(bind, port, metrics.registry, metrics.health, retry=retry, deadline=deadline)
            endpoint.start()
            stack.callback(endpoint.stop)
            return endpoint

        yield start


def ask(endpoint: Endpoint, path: str, method: str = "GET", bind: str = "127.0.0.1") -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection(bind, endpoint.port, timeout=10)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read()
    finally:
        connection.close()


def test_metrics_are_served_as_prometheus_reads_them(serve: Serve) -> None:
    status, kind, body = ask(serve(), "/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert b'lanes_polls_total{outcome="new",site="feeds"} 0.0\n' in body


def test_health_is_503_until_postgres_answers_and_then_200(serve: Serve, metrics: LaneMetrics) -> None:
    endpoint = serve()
    status, kind, body = ask(endpoint, "/health")
    assert (status, kind, json.loads(body)["ok"]) == (503, "application/json", False)
    metrics.database(up=True)
    status, _, body = ask(endpoint, "/health")
    told = json.loads(body)
    assert (status, told["ok"], told["database"], told["process"]) == (200, True, "up", "lane-feeds")
    assert set(told) == {"ok", "process", "site", "since", "state", "database", "last_pass", "version"}


def test_head_answers_without_a_body_and_other_methods_and_paths_are_refused(serve: Serve) -> None:
    endpoint = serve()
    assert ask(endpoint, "/metrics", "HEAD")[::2] == (200, b"")
    assert ask(endpoint, "/other")[0] == 404
    assert ask(endpoint, "/metrics", "POST")[0] == 501


def test_it_listens_on_ipv6_as_well(serve: Serve) -> None:
    assert ask(serve("::1"), "/metrics", bind="::1")[0] == 200


@pytest.mark.parametrize("sent", [b"", b"GET /metr", b"GET /metrics HTTP/1.1\r\nX-Never: "])
def test_a_client_that_never_finishes_holds_up_nobody_past_the_deadline(serve: Serve, sent: bytes) -> None:
    endpoint = serve(deadline=0.2)
    with socket.create_connection(("127.0.0.1", endpoint.port)) as stuck:
        stuck.sendall(sent)
        assert ask(endpoint, "/metrics")[0] == 200


def test_a_client_that_drips_has_one_deadline_for_all_its_bytes(serve: Serve) -> None:
    endpoint = serve(deadline=0.3)
    with socket.create_connection(("127.0.0.1", endpoint.port)) as dripping:
        dripping.settimeout(0.05)
        dripped, closed, until = 0, False, time.monotonic() + 20
        while not closed and time.monotonic() < until:
            try:
                dripping.sendall(b"x")
                dripped += 1
                closed = dripping.recv(1) == b""
            except TimeoutError:
                continue
            except ConnectionError:
                closed = True
    assert closed, f"still open after {dripped} bytes"
    assert ask(endpoint, "/metrics")[0] == 200


def test_a_client_that_vanishes_is_no_event(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    endpoint = serve()
    for _ in range(3):
        socket.create_connection(("127.0.0.1", endpoint.port)).close()
    assert ask(endpoint, "/metrics")[0] == 200
    assert not caplog.records


def test_a_taken_port_is_told_once_and_taken_over_when_it_becomes_free(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lanes.metrics")
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        endpoint = serve(port=port, retry=0.02)
        assert endpoint._listen(first=False) is None  # one more try in vain, which is told to nobody
    until = time.monotonic() + 20
    answer = None
    while answer is None and time.monotonic() < until:
        try:
            answer = ask(endpoint, "/metrics")
        except ConnectionError:
            continue
    assert answer is not None
    assert answer[0] == 200
    assert endpoint.port == port
    assert [record.message.split(" bind=")[0] for record in caplog.records] == [
        "the port of the metrics is taken, going on without",
        "the port of the metrics became free",
    ]


def test_an_endpoint_without_its_port_ends_at_once(serve: Serve, metrics: LaneMetrics) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        endpoint = Endpoint("127.0.0.1", holder.getsockname()[1], metrics.registry, metrics.health, retry=3600)
        endpoint.start()
        endpoint.stop()
        assert not endpoint._thread.is_alive()


def test_a_bug_in_a_page_is_logged_and_the_next_request_is_served(
    metrics: LaneMetrics, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    endpoint = Endpoint("127.0.0.1", 0, metrics.registry, broken)  # type: ignore[arg-type]
    endpoint.start()
    try:
        with pytest.raises(http.client.RemoteDisconnected):
            ask(endpoint, "/health")
        assert ask(endpoint, "/metrics")[0] == 200
    finally:
        endpoint.stop()
    assert [record.exc_info and record.exc_info[0] for record in caplog.records] == [ZeroDivisionError]
