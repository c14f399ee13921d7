"""Lines that a log repeats: searched some times, then left out and counted; the answer stays that of the whole log."""

import random
from itertools import pairwise

import pytest

from rocmatrix.diagnosis.pattern import parse, squeeze
from rocmatrix.diagnosis.search import repeats
from rocmatrix.diagnosis.search.chunk import Chunk
from rocmatrix.diagnosis.search.repeats import EACH, NEAR, Numbers, Repeats, broken, left
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES, scanner

NONE = Numbers([[b"nosuchtext1"]])
# named, so that a signature more does not pick others: counts of lines left out are estimates
FAILED = (
    "ib-qp-failed", "profiler-counters-too-many", "miopen-form-not-taken", "c10d-hostname-unresolved",
    "rocm-agent-enumerator-failed", "tokenizer-class-unknown", "hip-invalid-resource-handle",
    "sdcpp-model-parts-missing", "apptainer-writable-refused", "hipblas-arch-mismatch",
    "chat-template-missing", "radeon-driver-bound",
)  # fmt: skip
WORDS = ["settings", "network", "driver", "tensor", "layer", "queue", "stream", "worker"]


def chunk_of(rows):
    text = "".join(f"{row}\n" for row in rows).encode()
    return Chunk(text, 1, 0, text)


def alike(count):
    return [f"rank {n * 7} failed at 0x{n * 7919 + (10 << 24):x}" for n in range(count)]


@pytest.fixture
def dense(monkeypatch):
    monkeypatch.setattr(repeats, "TAIL_LINES", 3)
    monkeypatch.setattr(repeats, "TAIL_BYTES", 1)
    return Repeats(is_dense=True)


def searched(found, rows, numbers=NONE, known=0):
    runs = found.runs(chunk_of(rows), known, numbers)
    return None if runs is None else {row for start, end in runs for row in range(start, end)}


def test_lines_of_one_form_are_searched_some_times_and_at_the_end(dense):
    rows = searched(dense, alike(1000))
    assert rows == {*range(EACH + NEAR), *range(998, 1001)}
    assert searched(dense, alike(1000)) == {*range(1 + NEAR), *range(998, 1001)}  # a chunk's first has none before it
    assert searched(dense, alike(1000), known=40) >= set(range(40))


