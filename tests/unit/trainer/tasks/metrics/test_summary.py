"""The summary of a run at its end."""

from __future__ import annotations

from tests.fixtures.summaries import HISTORY, RECORD
from trainer.run.artifacts import lasted
from trainer.run.summary import summary
from trainer.tasks.metrics.summary import _confused, row_lines


def test_summary_has_four_lines() -> None:
    assert summary(RECORD, row_lines(RECORD, lasted(HISTORY))).splitlines() == [
        "device  cuda:0, Radeon (gfx1100); auto: only one",
        "data    x.csv, 1,257 bars 2014-01-03 to 2018-12-31; rows: 100 train / 20 validation / 21 test",
        "best    epoch 1 of 2, in 2.0 s at 100 rows/s",
        "R²      validation / test: 0.51 / 0.40 against the training mean, none / 0.20 against persistence, "
        "-0.10 / 0.00 against a linear fit",
    ]


def test_classes_of_long_names_leave_their_line_readable() -> None:
    names = [f"{'long-' * 40}{place}" for place in range(2)]
    metrics = {"confusion": {"test": [[1, 5], [3, 1]]}}
    line = _confused({"metrics": metrics, "target": {"labels": names}})["wrong"]
    assert len(line) < 220
    assert "0 taken for long-" in line
    assert line.endswith("0: 3")
