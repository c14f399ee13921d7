"""The main job: from a file of bars to a run folder with a model, its metadata and its scores."""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn

from trainer.accelerator import choose, make_reproducible
from trainer.config import TrainConfig
from trainer.data.bars import Floats
from trainer.data.dataset import Dataset
from trainer.data.features import FEATURES
from trainer.events import emit, progress, say
from trainer.loop import Epoch, Part, fit
from trainer.metadata import metadata
from trainer.models.mlp import mlp
from trainer.run_folder import RunFolder, open_run
from trainer.scores import score
from trainer.summary import summary
from trainer.task import Task, prepare


def train(config: TrainConfig) -> None:
    """Run the job; the run folder appears only if all of it succeeds.

    Raises:
        TrainerError: for everything the user can put right.
        OSError: where a file cannot be written.
    """
    task = prepare(config)
    make_reproducible(seed=config.seed, threads=config.threads)
    accelerator = choose(config.device)
    model = mlp(len(FEATURES), config.hidden_layers).to(accelerator.device)
    with open_run(config.output, config.run, need_bytes=size_estimate(model, config.epochs)) as folder:
        record = metadata(folder.name, config, task, accelerator)
        emit("start", **{name: record[name] for name in ("run", "data", "split", "device", "seed", "threads")})
        history = fit_with_progress(model, task, config)
        record["metrics"] = {"best": asdict(best_of(history)), **scores(model, task)}
        save(folder, model, history, record)
    emit("done", run=folder.name, folder=str(folder.final), **record["metrics"])
    say(summary(record, history, folder.final))


def fit_with_progress(model: nn.Module, task: Task, config: TrainConfig) -> list[Epoch]:
    """Train, and report each epoch as a JSON event and on the progress line."""
    with progress(config.epochs) as bar:

        def report(epoch: Epoch) -> None:
            emit("epoch", **asdict(epoch))
            losses = f"loss {epoch.train_loss:.3f} train {epoch.validation_loss:.3f} validation"
            bar.set_postfix_str(f"{losses}, {epoch.rows_per_second:,.0f} rows/s", refresh=False)
            bar.update()

        return fit(
            model,
            on_device_of(model, task.split.train, task),
            on_device_of(model, task.split.validation, task),
            epochs=config.epochs,
            batch_size=config.batch_size,
            learning_rate=config.learning_rate,
            seed=config.seed,
            on_epoch=report,
        )


def best_of(history: list[Epoch]) -> Epoch:
    """Return the epoch whose weights were kept: the last that improved on all before it."""
    return [epoch for epoch in history if epoch.best][-1]


def on_device_of(model: nn.Module, part: Dataset, task: Task) -> Part:
    """Return the rows of `part`, scaled, as float32 where the model is."""
    device = next(model.parameters()).device
    targets = task.targets.scale(part.target)[:, np.newaxis]  # (rows, 1)
    return Part(
        inputs=torch.tensor(task.inputs.scale(part.features), dtype=torch.float32, device=device),
        targets=torch.tensor(targets, dtype=torch.float32, device=device),
    )


def scores(model: nn.Module, task: Task) -> dict[str, Any]:
    """Return the figures of the trained model on the validation and the test part."""
    parts = {"validation": task.split.validation, "test": task.split.test}
    return {name: score(task.split.train, part, forecast(model, part, task)) for name, part in parts.items()}


@torch.no_grad()
def forecast(model: nn.Module, part: Dataset, task: Task) -> Floats:
    """Return the model's forecasts in the target's unit, shape (rows,)."""
    outputs = model(on_device_of(model, part, task).inputs)  # (rows, 1)
    return task.targets.unscale(outputs.squeeze(1).double().cpu().numpy())


def save(folder: RunFolder, model: nn.Module, history: list[Epoch], record: dict[str, Any]) -> None:
    """Write model.pt, model.safetensors and metrics.jsonl, then metadata.json with the hashes of the three."""
    weights = {name: value.cpu().contiguous() for name, value in model.state_dict().items()}
    files = {
        "model.pt": pickled(weights),
        # One constant entry: a clock or a path would change the bytes, and several entries have no fixed order.
        "model.safetensors": safetensors.torch.save(weights, metadata={"format": "pt"}),
        "metrics.jsonl": "".join(json.dumps(asdict(epoch)) + "\n" for epoch in history).encode(),
    }
    record["artifacts"] = {name: folder.write(name, content) for name, content in files.items()}
    folder.write("metadata.json", (json.dumps(record, indent=2, allow_nan=False) + "\n").encode())


def pickled(weights: dict[str, Tensor]) -> bytes:
    """Return the bytes that `torch.save` writes for `weights`."""
    buffer = io.BytesIO()
    torch.save(weights, buffer)
    return buffer.getvalue()


def size_estimate(model: nn.Module, epochs: int) -> int:
    """Return about how many bytes a run writes: the weights twice, a line per epoch, metadata."""
    weights: int = sum(value.numel() * value.element_size() for value in model.parameters())
    return 2 * weights + 250 * epochs + 64 * 1024
