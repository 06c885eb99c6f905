"""How the text and the links of a feed are cleaned: one function each, shared by every reader.

Owns titles, identities as text, and links.  Refuses to own: finding them in a document.  Must never break: cleaning what was
already cleaned changes nothing but one layer of escaping, so that the fast and the tolerant reader end at the same text.
"""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urljoin, urlsplit

MAX_TITLE = 1_000
"""Characters of a title that are kept: the longest honest one seen is a few hundred (CASES: gigantic titles)."""

MAX_URL = 4_096
"""Characters of a URL; a longer one is no link.  Servers commonly refuse more than 8,000, and 2,000 is already rare."""

MAX_LAYERS = 10
"""Layers of escaping that a link is freed of; one under more is no link.  Publishers put up to three."""

INLINE = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "ins",
    "kbd", "mark", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub", "sup",
    "time", "tt", "u", "var", "wbr",
})  # fmt: skip
"""HTML elements that join the text around them; all other elements part it."""

BLOCK = frozenset({
    "address", "article", "aside", "blockquote", "br", "center", "dd", "div", "dl", "dt", "figcaption",
    "figure", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "img", "li", "main", "nav", "ol",
    "p", "pre", "section", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
})  # fmt: skip

# INLINE and BLOCK are what is taken for markup in a title: a closed list, because serials have titles such as "The <System> Awakens".

_TAG = re.compile(
    r"<!--.*?(?:-->|\Z)|</?(?:(" + "|".join(sorted(INLINE)) + ")|" + "|".join(sorted(BLOCK)) + r")(?:\s[^<>]*)?/?>",
    re.IGNORECASE | re.DOTALL,
)
_UNSTORABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_STRAY_REFERENCE = re.compile(r"&([A-Za-z0-9_]+);")
_EXTRA_SLASHES = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)/+")


_ORDINARY_LINK = re.compile(
    r"https?://[a-zA-Z0-9.-]+(?::[0-9]{1,5})?/[\w.~!$'()*+,/:=@%-]*(?:\?[\w.~!$'()*+,/:=@%&-]+)?(?:#[\w.~!$'()*+,/:=@%&-]+)?",
    re.ASCII,
)
"""Links that cleaning and resolving leave as they are; most are, and a match costs a tenth of parsing."""


def _windows_1252() -> dict[int, str]:
    table = {}
    for code in range(0x80, 0xA0):
        try:
            table[code] = bytes([code]).decode("cp1252")
        except UnicodeDecodeError:
            continue
    return table


_WINDOWS_1252 = _windows_1252()


def mend(text: str) -> str:
    """Stripped text with two common faults of encoding undone: UTF-8 read as Latin-1, and Windows-1252 read as Latin-1.

    Repeated until nothing changes, so that it does not matter how often a parser underneath has done it.
    """
    text = text.strip()
    while not text.isascii():
        try:
            better = text.encode("latin-1").decode("utf-8")
        except UnicodeError:
            better = text
        better = better.translate(_WINDOWS_1252).strip()
        if better == text:
            break
        text = better
    return text


def line(text: str) -> str:
    """One storable line: no control characters, NUL or lone surrogates (CASES C8), white space collapsed."""
    return " ".join(_UNSTORABLE.sub("", text).split())


def title(raw: str, *, markup: bool) -> str:
    """A title as plain text.  `markup`: it is HTML, so its tags go and one layer of entities is decoded, once.

    Every RSS title counts as HTML: publishers escape them twice (SITES 11).  An Atom title says what it is.
    """
    text = mend(raw[: MAX_TITLE * 20])
    if markup:
        if "<" in text:
            text = _TAG.sub(lambda tag: "" if tag[1] or tag[0].startswith("<!") else " ", text)
        if "&" in text:
            text = unescape(text)
    return line(text)[:MAX_TITLE].rstrip()


def guid(raw: str) -> str | None:
    """A publisher's identity: verbatim and case-sensitive (CASES F5), only stripped and made storable."""
    return _UNSTORABLE.sub("", mend(raw)).strip() or None


def join(base: str, href: str) -> str:
    """`href` seen from `base`, which may be "".  Raises ValueError for what no URL parser takes."""
    return urljoin(base, _EXTRA_SLASHES.sub(r"\1", href))


def link(raw: str, base: str) -> str | None:
    """An absolute http(s) URL, or None.  Undoes `&amp;` and stray references in queries, as publishers write them."""
    raw = raw.strip()
    if len(raw) <= MAX_URL and _ORDINARY_LINK.fullmatch(raw):
        return raw
    if len(raw) > MAX_URL * MAX_LAYERS:
        return None
    href, before = _BREAKS.sub("", mend(raw)), ""
    for _ in range(MAX_LAYERS):  # to its end, since a parser underneath may have done it once
        href, before = _STRAY_REFERENCE.sub(r"&\1", href.replace("&amp;", "&")), href
        if href == before:
            break
    if not href or href != before:
        return None
    try:
        url = join(base, href)
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and len(url) <= MAX_URL
    except ValueError:
        return None
    return (parts.scheme + url[len(parts.scheme) :]).replace(" ", "%20") if usable else None
