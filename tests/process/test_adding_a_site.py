"""docs/adding-a-site.md shows what is: its code is the Site's own, and its commands print what stands under them."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from lanes.cli.parser import parse
from tests.fix_own import Own, pip_installs, the_lanes

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "adding-a-site.md").read_text(encoding="utf-8")
MODULE: Final = (ROOT / "lanes" / "sites" / "royalroad.py").read_text(encoding="utf-8")
CODE: Final = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS: Final = [
    (command.partition("  #")[0].strip(), printed)
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for command, printed in re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", block, re.MULTILINE)
]
"""Each with what is printed under it."""
TRIED: Final = [(command, printed) for command, printed in COMMANDS if command.startswith("lanes try royalroad")]


def body_of(name: str) -> str:
    """What a function of the Site does, as it is spoken without its comments."""
    found = next(each for each in ast.parse(MODULE).body if isinstance(each, ast.FunctionDef) and each.name == name)
    return ast.unparse(ast.Module(found.body, []))


def as_body(code: str) -> str:
    """The same of statements as the page shows them, a function's head left out."""
    inside = "".join(f"    {line}" for line in code.splitlines(keepends=True))
    (whole,) = ast.parse(f"def shown():\n{inside}").body
    assert isinstance(whole, ast.FunctionDef)
    first = whole.body[0]
    return ast.unparse(ast.Module(first.body if isinstance(first, ast.FunctionDef) else whole.body, []))


def test_the_code_of_the_page_is_what_the_site_does() -> None:
    recognised, paced = CODE
    assert recognised.startswith("def _place(asked: Pasted) -> str:\n")
    assert as_body(recognised) == body_of("_place")
    assert as_body(paced) == body_of("site")


@pytest.mark.parametrize(("command", "printed"), TRIED, ids=["a fiction", "one that is gone"])
def test_what_a_reader_sees_stands_under_its_command(own: Own, command: str, printed: str) -> None:
    """The end of a line may be left out."""
    argv = [str(ROOT / word) if word.startswith("tests/") else word for word in shlex.split(command)[1:]]
    _, out, err = the_lanes(own, *argv)
    assert err == ""
    lines, shown = out.splitlines(), printed.splitlines()
    assert len(lines) == len(shown)
    for line, show in zip(lines, shown, strict=True):
        assert line.startswith(show.removesuffix(" ...")), show
        assert line == show or show.endswith(" ...")


def test_a_site_of_the_owners_own_begins_as_the_page_says(own: Own, tmp_path: Path) -> None:
    (new, written), (_, _), (tried, printed), *_ = [each for each in COMMANDS if "lantern" in each[0]]
    code, out, err = the_lanes(own, *shlex.split(new)[1:])
    assert (code, err) == (0, "")
    assert out.splitlines()[: len(written.splitlines())] == written.splitlines()
    assert pip_installs(own, tmp_path, tmp_path / "lanes-site-lantern").returncode == 0
    assert the_lanes(own, *shlex.split(tried)[1:]) == (0, printed, "")


def test_every_command_of_the_page_is_one_that_lanes_takes() -> None:
    said = [command for command, _ in COMMANDS if command.startswith("lanes ")]
    assert len(said) >= 6
    for command in said:
        assert parse(shlex.split(command.partition(" > ")[0])[1:]).run, command
