"""Every setting of Lanes, in one table, read from the environment alone.

Owns the names, defaults and meaning of the environment variables and the process numbers.  Refuses to own: pace.  All pace lives in
the registry.  Must never break: a variable that would be ignored is refused by name, and all problems are told at once.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from lanes import PROJECT_PAGE, __version__
from lanes.errors import SettingsError
from lanes.postgres import default_database_url

Network = IPv4Network | IPv6Network

_NUMBERS: Final[Mapping[str, int]] = {"upkeep": 2, "browser": 3}
_FIRST_LANE: Final = 10

DELETED: Final = tuple(
    f"LATEST_CHAPTER_POLL_{w}" for w in ("COOLDOWN", "BROWSER_COOLDOWN", "INTERVAL", "BATCH", "STAGGER")
)
OLD_KILL_SWITCH: Final = "LATEST_CHAPTER_POLL_ENABLED"


def _text(value: str) -> str:
    return value


def _switch(value: str) -> bool:
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    if value.lower() not in words:
        raise ValueError("must be true or false")
    return words[value.lower()]


def _whole(low: int, high: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", value) or not low <= int(value) <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return int(value)

    return parse


def _networks(value: str) -> tuple[Network, ...]:
    try:
        return tuple(ip_network(part) for part in re.split(r"[,\s]+", value) if part)
    except ValueError as error:
        raise ValueError(f"must be networks such as 10.1.0.0/16, separated by commas ({error})") from None


def _contact(value: str) -> str:
    if re.fullmatch(r"[!-~]+@[!-~]+\.[!-~]+|[!-~]+@localhost|https?://[!-~]+", value) and not set(value) & set(
        '()<>,;"\\'
    ):
        return value
    raise ValueError(
        "must be an e-mail address or a web address at which a site's owner can reach you, e.g. you@example.org"
    )


def _url(*schemes: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if re.search(r"%(?![0-9A-Fa-f]{2})", value):
            raise ValueError("has a % that is not followed by two hexadecimal digits: write it as %25")
        # The value is never quoted, and neither is urlsplit's complaint: a URL may hold a password.
        with contextlib.suppress(ValueError):
            parts = urlsplit(value)
            if parts.scheme in schemes and "://" in value and (parts.netloc or parts.scheme.startswith("postgres")):
                return value
        raise ValueError(f"must be a URL that begins with {' or '.join(f'{scheme}://' for scheme in schemes)}")

    return parse


def _address(value: str) -> str:
    try:
        return str(ip_address(value))
    except ValueError:
        raise ValueError("must be an IP address of this machine, e.g. 127.0.0.1") from None


def _level(value: str) -> str:
    if value.upper() not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        raise ValueError("must be DEBUG, INFO, WARNING or ERROR")
    return value.upper()


def _machine(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", value):
        raise ValueError("must be 1 to 100 letters, digits, dots, dashes or underscores")
    return value


def _directory(value: str) -> Path:
    return Path(value).expanduser().absolute()


@dataclass(frozen=True, slots=True)
class Setting:
    """One environment variable.  `default` is its text as the owner would write it; empty: none, or worked out (see `help`)."""

    name: str
    parse: Callable[[str], Any]
    default: str
    help: str
    secret: bool = False


TABLE: Final = (
    Setting(
        "LANES_CONTACT",
        _contact,
        "",
        "Your e-mail or web address. It stands in the User-Agent of every request, so that a site's owner can reach you. "
        "Nothing is polled without it.",
    ),
    Setting(
        "LANES_DATABASE_URL",
        _url("postgresql", "postgres"),
        "",
        "The Postgres to use, e.g. postgresql://lanes:password@db.example.org/lanes. Absent: the embedded server under "
        "LANES_DATA_DIR, which `lanes postgres` runs.",
        secret=True,
    ),
    Setting(
        "LANES_POLL_ENABLED", _switch, "true", f"false stops all polling. So does the older name {OLD_KILL_SWITCH}."
    ),
    Setting(
        "LANES_FETCH_SLOTS",
        _whole(1, 64),
        "16",
        "How many fetches the Lane of the many-host Site runs at a time, 1 to 64. Capacity, not pace: the buckets of hosts and "
        "addresses set that.",
    ),
    Setting(
        "LANES_ALLOW_NETWORKS",
        _networks,
        "",
        "Networks that may be fetched besides public addresses, separated by commas, e.g. 10.1.0.0/16 for a feed at home.",
    ),
    Setting(
        "LANES_BROWSER_WS_URL",
        _url("ws", "wss"),
        "",
        "The DevTools address of a Chrome that runs elsewhere, e.g. ws://chrome.example.org:9222. Absent: the browser sidecar starts "
        "its own. Such a Chrome reaches the network by its own ways: only literal addresses, and those that it reports, are "
        "checked; nothing keeps WebSockets, shared workers, WebRTC and what it fetches ahead from private addresses there, as "
        "`lanes status` says.",
        secret=True,
    ),
    Setting(
        "LANES_BROWSER_BINARY",
        _text,
        "",
        "The Chrome to start, e.g. /opt/chrome/chrome. Absent: chromium, chromium-browser or google-chrome, whichever is found first.",
    ),
    Setting(
        "LANES_BROWSER_SANDBOX",
        _switch,
        "true",
        "false starts Chrome without its sandbox, for a container that has no user namespaces: then pages run with all the rights "
        "that the browser has.",
    ),
    Setting(
        "LANES_BROWSER_TABS",
        _whole(1, 4),
        "1",
        "How many pages the browser opens at a time, 1 to 4. Capacity, not pace; each takes some 60 MiB more.",
    ),
    Setting(
        "LANES_PUBLIC_URL",
        _url("https", "http"),
        "",
        "Where this installation is reached from the internet, e.g. https://lanes.example.org. Hubs push there. Absent: no push.",
    ),
    Setting(
        "LANES_MACHINE",
        _machine,
        "",
        "The name of this machine in the poll record. Absent: its host name.",
    ),
    Setting(
        "LANES_DATA_DIR",
        _directory,
        "",
        "Where the embedded database lives. Absent: var/ of the checkout, or ~/.local/share/lanes where there is none.",
    ),
    Setting(
        "LANES_METRICS_BIND", _address, "127.0.0.1", "The address on which every process serves /metrics and /health."
    ),
    Setting(
        "LANES_METRICS_PORT",
        _whole(1024, 65000),
        "9600",
        "The base of those ports: each process listens on this plus its number "
        f"({', '.join(f'{name} {number}' for name, number in _NUMBERS.items())}, lane-feeds {_FIRST_LANE}; `make run` tells those "
        "of the other Lanes, `lanes sites --supervisord NAME` that of an own Site).",
    ),
    Setting("LANES_LOG_LEVEL", _level, "INFO", "DEBUG, INFO, WARNING or ERROR."),
    Setting(
        "LANES_TEST_DATABASE_URL",
        _url("postgresql", "postgres"),
        "",
        "Tests only: a Postgres on which they may create and drop databases. Absent: a container or the embedded server.",
        secret=True,
    ),
)
"""Every variable that is known.  deploy/lanes.env.example is held equal to it by a test."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The validated settings; made by `load`.  `embedded` says that `database_url` is that of the embedded server."""

    contact: str | None
    database_url: str
    embedded: bool
    poll_enabled: bool
    fetch_slots: int
    allow_networks: tuple[Network, ...]
    browser_ws_url: str | None
    browser_binary: str | None
    browser_sandbox: bool
    browser_tabs: int
    public_url: str | None
    machine: str
    data_dir: Path
    metrics_bind: str
    metrics_port: int
    log_level: str

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> Settings:
        """The settings in `environ`; SettingsError with a line for each problem that it has.  An empty value counts as absent."""
        problems = [*_refused(environ)]
        found: dict[str, Any] = {}
        for setting in TABLE:
            try:
                value = _value(setting, environ) or setting.default
                found[setting.name.removeprefix("LANES_").lower()] = setting.parse(value) if value else None
            except ValueError as error:
                problems.append(f"{setting.name} {error}.")
        try:
            found["poll_enabled"] = _switch(environ.get(OLD_KILL_SWITCH) or "true") and found.get("poll_enabled")
        except ValueError as error:
            problems.append(f"{OLD_KILL_SWITCH} {error}.")
        if problems:
            raise SettingsError(problems)
        found["allow_networks"] = found["allow_networks"] or ()
        found["machine"] = found["machine"] or socket.gethostname()
        found["data_dir"] = found["data_dir"] or default_data_dir()
        found["embedded"] = found["database_url"] is None
        found["database_url"] = found["database_url"] or default_database_url(found["data_dir"])
        return cls(**{field.name: found[field.name] for field in fields(cls)})

    def polling_contact(self) -> str:
        """The contact address, for whoever polls; SettingsError without one: no contact, no polling (DESIGN 6)."""
        if self.contact is None:
            raise SettingsError(
                [
                    "LANES_CONTACT is not set, and nothing is polled without it: give the e-mail or web address at which a "
                    "site's owner can reach you, e.g. LANES_CONTACT=you@example.org. Where `make run` keeps yours in var/lanes.env: "
                    "set -a; . var/lanes.env; set +a"
                ]
            )
        return self.contact

    def user_agent(self) -> str:
        """What every request says of us: product, version, project page and contact address.  Raises SettingsError without the last."""
        return f"Lanes/{__version__} (+{PROJECT_PAGE}; {self.polling_contact()})"

    def metrics_port_of(self, program: str, own: int | None = None) -> int:
        """The port on which `program` of supervisord.conf serves its metrics.  `own` is the number of an own Site's Lane, which the table
        does not know."""
        number = _NUMBERS.get(program)
        if number is None:
            lanes = process_numbers()
            number = lanes[program] if own is None or program in lanes else own
        return self.metrics_port + number

    def database_place(self) -> str:
        """The database URL without its password, fit to be shown."""
        return without_password(self.database_url)


