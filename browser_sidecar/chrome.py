"""Chrome as a process: found, started, weighed, and killed with all its family.

Owns the flags, the throw-away profile and every process that descends from Chrome.  Refuses to own: the protocol and any page.  Must
never break: when `kill` returns, no process of that Chrome is left, not even as a zombie.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""What Chrome is called on a PATH, in order of preference."""
STARTS_WITHIN: Final = 30.0
"""s until it says where DevTools listens: ten times what a cold start takes on a small machine."""
ANSWERS_WITHIN: Final = 10.0
"""s until it says which version it is."""
ENDS_WITHIN: Final = 4.0
"""s until the kernel has ended what was killed."""
LONGEST_HOME: Final = 60
"""Characters of a place in which Chrome can have its socket, whose whole path a kernel takes up to 107 of."""
_PROFILE: Final = "lanes-chrome-"
_PR_SET_CHILD_SUBREAPER: Final = 36

OFF: Final = (
    ("HttpsUpgrades", "the URL that was asked for is the one that is opened"),
    ("HttpsFirstBalancedModeAutoEnable", "the same, and no warning page in place of it"),
    ("HttpsFirstModeIncognito", "the same"),
    ("Translate", "pages are read as they are"),
    ("OptimizationHints", "asks its maker about pages"),
    ("MediaRouter", "looks for devices on the local network"),
    ("DialMediaRouteProvider", "the same"),
    ("InterestFeedContentSuggestions", "asks its maker for news"),
    ("AutofillServerCommunication", "sends forms to its maker"),
    ("CertificateTransparencyComponentUpdater", "asks its maker"),
    ("WebUIOmniboxPopup", "half a second and 50 MiB for each page's address bar, which nobody sees"),
    ("WebUIOmniboxAimPopup", "the same"),
    ("WebUIOmniboxFullPopup", "the same"),
    ("PreloadTopChromeWebUI", "the same"),
    ("SpareRendererForSitePerProcess", "30 MiB for a page that may never come"),
    ("BackForwardCache", "nobody goes back"),
    (
        "IsolateOrigins",
        "with the next: frames of other sites share the page's process, in a context that knows no secret",
    ),
    ("site-per-process", "the same"),
)
"""Features that are switched off, each with its reason."""

FLAGS: Final = (
    ("--headless=new", "there is no screen"),
    ("--remote-debugging-port=0", "a free port; it is read back"),
    ("--disable-gpu", "there is none"),
    ("--disable-dev-shm-usage", "shared memory of a container is 64 MiB, and Chrome crashes when that is full"),
    ("--no-startup-window", "140 MiB less while no page is open"),
    ("--no-first-run", "nobody is there to be welcomed"),
    ("--no-default-browser-check", "nor to choose"),
    ("--disable-search-engine-choice-screen", "the same"),
    # What is no page's goes nowhere: each page has a proxy of its own, and no name is resolved but by that.
    ("--proxy-server=http://127.0.0.1:1", "what Chrome itself wants from the network meets a closed door"),
    ("--proxy-bypass-list=<-loopback>", "loopback too goes by the proxy, which refuses it"),
    (
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        "no name is resolved outside the proxy, not even a guess",
    ),
    ("--disable-quic", "UDP goes past a proxy"),
    ("--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "so does WebRTC"),
    ("--webrtc-ip-handling-policy=disable_non_proxied_udp", "the same, as later versions call it"),
    ("--disable-background-networking", "nothing is fetched that no page asks for"),
    ("--disable-component-update", "the same"),
    ("--disable-sync", "the same"),
    ("--disable-domain-reliability", "the same"),
    ("--disable-client-side-phishing-detection", "the same"),
    ("--disable-default-apps", "the same"),
    ("--disable-extensions", "the same"),
    ("--no-pings", "links are not reported"),
    ("--metrics-recording-only", "nothing is reported to its maker"),
    ("--disable-breakpad", "a crash is not reported either"),
    ("--password-store=basic", "no keyring of the machine is asked"),
    ("--blink-settings=imagesEnabled=false", "pictures are not asked for, which costs less than refusing each"),
    ("--mute-audio", "nobody listens"),
    ("--deny-permission-prompts", "nobody is there to be asked"),
    ("--disable-notifications", "the same"),
    ("--block-new-web-contents", "no pop-ups"),
    ("--disable-hang-monitor", "no question whether to wait for a page: its time is ours to end"),
    ("--disable-prompt-on-repost", "no question either"),
    ("--disable-background-timer-throttling", "several tabs are all in the background, and their pages use timers"),
    ("--disable-backgrounding-occluded-windows", "the same"),
    ("--disable-renderer-backgrounding", "the same"),
    ("--disable-site-isolation-trials", "one process a page: see OFF"),
    ("--lang=en-US", "dates and numbers of pages in one language"),
    ("--window-size=1280,1600", "a screen on which a list of Chapters is in view"),
    ("--log-level=2", "why it ends, and no more"),
)
"""Every flag with its reason; `--user-data-dir` and `--disable-features` are added, and `--no-sandbox` where the owner says so."""

HOW_TO_INSTALL: Final = (
    "Chrome is not installed: `apt install chromium` (or google-chrome), or set LANES_BROWSER_BINARY to where it is"
)
_REMEDY: Final = "let LANES_BROWSER_BINARY name a Chrome, and start Lanes again"


class NotStarted(Exception):
    """Chrome cannot be had; the text says why, and what the owner can do.  `again`: s after which it is tried again; None: as long as
    after a loss."""

    def __init__(self, why: str, again: float | None = None) -> None:
        self.again = again
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class Binary:
    """A Chrome that can be started.  `version` is its own, e.g. 156.0.8078.114."""

    path: str
    version: str


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    session: int
    state: str


def find(named: str | None = None) -> Binary:
    """The Chrome of this machine: the one `named`, else the first on the PATH.  Raises: NotStarted."""
    path = next(filter(None, map(shutil.which, (named,) if named else NAMES)), None)
    if path is None:
        raise NotStarted(
            f"LANES_BROWSER_BINARY names {named}, which is no program: {_REMEDY}" if named else HOW_TO_INSTALL
        )
    with (
        tempfile.TemporaryDirectory(prefix="lanes-home-") as home,
        contextlib.suppress(OSError, subprocess.SubprocessError),
    ):
        _own(Path(home))
        said = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=ANSWERS_WITHIN, check=False, **_as_whom(home)
        ).stdout
        if found := re.search(r"\d+(?:\.\d+){3}", said):  # four numbers, as Chrome alone of common programs has
            return Binary(path, found[0])
    raise NotStarted(f"{path} does not say which version of Chrome it is: {_REMEDY}")


