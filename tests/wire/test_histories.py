"""Random histories of Lanes, crashes, an owner and scripted origins, held to the laws after every step.

The origin's own record is what pace is judged by.  `pytest tests/wire/test_histories.py --histories=300 --timeout=0` goes on for longer.
"""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests import owed
from tests.histories import COMICS, FEEDS, HOSTS, MACHINES, NAMES, READERS, NewDatabase, World, a_world, key_of
from tests.moods import MOVED, PATHS, Mood, Robots
from tests.witness import HOUR, Arrival

MINUTE = 60.0
FEED_HOSTS = tuple(host for host in HOSTS if host not in COMICS.hosts)

hosts = st.sampled_from(tuple(HOSTS))
names = st.sampled_from(NAMES)
machines = st.sampled_from(MACHINES)
readers = st.sampled_from(READERS)
places = st.sampled_from((*NAMES, *HOSTS, FEEDS.name, COMICS.name))
sites = st.sampled_from((FEEDS.name, FEEDS.name, FEEDS.name, COMICS.name))
moods = st.sampled_from(Mood)
spans = st.sampled_from((1.0, 2.0, 11.0, 70.0, 95.0, 5 * MINUTE, 16 * MINUTE, 1.1 * HOUR, 5 * HOUR, 25 * HOUR))


class Histories(RuleBasedStateMachine):
    """One world, and whatever happens to it."""

    def __init__(self, new_database: NewDatabase) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.world: World = self.stack.enter_context(a_world(new_database))

    def teardown(self) -> None:
        try:
            self.everybody_is_read_again_once_all_is_well()
            owed.audit_is_clean(self.world.owner)
        finally:
            self.stack.close()

    # Polling

    @initialize(passes=st.integers(0, 3))
    def begin(self, passes: int) -> None:
        for _ in range(passes):
            self._pass("attic")
            self.world.move(10.5)

    @rule(machine=machines)
    def a_pass(self, machine: str) -> None:
        self._pass(machine)

    @rule()
    def two_passes_at_once(self) -> None:
        self._pass(*MACHINES)

    @rule(machine=machines, times=st.integers(1, 5))
    def passes_whenever_something_is_ready(self, machine: str, times: int) -> None:
        for _ in range(times):
            if (ahead := self.world.ahead()) is not None:
                self.world.move(max(ahead, 0.0))
            self._pass(machine)

    @rule(machine=machines, site=sites)
    def a_worker_dies_with_its_claim(self, machine: str, site: str) -> None:
        self.world.crash(machine, site)

    @rule(machine=machines, site=sites)
    def a_worker_is_suspended_with_its_answer(self, machine: str, site: str) -> None:
        before = owed.moment(self.world.owner)
        self.world.suspend(machine, site)
        self._judge(before, [])

    @rule(dies=st.booleans())
    def the_suspended_worker_ends(self, dies: bool) -> None:
        before = owed.moment(self.world.owner)
        self._judge(before, self.world.end_late(dies=dies))

    @rule(machine=machines)
    def a_restart(self, machine: str) -> None:
        self.world.restart(machine)

    # Time

    @rule(span=spans)
    def time_passes(self, span: float) -> None:
        self.world.move(span)

    @rule(machine=machines)
    def the_clock_goes_back(self, machine: str) -> None:
        if not self.world.workers:  # what they bring is from another clock, and not judged
            self.world.set_back(HOUR)
            self._pass(machine)

    # The origins

    @rule(name=names)
    def a_chapter_is_published(self, name: str) -> None:
        self.world.publish(name)

    @rule(host=hosts, path=st.sampled_from((*PATHS, MOVED)), mood=moods)
    def a_mood(self, host: str, path: str, mood: Mood) -> None:
        if path != MOVED or not mood.value.startswith(("301", "302")):
            self.world.set_mood(host, path, mood)

    @rule(host=hosts, mood=moods)
    def a_mood_of_a_host(self, host: str, mood: Mood) -> None:
        for path in PATHS:
            self.world.set_mood(host, path, mood)

    @rule(host=hosts, robots=st.sampled_from(Robots))
    def another_robots_txt(self, host: str, robots: Robots) -> None:
        self.world.origins[host].robots = robots

    @rule(host=hosts)
    def a_host_heals(self, host: str) -> None:
        self.world.origins[host].heal()

    # The owner and the Readers

    @rule(name=names)
    def check_now(self, name: str) -> None:
        self.world.verbs().check_now(key_of(name))

    @rule(place=places)
    def the_owner_closes(self, place: str) -> None:
        self.world.close_(place)

    @rule(place=places)
    def the_owner_reopens(self, place: str) -> None:
        self.world.reopen(place)

    @rule(place=st.sampled_from((*HOSTS, FEEDS.name, COMICS.name)), seconds=st.sampled_from((3.0, 30.0, 600.0)))
    def the_owner_slows(self, place: str, seconds: float) -> None:
        self.world.slow(place, seconds)

    @rule(place=st.sampled_from((*HOSTS, FEEDS.name, COMICS.name)))
    def the_owner_hastens(self, place: str) -> None:
        self.world.hasten(place)

    @rule(reader=readers, name=names)
    def a_bookmark(self, reader: str, name: str) -> None:
        self.world.follow(reader, name)

    @rule(reader=readers, name=names)
    def a_bookmark_is_dropped(self, reader: str, name: str) -> None:
        self.world.verbs(reader).drop_bookmark(key_of(name))

    @rule(name=names)
    def the_owner_retires(self, name: str) -> None:
        self.world.word.retire(key_of(name), "not read any more")

    @rule(name=names)
    def the_owner_revives(self, name: str) -> None:
        self.world.word.revive(key_of(name))

    @rule()
    def upkeep(self) -> None:
        before = owed.moment(self.world.owner)
        self.world.look_after()
        self._judge(before, [])

    # The laws

    def _pass(self, *machines: str) -> None:
        before, seen = owed.moment(self.world.owner), len(self.world.witness.arrivals)
        self.world.poll(*machines)
        self._judge(before, self.world.witness.arrivals[seen:])

    def _judge(self, before: owed.Moment, answered: list[Arrival]) -> None:
        owed.judge(self.world.owner, before, answered)

    def everybody_is_read_again_once_all_is_well(self) -> None:
        world = self.world
        world.heal()
        world.move(31 * HOUR)
        since = world.now() - world.back
        shows = {key_of(name): world.shows(name) for name in NAMES}
        for _ in range(40):
            self._pass(MACHINES[0])
            if not (lacking := owed.nobody_is_forgotten(world.owner, since, shows)):
                return
            world.move(6 * MINUTE)
        rows = world.owner.all("SELECT * FROM lanes.series WHERE key = ANY (%s)", lacking)
        raise AssertionError(f"forgotten: {lacking}: {rows}")


def test_no_history_of_crashes_moods_and_words_breaks_a_law(
    clone_database: NewDatabase, request: pytest.FixtureRequest
) -> None:
    """CASES B14 among many."""
    many = request.config.getoption("--histories")
    run_state_machine_as_test(
        lambda: Histories(clone_database),
        settings=settings(
            max_examples=many,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
