"""The end of a run in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainer.loop import Epoch

WORDS = {"mean": "the training mean", "persistence": "persistence", "linear": "a linear fit"}


def summary(record: dict[str, Any], history: list[Epoch], folder: Path) -> str:
    """Return five lines on a run: device and reason, data, best epoch, scores, place.

    `record` is the content of metadata.json.
    """
    device, data, split, metrics = (record[name] for name in ("device", "data", "split", "metrics"))
    rows = " / ".join(f"{split[part]['rows']:,} {part}" for part in ("train", "validation", "test"))
    seconds = sum(epoch.seconds for epoch in history)
    rate = split["train"]["rows"] * len(history) / seconds
    lines = {
        "device": f"{device['device']}, {device['name']} ({device['arch']}); {device['reason']}",
        "data": f"{data['name']}, {data['rows_used']:,} bars {data['first_date']} to {data['last_date']}; rows: {rows}",
        "best": f"epoch {metrics['best']['epoch']} of {len(history)}, in {seconds:.1f} s at {rate:,.0f} rows/s",
        "R²": "validation / test: " + ", ".join(_against(metrics, name, words) for name, words in WORDS.items()),
        "folder": str(folder),
    }
    return "\n".join(f"{label:<7} {text}" for label, text in lines.items())


def _against(metrics: dict[str, Any], baseline: str, words: str) -> str:
    values = [metrics[part][f"r2_vs_{baseline}"] for part in ("validation", "test")]
    shown = " / ".join("none" if value is None else f"{value:.2f}" for value in values)
    return f"{shown} against {words}"
