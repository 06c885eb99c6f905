"""`python -m bench [WHAT...]`: every bench, or those named."""

from __future__ import annotations

import argparse
import logging

from bench import browser, claims, memory, polls


def main() -> None:
    """Runs what was asked for, one table after another."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measures; see bench/README.md. Nothing here passes or fails."
    )
    parser.add_argument("what", nargs="*", help="polls, claims, memory, browser; default: all")
    parser.add_argument(
        "--hosts", type=int, default=200, help="polls: hosts (default 200: within the idle connections that are kept)"
    )
    parser.add_argument("--feeds", type=int, default=9, help="polls: feeds on each host (default 9)")
    parser.add_argument(
        "--series", type=int, default=1_000_000, help="claims: Series of the large shapes (default 1,000,000)"
    )
    parser.add_argument("--pages", type=int, default=500, help="browser: tiny pages in a row (default 500)")
    asked = parser.parse_args()
    logging.getLogger("yoyo").setLevel(logging.WARNING)
    logging.getLogger("lanes").setLevel(logging.ERROR)
    unknown = set(asked.what) - {"polls", "claims", "memory", "browser"}
    if unknown:
        parser.error(f"there is no bench {', '.join(sorted(unknown))}")
    what = asked.what or ["polls", "claims", "memory", "browser"]
    if "polls" in what:
        polls.main(asked.hosts, asked.feeds)
    if "claims" in what:
        claims.main(asked.series)
    if "memory" in what:
        memory.main()
    if "browser" in what:
        browser.main(asked.pages)


if __name__ == "__main__":
    main()
