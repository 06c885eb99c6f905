"""Fixtures: the small internet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.smallnet import Smallnet


@pytest.fixture
def net() -> Iterator[Smallnet]:
    """A small internet of this test's own, with no host yet but the anchor."""
    with Smallnet() as net:
        yield net
