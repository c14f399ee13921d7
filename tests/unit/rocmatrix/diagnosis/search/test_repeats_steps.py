"""Single steps of what decides which lines of a log are repeated: forms, counts, borders."""

from collections import Counter

from rocmatrix.diagnosis.search import repeats
from rocmatrix.diagnosis.search.chunk import Chunk
from rocmatrix.diagnosis.search.repeats import EACH, PAIRS, Numbers, Repeats, broken

NONE = Numbers([[b"nosuchtext1"]])


def chunk_of(*rows):
    text = "\n".join(rows).encode()
    return Chunk(text, 5, 0, text)


def words(count, start=0):
    return ["".join(chr(97 + int(digit)) for digit in str(number + start)) for number in range(count)]


def test_texts_with_numbers_are_found_in_their_lines():
    found = Numbers([[b"719", b"rank"], [b"800"]]).rows(
        chunk_of("at 719", "719 b", "rank", "719 or 800", "800", "in 719", "800 719")
    )
    assert set(found) == {0, 1, 3, 4, 5, 6}
    assert found[0] == found[1] == found[5]
    assert len({found[row] for row in (0, 3, 4, 6)}) == 4
    assert Numbers([[b"rank"]])._automaton[1] == 1
    assert set(Numbers([[b"719"]]).rows(chunk_of("at 719"))) == {0}


def test_line_is_fresh_until_its_form_and_its_pair_were_searched_often_enough():
    found = Repeats(is_dense=True, _lines={7: EACH})
    assert [found._is_fresh(7, 9) for _ in range(PAIRS + 1)] == [True] * PAIRS + [False]
    assert found._is_fresh(8, 9)


def test_form_that_an_earlier_chunk_had_some_times_stays_fresh():
    found = Repeats(is_dense=True)
    found._fresh(chunk_of(*["alpha"] * 10), 0, NONE)
    assert found._fresh(chunk_of(*["alpha"] * 60), 0, NONE) == list(range(EACH - 10))


def test_lines_that_were_searched_with_the_last_chunk_are_not_counted():
    found = Repeats(is_dense=True)
    assert found._fresh(chunk_of("alpha", "beta", "gamma"), 3, NONE) == []
    assert not found._lines
    found._fresh(chunk_of("at 0xabcdef12", "beta"), 1, NONE)
    assert found._forms == [hash(b"at xabcdef"), hash(b"beta")]  # as it was counted then


def test_chunks_of_new_forms_are_looked_at_ever_less_often():
    found, paused = Repeats(is_dense=True), []
    for number in range(5):
        found._fresh(chunk_of(*words(50, 1000 * (number + 1))), 0, NONE)
        paused.append(found._wait)
    assert paused == [2, 6, 14, 16, 16]
    known = Repeats(is_dense=True)
    for _ in range(2):
        known._fresh(chunk_of(*words(3), *["a"] * 7), 0, NONE)  # of ten lines three forms: not more than 0.3 are new
        assert known._wait == 0
        assert len(known._lines) == 3


def test_counts_of_too_many_forms_are_forgotten_but_for_frequent_ones(monkeypatch):
    monkeypatch.setattr(repeats, "MOST_FORMS", 2)
    assert repeats._bounded({1: 5, 2: 5, 3: 1}, 5) == {1: 5, 2: 5}
    assert repeats._bounded({1: 5, 2: 5, 3: 6}, 5) == {}
    found = Repeats(is_dense=True)
    found._fresh(chunk_of(*words(5)), 0, NONE)
    assert (found._lines, found._pairs) == ({}, {})


def test_four_of_five_lines_are_worth_a_search_of_parts(monkeypatch):
    monkeypatch.setattr(repeats, "_joined", lambda *_: [(0, 8)])
    assert Repeats(is_dense=True).runs(chunk_of(*["a"] * 10), 0, NONE) == [(0, 8)]
    assert Repeats(is_dense=True).runs(chunk_of(*["a"] * 9), 0, NONE) is None


