"""Pages that refuse us, or ask us to log in, while their status says that all is well (DESIGN 4.3; CASES D1 to D6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lanes.core import challenge
from lanes.core.chapters import NotRecognised, Reading
from lanes.core.claim import Validators
from lanes.core.outcome import AskedToWait, Failed, Meaning, Read, Refused, Unchanged, body_hash
from tests.answers import URL, a_claim, a_document, a_response, an_item, judged, settled

HTML = "text/html; charset=utf-8"
UNKNOWN = NotRecognised("a web page", "<!doctype html>")


def page(title: str, body: str = "", head: str = "") -> bytes:
    return f"<!DOCTYPE html>\n<html><head><title>{title}</title>{head}</head>\n<body>{body}</body></html>".encode()


CLOUDFLARE = page(
    "Just a moment...",
    "<noscript>JavaScript and cookies, please</noscript><script>window._cf_chl_opt={cType:'managed'};"
    "var s=document.createElement('script');s.src='/cdn-cgi/challenge-platform/h/g/orchestrate/chl_page/v1?ray=0';</script>",
)
CLOUDFLARE_BLOCK = page(
    "Attention Required! | Cloudflare",
    '<div id="cf-error-details"><h1 data-translate="block_headline">Sorry, you have been blocked</h1></div>',
)
DDOS_GUARD = page(
    "DDoS-Guard",
    '<a id="link-ddg" href="https://guard.test/">guarded</a>',
    '<link rel="stylesheet" href="/.well-known/ddos-guard/js-challenge/index.css">',
)
DDOS_GUARD_CAPTCHA = page(
    "DDOS-GUARD",
    "<p>somebody has to look</p>",
    '<link rel="stylesheet" href="/.well-known/ddos-guard/ddg-captcha-page/index.css">',
)
SECURITY_CHECK = page(
    "Security check", "<h1>Verify that you are human</h1>", '<meta name="robots" content="noindex, nofollow">'
)
BLOCKED = page("Blocked", "<main><p>This was blocked by network security. Sorry.</p></main>")

CONTENT = page(
    "Chapter 7: Just a Moment of Peace",
    '"Just a moment...", she said, "it is a challenge, a security check of your browser." Attention required!'
    "<!-- DDOS-GUARD serves these pictures -->"
    '<script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script><script>window.__CF$cv$params={r:"0"};</script>',
)
LOG_IN = page(
    "Log in - Reader",
    '<form action="/account/login" method="post"><input type="email" name="a"><input name="b" type="password"></form>',
)
MAINTENANCE = page("Down for maintenance", "<h1>Back soon</h1>")

REFUSING = {
    "challenge": CLOUDFLARE,
    "block": CLOUDFLARE_BLOCK,
    "guard": DDOS_GUARD,
    "guard's captcha": DDOS_GUARD_CAPTCHA,
    "security check": SECURITY_CHECK,
    "blocked": BLOCKED,
}
ORDINARY = {"content": CONTENT, "log-in": LOG_IN, "maintenance": MAINTENANCE}

refusing = pytest.mark.parametrize("body", REFUSING.values(), ids=REFUSING)
ordinary = pytest.mark.parametrize("body", ORDINARY.values(), ids=ORDINARY)


def meaning(body: bytes, status: int = 200, reading: Reading = UNKNOWN, **headers: str) -> Meaning:
    return judged(a_response(status, body, **({"content_type": HTML} | headers)), reading).meaning


# Pages


@refusing
@pytest.mark.parametrize("status", [200, 202, 203, 400, 404, 410, 429, 500, 503, 520])
def test_a_page_that_refuses_us_is_a_refusal_whatever_its_status(body: bytes, status: int) -> None:
    """CASES D1"""
    assert isinstance(meaning(body, status), Refused)


@refusing
def test_it_is_a_refusal_also_where_it_is_not_called_html(body: bytes) -> None:
    for content_type in ("", "application/rss+xml", "application/json"):
        assert isinstance(meaning(body, content_type=content_type), Refused)
    assert isinstance(meaning(b"\n\n  " + body, content_type=""), Refused)
    assert isinstance(meaning(body.replace(b"<!DOCTYPE html>\n", b""), content_type=""), Refused)


@ordinary
def test_an_ordinary_page_is_not_recognised_and_no_refusal(body: bytes) -> None:
    assert isinstance(meaning(body), Failed)
    assert challenge.by_page(body, HTML) is None


@ordinary
def test_an_ordinary_page_leaves_a_status_its_meaning(body: bytes) -> None:
    assert meaning(body, 404) == Failed("404 from the server", "404")
    assert isinstance(meaning(body, 429), AskedToWait)


@pytest.mark.parametrize(
    "body",
    [
        page("Just a moment..."),
        page("Chapter 1", "_cf_chl_opt"),
        page("Not just a moment", "_cf_chl_opt"),
        page("DDoS-Guard"),
        page("Chapter 1: DDoS-Guard", "/.well-known/ddos-guard/"),
        page("DDoS-Guard explained", "/.well-known/ddos-guard/"),
        page("Blocked"),
        page("Blocked drains", "Request blocked by network security"),
        page("Chapter 9", "Attention Required! | Cloudflare"),
        page("Attention required!"),
        page("Security check", "Verify that you are human"),
        page("Security check", "noindex", '<meta name="robots" content="index">'),
        page("Chapter 5: Security check", "", '<meta name="robots" content="noindex">'),
        page("Security checks explained", "", '<meta name="robots" content="noindex">'),
        b"<!doctype html><h1>Just a moment...</h1><script>_cf_chl_opt</script>",
    ],
)
def test_a_title_without_its_mark_or_a_mark_without_its_title_proves_nothing(body: bytes) -> None:
    assert challenge.by_page(body, HTML) is None


@pytest.mark.parametrize(
    "body",
    [
        page("Just a moment...", "_cf_chl_opt"),
        page("Just a moment...", '<script src="/cdn-cgi/challenge-platform/h/b/x">'),
        page("\n  JUST  A\n MOMENT... ", "_cf_chl_opt"),
        page("Just a moment...", "_cf_chl_opt").replace(b"<title>", b'<TITLE lang="en">'),
        page("DDoS-Guard", "/.WELL-KNOWN/ddos-guard/"),
        page("DDoS-Guard", '<a id="link-ddg">'),
        page("Attention Required! | Cloudflare"),
        page("Security check", "", '<meta name="robots" content="noindex">'),
        page("Security check", "", "<META content='noindex' name=robots>"),
    ],
)
def test_a_title_with_one_of_its_marks_is_enough(body: bytes) -> None:
    assert challenge.by_page(body, HTML) is not None


def test_what_refused_us_is_said_in_words() -> None:
    told = {name: challenge.by_page(body, HTML) for name, body in REFUSING.items()}
    assert told == {
        "challenge": "a Cloudflare challenge",
        "block": "a Cloudflare block",
        "guard": "a DDoS-Guard challenge",
        "guard's captcha": "a DDoS-Guard captcha",
        "security check": "a security check",
        "blocked": "a block page",
    }


def test_of_what_refuses_us_only_challenges_that_need_no_hand_clear_by_themselves() -> None:
    signs = {name: challenge.sign_of(body, HTML) for name, body in REFUSING.items()}
    assert {name for name, sign in signs.items() if sign is not None and sign.clears} == {"challenge", "guard"}


def test_a_page_that_was_shown_at_the_path_of_a_check_is_one_whatever_it_says() -> None:
    at = "https://host.test/@waf/challenge?return=%2Ftitle%2F1"
    assert challenge.by_page(MAINTENANCE, HTML, at) == "a security check"
    for elsewhere in ("https://host.test/title/1?from=/@waf/", "https://host.test/waf/", ""):
        assert challenge.by_page(MAINTENANCE, HTML, elsewhere) is None


def test_only_the_beginning_of_a_page_is_looked_at() -> None:
    """A page of megabytes costs no more than a short one."""
    ends_inside = 65_536 - len(page("Just a moment...")) + len(b"</body></html>") - len(b"_cf_chl_opt")
    assert challenge.by_page(page("Just a moment...", " " * ends_inside + "_cf_chl_opt"), HTML) is not None
    assert challenge.by_page(page("Just a moment...", " " * (ends_inside + 1) + "_cf_chl_opt"), HTML) is None


def test_a_page_is_known_by_its_content_type_alone() -> None:
    body = CLOUDFLARE.replace(b"<!DOCTYPE html>\n<html>", b"")
    assert challenge.by_page(body, "application/xhtml+xml") is not None
    assert challenge.by_page(body, "TEXT/HTML") is not None
    assert challenge.by_page(body, None) is None


def test_bytes_that_are_no_page_are_no_challenge() -> None:
    text = CLOUDFLARE.replace(b"<!DOCTYPE html>\n<html>", b"<rss>")
    assert challenge.by_page(text, "application/rss+xml") is None
    assert challenge.by_page(text, None) is None
    declaration = len(b"<!doctype html")
    assert challenge.by_page(b" " * (1024 - declaration) + CLOUDFLARE, "text/plain") is not None
    assert challenge.by_page(b" " * (1025 - declaration) + CLOUDFLARE, "text/plain") is None
    assert challenge.by_page(b"\xff\xfe\x00", HTML) is None


def test_a_real_feed_about_captchas_with_a_log_in_form_in_it_is_read() -> None:
    """CASES D3: a recognised document is never asked about its body."""
    for body in (*REFUSING.values(), *ORDINARY.values()):
        assert isinstance(meaning(body, reading=a_document(an_item("1"))), Read)


def test_bytes_that_were_a_document_last_time_are_still_one() -> None:
    claim = a_claim(body_hash=body_hash(CLOUDFLARE))
    for status in (200, 203):
        answer = a_response(status, CLOUDFLARE, content_type=HTML)
        assert judged(answer, None, claim).meaning == Unchanged("the same bytes")


def test_a_304_is_unchanged_whatever_comes_with_it() -> None:
    answer = replace(a_response(304, CLOUDFLARE, content_type=HTML), conditional=True)
    assert judged(answer).meaning == Unchanged("304")


@pytest.mark.parametrize("status", [303, 305, 204])
def test_no_other_status_makes_a_challenge_of_the_same_bytes_a_document(status: int) -> None:
    claim = a_claim(body_hash=body_hash(CLOUDFLARE))
    assert isinstance(judged(a_response(status, CLOUDFLARE, content_type=HTML), None, claim).meaning, Refused)


# Headers


@pytest.mark.parametrize("status", [200, 202, 304, 403, 404, 405, 429, 503])
@pytest.mark.parametrize(
    "headers",
    [
        {"cf_mitigated": "challenge"},
        {"cf_mitigated": " Challenge "},
        {"x_amzn_waf_action": "challenge"},
        {"x_amzn_waf_action": "captcha"},
    ],
)
def test_a_header_that_says_challenge_is_a_refusal_whatever_the_status(status: int, headers: dict[str, str]) -> None:
    """CASES D2"""
    assert isinstance(judged(a_response(status, b"", **headers)).meaning, Refused)


def test_a_header_that_says_challenge_outweighs_a_document() -> None:
    assert isinstance(meaning(b"<rss/>", reading=a_document(), cf_mitigated="challenge"), Refused)


@pytest.mark.parametrize(
    "headers", [{"cf-mitigated": "none"}, {"x-amzn-waf-action": "allow"}, {"cf-mitigated": ""}, {"server": "challenge"}]
)
def test_any_other_word_there_says_nothing(headers: dict[str, str]) -> None:
    assert challenge.by_header(headers) is None


def test_a_challenge_by_header_is_named() -> None:
    said = challenge.by_header({"x-amzn-waf-action": " Captcha "})
    assert said == "a challenge (x-amzn-waf-action: captcha)"


def test_a_challenge_is_no_failure_keeps_its_wait_and_says_nothing_good_about_its_host() -> None:
    settlement = settled(a_response(429, CLOUDFLARE, content_type=HTML, retry_after="7200"), None, a_claim(failures=2))
    assert (settlement.failures, settlement.refusals) == (2, 1)
    assert settlement.series_wait is not None
    assert (settlement.series_wait.until - settlement.next_check_at).total_seconds() > 6_000
    assert settlement.host_wait is None


# Log-in pages


def landed(url: str, body: bytes = MAINTENANCE, asked: str = URL) -> Meaning:
    answer = replace(a_response(200, body, content_type=HTML), url=url)
    return judged(answer, UNKNOWN, a_claim(url=asked)).meaning


def wants_log_in(found: Meaning) -> bool:
    return isinstance(found, Failed) and (found.detail, found.kind) == ("log-in required", "log-in")


def test_a_redirect_to_a_log_in_page_is_a_failure_and_its_url_stays() -> None:
    """CASES D5"""
    answer = replace(a_response(200, MAINTENANCE, content_type=HTML), url="https://host.test/login?next=%2Ffeed")
    settlement = settled(answer, UNKNOWN, a_claim(validators=Validators('"a"', None, URL)))
    assert (settlement.detail, settlement.kind, settlement.failures) == ("log-in required", "log-in", 1)
    assert settlement.url is None
    assert settlement.forget
    assert settlement.excerpt == UNKNOWN.start


@pytest.mark.parametrize(
    "path", ["/login", "/login/", "/account/login", "/users/Sign-In", "/signin?next=/", "/wp-login.php", "/log-in/x"]
)
def test_these_paths_are_log_in_pages(path: str) -> None:
    assert wants_log_in(landed(f"https://host.test{path}"))


@pytest.mark.parametrize("path", ["/", "/all?next=/login", "/login-of-the-dead", "/blogin/1", "/feed#/login"])
def test_these_paths_are_not(path: str) -> None:
    assert not wants_log_in(landed(f"https://host.test{path}"))


def test_a_series_whose_own_path_is_called_login_was_led_nowhere() -> None:
    url = "https://host.test/login/feed"
    assert not wants_log_in(landed(url, asked=url))


@pytest.mark.parametrize(
    "field", ['<input type="password">', "<INPUT name=p TYPE = 'password'>", "<input type=password>"]
)
def test_a_page_with_a_password_field_asks_to_log_in(field: str) -> None:
    assert wants_log_in(landed(URL, page("Members", f"<form>{field}</form>")))


@pytest.mark.parametrize("text", ["password", '<input type="text" name="password">', '<a type="password">'])
def test_a_page_that_only_speaks_of_passwords_does_not(text: str) -> None:
    assert not wants_log_in(landed(URL, page("Members", text)))


def test_what_is_no_page_asks_nobody_to_log_in() -> None:
    answer = replace(a_response(200, b'{"a": 1}', content_type="application/json"), url="https://host.test/login")
    assert not wants_log_in(judged(answer, UNKNOWN).meaning)


def test_a_log_in_page_behind_a_refusing_status_is_a_refusal() -> None:
    for status in (401, 403):
        assert isinstance(meaning(LOG_IN, status), Refused)


def test_html_where_a_document_was_expected_is_a_failure_that_keeps_its_first_bytes_for_the_owner() -> None:
    """CASES D6"""
    settlement = settled(
        a_response(200, MAINTENANCE, content_type=HTML), NotRecognised("not JSON", "<html><head><title>Down")
    )
    assert (settlement.kind, settlement.failures) == ("not recognised", 1)
    assert settlement.excerpt == "<html><head><title>Down"
    assert settlement.detail == "not JSON"
