"""Challenges and blocks in a real Chromium: what clears by itself is waited for, what does not is held (CASES D1, D2; DESIGN 7)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lanes.core.answer import Trouble
from lanes.core.pages import NotShown, Shown
from tests.browser.conftest import CHAPTER, QUICK, Tabs, html
from tests.smallnet import Host, Request, Smallnet, Step, ok, redirect, status

CHALLENGE = (
    "<!DOCTYPE html><html><head><title>Just a moment...</title></head><body><script>window._cf_chl_opt={cType:'managed'};"
    "var s=document.createElement('script');s.src='/cdn-cgi/challenge-platform/h/g/x.js';document.head.append(s)</script>"
)
MITIGATED = {"cf-mitigated": "challenge"}
CAPTCHA = (
    "<!DOCTYPE html><html><head><title>DDOS-GUARD</title>"
    '<link rel="stylesheet" href="/.well-known/ddos-guard/ddg-captcha-page/index.css"></head><body>by hand</body></html>'
)
CHECK = (
    '<!DOCTYPE html><html><head><title>Security check</title><meta name="robots" content="noindex, nofollow"></head>'
    "<body><button>I am no robot</button></body></html>"
)


@pytest.fixture
def site(net: Smallnet) -> Host:
    return net.host("127.1.0.5", name="site.test")


def clearing(host: Host, path: str, rounds: int, *, code: int = 403, headers: dict[str, str] | None = None) -> None:
    """A challenge that reloads itself, and makes room after so many rounds."""
    answers = iter(
        [status(code, CHALLENGE + "<script>setTimeout(() => location.reload(), 200)</script>", headers=headers or {})]
        * rounds
    )

    def answer(_: Request) -> Step:
        return next(answers, ok(html(CHAPTER), "text/html"))

    host.answer_with(path, answer)


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_challenge_that_clears_by_itself_is_waited_for(tabs: Tabs, site: Host, rounds: int) -> None:
    clearing(site, "/title", rounds, headers=MITIGATED)
    came = tabs.shown(site.url("/title"))
    assert (came.status, came.held) == (200, None)
    assert b'class="chapter"' in came.html
    assert "cf-mitigated" not in came.headers


def test_one_that_is_known_by_its_page_alone_too(tabs: Tabs, site: Host) -> None:
    clearing(site, "/title", 1, code=200)
    assert tabs.shown(site.url("/title")).held is None


def test_a_challenge_in_whose_place_scripts_put_the_page_has_cleared(tabs: Tabs, site: Host) -> None:
    swap = f"<script>setTimeout(() => {{ document.title = 'A title'; document.body.innerHTML = '{CHAPTER}' }}, 300)</script>"
    site.script("/title", status(200, CHALLENGE + swap))
    assert tabs.shown(site.url("/title")).held is None


@pytest.mark.parametrize("code", [200, 403, 429, 503])
def test_a_challenge_that_does_not_clear_in_its_time_holds_us(tabs: Tabs, site: Host, code: int) -> None:
    """CASES D1."""
    site.script("/title", status(code, CHALLENGE, headers=MITIGATED if code != 200 else {}))
    came = tabs.shown(site.url("/title"), times=QUICK)
    assert (came.status, came.held) == (code, "a Cloudflare challenge")
    assert b"_cf_chl_opt" in came.html


def test_a_challenge_that_only_reloads_itself_holds_us_and_asks_no_more_than_ten_times(
    tabs: Tabs, site: Host, net: Smallnet
) -> None:
    clearing(site, "/title", 1_000, headers=MITIGATED)
    came = tabs(site.url("/title"), times=replace(QUICK, settling=5.0))
    match came:
        case Shown(held=held):
            assert held == "a challenge (cf-mitigated: challenge)"
        case _:
            assert isinstance(came, NotShown), came
            assert (came.trouble, came.line_proved) == (Trouble.HOPS, True)
    assert len([visit for visit in net.record.of(site) if visit.path == "/title"]) <= 11


@pytest.mark.parametrize(
    ("code", "headers", "held"),
    [
        (202, {"x-amzn-waf-action": "challenge"}, "a challenge (x-amzn-waf-action: challenge)"),
        (403, {"cf-mitigated": "challenge"}, "a challenge (cf-mitigated: challenge)"),
        (405, {"x-amzn-waf-action": "captcha"}, "a challenge (x-amzn-waf-action: captcha)"),
    ],
)
def test_a_challenge_without_a_page_holds_us_by_its_header(
    tabs: Tabs, site: Host, code: int, headers: dict[str, str], held: str
) -> None:
    """CASES D2."""
    site.script("/title", status(code, b"", headers=headers))
    came = tabs.shown(site.url("/title"), times=QUICK)
    assert (came.status, came.held) == (code, held)


@pytest.mark.parametrize(
    ("page", "held"),
    [
        (CAPTCHA, "a DDoS-Guard captcha"),
        (CHECK, "a security check"),
        ("<!DOCTYPE html><title>Attention Required! | Cloudflare</title>blocked", "a Cloudflare block"),
    ],
)
def test_what_never_clears_by_itself_holds_us_at_once(tabs: Tabs, site: Host, page: str, held: str) -> None:
    """Whoever waited for it would find a page in its place."""
    swap = f"setTimeout(() => {{ document.title = 'A title'; document.body.innerHTML = '{CHAPTER}' }}, 30000)"
    site.script("/title", status(403, f"{page}<script>{swap}</script>"))
    assert tabs.shown(site.url("/title")).held == held


def test_a_redirect_to_a_check_is_known_by_its_path(tabs: Tabs, site: Host) -> None:
    site.script("/title", redirect("/@waf/challenge?return=%2Ftitle", 302))
    site.page("/@waf/challenge?return=%2Ftitle", html("<p>something new"))
    came = tabs.shown(site.url("/title"))
    assert (came.status, came.held) == (200, "a security check")
    assert came.url == site.url("/@waf/challenge?return=%2Ftitle")


def test_a_page_about_challenges_is_a_page(tabs: Tabs, site: Host) -> None:
    site.page(
        "/title",
        html(
            CHAPTER + "<p>Just a moment... a security check, a challenge of DDoS-Guard</p>"
            "<script src=/cdn-cgi/challenge-platform/scripts/jsd/main.js></script>",
            head="<title>Just a moment of peace</title>",
        ),
    )
    assert tabs.shown(site.url("/title")).held is None
