"""What metadata.json says about a run: enough to repeat it, and to use its model without the trainer."""

from __future__ import annotations

import platform
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import safetensors
import torch

import trainer
from trainer.accelerator import Accelerator
from trainer.config import TrainConfig
from trainer.data import dataset
from trainer.data.bars import Dates
from trainer.data.dataset import Dataset
from trainer.data.features import FEATURES
from trainer.scores import BASELINES
from trainer.task import Task

SCHEMA_VERSION = 1
WHY_ABSENT = {
    "data.source": "no SOURCE.md beside the data file names these very bytes",
    "matrix_cell": "the program that started the trainer did not give --cell",
    "image": "the program that started the trainer did not give --image",
    "git_commit": "the program that started the trainer did not give --commit",
}


def metadata(run: str, config: TrainConfig, task: Task, accelerator: Accelerator) -> dict[str, Any]:
    """Return everything about a run but its outcome; all values are JSON's own types."""
    return {
        "schema_version": SCHEMA_VERSION,
        "run": run,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": data_record(task),
        "features": [{"name": f.name, "formula": f.formula, "unit": f.unit, "lookback": f.lookback} for f in FEATURES],
        "scaler": {"mean": task.inputs.mean.tolist(), "std": task.inputs.std.tolist()},
        "target": target_record(config, task),
        "split": split_record(task),
        "model": model_record(config),
        "baselines": BASELINES,
        "seed": config.seed,
        "threads": config.threads,
        "device": asdict(accelerator),
        "versions": versions(),
        "config": replace(config, run=run).as_dict(),
        "matrix_cell": config.cell,
        "image": config.image,
        "git_commit": config.commit,
        "absent": absent(config, task),
    }


def data_record(task: Task) -> dict[str, Any]:
    """Return the data file's identity; `rows` counts the file's bars, `rows_used` those of the run."""
    counts = {"rows": task.file_rows, "rows_used": len(task.bars)}
    return {**asdict(task.file), **counts, **span_record(task.bars.date)}


def target_record(config: TrainConfig, task: Task) -> dict[str, Any]:
    """Return what the model forecasts: forecast = output * std + mean, in `unit`."""
    return {
        "name": dataset.TARGET,
        "formula": dataset.FORMULA,
        "unit": dataset.UNIT,
        "horizon": config.horizon,
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
    return {"embargo": task.split.embargo, **spans}


def span_record(dates: Dates) -> dict[str, str]:
    """Return first and last date in ISO 8601, without the time of day where it is midnight."""
    first, last = (str(date).removesuffix("T00:00:00") for date in (dates[0], dates[-1]))
    return {"first_date": first, "last_date": last}


def model_record(config: TrainConfig) -> dict[str, Any]:
    """Return how to rebuild the network: Linear layers of these widths with ReLU between them."""
    return {"kind": "mlp", "widths": [len(FEATURES), *config.hidden_layers, 1], "activation": "ReLU"}


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
    return {name: WHY_ABSENT[name] for name, value in given.items() if value is None}
