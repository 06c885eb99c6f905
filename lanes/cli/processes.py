"""lane, upkeep, postgres, migrate, audit, version."""

from __future__ import annotations

import logging
import os
import sys
import time
from argparse import Namespace

from lanes.cli.parser import DONE, FAILED, USAGE
from lanes.errors import LanesError
from lanes.settings import Settings


def lane(asked: Namespace) -> int:
    """The Lane of a Site, until SIGTERM."""
    from lanes.lane import main  # noqa: PLC0415 - no other process carries a Lane's imports

    return main(_settings(), asked.site)


def upkeep(_: Namespace) -> int:
    """What comes of age, and pruning, until SIGTERM."""
    from lanes.upkeep import main  # noqa: PLC0415

    return main(_settings())


def postgres(_: Namespace) -> int:
    """The embedded server.  USAGE where starting again would not help: supervisord then leaves it alone."""
    from lanes.postgres import run  # noqa: PLC0415

    try:
        return run(_settings())
    except LanesError as error:
        sys.stderr.write(f"lanes postgres: {error}\n")
        return USAGE


def migrate(asked: Namespace) -> int:
    """The schema, brought up to date."""
    from lanes.errors import DatabaseAway  # noqa: PLC0415
    from lanes.store import schema  # noqa: PLC0415

    settings, told = _settings(), ""
    while True:
        try:
            done = schema.migrate(settings.database_url)
        except DatabaseAway as away:
            if not asked.wait:
                raise
            if str(away) != told:
                told = str(away)
                sys.stderr.write(f"lanes migrate: {told}; waiting for it\n")
            time.sleep(schema.POLL_SCHEMA)
        else:
            print("\n".join(f"applied {each}" for each in done) or "The database is up to date.")
            return DONE


def audit(asked: Namespace) -> int:
    """The record's proof; FAILED with the first offence."""
    from lanes.cli.door import open_store  # noqa: PLC0415
    from lanes.cli.words import clean, counted, local, print_json  # noqa: PLC0415
    from lanes.store.audit import audit as prove  # noqa: PLC0415

    with open_store() as store:
        since = None if asked.since is None else store.asking.now() - asked.since
        report = prove(store.database, since)
    if asked.json:
        print_json({"clean": report.clean, **{name: getattr(report, name) for name in report.__slots__}})
        return DONE if report.clean else FAILED
    hosts, addresses = counted(report.hosts, "host"), f"{report.addresses:,} address{'es' * (report.addresses != 1)}"
    seen = f"{counted(report.requests, 'request')} to {hosts} at {addresses}"
    if report.first_offence is None:
        print(f"Clean: {seen}, none of them too early.")
        return DONE
    print(f"First offence: {clean(report.first_offence.words(local))}")
    print(", ".join(f"{kind}: {count:,}" for kind, count in report.offences.items() if count) + f"; among {seen}.")
    return FAILED


def version(asked: Namespace) -> int:
    """The version."""
    from lanes import __version__  # noqa: PLC0415
    from lanes.cli.words import print_json  # noqa: PLC0415

    if asked.json:
        print_json({"version": __version__})
    else:
        print(f"lanes {__version__}")
    return DONE


def _settings() -> Settings:
    """The settings, with the log of a process set up: one event a line, on standard error, where supervisord collects it."""
    settings = Settings.load(os.environ)
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("yoyo").setLevel(logging.WARNING)  # its steps have no names that say anything
    return settings
