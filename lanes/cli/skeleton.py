"""site new: a Site of the owner's own as a small directory that can be installed, and works at once.

Owns what is written there (`site_skeleton/`).  Refuses to own: what a Site is (`lanes.sites.site`) and what may be one (`lanes.sites.own`).
Must never break: nothing that exists is written over.
"""

from __future__ import annotations

import shlex
import sys
from argparse import Namespace
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template

from lanes.cli.parser import DONE, NotMeant
from lanes.core.urls import Parts, split
from lanes.errors import BadUrl
from lanes.sites import FEEDS, SITES, Site, site_of
from lanes.sites.urls import canonical


def new(asked: Namespace) -> int:
    """Writes the skeleton, and says what to do with it."""
    url = canonical(asked.url)
    parts = split(url)
    if parts is None:
        raise BadUrl(asked.url, "nobody can be asked by it.")
    _check(asked.name, parts)
    place = Path(asked.into or f"lanes-site-{asked.name}")
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise NotMeant(f"{place} exists already, and nothing is written over: name another place with --into.")
    replaced = _shipped(asked.name)
    words = _words(asked.name, asked.kind, url, parts, () if replaced is None else replaced.hosts)
    place.mkdir(parents=True, exist_ok=True)
    for name, template in _files(asked.kind, words, replaces=replaced is not None).items():
        (place / name).write_text(_filled(template, words), encoding="utf-8")
        print(f"wrote {place / name}")
    bin_ = words["bin"]
    print(f"\nIt works at once, on a sample of ours:\n  {bin_}/pip install --editable {shlex.quote(str(place))}")
    print(f"  {bin_}/lanes try {asked.name} {shlex.quote(str(place / words['sample']))}")
    print(f"Make it right for the real answers as {place / 'README.md'} says.")
    return DONE


def _check(name: str, parts: Parts) -> None:
    if name == FEEDS.name:
        raise NotMeant("`feeds` has every host that no other Site has, and cannot be replaced: choose another name.")
    theirs = site_of(parts.host)
    if theirs.name not in (FEEDS.name, name):
        raise NotMeant(f"{parts.host} belongs to the Site {theirs.name}: to replace that one, take its name.")
    if _shipped(name) is not None:
        sys.stderr.write(f"lanes site: once installed it replaces the shipped Site {name}, and has its Series.\n")


def _shipped(name: str) -> Site | None:
    """The shipped Site that one of this name replaces."""
    return next((site for site in SITES if site.name == name), None)


def _words(name: str, kind: str, url: str, parts: Parts, before: tuple[str, ...]) -> dict[str, str]:
    """What is filled in; `before` are the hosts of the Site that it replaces, where Series of it are."""
    suffix = "xml" if kind == "feed" else "html"
    browser = kind == "browser"
    return {
        "name": name,
        "module": f"lanes_site_{name.replace('-', '_')}",
        "url": repr(url),
        "quoted": shlex.quote(url),
        "origin": repr(parts.origin),
        "hosts": repr(tuple(dict.fromkeys((*before, *_hosts(parts.host))))),
        "imports": "Rendering, Site" if browser else "Site",
        "rendering": '\n    rendering=Rendering(landmark="ol.chapters"),  # TO FILL IN: what the tab waits for'
        if browser
        else "",
        "suffix": suffix,
        "sample": f"sample.{suffix}",
        "bin": str(Path(sys.executable).parent),
    }


def _hosts(host: str) -> tuple[str, ...]:
    """With and without www, where that can be."""
    if "." not in host or host.replace(".", "").isdigit() or ":" in host:
        return (host,)
    return (host, host.removeprefix("www.") if host.startswith("www.") else f"www.{host}")


def _files(kind: str, words: Mapping[str, str], *, replaces: bool) -> dict[str, str]:
    """Each file, and the template that it is made of."""
    module = words["module"]
    return {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README_replacing.md" if replaces else "README.md",
        f"{module}.py": "feed.py" if kind == "feed" else "page.py",
        f"test_{module}.py": "test.py",
        words["sample"]: words["sample"],
    }


def _filled(name: str, words: Mapping[str, str]) -> str:
    template = files("lanes.cli").joinpath("site_skeleton", f"{name}.txt")
    return Template(template.read_text(encoding="utf-8")).substitute(words)
