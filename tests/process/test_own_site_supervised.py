"""A Site of the owner's own, from its installation to its first Chapter, without a line of this repository changed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.fix_lane import Owner
from tests.own_sites import install, sound
from tests.process.fix_supervisor import ROOT, Supervised
from tests.smallnet import Smallnet
from tests.waiting import until


@pytest.fixture
def place() -> Iterator[Path]:
    """A place that root's server may enter."""
    place = Path(tempfile.mkdtemp(prefix="lanes-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place, ignore_errors=True)


def test_the_printed_section_is_included_and_its_lane_polls(net: Smallnet, place: Path) -> None:
    host = net.host("127.1.0.9")
    host.page("/12", "The Ferry", "text/plain")
    own = place / "own"
    own.mkdir()
    install(own, "inn", sound("inn", host.address))
    supervised = Supervised(place, PYTHONPATH=f"{ROOT}:{own}")
    try:
        supervised.pid("lane-feeds")  # started without any file to include
        until(lambda: supervised.states().get("migrate", ("",))[0] == "EXITED", supervised.told)
        assert "lane-inn" not in supervised.states()
        (place / "var" / "sites").mkdir()
        (place / "var" / "sites" / "own.conf").write_text(supervised.lanes("sites", "--supervisord"), encoding="utf-8")
        supervised.ctl("update")
        supervised.pid("lane-inn")
        supervised.says("lane-inn", "this is an own Site site=inn of=my-sites 1.5 replaces=False")
        with closing(Owner(supervised.database_url)) as owner:
            assert "(inn)" in supervised.lanes("add", host.url("/12"))
            owner.wait_for("SELECT FROM lanes.chapters WHERE title = 'The Ferry'")
        assert "there" in supervised.lanes("sites", "verify", "inn", "--wait", "40")
    finally:
        supervised.stop()
