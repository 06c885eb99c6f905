"""Reading OPML: as readers export it, and as an attacker would."""

from __future__ import annotations

import pytest

from lanes.cli.opml import LONGEST, BadOpml, Outline, read


def opml(body: str, head: str = "") -> bytes:
    return f'<?xml version="1.0" encoding="utf-8"?>{head}<opml version="2.0"><body>\n{body}\n</body></opml>'.encode()


def test_feeds_are_found_at_any_depth_in_any_spelling_with_their_titles() -> None:
    found = read(
        "a.opml",
        opml(
            '<outline text="Serials"><outline><outline title="Moss &amp; Co" text="x" xmlUrl="http://a.test/1"/></outline></outline>\n'
            '<outline text="Two" XMLURL=" http://a.test/2 " htmlUrl="http://a.test/"/>\n'
            '<outline type="rss" url="http://a.test/3"/><outline type="link" url="http://a.test/4"/>'
        ),
    )
    assert found == (
        Outline("http://a.test/1", "Moss & Co", 2),
        Outline("http://a.test/2", "Two", 3),
        Outline("http://a.test/3", "", 4),
    )


def test_a_file_in_an_older_encoding_is_read() -> None:
    document = '<?xml version="1.0" encoding="iso-8859-1"?><opml><outline text="Émile" xmlUrl="http://a.test/"/></opml>'
    assert read("a.opml", document.encode("latin-1"))[0].title == "Émile"


def test_broken_xml_names_file_and_line() -> None:
    with pytest.raises(BadOpml, match=r"a\.opml, line 2: mismatched tag"):
        read("a.opml", b"<opml><body>\n</opml>")


def test_a_file_of_another_kind_says_what_it_is() -> None:
    with pytest.raises(BadOpml, match="it begins with <rss>"):
        read("a.opml", b"<rss version='2.0'><channel/></rss>")


def test_an_empty_file_is_an_error_and_not_an_empty_list() -> None:
    with pytest.raises(BadOpml, match="no element found"):
        read("a.opml", b"")


@pytest.mark.parametrize(
    "entities",
    [
        '<!DOCTYPE opml [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>',
        '<!DOCTYPE opml [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE opml [<!ENTITY % a SYSTEM "http://127.0.0.1/">]>',
    ],
)
def test_declared_entities_are_refused_unread(entities: str) -> None:
    with pytest.raises(BadOpml, match="declares entities"):
        read("a.opml", opml('<outline xmlUrl="http://a.test/"/>', entities))


def test_a_harmless_doctype_is_tolerated() -> None:
    assert len(read("a.opml", opml('<outline xmlUrl="http://a.test/"/>', "<!DOCTYPE opml>"))) == 1


@pytest.mark.parametrize("encoding", ["klingon", "zip", "gb2312", "utf-7"])
def test_an_encoding_that_cannot_be_read_is_told_and_no_traceback(encoding: str) -> None:
    with pytest.raises(BadOpml, match="encoding"):
        read("a.opml", f'<?xml version="1.0" encoding="{encoding}"?><opml/>'.encode())


def test_a_file_far_longer_than_any_opml_is_refused_unread() -> None:
    """expat takes time with the square of one long token: minutes for a gigabyte."""
    with pytest.raises(BadOpml, match="longer than"):
        read("a.opml", b"a" * (LONGEST + 1))
