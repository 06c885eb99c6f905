"""demo: the whole set of processes against a small internet on loopback, in a directory that is thrown away afterwards.

Owns starting, showing and stopping that.  Refuses to own: the little internet (tests/smallnet).  Must never break: it touches neither
the owner's database nor any network but loopback, and leaves no process behind.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path

import lanes
from lanes.cli.door import Store, open_store
from lanes.cli.importing import follow_file
from lanes.cli.parser import DONE
from lanes.cli.words import clean, counted, until
from lanes.errors import DatabaseAway, LanesError
from lanes.store.asking import ChapterFound, Listed

EVERY = 1.0  # seconds between two Check nows: left alone, the liveliest feed is looked at once a minute
DEADLINE = 90.0  # seconds for the database to be made and migrated
TROUBLES_EVERY = 15  # of those, until it is told again who waits or fails
SHOWN = 200  # newest Chapters that are looked through at a time
NETWORKS = "127.1.0.0/16"
PORT = "19600"  # metrics, beside those of an installation that runs already


class NoDemo(LanesError):
    """The demo cannot be shown here."""


def run(_: Namespace) -> int:
    """Shows the demo until Ctrl-C."""
    checkout = Path(lanes.__file__).resolve().parent.parent
    if not (checkout / "tests" / "smallnet").is_dir() or shutil.which("supervisord", path=_bin()) is None:
        raise NoDemo("The demo needs a checkout with what its tests need: run `make demo` there.")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as stack:
        stack.enter_context(suppress(KeyboardInterrupt))
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lanes-demo-", ignore_cleanup_errors=True)))
        place.chmod(0o755)  # root's Postgres runs as somebody else, who must reach it
        _set_environment(place)
        port = stack.enter_context(_internet(checkout, place))
        print(f"A small internet publishes on {NETWORKS}, port {port}. Logs: {place}/var/log")
        stack.enter_context(_processes(checkout, place))
        with _ready_store() as store:
            print(f"{counted(follow_file(store, place / 'demo.opml'), 'Series')} followed. Ctrl-C ends the demo.")
            print("Every second one of them gets a Check now: left alone, each is looked at once a minute or less.")
            print("Look into it from a second terminal:\n")
            print(f"  LANES_DATABASE_URL='{store.settings.database_url}' {_bin()}/lanes status\n", flush=True)
            _watch(store)
    print("\nThe demo is over; nothing of it is left.")
    return DONE


def _bin() -> str:
    return str(Path(sys.executable).parent)


def _set_environment(place: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("LANES_", "LATEST_CHAPTER_"))]:
        del os.environ[name]
    os.environ |= {
        "LANES_DATA_DIR": str(place / "var"),
        "LANES_CONTACT": "demo@localhost",
        "LANES_ALLOW_NETWORKS": NETWORKS,
        "LANES_METRICS_PORT": PORT,
    }


@contextmanager
def _internet(checkout: Path, place: Path) -> Iterator[int]:
    command = [sys.executable, "-m", "tests.smallnet", "demo", "--opml", str(place / "demo.opml")]
    with _running(command, checkout, stdout=subprocess.PIPE) as internet:
        ready = internet.stdout.readline() if internet.stdout else b""
        if not ready:
            raise NoDemo("The small internet did not start; its words are above.")
        yield json.loads(ready)["port"]


@contextmanager
def _processes(checkout: Path, place: Path) -> Iterator[None]:
    """The processes of supervisord.conf, as they are, with their files in `place`."""
    (place / "var" / "log").mkdir(parents=True)
    conf = (checkout / "supervisord.conf").read_text(encoding="utf-8")
    conf = conf.replace("%(here)s/.venv/bin", _bin()).replace("%(here)s", str(place))
    (place / "supervisord.conf").write_text(conf, encoding="utf-8")
    command = [
        f"{_bin()}/supervisord",
        "--nodaemon",
        "-c",
        str(place / "supervisord.conf"),
        "--user",
        str(os.geteuid()),
    ]
    with _running(command, place, stdout=subprocess.DEVNULL):
        yield


@contextmanager
def _running(command: list[str], where: Path, stdout: int) -> Iterator[subprocess.Popen[bytes]]:
    """A child in a session of its own, so that Ctrl-C reaches it through us, in order."""
    child = subprocess.Popen(command, cwd=where, stdin=subprocess.DEVNULL, stdout=stdout, start_new_session=True)
    try:
        yield child
    finally:
        child.terminate()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


@contextmanager
def _ready_store() -> Iterator[Store]:
    deadline = time.monotonic() + DEADLINE
    while not _answers():
        if time.monotonic() > deadline:
            raise NoDemo("The database did not come up; its log is in the directory named above.")
        time.sleep(0.3)
    with open_store() as store:
        yield store


def _answers() -> bool:
    try:
        with open_store():
            return True
    except DatabaseAway:  # NotReady is one
        return False


def _watch(store: Store) -> None:
    """Presses Check now on one Series after another, and tells what is found, until interrupted."""
    told: set[tuple[str, str]] = set()
    for number, key in enumerate(itertools.cycle(each.key for each in store.asking.series()), 1):
        store.following.check_now(key)
        _tell(store.asking.chapters(None, SHOWN), told)
        if number % TROUBLES_EVERY == 0:
            _tell_troubles(store.asking.series())
        time.sleep(EVERY)


def _tell_troubles(series: tuple[Listed, ...]) -> None:
    """Why the Series that wait or fail are not polled, as `lanes why` says it."""
    for each in series:
        if each.why.held or each.standing.failures:
            print(
                f"{_clock()}  {each.key}: {clean(each.why.reason)}{until(each.why.until, each.standing.now)}",
                flush=True,
            )


def _clock() -> str:
    return datetime.now().astimezone().strftime("%H:%M:%S")


def _tell(found: tuple[ChapterFound, ...], told: set[tuple[str, str]]) -> None:
    first_sights: dict[str, int] = {}
    now = _clock()
    for each in reversed(found):
        if (each.key, each.title) in told:
            continue
        told.add((each.key, each.title))
        series = clean(each.series or each.key)
        if each.announced:
            print(f"{now}  {series}: {clean(each.title)}", flush=True)
        else:
            first_sights[series] = first_sights.get(series, 0) + 1
    for series, count in first_sights.items():
        print(f"{now}  {series}: {counted(count, 'Chapter')} at first sight", flush=True)
