"""Encodings, entities and bytes that hurt."""

from __future__ import annotations

import pytest

from lanes.core.chapters import Document, NotRecognised
from lanes.sites import feeds
from lanes.sites.feed_fast import DEEPEST, _NotMine, _Reader
from lanes.sites.json_text import MOST_VALUES

URL = "https://origin.example/feed"
PLAIN = "<rss version='2.0'><channel><title>T</title>%s</channel></rss>"


def titles(body: bytes, content_type: str | None = None) -> list[str]:
    found = feeds.read(body, content_type, URL)
    assert isinstance(found, Document), found
    return [item.title for item in found.items]


def feed(*names: str, before: str = "") -> str:
    return before + PLAIN % "".join(f"<item><title>{name}</title></item>" for name in names)


def test_utf8_without_a_charset_is_utf8_also_as_text_xml() -> None:
    """CASES G1."""
    assert titles(feed("Über 第12話").encode(), "text/xml") == ["Über 第12話"]


@pytest.mark.parametrize(
    "header",
    [
        "text/xml; charset=gbk",
        "text/xml; charset=iso-8859-1",
        'application/xml; charset="utf-16"',
        "x; charset=punycode",
    ],
)
def test_a_document_that_reads_as_utf8_is_utf8_whatever_its_header_says(header: str) -> None:
    """CASES G1."""
    assert titles(feed("第12話").encode(), header) == ["第12話"]


@pytest.mark.parametrize(
    ("encoding", "declared", "header", "text"),
    [
        ("gb18030", "gb2312", None, "第12章 风"),
        ("shift_jis", "Shift_JIS", "text/xml; charset=utf-8", "第12話"),
        ("koi8-r", None, "text/xml; charset=koi8-r", "Глава 5"),
        ("cp1251", "windows-1251", "text/xml; charset=iso-8859-1", "Глава 5"),
        ("cp1252", "iso-8859-1", None, "“Wick” \u2013 é"),
        ("cp1252", None, None, "“Wick” \u2013 é"),
        ("iso2022_jp", "iso-2022-jp", None, "第12話"),
        ("utf-16", "utf-16", None, "第12話"),
        ("utf-16-le", "utf-16", None, "Grüße"),
        ("utf-32", None, None, "Grüße"),
        ("euc_kr", "euc-kr", None, "12화"),
    ],
)
def test_other_encodings_are_read_as_named(encoding: str, declared: str | None, header: str | None, text: str) -> None:
    before = f"<?xml version='1.0' encoding='{declared}'?>" if declared else ""
    assert titles(feed(text, before=before).encode(encoding), header) == [text]


def test_a_few_broken_bytes_do_not_cost_the_rest() -> None:
    body = feed("第12話 \u2013 Grüße aus der Ferne", "x@y").encode().replace(b"x@y", b"x\xe7y")
    assert titles(body) == ["第12話 \u2013 Grüße aus der Ferne", "x\ufffdy"]


@pytest.mark.parametrize("before", ["\ufeff", "\n\n", "\ufeff \r\n"])
def test_marks_and_blank_lines_before_the_declaration_do_not_matter(before: str) -> None:
    """CASES G2."""
    assert titles(feed("One", "Two", before=before + "<?xml version='1.0' encoding='utf-8'?>").encode()) == [
        "One",
        "Two",
    ]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("A\x08B", "AB"),
        ("A&nbsp;B", "A B"),
        ("Caf&eacute; &amp; Bar", "Café & Bar"),
        ("A\0B", "AB"),
        ("A &unknown; B", "A &unknown; B"),
    ],
)
def test_control_characters_and_undeclared_entities_cost_no_item(written: str, read: str) -> None:
    """CASES G2, C8."""
    assert titles(feed("First", written, "Last").encode()) == ["First", read, "Last"]


@pytest.mark.parametrize(
    "body",
    [b'{"version":"https://jsonfeed.org/version/1","items":[{"id":"\\ud800x\\u0000","title":"\\udfffA\\u0000B"}]}'],
)
def test_no_text_holds_what_postgres_refuses(body: bytes) -> None:
    """CASES C8."""
    found = feeds.read(body, None, URL)
    assert isinstance(found, Document)
    assert (found.items[0].guid, found.items[0].title) == ("x", "AB")


def test_text_that_was_encoded_twice_is_mended() -> None:
    twice = "Caf\u00e9".encode().decode("latin-1")
    assert titles(feed(twice, "Wick \x96 Oil").encode()) == ["Café", "Wick \u2013 Oil"]


def test_a_gigantic_title_is_cut() -> None:
    assert [len(title) for title in titles(feed("x" * 3_000_000).encode())] == [1_000]


def test_rss_091_with_its_public_doctype_is_read() -> None:
    """CASES G3."""
    doctype = '<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "http://my.netscape.com/publish/formats/rss-0.91.dtd">'
    assert titles(feed("Rope", before="<?xml version='1.0'?>" + doctype).encode()) == ["Rope"]
    assert titles(feed("R&ocirc;pe", before=doctype).encode()) == ["Rôpe"]


