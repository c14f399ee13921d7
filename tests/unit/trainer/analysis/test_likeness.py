"""New data next to those of the training, by what a run recorded; all SYNTHETIC."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from trainer.analysis.likeness import report_far, require_same_bars, spoken
from trainer.data.readers.bars import Reading, Source, open_source
from trainer.runtime.errors import TrainerError


def bars(path: Path, step: timedelta, tick: float, count: int = 300) -> Source:
    lines = ["date,open,high,low,close,volume"]
    for place in range(count):
        price = 4000 + tick * (place * 7 % 211)
        stamp = datetime(2024, 1, 2, 9, 30) + place * step
        lines.append(f"{stamp},{price:.4f},{price + tick:.4f},{price - tick:.4f},{price:.4f},5")
    path.write_text("\n".join(lines) + "\n")
    return open_source(path, Reading())


def run(seconds: int, trained_tick: float | None = None, **config: Any) -> Any:
    made: dict[str, Any] = {"bar_seconds": seconds}
    if trained_tick is not None:
        rows = {"bars": 1000, "prices_rounded_to_tick": 0}
        made = {"conventions": {"bar_seconds": seconds, "profile": {"tick": trained_tick}}, "rows": rows}
    return SimpleNamespace(run="es", feature_set=made, config=config)


def refusal(source: Source, metadata: Any) -> TrainerError:
    with pytest.raises(TrainerError) as caught:
        require_same_bars(source, metadata)
    assert caught.value.code == "RM519"
    return caught.value


def test_bars_like_those_of_the_training_are_taken_silently(tmp_path: Path, capsys) -> None:
    require_same_bars(bars(tmp_path / "b.csv", timedelta(minutes=1), 0.25), run(60, 0.25))
    assert capsys.readouterr().err == ""


def test_five_minutes_where_one_was_trained_are_refused_with_both(tmp_path: Path) -> None:
    error = refusal(bars(tmp_path / "b.csv", timedelta(minutes=5), 0.25), run(60, 0.25))
    assert error.what == "most bars are 5 minutes apart, and es was trained on bars of 1 minute"


def test_weeks_where_days_were_trained_are_refused(tmp_path: Path) -> None:
    assert "7 days" in refusal(bars(tmp_path / "b.csv", timedelta(days=7), 0.25, 60), run(86_400)).what


def test_few_bars_over_a_weekend_are_taken(tmp_path: Path) -> None:
    require_same_bars(bars(tmp_path / "b.csv", timedelta(days=3), 0.25, 10), run(86_400))


def test_prices_between_the_steps_of_the_training_are_refused(tmp_path: Path) -> None:
    error = refusal(bars(tmp_path / "b.csv", timedelta(minutes=1), 0.01), run(60, 0.25))
    assert "between the steps of 0.25" in error.what


def test_coarser_price_steps_are_named_but_for_a_tick_that_was_given(tmp_path: Path, capsys) -> None:
    source = bars(tmp_path / "b.csv", timedelta(minutes=1), 0.25)
    require_same_bars(source, run(60, 0.01, tick=0.01))
    assert capsys.readouterr().err == ""
    require_same_bars(source, run(60, 0.01))
    assert "RM519 all prices move in steps of 0.25, and es was trained on steps of 0.01" in capsys.readouterr().err


def test_inputs_far_from_the_training_rows_are_named_and_codes_are_not(capsys) -> None:
    scaler = SimpleNamespace(mean=[0.0, 10.0, 0.0], std=[1.0, 2.0, 1.0])
    metadata: Any = SimpleNamespace(scaler=scaler, model=SimpleNamespace(embeddings=[{"column": 2}]))
    features = np.column_stack([np.zeros(9), np.full(9, 110.0), np.full(9, 40.0)])
    report_far(features, metadata, ["near", "far", "code"])
    assert capsys.readouterr().err.endswith("in standard deviations: far (50)\n")
    report_far(features[:2], metadata, ["near", "far", "code"])
    assert capsys.readouterr().err == ""


def test_spans_are_spoken_in_their_largest_whole_unit() -> None:
    assert [spoken(each) for each in (86_400, 7_200, 90, 300)] == ["1 day", "2 hours", "90 s", "5 minutes"]
