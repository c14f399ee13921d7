"""Content of metadata.json: enough to repeat a run, and to use its model without the trainer."""

from __future__ import annotations

import math
import platform
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np
import safetensors
import torch

import trainer
from trainer.config.sections.run import ProvenanceConfig
from trainer.config.train import TrainConfig
from trainer.device.accelerator import Accelerator
from trainer.storage.run_record import SCHEMA_VERSION

NOT_FINITE = "the figure is no finite number"
WHY_ABSENT = {
    "data.source": "no SOURCE.md next to the data file names these very bytes",
    "matrix_cell": "the program that started the trainer did not give --cell",
    "image": "the program that started the trainer did not give --image",
    "git_commit": "the program that started the trainer did not give --commit",
}


def metadata(run: str, config: TrainConfig, entries: dict[str, Any], accelerator: Accelerator) -> dict[str, Any]:
    """Return everything about a run but its outcome, metrics and artifacts; all values are JSON's own types.

    `entries` are those that the task describes itself by.

    Args:
        run: name of the run.
        entries: entries by which the task describes itself.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "run": run,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        **entries,
        "seed": config.loop.seed,
        "threads": config.compute.threads,
        "device": asdict(accelerator),
        "versions": versions(),
        "config": config.having(run=run).as_dict(),
        "config_origin": dict(config.origin),
        "matrix_cell": config.provenance.cell,
        "forced_rules": list(config.provenance.forced),
        "image": config.provenance.image,
        "git_commit": config.provenance.commit,
        "absent": absent(config.provenance, entries.get("data", {}).get("source")),
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


def absent(config: ProvenanceConfig, source: str | None) -> dict[str, str]:
    """Return the reason for each fact about the run's origin that is null."""
    given = {
        "data.source": source,
        "matrix_cell": config.cell,
        "image": config.image,
        "git_commit": config.commit,
    }
    reasons = WHY_ABSENT | ({"matrix_cell": config.cell_absent} if config.cell_absent else {})
    return {name: reasons[name] for name, value in given.items() if value is None}


def finite(record: dict[str, Any]) -> dict[str, Any]:
    """Return `record` with null for each figure that is NaN or infinite, which JSON cannot hold; `absent` lists them.

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
