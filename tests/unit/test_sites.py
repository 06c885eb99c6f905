"""The registry, and the one spelling of a URL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lanes.core.chapters import NotRecognised
from lanes.errors import BadUrl, UnknownSite
from lanes.sites import SITES, Site, by_name, recognise, site_of
from lanes.sites.recognisers import RECOGNISERS

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_every_site_is_found_by_its_name_and_names_are_unique() -> None:
    assert [by_name(site.name) for site in SITES] == list(SITES)
    assert len({site.name for site in SITES}) == len(SITES)


def test_an_unknown_site_is_refused_by_name() -> None:
    with pytest.raises(UnknownSite, match=r"'nowhere'.*Registered: .*feeds"):
        by_name("nowhere")


def test_only_the_site_of_many_hosts_has_no_gap_and_it_is_asked_last() -> None:
    assert (
        [site.name for site in SITES if site.gap is None]
        == [site.name for site in SITES if site.many_hosts]
        == ["feeds"]
    )
    assert SITES[-1].name == "feeds"
    assert all(site.slots == 1 for site in SITES if not site.many_hosts)


def test_every_site_but_feeds_begins_with_a_rest_of_an_hour_and_a_gap_of_ten_seconds() -> None:
    """DESIGN 5.1; `feeds` has 16 Slots (DESIGN 2)."""
    hour, gap = timedelta(hours=1), timedelta(seconds=10)
    assert {(site.rest, site.gap) for site in SITES[:-1]} == {(hour, gap)}
    assert (SITES[-1].rest, SITES[-1].slots) == (hour, 16)


HOSTS = [(site.name, host) for site in SITES for host in site.hosts]


def test_a_host_has_one_site_and_one_publisher() -> None:
    """DESIGN 4.3: a host belongs to one Site."""
    names = [host for _, host in HOSTS] + [host for each in RECOGNISERS for host in each.hosts]
    assert len(names) == len(set(names))
    assert {host: site_of(host).name for _, host in HOSTS} == {host: name for name, host in HOSTS}
    assert {site_of(host).name for each in RECOGNISERS for host in each.hosts} == {"feeds"}


@pytest.mark.parametrize(("name", "host"), HOSTS)
@pytest.mark.parametrize(
    "path", ["/", "/feed", "/feed.xml?format=rss", "/a/b/c/d/e", "/..", "/fiction/", "/title//", "/works/0"]
)
def test_no_url_at_a_host_of_a_site_ever_goes_to_feeds(name: str, host: str, path: str) -> None:
    """The Lane of feeds would never be given a turn at a host that is another Site's: such a Series would go quiet silently."""
    for url in (f"https://{host}{path}", f"http://{host}:8080{path}", f"https://reader:secret@{host}{path}"):
        with pytest.raises(BadUrl, match=r"cannot be followed: .*paste"):
            recognise(url)


@pytest.mark.parametrize("site", [site for site in SITES if site.example], ids=lambda site: site.name)
def test_an_example_is_followed_by_its_own_site(site: Site) -> None:
    found, url = recognise(site.example)
    assert found is site
    assert recognise(url) == (site, url)


def test_every_shipped_site_says_what_it_was_made_from() -> None:
    assert [site.name for site in SITES if site.evidence is None] == []
    assert [site.name for site in SITES if site.browser and not site.experimental] == []


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.name)
def test_no_site_takes_an_empty_answer_for_a_document(site: Site) -> None:
    assert isinstance(site.read(b"", None, "https://x.example/", AT), NotRecognised)


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        (" HTTPS://Example.COM:443/A?b=C#part\n", "https://example.com/A?b=C"),
        ("http://example.com:80", "http://example.com/"),
        ("http://example.com:8080/x", "http://example.com:8080/x"),
        ("http://example.com:/x", "http://example.com/x"),
        ("feed:https://example.com/f", "https://example.com/f"),
        ("feed://example.com/f", "http://example.com/f"),
        ("http://bücher.example/ü?q=ü", "http://xn--bcher-kva.example/ü?q=ü"),
        ("https://Me:Pass@example.com/private", "https://Me:Pass@example.com/private"),
        ("https://example.com/a//b/../c%2f?&&", "https://example.com/a//b/../c%2f?&&"),
        ("http://[0:0::1]:9/x", "http://[::1]:9/x"),
        ("http://127.0.0.1:9000/feed", "http://127.0.0.1:9000/feed"),
    ],
)
def test_a_url_has_one_spelling(given: str, canonical: str) -> None:
    site, url = recognise(given)
    assert (site.name, url) == ("feeds", canonical)
    assert recognise(url) == (site, url)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("", "only http"),
        ("ledger", "only http"),
        ("ftp://example.com/", "only http"),
        ("file:///etc/passwd", "only http"),
        ("feed:javascript:alert(1)", "only http"),
        ("http:///x", "no host"),
        ("http://user@/x", "no host"),
        ("http://example.com:99999/", "malformed"),
        ("http://example.com:x/", "malformed"),
        ("http://example.com:0/", "malformed"),
        ("http://[::1/", "malformed"),
        ("http://[v1.x]/", "no IPv6"),
        ("http://a..b/", "no domain name"),
        ("http://exa mple.com/", "white space"),
        ("http://example.com/a\r\nHost: other", "white space"),
        ("http://example.com/\ud800", "control character"),
        ("http://" + "a" * 70 + ".example/", "no domain name"),
        ("http://" + "ü" * 70 + ".example/", "no domain name"),
        ("http://example.com/" + "x" * 5_000, "longer than"),
    ],
)
def test_a_url_that_cannot_be_followed_is_refused_with_its_reason(given: str, why: str) -> None:
    with pytest.raises(BadUrl, match=why):
        recognise(given)
