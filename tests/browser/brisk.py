"""`python -m tests.browser.brisk PAGES`: the sidecar, with its Chrome started afresh after so many pages."""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import replace

from browser_sidecar.sidecar import RHYTHM, browser_of, serve
from lanes.settings import Settings


def main() -> int:
    logging.basicConfig(level="DEBUG", format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    settings = Settings.load(os.environ)
    rhythm = replace(RHYTHM, pages=int(sys.argv[1]), weigh=1.0)
    return serve(settings, browser_of(settings, settings.user_agent()), rhythm)


if __name__ == "__main__":
    sys.exit(main())