def test_log_is_dense_above_one_text_in_a_thousand_bytes_and_its_first_lines_count():
    found, chunk = Repeats(), chunk_of(*words(100), "a" * (2000 - len("\n".join(words(100))) - 1))
    assert len(chunk.raw) == 2000
    found.searched([], 2, chunk, NONE)
    assert not found.is_dense
    found.searched([], 3, chunk, NONE)
    assert found.is_dense
    assert sum(found._lines.values()) == 101


def test_signature_counts_for_left_out_lines_from_half_the_searched_ones_on(monkeypatch):
    found, chunk = Repeats(is_dense=True, _forms=[1, 1]), chunk_of("a", "a")
    found._dropped = Counter({1: 3})
    found.searched([("cause", 0)] * (EACH // 2 - 1), 0, chunk, NONE)
    assert found.left_out() == {}
    found.searched([("cause", 1)], 0, chunk, NONE)
    assert found.left_out() == {"cause": 3}
    monkeypatch.setattr(repeats, "MOST_FORMS", 1)
    found.searched([], 0, chunk, NONE)
    assert found.left_out() == {"cause": 3}


def test_line_of_the_length_of_a_long_one_is_broken(monkeypatch):
    monkeypatch.setattr(repeats, "LONG", 6)
    chunk = chunk_of("{a},{b", "c")
    text = b"{a},\n{b\nc"
    assert broken(chunk, True) == (Chunk(text, 5, 0, text), [0, 0, 1])
    empty = chunk_of("", "", "")
    assert broken(empty, True) == (empty, range(3))


def test_end_of_a_chunk_is_searched_by_lines_or_by_bytes(monkeypatch):
    monkeypatch.setattr(repeats, "TAIL_LINES", 1)
    monkeypatch.setattr(repeats, "TAIL_BYTES", 4)
    assert repeats._tail(chunk_of(*"abcdefgh", "")) == 3
    assert repeats._tail(chunk_of("", "a")) == 2


def test_runs_that_touch_are_one():
    assert repeats._joined([], 3, 2, 5) == [(0, 5)]
    assert repeats._joined([], 3, 1, 5) == [(0, 3), (4, 5)]


def test_chunks_of_which_nearly_all_is_searched_are_looked_at_ever_less_often(monkeypatch):
    found, waited, parts = Repeats(is_dense=True), [], [[(0, 10)]] * 7 + [[(0, 1)], [(0, 10)], [(0, 10)]]
    monkeypatch.setattr(Repeats, "_fresh", lambda self, *_: self._forms.extend(range(10)) or [])
    monkeypatch.setattr(repeats, "_joined", lambda *_: parts[len(waited)])
    while len(waited) < len(parts):
        found._wait = 0
        found.runs(chunk_of("a"), 0, NONE)
        waited.append(found._wait)
    assert waited == [0, 2, 6, 14, 16, 16, 16, 0, 0, 2]  # after the eighth, of which one line is searched, anew


def test_short_addresses_and_ends_of_names_in_kubernetes_are_in_no_form():
    short = repeats._without_addresses([b"plugin_09ab", b"plugin_4f21", b"plugin_dead", b"plugin_face"])
    assert short[0] == short[1] and len(set(short)) == 3
    pods = repeats._without_addresses([b"pod a-x7k2p", b"pod a-zxkqp", b"pod a-zxkqpy", b"pod a-qxkzpy", b"pod a-rocm"])
    assert pods[0] == pods[1] and len(set(pods)) == 4


def test_forms_of_lines_are_those_without_addresses():
    found = repeats._without_addresses([b"at 0xabcdef12 in", b"at 12", b"id deadbeef-1234-5678"])
    assert found == [hash(b"at x in"), hash(b"at "), hash(b"id ")]
    assert repeats._without_addresses([]) == []


def test_line_with_a_number_of_a_pattern_keeps_it_in_its_form():
    found, numbers = Repeats(is_dense=True), Numbers([[b"719"]])
    found._fresh(chunk_of("at 719", "at 800", "at 719"), 0, numbers)
    assert found._forms[0] == found._forms[2] == hash((hash(b"at "), numbers.rows(chunk_of("at 719"))[0]))
    assert found._forms[1] == hash(b"at ")
