"""The registry, and the one spelling of a URL."""

from __future__ import annotations

import pytest

from lanes.core.chapters import NotRecognised
from lanes.errors import BadUrl, UnknownSite
from lanes.sites import SITES, by_name, recognise


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


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.name)
def test_no_site_takes_an_empty_answer_for_a_document(site: object) -> None:
    assert all(isinstance(each.read(b"", None, "https://x.example/"), NotRecognised) for each in SITES if each is site)


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
