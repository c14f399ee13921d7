"""When a diagnosis calls its cause certain, and what it names next to one that is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.diagnose_cases import diagnosed
from rocmatrix.diagnosis import answer, diagnosis, project_errors
from rocmatrix.diagnosis.similar.cases import Similar
from tests.unit.rocmatrix.diagnosis.known import COMPARISONS, SIGNATURES

STATED = "error: externally-managed-environment\n"
KNOWN = (*SIGNATURES, *project_errors.signatures())


def test_supported_cause_is_certain_and_stands_alone():
    found = diagnosed(STATED, KNOWN)
    assert found.is_certain and answer.described(found)["certain"] is True
    assert not any("doubt:" in line or "alike:" in line for line in answer.text_lines(found))


def test_cause_without_support_is_doubted_and_similar_failures_are_named(monkeypatch):
    monkeypatch.setattr(diagnosis, "supported", lambda *_: False)
    found = diagnosed(STATED, KNOWN)
    assert found.is_stated and not found.is_certain and answer.described(found)["certain"] is False
    lines = answer.text_lines(found)
    assert sum("doubt:  none of the known failures" in line for line in lines) == 1
    assert [row["source"] for row in answer.described(found)["similar"]] == [one.source for one in found.similar]


def test_values_that_contradict_each_other_need_no_support(monkeypatch):
    monkeypatch.setattr(diagnosis, "supported", lambda *_: False)
    rule = next(one for one in COMPARISONS.rules if one.kind == "cause" and one.proves == "failure")
    assert diagnosed(f"{rule.sample}\n", KNOWN).is_certain


@pytest.mark.parametrize(
    ("listed", "distinct", "expected"),
    [("xyz", True, "xabyz"), ("xyz", False, "xyabz"), ("x", False, "xab"), ("", True, "ab")],
)
def test_similar_failures_stand_after_the_first_cause_or_after_two_where_many_are_as_near(listed, distinct, expected):
    near = tuple(Similar(source=one, cause=one, score=20.0, distinct=distinct) for one in "ab")
    found = replace(diagnosed(STATED, KNOWN), similar=near)
    assert "".join(diagnosis.with_similar(found, listed, "ab")) == expected


def test_general_answer_has_similar_failures_before_its_own_cause():
    found = diagnosed("frobnicate: error: the kfd ioctl of /dev/kfd was refused by the container\n", KNOWN)
    assert found.best.signature.family and found.is_general and found.similar
    heads = [line.split(":")[0].strip() for line in answer.text_lines(found)[2:]]
    assert heads.index("alike") < heads.index("cause")
    assert answer.described(found)["similar_after"] == 0
    assert diagnosis.with_similar(found, "xy", "a") == ["a", "x", "y"]


def test_cause_that_the_log_hints_at_stands_before_similar_failures_of_a_general_answer():
    found = diagnosed("thread 'main' panicked at /src/cubecl-hip-0.5.0/src/runtime.rs:85:5:\n", KNOWN)
    assert found.is_general and found.similar
    assert diagnosis.listed_before_similar(found) == 1
    assert [line.split(":")[0].strip() for line in answer.text_lines(found)[2:5]] == ["cause", "maybe", "alike"]


def test_few_lines_without_a_failure_are_compared_where_they_describe_trouble():
    assert diagnosed("# the container sees no card of ROCm, /dev/kfd is there\n", ()).similar
    assert not diagnosed("loaded amdgpu, 2 cards, render nodes 128 and 129\n", ()).similar


def test_words_of_a_harmless_line_describe_no_trouble():
    line = "/opt/amdgpu/share/libdrm/amdgpu.ids: No such file or directory\n"
    assert diagnosed(line, KNOWN).ranked.remarks and not diagnosed(line, KNOWN).similar
    assert diagnosed(f"{line}# and rocminfo finds no card of the machine, gfx1100\n", KNOWN).similar
