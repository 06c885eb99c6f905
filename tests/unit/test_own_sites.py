"""Sites of the owner's own: what may be one, and that a broken one costs itself alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import distributions
from pathlib import Path

import pytest

from lanes.core.chapters import Document
from lanes.errors import BadUrl
from lanes.settings import Settings, process_numbers
from lanes.sites import FEEDS, SITES, Site
from lanes.sites.own import NUMBERS, Own, gather, number_of
from tests.own_sites import install, sound

AT = datetime(2026, 3, 1, tzinfo=UTC)
SHOP = replace(FEEDS, name="shop", hosts=("shop.test",), many_hosts=False, gap=timedelta(seconds=10), slots=1)
Gather = Callable[[], Own]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gather:
    """What an environment gives that has the distributions laid down in `tmp_path`, beside the shipped Sites shop and feeds."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def gathered() -> Own:
        found = [entry for each in distributions(path=[str(tmp_path)]) for entry in each.entry_points]
        return gather((SHOP, FEEDS), found)

    return gathered


def test_an_entry_point_gives_a_site(own: Gather, tmp_path: Path) -> None:
    install(tmp_path, "inn", sound("inn", "inn.test"))
    found = own()
    site = found.sites["inn"]
    assert (site.hosts, site.gap, found.distributions["inn"], found.broken) == (
        ("inn.test",), timedelta(seconds=10), "my-sites 1.5", (),
    )  # fmt: skip
    assert site.recognise("http://inn.test/1") == "http://inn.test/1"
    reading = site.read(b"One", None, "http://inn.test/1", AT)
    assert isinstance(reading, Document)
    assert reading.items[0].title == "One"


def test_one_with_the_name_of_a_shipped_site_replaces_it(own: Gather, tmp_path: Path) -> None:
    install(tmp_path, "shop", sound("shop", "shop.test"))
    found = own()
    assert found.replaced == {"shop"}
    assert found.sites["shop"].number is None  # its program is the shipped one's, with that number


@pytest.mark.parametrize(
    ("name", "source", "why"),
    [
        ("inn", "import nowhere_to_be_found", "cannot be imported (ModuleNotFoundError: No module named"),
        ("inn", "raise SystemExit(3)", "cannot be imported (SystemExit: 3)"),
        ("inn", "SITE = 'inn'", "gives a str, not a lanes.sites.Site"),
        ("inn", sound("Inn", "inn.test"), "'Inn' is not 1 to 40 of the characters a-z, 0-9 and -"),
        ("inn", sound("-", "inn.test"), "'-' is not 1 to 40 of the characters"),
        ("inn", sound("tavern", "inn.test"), "its Site is called 'tavern': give the entry point that very name"),
        ("feeds", sound("feeds", "inn.test"), "`feeds` alone: choose another name"),
        ("inn", sound("inn", "inn.test", "many_hosts=True"), "`feeds` alone"),
        ("inn", sound("inn", "shop.test"), "shop.test belongs to the Site shop: to replace that one, take its name"),
        ("inn", sound("inn", "Inn.test"), "is not a host's name in small letters"),
        ("inn", sound("inn", "inn.test:80"), "is not a host's name in small letters"),
        ("inn", sound("inn", "inn.test").replace("hosts=('inn.test',)", "hosts=()"), "it names no hosts"),
        ("inn", sound("inn", "inn.test", "gap=None"), "its Gap is shorter than 1 s"),
        ("inn", sound("inn", "inn.test", "gap=timedelta(seconds=0.99)"), "its Gap is shorter than 1 s"),
        ("inn", sound("inn", "inn.test", "rest=timedelta(seconds=59)"), "its Rest is shorter than 60 s"),
        ("inn", sound("inn", "inn.test", "rest=3600"), "it is no sound Site (TypeError"),
        ("inn", sound("inn", "inn.test", "slots=2"), "only `feeds` has more than one slot"),
        ("inn", sound("inn", "inn.test", "number=99"), "its number 99 is not from 100 to 499"),
        ("inn", sound("inn", "inn.test", "host_floors={'shop.test': timedelta(0)}"), "name shop.test, which is not one of"),
    ],
)  # fmt: skip
def test_a_broken_one_is_told_with_its_distribution_and_costs_no_other(
    own: Gather, tmp_path: Path, name: str, source: str, why: str
) -> None:
    install(tmp_path, name, source, distribution="broken-site")
    install(tmp_path, "zoo", sound("zoo", "zoo.test"))
    found = own()
    (broken,) = found.broken
    assert (broken.name, broken.distribution) == (name, "broken-site 1.5")
    assert why in str(broken)
    assert str(broken).startswith(f"The own Site '{name}' of broken-site 1.5 is left out: ")
    assert set(found.sites) == {"zoo"}


