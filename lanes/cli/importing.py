"""import: every feed of an OPML file.

Must never break: each outline is accounted for: followed, followed already, twice in the file, or refused with its reason.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

from tqdm import tqdm

from lanes.cli.door import Store, open_store
from lanes.cli.following import wanted
from lanes.cli.opml import Outline, read
from lanes.cli.parser import DONE, USAGE
from lanes.cli.sites import tell_broken
from lanes.cli.spelling import as_followed, identity_of
from lanes.cli.words import clean, counted, masked, print_json
from lanes.errors import BadUrl, LanesError
from lanes.sites import by_name
from lanes.store.following import Wanted, Was

MOST_TOLD = 20  # of a kind in words; --json has all


class NoFile(LanesError):
    """The file cannot be opened."""


def run(asked: Namespace) -> int:
    """Follows what the file names."""
    tell_broken("import")
    name = "standard input" if asked.file == "-" else asked.file
    outlines = read(name, _bytes(asked.file))
    found, repeated, refused = _sorted(outlines)
    with open_store() as store:
        good, taken = _free(store, found)
        refused += taken
        good = as_followed(store.following, good)
        if asked.dry_run:
            was = store.following.stand(good)
        else:
            with tqdm(total=len(good), unit=" Series", disable=None, leave=False) as bar:
                was = tuple(each.was for each in store.following.follow(good, bar.update))
    by_kind = {kind: [each for each, stood in zip(good, was, strict=True) if stood is kind] for kind in Was}
    if asked.json:
        print_json(
            {
                "dry_run": asked.dry_run,
                "outlines": len(outlines),
                **{kind.value: [_row(each) for each in found] for kind, found in by_kind.items()},
                "repeated": [_row(each) for each in repeated],
                "refused": [{"line": outline.line, "title": outline.title, "why": why} for outline, why in refused],
            }
        )
        return USAGE if refused else DONE
    would = "would be" if asked.dry_run else "are"
    print(f"{counted(len(outlines), 'outline')} with a feed in {name}.")
    print(f"{counted(len(by_kind[Was.NEW]), 'Series')} {would} followed from now on.")
    if by_kind[Was.KNOWN]:
        print(f"{counted(len(by_kind[Was.KNOWN]), 'Series')} {would} bookmarked again.")
    _tell("Followed already", [masked(each.url) for each in by_kind[Was.FOLLOWED]])
    _tell("In the file more than once", [masked(each.url) for each in repeated])
    _tell("Cannot be followed", [f"line {outline.line}: {why}" for outline, why in refused])
    return USAGE if refused else DONE


def follow_file(store: Store, path: Path) -> int:
    """Follows what an OPML file names, in silence; how many Series."""
    found, _, _ = _sorted(read(str(path), path.read_bytes()))
    return len(store.following.follow(as_followed(store.following, [each for each, _ in found])))


def _bytes(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise NoFile(f"{file} cannot be read: {error.strerror}.") from None


def _free(store: Store, found: list[tuple[Wanted, Outline]]) -> tuple[list[Wanted], list[tuple[Outline, str]]]:
    """What can be followed because its host is no other Site's, and what is refused."""
    taken = store.following.taken([each for each, _ in found])
    refused = [(outline, taken[each.host]) for each, outline in found if each.host in taken]
    return [each for each, _ in found if each.host not in taken], refused


def _sorted(
    outlines: Iterable[Outline],
) -> tuple[list[tuple[Wanted, Outline]], list[Wanted], list[tuple[Outline, str]]]:
    """What can be followed, what repeats an earlier outline, and what is refused, with the reason."""
    good: dict[tuple[str, str], tuple[Wanted, Outline]] = {}
    repeated, refused = [], []
    for outline in outlines:
        try:
            found = wanted(outline.url, outline.title or None)
        except BadUrl as error:
            refused.append((outline, str(error)))
            continue
        identity = found.site, identity_of(by_name(found.site), found.url)
        if identity in good:
            repeated.append(found)
        else:
            good[identity] = (found, outline)
    return list(good.values()), repeated, refused


def _row(each: Wanted) -> dict[str, str | None]:
    return {"site": each.site, "title": each.title, "url": masked(each.url)}


def _tell(what: str, lines: list[str]) -> None:
    if lines:
        print(f"{what}: {len(lines):,}")
    for line in lines[:MOST_TOLD]:
        print(f"  {clean(line)}")
    if len(lines) > MOST_TOLD:
        print(f"  ... and {len(lines) - MOST_TOLD:,} more; --json lists all")
