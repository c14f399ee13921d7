"""Fixed texts are found by their place in the list, and those that nothing asks for can be left out."""

import pytest

from rocmatrix.diagnosis.search import index
from rocmatrix.diagnosis.search.index import built, without

INDEX = built({b"hiperror": [(0, 8, 8)], b"warning": [(1, 7, 7), (2, 9, 9)]})


def places(one, text):
    return [(place, at + start, at + end) for at, part in one.found(text) for place, start, end in part]


def hits(one, text):
    return [(one.literals[place], one.reaches[place], start) for place, start, _ in places(one, text)]


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


@pytest.mark.parametrize("size", [1, 5, 8, 9, 30])
def test_texts_are_found_once_each_in_parts_of_any_size(monkeypatch, size):
    text = b"warning, hiperror, hiperrorwarning warnin"
    whole = places(INDEX, text)
    monkeypatch.setattr(index, "PART", size)
    assert places(INDEX, text) == whole
    assert len(whole) == 4