def test_a_harmless_entity_is_expanded() -> None:
    before = '<!DOCTYPE rss [<!-- " > --><!ENTITY press "Salt &#38; Sons"><!ENTITY both "&press;, twice &press;">]>'
    assert titles(feed("&press;", "&both;", before=before).encode()) == [
        "Salt & Sons",
        "Salt & Sons, twice Salt & Sons",
    ]


NESTED = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize(
    "entities",
    [
        '<!ENTITY e0 "lol">' + NESTED,
        '<!ENTITY e0 "&e9;">' + NESTED,
        "".join(f'<!ENTITY e{n} "&e{n + 1};">' for n in range(9, 5_000)),
        '<!ENTITY e9 "' + "x" * 100_000 + '">',
        '<!ENTITY e9 "' + "x" * 900 + '">',
    ],
)
def test_a_bomb_of_entities_is_not_expanded(entities: str) -> None:
    """CASES G3: nested, circular, a long chain, one long entity, a short one used often."""
    body = feed("&e9;" * 5_000, before=f"<!DOCTYPE rss [{entities}]>").encode()
    assert feeds.read(body, None, URL) == NotRecognised(
        "its entities expand without end", body.decode()[: feeds.START].rstrip()
    )


def test_no_entity_reaches_outside_the_document() -> None:
    outside = '<!ENTITY x SYSTEM "file:///etc/passwd"><!ENTITY % p SYSTEM "file:///etc/hosts"> %p;'
    before = f'<!DOCTYPE rss SYSTEM "file:///etc/x.dtd" [{outside}]>'
    assert titles(feed("A &x; B", before=before).encode()) == ["A &x; B"]


MANY = 20_000


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"<rss><channel>" + b"<!--" * MANY, 0),
        (b"<rss><channel>&x;" + b"<![CDATA[" * MANY, 0),
        (b"<rss><channel><skipHours>" + b"<skipHours>" * MANY, 0),
        (b"<rss><channel><item>" + b"<a " * MANY, 1),
        (b"<rss>" + b"<a>" * MANY, 0),
        (b"<!DOCTYPE x [" + b"<!--" * MANY, "this is text, not a feed"),
        (b"<!DOCTYPE x [" + b"\"'" * MANY, "this is text, not a feed"),
        (b"<?" * MANY, "this is text, not a feed"),
        (b"<html>" + b"<input " * MANY, "this is a web page, not a feed"),
        (b'{"a":' * MANY, "this is JSON, but not a JSON Feed"),
    ],
)
def test_marks_that_never_close_cost_the_document_and_nothing_else(body: bytes, found: int | str) -> None:
    reading = feeds.read(body, None, URL)
    assert found == (reading.reason if isinstance(reading, NotRecognised) else len(reading.items))


def test_elements_that_are_opened_without_end_are_not_followed_down() -> None:
    """expat keeps every open element: 30 MiB of them, 30 KB on the wire, are a gigabyte of memory."""
    body = (PLAIN % ("<item><title>One</title></item>" + "<a>" * 2_000_000)).encode()
    reader = _Reader(body)
    with pytest.raises(_NotMine):
        reader.read()
    assert reader.depth == DEEPEST + 1
    assert isinstance(feeds.read(body, None, URL), Document)


def test_a_json_feed_of_nothing_but_values_is_not_built_in_memory() -> None:
    """A value of two characters takes 60 bytes or more."""
    body = (
        b'{"version":"https://jsonfeed.org/version/1.1","title":"x","items":[{"id":"1","_x":['
        + b"{}," * MOST_VALUES
        + b"0]}]}"
    )
    assert isinstance(feeds.read(body, None, URL), NotRecognised)


@pytest.mark.parametrize("reference", ["&#xD800;", "&#xdfff;", "&#55296;", "&#057343;"])
def test_a_reference_to_half_a_character_costs_itself_and_not_the_feed(reference: str) -> None:
    """CASES C8."""
    items = (
        f"<item><title>one {reference} two</title><guid>1</guid></item><item><title>three</title><guid>2</guid></item>"
    )
    found = feeds.read(
        f"<rss version='2.0'><channel>{items}</channel></rss>".encode(), "text/xml", "https://x.example/feed"
    )
    assert isinstance(found, Document)
    assert [item.title for item in found.items] == ["one two", "three"]


@pytest.mark.parametrize("stray", ["\x0b", "\0", "\x1f"])
def test_a_stray_control_character_does_not_bound_what_is_read_of_a_long_archive(stray: str) -> None:
    """CASES G2: oldest first, so that what is cut off would be the news."""
    items = "".join(
        f"<item><title>Chapter {n}</title><guid>{n}</guid><description>{'word ' * 16_000}</description></item>"
        for n in range(40)
    )
    body = f"<rss version='2.0'><channel><title>A{stray} title</title>{items}</channel></rss>".encode()
    found = feeds.read(body, "application/rss+xml; charset=utf-8", "https://host.test/feed")
    assert isinstance(found, Document)
    assert [item.title for item in found.items] == [f"Chapter {n}" for n in range(40)]
