"""Laws of what is published again: it is stored, an item with new words is never kept back, and nothing else is told because of it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lanes.core.chapters import Item, distinct
from lanes.core.circumstances import Known
from lanes.core.reissues import FEWEST, to_look_up, words_of
from tests.answers import a_claim, a_document, a_response, known, settled

_items = st.builds(
    Item,
    guid=st.integers(0, 40).map(str),
    title=st.sampled_from(["", "Prologue", *(f"Part {n}" for n in range(8))]),
    link=st.none(),
    number=st.none() | st.sampled_from(["1", "2", "3"]),
    volume=st.none() | st.just("1"),
    label=st.sampled_from(["", "chapter"]),
    locked=st.sampled_from([False, False, False, True]),
)
_documents = st.lists(_items, max_size=14).map(tuple)


@given(stored=_documents, document=_documents)
def test_a_chapter_published_again_never_silences_one_whose_words_are_new(
    stored: tuple[Item, ...], document: tuple[Item, ...]
) -> None:
    before = known(*stored)
    words = frozenset(each for item in stored if (each := words_of(item)))
    looked_up = to_look_up(distinct(document), before.identities)

    def news(before: Known) -> dict[Item, bool]:
        settlement = settled(a_response(200), a_document(*document), a_claim(), before)
        return {chapter.item: chapter.announced for chapter in settlement.chapters}

    plain, found = news(before), news(replace(before, words=looked_up & words))
    silenced = [item for item in plain if plain[item] and not found[item]]
    assert found.keys() == plain.keys()
    assert not [item for item in plain if found[item] and not plain[item]]
    assert [item for item in silenced if words_of(item) not in words] == []
    assert len(silenced) == 0 or len(silenced) >= FEWEST
