"""What befell whom and when.

Owns the log of events and the moves of the clock.  Refuses to own: causing them.  Must never break: a move of the clock is noted with
the instants between which it happened, so that nothing is judged across it.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Segment:
    """A time without a move of the clock: wall instants, the moves around it included, for nobody knows when within them it moved; and by
    how many seconds lanes.now() is ahead of the wall."""

    begins: float
    ends: float
    ahead: float


@dataclass(slots=True)
class Events:
    """Written to `file` as they happen.  `counts` are by the first word."""

    file: Path
    began: float = field(default_factory=time.time)
    counts: Counter[str] = field(default_factory=Counter)
    moves: list[tuple[float, float, float]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def note(self, kind: str, what: str = "") -> None:
        """One event, now."""
        self.counts[kind] += 1
        with self.file.open("a", encoding="utf-8") as out:
            out.write(f"{time.time():.3f} {time.time() - self.began:8.3f} {kind} {what}\n")

    def fault(self, what: str) -> None:
        """Something that must not happen, seen on the way."""
        self.note("FAULT", what)
        self.faults.append(what)

    def moved(self, asked: float, done: float, ahead: float) -> None:
        """The clock was moved somewhere between two wall instants; it is `ahead` seconds ahead of the wall from then on."""
        self.note("clock", f"ahead={ahead:.3f}")
        self.moves.append((asked, done, ahead))

    @property
    def segments(self) -> list[Segment]:
        """The times between the moves, oldest first."""
        begins = [0.0, *(asked for asked, _, _ in self.moves)]
        ends = [*(done for _, done, _ in self.moves), float("inf")]
        ahead = [0.0, *(each for _, _, each in self.moves)]
        return [Segment(*each) for each in zip(begins, ends, ahead, strict=True)]

    def unmoved(self, since: float, until: float) -> bool:
        """Whether the clock stood still, so to speak, all the time between two wall instants."""
        place = bisect_right(self.moves, since, key=lambda move: move[1])
        return place == len(self.moves) or self.moves[place][0] > until
