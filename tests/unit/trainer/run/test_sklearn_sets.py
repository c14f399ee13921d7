from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest

pytest.importorskip("sklearn", reason="scikit-learn, with which we compare, is not installed")

from benchmarks import sklearn_sets
from tests.left_out import one_of

pytestmark = pytest.mark.usefixtures("torch_as_before")

KEPT = json.loads((sklearn_sets.ROOT / "benchmarks/results/sklearn_sets.json").read_text())


@pytest.mark.parametrize("name", sklearn_sets.SETS)
def test_kept_results_follow_from_their_raw_values(name: str) -> None:
    kept = KEPT["sets"][name]
    assert kept["seeds"] == list(range(10))
    for who in ("ours", "scikit_learn"):
        assert len(kept[who]) == 10
        assert kept["mean"][who] == pytest.approx(statistics.mean(kept[who]))
    allowed = max(statistics.stdev(kept[who]) for who in ("ours", "scikit_learn"))
    assert kept["mean"]["ours"] >= kept["mean"]["scikit_learn"] - allowed
    assert kept["as_good"]


@pytest.mark.parametrize("name", one_of(["diabetes", "breast_cancer"]))
def test_two_seeds_here_give_what_was_kept(name: str, tmp_path: Path) -> None:
    """Other machines round otherwise, so the figures are near the kept ones, not equal to them."""
    found, kept = sklearn_sets.compared(name, (0, 1), tmp_path), KEPT["sets"][name]
    for who in ("ours", "scikit_learn"):
        assert found["mean"][who] == pytest.approx(statistics.mean(kept[who][:2]), abs=0.02)
