"""Which matches count: whole words, at the start of a line where asked for, and not excused by what follows."""

import re

import pytest

from rocmatrix.diagnosis.pattern import parse
from rocmatrix.diagnosis.search import exclusions
from rocmatrix.diagnosis.search.chunk import Chunk
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES, ranked, signatures_of


def test_line_that_does_not_count_excuses_none_before_it():
    assert ranked("error: the file of settings is missing\nwarning: 2 old files\n").failures
    assert not ranked("error: the file of settings is missing, falling back\n").failures


def test_line_that_does_not_count_is_known_when_wrapped():
    assert not ranked("error: the file of settings is missing, falling\nback to the defaults\n").failures


def test_end_of_a_word_counts_where_a_pattern_asks_for_it():
    assert [m.signature.id for m in ranked("step 3 loss: nan\n").failures] == ["training-loss-nan"]
    assert ranked("loss: nanometres\n").failures == ()
    assert [m.signature.id for m in ranked("{'loss': nan, 'lr': 1e-3}\nstep 5\n").failures] == ["training-loss-nan"]


@pytest.mark.parametrize("text", ["killed", "so killed it", "(killed)", "so\n'killed' it", "3 killed 3"])
def test_word_that_stands_alone_is_whole(text):
    assert is_whole(text)


@pytest.mark.parametrize("text", ["sokilled", "so_killed", "3killed", "killedso", "killed_so", "so killedso"])
def test_part_of_a_word_is_not_whole(text):
    assert not is_whole(text)


def is_whole(text):
    chunk = Chunk(text.encode(), 1, 0, text.encode())
    start = chunk.squeezed.index(b"killed")
    return exclusions._is_whole(chunk, parse(r"\bkilled\b"), (start, start + 6))


@pytest.mark.parametrize(
    "before",
    ["", "  ", "[rank0]: ", "(EngineCore pid=281420) ERROR 04-14 02:13:13 [core.py:1108] ", "E   ", "\u2502 "],
)
def test_exception_that_begins_a_line_counts_also_after_what_stands_before_lines(before):
    assert signatures_of(f"{before}ValueError: a strange setting\n") == ["python-value-refused"]


@pytest.mark.parametrize("name", ["ResumeError", "tool.core.DeviceUnusableError", "[rank0]: AbortError"])
def test_exception_that_a_program_defines_itself_is_reported_by_its_form(name):
    assert signatures_of(f"Traceback (most recent call last):\n{name}: the frobnicator is gone\n") == ["error-line"]
    assert signatures_of(f"while handling a {name}: the frobnicator is gone\n") == []
    assert signatures_of("ACPI Error: the frobnicator is gone\n") == []
    assert signatures_of("Exception: the frobnicator is gone\n") == ["python-runtime-error"]


def test_exception_of_python_is_no_error_of_a_program_besides():
    assert signatures_of("TypeError: cannot frobnicate\n") == ["python-type-error"]
    assert signatures_of("subprocess.CalledProcessError: Command 'x' failed\n") == ["python-called-program-failed"]


@pytest.mark.parametrize("before", ["falling back after ", "could not use it: ", "except (", "raise "])
def test_exception_within_a_sentence_does_not_count(before):
    assert signatures_of(f"{before}ValueError: a strange setting\n") == []


@pytest.mark.parametrize(
    "log",
    [
        "HTTPError: 429 Client Error: Too Many Requests for url: x\nRetrying in 1s [Retry 1/5].\n",
        "FutureWarning: this argument is deprecated. Please update transformers to 5.0.\n",
        "WARNING: Retrying (Retry(total=4)) after connection broken by 'ReadTimeoutError: timed out'\n",
    ],
)
def test_line_that_an_exception_of_the_signature_matches_does_not_count(log):
    assert signatures_of(log) == []


@pytest.mark.parametrize(
    "before", ["", "/opt/rocm/bin/tool: ", "tool: fatal ", "src/main.zig:12:3: ", "ERROR: ", "[10:11:12] "]
)
def test_error_that_a_program_states_at_the_start_of_a_line_is_reported(before):
    assert signatures_of(f"step 1 done\n{before}error: the frobnicator is not installed\n") == ["error-line"]


