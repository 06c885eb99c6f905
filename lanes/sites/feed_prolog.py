"""What stands before the first element of a document: declaration, comments, DOCTYPE with its entities, and the root's name.

Owns telling a feed from a web page by its root, and the expansion of entities.  Refuses to own: parsing.  Must never break: no entity
reaches outside the document, and all of them together expand within a budget (DESIGN 6, CASES G3).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from html.entities import html5
from typing import Literal
from xml.sax.saxutils import escape

Root = Literal["rss", "rdf", "feed"]

ENTITY_LENGTH = 1_000
"""Characters one declared entity may expand to: honest ones are a letter or a company name."""

EXPANSION_BUDGET = 1 << 20
"""Characters all references of a document may add."""

# Each pattern ends at the end of the text where its closing mark is missing: trying again from every opening mark would be quadratic.
_MISC = re.compile(r"\s+|<\?.*?(?:\?>|\Z)|<!--.*?(?:-->|\Z)", re.DOTALL)
_DOCTYPE = re.compile(r"<!DOCTYPE", re.IGNORECASE)
_DOCTYPE_PART = re.compile(r"""<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|"[^"]*(?:"|\Z)|'[^']*(?:'|\Z)|[\[\]>]""", re.DOTALL)
_ENTITY = re.compile(r"""<!ENTITY\s+([A-Za-z_][\w.-]*)\s+(?:"([^"]*)"|'([^']*)')\s*>""")
_REFERENCE = re.compile(r"<!\[CDATA\[.*?(?:\]\]>|\Z)|&([A-Za-z_][\w.-]*);", re.DOTALL)
_NAME = re.compile(r"<([A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)(?=[\s/>])")
_FEED_ROOT = re.compile(r"<(?:[A-Za-z_][\w.-]*:)?(rss|rdf|feed)(?=[\s>])", re.IGNORECASE)
_PREDEFINED = frozenset({"lt", "gt", "amp", "quot", "apos"})
_MARKUP = frozenset("<>&\"'")
_FEEDS: dict[str, Root] = {"rss": "rss", "rdf": "rdf", "feed": "feed"}
_PAGES = frozenset({"html", "head", "body", "title", "meta", "script"})
_JUNK = 8_192
_NESTING = 20


class EntityBomb(ValueError):
    """The entities of a document expand past the budget, or into each other without end."""


def _past_misc(text: str, at: int) -> int:
    while found := _MISC.match(text, at):
        at = found.end()
    return at


def _doctype_end(text: str, start: int) -> int:
    inside = False
    for part in _DOCTYPE_PART.finditer(text, start):
        if part[0] in "[]":
            inside = part[0] == "["
        elif part[0] == ">" and not inside:
            return part.end()
    return -1


def doctype(text: str) -> tuple[int, int] | None:
    """Where the DOCTYPE stands (start, end), or None.  Unterminated, it ends with the text."""
    start = _past_misc(text, 0)
    if not _DOCTYPE.match(text, start):
        return None
    end = _doctype_end(text, start)
    return start, len(text) if end < 0 else end


def root(text: str) -> tuple[Root | None, str]:
    """Which kind of feed the root element announces, or None, and the root's own lower-case name ("" where there is none).

    Junk before the root (warnings of a program, text) is looked past for 8 KiB, unless the document is a web page.
    """
    where = doctype(text)
    at = _past_misc(text, where[1]) if where else _past_misc(text, 0)
    found = _NAME.match(text, at)
    name = found[2].lower() if found else ""
    if name in _FEEDS:
        return _FEEDS[name], name
    if name in _PAGES or (where and text[where[0] + 9 : where[0] + 40].lstrip()[:4].lower() == "html"):
        return None, "html"
    if later := _FEED_ROOT.search(text, at, at + _JUNK):
        return _FEEDS[later[1].lower()], later[1].lower()
    return None, name


def _expanded(name: str, declared: Mapping[str, str], known: dict[str, str], nesting: int = 0) -> str:
    """The text an entity stands for; each is worked out once, so the cost is that of the declarations."""
    if name in known:
        return known[name]
    if nesting > _NESTING:
        raise EntityBomb(name)

    def inner(reference: re.Match[str]) -> str:
        other = reference[1]
        if other is None or other in _PREDEFINED or other not in declared:
            return reference[0]
        return _expanded(other, declared, known, nesting + 1)

    text = _REFERENCE.sub(inner, declared[name])
    if len(text) > ENTITY_LENGTH:
        raise EntityBomb(name)
    known[name] = text
    return text


def without_entities(text: str) -> str:
    """The document without its DOCTYPE, with declared and HTML entities outside CDATA replaced by what they mean.

    Raises EntityBomb past the budget.  External and parameter entities are dropped unread.
    """
    declared: dict[str, str] = {}
    if where := doctype(text):
        for name, double, single in _ENTITY.findall(text, *where):
            declared.setdefault(name, double or single)
        text = text[: where[0]] + text[where[1] :]
    known: dict[str, str] = {}
    meanings = {name: escape(unescape(_expanded(name, declared, known))) for name in declared}
    left = EXPANSION_BUDGET

    def meaning(reference: re.Match[str]) -> str:
        nonlocal left
        name = reference[1]
        if name is None or name in _PREDEFINED:
            return reference[0]
        found = meanings.get(name)
        if found is None:
            found = html5.get(name + ";", reference[0])
            if _MARKUP.intersection(found):
                return reference[0]
        left -= len(found)
        if left < 0:
            raise EntityBomb(name)
        return found

    text = _REFERENCE.sub(meaning, text) if "&" in text else text
    return re.sub(r"<!(?=ENTITY|DOCTYPE)", "&lt;!", text, flags=re.IGNORECASE)
