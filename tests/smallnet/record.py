"""What the small internet saw: every request with its instants, the server's side of politeness.

Owns the record and the questions asked of it.  Refuses to own: serving.  Must never break: an arrival is stamped when the first bytes of
the request are read, before anything is decided about it.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TextIO, overload


class Visit(NamedTuple):
    """One request.  Instants are seconds of the machine's monotonic clock (one clock for all its processes), `wall` seconds since 1970.

    `host` is the name the host was made with, else its address; `host_header` what the client called it.  `status` is None where
    nothing was answered yet, 0 where no HTTP was.  `ended` is None while it is being answered.  `sent` counts body bytes, framing
    included; `whole` says that the step was played to its end before the client went.
    """

    arrived: float
    wall: float
    ended: float | None
    address: str
    host: str
    host_header: str
    method: str
    path: str
    headers: dict[str, str]
    status: int | None
    connection: int
    sent: int
    whole: bool


class Dial(NamedTuple):
    """One connection that was accepted, whether or not anything was asked on it."""

    accepted: float
    address: str
    connection: int


class Offence(NamedTuple):
    """Two requests to one host (or address) that were too close, or answered at once."""

    where: str
    spacing: float
    earlier: Visit
    later: Visit

    def __str__(self) -> str:
        return f"{self.where}: {self.earlier.path} then {self.later.path} {self.spacing:.3f} s after"


class Record(Sequence[Visit]):
    """All visits in order of arrival, those still being answered included.  Cheap to add to from one thread, safe to read from others."""

    def __init__(self, visits: Iterable[Visit] = (), dials: Iterable[Dial] = ()) -> None:
        self.finished: list[Visit] = list(visits)
        self.dials: list[Dial] = list(dials)
        self.underway: dict[int, Visit] = {}
        self.changed = threading.Condition()

    def start(self, visit: Visit) -> None:
        """A request arrived, or got further."""
        with self.changed:
            self.underway[visit.connection] = visit
            self.changed.notify_all()

    def end(self, visit: Visit) -> None:
        """It is over."""
        with self.changed:
            self.underway.pop(visit.connection, None)
            self.finished.append(visit)
            self.changed.notify_all()

    @classmethod
    def load(cls, source: Path | Iterable[str]) -> Record:
        """Read what `Journal` wrote."""
        lines = source.read_text().splitlines() if isinstance(source, Path) else source
        record = cls()
        for line in lines:
            kind, *rest = json.loads(line)
            if kind == "dial":
                record.dials.append(Dial(*rest))
            else:
                record.finished.append(Visit(*rest))
        return record

    @property
    def visits(self) -> list[Visit]:
        """A copy, by arrival."""
        with self.changed:
            visits = [*self.finished, *self.underway.values()]
        return sorted(visits, key=lambda visit: visit.arrived)

    def __len__(self) -> int:
        return len(self.finished) + len(self.underway)

    def __iter__(self) -> Iterator[Visit]:
        return iter(self.visits)

    @overload
    def __getitem__(self, index: int) -> Visit: ...
    @overload
    def __getitem__(self, index: slice) -> list[Visit]: ...
    def __getitem__(self, index: int | slice) -> Visit | list[Visit]:
        return self.visits[index]

    def of(self, host: object = None, path: str | None = None, *, since: float = 0.0) -> list[Visit]:
        """The visits to a host (a Host, its name or its address) and a path, from the instant `since` on."""
        where = key_of(host)
        return [
            visit
            for visit in self.visits
            if visit.arrived >= since
            and (where is None or where in (visit.host, visit.address))
            and path in (None, visit.path)
        ]

    def arrivals(self, host: object = None, path: str | None = None) -> list[float]:
        """The arrival instants, oldest first."""
        return [visit.arrived for visit in self.of(host, path)]

    def statuses(self, host: object = None, path: str | None = None) -> Counter[int | None]:
        """How many visits were answered with each status."""
        return Counter(visit.status for visit in self.of(host, path))

    def spacings(self, host: object) -> list[float]:
        """Seconds from start to start."""
        arrivals = self.arrivals(host)
        return [later - earlier for earlier, later in pairwise(arrivals)]

    def spacing_offences(
        self, minimum: float, host: object = None, *, slack: float = 0.0, by_address: bool = False, since: float = 0.0
    ) -> list[Offence]:
        """Each pair of requests to one host (or one address) that started less than `minimum - slack` seconds apart.

        `slack` is for the scheduling of two processes on one machine, which moves arrivals by some milliseconds.
        """
        return [
            Offence(where, later.arrived - earlier.arrived, earlier, later)
            for where, earlier, later in self._neighbours(host, by_address, since)
            if later.arrived - earlier.arrived < minimum - slack
        ]

    def overlaps(self, host: object = None, *, by_address: bool = False) -> list[Offence]:
        """Each request that arrived while an earlier one to the same host was still being answered."""
        return [
            Offence(where, later.arrived - earlier.arrived, earlier, later)
            for where, earlier, later in self._overlapping(host, by_address)
        ]

    def _neighbours(self, host: object, by_address: bool, since: float) -> Iterator[tuple[str, Visit, Visit]]:
        for where, visits in self._grouped(host, by_address, since).items():
            for earlier, later in pairwise(visits):
                yield where, earlier, later

    def _overlapping(self, host: object, by_address: bool) -> Iterator[tuple[str, Visit, Visit]]:
        for where, visits in self._grouped(host, by_address, 0.0).items():
            longest = visits[0]
            for visit in visits[1:]:
                if longest.ended is None or visit.arrived < longest.ended:
                    yield where, longest, visit
                if longest.ended is not None and (visit.ended is None or visit.ended > longest.ended):
                    longest = visit

    def _grouped(self, host: object, by_address: bool, since: float) -> dict[str, list[Visit]]:
        groups: dict[str, list[Visit]] = defaultdict(list)
        for visit in self.of(host, since=since):
            groups[visit.address if by_address else visit.host].append(visit)
        return groups


def key_of(host: object) -> str | None:
    """The name under which a host is recorded: of a Host its key, of a string the string."""
    if host is None or isinstance(host, str):
        return host
    key = getattr(host, "key", None)
    if not isinstance(key, str):
        raise TypeError(f"{host!r} is no host")
    return key


class Journal:
    """A record on disk as JSON lines.  Lines are buffered; `flush` is called now and then by the server's loop."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def visit(self, visit: Visit) -> None:
        self._file.write(_line("visit", visit))

    def dial(self, dial: Dial) -> None:
        self._file.write(_line("dial", dial))

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _line(kind: str, row: tuple[Any, ...]) -> str:
    return json.dumps([kind, *row], ensure_ascii=True) + "\n"


def lines(record: Record) -> Iterator[str]:
    """The record as a Journal would have written it."""
    for dial in list(record.dials):
        yield _line("dial", dial)
    for visit in record.visits:
        yield _line("visit", visit)
