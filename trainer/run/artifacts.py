"""What a finished run leaves: its scores, and the model with what describes it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from trainer.config.train import TrainConfig
from trainer.data.bar import Floats
from trainer.data.dataset import Dataset
from trainer.device.precision import Precision
from trainer.engine.loop import Training
from trainer.engine.state import Epoch
from trainer.models.build import build
from trainer.run import export
from trainer.run.metadata import NOT_FINITE, finite
from trainer.runtime.events import say
from trainer.storage.run_folder import RunFolder, record_of
from trainer.tasks.metrics.score import as_numbers, score_of
from trainer.tasks.scaling import scaled
from trainer.tasks.task import Task


def best_of(history: list[Epoch]) -> Epoch:
    """Return the epoch whose weights were kept: the last that improved on all before it."""
    return [epoch for epoch in history if epoch.best][-1]


def scores(training: Training, task: Task) -> dict[str, Any]:
    """Return the figures of the trained model on the validation and the test part."""
    parts = {"validation": task.split.validation, "test": task.split.test}
    return {name: score_of(task, part, outputs_for(training, part, task)) for name, part in parts.items()}


@torch.no_grad()
def outputs_for(training: Training, part: Dataset, task: Task) -> Floats:
    """Return the model's raw outputs, shape (rows, outputs)."""
    training.forward.eval()
    rows = scaled(part, task, training.train.targets.dtype)
    return np.concatenate([as_numbers(training.forward(each.inputs.to(training.device))) for each in rows])


def forecast(training: Training, part: Dataset, task: Task) -> Floats:
    """Return the model's forecasts of a number in the target's unit, shape (rows,)."""
    return task.targets.unscale(outputs_for(training, part, task)[:, 0])


def save(
    folder: RunFolder, model: nn.Module, history: list[Epoch], record: dict[str, Any], config: TrainConfig
) -> None:
    """Write the model's files and metrics.jsonl, then metadata.json with the hashes of all."""
    metrics = "".join(json.dumps(epoch.facts()) + "\n" for epoch in history)
    files = {**export.files(model, config, record), "metrics.jsonl": metrics.encode()}
    record["artifacts"] = {name: folder.write(name, content) for name, content in files.items()}
    for log in (folder.partial / "batches.jsonl", folder.partial / "telemetry.jsonl"):
        if log.exists():
            record["artifacts"][log.name] = record_of(log.read_bytes())
    write_metadata(folder, record)


def write_metadata(folder: RunFolder, record: dict[str, Any]) -> None:
    """Write metadata.json. Figures that are not finite become null in `record`, which says so, and are named."""
    record.update(finite(record))
    gone = [name for name, why in record["absent"].items() if why == NOT_FINITE]
    if gone:
        say(f"null in metadata.json, as the figure is no finite number: {', '.join(gone)}")
    folder.write("metadata.json", (json.dumps(record, indent=2, allow_nan=False) + "\n").encode())


def plain(weights: dict[str, Tensor], precision: Precision, network: dict[str, Any]) -> nn.Module:
    """Return the network with these weights on the CPU, whatever the ranks made of the one they trained."""
    model = build(network).to(dtype=precision.weights)
    model.load_state_dict({name: value.cpu() for name, value in weights.items()})
    return model


def size_estimate(model: nn.Module, epochs: int, steps: int) -> int:
    """Return about how many bytes a run writes: the weights twice, two lines an epoch with all its `steps`, metadata.

    Checkpoints are not counted: a run goes on without them where the disk has no room.
    """
    weights: int = sum(value.numel() * value.element_size() for value in model.parameters())
    return 2 * weights + 400 * epochs + 16 * steps + 64 * 1024
