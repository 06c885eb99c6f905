"""The command as its owner types it, on a test's own database."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lanes.cli import main

Said = tuple[int, str, str]
Lanes = Callable[..., Said]


@pytest.fixture
def lanes(database_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Lanes:
    """Runs one command on this test's database: exit code, standard output, standard error."""
    monkeypatch.setenv("LANES_DATABASE_URL", database_url)

    def run(*argv: str) -> Said:
        code = main(argv)
        out, err = capsys.readouterr()
        return code, out, err

    return run
