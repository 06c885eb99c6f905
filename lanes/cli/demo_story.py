"""What happens in the demo: who publishes, who refuses, and what is lost on the way.

Owns the scenes and their times.  Refuses to own: the processes (`demo`) and the little internet (tests/smallnet).  Must never break:
what is told was read from the rows, as `lanes status` and `lanes why` read it.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.request import ProxyHandler, build_opener

from lanes.cli.door import Store
from lanes.cli.status import state_of
from lanes.cli.words import clean, counted, reason_told
from lanes.sites import by_name
from lanes.store import browsing
from lanes.store.asking import ChapterFound, LaneState
from lanes.store.browsing import BrowserState

EVERY: Final = 1.0  # seconds between two Check nows of feeds: left alone, the liveliest is looked at once a minute
LANE_EVERY: Final = 8  # of those, until one of each Site of one host: its Gap is 10 s
TROUBLES_EVERY: Final = 15  # ... until it is told again who waits or fails
LANES_EVERY: Final = 20  # ... and how each Lane is
SHOWN: Final = 200  # newest Chapters that are looked through at a time
LEAP: Final = timedelta(minutes=15, seconds=30)
"""The length of a first refusal window, and of a loss: the demo moves its own clock over them."""

_open = build_opener(ProxyHandler({})).open


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the story plays: `control` is the small internet's ear, `checkout` the tree it runs from."""

    store: Store
    control: str
    checkout: Path


@dataclass(frozen=True, slots=True)
class Scene:
    """From `at` seconds on something is different, told in a sentence."""

    at: int
    tells: str
    plays: Callable[[Stage], str]


def _refuse(stage: Stage, value: str) -> str:
    with _open(f"{stage.control}refuse?site=webtoons&value={value}", timeout=10):
        return ""


def _kill_chrome(_: Stage) -> str:
    group = chrome_group(os.environ["LANES_DATA_DIR"])
    if group is None:
        return " (It sleeps just now, so there is nothing to lose.)"
    os.killpg(group, signal.SIGKILL)
    return f" (kill -9 of group {group})"


def _leap(stage: Stage) -> str:
    _refuse(stage, "no")
    command = [sys.executable, "-m", "tests.leap", str(int(LEAP.total_seconds()))]
    environ = os.environ | {"LANES_TEST_DATABASE_URL": stage.store.settings.database_url}
    subprocess.run(command, cwd=stage.checkout, env=environ, check=True)
    return ""


STORY: Final = (
    Scene(
        75,
        "webtoons begins to answer with challenges: the second of them stops its Lane for a quarter of an hour, and no other.",
        lambda stage: _refuse(stage, "yes"),
    ),
    Scene(
        140,
        "Chrome's process group is killed: both browser Lanes wait for it, nobody is charged, and the others do not notice.",
        _kill_chrome,
    ),
    Scene(
        200,
        "A quarter of an hour passes (the demo moves its own clock), and webtoons has calmed down: both are tried again.",
        _leap,
    ),
    Scene(260, "That was the story. It goes on like this until Ctrl-C.", lambda _: ""),
)


def play(stage: Stage) -> None:
    """Presses Check now on one Series after another and tells what is found, until interrupted."""
    began, told = time.monotonic(), set[tuple[str, str]]()
    scenes, store = iter(STORY), stage.store
    series = store.asking.series()
    feeds = itertools.cycle([each.key for each in series if by_name(each.site).many_hosts])
    others = itertools.cycle([each.key for each in series if not by_name(each.site).many_hosts])
    scene = next(scenes, None)
    for number in itertools.count(1):
        store.following.check_now(next(feeds))
        if number % LANE_EVERY == 0:
            for _ in range(5):
                store.following.check_now(next(others))
        if scene is not None and time.monotonic() - began >= scene.at:
            _say(f"--- {scene.tells}{scene.plays(stage)}")
            scene = next(scenes, None)
        _tell(store.asking.chapters(None, SHOWN), told)
        if number % TROUBLES_EVERY == 0:
            _tell_troubles(store)
        if number % LANES_EVERY == 0:
            _tell_lanes(store)
        time.sleep(EVERY)


def chrome_group(data_dir: str) -> int | None:
    """The process group of the Chrome that the browser sidecar of an installation started, whose child it is; None: it sleeps."""
    ours = f"LANES_DATA_DIR={data_dir}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            parent = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]
            if not any(word.startswith(b"--remote-debugging-port") for word in words):
                continue
            if ours in (process.parent / parent / "environ").read_bytes().split(b"\0"):
                return os.getpgid(int(process.name))
        except OSError:
            continue  # it has ended meanwhile
    return None


def _tell_troubles(store: Store) -> None:
    """Why the Series that wait or fail are not polled, as `lanes why` says it."""
    for each in store.asking.series():
        if each.why.held or each.standing.failures:
            _say(f"{each.key}: {reason_told(each.why, each.standing.now)}")


def _tell_lanes(store: Store) -> None:
    now = store.asking.now()
    sites = sorted({each.site for each in store.asking.series()})
    lanes = [store.asking.lane(site) for site in sites]
    _say(f"Lanes: {lanes_told(lanes, browsing.browser(store.database), now)}")


def lanes_told(lanes: Sequence[LaneState], browser: BrowserState, now: datetime) -> str:
    """How each Lane is, as `lanes status` says it."""
    return "; ".join(f"{each.site} {state_of(each, now, polling=True, browser=browser)}" for each in lanes)


def _tell(found: tuple[ChapterFound, ...], told: set[tuple[str, str]]) -> None:
    first_sights: dict[str, int] = {}
    for each in reversed(found):
        if (each.key, each.title) in told:
            continue
        told.add((each.key, each.title))
        series = clean(each.series or each.key)
        if each.announced:
            _say(f"{series}: {clean(each.title)}")
        else:
            first_sights[series] = first_sights.get(series, 0) + 1
    for series, count in first_sights.items():
        _say(f"{series}: {counted(count, 'Chapter')} at first sight")


def _say(sentence: str) -> None:
    print(f"{datetime.now().astimezone():%H:%M:%S}  {sentence}", flush=True)
