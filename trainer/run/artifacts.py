"""Artifacts of a finished run: its scores, and the model with its description."""

from __future__ import annotations

import json
from typing import Any

import torch
from torch import Tensor, nn

from trainer.device.precision import Precision
from trainer.engine.state import Epoch
from trainer.engine.training import Training
from trainer.run.metadata import NOT_FINITE, finite
from trainer.runtime.events import say
from trainer.storage.run_folder import RunFolder, record_of
from trainer.tasks.task import Evaluation, LearningTask, NetworkSpec, Trained


def best_of(history: list[Epoch]) -> Epoch:
    """Return the epoch whose weights were kept: the last that improved on all before it."""
    return [epoch for epoch in history if epoch.best][-1]


def lasted(history: list[Epoch]) -> Trained:
    """Return how long the run trained, from its measurements."""
    seconds = sum(epoch.seconds for epoch in history)
    rows = sum(round(epoch.rows_per_second * epoch.seconds) for epoch in history)
    return Trained(measurements=len(history), seconds=seconds, rows=rows)


def scores(training: Training, task: LearningTask) -> dict[str, Any]:
    """Return the figures of the trained model on the validation and the test part."""
    training.forward.eval()
    with torch.no_grad():
        return task.evaluate(evaluation_of(training, best_of(training.state.history).validation_loss))


def evaluation_of(training: Training, measured: float | None = None) -> Evaluation:
    """Return how rows are computed without training on them: by each rank its share, where it can compute alone.

    Args:
        measured: see `Evaluation`.
    """
    ranks = training.ranks
    shared = ranks.shares and not ranks.lockstep
    return Evaluation(
        forward=training.forward,
        device=training.device,
        dtype=training.precision.weights,
        rows=training.state.micro_batch.size,
        rank_slice=ranks.rank_slice if shared else lambda rows: slice(0, rows),
        sum=ranks.sum if shared else lambda value: value,
        autocast=training.precision.context,
        measured=measured,
    )


def save(folder: RunFolder, files: dict[str, bytes], history: list[Epoch], record: dict[str, Any]) -> None:
    """Write the model's files and metrics.jsonl, then metadata.json with the hashes of all.

    Args:
        files: content of the model's files by name.
        history: measurements in order.
        record: content of metadata.json; receives the hashes.
    """
    metrics = "".join(json.dumps(epoch.facts()) + "\n" for epoch in history)
    files = {**files, "metrics.jsonl": metrics.encode()}
    record["artifacts"] = {name: folder.write(name, content) for name, content in files.items()}
    for log in (folder.partial / "batches.jsonl", folder.partial / "telemetry.jsonl"):
        if log.exists():
            record["artifacts"][log.name] = record_of(log.read_bytes())
    write_metadata(folder, record)


def write_metadata(folder: RunFolder, record: dict[str, Any]) -> None:
    """Write metadata.json. Figures that are not finite become null in `record`, which lists them."""
    record.update(finite(record))
    gone = [name for name, why in record["absent"].items() if why == NOT_FINITE]
    if gone:
        say(f"null in metadata.json, as the figure is no finite number: {', '.join(gone)}")
    folder.write("metadata.json", (json.dumps(record, indent=2, allow_nan=False) + "\n").encode())


def plain(weights: dict[str, Tensor], precision: Precision, network: NetworkSpec) -> nn.Module:
    """Return the network with these weights on the CPU, whatever the ranks made of the one they trained.

    Args:
        weights: tensors by name.
    """
    model = network.build().to(dtype=precision.weights)
    model.load_state_dict({name: value.cpu() for name, value in weights.items()})
    return model


def size_estimate(model: nn.Module, epochs: int, steps: int) -> int:
    """Return about how many bytes a run writes: the weights twice, two lines an epoch with all its `steps`, metadata.

    Checkpoints are not counted: a run goes on without them where the disk has no room.

    Args:
        model: network of the run.
        epochs: measurements of the run.
        steps: steps of each.
    """
    weights: int = sum(value.numel() * value.element_size() for value in model.parameters())
    return 2 * weights + 400 * epochs + 16 * steps + 64 * 1024
