"""Figures have names that people read, and each interval is one row."""

from __future__ import annotations

from trainer.analysis.report.figures import figure_rows, span_of, words_of

PART = {"rows": 60, "accuracy": 0.85, "auc": None, "my_own_low": 0.5, "accuracy_low": 0.75, "accuracy_high": 0.9333}


def test_interval_is_one_row_and_a_figure_without_a_value_none() -> None:
    assert figure_rows(PART, {**PART, "accuracy_low": None}) == [
        ("rows", 60, 60),
        ("right answers", 0.85, 0.85),
        ("my own low", 0.5, 0.5),  # a figure of that name, not the end of an interval
        ("right answers, 95 % interval", "0.750 to 0.933", ""),
    ]


def test_figure_that_is_not_known_keeps_its_name() -> None:
    assert (words_of("r2_vs_linear"), words_of("top_2_accuracy")) == ("R² against a linear fit", "top 2 accuracy")


def test_span_of_a_figure_without_an_interval_is_empty() -> None:
    assert span_of({"accuracy": 0.5}, "accuracy") == ""