def adopt_orphans() -> None:
    """From now on this process is the parent of every orphan among its descendants, so that none escapes and none stays a zombie."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap_orphans(but: int | None = None) -> None:
    """Reaps adopted children that have ended; `but` is the child that somebody else waits for.  For a process that adopts alone."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and ended.si_pid != but:
            os.waitpid(ended.si_pid, os.WNOHANG)


def clear_leavings() -> None:
    """Ends and removes what a sidecar that was killed left behind: its Chrome, and the profile."""
    for profile in Path(tempfile.gettempdir()).glob(f"{_PROFILE}*"):
        try:
            lock = os.open(profile, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for process in _processes():
                if _uses(process.pid, profile):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(process.pid, signal.SIGKILL)
            shutil.rmtree(profile, ignore_errors=True)
        except BlockingIOError:
            pass  # its sidecar lives
        finally:
            os.close(lock)


class Chrome:
    """One running Chrome in a session of its own, with a profile that ends with it.  As root it runs as `lanes` or `nobody`, because its
    sandbox wants an ordinary user."""

    def __init__(
        self,
        binary: Binary,
        *,
        sandbox: bool = True,
        flags: tuple[str, ...] = (),
        given_up: Callable[[], bool] = lambda: False,
    ) -> None:
        """Starts it, unless it is `given_up` meanwhile.  Raises: NotStarted."""
        self.version = binary.version
        self.profile = Path(tempfile.mkdtemp(prefix=_PROFILE))
        # The directory is locked for as long as this process lives: see `clear_leavings`.
        self._lock = os.open(self.profile, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        _own(self.profile)
        off = ",".join(name for name, _ in OFF)
        command = [
            binary.path,
            *(flag for flag, _ in FLAGS),
            f"--user-data-dir={self.profile}",
            f"--disable-features={off}",
        ]
        command += [*([] if sandbox else ["--no-sandbox"]), *flags]
        try:
            with (self.profile / "said").open("wb") as said:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    start_new_session=True,
                    **_as_whom(str(self.profile)),
                )
        except OSError as error:
            self._forget_profile()
            raise NotStarted(f"{binary.path} cannot be started: {error.strerror}") from error
        self.pid = self._process.pid
        try:
            self.port, path = self._listening(sandbox, given_up)
        except NotStarted:
            self.kill()
            raise
        self.url = f"ws://127.0.0.1:{self.port}{path}"

    def is_gone(self) -> bool:
        """Whether its first process has ended."""
        return self._process.poll() is not None

    def memory(self) -> int:
        """Bytes that all its processes take, what they share counted once (PSS)."""
        return sum(_weight(process.pid) for process in self._family())

    def kill(self) -> None:
        """Ends every process of it, reaps those that are ours to reap, and removes the profile."""
        seen = {process.pid for process in self._family()}
        deadline = time.monotonic() + ENDS_WITHIN
        while seen and time.monotonic() < deadline:
            for pid in seen:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self._process.poll()
            for pid in seen - {self.pid}:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(0.01)
            # Whatever a process forked before it died is found in the next round, by its session, its parent or its profile.
            seen = {process.pid for process in self._family()} | {pid for pid in seen if _is_ours_to_end(pid)}
        self._process.poll()
        self._forget_profile()

    def _listening(self, sandbox: bool, given_up: Callable[[], bool]) -> tuple[int, str]:
        written, deadline = self.profile / "DevToolsActivePort", time.monotonic() + STARTS_WITHIN
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                port, _, path = written.read_text(encoding="ascii").strip().partition("\n")
                if port.isdigit() and path.startswith("/"):
                    return int(port), path
            if self.is_gone():
                raise NotStarted(_last_words((self.profile / "said").read_text(errors="replace"), sandbox))
            if given_up():
                raise NotStarted("it is being ended")
            time.sleep(0.02)
        raise NotStarted(f"Chrome did not say within {STARTS_WITHIN:g} s where DevTools listens")

    def _family(self) -> list[_Process]:
        """Its processes: of its session, descendants of those, and our own children that use its profile."""
        everybody = list(_processes())
        family = {each.pid for each in everybody if self.pid in (each.session, each.pid)}
        family |= {each.pid for each in everybody if each.parent == os.getpid() and _uses(each.pid, self.profile)}
        grown = True
        while grown:
            more = {each.pid for each in everybody if each.parent in family} - family
            family |= more
            grown = bool(more)
        return [each for each in everybody if each.pid in family and not (each.pid == self.pid and self.is_gone())]

    def _forget_profile(self) -> None:
        if self._lock >= 0:
            shutil.rmtree(self.profile, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def _last_words(said: str, sandbox: bool) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if "FATAL" in line or "ERROR" in line or "sandbox" in line.lower()]
    words = (telling or lines or ["it said nothing"])[-1][:300]
    if sandbox and "sandbox" in said.lower():
        return (
            "Chrome ended at once because its sandbox does not work here. Allow unprivileged user namespaces (in a container: a "
            "seccomp profile that lets Chrome make them), or set LANES_BROWSER_SANDBOX=false and give up the sandbox: "
            + words
        )
    return f"Chrome ended at once: {words}"


def _account() -> pwd.struct_passwd | None:
    """Whom Chrome runs as where we are root."""
    if os.geteuid() != 0:
        return None
    for name in ("lanes", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise NotStarted("Chrome's sandbox does not work as root: add a user for it with `useradd --system lanes`")


def _as_whom(home: str) -> dict[str, Any]:
    """User, place and environment of a child: nothing of ours, for ours holds secrets."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR") if name in os.environ}
    # What it leaves there when it is killed goes with its profile, instead of one more each time staying in a place for all.
    if len(home) <= LONGEST_HOME:
        kept["TMPDIR"] = home
    whom: dict[str, Any] = {"cwd": home, "env": {**kept, "HOME": home}}
    if (account := _account()) is not None:
        whom |= {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    return whom


def _own(place: Path) -> None:
    if (account := _account()) is not None:
        os.chown(place, account.pw_uid, account.pw_gid)


def _processes() -> Iterator[_Process]:
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                state, parent, _, session = (place / "stat").read_text().rpartition(")")[2].split()[:4]
                yield _Process(int(place.name), int(parent), int(session), state)


def _uses(pid: int, profile: Path) -> bool:
    with contextlib.suppress(OSError):
        return os.fsencode(profile) in Path("/proc", str(pid), "cmdline").read_bytes()
    return False


def _is_ours_to_end(pid: int) -> bool:
    """Whether it is still there: alive, or a zombie that waits for us."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        state, parent = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[:2]
        return state != "Z" or int(parent) == os.getpid()
    return False


def _weight(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        try:
            rollup = Path("/proc", str(pid), "smaps_rollup").read_text(encoding="ascii")
            return int(re.search(r"^Pss:\s+(\d+) kB", rollup, re.MULTILINE)[1]) * 1024  # type: ignore[index]
        except (
            OSError,
            TypeError,
        ):  # a sandboxed process lets nobody look: what it shares with none is known all the same
            _, resident, shared = Path("/proc", str(pid), "statm").read_text(encoding="ascii").split()[:3]
            return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
    return 0
