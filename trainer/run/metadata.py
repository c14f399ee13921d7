"""What metadata.json says about a run: enough to repeat it, and to use its model without the trainer."""

from __future__ import annotations

import math
import platform
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import safetensors
import torch

import trainer
from trainer.config.train import TrainConfig
from trainer.data.bar import Dates
from trainer.data.dataset import Dataset
from trainer.device.accelerator import Accelerator
from trainer.models.losses import CROSS_ENTROPY, SQUARED_ERROR
from trainer.storage.metadata_schema import SCHEMA_VERSION
from trainer.tasks.metrics.score import baselines_of
from trainer.tasks.task import Task

NOT_FINITE = "the figure is no finite number"
WHY_ABSENT = {
    "data.source": "no SOURCE.md beside the data file names these very bytes",
    "matrix_cell": "the program that started the trainer did not give --cell",
    "image": "the program that started the trainer did not give --image",
    "git_commit": "the program that started the trainer did not give --commit",
}


def metadata(run: str, config: TrainConfig, task: Task, accelerator: Accelerator) -> dict[str, Any]:
    """Return everything about a run but its outcome, metrics and artifacts; all values are JSON's own types."""
    return {
        "schema_version": SCHEMA_VERSION,
        "run": run,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": data_record(task),
        "features": list(task.features),
        "feature_set": task.made,
        "scaler": {"mean": task.inputs.mean.tolist(), "std": task.inputs.std.tolist()},
        "target": target_record(config, task),
        "split": split_record(task),
        "model": model_record(config, task),
        "baselines": baselines_of(task),
        "seed": config.seed,
        "threads": config.threads,
        "device": asdict(accelerator),
        "versions": versions(),
        "config": replace(config, run=run).as_dict(),
        "config_origin": dict(config.origin),
        "matrix_cell": config.cell,
        "forced_rules": list(config.forced),
        "image": config.image,
        "git_commit": config.commit,
        "absent": absent(config, task),
    }


def data_record(task: Task) -> dict[str, Any]:
    """Return the data file's identity; `rows` counts the file's bars or rows, `rows_used` those of the run."""
    counts = {"rows": task.file_rows, "rows_used": len(task.dates)}
    return {**asdict(task.file), **counts, **span_record(task.dates)}


def target_record(config: TrainConfig, task: Task) -> dict[str, Any]:
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
    """Return first and last date in ISO 8601, without the time of day where it is midnight; None without times."""
    if dates.dtype.kind != "M":
        return {"first_date": None, "last_date": None}
    first, last = (str(date).removesuffix("T00:00:00") for date in (dates[0], dates[-1]))
    return {"first_date": first, "last_date": last}


def model_record(config: TrainConfig, task: Task) -> dict[str, Any]:
    """Return how to rebuild the network, as `models.build` reads it, and the loss that it was trained with."""
    inputs, embeddings, tokens = len(task.features), list(task.embeddings), {}
    if config.network == "transformer":
        tokens = {"token_width": config.token_width, "heads": config.heads}
        embeddings = [{**each, "width": config.token_width} for each in embeddings]
    else:
        inputs += sum(each["width"] - 1 for each in embeddings)
    return {
        "kind": config.network,
        "widths": [inputs, *config.hidden_layers, task.outputs],
        "activation": {"relu": "ReLU", "gelu": "GELU", "silu": "SiLU", "tanh": "Tanh"}[config.activation],
        "norm": "layer" if tokens else config.norm,
        "dropout": config.dropout,
        "embeddings": embeddings,
        "loss": CROSS_ENTROPY if task.labels else SQUARED_ERROR,
        "storage": "dense",
        **tokens,
    }


def versions() -> dict[str, str | None]:
    """Return the versions that decide a result; hip and cuda are None where torch is built without them."""
    return {
        "trainer": trainer.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "safetensors": safetensors.__version__,
        "hip": torch.version.hip,
        "cuda": torch.version.cuda,
    }


def absent(config: TrainConfig, task: Task) -> dict[str, str]:
    """Return the reason for each fact about the run's origin that is null."""
    given = {
        "data.source": task.file.source,
        "matrix_cell": config.cell,
        "image": config.image,
        "git_commit": config.commit,
    }
    reasons = WHY_ABSENT | ({"matrix_cell": config.cell_absent} if config.cell_absent else {})
    return {name: reasons[name] for name, value in given.items() if value is None}


def finite(record: dict[str, Any]) -> dict[str, Any]:
    """Return `record` with null for each figure that is NaN or infinite, which JSON has no word for; `absent` says so.

    A figure that cannot be written must not take the trained model with it.
    """
    gone: list[str] = []

    def kept(value: Any, path: str) -> Any:
        if isinstance(value, dict):
            return {name: kept(each, f"{path}.{name}" if path else str(name)) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [kept(each, f"{path}.{place}") for place, each in enumerate(value)]
        if isinstance(value, float) and not math.isfinite(value):
            gone.append(path)
            return None
        return value

    whole: dict[str, Any] = kept(record, "")
    return {**whole, "absent": whole["absent"] | dict.fromkeys(gone, NOT_FINITE)} if gone else record
