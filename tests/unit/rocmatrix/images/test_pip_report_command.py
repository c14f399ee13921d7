"""The whole command that pip gets, the files that it is given, and what is read from its lines. pip is a STAND-IN."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rocmatrix.images import pip_report
from rocmatrix.images.pip_report import Question, Resolved
from rocmatrix.runtime.errors import RocmatrixError

PLAIN = Question(python="3.12", requirements=("numpy==2", "six"), constraints=("a==1", "b==2"))
INDEXED = Question(python="3.11", requirements=("torch==9",), index="https://a.example", links="/links")
ENTRY = {
    "download_info": {"url": "https://a.example/x/numpy-2%2Bcpu.whl", "archive_info": {"hashes": {"sha256": "ab"}}},
    "metadata": {"name": "numpy", "version": "2+cpu"},
}
NUMPY = Resolved(file="numpy-2+cpu.whl", name="numpy", version="2+cpu", url=ENTRY["download_info"]["url"], sha256="ab")
BROKEN = "WARNING: Retrying (x) after connection broken by 'New('<c>: Failed: [Errno -2] not known ')': /torch/"


@pytest.fixture
def pip(monkeypatch):
    """A pip that writes a report of one file, or ends with `refused_with`; `calls` are the commands that started it."""
    found = SimpleNamespace(calls=[], constraints=[], refused_with="", printed="", answers={})

    def run(argv, *, capture_output, text, check):
        assert (capture_output, text, check) == (True, True, False)
        found.calls.append(argv)
        found.constraints.append(Path(argv[argv.index("--constraint") + 1]).read_text(encoding="utf-8"))
        output = found.answers.get(argv[argv.index("--constraint") - 1], found.refused_with)
        if not output:
            Path(argv[argv.index("--report") + 1]).write_text(json.dumps({"install": [ENTRY]}), encoding="utf-8")
        return SimpleNamespace(returncode=1 if output else 0, stderr=output, stdout=found.printed)

    monkeypatch.setattr(pip_report.subprocess, "run", run)
    return found


def test_pip_gets_the_whole_question_and_its_report_is_read(pip):
    assert pip_report.query(PLAIN) == [NUMPY]
    (argv,) = pip.calls
    scratch = argv[argv.index("--report") + 1].removesuffix("/report.json")
    assert argv == [
        *(sys.executable, "-m", "pip", "install", "--dry-run", "--progress-bar=off", "--ignore-installed"),
        *("--retries", "1", "--timeout", "10", "--only-binary=:all:"),
        *("--report", f"{scratch}/report.json", "--target", f"{scratch}/target"),
        *("--python-version", "3.12", "--implementation", "cp", "--abi", "cp312", "--abi", "abi3", "--abi", "none"),
        *(word for platform in pip_report.PLATFORMS for word in ("--platform", platform)),
        *("numpy==2", "six", "--constraint", f"{scratch}/constraints.txt"),
    ]
    assert pip.constraints == ["a==1\nb==2\n"]


def test_another_index_and_a_folder_of_links_are_queried_as_well(pip):
    pip_report.query(INDEXED)
    (argv,) = pip.calls
    assert argv[-7:-2] == ["--extra-index-url", "https://a.example", "--find-links", "/links", "torch==9"]
    assert pip.constraints == [""]


@pytest.mark.parametrize(
    ("question", "output", "code", "where", "why"),
    [
        (PLAIN, "ERROR: no numpy", "RM105", "", "no numpy"),
        (PLAIN, BROKEN, "RM105", "", "connection broken by 'New('<c>: Failed: [Errno -2] not known ')': /torch/"),
        (INDEXED, "ERROR: no torch", "RM105", "https://a.example", "no torch"),
        (INDEXED, BROKEN, "RM104", "https://a.example", "https://a.example cannot be reached: [Errno -2] not known"),
    ],
)
def test_refusal_of_pip_is_of_the_index_where_that_is_out_of_reach(pip, question, output, code, where, why):
    pip.refused_with = output
    with pytest.raises(RocmatrixError) as caught:
        pip_report.query(question)
    assert (caught.value.code, caught.value.where, caught.value.why) == (code, where, why)
    assert caught.value.what == f"{question.requirements[0]} for Python {question.python}"


def test_questions_to_sources_of_the_machine_are_queried_each_on_its_own_and_an_index_out_of_reach_once(pip):
    again = Question(python="3.12", requirements=("torch==9",), index="https://a.example")
    other = Question(python="3.12", requirements=("torch==9",), index="https://b.example")
    pip.answers = {"torch==9": BROKEN}
    found = pip_report.query_all([PLAIN, INDEXED, again, other, PLAIN])
    assert list(found) == [PLAIN, INDEXED, again, other]
    assert found[PLAIN] == [NUMPY]
    assert found[again] is found[INDEXED]
    assert "b.example" in found[other].why
    assert len(pip.calls) == 3


def test_index_that_answers_is_queried_on_after_one_question_that_nothing_fits(pip):
    second = Question(python="3.12", requirements=("six",), index="https://a.example")
    pip.answers = {"torch==9": "ERROR: no torch"}
    found = pip_report.query_all([INDEXED, second])
    assert (found[INDEXED].code, found[second]) == ("RM105", [NUMPY])


def test_files_are_ordered_by_name_whatever_their_letter_case():
    entries = [
        ENTRY | {"download_info": {"url": f"x/{name}", "archive_info": {}}} for name in ("b", "C", "a", "ab", "a_b")
    ]
    found = pip_report.parse_report({"install": entries})
    assert [(row.file, row.sha256) for row in found] == [(name, None) for name in ("a", "a_b", "ab", "b", "C")]


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        ("", "pip gave no reason"),
        ("one\ntwo", "two"),
        ("ERROR: first\nERROR: second\nlast", "first"),
        ("WARNING: Retrying (a) after first\nWARNING: Retrying (b) after second\nERROR: error", "first; error"),
        ("WARNING: other after x\nlast", "last"),
        ("WARNING: Retrying (a) after one after two", "one after two"),
        ("ERROR: " + "x" * 300, "x" * 240),
    ],
)
def test_reason_is_the_first_broken_connection_and_the_first_error_else_the_last_line(stderr, reason):
    assert pip_report.reason(stderr) == reason


def test_packages_that_exclude_each_other_are_named_after_the_reason(pip):
    pip.refused_with = "ERROR: ResolutionImpossible"
    pip.printed = "Collecting a\nThe conflict is caused by:\n    a 1 depends on b<2\n    c 1 depends on b>2\n\nTo fix"
    with pytest.raises(RocmatrixError, match="RM105") as caught:
        pip_report.query(PLAIN)
    assert caught.value.why == "ResolutionImpossible\na 1 depends on b<2\nc 1 depends on b>2"
    many = "The conflict is caused by:\n" + "".join(f"  {n}{'x' * 300}\n" for n in range(9))
    assert pip_report.conflict(many) == [f"{n}{'x' * 239}" for n in range(8)]
    assert pip_report.conflict("no conflict") == []
