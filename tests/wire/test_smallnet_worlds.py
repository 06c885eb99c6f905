"""The worlds that run as a process of their own: the demo's and the bench's."""

from __future__ import annotations

from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener
from xml.etree import ElementTree as ET

import pytest

from tests.smallnet import Record, Smallnet, bench, demo
from tests.smallnet.outside import Outside

_open = build_opener(ProxyHandler({})).open


def ask(url: str, **headers: str) -> tuple[int, bytes, str]:
    request = Request(url, headers={name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with _open(request, timeout=10) as answer:
            return answer.status, answer.read(), answer.headers.get("ETag", "")
    except HTTPError as error:
        with error:
            return error.code, b"", ""


def test_the_demo_has_one_host_of_each_kind(net: Smallnet) -> None:
    town = demo.build(net)
    urls = {title.partition("(")[2].rstrip(")"): url for title, url in town.outlines}
    assert ask(urls[""])[0] == 200
    assert [ask(urls["asks to wait"])[0] for _ in range(2)] == [429, 429]
    assert town.asks_to_wait.early == 1
    assert b"A Change of Address" in ask(urls["moved"])[1]
    assert ask(urls["server error"])[0] == 500
    dead = urlsplit(urls["dead: refuses connections"])
    assert dead.hostname not in {host.address for host in net.hosts}


def test_the_demo_publishes_in_turn(net: Smallnet) -> None:
    town = demo.build(net)
    told = {town.publish() for _ in town.feeds}
    assert len(told) == len(town.feeds)
    assert f"{demo.SERIALS[0]} published Chapter 6." in told
    assert b"Chapter 6" in ask(town.outlines[0][1])[1]


def test_a_bench_feed_has_the_usual_size_and_is_the_same_in_every_run(net: Smallnet) -> None:
    first = bench.build(net, 2, 2)
    bodies = {url: ask(url)[1] for url in first.urls}
    assert len(set(bodies.values())) == 4
    for body in bodies.values():
        assert 52_000 <= len(body) <= 54_000
        assert len(ET.fromstring(body).findall("channel/item")) == bench.ITEMS
    bench.build(net, 2, 2)
    assert {url: ask(url)[1] for url in first.urls} == bodies


def test_the_asked_share_of_bench_feeds_has_one_new_item(net: Smallnet) -> None:
    world = bench.build(net, 10, 20)
    tags = {url: ask(url)[2] for url in world.urls}
    assert {ask(url, If_None_Match=tags[url])[0] for url in world.urls} == {304}
    world.share = 0.1
    changed = [url for url in world.urls if ask(url, If_None_Match=tags[url])[0] == 200]
    assert 10 <= len(changed) <= 30
    world.share = 0.0
    body = ask(changed[0])[1]
    assert f"chapters/{bench.ITEMS + 1}<".encode() in body
    assert b"chapters/1<" not in body


def test_a_world_outside_is_told_and_asked_over_its_control(tmp_path: Path) -> None:
    opml, journal = tmp_path / "feeds.opml", tmp_path / "record.jsonl"
    with Outside("demo", every=60, opml=opml, record=journal) as world:
        urls = [outline.get("xmlUrl", "") for outline in ET.parse(opml).iter("outline")]
        assert len(urls) == len(demo.SERIALS) + 5
        world.publish(urls[0], "A Chapter out of turn")
        assert b"A Chapter out of turn" in ask(urls[0])[1]
        assert [visit.status for visit in world.record()] == [200]
        assert world.summary()["statuses"] == {"200": 1}
        with pytest.raises(HTTPError):
            world.publish("http://127.1.0.99/feed", "Nowhere")
    assert [visit.status for visit in Record.load(journal)] == [200]


def test_the_share_of_a_bench_outside_can_be_moved_between_rounds(tmp_path: Path) -> None:
    opml = tmp_path / "feeds.opml"
    with Outside("bench", hosts=3, feeds=2, opml=opml) as world:
        url = next(iter(ET.parse(opml).iter("outline"))).get("xmlUrl", "")
        tag = ask(url)[2]
        assert ask(url, If_None_Match=tag)[0] == 304
        world.ask("share", value=1)
        assert ask(url, If_None_Match=tag)[0] == 200
        assert len(world.summary(60)["offences"]) == 2


def test_the_stand_ins_answer_in_their_sites_shapes_and_refuse_when_told(net: Smallnet) -> None:
    town = demo.build(net)
    demo.add_stand_ins(town, net)
    for site, start in (
        ("mangadex", b'{"result": "ok"'),
        ("royalroad", b"\xef\xbb\xbf<?xml"),
        ("webtoons", b"<?xml"),
        ("kagane", b'{"series_id"'),
        ("comix", b"<!doctype html>"),
    ):
        stand_in = town.stand_ins[site]
        url = stand_in.host.url(f"/a/path?of={stand_in.titles[0].key}")
        assert ask(url)[1].startswith(start), site
        stand_in.refuses = True
        assert ask(url)[0] == 403
