"""From bytes to UTF-8: which encoding a document is really in.

Owns that choice.  Refuses to own: what the text says.  Must never break: a document that reads as UTF-8 is UTF-8, whatever its header
or its own declaration claims (CASES G1); nothing here raises.
"""

from __future__ import annotations

import codecs
import re

_DECLARED = re.compile(rb"""^<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE)

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_FIRST_BYTES = (
    (b"<\0\0\0", "utf-32-le"),
    (b"\0\0\0<", "utf-32-be"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
    (b"{\0", "utf-16-le"),
    (b"\0{", "utf-16-be"),
    (b"\x4c\x6f\xa7\x94", "cp037"),
)
"""How "<" (or "{") looks in encodings that do not contain ASCII (XML 1.0, appendix F)."""

_TEXTUAL = re.compile(
    r"utf-(8|16|32)(-le|-be)?|ascii|iso8859-\d+|cp\d+|koi8-[rtu]|gb18030|gbk|gb2312|hz|big5(hkscs)?|euc_\w+|shift_jis\w*|iso2022_\w+"
    r"|johab|mac-\w+|tis-620|kz1048|ptcp154"
)
"""Codecs that a document may ask for: Python knows others (punycode, unicode_escape) that are slow or mean something else."""

_BETTER = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
"""The superset that is meant when the smaller encoding is named (WHATWG Encoding Standard)."""

_SHIFTING = frozenset(
    {"hz", "iso2022_jp", "iso2022_jp_1", "iso2022_jp_2", "iso2022_jp_3", "iso2022_jp_ext", "iso2022_kr"}
)
"""Encodings whose bytes look like ASCII: they are believed when named."""

_EAST_ASIAN = frozenset({"gb18030", "big5", "big5hkscs", "cp932", "cp949", "euc_jp", "johab"})
_LAST_OF_TWO_BYTES = "\u07ff"

_SLICE = 1 << 16


def _codec(name: str | None) -> str | None:
    if not name:
        return None
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    return _BETTER.get(found, found) if _TEXTUAL.fullmatch(found) else None


def _reads_as_utf8(body: bytes) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(body), _SLICE):
            decoder.decode(body[start : start + _SLICE])
        decoder.decode(b"", True)
    except UnicodeDecodeError:
        return False
    return True


def _by_chance(body: bytes, declared: str | None) -> bool:
    """True when a document that declares an East Asian encoding reads as UTF-8 by chance: a few of its pairs do, but no ideograph."""
    return declared in _EAST_ASIAN and not body.isascii() and max(body.decode()) <= _LAST_OF_TWO_BYTES


def _guess(body: bytes, named: list[str]) -> str:
    """The text of bytes that are not UTF-8: what was named, else UTF-8 with a few broken characters, else Windows-1252."""
    for codec in named:
        if codec != "utf-8":
            try:
                return body.decode(codec)
            except UnicodeDecodeError:
                continue
    text = body.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    if broken * 4 <= len(text) - len(text.encode("ascii", "ignore")):
        return text
    return body.decode("cp1252", "replace")


def to_utf8(body: bytes, content_type: str | None) -> bytes:
    """The document as UTF-8, without byte order mark or leading white space; the very same bytes where they already are that."""
    for mark, codec in _MARKS:
        if body.startswith(mark):
            rest = body[len(mark) :]
            if codec == "utf-8" and _reads_as_utf8(rest):
                return rest.lstrip()
            return rest.decode(codec, "replace").encode().lstrip()
    for first, codec in _FIRST_BYTES:
        if body.startswith(first):
            return body.decode(codec, "replace").encode("utf-8", "replace").lstrip()
    body = body.lstrip()
    declared = _DECLARED.match(body[:512])
    header = _CHARSET.search(content_type or "")
    own = _codec(declared[1].decode() if declared else None)
    named = [codec for codec in (own, _codec(header[1] if header else None)) if codec]
    if not (_SHIFTING & set(named)) and _reads_as_utf8(body) and not _by_chance(body, own):
        return body
    return _guess(body, named).encode("utf-8", "replace").lstrip()
