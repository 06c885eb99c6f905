"""The command `lanes`: arguments in, printed words or JSON out.

Owns the exit codes and how an error is told.  Refuses to own: what any command does; each is imported only when it is asked for, so that
a Lane carries nothing of the others.  Must never break: what the owner can mend is one line that names the thing and the remedy, never
a traceback.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

from lanes.cli.parser import AWAY, FAILED, STOPPED, UNKNOWN, USAGE, NotMeant, parse
from lanes.errors import (
    BadUrl,
    DatabaseAway,
    LanesError,
    SettingsError,
    StoreError,
    UnknownReader,
    UnknownSeries,
    UnknownSite,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; its exit code.  A wrong argument or --help ends in SystemExit, as argparse does it."""
    asked = parse(argv)
    module, _, name = asked.run.partition(":")
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a title in a script that the terminal cannot show
    try:
        code = getattr(import_module(module), name)(asked)
        sys.stdout.flush()
    except LanesError as error:
        sys.stderr.write(f"lanes {asked.command}: {_told(error)}\n")
        if getattr(asked, "json", False):
            print(json.dumps({"error": _told(error)}, ensure_ascii=False))
        return _code(error)
    except KeyboardInterrupt:
        return STOPPED
    except BrokenPipeError:  # `lanes list | head`: nobody reads any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return int(code)


def _told(error: LanesError) -> str:
    if type(error) is DatabaseAway:
        return f"{error}. Start it with `make run`, or name another with LANES_DATABASE_URL."
    return str(error)


def _code(error: LanesError) -> int:
    match error:
        case DatabaseAway():
            return AWAY
        case UnknownReader() | UnknownSeries() | UnknownSite():
            return UNKNOWN
        case SettingsError() | BadUrl() | StoreError() | NotMeant():
            return USAGE
        case _:
            return FAILED
