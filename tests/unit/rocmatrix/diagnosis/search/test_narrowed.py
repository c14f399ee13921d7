"""Patterns whose text stands in nearly every line: looked for around a rarer text, and nothing that matches is lost."""

import random
from itertools import islice, pairwise, product

import pytest

from rocmatrix.diagnosis import matcher
from rocmatrix.diagnosis.pattern import parse, squeeze
from rocmatrix.diagnosis.search import index, narrowed
from rocmatrix.diagnosis.search.index import Lookup
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES, ranked, scanner, signatures_of

DEMANDED = parse(r"(?:RuntimeError|ValueError): .{0,40}(?:is too old|please upgrade)")
WORDS = ["settings", "network", "driver", "tensor", "index", "please", "upgrade", "is too old", "RuntimeError:"]


def lines(count, seed, words=WORDS):
    chance = random.Random(seed)
    rows = (f"ValueError: {' '.join(chance.choice(words) for _ in range(4))} {number}" for number in range(count))
    return squeeze("\n".join(rows).encode())


def one(text, pattern, spans):
    return narrowed.narrowed(text, {0: spans}, Lookup(patterns=[pattern]))[0]


def matches(text, pattern, spans):
    return [found.span() for span in spans for found in pattern.compiled.finditer(text, *span)]


@pytest.mark.parametrize("seed", range(12))
def test_spans_around_a_rarer_text_hold_every_match(monkeypatch, seed):
    monkeypatch.setattr(narrowed, "DENSE", 100)
    monkeypatch.setattr(narrowed, "SHARE", 0.01)  # also where the rarer text is not rare at all
    text = lines(200, seed)
    whole = [[0, len(text)]]
    spans = one(text, DEMANDED, whole)
    assert spans is not whole and all(before[1] < after[0] for before, after in pairwise(spans))
    assert matches(text, DEMANDED, spans) == matches(text, DEMANDED, whole) != []


def test_text_that_is_nowhere_leaves_no_span(monkeypatch):
    monkeypatch.setattr(narrowed, "DENSE", 100)
    assert one(lines(50, 1, WORDS[:5]), DEMANDED, [[0, 900]]) == []


@pytest.mark.parametrize("dense", [3000, 2999])
def test_few_bytes_of_spans_are_searched_as_they_are(monkeypatch, dense):
    monkeypatch.setattr(narrowed, "DENSE", dense)
    spans = [[0, 1000], [2000, 4000]]
    text = lines(200, 1, WORDS[:5])
    assert (one(text, DEMANDED, spans) is spans) == (dense == 3000)


def test_rarer_text_that_stands_everywhere_too_is_no_gain(monkeypatch):
    monkeypatch.setattr(narrowed, "DENSE", 100)
    text, spans = lines(200, 1, ["is too old"]), [[0, 9000]]
    assert one(text, DEMANDED, spans) is spans


def test_rarest_of_several_texts_is_taken(monkeypatch):
    monkeypatch.setattr(narrowed, "DENSE", 100)
    pattern = parse(r"ValueError: .{0,20}(?:ring|fan).{0,20}frob")
    rows = ["ValueError: no ring"] * 40 + ["ValueError: fan cannot frob"] + ["ValueError: none"] * 4000
    text = squeeze("\n".join(rows).encode())
    (span,) = one(text, pattern, [[0, len(text)]])
    assert span[1] - span[0] < 2 * pattern.width and matches(text, pattern, [span]) != []


def test_text_in_every_line_floods_its_patterns_and_each_failure_is_found_as_before(monkeypatch):
    rows = [f"ValueError: the widget {number} has no frobnicator" for number in range(300)]
    rows[250] = "ValueError: vLLM 0.9 is too old, please upgrade"
    rows[280] = "RuntimeError: HIP error: invalid device function"
    text = "\n".join(rows) + "\n"
    before = [(match.signature.id, match.line, match.count) for match in ranked(text).failures]
    monkeypatch.setattr(index, "MANY_HITS", 7)
    monkeypatch.setattr(narrowed, "DENSE", 50)
    assert [(match.signature.id, match.line, match.count) for match in ranked(text).failures] == before
    assert "hip-invalid-device-function" in signatures_of(text)


def test_flooded_text_is_not_taken_for_one_that_leads_to_nothing(monkeypatch):
    """The automaton is not made anew without texts whose patterns are all known; those that stand everywhere are left
    out from where they are seen to."""
    monkeypatch.setattr(index, "MANY_HITS", 5)
    monkeypatch.setattr(index, "MANY_IDLE", 50)
    own = matcher.Scanner(SIGNATURES)
    own.scan([b"tensor of the network\n" * 400])
    assert own._lookup._lean == [] and b"network" in own._lookup._all()._crowded


