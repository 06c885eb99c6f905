"""`python -m tests.leap SECONDS`: moves lanes.now() of the database in LANES_TEST_DATABASE_URL that far ahead, as tests do."""

from __future__ import annotations

import os
import sys

import psycopg


def main() -> None:
    """Days pass by this alone."""
    with psycopg.connect(os.environ["LANES_TEST_DATABASE_URL"]) as connection:
        connection.execute(
            "UPDATE lanes.clock SET test_offset = test_offset + make_interval(secs => %s)", (float(sys.argv[1]),)
        )


if __name__ == "__main__":
    main()
