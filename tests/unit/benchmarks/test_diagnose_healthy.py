"""Kinds of healthy logs with alarming words: every kind is asked once, and no cause is named in it."""

import re

import pytest

from benchmarks import diagnose_healthy as bench
from benchmarks.diagnose_cases import diagnosed
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES

ALARMING = re.compile(
    r"err|fail|warn|unsuccess|unable|could not|cannot|missing|not found|denied|kill|refus|abort|invalid|false", re.I
)
KINDS = bench.kept_kinds()
LOGS = dict(bench.synthetic())


def test_kept_kinds_are_many_and_each_has_a_line_that_sounds_like_a_failure():
    assert len(KINDS) >= 40
    silent = [kind for kind, forms in KINDS.items() if not any(map(ALARMING.search, forms))]
    assert silent == []


def test_synthetic_logs_are_filled_and_each_kind_has_all_its_forms():
    assert len(LOGS) == len(bench.KINDS) * bench.VARIANTS + len(KINDS) * bench.KEPT_VARIANTS
    for kind, forms in KINDS.items():
        lines = LOGS[f"synthetic {kind} 0"].splitlines()
        assert len(lines) >= len(forms)
        assert not any("{n}" in line or "{x}" in line for line in lines)


@pytest.mark.parametrize("kind", KINDS)
def test_healthy_log_names_no_cause(kind):
    assert diagnosed(LOGS[f"synthetic {kind} 0"], tuple(SIGNATURES)).best is None