def test_the_edges_of_what_is_allowed_are_allowed(own: Gather, tmp_path: Path) -> None:
    more = "gap=timedelta(seconds=1), rest=timedelta(minutes=1), number=499"
    install(tmp_path, "a" * 40, sound("a" * 40, "inn.test", more))
    assert own().broken == ()


def test_of_two_with_one_name_the_second_is_told_of_the_first(own: Gather, tmp_path: Path) -> None:
    install(tmp_path, "inn", sound("inn", "inn.test"), distribution="a-site")
    install(tmp_path, "inn", sound("inn", "other.test"), distribution="b-site")
    found = own()
    assert found.sites["inn"].hosts == ("inn.test",)
    assert [str(each) for each in found.broken] == [
        "The own Site 'inn' of b-site 1.5 is left out: a-site 1.5 has one of that name already"
    ]


def test_the_port_of_an_own_site_comes_of_its_name_and_a_collision_names_both(own: Gather, tmp_path: Path) -> None:
    install(tmp_path, "inn", sound("inn", "inn.test"))
    install(tmp_path, "zoo", sound("zoo", "zoo.test", f"number={number_of('inn')}"))
    found = own()
    assert found.sites["inn"].number == number_of("inn") == 127
    (broken,) = found.broken
    assert f"zoo and inn would both serve their metrics at the port base + {number_of('inn')}" in broken.why
    settings = Settings.load({"LANES_METRICS_PORT": "9600"})
    assert settings.metrics_port_of("lane-inn", found.sites["inn"].number) == 9727
    assert settings.metrics_port_of("lane-feeds", 127) == 9600 + process_numbers()["lane-feeds"]


def test_the_numbers_of_own_sites_are_clear_of_the_shipped_ones_and_are_ports_on_the_highest_base() -> None:
    assert max(process_numbers().values()) < NUMBERS[0]
    assert 65_000 + NUMBERS[-1] < 65_536


def test_a_recogniser_that_raises_keeps_nobody_from_the_other_sites(
    own: Gather, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = sound("inn", "inn.test").replace("url if url", "url[9999] if url").replace("else None", "else url[9999]")
    install(tmp_path, "inn", source)
    assert own().sites["inn"].recognise("http://elsewhere.test/") is None
    assert "a bug in an own Site's recogniser site=inn" in caplog.text


def test_a_recogniser_may_not_send_us_to_another_host_than_its_own(own: Gather, tmp_path: Path) -> None:
    install(tmp_path, "inn", sound("inn", "inn.test").replace("url if url", "'http://shop.test/' if url"))
    with pytest.raises(BadUrl, match="not one of its hosts"):
        own().sites["inn"].recognise("http://inn.test/1")


def test_what_it_does_not_recognise_at_its_own_host_is_not_left_to_feeds(own: Gather, tmp_path: Path) -> None:
    install(tmp_path, "inn", sound("inn", "inn.test").replace("http://inn.test", "http://inn.test/serial/"))
    site = own().sites["inn"]
    assert site.recognise("http://inn.test/serial/1") is not None
    assert site.recognise("http://elsewhere.test/1") is None
    with pytest.raises(BadUrl, match="its host belongs to the own Site inn, which does not recognise it"):
        site.recognise("http://inn.test/about")


def test_a_reader_that_gives_nothing_raises_and_never_passes_for_the_same_bytes(own: Gather, tmp_path: Path) -> None:
    install(
        tmp_path,
        "inn",
        sound("inn", "inn.test").replace("Document((Item(", "None and ((Item(").replace("(),))", "(),))"),
    )
    with pytest.raises(TypeError, match="the reader of inn gave a NoneType"):
        own().sites["inn"].read(b"", None, "http://inn.test/", AT)


def test_shipped_sites_need_no_number_of_their_own() -> None:
    assert [site.name for site in SITES if site.number is not None] == []


def test_no_shipped_site_would_be_refused_as_an_own_one() -> None:
    """What is asked of an owner holds for whatever is shipped: names, hosts, pace."""
    hosts = [host for site in SITES for host in site.hosts]
    assert len(hosts) == len(set(hosts))
    assert all(isinstance(site, Site) and (site.many_hosts or site.hosts) for site in SITES)
