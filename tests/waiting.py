"""Waiting for what must come: by its own sign, never by time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

LOOK_AGAIN = 0.02
"""Seconds between two looks."""


def until(
    condition: Callable[[], Any], what: Callable[[], str] = lambda: "it never was so", timeout: float = 30.0
) -> Any:
    """The first true value of a condition.  Raises: AssertionError with what was seen."""
    deadline = time.monotonic() + timeout
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what()}")
        time.sleep(LOOK_AGAIN)
    return found
