"""robots.txt: what it says to us, and how long that holds (RFC 9309)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.core.answer import Answer, Forbidden, NoResponse, Response, Sent, Trouble
from lanes.core.pace import ASKED_TO_WAIT
from lanes.core.robots import AGAIN, FRESH, LONGEST_DELAY, PATIENCE, Heard, Robots, Said, Silent, after
from lanes.fetch.robots import CUT, allows, crawl_delay, hear, origin_of, text_of

ORIGIN = "https://host.test"
NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
FIELD_CASE = (
    b"\xef\xbb\xbfUser-agent: Lanes\nCrawl-delay: 2.5\n\nUser-agent:\n\n"
    b"User-agent: *\nDisallow: /\n\nUser-agent: lanes\nDisallow: /private\n"
)


def heard(answer: Answer) -> Heard:
    assert isinstance(answer, Response | NoResponse | Forbidden)
    return hear(answer, NOW)


def an_answer(status: int, body: bytes = b"", **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, named, body, f"{ORIGIN}/robots.txt", (), SECOND)


def history(*steps: tuple[timedelta, Heard]) -> Robots:
    """What is remembered after these answers, each so long after the start."""
    robots = None
    for at, what in steps:
        robots = after(robots, ORIGIN, what, NOW + at)
    assert robots is not None
    return robots


def test_a_byte_order_mark_split_groups_and_an_empty_agent_are_read() -> None:
    """CASES B8."""
    text = text_of(FIELD_CASE)
    assert crawl_delay(text) == timedelta(seconds=2.5)
    assert [allows(text, f"{ORIGIN}{path}") for path in ("/", "/feed", "/private/1")] == [True, True, False]


@pytest.mark.parametrize(
    ("group", "ours"),
    [("Lanes", True), ("LANES", True), ("*", True), ("Planes", False), ("Lanesbot", False), ("Other", False)],
)
def test_a_group_speaks_to_us_by_our_product_token_or_to_all(group: str, ours: bool) -> None:
    assert allows(f"User-agent: {group}\nDisallow: /\n", ORIGIN + "/x") is not ours


def test_our_own_group_takes_the_place_of_the_one_for_all() -> None:
    text = "User-agent: *\nDisallow: /\nCrawl-delay: 30\n\nUser-agent: Lanes\nDisallow: /b\n"
    assert (allows(text, ORIGIN + "/a"), allows(text, ORIGIN + "/b"), crawl_delay(text)) == (True, False, None)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/a/b.html", True), ("/a/c.html", False), ("/x?sort=1", False), ("/x.pdf", False), ("/", True)],
)
def test_the_longest_rule_wins_and_wildcards_hold(path: str, allowed: bool) -> None:
    text = "User-agent: *\nDisallow: /a/\nAllow: /a/b\nDisallow: /*?sort=\nDisallow: /*.pdf$\n"
    assert allows(text, ORIGIN + path) is allowed


@pytest.mark.parametrize(
    ("written", "delay"),
    [
        ("2.5", timedelta(seconds=2.5)),
        ("0", timedelta(0)),
        ("10 # please", 10 * SECOND),
        ("3600", LONGEST_DELAY),
        ("86400", LONGEST_DELAY),
        ("1e308", LONGEST_DELAY),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
    ],
)
def test_a_crawl_delay_is_a_number_of_seconds_and_an_hour_at_most(written: str, delay: timedelta | None) -> None:
    assert crawl_delay(f"User-agent: *\nCrawl-delay: {written}\n") == delay


@given(st.binary(max_size=400) | st.text(max_size=400).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_bytes_raise_and_no_delay_is_longer_than_an_hour(body: bytes) -> None:
    text = text_of(b"User-agent: *\nCrawl-delay:" + body)
    assert "\0" not in text
    assert timedelta(0) <= (crawl_delay(text) or timedelta(0)) <= LONGEST_DELAY
    assert allows(text, ORIGIN + "/robots.txt")


def test_what_is_behind_the_cap_counts_for_nothing_not_even_the_rest_of_its_line() -> None:
    start = b"User-agent: *\nDisallow: /a\n"
    long = start + b"#" * (CUT - len(start) - 13) + b"\nDisallow: /b"
    assert len(long) == CUT
    assert [allows(text_of(long), ORIGIN + path) for path in ("/a", "/b", "/c")] == [False, True, True]


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Host.test/feed?x=1", "https://host.test"),
        ("https://host.test:443/", "https://host.test"),
        ("https://host.test:8443/", "https://host.test:8443"),
        ("http://me:secret@host.test/feed", "http://host.test"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("ftp://host.test/", None),
    ],
)
def test_an_origin_is_scheme_host_and_port_and_has_no_secrets(url: str, origin: str | None) -> None:
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (an_answer(200, b"User-agent: *\nCrawl-delay: 3\n"), Said(200, "User-agent: *\nCrawl-delay: 3\n", 3 * SECOND)),
        (an_answer(204), Said(204, "")),
        (an_answer(404, b"User-agent: *\nDisallow: /\n"), Said(404, "")),
        (an_answer(403), Said(403, "")),
        (an_answer(410, retry_after="60"), Said(410, "")),
        (an_answer(429), Silent(429, "429 too many requests", ASKED_TO_WAIT)),
        (an_answer(429, retry_after="600"), Silent(429, "429 too many requests", 600 * SECOND)),
        (an_answer(503, retry_after="600"), Silent(503, "status 503", 600 * SECOND)),
        (an_answer(503), Silent(503, "status 503")),
        (an_answer(500, retry_after="600"), Silent(500, "status 500")),
        (an_answer(304), Silent(304, "status 304")),
        (
            NoResponse(Trouble.TIMEOUT, "host.test: silent for 20 s"),
            Silent(None, "timeout: host.test: silent for 20 s"),
        ),
        (NoResponse(Trouble.FRAMING, "cut short"), Silent(None, "framing: cut short")),
        (NoResponse(Trouble.HOPS, ""), Said(None, "")),
        (NoResponse(Trouble.LOOP, ""), Said(None, "")),
        (NoResponse(Trouble.BAD_URL, ""), Said(None, "")),
        (
            Forbidden(ORIGIN, "10.0.0.1", (Sent("", "host.test", "10.1.1.1", NOW),)),
            Silent(None, "not a public address: 10.0.0.1"),
        ),
    ],
)
def test_what_an_answer_comes_to(answer: Answer, expected: Heard) -> None:
    assert heard(answer) == expected


def test_an_answer_holds_for_a_day() -> None:
    robots = history((timedelta(0), Said(200, "rules", 2 * SECOND)))
    assert (robots.text, robots.crawl_delay, robots.crawl_delay_since, robots.read_at) == (
        "rules",
        2 * SECOND,
        NOW,
        NOW,
    )
    assert robots.is_fresh(NOW + FRESH - SECOND)
    assert not robots.is_fresh(NOW + FRESH)
    assert timedelta(hours=24) == FRESH


def test_silence_keeps_the_last_copy_and_is_asked_again_after_an_hour() -> None:
    robots = history((timedelta(0), Said(200, "rules", 2 * SECOND)), (FRESH, Silent(500, "status 500")))
    assert (robots.text, robots.crawl_delay, robots.read_at) == ("rules", 2 * SECOND, NOW)
    assert (robots.status, robots.unanswered_since) == (500, NOW + FRESH)
    assert robots.again_at == NOW + FRESH + timedelta(hours=1)
    assert timedelta(hours=1) == AGAIN


def test_what_never_answered_has_no_copy() -> None:
    robots = history((timedelta(0), Silent(None, "dns: no such name")))
    assert (robots.text, robots.unanswered_since, robots.again_at) == (None, NOW, NOW + AGAIN)


def test_pages_that_wait_for_it_are_told_why_it_gave_no_answer_the_last_time() -> None:
    silent = history((timedelta(0), Silent(None, "dns: no such name")), (AGAIN, Silent(500, "status 500")))
    assert silent.why_pages_wait() == "robots.txt gave no answer: status 500"
    assert Robots(ORIGIN, NOW, NOW + AGAIN).why_pages_wait() == "robots.txt gave no answer"
    assert history((timedelta(0), Said(404, ""))).why_pages_wait() is None
    assert history((timedelta(0), Said(404, "")), (FRESH, Silent(500, "status 500"))).why_pages_wait() is None


@pytest.mark.parametrize("first", [Said(200, "rules", 2 * SECOND), Silent(500, "status 500")])
def test_after_thirty_days_of_silence_everything_is_allowed(first: Heard) -> None:
    begun = (MINUTE, Silent(None, "dns: no such name"))
    just_before = history((timedelta(0), first), begun, (PATIENCE - SECOND, Silent(None, "dns: no such name")))
    assert just_before.text == (first.text if isinstance(first, Said) else None)
    over = history((timedelta(0), first), begun, (MINUTE + PATIENCE, Silent(None, "dns: no such name")))
    assert (over.text, over.crawl_delay, over.crawl_delay_since) == ("", None, None)
    assert over.again_at == NOW + MINUTE + PATIENCE + AGAIN
    assert timedelta(days=30) == PATIENCE


def test_an_answer_ends_the_silence() -> None:
    robots = history(
        (timedelta(0), Silent(500, "status 500")), (MINUTE, Said(404, "")), (2 * MINUTE, Silent(500, "status 500"))
    )
    assert (robots.text, robots.unanswered_since) == ("", NOW + 2 * MINUTE)
    assert history((timedelta(0), Silent(500, "status 500")), (MINUTE, Said(404, ""))).silence is None


def test_a_delay_has_stood_since_it_was_first_named() -> None:
    """CASES B9."""
    same = history((timedelta(0), Said(200, "a", SECOND)), (MINUTE, Said(200, "b", SECOND)))
    other = history((timedelta(0), Said(200, "a", SECOND)), (MINUTE, Said(200, "b", 2 * SECOND)))
    gone = history((timedelta(0), Said(200, "a", SECOND)), (MINUTE, Said(200, "b")))
    assert [each.crawl_delay_since for each in (same, other, gone)] == [NOW, NOW + MINUTE, None]
    assert gone.crawl_delay is None
