"""The `browser-sidecar` command.

Owns the process that serves browser pages, once a registered Site needs one.  Refuses to own: anything a Lane does.  Must never
break: where no Site needs a browser it says so and ends well, so that a supervisor leaves it alone.
"""

from __future__ import annotations

import argparse
import sys


def main(argv: list[str] | None = None) -> int:
    """Say that there is nothing to serve, and exit 0: no registered Site needs a browser yet."""
    parser = argparse.ArgumentParser(
        prog="browser-sidecar",
        description="Owns Chrome and serves pages to the Lanes of Sites that need a browser. No registered Site needs one yet.",
    )
    parser.parse_args(argv)
    sys.stdout.write("No registered Site needs a browser: nothing to serve.\n")
    return 0
