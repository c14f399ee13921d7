"""The lines of a run's summary on bars and tables: data, best epoch, scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.runtime.short_names import shortened
from trainer.tasks.metrics.comparison import name_of, verdict
from trainer.tasks.task import Trained

MOST_SHOWN = 4  # pairs of classes that are taken for each other
BASELINE_LABELS = {"mean": "the training mean", "persistence": "persistence", "linear": "a linear fit"}


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
        **_simpler(record),
    }


def _span(record: Mapping[str, Any]) -> str:
    data, unit = record["data"], "rows" if record["feature_set"]["set"] == "table" else "bars"
    return unit if data["first_date"] is None else f"{unit} {data['first_date']} to {data['last_date']}"


def _scores(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the line on the scores: R² for a number, right answers for classes."""
    metrics = record["metrics"]
    if not record["target"]["classes"]:
        labels = {name: labels for name, labels in BASELINE_LABELS.items() if name in record["baselines"]}
        line = "validation / test: " + ", ".join(_against(record, name, labels[name]) for name in labels)
        return {"R²": line + _between(metrics["test"], "r2_vs_mean", ", of the test's R² against the mean")}
    parts = [metrics[part] for part in ("validation", "test")]
    shown = {name: " / ".join(_shown(part[name], 3) for part in parts) for name in parts[0] if name != "rows"}
    return {
        "right": f"validation / test: {shown['accuracy']}, the most frequent class {shown['accuracy_of_majority']}; "
        f"log loss {shown['log_loss']}, of the shares alone {shown['log_loss_of_prior']}; "
        f"AUC {shown['auc']}, F1 {shown['macro_f1']}{_between(parts[1], 'accuracy', ' of the right test answers')}",
        **_confused(record),
    }


def _simpler(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the line on simpler models, by the test part: their headline figure and how far the network is ahead."""
    found, classes = record["metrics"].get("baselines", {}), bool(record["target"]["classes"])
    headline = "accuracy" if classes else "r2_vs_mean"
    shown = [
        f"{name_of(model, each, classes=classes)} "
        + (
            f"absent: {each['absent']}"
            if "absent" in each
            else f"{_shown(each['test'][headline], 3)}, {verdict(each['test'])}"
        )
        for model, each in found.items()
    ]
    return {"simpler": f"test: {'; '.join(shown)}"} if shown else {}


def _between(figures: Mapping[str, Any], name: str, of: str) -> str:
    """Return the bootstrap's interval of a figure as words, or nothing where there is none."""
    if figures.get(f"{name}_low") is None:
        return ""
    return f"; 95 % interval{of}: {figures[f'{name}_low']:.3f} to {figures[f'{name}_high']:.3f}"


def _confused(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the line on which classes the test's wrong answers took for which, the most frequent first."""
    counts, labels = record["metrics"].get("confusion", {}).get("test"), record["target"]["labels"]
    if not counts:
        return {}
    wrong = [
        (count, labels[true], labels[answer])
        for true, line in enumerate(counts)
        for answer, count in enumerate(line)
        if count and true != answer
    ]
    shown = [
        f"{shortened(true)} taken for {shortened(answer)}: {count:,}"
        for count, true, answer in sorted(wrong, reverse=True)[:MOST_SHOWN]
    ]
    rest = len(wrong) - MOST_SHOWN
    more = f"; and {rest} other pair{'' if rest == 1 else 's'}" if rest > 0 else ""
    return {"wrong": f"test: {', '.join(shown)}{more}"} if shown else {}


def _against(record: Mapping[str, Any], baseline: str, label: str) -> str:
    name = f"r2_vs_{baseline}"
    values = {f"metrics.{part}.{name}": record["metrics"][part][name] for part in ("validation", "test")}
    if all(value is None and path not in record.get("absent", {}) for path, value in values.items()):
        return f"{label} is exact"
    return f"{' / '.join(_shown(value, 2) for value in values.values())} against {label}"


def _shown(value: float | None, digits: int) -> str:
    return "none" if value is None else f"{value:.{digits}f}"
