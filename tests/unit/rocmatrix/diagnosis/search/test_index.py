"""Fixed texts are found by their place in the list, and those that nothing asks for can be left out."""

from rocmatrix.diagnosis.search.index import built, without

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
