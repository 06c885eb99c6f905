"""Validators that lie or never match: found out, marked, shown, and trusted again once they are worth it."""

from __future__ import annotations

from lanes.core.why import Note
from lanes.store.asking import AskStore
from tests.fix_lane import LaneAtWork
from tests.smallnet import Page, Request, Smallnet, Step, not_modified, ok
from tests.wire.days import DAILY, DAY, HOUR, pass_by, told
from tests.wire.documents import chapters, rss


class Liar:
    """A server that says 304 to whatever names a validator, and gives its document to whoever names none."""

    def __init__(self, last: int) -> None:
        self.last, self.tag, self.honest = last, '"x"', False

    def __call__(self, request: Request) -> Step:
        named = request.headers.get("if-none-match")
        if named is not None and (named == self.tag or not self.honest):
            return not_modified()
        return ok(rss(chapters(1, self.last), DAILY), headers={"ETag": self.tag})


def conditional(net: Smallnet) -> list[bool]:
    """Whether each request carried a validator."""
    return ["if-none-match" in visit.headers for visit in net.record.of(path="/feed")]


def shown(lane: LaneAtWork, key: str) -> list[Note]:
    """What `lanes why` says beside its reason."""
    return list(AskStore(lane.database, {"feeds": None}, polling=True).one(key).notes)


def a_liar(net: Smallnet, lane: LaneAtWork) -> tuple[Liar, str]:
    """A Series of such a server, found out."""
    host, liar = net.host("127.1.0.5"), Liar(2)
    host.answer_with("/feed", liar)
    key = lane.follow(host.url("/feed"))
    pass_by(lane, HOUR)
    liar.last = 3
    pass_by(lane, 8 * DAY)
    return liar, key


def test_a_server_that_always_says_304_is_found_out_marked_and_shown(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES C2."""
    _, key = a_liar(net, lane)
    assert lane.announced(key) == ["Chapter 3"]
    assert told(lane) == ["new chapters"]
    row = lane.series(key)
    assert row.distrusted_at is not None
    assert row.distrusted_reason
    assert [row.distrusted_reason in note.words for note in shown(lane, key)] == [True]


def test_what_was_found_out_is_asked_without_validators_from_then_on(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES C2."""
    liar, key = a_liar(net, lane)
    asked = conditional(net)
    assert asked[1:6] == [True] * 5
    liar.last = 4
    pass_by(lane, 2 * DAY)
    assert lane.announced(key) == ["Chapter 3", "Chapter 4"]
    liar.last = 5
    pass_by(lane, 2 * DAY)
    assert lane.announced(key) == ["Chapter 3", "Chapter 4", "Chapter 5"]
    assert conditional(net)[len(asked) :] == [False] * (len(conditional(net)) - len(asked))


def test_a_new_document_under_a_new_tag_is_trusted_again(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES C2."""
    liar, key = a_liar(net, lane)
    liar.honest, liar.last, liar.tag = True, 4, '"y"'
    pass_by(lane, 2 * DAY)
    assert lane.announced(key) == ["Chapter 3", "Chapter 4"]
    assert (lane.series(key).distrusted_at, shown(lane, key)) == (None, [])
    asked = len(conditional(net))
    pass_by(lane, 3 * DAY)
    assert conditional(net)[asked:] == [True] * (len(conditional(net)) - asked)
    assert lane.polls(key)[-1].status == 304


def test_a_document_that_changes_with_its_tag_is_never_suspected(net: Smallnet, lane: LaneAtWork) -> None:
    host, honest = net.host("127.1.0.5"), Liar(2)
    honest.honest = True
    host.answer_with("/feed", honest)
    key = lane.follow(host.url("/feed"))
    for day in range(10):
        pass_by(lane, DAY)
        honest.last, honest.tag = 3 + day, f'"{day}"'
    assert len(lane.announced(key)) >= 8
    assert (lane.series(key).distrusted_at, shown(lane, key)) == (None, [])


def test_a_tag_that_never_matches_is_marked_and_costs_no_news(net: Smallnet, lane: LaneAtWork) -> None:
    """CASES C3."""
    host = net.host("127.1.0.5")

    def serve(last: int) -> None:
        page = Page(rss(chapters(1, last)), "application/rss+xml", headers={"ETag": '"abc-gzip"'})
        host.answer_with("/feed", page)

    serve(2)
    key = lane.follow(host.url("/feed"))
    lane.poll(key)
    lane.poll(key)
    assert lane.outcomes(key) == ["new", "unchanged"]
    assert "never match" in lane.series(key).distrusted_reason
    assert ["never match" in note.words for note in shown(lane, key)] == [True]
    before = lane.series(key).rest
    lane.poll(key)
    assert lane.series(key).rest > before
    serve(3)
    lane.poll(key)
    assert lane.announced(key) == ["Chapter 3"]