@cache
def process_numbers() -> Mapping[str, int]:
    """Program of supervisord.conf -> its number: it serves its metrics on `LANES_METRICS_PORT` plus this.  Lanes count from 10 up, `feeds`
    first and the others in the registry's order; those of own Sites from 100, by their names (`lanes.sites.own`)."""
    from lanes.sites import SITES  # noqa: PLC0415 - a process that is no Lane does without its 4 MiB

    *others, feeds = SITES
    return {**_NUMBERS, **{f"lane-{site.name}": n for n, site in enumerate((feeds, *others), _FIRST_LANE)}}


def without_password(url: str) -> str:
    """`url` with its passwords replaced by ***, in the user part as well as in the query."""
    return re.sub(r"(password=)[^&#]*", r"\1***", re.sub(r"(://[^:/@]*):[^/]*@", r"\1:***@", url), flags=re.IGNORECASE)


def checkout() -> Path | None:
    """The tree that this code runs from, which has a supervisord.conf; None: it was installed without."""
    tree = Path(__file__).resolve().parent.parent
    return tree if (tree / "supervisord.conf").is_file() else None


def default_data_dir() -> Path:
    """var/ of the checkout that this code runs from, whatever the working directory; else the user's own data directory."""
    if (tree := checkout()) is not None:
        return tree / "var"
    return Path.home() / ".local" / "share" / "lanes"


