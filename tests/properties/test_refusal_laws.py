"""Laws of refusal windows that no history of reads may break, in whatever order they settle (DESIGN 5.4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lanes.core.refusal import Read, Window, after

NOON = datetime(2031, 5, 4, 12, tzinfo=UTC)
FOUR_HOURS = timedelta(hours=4)


@dataclass(frozen=True)
class Settled:
    """A read, and when its Poll settled."""

    read: Read
    now: datetime


def _settled(sent: int, after: int, kind: str) -> Settled:
    sent_at = NOON + timedelta(seconds=sent)
    return Settled(Read(kind != "good", kind.encode(), sent_at), sent_at + timedelta(seconds=after))


_kinds = st.sampled_from(["good", "one", "two", "three"])
_seconds = st.integers(0, 180) | st.integers(0, 40_000)
_histories = st.lists(
    st.builds(_settled, _seconds, st.integers(0, 400), _kinds), unique_by=lambda each: each.read.sent_at, max_size=14
).map(lambda history: sorted(history, key=lambda each: each.now))
"""Reads in the order in which they settled, each sent at an instant of its own and up to some minutes before it settled."""


@dataclass
class Plain:
    """The text of DESIGN 5.4 taken literally, with everything remembered: slow, and with no cleverness to be wrong."""

    only_one: bool
    opened_at: datetime | None = None
    until: datetime | None = None
    in_a_row: int = 0
    goods: list[datetime] = field(default_factory=list)
    evidence: list[Read] = field(default_factory=list)

    def hear(self, read: Read, now: datetime) -> None:
        if not read.refused:
            self.goods.append(read.sent_at)
            self.evidence = [each for each in self.evidence if each.sent_at >= read.sent_at]
            if self.opened_at is not None and self.opened_at < read.sent_at:
                self.opened_at, self.until, self.in_a_row = None, None, 0
        elif self.until is not None:
            if read.sent_at >= self.until:
                self._open(now)
        elif all(read.sent_at >= sent_at for sent_at in self.goods):
            if any(self.only_one or each.url != read.url for each in self.evidence):
                self._open(now)
            else:
                self.evidence.append(read)

    def _open(self, now: datetime) -> None:
        self.in_a_row += 1
        self.opened_at, self.evidence = now, []
        self.until = now + min(timedelta(minutes=15) * 2 ** (self.in_a_row - 1), FOUR_HOURS)


@given(history=_histories, only_one=st.booleans())
def test_what_is_remembered_is_enough_to_decide_as_if_everything_were(
    history: list[Settled], *, only_one: bool
) -> None:
    window, plain = Window(), Plain(only_one)
    for each in history:
        window = after(window, each.read, each.now, only_one=only_one)
        plain.hear(each.read, each.now)
        assert (window.until, window.refusals, window.opened_at) == (plain.until, plain.in_a_row, plain.opened_at)


@given(history=_histories, only_one=st.booleans())
def test_no_window_opens_where_a_good_read_was_sent_between_the_two_refused_ones(
    history: list[Settled], *, only_one: bool
) -> None:
    window = Window()
    for place, each in enumerate(history):
        before, window = window, after(window, each.read, each.now, only_one=only_one)
        if before.until is not None or window.until is None:
            continue
        reads = [earlier.read for earlier in history[:place]]
        goods = [read.sent_at for read in reads if not read.refused]
        pairs = [
            sorted((read.sent_at, each.read.sent_at))
            for read in reads
            if read.refused and (only_one or read.url != each.read.url)
        ]
        assert any(not any(one < sent_at < other for sent_at in goods) for one, other in pairs)


@given(
    sents=st.lists(st.integers(0, 3_000), min_size=3, max_size=3, unique=True),
    settling=st.permutations([0, 1, 2]),
    only_one=st.booleans(),
)
def test_three_reads_with_the_good_one_in_the_middle_open_nothing_unless_it_settles_last(
    sents: list[int], settling: list[int], *, only_one: bool
) -> None:
    reads = [_settled(sent, 0, kind).read for sent, kind in zip(sorted(sents), ["one", "good", "two"], strict=True)]
    window = Window()
    for place in settling:
        window = after(window, reads[place], NOON + timedelta(hours=1), only_one=only_one)
    assert (window.until is not None) == (settling[-1] == 1)


@given(history=_histories, only_one=st.booleans())
def test_a_refused_read_never_shortens_a_window_and_none_is_longer_than_four_hours(
    history: list[Settled], *, only_one: bool
) -> None:
    window = Window()
    for each in history:
        before, window = window, after(window, each.read, each.now, only_one=only_one)
        if each.read.refused and before.until is not None:
            assert window.until is not None
            assert window.until >= before.until
        assert window.until is None or window.until - each.now <= FOUR_HOURS


@given(history=_histories, only_one=st.booleans())
def test_a_good_read_opens_and_lengthens_nothing_and_ends_only_what_began_before_it_was_sent(
    history: list[Settled], *, only_one: bool
) -> None:
    window = Window()
    for each in history:
        before, window = window, after(window, each.read, each.now, only_one=only_one)
        if not each.read.refused:
            assert window.until in {None, before.until}
            if before.opened_at is not None:
                assert (window.until is None) == (before.opened_at < each.read.sent_at)


@given(history=_histories, only_one=st.booleans(), later=st.integers(0, 3_600))
def test_a_read_heard_twice_changes_nothing(history: list[Settled], later: int, *, only_one: bool) -> None:
    window = Window()
    for each in history:
        window = after(window, each.read, each.now, only_one=only_one)
        assert after(window, each.read, each.now + timedelta(seconds=later), only_one=only_one) == window


@given(history=_histories, only_one=st.booleans())
def test_a_window_and_the_evidence_for_one_are_never_remembered_at_once(
    history: list[Settled], *, only_one: bool
) -> None:
    window = Window()
    for each in history:
        window = after(window, each.read, each.now, only_one=only_one)
        assert (window.url is None) == (window.refused_at is None)
        assert window.until is None or window.refused_at is None
        assert (window.until is None) == (window.since is None) == (window.refusals == 0)
