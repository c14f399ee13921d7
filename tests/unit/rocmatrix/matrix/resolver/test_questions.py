"""Questions that people ask, with answers that sources settle: the headline alone must be right."""

from collections import Counter
from pathlib import Path

import pytest
import yaml

from rocmatrix.cli.options.common import Axes
from rocmatrix.matrix.naming import versions
from rocmatrix.matrix.resolver.explanation import explain
from rocmatrix.matrix.resolver.resolve import Request
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX

FOLDER = Path(__file__).resolve().parents[4] / "fixtures"
NAMES = ("questions.yaml", "questions_by_hand.yaml", "questions_by_lists.yaml", "questions_of_owners.yaml",
         "questions_of_threads.yaml", "questions_of_searches.yaml", "questions_asked_once.yaml")  # fmt: skip
SETS = {name: yaml.load((FOLDER / name).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader) for name in NAMES}
LEAST = 0.95


def headline(question):
    """Return what the program says first, of versions as they were typed; the code of a refusal where it refuses."""
    typed = Axes(
        gpu=question["gpu"], rocm=question.get("rocm", ""), torch=question.get("torch", ""), cell="", python=""
    )
    try:
        python = versions.python(question.get("python", "")) or None
        return explain(MATRIX, typed.request, today="2026-11-22", python=python).judged.verdict
    except RocmatrixError as refusal:
        return refusal.code


@pytest.mark.parametrize("name", ["questions.yaml", "questions_by_hand.yaml", *NAMES[3:]])
def test_headlines_of_at_least_95_of_100_questions_are_right(name):
    answers = [(question, headline(question)) for question in SETS[name]]
    wrong = [
        f"{q['gpu']} {q.get('rocm')} {q.get('torch')}: {answer}, settled {q['answer']}"
        for q, answer in answers
        if answer != q["answer"]
    ]
    assert 1 - len(wrong) / len(answers) >= LEAST, "\n".join(wrong)


def test_questions_ask_for_every_headline_that_sources_can_settle():
    questions = SETS["questions.yaml"]
    assert len(questions) >= 60
    kinds = Counter(question["answer"] for question in questions)
    assert set(kinds) == {"supported", "expected", "reported", "broken", "degraded", "unavailable", "untested"}
    assert len({tuple(sorted(question.items())) for question in questions}) == len(questions)
    assert all(len(question["from"]) > 5 for question in questions)


def test_silence_is_rare():
    """A headline of `untested` is for where nothing is known; most squares are known."""
    headlines = [headline(question) for question in SETS["questions.yaml"]]
    assert headlines.count("untested") <= 2


def test_report_is_the_reason_where_lists_and_wheels_differ():
    """These answers leave reports out, so only a rule with a report may differ from them, and only for the worse."""
    written = {rule.id for rule in MATRIX.rules if rule.evidence.confidence == "reported"}
    questions = SETS["questions_by_lists.yaml"]
    other = [question for question in questions if headline(question) != question["answer"]]
    for question in other:
        request = Request(gpu=question["gpu"], rocm=question["rocm"], torch=question["torch"])
        judged = explain(MATRIX, request, today="2026-11-22").judged
        assert judged.verdict in ("broken", "degraded"), question
        assert judged.because.removeprefix("rule ") in written, question
    assert len(other) <= len(questions) // 10
