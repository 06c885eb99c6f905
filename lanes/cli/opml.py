"""The feeds of an OPML file.

Owns reading one.  Refuses to own: whether a URL in it can be followed.  Must never break: no entity is expanded and nothing outside the
file is read; a broken file is an error with its line.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.parsers import expat

from lanes.errors import LanesError

LONGEST = 64 << 20
"""Bytes of a file: 5,000 feeds take 1 MB, and expat's time grows with the square of one long token."""


class BadOpml(LanesError):
    """The file cannot be read as OPML."""

    def __init__(self, name: str, line: int, why: str) -> None:
        super().__init__(f"{name}, line {line}: {why}")


@dataclass(frozen=True, slots=True)
class Outline:
    """One feed: its URL as written, its title ("" where there is none), and the line it begins on."""

    url: str
    title: str
    line: int


def read(name: str, document: bytes) -> tuple[Outline, ...]:
    """Every outline that has a feed's URL, however deep it is nested, in the file's order.  Raises BadOpml."""
    if len(document) > LONGEST:
        raise BadOpml(name, 1, f"it is longer than {LONGEST >> 20} MiB, as no OPML is.")
    found: list[Outline] = []
    parser = expat.ParserCreate()
    seen: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if not seen and tag.lower() != "opml":
            raise BadOpml(name, parser.CurrentLineNumber, f"this is no OPML: it begins with <{tag[:40]}>.")
        seen[:] = [tag]
        named = {key.lower(): value.strip() for key, value in attributes.items()}
        url = named.get("xmlurl") or (named.get("url") if named.get("type", "").lower() in ("rss", "atom") else None)
        if tag.lower() == "outline" and url:
            found.append(Outline(url, named.get("title") or named.get("text") or "", parser.CurrentLineNumber))

    def declare(*_: object) -> None:
        raise BadOpml(name, parser.CurrentLineNumber, "it declares entities, which no OPML needs.")

    parser.StartElementHandler = start
    parser.EntityDeclHandler = declare
    try:
        parser.Parse(document, True)
    except expat.ExpatError as error:
        raise BadOpml(name, error.lineno, f"{expat.errors.messages[error.code]}.") from None
    except (
        LookupError,
        ValueError,
    ):  # what expat raises for an encoding that Python lacks, or that is no single-byte one
        raise BadOpml(name, 1, "its encoding cannot be read here: save it as UTF-8.") from None
    return tuple(found)
