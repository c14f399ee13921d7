"""Cost and quality of a model, measured here: losses, figures, bytes, time for a forecast on this CPU."""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch
from torch import nn

from trainer.data.split import Scaler
from trainer.models.losses import CROSS_ENTROPY, SQUARED_ERROR, loss_sum_of, mean_loss
from trainer.tasks.metrics.score import as_numbers, baselines_by_part, score_of
from trainer.tasks.prepared import Task

CALLS, BATCH = 200, 1024


def measured(network: nn.Module, task: Task, *, file_bytes: int) -> dict[str, Any]:
    """Return loss and figures on validation and test, bytes of the weights' file, and times in microseconds.

    Args:
        network: network in eval mode, on the CPU.
        file_bytes: size of the weights' file.
    """
    loss = loss_sum_of(CROSS_ENTROPY if task.labels else SQUARED_ERROR)
    found: dict[str, Any] = {"file_bytes": file_bytes, "parameters": parameters(network)}
    parts = {"validation": task.split.validation, "test": task.split.test}
    against = baselines_by_part(task, parts)
    for name, part in parts.items():
        inputs = tensor(task.inputs, part.features)
        targets = tensor(task.targets, part.target).unsqueeze(1)
        with torch.no_grad():
            outputs = as_numbers(network.eval()(inputs))
        figures = score_of(task, part, outputs, against[name])
        found[name] = {"loss": mean_loss(network, inputs, targets, loss), **figures}
    rows = tensor(task.inputs, task.split.validation.features)
    many = rows.repeat(-(-BATCH // len(rows)), 1)[:BATCH]
    found["microseconds"] = {"1 row": latency(network, rows[:1]), f"{BATCH} rows": latency(network, many)}
    return found


def tensor(scaler: Scaler, values: Any) -> torch.Tensor:
    """Return scaled values as fp32 on the CPU."""
    return torch.tensor(scaler.scale(values), dtype=torch.float32)


def parameters(network: nn.Module) -> dict[str, int]:
    """Return how many numbers the network's weights are, and how many of them are not 0."""
    values = [value for name, value in network.state_dict().items() if not name.endswith(("scale", "tracked"))]
    return {"all": sum(v.numel() for v in values), "not_zero": sum(int((v != 0).sum()) for v in values)}


@torch.no_grad()
def latency(network: nn.Module, rows: torch.Tensor) -> float:
    """Return the median time of a call in microseconds, after a warm-up."""
    network.eval()
    times = []
    for call in range(CALLS + 20):
        began = time.perf_counter_ns()
        network(rows)
        if call >= 20:
            times.append(time.perf_counter_ns() - began)
    return round(statistics.median(times) / 1000, 2)
