"""sites: every Site, and what supervisord and Prometheus need to run one of the owner's own.

Owns how Sites are told.  Refuses to own: what they are (`lanes.sites`), and asking them anything (`verifying`).
"""

from __future__ import annotations

import os
import shlex
import sys
from argparse import Namespace
from pathlib import Path
from typing import Final

from lanes.cli.door import open_store
from lanes.cli.parser import DONE, FAILED
from lanes.cli.words import clean, duration, print_json, print_table
from lanes.errors import DatabaseAway
from lanes.settings import Settings, checkout
from lanes.sites import SITES, Site, by_name, own_sites, sites
from lanes.store.asking import FollowedThere

SECTION: Final = """\
; The Lane of the Site {name}.  {keep}, then tell supervisord: .venv/bin/supervisorctl update.
; Prometheus scrapes it at, in deploy/prometheus.yml:
;       - targets: ["{bind}:{port}"]
;         labels:
;           program: lane-{name}
[program:lane-{name}]
command = {lanes} lane {name}
priority = 30
startsecs = 5
startretries = 20
{autostart}autorestart = true
stopsignal = TERM
stopwaitsecs = 75
redirect_stderr = true
stdout_logfile = {logs}/lane-{name}.log
stdout_logfile_maxbytes = 10MB
stdout_logfile_backups = 3
"""
"""As the sections of the shipped Sites in supervisord.conf: a test holds them alike."""


def show(asked: Namespace) -> int:
    """The registry, or the sections of own Sites; FAILED where an own Site had to be left out."""
    tell_broken("sites")
    if asked.supervisord is not None:
        _print_sections(asked.supervisord)
    else:
        _print(asked)
    return FAILED if own_sites().broken else DONE


def tell_broken(command: str) -> None:
    """On standard error: own Sites that had to be left out."""
    for broken in own_sites().broken:
        sys.stderr.write(f"lanes {command}: {clean(str(broken))}\n")


def _print_sections(name: str) -> None:
    settings, own = Settings.load(os.environ), own_sites()
    wanted = [by_name(name)] if name else [own.sites[each] for each in own.sites if each not in own.replaced]
    if not wanted:
        sys.stderr.write("lanes sites: there is no own Site that needs a section. `lanes site new` writes one.\n")
    print("\n".join(section(site, settings) for site in wanted), end="")


def section(site: Site, settings: Settings) -> str:
    """The section that runs the Lane of a Site, and the scrape target as a comment."""
    lanes, logs = _places(site, settings)
    shipped = any(each.name == site.name for each in SITES)
    return SECTION.format(
        name=site.name,
        keep="It belongs into supervisord.conf" if shipped else f"Keep this file as var/sites/{site.name}.conf",
        bind=settings.metrics_bind,
        port=settings.metrics_port_of(f"lane-{site.name}", site.number),
        lanes=lanes,
        autostart="" if site.starts else "autostart = false\n",
        logs=logs,
    )


def _places(site: Site, settings: Settings) -> tuple[str, str]:
    """The program and the directory of its log, as supervisord reads them in the file for which the section is meant: `here` is where
    that is.  The logs of a tree are all in one place, wherever its data is."""
    lanes = shlex.quote(str(Path(sys.executable).parent / "lanes")).replace("%", "%%")
    if checkout() is None:
        return lanes, str(settings.data_dir.absolute() / "log").replace(
            "%", "%%%%"
        )  # supervisord expands that one twice
    if any(each.name == site.name for each in SITES):
        return "%(here)s/.venv/bin/lanes", "%(here)s/var/log"
    return lanes, "%(here)s/../log"


def _print(asked: Namespace) -> None:
    followed, away = _followed()
    if asked.json:
        print_json([_row(site, followed) for site in sites()])
        return
    print_table(
        ("SITE", "READ", "REST", "GAP", "STARTED", "FOLLOWED", "SURE", "AS OF", "WHOSE", "FROM"),
        (
            (
                f"{site.name} (experimental)" if site.experimental else site.name,
                "by browser" if site.browser else "plainly",
                f"up to {duration(site.rest)}" if site.many_hosts else duration(site.rest),
                duration(site.gap),
                "yes" if site.starts else "not by default",
                "?" if followed is None else _count(site, followed),
                site.evidence.certainty.value if site.evidence else "-",
                site.evidence.month if site.evidence else "-",
                _whose(site),
                site.evidence.source if site.evidence else "",
            )
            for site in sites()
        ),
        cut=("FROM",),
        drop=("FROM", "AS OF", "STARTED", "REST"),
    )
    if away is not None:
        sys.stderr.write(f"lanes sites: what is followed is not known. {away}\n")


def _followed() -> tuple[dict[str, FollowedThere] | None, str | None]:
    """What is followed, or why that is not known: the registry is shown without a database too."""
    try:
        with open_store() as store:
            return store.asking.followed(), None
    except DatabaseAway as away:
        return None, str(away)


def _count(site: Site, followed: dict[str, FollowedThere]) -> int:
    return followed[site.name].series if site.name in followed else 0


def _whose(site: Site) -> str:
    own = own_sites()
    if site.name not in own.sites:
        return "shipped"
    words = "yours, instead of the shipped one" if site.name in own.replaced else "yours"
    return f"{words} ({clean(own.distributions[site.name])})"


def _row(site: Site, followed: dict[str, FollowedThere] | None) -> dict[str, object]:
    own = own_sites()
    return {
        "site": site.name,
        "rest": site.rest,
        "gap": site.gap,
        "slots": site.slots,
        "browser": site.browser,
        "many_hosts": site.many_hosts,
        "hosts": site.hosts,
        "feed": site.feed,
        "starts": site.starts,
        "experimental": site.experimental,
        "evidence": site.evidence,
        "example": site.example or None,
        "followed": None if followed is None else _count(site, followed),
        "own": own.distributions.get(site.name),
        "replaces_the_shipped": site.name in own.replaced,
    }
