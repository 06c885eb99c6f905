"""Fixture: the Chromium of this machine.  Where there is none, what needs it fails when CI is set, and is skipped, loudly, at a desk."""

from __future__ import annotations

import os

import pytest

from browser_sidecar import chrome
from browser_sidecar.chrome import Binary, NotStarted


@pytest.fixture(scope="session")
def binary() -> Binary:
    """The Chromium of this machine."""
    try:
        return chrome.find()
    except NotStarted as error:
        if os.environ.get("CI"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(f"NOT TESTED: {error}")
