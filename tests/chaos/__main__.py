"""`python -m tests.chaos --minutes 10 --series 2000 --hosts 200 --seed 7`: the proof by hand; exits 1 where anything is wrong.

Logs of events and processes are kept beside `--events`.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path

from .proof import Plan, prove
from .storm import Often


def main() -> int:
    """Run it and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Chaos, then calm, then judgement.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--series", type=int, default=2000)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patience", type=float, default=900.0, help="seconds that the calm may take")
    parser.add_argument("--clock", action="store_true", help="the clock jumps, too")
    parser.add_argument("--events", type=Path, help="the log of events (default: a temporary file)")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)  # that Postgres goes away is no news here
    events = asked.events or Path(tempfile.mkdtemp(prefix="lanes-chaos-")) / "events"
    often = Often(
        publish=0.25, weather=200 / asked.hosts, kill=8.0, end=30.0, suspend=20.0, postgres=45.0, terminate=10.0, check_now=0.1,
        clock=20.0 if asked.clock else None,
    )  # fmt: skip
    plan = Plan(asked.seed, 60 * asked.minutes, asked.series, asked.hosts, often, 70.0, asked.patience, events)
    outcome = prove(plan)
    print(outcome)
    print(f"events: {events}")
    return bool(outcome.faults)


if __name__ == "__main__":
    sys.exit(main())
