"""The fixed texts that a log is searched for are in every match of their pattern, and are the rarest that it has."""

import re

import pytest

from rocmatrix.diagnosis import pattern
from rocmatrix.diagnosis.pattern import squeeze
from rocmatrix.diagnosis.search import literals
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES


def of(text):
    return literals.required(re._parser.parse(text))


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("(?:HIP|ROCm) error", {"hip error", "rocm error"}),
        (
            "(?:Could not|Cannot) (?:find|locate)",
            {"could not find", "could not locate", "cannot find", "cannot locate"},
        ),
        ("[Bb]roken pipe", {"broken pipe"}),
        ("cards? found", {"card found", "cards found"}),
        ("first.{0,9}second one", {"second one"}),
        ("error.{0,9}hsa", {"error"}),
        ("(?:device|hsa_one).{0,9}", {"device", "hsa_one"}),
        ("a longer text[0-9]{1,3}kernel", {"a longer text"}),
        ("no \\w+ (?:left|at all)", {" left", " at all"}),
        ("(?:warn|warning): x", {"warn: x", "warning: x"}),
        ("(?:lines?|file)(?:read|x)", {"lineread", "linesread", "fileread", "linex", "linesx", "filex"}),
        ("(?:error|errors)", {"error"}),
        ("(?:ab|cd){2}longer", {"longer"}),
        ("x?y?", None),
        ("[0-9]{1,9}", None),
        ("abcdef|[0-9]", None),
        ("device(?!found)s", {"device"}),
    ],
)
def test_fixed_texts_of_neighbours_are_joined_and_the_rarest_taken(text, texts):
    assert of(text) == (None if texts is None else frozenset(texts))


def test_alternatives_that_multiply_are_not_joined_without_bound():
    many = "".join(f"(?:{letter}{letter}1|{letter}{letter}2|{letter}{letter}3)" for letter in "abcdefgh")
    assert 0 < len(of(many)) <= literals.MOST_JOINED


def test_sample_of_a_signature_holds_a_fixed_text_of_each_pattern_that_matches_it():
    without = [
        (one.id, found.text)
        for one in SIGNATURES
        for text in [squeeze(one.sample.encode())]
        for found in one.patterns
        for match in found.compiled.finditer(text)
        if not any(literal in match[0] for literal in found.literals)
    ]
    assert without == []


def test_common_word_is_searched_only_where_a_pattern_has_nothing_rarer():
    assert pattern.parse("amdgpu: (?:ring|queue) reset").literals == {b"amdgpu:ringreset", b"amdgpu:queuereset"}
    assert pattern.parse("device .{0,40}hung up").literals == {b"hungup"}


def test_name_of_an_exception_is_rarer_than_a_short_word_and_not_than_a_long_one():
    assert pattern.parse("NotImplementedError: .{0,40}heads").literals == {b"notimplementederror:"}
    assert pattern.parse("NotImplementedError: .{0,40}divisible").literals == {b"divisible"}
