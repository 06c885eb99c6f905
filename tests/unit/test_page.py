"""Pages as a small tree, bounded whatever stands in them."""

from __future__ import annotations

import pytest

from lanes.sites.page import ATTRIBUTES, DEEPEST, DEPTH, PAGE, PARTS, START, Element, not_recognised, parse


def depth(page: Element) -> int:
    deepest, level = 0, [page]
    while level:
        level = [part for each in level for part in each.inside if isinstance(part, Element)]
        deepest += bool(level)
    return deepest


def test_elements_are_found_by_tag_class_and_id_in_page_order() -> None:
    page = parse("<ul id=a class='x y'><li class=y>1<b>2</b></li><li>3</li></ul><p class='xy'>4</p>")
    assert [each.tag for each in page.each(cls="y")] == ["ul"]
    assert [each.text for each in page.each("li")] == ["12", "3"]
    assert [each.tag for each in page.each(ident="a", cls="x")] == ["ul"]
    assert page.first("p", cls="x") is None
    assert page.first("ul", ident="b") is None
    assert page.first(cls="y x") is page.first("ul")
    assert page.first(cls="y z") is None


def test_what_stands_inside_one_that_was_found_is_a_part_of_it_and_no_other_of_them() -> None:
    page = parse("<div class=row>1<div class=row>2</div></div><div><p><div class=row>3</div></div>")
    assert [each.text for each in page.each(cls="row")] == ["12", "3"]
    assert [each.tag for each in page.elements()] == ["html", "body", "div", "div", "div", "p", "div"]


def test_text_is_one_clean_line_and_its_source_is_whole() -> None:
    page = parse("<p> A &amp; B\n\n &#1; C <i>D</i>\u202e</p>")
    paragraph = page.first("p")
    assert paragraph is not None
    assert paragraph.text == "A & B C D\u202e"
    assert paragraph.source.startswith(" A & B\n\n ")


def test_rows_that_are_never_closed_are_rows_all_the_same() -> None:
    page = parse("<table><tr><td>1<tr><td>2</table>")
    assert [row.text for row in page.each("tr")] == ["1", "2"]


@pytest.mark.parametrize("text", ["", "\0", " ", "<", "<!--", "<![CDATA[", "</", "\ud800", "&", "<?x"])
def test_next_to_nothing_is_a_page_without_elements_of_its_own(text: str) -> None:
    assert parse(text).first("p") is None


def test_what_is_nested_too_deep_counts_as_if_it_stood_higher() -> None:
    page = parse("<ul><li>" * (DEEPEST // 2 - 10) + "<b>x</b>")
    assert depth(page) == DEPTH
    assert page.source == "x"


def test_a_page_ends_where_it_is_nested_beyond_all_measure() -> None:
    page = parse("<p>a</p>" + "<ul><li>" * 50_000 + "<p>b</p>")
    assert depth(page) == DEPTH
    assert page.source == "a"


def test_a_page_of_too_many_parts_is_read_as_far_as_they_go() -> None:
    page = parse("<i>x</i>" * (PARTS // 2 + 1_000))
    assert PARTS // 2 - 10 < sum(1 for _ in page.each("i")) <= PARTS // 2


def test_a_tag_of_too_many_attributes_keeps_the_first() -> None:
    page = parse("<p " + " ".join(f"x{n}={n}" for n in range(50_000)) + ">text")
    paragraph = page.first("p")
    assert paragraph is not None
    assert (len(paragraph.attributes), paragraph.get("x3"), paragraph.text) == (ATTRIBUTES, "3", "text")


def test_a_page_is_looked_at_up_to_a_bound() -> None:
    page = parse("<p>a</p><!--" + "-" * PAGE + "--><p>b</p>")
    assert [each.text for each in page.each("p")] == ["a"]


def test_what_is_not_recognised_begins_with_its_first_line() -> None:
    found = not_recognised("no list", "<p>\n" + "x" * 1_000, "404")
    assert (found.reason, found.kind, found.start) == ("no list", "404", ("<p> " + "x" * 1_000)[:START])
