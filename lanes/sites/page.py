"""HTML pages as a small tree, for the Sites that read them.

Owns parsing, and finding elements by tag, class and id.  Refuses to own: what a page means.  Must never break: no bytes raise, and the cost
of a page is bounded: its bytes, its depth and its elements are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from lanes.core.chapters import NotRecognised
from lanes.sites import feed_text
from lanes.sites.feed_bytes import to_utf8

PAGE: Final = 4 << 20
"""Bytes of a page that are looked at: the longest list seen has 2,000 rows of 1 KiB, twice."""
DEPTH: Final = 100
"""Levels of nesting that are kept apart: pages seen have 30.  What is deeper counts as if it stood at this depth."""
DEEPEST: Final = 256
"""Open elements at which a page ends: the parser looks through all of them for each end that closes none."""
PARTS: Final = 200_000
"""Elements and texts that are kept: 2,000 rows of 20 are a fifth of it."""
ATTRIBUTES: Final = 50
"""Attributes of one element that are kept."""
_CHUNK: Final = 8 << 10
"""Bytes that the parser is given at a time: it stops for what is too much only between two of them."""
START: Final = 200
"""Characters of what was not recognised that are kept for the owner (CASES D6)."""


@dataclass(slots=True)
class Element:
    """One element.  `inside` are its texts and elements, in order."""

    tag: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    inside: list[Element | str] = field(default_factory=list)

    def get(self, name: str) -> str:
        """An attribute, "" where there is none."""
        return self.attributes.get(name, "")

    def each(self, tag: str = "", *, cls: str = "", ident: str = "") -> Iterator[Element]:
        """The elements inside, at any depth, that have this tag, all of these classes and this id, in page order.

        What stands inside one of them is a part of it, and no other of them: so a reader of each looks at every part of a page once,
        however the page nests them.
        """
        left = [self]
        while left:
            found = left.pop()
            if found is not self and found.matches(tag, cls, ident):
                yield found
            else:
                left.extend(part for part in reversed(found.inside) if isinstance(part, Element))

    def elements(self) -> Iterator[Element]:
        """All elements inside, at any depth, in page order."""
        left = [self]
        while left:
            found = left.pop()
            if found is not self:
                yield found
            left.extend(part for part in reversed(found.inside) if isinstance(part, Element))

    def first(self, tag: str = "", *, cls: str = "", ident: str = "") -> Element | None:
        """The first of `each`."""
        return next(self.each(tag, cls=cls, ident=ident), None)

    @property
    def source(self) -> str:
        """All text inside as it stands, that of scripts and styles too."""
        parts: list[str] = []
        left: list[Element | str] = [self]
        while left:
            part = left.pop()
            if isinstance(part, str):
                parts.append(part)
            else:
                left.extend(reversed(part.inside))
        return "".join(parts)

    @property
    def text(self) -> str:
        """All text inside as one line, as much as a title may have."""
        return feed_text.title(self.source, markup=False)

    def matches(self, tag: str, cls: str, ident: str) -> bool:
        """Whether it has this tag, all of these classes and this id; "" is any."""
        return (
            (not tag or self.tag == tag)
            and (not cls or set(cls.split()).issubset(self.get("class").split()))
            and (not ident or self.get("id") == ident)
        )


class _Enough(Exception):
    """The page has more parts, or more of them inside one another, than are looked at."""


class _Tree:
    """What the parser tells of a page, made a tree."""

    def __init__(self) -> None:
        self.root = Element("")
        self._open = [self.root]
        self._deeper = self._parts = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._count()
        if len(self._open) > DEPTH:
            self._deeper += 1
            if self._deeper > DEEPEST - DEPTH:
                raise _Enough
            return
        child = Element(tag, dict(islice(attributes.items(), ATTRIBUTES)))
        self._open[-1].inside.append(child)
        self._open.append(child)

    def end(self, _tag: str) -> None:
        if self._deeper:
            self._deeper -= 1
        elif len(self._open) > 1:
            self._open.pop()

    def data(self, text: str) -> None:
        self._count()
        self._open[-1].inside.append(text)

    def close(self) -> None:
        """The parser asks for it."""

    def _count(self) -> None:
        self._parts += 1
        if self._parts > PARTS:
            raise _Enough


def text_of_page(body: bytes, content_type: str | None) -> str:
    """The page as text, whole."""
    return to_utf8(body, content_type).decode("utf-8", "replace")


def parse(text: str) -> Element:
    """The tree of a page, as far as it is looked at; its root has no tag, and nothing inside where there is nothing to be found."""
    from lxml import etree  # noqa: PLC0415 - with the first page: a Lane that reads feeds or JSON does without its 5 MiB

    tree = _Tree()
    parser: Any = etree.HTMLParser(target=tree, encoding="utf-8", no_network=True)
    try:
        page = text[:PAGE].encode("utf-8", "replace")[:PAGE].replace(b"\0", b"")
        for start in range(0, len(page), _CHUNK):
            parser.feed(page[start : start + _CHUNK])
        parser.close()
    except (_Enough, etree.LxmlError, ValueError, AssertionError):
        pass  # what came before it counts
    return tree.root


def not_recognised(reason: str, text: str, kind: str = "not recognised") -> NotRecognised:
    """A page that is no document of its Site, with its beginning."""
    return NotRecognised(reason, feed_text.line(text[: START * 4])[:START], kind)
