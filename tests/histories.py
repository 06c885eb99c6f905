"""A small world with a history: two machines that poll, workers that die or come late, an owner, a clock, and origins with moods.

Owns the driving, and the telling of each request to the witness in the world's own time.  Refuses to own: the laws (`tests.witness` for
pace, `tests.owed` for rows) and chance (the state machine).  Must never break: the clock moves only where every request is told already.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from urllib.parse import urlsplit
from uuid import UUID

from lanes.core.claim import LEASE, Claim
from lanes.core.schedule import INITIAL
from lanes.poll import Poller
from lanes.sites import FEEDS, Site
from lanes.store.following import FollowStore, Wanted
from lanes.store.owning import OwnStore
from lanes.store.polls import AskAgain, Claimed, PollStore
from lanes.store.upkeep import UpkeepStore
from lanes.upkeep import ageing
from tests.fix_lane import LaneAtWork, Owner
from tests.late_workers import QUICK, LateHttp, Worker
from tests.moods import FORBIDDEN, PATHS, Mood, Origin
from tests.smallnet import Smallnet, Visit
from tests.wire.comics import comics
from tests.witness import Arrival, Witness

NEAR = 0.9
"""Seconds between a request's instant in the poll record and its arrival: less than from one to the next at a host."""
COMICS = comics("comics.test", gap=10)
SITES = {site.name: site for site in (FEEDS, COMICS)}
MACHINES = ("attic", "cellar")
HOSTS = {
    "a.test": "127.1.0.11",
    "b.test": "127.1.0.11",
    "c.test": "127.1.0.12",
    "d.test": "127.1.0.13",
    "comics.test": "127.1.0.20",
}
"""Two of them share an address."""
NAMES = tuple(f"{host}{path}" for host in HOSTS for path in PATHS)
READERS = ("owner", "ada")


NewDatabase = Callable[[], AbstractContextManager[str]]


def key_of(name: str) -> str:
    """The key of a Series that is called by its first host and path here."""
    return name.replace(".test/", "-")


def site_of(host: str) -> Site:
    return COMICS if host in COMICS.hosts else FEEDS


