"""The file of known failures holds what the sets hold, and nothing of the sets that are kept to measure with."""

from __future__ import annotations

import json

from benchmarks import similar_cases
from benchmarks.diagnose_cases import cases


def test_file_was_made_from_the_sets_as_they_are():
    made = json.loads(similar_cases.FILE.read_text(encoding="utf-8"))
    assert made["made_from"] == similar_cases.made_from(), "python -m benchmarks.similar_cases writes it anew"
    assert len(made["failures"]) == sum(len(cases(name)) for name in similar_cases.LEARNED)


def test_threads_that_are_kept_to_measure_with_are_not_in_the_file():
    held = {source for source, *_ in json.loads(similar_cases.FILE.read_text(encoding="utf-8"))["failures"]}
    kept = {case.source for name in similar_cases.UNSEEN for case in cases(name)}
    assert len(kept) > 200
    assert not held & kept
