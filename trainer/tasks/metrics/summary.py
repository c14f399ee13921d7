"""The lines of a run's summary on bars and tables: data, best epoch, scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.tasks.task import Trained

WORDS = {"mean": "the training mean", "persistence": "persistence", "linear": "a linear fit"}


def row_lines(record: Mapping[str, Any], trained: Trained) -> dict[str, str]:
    """Return the lines of bars and tables: data, best epoch, scores."""
    data, split, metrics = (record[name] for name in ("data", "split", "metrics"))
    rows = " / ".join(f"{split[part]['rows']:,} {part}" for part in ("train", "validation", "test"))
    rate = trained.rows / trained.seconds
    best = metrics["best"]
    which = f"step {best['step']:,}" if "step" in best else f"epoch {best['epoch']} of {trained.measurements}"
    return {
        "data": f"{data['name']}, {data['rows_used']:,} {_span(record)}; rows: {rows}",
        "best": f"{which}, in {trained.seconds:.1f} s at {rate:,.0f} rows/s",
        **_scores(record),
    }


def _span(record: Mapping[str, Any]) -> str:
    data, unit = record["data"], "rows" if record["feature_set"]["set"] == "table" else "bars"
    return unit if data["first_date"] is None else f"{unit} {data['first_date']} to {data['last_date']}"


def _scores(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the line on the scores: R² for a number, right answers for classes."""
    metrics = record["metrics"]
    if not record["target"]["classes"]:
        words = {name: words for name, words in WORDS.items() if name in record["baselines"]}
        return {"R²": "validation / test: " + ", ".join(_against(record, name, words[name]) for name in words)}
    parts = [metrics[part] for part in ("validation", "test")]
    shown = {name: " / ".join(_shown(part[name], 3) for part in parts) for name in parts[0] if name != "rows"}
    return {
        "right": f"validation / test: {shown['accuracy']}, the most frequent class {shown['accuracy_of_majority']}; "
        f"log loss {shown['log_loss']}, of the shares alone {shown['log_loss_of_prior']}"
    }


def _against(record: Mapping[str, Any], baseline: str, words: str) -> str:
    name = f"r2_vs_{baseline}"
    values = {f"metrics.{part}.{name}": record["metrics"][part][name] for part in ("validation", "test")}
    if all(value is None and path not in record.get("absent", {}) for path, value in values.items()):
        return f"{words} is exact"
    return f"{' / '.join(_shown(value, 2) for value in values.values())} against {words}"


def _shown(value: float | None, digits: int) -> str:
    return "none" if value is None else f"{value:.{digits}f}"
