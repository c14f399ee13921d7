"""Known failures nearest to a text."""

from __future__ import annotations

import json

import pytest

from rocmatrix.diagnosis.similar import cases
from rocmatrix.diagnosis.similar.terms import terms

ROWS = [
    ("a/a#1", "the user is not in the render group", "kfd-denied", "open dev kfd permission denied"),
    ("a/a#2", "the container has no nodes", "kfd-denied no-device", "open dev kfd no such file docker"),
    ("b/b#3", "rocm-cmake is not installed", "cmake-missing", "could not find rocmcreatepackage cmake"),
    ("b/b#4", "rocm-cmake is not installed there", "cmake-missing", "could not find rocmsetupversion cmake error"),
    ("c/c#5", "libnuma is not installed", "library-missing", "libnuma.so.1 cannot open shared object file"),
]


def known_of(rows=ROWS):
    return cases.read({"failures": rows})


def sources(text, matched=(), count=3, rows=ROWS):
    return [one.source for one in known_of(rows).nearest(text, matched, count)]


@pytest.mark.parametrize(("source", "cause", "ids", "words"), ROWS)
def test_failure_is_nearest_to_its_own_lines(source, cause, ids, words):
    assert sources(words, ids.split())[0] == source


def test_rare_term_counts_more_than_several_that_many_failures_have():
    assert sources("could not find cmake open file libnuma.so.1")[0] == "c/c#5"


def test_text_of_a_cause_is_compared_too_and_counts_twice():
    assert sources("render group")[0] == "a/a#1"
    assert sources("render docker")[0] == "a/a#1"


def test_signature_that_both_match_decides_between_equal_lines():
    assert sources("open dev kfd", ["no-device"])[0] == "a/a#2"
    assert sources("open dev kfd", ["kfd-denied"])[0] == "a/a#1"


def test_causes_that_say_the_same_are_named_once():
    assert sources("cmake could not find rocmcreatepackage error rocm-cmake") == ["b/b#3"]


def test_failures_named_are_at_most_the_count_and_share_a_term():
    assert len(sources("open dev kfd cmake libnuma.so.1", count=2)) == 2
    assert sources("zzz") == []


def test_long_text_weighs_less_than_a_short_one_with_the_same_term():
    rows = [
        ("long", "one", "", "ring timeout " + " ".join(f"word{n}" for n in range(40))),
        ("short", "two", "", "ring"),
    ]
    rows += [(f"other{n}", f"cause{n}", "", f"other{n}") for n in range(5)]
    assert sources("ring", rows=rows) == ["short", "long"]


def test_score_is_the_sum_of_rarity_over_lines_and_twice_over_causes():
    rows = [("x", "beta", "", "alpha"), ("y", "gamma", "", "delta")]
    one = known_of(rows).nearest("alpha beta", (), 1)[0]
    assert one.score == pytest.approx(3 * cases.rarity(1, 2))


def test_file_is_read_and_names_threads_with_causes():
    found = cases.known()
    assert len(found.failures) > 3000
    source, cause = found.failures[0]
    assert "#" in source and len(terms(cause)) > 2


@pytest.mark.parametrize("content", ["", "[]", '{"failures": 3}', '{"failures": [["a"]]}'])
def test_damaged_file_names_nothing(content, tmp_path, monkeypatch):
    path = tmp_path / "cases.json"
    path.write_text(content)
    monkeypatch.setattr(cases, "FILE", path)
    cases.known.cache_clear()
    try:
        assert cases.known().nearest("kfd permission denied", ["kfd-denied"], 3) == ()
    finally:
        cases.known.cache_clear()


def test_rows_may_stand_in_a_file(tmp_path, monkeypatch):
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"failures": ROWS}))
    monkeypatch.setattr(cases, "FILE", path)
    cases.known.cache_clear()
    try:
        assert cases.known().nearest("libnuma.so.1", (), 1)[0].source == "c/c#5"
    finally:
        cases.known.cache_clear()


def test_signature_has_a_failure_near_or_its_own_sample_is_as_near():
    def near(text, name, sample="", count=1):
        return known_of().has_near(text, name, sample, count)

    assert near("open dev kfd no such file docker", "kfd-denied")
    assert not near("open dev kfd no such file docker", "no-device")  # it is the second answer there
    assert not near("open dev kfd no such file docker", "library-missing")
    assert near("libnuma.so.1 ring", "other", "libnuma.so.1 ring")
    assert not near("libnuma.so.1 cannot open shared object file", "other", "libnuma.so.1")
    assert near("zzz", "other", "yyy", count=len(ROWS))  # where nothing is near, nothing speaks against it


def test_signature_counts_less_as_a_later_answer_and_equal_scores_keep_the_files_order():
    rows = [("second", "one", "s t", "ring"), ("first", "two", "t s", "ring"), *ROWS]
    assert sources("ring", ["t"], rows=rows)[0] == "first"
    assert sources("ring", ["s"], rows=rows)[0] == "second"
    assert sources("ring", ["t", "s"], rows=rows)[0] == "first"
    assert sources("ring", ["s", "t"], rows=rows)[0] == "second"
    assert sources("ring", rows=rows)[:2] == ["second", "first"]


def test_failure_with_the_cause_that_is_stated_already_is_left_out():
    found = known_of().nearest("open dev kfd", (), 3, stated="the container was given no nodes")
    assert "a/a#2" not in [one.source for one in found]
    assert [one.source for one in found] == ["a/a#1", "c/c#5"]


def test_cause_that_several_near_failures_have_comes_first():
    rows = [
        ("x#1", "old firmware", "", "ring timeout gfx reset"),
        ("x#2", "power limit", "", "ring timeout gfx hang"),
        ("x#3", "power limit of slot", "", "ring timeout gfx stop"),
    ]
    assert sources("ring timeout gfx reset", rows=rows)[0] == "x#1"
    assert sources("ring timeout gfx", rows=rows)[0] == "x#2"