@pytest.mark.parametrize("before", ["warning: ", "note: ", "tool: info: ", "step 7 had no ", "the last ", "loss=1 "])
def test_error_within_a_line_or_after_a_warning_is_no_message_of_its_own(before):
    assert signatures_of(f"step 1 done\n{before}error: the frobnicator is not installed\n") == []


@pytest.mark.parametrize(
    "words", ["ERROR Cannot find the frobnicator", "2026-11-23 10:11:12 ERROR unable to frobnicate"]
)
def test_level_before_what_could_not_be_done_makes_it_a_failure(words):
    assert signatures_of(f"step 1 done\n{words}\n") == ["error-line"]
    assert signatures_of(f"step 1 done\n{words.replace('ERROR ', '')}\n") == []


def test_exception_that_python_ignores_ends_no_program():
    words = 'Traceback (most recent call last):\n  File "/a/b.py", line 3, in __del__\nAssertionError: not a child\n'
    assert ranked(f"epoch 9 done\n{words}").failures
    assert not ranked(f"Exception ignored in: <function A.__del__ at 0x7f>\n{words}saved\n").failures


@pytest.mark.parametrize(
    ("line", "found"), [("error: 0.05", 0), ("error: 1.2e-3", 0), ("error: 10.0.0.7 is down", 1), ("error: 404", 1)]
)
def test_figure_of_an_error_is_no_message(line, found):
    assert len(ranked(f"epoch 1\n{line}\ndone\n").failures) == found


REFUSED = "error: the file of settings {n} is missing, falling back\n"


def refusals(monkeypatch):
    """Collect why matches that were looked at in full do not count."""
    reasons = []
    whole = exclusions._refusal

    def watched(*given):
        reasons.append(whole(*given))
        return reasons[-1]

    monkeypatch.setattr(exclusions, "_refusal", watched)
    return reasons


def test_warning_that_repeats_with_other_numbers_is_looked_at_a_few_times_and_hides_no_failure(monkeypatch):
    reasons = refusals(monkeypatch)
    log = "".join(REFUSED.format(n=100 + n) for n in range(500))
    assert not ranked(log).failures
    assert 0 < reasons.count("own") < 100
    assert "around" not in reasons
    found = ranked(log + "error: the file of settings 700 is missing\n").failures
    assert [match.line for match in found] == [501]


def test_line_that_the_one_after_it_excuses_is_looked_at_each_time():
    went_on = "error: the file of settings 1 is missing\nretrying with the defaults\n"
    found = ranked(went_on + "error: the file of settings 2 is missing\nthe end\n").failures
    assert [match.line for match in found] == [3]


@pytest.mark.parametrize(
    ("unless", "by_number"), [([r"ends with code 0", r"x\d{1,3}"], True), ([r"retr.{0,40}\d{1,3}"], False)]
)
def test_excuse_that_names_a_digit_keeps_lines_of_other_digits_apart(unless, by_number):
    one = next(one for one in SIGNATURES if one.unless)
    other = one.model_copy(update={"unless": unless})
    vars(other).pop("excused_by_number", None)  # a copy has what the first one had computed
    assert other.excused_by_number is by_number


def test_chunk_is_searched_once_for_exceptions_that_python_ignored():
    """Each search reads megabytes: of a log of refused errors alone one for each match took minutes."""
    searches = []

    class Text(bytes):
        def __contains__(self, key):
            searches.append(key)
            return super().__contains__(key)

    text = b"ValueError: not here, falling back\n" * 20
    chunk = Chunk(Text(text), 1, 0, text)
    one = next(one for one in SIGNATURES if one.uncaught)
    places = [match.start() for match in re.finditer(rb"(?i)ValueError", chunk.squeezed)]
    assert len(places) == 20
    for place in places:
        exclusions._refusal(chunk, one, one.patterns[0], (place, place + 10))
    assert searches == [b"Exception ignored "]


@pytest.mark.parametrize("git", ["HEAD is now at", "remote: ok\n2026-11-29T10:00:00Z Previous HEAD position was"])
def test_subject_of_a_commit_that_is_checked_out_is_no_failure(git):
    failure = "RuntimeError: HIP error: invalid device function"
    assert signatures_of(f"{git} 00980cd8 Fix {failure} on gfx1100\nstep 1 loss 2\n") == []
    assert signatures_of(f"{git} 00980cd8 Add a test\n{failure}\n") == ["hip-invalid-device-function"]
