"""demo: the whole set of processes against a small internet on loopback, in a directory that is thrown away afterwards.

Owns starting and stopping that.  Refuses to own: the little internet (tests/smallnet) and what happens there (`demo_story`).  Must never
break: it touches neither the owner's database nor any network but loopback, and leaves no process behind.
"""

from __future__ import annotations

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
from pathlib import Path
from typing import Any

import lanes
from lanes.cli.demo_story import Stage, play
from lanes.cli.door import Store, open_store
from lanes.cli.importing import follow_file
from lanes.cli.parser import DONE
from lanes.cli.words import counted
from lanes.errors import DatabaseAway, LanesError

DEADLINE = 90.0  # seconds for the database to be made and migrated
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
        internet = stack.enter_context(_internet(checkout, place))
        print(f"A small internet publishes on {NETWORKS}, port {internet['port']}. Logs: {place}/var/log")
        stack.enter_context(_processes(checkout, place))
        with _ready_store() as store:
            print(f"{counted(follow_file(store, place / 'demo.opml'), 'Series')} followed. Ctrl-C ends the demo.")
            print("Each gets a Check now again and again: left alone it is looked at once a minute, or once an hour.")
            print("Look into it from a second terminal:\n")
            print(f"  LANES_DATABASE_URL='{store.settings.database_url}' {_bin()}/lanes status\n", flush=True)
            play(Stage(store, internet["control"], checkout))
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
        # The stand-ins take the places of the Sites with a Lane of their own, as an owner's own Sites would.
        "PYTHONPATH": os.pathsep.join([str(place / "sites"), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    sys.path.insert(0, str(place / "sites"))


@contextmanager
def _internet(checkout: Path, place: Path) -> Iterator[dict[str, Any]]:
    world = ["demo", "--opml", str(place / "demo.opml"), "--sites", str(place / "sites")]
    command = [sys.executable, "-m", "tests.smallnet", *world]
    with _running(command, checkout, stdout=subprocess.PIPE) as internet:
        ready = internet.stdout.readline() if internet.stdout else b""
        if not ready:
            raise NoDemo("The small internet did not start; its words are above.")
        yield json.loads(ready)


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
