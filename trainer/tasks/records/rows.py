"""Entries of metadata.json on a run over rows of numbers: bars or a table."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from trainer.config.choices import ACTIVATIONS
from trainer.config.sections.network import MlpConfig, TransformerConfig
from trainer.data.bar import Dates
from trainer.data.dataset import Dataset
from trainer.models.losses import CROSS_ENTROPY, SQUARED_ERROR
from trainer.tasks.metrics.score import baselines_of
from trainer.tasks.prepared import Task


def row_records(task: Task, network: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of metadata.json, `network` being the one on the model."""
    return {
        "data": data_record(task),
        "features": list(task.features),
        "feature_set": task.made,
        "scaler": {"mean": task.inputs.mean.tolist(), "std": task.inputs.std.tolist()},
        "target": target_record(task),
        "split": split_record(task),
        "model": network,
        "baselines": baselines_of(task),
    }


def data_record(task: Task) -> dict[str, Any]:
    """Return the data file's identity; `rows` counts the file's bars or rows, `rows_used` those of the run."""
    counts = {"rows": task.file_rows, "rows_used": len(task.dates)}
    return {**asdict(task.file), **counts, **span_record(task.dates)}


def target_record(task: Task) -> dict[str, Any]:
    """Return what the model forecasts: forecast = output * std + mean, in `unit`."""
    return {
        "name": task.target.name,
        "formula": task.target.formula,
        "unit": task.target.unit,
        "classes": len(task.labels or ()),
        "labels": list(task.labels) if task.labels else None,
        "class_weights": task.class_weights,
        "horizon": task.horizon,
        "mean": task.targets.mean.item(),
        "std": task.targets.std.item(),
    }


def split_record(task: Task) -> dict[str, Any]:
    """Return rows, first and last date of each part, and the rows dropped between parts."""
    parts: dict[str, Dataset] = {
        "train": task.split.train,
        "validation": task.split.validation,
        "test": task.split.test,
    }
    spans = {name: {"rows": len(part), **span_record(part.date)} for name, part in parts.items()}
    return {**task.split_how, "embargo": task.split.embargo, **spans}


def span_record(dates: Dates) -> dict[str, str | None]:
    """Return earliest and latest date in ISO 8601, without the time of day where it is midnight; None without times."""
    if dates.dtype.kind != "M":
        return {"first_date": None, "last_date": None}
    ends = (dates.min(), dates.max())  # of a table the newest row may be the first
    first, last = (str(date).removesuffix("T00:00:00") for date in ends)
    return {"first_date": first, "last_date": last}


def model_record(config: MlpConfig, task: Task) -> dict[str, Any]:
    """Return how to rebuild the network, as `models.build` reads it, and the loss that it was trained with."""
    inputs, embeddings = len(task.features), list(task.embeddings)
    if columns := isinstance(config, TransformerConfig):
        embeddings = [{**each, "width": config.token_width} for each in embeddings]
    else:
        inputs += sum(each["width"] - 1 for each in embeddings)
    return {
        "kind": config.network,
        "widths": [inputs, *config.hidden_layers, task.outputs],
        "activation": ACTIVATIONS[config.activation],
        "norm": "layer" if columns else config.norm,
        "dropout": config.dropout,
        "embeddings": embeddings,
        "loss": CROSS_ENTROPY if task.labels else SQUARED_ERROR,
        "storage": "dense",
        **config.metadata_entries(),
    }
