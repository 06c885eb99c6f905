"""What a page says of itself can be written down, whatever it says (DESIGN 7)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browser_sidecar.storable import HEADERS, LONGEST_VALUE, storable
from lanes.core.answer import Trouble
from lanes.core.pages import NotShown, Opened, Shown
from lanes.core.urls import LONGEST_URL

anything = st.text(st.characters(exclude_categories=()))
"""Halves of characters and NUL included."""


def texts(opened: Opened) -> list[str]:
    match opened:
        case Shown(headers=headers, url=url, held=held):
            return [*headers, *headers.values(), url, held or ""]
        case NotShown(detail=detail, forbidden=forbidden):
            return [detail, forbidden or ""]


@given(
    st.builds(Shown, st.integers(), st.dictionaries(anything, anything), anything, st.binary(), st.none() | anything)
    | st.builds(NotShown, st.sampled_from(Trouble), anything, st.none() | anything, st.booleans())
)
def test_whatever_a_page_came_to_is_nothing_that_postgres_refuses(opened: Opened) -> None:
    came = storable(opened)
    for text in texts(came):
        assert "\0" not in text
        text.encode()  # raises where a half of a character is left
    if isinstance(came, Shown):
        assert 100 <= came.status <= 599
        assert "\\u0000" not in json.dumps(dict(came.headers))


def test_what_is_in_order_stays_as_it_is() -> None:
    for opened in (
        Shown(200, {"content-type": "text/html; charset=utf-8", "x-a": "é"}, "http://a.test/é", b"\x00\xff", "a check"),
        NotShown(Trouble.CONNECT, "10.0.0.1 may not be asked", "10.0.0.1", line_proved=True),
    ):
        assert storable(opened) == opened


@pytest.mark.parametrize("status", [-5, 0, 99, 600, 40_000, 99_999, 10**30])
def test_a_status_that_is_none_is_broken_framing(status: int) -> None:
    came = storable(Shown(status, {}, "http://a.test/", b""))
    assert isinstance(came, NotShown)
    assert (came.trouble, came.line_proved) == (Trouble.FRAMING, True)


def test_headers_have_a_bound_in_number_and_length() -> None:
    came = storable(Shown(200, {f"x-{n}": "v" * 20_000 for n in range(1_000)}, "http://a.test/", b""))
    assert isinstance(came, Shown)
    assert len(came.headers) == HEADERS
    assert {len(value) for value in came.headers.values()} == {LONGEST_VALUE}


def test_a_url_that_is_too_long_to_be_asked_is_none() -> None:
    came = storable(Shown(200, {}, "http://a.test/" + "x" * LONGEST_URL, b""))
    assert isinstance(came, NotShown)
    assert came.trouble is Trouble.BAD_URL
