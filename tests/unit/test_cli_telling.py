"""What a Notice says on one line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from lanes.cli.telling import in_words
from lanes.core.notices import Kind
from lanes.store.asking import Told

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def told(kind: Kind, /, *, key: str | None = "moss", **body: Any) -> Told:
    return Told(1, "owner", kind.value, key, key and "Moss Kingdom", body, NOW, None)


@pytest.mark.parametrize(
    ("notice", "words"),
    [
        (told(Kind.NEW_CHAPTERS, chapters=[1, 2]), "Moss Kingdom: 2 new Chapters"),
        (told(Kind.STOPPED, reason="gone"), "Moss Kingdom is given up: gone"),
        (told(Kind.MOVED, to="moss", merged=False), "Moss Kingdom is followed at a new URL"),
        (told(Kind.MOVED, to="fern", merged=True), "Moss Kingdom goes on as fern"),
        (told(Kind.BACK_AGAIN), "Moss Kingdom is back again"),
        (told(Kind.BACK_AGAIN, key=None, host="a.test", count=3), "a.test (3 Series) is back again"),
        (told(Kind.REFUSED, host="a.test"), "Moss Kingdom has been refused for three days"),
        (told(Kind.DEAD, key=None, site="feeds", count=2), "feeds (2 Series) has failed for three days"),
        (told(Kind.DISALLOWED, reason="robots.txt says no"), "Moss Kingdom may not be asked: robots.txt says no"),
        (
            told(Kind.BROWSER_LOST, key=None, since="2026-01-31T12:00:00Z"),
            "the browser was lost: the Series of browser Sites wait, and nothing is charged to them",
        ),
        (
            told(Kind.INCIDENT, key=None, whose="site", host="a.test", kind="404", spared=4),
            "a.test fails all its Series alike: 404",
        ),
        (
            told(Kind.INCIDENT_OVER, key=None, whose="site", host="a.test", spared=4),
            "a.test: its Series answer again (4 Series spared)",
        ),
        (
            told(Kind.INCIDENT_OVER, key=None, whose="site", host="a.test", deserted=True),
            "a.test: nothing is polled there any more",
        ),
        (
            told(Kind.INCIDENT, key=None, whose="us", machine="attic", spared=1),
            "our own line is down on attic",
        ),
        (told(Kind.INCIDENT_OVER, key=None, whose="us", machine="attic"), "our own line works again on attic"),
        (told(Kind.REFUSED_FOR_AN_HOUR, key=None, host="a.test"), "a.test has refused us for an hour"),
        (told(Kind.REFUSAL_OVER, key=None, site="comics"), "comics: it refuses us no longer"),
    ],
)
def test_each_kind_of_notice_is_told_in_words(notice: Told, words: str) -> None:
    assert in_words(notice) == words


def test_what_a_site_wrote_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in in_words(told(Kind.STOPPED, reason="\x1b[2J"))


def test_a_long_list_is_counted_beyond_its_first_five() -> None:
    assert in_words(told(Kind.INCIDENT, series=list(range(8)))) == "series 0, 1, 2, 3, 4 and 3 more"