@pytest.mark.usefixtures("dense")
def test_log_with_few_fixed_texts_is_not_looked_at():
    assert Repeats().runs(chunk_of(alike(1000)), 0, NONE) is None
    found, chunk = Repeats(), chunk_of(alike(1000))
    found.searched([], len(chunk.raw) // 1000, chunk, NONE)
    assert not found.is_dense
    found.searched([], len(chunk.raw) // 1000 + 1, chunk, NONE)
    assert found.is_dense
    assert len(searched(found, alike(1000))) < 300  # the first chunk's lines are counted


def test_look_at_ever_new_pairs_of_lines_that_saves_nothing_waits_ever_longer(dense, monkeypatch):
    calls = []
    original = Repeats._fresh
    monkeypatch.setattr(Repeats, "_fresh", lambda *given: calls.append(1) or original(*given))
    monkeypatch.setattr(repeats, "USELESS", -1)
    looked = [len(calls) for _ in range(20) if searched(dense, alike(100)) is None]
    assert looked == [1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4]


def test_line_of_a_new_form_is_searched_with_its_neighbours(dense):
    rows = alike(1000)
    rows[500] = "the queue is stuck"
    assert searched(dense, rows) >= set(range(500 - NEAR, 501 + NEAR))


def test_two_known_lines_are_searched_where_they_stand_next_to_each_other_for_the_first_time(dense):
    rows = ["one is", "two was"] * 500
    rows[700:702] = ["two was", "one is"]
    assert searched(dense, rows) >= set(range(699, 702)) and 650 not in searched(Repeats(is_dense=True), rows)


def test_number_that_a_pattern_names_is_no_repetition_of_others(dense):
    rows = alike(1000)
    rows[500] = "rank 719 failed at 0xabcdef12"
    assert 500 not in searched(Repeats(is_dense=True), rows)
    assert 500 in searched(dense, rows, Numbers([[b"rank719"], [b"rank"]]))
    rows = [f"rank {n} failed" for n in range(1000)]
    assert 719 in searched(dense, rows, Numbers([[b"rank719"]])) and 729 not in searched(dense, rows)


def test_chunks_of_ever_other_lines_are_looked_at_ever_less_often(dense, monkeypatch):
    chance, calls = random.Random(1), []
    original = Repeats._fresh
    monkeypatch.setattr(Repeats, "_fresh", lambda *given: calls.append(1) or original(*given))
    for _ in range(25):
        assert searched(dense, ["".join(chance.choice("klmnopq") for _ in range(9)) for _ in range(200)]) is None
    assert len(calls) == 3  # after 2 and 6 more chunks


def test_forms_in_memory_are_bounded(monkeypatch):
    monkeypatch.setattr(repeats, "MOST_FORMS", 3)
    assert repeats._bounded({1: 1, 2: 9, 3: 9}, 9) == {1: 1, 2: 9, 3: 9}
    assert repeats._bounded({1: 1, 2: 9, 3: 9, 4: 8}, 9) == {2: 9, 3: 9}
    assert repeats._bounded(dict.fromkeys(range(9), 9), 9) == {}


def test_line_of_megabytes_is_broken_where_its_records_end(monkeypatch):
    monkeypatch.setattr(repeats, "LONG", 30)
    chunk = chunk_of(["[]", '{"a": 1},{"b": "an\\nother"},{"c": 2}', '{"d": 3},{}'])
    lines, places = broken(chunk, True)
    assert lines.raw.split(b"\n")[1:4] == [b'{"a": 1},', b'{"b": "an\\n', b'other"},']
    assert places == [0, 1, 1, 1, 1, 2, 3]
    assert broken(chunk, False)[0] is chunk
    monkeypatch.setattr(repeats, "LONG", 90)
    whole, same = broken(chunk, True)
    assert whole is chunk and [same[row] for row in range(4)] == [0, 1, 2, 3]


def test_failure_in_a_long_line_of_like_records_is_found(monkeypatch):
    monkeypatch.setattr(repeats, "LONG", 5000)
    monkeypatch.setattr(repeats, "TAIL_BYTES", 5000)
    message = '"message": "RuntimeError: HIP error: out of memory"'
    records = [f'{{"id": {number}, {message}}}' for number in range(1800)]
    records[1200] = '{"id": 7, "message": "HIP error: invalid device function"}'
    blocks = [f"[{','.join(part)}]\n".encode() for part in (records[:600], records[600:1600], records[1600:])]
    found = scanner().scan(blocks).matches
    assert found["hip-out-of-memory"].line == 1
    assert found["hip-invalid-device-function"].line == 2


def part_of(whole, runs):
    text, rows = left(whole, runs)
    return Chunk(text, 1, 0, whole.raw, rows, (lambda lines: lines) if rows else None)


def test_place_in_a_chunk_without_repeated_lines_is_that_in_all_of_it():
    whole = chunk_of([f"row {n}x" for n in range(20)])
    part = part_of(whole, [(0, 2), (15, 21)])
    assert left(whole, None) == (whole.raw, ())
    at = part.squeezed.index(b"row16x")
    assert (part.line(at), part.around(at)) == (16, (b"row 16x", 0))
    assert part.before(at, 3) == [b"row 13x", b"row 14x", b"row 15x"]
    assert part.lines(3, 5) == whole.lines(3, 5) == [b"row 3x", b"row 4x"]
    assert part.lines(5, 5) == whole.lines(5, 5) == []
    assert part.shape((at, at + 3)) == (0, 3, b"row 00x", b"row 00x")
    assert part.squeezed.startswith(squeeze(b"row0xrow1x") + b"\n" * 100)
    assert part.near_end(20) == part.squeezed.index(b"row18x")


def test_match_ends_where_lines_were_left_out():
    part = part_of(chunk_of(["the widget is", "-", "-", "not there"]), [(0, 1), (3, 5)])
    assert parse(r"widget is.{0,200}not there").compiled.search(part.squeezed) is None


def test_answer_is_that_of_the_log_with_all_its_lines(monkeypatch):
    monkeypatch.setattr(repeats, "TAIL_BYTES", 9000)
    monkeypatch.setattr("rocmatrix.diagnosis.matcher.MOST_HINTED", 5000)
    chance = random.Random(3)
    failures = [one.sample.strip() for one in sorted(SIGNATURES, key=lambda one: one.id) if one.id in FAILED]
    rows = [f"{chance.choice(failures)}\nstep {n} took {n * 0.37:.2f} s" for n in range(3000)]
    rows[2001] = "RuntimeError: HIP error: invalid device function"
    text = "".join(f"{row}\n" for row in rows).encode()
    cuts = [0, *(text.index(b"\nstep %d " % n) + 1 for n in (1000, 2000)), len(text)]
    blocks = [text[start:end] for start, end in pairwise(cuts)]
    looked_at = []
    monkeypatch.setattr("rocmatrix.diagnosis.matcher.left", lambda *args: looked_at.append(args[1]) or left(*args))
    found = scanner().scan(blocks)
    monkeypatch.setattr(repeats, "DENSE", 0)
    whole = scanner().scan(blocks)
    assert any(runs is not None for runs in looked_at)
    assert {name: (row.line, row.text, row.weight) for name, row in found.matches.items()} == {
        name: (row.line, row.text, row.weight) for name, row in whole.matches.items()
    }
    assert found.signs.keys() == whole.signs.keys()
    counts = [(row.count, whole.matches[name].count) for name, row in found.matches.items()]
    assert [row for row in counts if row[1] > EACH and abs(row[0] - row[1]) > row[1] / 10] == []
