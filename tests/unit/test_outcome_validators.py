"""What of an answer is kept to be sent back, and what never leaves it: validators, passwords, a page's words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lanes.core.answer import Response
from lanes.core.chapters import NotRecognised
from lanes.core.claim import Validators
from lanes.core.outcome import LONGEST_VALIDATOR, Failed, Read, Unchanged, body_hash
from lanes.errors import BadUrl, SettingsError
from lanes.fetch.dial import Route
from lanes.settings import Settings
from tests.answers import URL, a_claim, a_document, a_response, judged, settled


def kept(response: Response) -> Validators | None:
    """The validators that are kept of a recognised document."""
    meaning = judged(response, a_document()).meaning
    assert isinstance(meaning, Read)
    return meaning.validators


@pytest.mark.parametrize(
    "etag",
    [
        '"a\0b"',
        "\0",
        '"a\x01"',
        '"\x1b[2J"',
        '"\x7f"',
        '"a\r\nX-More: b"',
        '"\u0100"',
        '"\ud800"',
        "",
        '"' + "x" * 20_000,
    ],
)
def test_a_validator_that_cannot_be_stored_and_sent_whole_is_none(etag: str) -> None:
    assert kept(a_response(etag=etag)) is None
    assert kept(a_response(etag=etag, last_modified="yesterday")) == Validators(None, "yesterday", URL)


@pytest.mark.parametrize("etag", ['"a"', 'W/"a"', "unquoted", '"\xe9"', '"a\tb"', "x" * LONGEST_VALIDATOR])
def test_a_validator_that_is_merely_odd_is_kept_verbatim(etag: str) -> None:
    assert kept(a_response(etag=etag)) == Validators(etag, None, URL)


def test_a_validator_has_a_thousand_characters_at_most() -> None:
    assert LONGEST_VALIDATOR == 1_024
    assert kept(a_response(etag="x" * (LONGEST_VALIDATOR + 1))) is None


def test_the_same_bytes_bring_their_new_validators() -> None:
    response = a_response(etag='"b"', last_modified="today")
    claim = a_claim(body_hash=body_hash(response.body), validators=Validators('"a"', None, URL))
    assert judged(response, claim=claim).meaning == Unchanged("the same bytes", Validators('"b"', "today", URL))
    settlement = settled(response, claim=claim)
    assert settlement.validators == Validators('"b"', "today", URL)
    assert not settlement.forget


@pytest.mark.parametrize("status", [400, 404, 412, 431])
def test_a_conditional_question_that_is_refused_is_not_asked_again(status: int) -> None:
    assert settled(replace(a_response(status), conditional=True)).forget
    assert not settled(a_response(status)).forget


def test_a_pages_words_are_no_part_of_the_detail() -> None:
    page = NotRecognised("this is a web page, not a feed", "Dear Jane Doe, your secret is 42")
    meaning = judged(a_response(), page).meaning
    assert isinstance(meaning, Failed)
    assert (meaning.detail, meaning.excerpt) == (page.reason, page.start)
    settlement = settled(a_response(), page)
    assert (settlement.detail, settlement.excerpt) == (page.reason, page.start)


def test_a_slot_is_that_of_the_given_address_else_of_the_known_one() -> None:
    """Two slots were never spent: not that of the known address as well where another was given."""
    both = Route(known="192.0.2.1", given="192.0.2.2")
    assert (both.has_slot("192.0.2.1"), both.has_slot("192.0.2.2")) == (False, True)
    assert Route(known="192.0.2.1").has_slot("192.0.2.1")
    assert not Route(known="192.0.2.1").has_slot("192.0.2.2")
    assert not Route().has_slot("192.0.2.1")


@pytest.mark.parametrize("password", ["pa%ss", "50%", "%zz", "ab%2", "a%%41"])
def test_a_bare_percent_in_the_databases_url_is_refused_by_name_and_without_its_text(password: str) -> None:
    given = {"LANES_CONTACT": "you@example.org", "LANES_DATABASE_URL": f"postgresql://jane:{password}@db.test/lanes"}
    with pytest.raises(SettingsError) as raised:
        Settings.load(given)
    (problem,) = raised.value.problems
    assert problem.startswith("LANES_DATABASE_URL")
    assert "jane" not in problem
    assert password not in problem


def test_an_escaped_percent_in_the_databases_url_is_taken() -> None:
    url = "postgresql://jane:50%25@db.test/lanes"
    assert Settings.load({"LANES_CONTACT": "you@example.org", "LANES_DATABASE_URL": url}).database_url == url


@pytest.mark.parametrize(
    "url",
    [
        "https://jane:secret@host.test/feed",
        "https://jane:sec@ret@host.test/feed",
        "https://jane:sec ret@host.test/feed",
        "https://jane:sec/ret@host.test/feed",
        "https://secret@host.test/feed",
        "ftp://jane:secret@host.test/feed",
        "jane:secret@host.test/feed",
        "feed:https://jane:secret@host.test/feed",
    ],
)
def test_a_url_that_cannot_be_followed_is_shown_without_its_password(url: str) -> None:
    shown = str(BadUrl(url, "why"))
    assert "host.test/feed" in shown
    assert not any(word in shown for word in ("jane", "sec", "ret"))


@pytest.mark.parametrize("url", ["https://host.test/@jane", "https://host.test/?who=me@home", "no URL"])
def test_a_url_without_a_password_is_shown_whole(url: str) -> None:
    assert url in str(BadUrl(url, "why"))
