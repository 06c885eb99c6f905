"""From the environment to an open store.

Owns that a command meets its database ready or not at all, and that one KEY that is not there spoils none of the others.  Refuses to
own: what is asked there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from lanes.cli.parser import DONE, UNKNOWN
from lanes.cli.spelling import url_of
from lanes.errors import BadUrl, DatabaseAway, UnknownSeries
from lanes.settings import Settings
from lanes.sites import sites
from lanes.store import schema
from lanes.store.asking import AskStore
from lanes.store.following import FollowStore
from lanes.store.owning import OwnStore
from lanes.store.pool import Database

T = TypeVar("T")


class NotReady(DatabaseAway):
    """Postgres answers, but has not been brought up to what this program needs."""

    def __init__(self, lack: str) -> None:
        Exception.__init__(self, f"The database is not ready: {lack}. `lanes migrate` brings it up to date.")


@dataclass(frozen=True, slots=True)
class Store:
    """What a command may ask and say."""

    settings: Settings
    database: Database
    asking: AskStore
    following: FollowStore
    owning: OwnStore


@contextmanager
def open_store() -> Iterator[Store]:
    """The store of this environment's settings.  Raises SettingsError, DatabaseAway, NotReady."""
    settings = Settings.load(os.environ)
    lack = schema.missing(settings.database_url)
    if lack is not None:
        raise NotReady(lack)
    database = Database(settings.database_url, largest=1, application="lanes")
    rests = {site.name: None if site.many_hosts else site.rest for site in sites()}
    try:
        asking = AskStore(database, rests, polling=settings.poll_enabled)
        yield Store(settings, database, asking, FollowStore(database), OwnStore(database))
    finally:
        database.close()


def word(store: Store, given: str) -> str:
    """A KEY as typed; a URL, however it is spelled, as that under which its Series is followed.  Raises BadUrl."""
    return url_of(store.following, given) if "://" in given else text(given)


def text(given: str) -> str:
    """An argument as Postgres can take it: bytes that the terminal's encoding has not become question marks."""
    return given.encode("utf-8", "replace").decode()


def each_key(
    store: Store, command: str, keys: Sequence[str], act: Callable[[str], T]
) -> tuple[list[T], list[dict[str, str]], int]:
    """Does it for each KEY, whatever becomes of the others: what came of it, the KEYs that were not there with why (told on standard
    error too), and the exit code.  Raises UnknownSeries, BadUrl where the only one is not there."""
    done: list[T] = []
    missed: list[dict[str, str]] = []
    for key in keys:
        try:
            done.append(act(word(store, key)))
        except (UnknownSeries, BadUrl) as error:
            if len(keys) == 1:
                raise
            sys.stderr.write(f"lanes {command}: {error}\n")
            missed.append({"error": str(error)})
    return done, missed, UNKNOWN if missed else DONE
