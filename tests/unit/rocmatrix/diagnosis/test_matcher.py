"""Where a match stands, how often, and across the borders of chunks; healthy logs give no reason to worry."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmatrix.diagnosis import log_prefixes, log_reader
from rocmatrix.diagnosis.matcher import LARGE, MOST_HINTED, Scanner
from rocmatrix.diagnosis.search.chunk import Chunk
from rocmatrix.diagnosis.search.match import LAST_LINES, MOST_COUNTED, Match, Scanned
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES, ranked, scanner, signatures_of

HEALTHY = sorted((Path(__file__).parent / "healthy").glob("*.log"))
FAULT = "RuntimeError: HIP error: invalid device function\n"


@pytest.mark.parametrize("path", HEALTHY, ids=lambda path: path.stem)
def test_healthy_log_gives_no_failure(path):
    found = ranked(path.read_bytes())
    assert [match.signature.id for match in found.failures] == []


@pytest.mark.parametrize("path", HEALTHY, ids=lambda path: path.stem)
def test_log_with_a_failure_inserted_gives_that_failure(path):
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    lines.insert(len(lines) // 2, FAULT)
    assert [match.signature.id for match in ranked("".join(lines)).failures] == ["hip-invalid-device-function"]


ENTRIES = (
    "hint: Updates were rejected",
    "src/b.py:3: error: another one",
    "food: error: another one",
    "Traceback (most recent call last):",
)


@pytest.mark.parametrize("entry", ENTRIES)
def test_message_ends_where_another_entry_begins_and_goes_on_where_it_is_wrapped(entry):
    (match,) = ranked(f"food: error: cheese is not\n ripe\n{entry}\n").failures
    assert match.cause.startswith("The program states: cheese is not ripe. ")


def test_message_of_a_server_ends_at_its_next_time():
    rows = ('ERROR:  relation "a" does not exist', "STATEMENT:  SELECT 1", "LOG:  checkpoint complete")
    (match,) = ranked("".join(f"2026-11-29 10:00:0{n} UTC [55] {row}\n" for n, row in enumerate(rows))).failures
    assert match.cause.startswith('The program states: relation "a" does not exist. ')


def test_healthy_logs_exist():
    assert len(HEALTHY) >= 10


@settings(max_examples=40, deadline=None)
@given(before=st.integers(0, 300), count=st.integers(1, 5), size=st.integers(40, 4000))
def test_line_and_count_do_not_depend_on_the_chunks(before, count, size):
    log = ("[rank0]: step 17 loss 0.25\n" * before + FAULT * count + "done\n" * 200).encode()
    blocks = [log]
    if size < len(log):
        cut = log.rfind(b"\n", 0, size) + 1
        blocks = [block for block in (log[:cut], log[cut:]) if block]
    scanned = scanner().scan(blocks)
    match = scanned.matches["hip-invalid-device-function"]
    assert (match.line, match.count) == (before + 1, count)
    assert scanned.lines == before + count + 200
    assert scanned.bytes == len(log)


def test_wrapped_match_across_the_border_of_two_chunks_is_found():
    scanned = scanner().scan([b"a\n" * 50 + b"RuntimeError: HIP error: inva\n", b"lid device function\nend\n"])
    match = scanned.matches["hip-invalid-device-function"]
    assert (match.line, match.count) == (51, 1)


def test_match_seen_once_is_not_counted_again_with_the_next_chunk():
    scanned = scanner().scan([FAULT.encode(), b"end\n", b"end\n"])
    assert scanned.matches["hip-invalid-device-function"].count == 1


def test_counting_ends_somewhere():
    scanned = scanner().scan([FAULT.encode() * (MOST_COUNTED + 500)])
    assert scanned.matches["hip-invalid-device-function"].count == MOST_COUNTED


def test_shown_line_has_no_decoration_and_fits_a_terminal():
    log = b"2026-11-21T10:00:00Z \x1b[31mRuntimeError: HIP error: invalid device function\x07\xff" + b"x" * 900 + b"\n"
    match = scanner().scan([log]).matches["hip-invalid-device-function"]
    assert match.text.startswith("RuntimeError: HIP error: invalid device function")
    assert match.text.isprintable()
    assert len(match.text) == 240


@given(st.binary(max_size=2000))
def test_views_have_as_many_lines_as_the_log(data):
    lines = data.replace(b"\r", b"") + b"\n"
    for view in log_prefixes.views(lines):
        assert view.count(b"\n") == lines.count(b"\n")


@pytest.mark.parametrize(
    ("lines", "searches"),
    [("  step 1\n\tstep 2\n", 1), ("INFO: step 1\n", 2), ("  step 1\nINFO: step 2\n", 2), ("step 1\n", 1)],
)
def test_second_view_that_differs_in_blanks_alone_is_not_searched(lines, searches, monkeypatch):
    calls = []
    search = Scanner._search
    monkeypatch.setattr(Scanner, "_search", lambda *given: calls.append(1) or search(*given))
    scanner().scan([lines.encode()])
    assert len(calls) == searches


def test_signatures_are_all_searched():
    rows = sorted(SIGNATURES, key=lambda one: one.uncaught)  # those count at the end of a log
    text = b"\n\n\n".join(one.sample.encode() for one in rows)  # the line after one may state that it does not count
    assert set(scanner().scan([text + b"\n"]).matches) == {one.id for one in SIGNATURES}
    assert len(text) < log_reader.CHUNK


def test_exception_at_the_end_is_reported_and_one_followed_by_much_more_was_handled():
    assert signatures_of("ValueError: a strange setting\n") == ["python-value-refused"]
    assert signatures_of("ValueError: a strange setting\n" + "step 1 loss 0.25\n" * (LAST_LINES - 1)) != []
    assert signatures_of("ValueError: a strange setting\n" + "step 1 loss 0.25\n" * (LAST_LINES + 1)) == []


def test_last_line_of_an_exception_counts_not_its_first():
    line = "ValueError: a strange setting\n"
    assert signatures_of(line + "step 1 loss 0.25\n" * (2 * LAST_LINES) + line) == ["python-value-refused"]


def test_value_of_the_line_stands_in_the_cause():
    best = ranked("ImportError: cannot import name 'cached_download' from 'huggingface_hub'\n").failures[0]
    assert "installed huggingface_hub has no cached_download" in best.cause
    wrapped = ranked("ImportError: cannot import name\n 'cached_download' from 'huggingface_hub'\n").failures[0]
    assert "installed huggingface_hub has no cached_download" in wrapped.cause
    torn = ranked("ImportError: cannot\n import\n name\n 'cached_download' from 'huggingface_hub'\n").failures[0]
    assert "installed package has no such name" in torn.cause


def test_exception_in_a_line_of_a_megabyte_is_found():
    assert signatures_of("x" * (1 << 20) + " | ValueError: a strange setting\n") == ["python-value-refused"]
    assert signatures_of("x" * (1 << 20) + " or ValueError: a strange setting\n") == []


def test_traceback_names_the_packages_in_the_cause():
    lines = (
        "Traceback (most recent call last):",
        '  File "/venv/lib/python3.12/site-packages/vllm/worker.py", line 3, in run',
        '  File "/venv/lib/python3.12/site-packages/aiter/ops.py", line 9, in mul',
        "TypeError: 'int' object is not callable",
    )
    match = next(row for row in ranked("\n".join(lines)).failures if row.signature.id == "python-type-error")
    assert match.packages == {"raised": "aiter", "caller": "vllm"}
    assert "raised in aiter" in match.cause


def test_line_that_repeats_costs_less_and_hides_nothing(monkeypatch):
    monkeypatch.setattr("rocmatrix.diagnosis.search.index.MANY_IDLE", 10)
    warning = b"UserWarning: expandable_segments not supported on this platform\n" * (MOST_COUNTED + 100)
    searcher = Scanner(SIGNATURES)
    texts = len(searcher._lookup._all().index.literals)
    scanned = searcher.scan([warning, warning, warning + FAULT.encode()])
    assert len(searcher._lookup._lean[-1].index.literals) < texts
    assert scanned.matches["hip-invalid-device-function"].line == 3 * (MOST_COUNTED + 100) + 1
    again = searcher.scan([warning])  # another log: everything is looked for again
    assert again.matches.keys() == Scanner(SIGNATURES).scan([warning]).matches.keys()


def test_patterns_that_are_not_looked_for_any_more_are_those_counted_often_but_exceptions():
    names, searcher = ("hip-invalid-device-function", "python-value-refused"), scanner()
    own = {one.id: one for one in SIGNATURES}
    done = Scanned(matches={name: Match(signature=own[name], line=1, text="", weight=1, count=9) for name in names})
    plain, exception = (set(searcher._numbers_of[name, None]) for name in names)
    assert searcher._spent(done, 9) == plain
    assert searcher._spent(done, 1) == plain | exception  # in the second view
    assert searcher._counted_late(Chunk(b"", 1, 0, b""), frozenset(names)) == (searcher._late | exception, 0)


@pytest.mark.parametrize(("between", "hinted"), [(10, True), (3000, False)])
def test_hint_of_an_exception_counts_near_the_end_only_as_the_exception_does(between, hinted):
    log = "ValueError: the format is unknown\n" + "step 100 of 3000, loss 1.25\n" * between + "ValueError: not here\n"
    signs = scanner().scan([log.encode()]).signs
    assert any(name == "python-value-refused" and place < 0 for name, place in signs) is hinted


REFUSED = b"HTTPError: 429 Client Error: Too Many Requests for url: x\n"
RETRIED = b"Retrying in 1s [Retry 1/5].\n"


@pytest.mark.parametrize("blocks", [[REFUSED, RETRIED], [REFUSED + RETRIED, b"done\n"], [REFUSED, RETRIED, RETRIED]])
def test_line_at_the_end_of_a_chunk_is_excused_by_the_first_of_the_next(blocks):
    assert scanner().scan(blocks).matches == {}
    assert scanner().scan([REFUSED, b"done\n"]).matches != {}


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_failures_at_the_end_of_a_chunk_count_once(count):
    fault = FAULT.encode()
    for blocks in ([fault * count, b"end\n"], [fault * count, fault], [b"x" * 9000 + b"\n" + fault * count, b"end"]):
        match = scanner().scan(blocks).matches["hip-invalid-device-function"]
        assert match.count == count + (blocks[1] == fault)


HINTS = (
    b"ValueError: the format is unknown\n"
    + b"step 100 of 3000, loss 1.25\n" * 40
    + b"RuntimeError: HIP error: no\n" * 1100
    + b"OSError: [Errno 9] Bad file descriptor\nvalue 3\n" * 200
)


def test_answer_is_the_same_where_the_end_of_a_chunk_is_searched_apart(monkeypatch):
    monkeypatch.setattr("rocmatrix.diagnosis.matcher.LARGE", 0)
    monkeypatch.setattr("rocmatrix.diagnosis.matcher.MOST_HINTED", 900)
    blocks = [HINTS, FAULT.encode() + HINTS, HINTS * 2 + FAULT.encode()]
    apart = Scanner(SIGNATURES).scan(blocks)
    calls = []
    monkeypatch.setattr("rocmatrix.diagnosis.matcher.LARGE", 1 << 40)
    monkeypatch.setattr(Scanner, "_counted_late", lambda *given: calls.append(1) or (frozenset(), 0))
    whole = Scanner(SIGNATURES).scan(blocks)
    assert {name: (row.line, row.last, row.count, row.text) for name, row in apart.matches.items()} == {
        name: (row.line, row.last, row.count, row.text) for name, row in whole.matches.items()
    }
    assert {place: row.line for place, row in apart.signs.items()} == {p: row.line for p, row in whole.signs.items()}
    assert calls and len(whole.matches) > 2


def test_exception_that_was_counted_often_is_looked_for_at_the_end_alone():
    searcher, done = Scanner(SIGNATURES), Scanned()
    searcher.read(b"ValueError: no such format\n" * (MOST_COUNTED + 10), done)
    full = frozenset({"python-value-refused"})
    assert done.matches["python-value-refused"].count == MOST_COUNTED
    text = b"ValueError: no such format\n" * (LARGE // 20)
    chunk = Chunk(text, 1, 0, text)
    late, tail = searcher._counted_late(chunk, full)
    patterns = {searcher._patterns[number][0].id for number in late if searcher._patterns[number][1] is None}
    assert patterns == full and len(chunk.squeezed) - tail == MOST_HINTED
    hints, _ = searcher._counted_late(chunk, frozenset())
    assert {searcher._patterns[number][1] is None for number in hints} == {False}
