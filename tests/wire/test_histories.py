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
from tests.moods import LEADS_ON, MOVED, PATHS, Mood, Robots
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

    @rule(at=st.sampled_from((MACHINES[:1], MACHINES[1:], MACHINES)))
    def a_pass(self, at: tuple[str, ...]) -> None:
        """On one machine, or on both at once."""
        self._pass(*at)

    @rule(machine=machines, times=st.integers(1, 6))
    def passes_whenever_something_is_ready(self, machine: str, times: int) -> None:
        self._polls_at(None, machine, times)

    @rule(machine=machines, site=sites)
    def a_worker_dies_with_its_claim(self, machine: str, site: str) -> None:
        self._wait_until_ready()
        self.world.crash(machine, site)

    @rule(machine=machines, site=sites, mood=moods, span=spans, others=st.integers(0, 2), ends=st.booleans())
    def a_worker_is_suspended_with_its_answer(
        self, machine: str, site: str, mood: Mood, span: float, others: int, ends: bool
    ) -> None:
        """Time passes, a Lane polls there or another worker is suspended as well; and then it goes on, or not yet."""
        self._wait_until_ready()
        host = self._suspend(machine, site, mood)
        self.world.move(span)
        if others == 1:
            self._suspend(machine, site, Mood.WELL)
        elif others == 2:
            self._polls_at(host, machine, 1)
        if ends:
            self.the_suspended_worker_ends(dies=False)
            self._polls_at(host, machine, 2)

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

    @rule(host=hosts, paths=st.sampled_from((PATHS, PATHS[:1], PATHS[1:])), mood=moods, passes=st.integers(0, 4))
    def a_mood(self, host: str, paths: tuple[str, ...], mood: Mood, passes: int) -> None:
        for path in paths:
            self.world.set_mood(host, path, mood)
        self._polls_at(host, MACHINES[0], passes)

    @rule(host=hosts, mood=st.sampled_from([mood for mood in Mood if mood not in LEADS_ON]))
    def a_mood_of_what_redirects_lead_to(self, host: str, mood: Mood) -> None:
        self.world.set_mood(host, MOVED, mood)

    @rule(host=hosts, robots=st.sampled_from(Robots))
    def another_robots_txt(self, host: str, robots: Robots) -> None:
        self.world.origins[host].robots = robots

    @rule(host=hosts)
    def a_host_heals(self, host: str) -> None:
        self.world.origins[host].heal()

    # The owner and the Readers

    @rule(asked=st.sets(names, min_size=1, max_size=4))
    def check_now(self, asked: set[str]) -> None:
        for name in sorted(asked):
            self.world.verbs().check_now(key_of(name))

    @rule(place=places, closes=st.booleans())
    def the_owner_closes_or_reopens(self, place: str, closes: bool) -> None:
        (self.world.close_ if closes else self.world.reopen)(place)

    @rule(place=st.sampled_from((*HOSTS, FEEDS.name, COMICS.name)), seconds=st.sampled_from((0.0, 3.0, 30.0, 600.0)))
    def the_owner_slows_or_hastens(self, place: str, seconds: float) -> None:
        if seconds:
            self.world.slow(place, seconds)
        else:
            self.world.hasten(place)

    @rule(reader=readers, name=names, holds=st.booleans())
    def a_bookmark_is_made_or_dropped(self, reader: str, name: str, holds: bool) -> None:
        if holds:
            self.world.follow(reader, name)
        else:
            self.world.verbs(reader).drop_bookmark(key_of(name))

    @rule(name=names, lives=st.booleans())
    def the_owner_revives_or_retires(self, name: str, lives: bool) -> None:
        if lives:
            self.world.word.revive(key_of(name))
        else:
            self.world.word.retire(key_of(name), "not read any more")

    @rule()
    def upkeep(self) -> None:
        before = owed.moment(self.world.owner)
        self.world.look_after()
        self._judge(before, [])

    # The laws

    def _wait_until_ready(self, host: str | None = None) -> None:
        if (ahead := self.world.ahead(host)) is not None:
            self.world.move(max(ahead, 0.0))

    def _polls_at(self, host: str | None, machine: str, times: int) -> None:
        """As soon as the program itself would, again and again."""
        for _ in range(times):
            self._wait_until_ready(host)
            self._pass(machine)

    def _suspend(self, machine: str, site: str, mood: Mood) -> str | None:
        before = owed.moment(self.world.owner)
        host = self.world.suspend(machine, site, mood)
        self._judge(before, [])
        return host

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
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
