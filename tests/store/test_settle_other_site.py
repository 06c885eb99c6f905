"""A Series stays at its own Site's hosts: at another's, another Lane would claim it with another reader."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from lanes.core.answer import Response
from lanes.store.polls import PollStore
from tests.rows import DAY, Rows, settle, take, trail


@pytest.mark.parametrize("proved", [False, True])
def test_a_move_to_another_sites_host_is_followed_and_never_adopted(rows: Rows, store: PollStore, proved: bool) -> None:
    target = "https://www.host.test/feed" if not proved else "https://comics.test/feed"
    there = rows.host(name="www.host.test" if not proved else "comics.test", site="comics")
    moving = {"moving_to": target, "moving_since": rows.now() - 2 * DAY, "moving_polls": 5} if proved else {}
    series = rows.series(
        url="https://host.test/feed",
        etag='"a"',
        validators_url=target,
        news_from=rows.now(),
        unconditional_at=rows.now(),
        **moving,
    )
    before = rows.the_series(series)
    claim = take(store)
    assert claim is not None
    answer = Response(304, {}, b"", target, (), timedelta(seconds=0.1), permanent=True, conditional=True)
    assert settle(store, claim, answer, on=replace(trail(claim, there), host_id=there))
    after = rows.the_series(series)
    assert (after.url, after.host_id, after.queue_host_id) == (before.url, before.host_id, before.host_id)
    assert after.good_at is not None
