"""Which plug-ins every test may use; a fixture lives in the `fix_*.py` of its subject."""

import pytest
from hypothesis import settings

pytest_plugins = (
    "tests.fix_database",
    "tests.fix_smallnet",
    "tests.fix_lane",
    "tests.fix_browser",
    "tests.fix_chromium",
    "tests.fix_own",
)

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")  # no test fails because its machine is busy


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--histories", type=int, default=8, help="how many random histories the state machine goes through"
    )
