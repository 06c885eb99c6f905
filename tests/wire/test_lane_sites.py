"""Shipped Sites, their origins on the small internet: from a pasted address to what is stored, told and asked for."""

from __future__ import annotations

import json
from typing import Any

from lanes.sites import ao3, mangadex, royalroad
from lanes.sites.site import Site
from tests.fix_lane import LaneAtWork, MakeLane
from tests.site_samples import sample
from tests.smallnet import Smallnet, ok

TITLE = "https://mangadex.org/title/6c2e7d10-54b8-4a7f-9f21-0b6d3a18c701"
FICTION = "https://www.royalroad.com/fiction/71005/orchard-of-bells"
WORK = "https://archiveofourown.org/works/88000123/chapters/770001"


def followed(lane: LaneAtWork, site: Site, pasted: str) -> str:
    return lane.follow(site.recognise(pasted) or "", site=site)


def poll(lane: LaneAtWork, key: str) -> Any:
    """Once its Rest is over."""
    lane.move_to(lane.now() + 2 * lane.site.rest)
    return lane.poll(key)


def mangadex_answer(*names: int) -> bytes:
    """The sample with only these Chapters, by the end of their ids."""
    whole: dict[str, Any] = json.loads(sample("mangadex_feed.json"))
    kept = [raw for raw in whole["data"] if int(raw["id"][-4:]) in names]
    return json.dumps(whole | {"data": kept}).encode()


def test_a_new_chapter_of_a_fiction_is_told_once_by_the_identity_that_its_page_has_too(
    net: Smallnet, make_lane: MakeLane
) -> None:
    host = net.host("127.1.0.5")
    site = royalroad.site(host.url("").rstrip("/"))
    lane = make_lane(site=site, slots=1)
    whole = sample("royalroad_feed.xml")
    start, end = whole.index(b"<item>"), whole.index(b"</item>") + len(b"</item>")
    host.page("/fiction/syndication/71005", whole[:start] + whole[end:], "application/rss+xml")
    key = followed(lane, site, FICTION)
    poll(lane, key)
    assert (lane.titles(key), lane.announced(key)) == (["2. Frost", "Prologue"], [])
    host.page("/fiction/syndication/71005", whole, "application/rss+xml")
    poll(lane, key)
    assert lane.announced(key) == ['3. Rope; [and] "Wax"']
    host.page("/fiction/syndication/71005", sample("royalroad_fiction.html"))  # as if the page were asked for
    assert poll(lane, key).outcome == "unchanged"
    assert len(lane.chapters(key)) == 3
    assert lane.series(key).title == "Orchard of Bells"


def test_a_second_group_with_the_same_number_is_stored_and_not_told_again(net: Smallnet, make_lane: MakeLane) -> None:
    """DESIGN 4.4: where the Site itself names groups and numbers."""
    host = net.host("127.1.0.5")
    site = mangadex.site(host.url("").rstrip("/"))
    lane = make_lane(site=site, slots=1)
    host.script("*", ok(mangadex_answer(10), "application/json"))
    key = followed(lane, site, f"{TITLE}?lang=fr,en")
    poll(lane, key)
    for names in ((10, 12), (10, 12, 13)):
        host.script("*", ok(mangadex_answer(*names), "application/json"))
        poll(lane, key)
    assert (len(lane.chapters(key)), lane.announced(key)) == (3, ["Salt & Tar"])
    assert lane.series(key).title == "The Glass Ferry & Other Crossings"
    (asked,) = {visit.path for visit in net.record if visit.address == host.address}
    assert asked.startswith(
        "/manga/6c2e7d10-54b8-4a7f-9f21-0b6d3a18c701/feed?translatedLanguage[]=en&translatedLanguage[]=fr&"
    )


def test_a_chapter_put_in_the_middle_of_a_work_is_news_and_a_shifted_one_is_not(
    net: Smallnet, make_lane: MakeLane
) -> None:
    host = net.host("127.1.0.5")
    site = ao3.site(host.url("").rstrip("/"))
    lane = make_lane(site=site, slots=1)
    lines = sample("ao3_navigate.html").decode().splitlines()
    inserted = next(line for line in lines if "770900" in line)
    before = (
        "\n".join(line for line in lines if line != inserted).replace(">3. 4.", ">2. 4.").replace(">4. Ch", ">3. Ch")
    )
    host.page("/works/88000123/navigate", before)
    key = followed(lane, site, WORK)
    poll(lane, key)
    assert (len(lane.chapters(key)), lane.announced(key)) == (3, [])
    host.page("/works/88000123/navigate", "\n".join(lines))
    poll(lane, key)
    assert lane.announced(key) == ["Slack & Still"]
    host.page("/works/88000123/navigate", sample("ao3_maintenance.html"))
    assert (poll(lane, key).outcome, lane.series(key).failure_kind) == ("failed", "5xx")
