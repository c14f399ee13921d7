"""Fixed texts are found by their place in the list, and those that nothing asks for can be left out."""

import pytest

from rocmatrix.diagnosis.pattern import parse, squeeze
from rocmatrix.diagnosis.search import index
from rocmatrix.diagnosis.search.index import Lookup, built

INDEX = built({b"hiperror": [(0, 8, 8)], b"warning": [(1, 7, 7), (2, 9, 9)]})


def places(one, text):
    parts = index.found(one.automaton, text, one.longest)
    return [(place, at + start, at + end) for at, part in parts for place, start, end in part]


def hits(one, text):
    return [(one.literals[place], one.reaches[place], start) for place, start, _ in places(one, text)]


def test_hit_leads_to_the_patterns_of_its_text():
    assert hits(INDEX, b"a warning hiperror") == [
        (b"warning", [(1, 7, 7), (2, 9, 9)], 2),
        (b"hiperror", [(0, 8, 8)], 10),
    ]


@pytest.mark.parametrize("size", [1, 5, 8, 9, 30])
def test_texts_are_found_once_each_in_parts_of_any_size(monkeypatch, size):
    text = b"warning, hiperror, hiperrorwarning warnin"
    whole = places(INDEX, text)
    monkeypatch.setattr(index, "PART", size)
    assert places(INDEX, text) == whole
    assert len(whole) == 4


@pytest.mark.parametrize(("start", "ends"), [(8, [9, 20]), (9, [20])])
def test_texts_that_end_behind_a_place_are_found(start, ends):
    before, found = index.part(INDEX.automaton, b"a warning, a warning", INDEX.longest, start)
    assert [before + end for _, _, end in found] == ends


PATTERNS = [parse(r"ValueError: \w"), parse(r"ValueError: .{0,9}too old"), parse(r"HIP error")]
LOG = squeeze(b"ValueError: it is too old\n" + b"HIP error\n" * 30 + b"ValueError: no\nHIP error\n")


def found_in(spans, text=LOG):
    return {
        number: [match.span() for span in rows for match in PATTERNS[number].compiled.finditer(text, *span)]
        for number, rows in spans.items()
    }


def test_pattern_that_is_spent_is_not_looked_for():
    assert set(Lookup(patterns=PATTERNS).spans(LOG, frozenset())[0]) == {0, 1, 2}
    assert set(Lookup(patterns=PATTERNS).spans(LOG, frozenset({0}))[0]) == {1, 2}


def test_pattern_of_the_end_is_looked_for_there_alone():
    lookup, late = Lookup(patterns=PATTERNS), frozenset({0, 2})
    tail = LOG.rindex(b"valueerror")
    whole, near = found_in(lookup.spans(LOG, frozenset())[0]), found_in(lookup.spans(LOG, frozenset(), late, tail)[0])
    assert near[1] == whole[1] != []
    assert [set(near[number]) >= {whole[number][-1]} for number in (0, 2)] == [True, True]
    assert (0, 11) not in near[0] and len(near[2]) < len(whole[2])
    assert set(lookup.spans(LOG, frozenset({2}), late, tail)[0]) == {0, 1}
    assert found_in(lookup.spans(LOG, frozenset(), late, 0)[0]) == whole


def test_pattern_is_looked_for_by_the_rarer_text_that_is_preferred():
    lookup = Lookup(patterns=PATTERNS)
    (rarer,) = lookup.others(1)
    assert (PATTERNS[1].literals, rarer) == ({b"valueerror:"}, {b"tooold"})
    before, hits = lookup.spans(LOG, frozenset())
    lookup.prefer({1: rarer}, [1])
    after, fewer = lookup.spans(LOG, frozenset())
    assert found_in(after) == found_in(before) and after[1] != before[1]
    assert (hits, fewer) == (33, 34)  # the other pattern keeps its text
    assert lookup.others(1) == [PATTERNS[1].literals]


def test_pattern_without_a_rarer_text_is_tried_ever_less_often():
    lookup, tried = Lookup(patterns=PATTERNS), []
    for chunk in range(60):
        if lookup.others(1):
            tried.append(chunk)
            lookup.prefer({}, [1])
    assert tried == [0, 3, 10, 25, 42, 59]


def test_texts_of_spent_patterns_alone_are_left_out_once_they_stand_everywhere(monkeypatch):
    monkeypatch.setattr(index, "MANY_IDLE", 30)
    made, lookup = [], Lookup(patterns=PATTERNS)
    monkeypatch.setattr(index, "built", lambda reaches: made.append(set(reaches)) or built(reaches))
    assert lookup.spans(LOG, frozenset({2}))[1] == lookup.spans(LOG, frozenset({2}))[1] == 2
    assert made == [{b"valueerror:", b"hiperror"}, {b"valueerror:"}]
    assert set(lookup.spans(LOG, frozenset())[0]) == {0, 1, 2}  # another log


def test_views_of_one_log_have_an_index_each(monkeypatch):
    monkeypatch.setattr(index, "MANY_IDLE", 30)
    text = squeeze(b"ValueError: it\nHIP error\n" * 40)
    lookup, views = Lookup(patterns=PATTERNS), [frozenset({2}), frozenset({0, 1})]
    first = [lookup.spans(text, spent)[0] for spent in views]
    monkeypatch.setattr(index, "built", None)  # nothing is made again
    assert [lookup.spans(text, spent)[0] for spent in views * 2] == first * 2
    queries = [*views, frozenset({0}), frozenset({0, 1, 2})]
    assert [lookup._index(spent).spent for spent in queries] == [*views, frozenset(), views[1]]


def test_indexes_of_a_log_are_few(monkeypatch):
    monkeypatch.setattr(index, "MANY_IDLE", 30)
    lookup, text = Lookup(patterns=PATTERNS), squeeze(b"ValueError: it\nHIP error\n" * 40)
    for spent in ({0, 1}, {2}, {0, 1, 2}):
        lookup.spans(text, frozenset(spent))
    assert [lean.spent for lean in lookup._lean] == [{2}, {0, 1, 2}]
    lookup.prefer({1: frozenset({b"tooold"})}, [1])
    assert lookup._lean == []  # made of the texts before


def test_text_that_stands_everywhere_is_looked_for_once_in_each_later_chunk(monkeypatch):
    monkeypatch.setattr(index, "PART", 400)
    monkeypatch.setattr(index, "MANY_HITS", 4)
    monkeypatch.setattr(index, "MANY_IDLE", 40)
    lookup, calls = Lookup(patterns=PATTERNS), []
    text = squeeze(b"HIP error\n" * 100 + b"ValueError: is too old\n")
    whole = lookup.spans(text, frozenset())
    original = index.part
    monkeypatch.setattr(index, "part", lambda *given: calls.append(len(original(*given)[1])) or original(*given))
    assert found_in(lookup.spans(text, frozenset())[0], text) == found_in(whole[0], text)
    assert (calls, whole[1]) == ([50, 0, 1], 101)
    other = squeeze(b"ValueError: is too old\n" * 30 + b"HIP error\n")  # the text is no longer everywhere
    assert found_in(lookup.spans(other, frozenset())[0], other)[2] == [(len(other) - 8, len(other))]
    assert found_in(lookup.spans(text, frozenset())[0], text) == found_in(whole[0], text)
