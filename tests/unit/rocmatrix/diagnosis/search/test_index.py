"""Fixed texts are found by their place in the list, and those that nothing asks for can be left out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.diagnosis.search import index as index_module
from rocmatrix.diagnosis.search.index import around, built, without

INDEX = built({b"hiperror": [(0, 8, 8)], b"warning": [(1, 7, 7), (2, 9, 9)]})


def hits(index, text):
    found = index.automaton.find_matches_as_indexes(text, overlapping=True)
    return [(index.literals[place], index.reaches[place], start) for place, start, _ in found]


def test_hit_leads_to_the_patterns_of_its_text():
    assert hits(INDEX, b"a warning hiperror") == [
        (b"warning", [(1, 7, 7), (2, 9, 9)], 2),
        (b"hiperror", [(0, 8, 8)], 10),
    ]


def test_text_that_no_pattern_wants_is_not_looked_for():
    lean = without(INDEX, [[(0, 8, 8)], []])
    assert hits(lean, b"a warning hiperror") == [(b"hiperror", [(0, 8, 8)], 10)]


def test_text_that_one_of_its_patterns_wants_keeps_all_of_them():
    lean = without(INDEX, [[], [(2, 9, 9)]])
    assert hits(lean, b"a warning hiperror") == [(b"warning", [(1, 7, 7), (2, 9, 9)], 2)]


@given(st.text(alphabet="hiperowang ", max_size=120).map(str.encode), st.integers(1, 40))
def test_hits_are_the_same_whatever_parts_a_text_is_searched_in(text, part):
    text = text + b"hiperror" + text + b"warning"
    whole = INDEX.automaton.find_matches_as_indexes(text, overlapping=True)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(index_module, "PART", part)
        found = [(literal, base + start, base + end) for base, hits in INDEX.hits(text) for literal, start, end in hits]
    assert found == whole


def test_text_around_hits_is_one_span_where_it_touches():
    spans = around({0: [[10, 40], [200, 190]], 1: [[52, 45]]}, [[(7, 10, 4)], [(7, 8, 5), (8, 1, 1)]])
    assert spans == {7: [[0, 50], [190, 194]], 8: [[51, 46]]}
