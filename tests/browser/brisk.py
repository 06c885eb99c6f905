"""`python -m tests.browser.brisk PAGES FLAG...`: the sidecar, with a Chrome of these flags that is started afresh after so many pages."""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import replace

from browser_sidecar import chrome
from browser_sidecar.browser import OwnChrome
from browser_sidecar.rhythm import RHYTHM
from browser_sidecar.sidecar import serve
from lanes.fetch.guard import Guard
from lanes.settings import Settings


def main(pages: str, *flags: str) -> int:
    settings = Settings.load(os.environ)
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    chrome.adopt_orphans()
    browser = OwnChrome(Guard(settings.allow_networks), settings.user_agent(), flags=flags)
    return serve(settings, browser, replace(RHYTHM, pages=int(pages), weigh=min(RHYTHM.weigh, float(pages))))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
