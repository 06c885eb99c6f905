"""What comes of age: Series that are held are never settled, so nobody else would tell their Readers, or give them up.

Owns who is told, or given up, of which trouble.  Refuses to own: the ages (`core.retirement`), and that a trouble began or ended
(`lanes.store.consequences`).  Must never break: each is told once, and whatever still answers lives on.
"""

from __future__ import annotations

from collections.abc import Iterator

from lanes.core import retirement
from lanes.core.notices import Kind
from lanes.core.retirement import Owed
from lanes.store.upkeep import UpkeepStore

KINDS = {"site": Kind.DEAD, "refusal": Kind.REFUSED}


def tell_owner(store: UpkeepStore) -> Iterator[int]:
    """The owner hears of a refusal that does not pass by itself."""
    for trouble in store.troubles():
        if trouble.whose == "refusal" and not trouble.owner_told and retirement.owner_is_told(trouble.age):
            store.tell_owner_of(trouble)
            yield 1


def tell_readers(store: UpkeepStore) -> Iterator[int]:
    """Readers hear of an incident, or a refusal, that keeps their Series silent for days; one Notice for all that they follow there."""
    for trouble in store.troubles():
        if retirement.owed(trouble.age) is not Owed.NOTHING:
            yield store.tell_readers_of(trouble, retirement.TOLD_AFTER, KINDS[trouble.whose])
    yield store.tell_of_refused_alone(retirement.TOLD_AFTER)


def tell_of_ends(store: UpkeepStore) -> Iterator[int]:
    """Who was told of it hears that it is over."""
    for trouble in store.ended():
        yield store.tell_of_end(trouble)
    yield store.tell_of_taken_back()


def judge(store: UpkeepStore) -> Iterator[int]:
    """A Site that fails is judged by the Series that are polled there, whoever was paused, removed or moved away since."""
    for trouble in store.troubles():
        if trouble.whose == "site":
            yield store.judge_by_the_rest(trouble)


def end_deserted(store: UpkeepStore) -> Iterator[int]:
    """Trouble of a place where nothing is polled any more is over, and nothing came back: only the owner, who knows of it, is told."""
    for trouble in store.deserted():
        yield store.end_deserted(trouble)


def end_lost_lines(store: UpkeepStore) -> Iterator[int]:
    """A machine that went away while its line was down does not ask again: what is known of its line is over."""
    for machine in store.lost_machines(retirement.MACHINE_LOST_AFTER):
        yield store.end_us(machine, retirement.MACHINE_LOST_AFTER)


def give_up(store: UpkeepStore) -> Iterator[int]:
    """What has been silent for a month of it retires, its Readers told; the rest of the Site lives on (CASES A11, A16)."""
    for trouble in store.troubles():
        if retirement.owed(trouble.age) is Owed.RETIREMENT:
            while given_up := store.give_up(trouble, retirement.GIVEN_UP_AFTER, retirement.SITE_GONE):
                yield given_up
    while given_up := store.give_up_refused_alone(retirement.GIVEN_UP_AFTER, retirement.SITE_GONE):
        yield given_up
