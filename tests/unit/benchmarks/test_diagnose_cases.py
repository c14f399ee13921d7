"""The judge of diagnoses: right where the settled cause is named, wrong where another is stated as certain."""

import hashlib

import pytest

from benchmarks import diagnose_cases as bench
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES


def case(log, *words):
    return bench.Case(source="a/b#1", log=log, cause="a cause", words=words)


def judged(log, *words):
    return bench.verdict(case(log, *words), SIGNATURES)[0]


def test_named_cause_is_right_and_another_stated_one_is_wrong():
    log = "error: externally-managed-environment\n"
    assert judged(log, "pip", "distribution|system") == "right first"
    assert judged(log, "firmware file of the moon") == "wrong first"
    assert judged(log, "pip", "the moon") == "wrong first"


def test_symptom_whose_causes_name_it_further_down_is_among_the_first_three():
    assert judged("RuntimeError: No HIP GPUs are available\n", "default index") == "first three"


def test_similar_failures_stand_after_the_first_cause_and_state_nothing_as_certain():
    found = bench.diagnosed("RuntimeError: No HIP GPUs are available\n", SIGNATURES)
    listed = [text for text, _ in bench.listed(found, found.best)]
    shown = list(bench.answers(found))
    assert not found.similar[0].distinct  # very many threads have this line
    assert [text for text, _ in shown[:4]] == [*listed[:2], found.similar[0].cause, found.similar[1].cause]
    assert not any(certain for _, certain in shown)


def test_certain_cause_comes_without_similar_failures():
    assert not bench.diagnosed("error: externally-managed-environment\n", SIGNATURES).similar


def test_uncertain_answer_is_open_and_a_missing_one_counts_as_nothing():
    assert judged("RuntimeError: No HIP GPUs are available\n", "the moon") == "open"
    assert judged("all went well\n", "the moon") == "nothing"


def test_remark_without_a_failure_is_counted_apart_from_what_is_right_first():
    line = "/opt/amdgpu/share/libdrm/amdgpu.ids: No such file or directory\n"
    assert judged(line, "libdrm", "harmless") == "first remark"
    assert judged(line, "the moon") == "nothing"


def test_words_that_an_answer_repeats_of_the_log_do_not_count():
    log = "ValueError: the moon is made of cheese\n"
    repeated = "The program refuses a value: the moon is made of cheese."
    assert "moon" not in bench.without_echo(repeated, log)
    assert "refuses a value" in bench.without_echo(repeated, log)
    assert bench.without_echo("the moon", log) == "the moon"
    assert judged(log, "moon") == "open"


# a number may be reserved for a set that is still being gathered: its file is then not there yet
GATHERED = [name for name in bench.SETS if (bench.CASES / f"{name}.yaml").is_file() and name != "given"]


@pytest.mark.parametrize("name", GATHERED)
def test_cases_have_lines_words_and_a_thread_of_their_own(name):
    rows = bench.cases(name)
    assert len({row.source for row in rows}) == len(rows) > 20
    assert all(row.log.strip() and row.cause and row.words and "#" in row.source for row in rows)


def test_held_out_set_is_chosen_by_the_name_of_the_thread():
    for row in bench.cases("held_out"):  # threads gathered after that choice are learned from, whatever their hash
        assert hashlib.sha256(row.source.encode()).digest()[0] % 10 < 4, row.source


def test_threads_are_in_one_set_only():
    names = [row.source for name in bench.SETS if name != "given" for row in bench.cases(name)]
    assert len(names) == len(set(names))


def test_threads_beyond_the_given_ones_are_four_hundred():
    assert sum(len(bench.cases(name)) for name in bench.SETS if name != "given") >= 400


def test_sources_of_signatures_are_answered():
    known = tuple(SIGNATURES)
    verdicts = [bench.verdict(row, known)[0] for row in bench.cases("learn")]
    assert verdicts.count("right first") >= 0.9 * len(verdicts)
    assert not any("wrong" in verdict for verdict in verdicts)
