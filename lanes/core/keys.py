"""The key of a Series: the word by which its owner names it.

Owns how a key is made from what is known of a Series.  Refuses to own: whether it is still free (the store's).  Must never break: a key
never holds a password or a query, and the same URL always gives the same two candidates.
"""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b

from lanes.core.urls import split

LONGEST = 100
_MARK = 6  # characters that tell two Series of one name apart
_SAYS_NOTHING = frozenset({"feed", "feeds", "rss", "atom", "index", "rss2", "xml", "json", "php", "html", "htm", "www"})


def readable(url: str, title: str | None = None) -> str:
    """A key from host and path, without the words that every feed's URL has; from the title where only the query tells it apart.

    Letters, digits and single dashes, 1 to 93 characters: room for `marked`.
    """
    parts = split(url)
    path, _, query = parts.target.partition("?") if parts else ("", "", "")
    words = _words(title) if title and query else []
    if not words and parts:
        said = _words(f"{parts.host} {path}")
        words = [word for word in said if word not in _SAYS_NOTHING] or said
    return "-".join(words)[: LONGEST - _MARK - 1].strip("-") or "series"


def marked(key: str, url: str) -> str:
    """The key where `key` is taken by another Series: a few characters of the URL's hash follow it."""
    return f"{key[: LONGEST - _MARK - 1]}-{blake2b(url.encode('utf-8', 'surrogatepass'), digest_size=_MARK // 2).hexdigest()}"


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.findall(r"[a-z0-9]+", plain.lower())