def test_patterns_get_spans_of_their_own(monkeypatch):
    monkeypatch.setattr(narrowed, "DENSE", 100)
    shared = parse(r"ValueError: .{0,30}too old or .{0,9}upgrade")
    text = squeeze(b"ValueError: the widget\n" * 300 + b"ValueError: it is too old or so: upgrade\n")
    whole = [[0, len(text)]]
    found = narrowed.narrowed(text, {2: whole, 5: whole, 6: [[3, 9]]}, Lookup(patterns=[DEMANDED] * 5 + [shared] * 2))
    assert [found[2], found[5]] == [one(text, DEMANDED, whole), one(text, shared, whole)]
    narrow = parse(r"ValueError: .{0,9}(?:is too old|please upgrade)")  # the same texts, other reaches
    both = narrowed.narrowed(text, {2: whole, 3: whole}, Lookup(patterns=[DEMANDED] * 3 + [narrow]))
    assert [both[2], both[3]] == [found[2], one(text, narrow, whole)] and both[2] != both[3]
    assert found[2] != found[5] and found[6] == [[3, 9]] and matches(text, shared, found[5]) != []


def test_text_of_many_places_is_given_up(monkeypatch):
    monkeypatch.setattr(narrowed, "DENSE", 100)
    text = squeeze(
        b"ValueError: it is fine, or nearly so, as far as one can see\n" * 900 + b"ValueError: is too old\n" * 5
    )
    whole = [[0, len(text)]]
    monkeypatch.setattr(narrowed, "MOST_PLACES", 5)
    assert sum(end - start for start, end in one(text, DEMANDED, whole)) < 1000
    monkeypatch.setattr(narrowed, "MOST_PLACES", 4)
    assert one(text, DEMANDED, whole) is whole


def test_text_of_a_known_warning_in_every_line_leads_to_nothing_however_often(monkeypatch):
    made = []
    own, built = matcher.Scanner(SIGNATURES), index.built
    monkeypatch.setattr(index, "built", lambda reaches: made.append(len(reaches)) or built(reaches))
    words = ("".join(letters) for letters in product("klmnopq", repeat=5))  # lines alike would be left out
    line = b"UserWarning: expandable_segments not supported on this platform (%s)\n"
    lines = b"".join(line % word.encode() for word in islice(words, 12_000))
    done = matcher.Scanned()
    for _ in range(2):
        own.read(lines, done)  # more than are counted, so of the second block nothing is looked for
    assert len(own._lookup._lean[-1].index.literals) < made[0]


@pytest.mark.parametrize(("apart", "whole"), [(300, True), (900, False)])
def test_text_that_is_frequent_and_not_crowded_keeps_its_spans(monkeypatch, apart, whole):
    monkeypatch.setattr(index, "MANY_HITS", 5)
    text = squeeze(("x" * apart + "cannot pickle\n").encode() * 30)
    found, _ = scanner()._lookup.spans(text, frozenset())
    size = min(sum(min(end, len(text)) - start for start, end in spans) for spans in found.values())
    assert (size > len(text) * 0.7) == whole


def test_span_reaches_over_text_that_must_not_follow_a_match(monkeypatch):
    monkeypatch.setattr(narrowed, "DENSE", 100)
    pattern = parse(r"ValueError: .{0,9}too old(?!.{0,80}or not)")
    rows = [b"ValueError: the widget has none"] * 400 + [b"ValueError: too old, or so they say, or as good as, or not"]
    text = squeeze(b"\n".join([*rows, b"ValueError: none"]))
    whole = [[0, len(text)]]
    spans = one(text, pattern, whole)
    assert spans != whole and matches(text, pattern, spans) == matches(text, pattern, whole) == []
    text = squeeze(b"\n".join([*rows[:-1], b"ValueError: too old", *rows[:99]]))
    whole = [[0, len(text)]]
    assert matches(text, pattern, one(text, pattern, whole)) == matches(text, pattern, whole) != []


def test_text_that_one_pattern_gives_up_is_kept_for_another(monkeypatch):
    monkeypatch.setattr(narrowed, "DENSE", 100)
    text = squeeze(
        b"ValueError: it is fine, or nearly so, as far as one can see\n" * 900 + b"ValueError: is too old\n" * 9
    )
    whole = [[0, len(text)]]
    few = [[len(text) - 3000, len(text)]]
    both = narrowed.narrowed(text, {0: few, 1: whole}, Lookup(patterns=[DEMANDED, DEMANDED]))
    assert both[0] is few and both[1] == one(text, DEMANDED, whole) != whole
    assert narrowed.narrowed(text, {1: whole, 0: few}, Lookup(patterns=[DEMANDED, DEMANDED])) == both


@pytest.mark.parametrize(("size", "expected"), [(8 * 3, True), (8 * 3 - 1, False)])
def test_rarer_text_may_take_an_eighth_of_what_it_replaces(monkeypatch, size, expected):
    monkeypatch.setattr(narrowed, "DENSE", 100)
    text = squeeze(b"ValueError: is too old\n" * 3 + b"ValueError: it is fine\n" * 400)
    spans = [[0, size * DEMANDED.width]] if expected else [[0, size * DEMANDED.width + DEMANDED.width - 1]]
    assert (one(text, DEMANDED, spans) is not spans) == expected
