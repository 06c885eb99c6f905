"""A minute of the chaos proof: see `tests.chaos`."""

from __future__ import annotations

from pathlib import Path
from random import SystemRandom

import pytest

from tests.chaos.proof import Plan, prove
from tests.chaos.storm import Often

OFTEN = Often(publish=0.2, weather=0.7, kill=6.0, end=15.0, suspend=12.0, postgres=20.0, terminate=6.0, check_now=0.1)


@pytest.mark.timeout(240)
def test_a_minute_of_chaos_costs_no_chapter_no_notice_and_no_host_its_peace(tmp_path: Path) -> None:
    seed = SystemRandom().randrange(1_000_000)
    outcome = prove(Plan(seed, 60.0, 180, 60, OFTEN, 20.0, 90.0, tmp_path / "events"))
    print(outcome)
    assert not outcome.faults, f"seed {seed}\n{outcome}"
