"""What every store test starts from: the rows of its database, and the store of one Lane on one machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lanes.store.browsing import ServingStore
from lanes.store.polls import PollStore
from lanes.store.pool import Database
from tests.poll_record import PollRecord
from tests.rows import Rows, open_rows


@pytest.fixture
def rows(database_url: str) -> Iterator[Rows]:
    with open_rows(database_url) as rows:
        yield rows


@pytest.fixture
def store(database: Database) -> PollStore:
    store = PollStore(database, "feeds", "here")
    store.enrol()
    return store


@pytest.fixture
def serving(database: Database) -> ServingStore:
    """The sidecar's side: it lives, and Chrome is awake."""
    serving = ServingStore(database)
    serving.begin("Chrome/1")
    serving.beat(awake=True, version="Chrome/1")
    return serving


@pytest.fixture
def record(database: Database) -> PollRecord:
    return PollRecord(database)
