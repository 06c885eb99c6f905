"""The Site mangadex: one title of its API, in the languages that its Reader reads.

Owns its addresses and the shape of its answers (SITES 1).  Refuses to own: its pages, which are never asked for.  Must never break: the
identity is the Chapter's own id, so that two groups' Chapters of one number are two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from lanes.core.chapters import MAX_ITEMS, Document, Item, Lifecycle, Reading
from lanes.sites import feed_text
from lanes.sites.feed_dates import read_date
from lanes.sites.identified import identified
from lanes.sites.json_text import entries_of, entry_of, text_of, value_of
from lanes.sites.number_tokens import decimal
from lanes.sites.page import not_recognised, text_of_page
from lanes.sites.pasted import UUID, Pasted, hosts_at, recogniser, taken_apart
from lanes.sites.site import Certainty, Evidence, Site

HOSTS: Final = ("api.mangadex.org", "mangadex.org", "www.mangadex.org", "mangadex.cc", "www.mangadex.cc")
PAGES: Final = "https://mangadex.org"

_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(?:-[a-z]{2,4})?")
_DIGITS: Final = re.compile(r"[0-9]+")
_STATUS: Final = {"ongoing": Lifecycle.ONGOING, "hiatus": Lifecycle.HIATUS}
_ENDED: Final = frozenset({"completed", "cancelled"})
_REST: Final = (
    "&order[readableAt]=desc&limit=32&includes[]=scanlation_group&includes[]=manga"
    "&contentRating[]=safe&contentRating[]=suggestive&contentRating[]=erotica&contentRating[]=pornographic"
)
"""One page, newest first: 32 Chapters within an hour are more than any title has had.  The title's own words come along; without the
content ratings some titles look empty.  No filter that looks like an include: any of them lets future Chapters through (SITES 1)."""


def _languages(asked: Pasted) -> list[str]:
    given = asked.values("translatedLanguage[]", "translatedLanguage") or asked.value("lang").split(",")
    wanted = {code.strip().lower() for code in given} - {""}
    if odd := sorted(code for code in wanted if not _LANGUAGE.fullmatch(code)):
        raise asked.refused(f"{odd[0][:20]!r} is no language; write e.g. ?lang=en or ?lang=fr,pt-br.")
    return sorted(wanted) or ["en"]


def _place(asked: Pasted) -> str:
    for kind in ("title", "manga"):
        if asked.has(kind, UUID):
            languages = "&".join(f"translatedLanguage[]={code}" for code in _languages(asked))
            return f"/manga/{asked.path[1].lower()}/feed?{languages}{_REST}"
        if asked.has(kind, _DIGITS):
            raise asked.refused(
                "this is an address from before 2021; open it once in your browser and paste the new one."
            )
    if asked.has("chapter"):
        raise asked.refused("this is one Chapter; paste the address of its title, which begins with /title/.")
    raise asked.refused("this is no title; paste an address that begins with https://mangadex.org/title/.")


def _related(raw: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    return (each for each in entries_of(raw.get("relationships")) if each.get("type") == kind)


def _name(manga: dict[str, Any], languages: list[str]) -> str | None:
    """Its title in a language that is read, else as the Site names it."""
    main = entry_of(manga.get("title"))
    names = [main, *entries_of(manga.get("altTitles"))]
    wanted = [text_of(name.get(code)) for code in languages for name in names]
    found = next(filter(None, (*wanted, *map(text_of, main.values()))), "")
    return feed_text.title(found, markup=True) or None


def _lifecycle(manga: dict[str, Any], items: tuple[Item, ...]) -> Lifecycle | None:
    """Ended is the work, not its translation: only where its last Chapter is there, too."""
    status = text_of(manga.get("status")).lower()
    if status in _ENDED:
        last = decimal(text_of(manga.get("lastChapter")))
        done = last is not None and any(item.number == last for item in items)
        return Lifecycle.FINISHED if done else Lifecycle.ONGOING
    return _STATUS.get(status)


def _label(number: str, volume: str) -> str:
    if number:
        return "chapter"
    return "volume" if volume else "oneshot"


def _item(raw: dict[str, Any]) -> Item:
    given = entry_of(raw.get("attributes"))
    number, volume = text_of(given.get("chapter")), text_of(given.get("volume"))
    identity = feed_text.guid(text_of(raw.get("id")))
    elsewhere = text_of(given.get("externalUrl")) if given.get("pages") == "0" else ""
    return Item(
        guid=identity,
        title=feed_text.title(text_of(given.get("title")), markup=True),
        link=feed_text.link(elsewhere or f"/chapter/{identity}", PAGES) if identity else None,
        published_at=read_date(text_of(given.get("readableAt")))[0],
        number=decimal(number),
        volume=decimal(volume),
        label=_label(number, volume),
    )


def read(body: bytes, content_type: str | None, url: str, _at: datetime) -> Reading:
    """The Chapters of one page of a title's feed."""
    text = text_of_page(body, content_type)
    found = entry_of(value_of(text))
    if found.get("result") == "error":
        said = next(iter(entries_of(found.get("errors"))), {})
        reason = feed_text.line(text_of(said.get("title")) or text_of(said.get("detail")))[:100]
        return not_recognised(f"the API answers with an error: {reason or 'no reason given'}", text, "api error")
    if found.get("result") != "ok" or not isinstance(found.get("data"), list):
        return not_recognised("this is no list of Chapters of the API", text)
    raws = [raw for raw in entries_of(found["data"]) if raw.get("type", "chapter") == "chapter"][:MAX_ITEMS]
    items = tuple(map(_item, raws))
    mangas = [manga for raw in raws for manga in _related(raw, "manga")]
    manga = next((facts for each in mangas if (facts := entry_of(each.get("attributes")))), {})
    asked = taken_apart(url)
    document = Document(
        items=items,
        title=_name(manga, asked.values("translatedLanguage[]") if asked else []),
        home=f"{PAGES}/title/{asked.path[1]}" if asked and asked.has("manga", UUID) else None,
        lifecycle=_lifecycle(manga, items),
    )
    return identified(document, body, content_type)


def site(origin: str = "https://api.mangadex.org") -> Site:
    """The Site, its API at `origin`.  Rest and Gap are every Site's: 10 s is a fiftieth of the five requests a second that it allows."""
    return Site(
        name="mangadex",
        recognise=recogniser(origin, HOSTS, _place),
        read=read,
        accept="application/json",
        hosts=hosts_at(origin, HOSTS),
        named_numbers=True,
        evidence=Evidence("its API's documentation and the source of several readers", Certainty.SURE, "2026-08"),
        example="https://mangadex.org/title/a96676e5-8ae2-425e-b549-7f15dd34a6d8?lang=en",
    )


SITE: Final = site()