@dataclass
class World:
    """All of it.  `offset` is how far lanes.now() is ahead of the machine's clock, `back` all that it ever went back; both in seconds."""

    net: Smallnet
    url: str
    origins: dict[str, Origin]
    witness: Witness
    owner: Owner
    lanes: dict[str, list[LaneAtWork]] = field(default_factory=dict)
    workers: list[Worker] = field(default_factory=list)
    claimed: list[UUID] = field(default_factory=list)
    """The leases of all workers that are no Lane."""
    offset: float = 0.0
    back: float = 0.0
    _seen: int = 0
    _answered: dict[str, int] = field(default_factory=dict)

    # Time

    def now(self) -> float:
        """The world's own time, which never goes back."""
        return time.time() + self.offset + self.back

    def told(self, instant: datetime) -> float:
        """An instant of lanes.now() in the world's own time."""
        return instant.timestamp() + self.back

    def move(self, seconds: float) -> None:
        """Time passes: every Lane would have noted it within the minute."""
        self.note_clock()
        self._shift(seconds)
        self.offset += seconds
        self.note_clock()

    def set_back(self, seconds: float) -> None:
        """Somebody sets the clock back, with no Poll in hand."""
        self.note_clock()
        self._shift(-seconds)
        self.offset -= seconds
        self.back += seconds

    def _shift(self, seconds: float) -> None:
        self.owner.tell("UPDATE lanes.clock SET test_offset = test_offset + %s", timedelta(seconds=seconds))

    def note_clock(self) -> None:
        self.store("attic", FEEDS).keep_house()

    def ahead(self, host: str | None = None) -> float | None:
        """Seconds until something may be claimed at a host, or (None) anywhere; None: not until something changes."""
        ahead: float | None = self.owner.one(
            "SELECT extract(epoch FROM min(greatest(h.ready_at, l.next_at, l.refused_until)) - lanes.now())::float8 AS ahead "
            "FROM lanes.hosts h JOIN lanes.lanes l USING (site) WHERE h.ready_at < 'infinity' "
            "AND CASE WHEN %s::text IS NULL THEN h.ready_at > lanes.now() ELSE h.name = %s END",
            host, host,
        ).ahead  # fmt: skip
        return ahead

    # Polling

    def store(self, machine: str, site: Site) -> PollStore:
        return PollStore(self.owner.database, site.name, machine, many_hosts=site.many_hosts)

    def poll(self, *machines: str) -> None:
        """A Pass of every Lane of these machines, all at the same time."""
        passes = [threading.Thread(target=lane.run_once) for machine in machines for lane in self.lanes[machine]]
        for each in passes:
            each.start()
        for each in passes:
            each.join(60)
            assert not each.is_alive(), "a Pass did not end"
        self.witness.see(self.look())
        lost = self.owner.all(
            "SELECT key FROM lanes.series WHERE lease_token IS NOT NULL AND lease_token <> ALL (%s)", self.claimed
        )
        assert not lost, f"a Lane has forgotten a Poll in hand: {lost}"

    def restart(self, machine: str) -> None:
        """Its Lanes end, and others begin on the same rows."""
        for lane in self.lanes[machine]:
            lane.close()
        self.start(machine)

    def start(self, machine: str) -> None:
        sites = (FEEDS, COMICS) if machine == MACHINES[0] else (FEEDS,)
        self.lanes[machine] = [
            LaneAtWork(self.net, self.url, machine, QUICK, site=site, slots=min(site.slots, 4)) for site in sites
        ]

    def claim(self, machine: str, site: Site) -> tuple[Claim, float] | None:
        """A Poll in the hands of a worker that is no Lane of ours, and the monotonic instant from before it was asked for."""
        store = self.store(machine, site)
        for _ in range(50):
            asked = time.monotonic()
            turn = store.claim(LEASE, None if site.many_hosts else site.rest, None)
            if isinstance(turn, Claimed):
                self.claimed.append(turn.claim.token)
                return turn.claim, asked
            if not isinstance(turn, AskAgain):
                return None
            if turn.clock_went_back:
                store.shift_back()
        raise AssertionError("the claim asked to be asked again 50 times")

    def crash(self, machine: str, site: str) -> None:
        """A worker dies with what it claimed."""
        if (claimed := self.claim(machine, SITES[site])) is not None:
            claim, _ = claimed
            self.witness.took(claim.host, claim.token, self.now(), self.told(claim.claimed_at))

    def suspend(self, machine: str, name: str, mood: Mood) -> str | None:
        """A worker asks, is answered in a mood that is there for it alone, and suspended with that in hand.  At which host."""
        site = SITES[name]
        if (claimed := self.claim(machine, site)) is None:
            return None
        claim, asked = claimed
        moods = self.origins[claim.host].moods
        usual = dict(moods)
        moods.update(dict.fromkeys(PATHS, mood))
        http = LateHttp(self.net)
        poller = Poller(site, self.store(machine, site), http, LEASE)
        thread = threading.Thread(target=poller.carry, args=(claim, asked), name="a late worker")
        thread.start()
        while thread.is_alive() and not http.answered.wait(0.002):
            pass
        moods.update(usual)
        arrivals = [replace(each, late=thread.is_alive()) for each in self.look(claim.key)]
        self.witness.see(arrivals)
        if not thread.is_alive():
            http.close()
            return claim.host
        self.workers.append(Worker(claim, http, thread, arrivals))
        for host in {claim.host, *(each.host for each in arrivals)}:
            self.witness.took(host, claim.token, self.now(), self.told(claim.claimed_at))
        return claim.host

    def end_late(self, *, dies: bool) -> list[Arrival]:
        """The worker that has been suspended longest goes on, or dies; what it says now."""
        if not self.workers:
            return []
        worker = self.workers.pop(0)
        worker.end(dies=dies)
        if dies:
            return []
        for arrival in worker.arrivals:
            self.witness.settled(arrival, self.now())
        self.witness.let_go(worker.claim.token)
        return worker.arrivals

    # What was seen

    def look(self, key: str | None = None) -> list[Arrival]:
        """The requests that arrived since the last look; `key` None: whose they were is in the poll record."""
        self.net.quiet()
        visits = self.net.record[self._seen :]
        self._seen += len(visits)
        assert not self.net.dialled(FORBIDDEN), "an address that is not public was dialled"
        names = {key_of(name): name for name in NAMES}
        rows = [] if key is not None or not visits else self._sent(visits)
        found = [(key, visit.wall) if key is not None else self._whose(visit, rows) for visit in visits]
        return [self._arrival(visit, names[who], sent) for visit, (who, sent) in zip(visits, found, strict=True)]

    def _arrival(self, visit: Visit, series: str, sent: float) -> Arrival:
        number = self._answered.get(visit.host, 0)
        self._answered[visit.host] = number + 1
        at = visit.wall + self.offset + self.back
        ended = at + (visit.ended or visit.arrived) - visit.arrived
        given = self.origins[visit.host].given[number]
        assert given.path == visit.path, (given, visit)
        written = at - max(visit.wall - sent, 0.0)
        return Arrival(visit.host, visit.address, site_of(visit.host).name, series, given, at, ended, written)

    def _sent(self, visits: list[Visit]) -> list[tuple[str, str, float]]:
        """What the poll record has of that time: host, key, and when by the machine's clock."""
        since, until = (end(visit.wall for visit in visits) + self.offset for end in (min, max))
        rows = self.owner.all(
            "SELECT p.host, s.key, extract(epoch FROM p.sent_at)::float8 AS at "
            "FROM lanes.polls p JOIN lanes.series s ON s.id = p.series_id "
            "WHERE p.sent_at BETWEEN to_timestamp(%s) AND to_timestamp(%s)",
            since - NEAR,
            until + NEAR,
        )
        return [(row.host, row.key, row.at - self.offset) for row in rows]

    def _whose(self, visit: Visit, rows: list[tuple[str, str, float]]) -> tuple[str, float]:
        """Each request that was made is in the poll record, at its instant: the key, and when it was sent."""
        near = [row for row in rows if row[0] == visit.host and abs(row[2] - visit.wall) < NEAR]
        assert near, f"not in the poll record: {visit}; near it are {rows}"
        _, key, sent = min(near, key=lambda row: abs(row[2] - visit.wall))
        return key, sent

    # The owner and the Readers

    def follow(self, reader: str, name: str) -> None:
        host, path = name.split("/")
        site, key = site_of(host), key_of(name)
        rows = self.owner.all("SELECT url FROM lanes.series WHERE key = %s", key)
        url = rows[0].url if rows else self.origins[host].host.url(f"/{path}")
        wanted = Wanted(site.name, url, urlsplit(url).hostname or "", key, rest=INITIAL if site.many_hosts else None)
        FollowStore(self.owner.database, reader).follow([wanted])

    def verbs(self, reader: str = "owner") -> FollowStore:
        return FollowStore(self.owner.database, reader)

    @property
    def word(self) -> OwnStore:
        return OwnStore(self.owner.database)

    def look_after(self) -> None:
        """One round of upkeep's duties to whoever follows something."""
        store = UpkeepStore(self.owner.database)
        for duty in (ageing.tell_owner, ageing.tell_readers, ageing.tell_of_ends, ageing.give_up):
            sum(duty(store))

    def heal(self) -> None:
        """Everybody is well again, nobody says anything against polling, no worker is left with a Poll in hand."""
        while self.workers:
            self.end_late(dies=False)
        for origin in self.origins.values():
            origin.heal()
        for place in list(self.witness.closed):
            self.reopen(place)
        for place in list(self.witness.slowed):
            self.hasten(place)
        for name in NAMES:
            self.word.revive(key_of(name))

    def close_(self, place: str) -> None:
        """Blocks a host, or pauses a Lane or a Series."""
        if "/" in place:
            self.verbs().pause(key_of(place))
        elif place in self.origins:
            self.word.block(site_of(place).name, place)
        else:
            self.verbs().pause_lane(place)
        self.witness.closed[place] = "closed by the owner"

    def reopen(self, place: str) -> None:
        if "/" in place:
            self.verbs().resume(key_of(place))
        elif place in self.origins:
            self.word.unblock(place)
        else:
            self.verbs().resume_lane(place)
        self.witness.closed.pop(place, None)

    def slow(self, place: str, seconds: float) -> None:
        """The owner's word on a host or a Site; where there is a slower one already, that stands."""
        at_least = timedelta(seconds=seconds)
        if place in self.origins:
            self.word.slow_host(site_of(place).name, place, at_least)
        else:
            self.word.slow_lane(place, at_least)
        self.witness.slowed[place] = max(seconds, self.witness.slowed.get(place, 0.0))

    def hasten(self, place: str) -> None:
        if place in self.origins:
            self.word.free_host(place)
        else:
            self.word.free_lane(place, COMICS.gap if place == COMICS.name else None)
        self.witness.slowed.pop(place, None)

    def publish(self, name: str) -> None:
        host, path = name.split("/")
        self.origins[host].publish(f"/{path}")

    def shows(self, name: str) -> set[str]:
        host, path = name.split("/")
        return self.origins[host].titles(f"/{path}")

    def set_mood(self, host: str, path: str, mood: Mood) -> None:
        self.origins[host].moods[path] = mood


