"""Laws of the header parser: nothing raises, and everything stays in its range."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from lanes.core.headers import LONGEST_DELAY, LONGEST_HINT, delay, keep_alive, max_age

NOWS = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))]))
NUMBERS = st.one_of(st.integers().map(str), st.floats().map(str), st.text("0123456789٣-+._eE ,", max_size=30))
DATES = st.from_regex(
    r"\A(Mon|Xxx|Sunday)?,? ?[0-9]{1,4}[ -](Jan|Feb|Foo|13)[ -][0-9]{1,6} [0-9]{1,3}:[0-9]{1,3}(:[0-9]{1,3})? ?([+-][0-9]{1,6}|GMT|EDT|)\Z"
)
VALUES = st.one_of(st.text(), NUMBERS, DATES, st.lists(st.one_of(NUMBERS, DATES), max_size=4).map(", ".join))
CACHE = st.one_of(VALUES, st.lists(NUMBERS.map("max-age={}".format)).map(",".join))
HEADERS = st.fixed_dictionaries(
    {},
    optional={"retry-after": VALUES, "date": VALUES, "expires": VALUES, "cache-control": CACHE, "keep-alive": VALUES},
)


@given(HEADERS, NOWS)
def test_no_header_raises_and_every_delay_is_above_zero_and_at_most_thirty_days(
    headers: dict[str, str], now: datetime
) -> None:
    found = delay(headers, now)
    assert found is None or timedelta(0) < found <= LONGEST_DELAY


@given(HEADERS, NOWS)
def test_every_hint_is_above_zero_and_at_most_a_day(headers: dict[str, str], now: datetime) -> None:
    found = max_age(headers, now)
    assert found is None or timedelta(0) < found <= LONGEST_HINT


@given(HEADERS)
def test_no_keep_alive_raises(headers: dict[str, str]) -> None:
    found = keep_alive(headers)
    assert found is None or timedelta(0) <= found <= LONGEST_DELAY


@given(st.integers(1, 10**12), NOWS)
def test_a_longer_wish_never_gives_a_shorter_wait(seconds: int, now: datetime) -> None:
    shorter, longer = (delay({"retry-after": str(n)}, now) for n in (seconds, seconds + 1))
    assert shorter is not None
    assert longer is not None
    assert shorter <= longer