def _value(setting: Setting, environ: Mapping[str, str]) -> str:
    twin = f"{setting.name}_FILE"
    value, path = environ.get(setting.name, "").strip(), environ.get(twin, "").strip()
    if not setting.secret or not path:
        return value
    if value:
        raise ValueError(f"and {twin} are both set: keep one")
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot be read from the file that {twin} names: {error}") from None


def _refused(environ: Mapping[str, str]) -> list[str]:
    known = {setting.name for setting in TABLE} | {f"{setting.name}_FILE" for setting in TABLE if setting.secret}
    problems = []
    for name in sorted(environ):
        if name in DELETED:
            problems.append(
                f"{name} no longer exists: remove it. Pace lives in the registry (lanes/sites), not in the environment."
            )
        elif name.startswith("LANES_") and name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
            remedy = f"did you mean {near[0]}?" if near else "remove it; deploy/lanes.env.example lists all settings."
            problems.append(f"{name} is not a setting of Lanes: {remedy}")
    return problems


def main() -> int:
    """Check the settings of an installation that polls and print where its things are: `make run` does so before it starts any."""
    try:
        settings = Settings.load(os.environ)
        settings.polling_contact()
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    where = f"http://{settings.metrics_bind}"
    lines = [f"  database   {settings.database_place()}", f"  contact    {settings.contact}"]
    lines += [
        f"  metrics    {where}:{settings.metrics_port_of(name)}/metrics ({name})" for name in sorted(process_numbers())
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