@contextmanager
def a_world(new_database: NewDatabase) -> Iterator[World]:
    """A world of its own, in which the owner follows everything and nothing was asked yet."""
    with ExitStack() as stack:
        url = stack.enter_context(new_database())
        net = stack.enter_context(Smallnet())
        net.host(FORBIDDEN, forbidden=True)
        origins: dict[str, Origin] = {}
        for name, address in HOSTS.items():
            origins[name] = Origin(net, address, name, origins)
        ring = [name for name in HOSTS if name != "comics.test"]
        for number, name in enumerate(HOSTS):
            origins[name].away = ring[(number + 1) % len(ring)]
            origins[name].twin = ring[(number + 2) % len(ring)]
            origins[name].comics = "comics.test"
        origins["d.test"].feeds["/two"] = origins["b.test"].feeds["/two"]  # twins in truth: one can move to the other
        assert COMICS.gap is not None
        owner = Owner(url)
        world = World(net, url, origins, Witness({COMICS.name: COMICS.gap.total_seconds()}), owner)
        stack.callback(owner.close)
        owner.tell("INSERT INTO lanes.readers (name) VALUES ('ada')")
        for machine in MACHINES:
            world.start(machine)
        stack.callback(lambda: [lane.close() for lanes in world.lanes.values() for lane in lanes])
        stack.callback(lambda: [worker.end(dies=True) for worker in world.workers])
        world.store(MACHINES[0], COMICS).set_gap(
            COMICS.gap
        )  # as each Lane does before it claims; a worker here may be first
        for name in NAMES:
            world.follow("owner", name)
        yield world
