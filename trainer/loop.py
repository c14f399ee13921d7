"""The training loop. Everything it needs is on the device before it starts; it waits for it once an epoch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trainer.errors import TrainerError


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of the data on the device: `inputs` (rows, features), `targets` (rows, 1), both float32, scaled."""

    inputs: Tensor
    targets: Tensor

    def __len__(self) -> int:
        return len(self.targets)


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """One finished epoch. Losses are mean squared errors of scaled targets; the rate counts training rows."""

    epoch: int
    train_loss: float
    validation_loss: float
    seconds: float
    rows_per_second: float
    best: bool


def fit(
    model: nn.Module,
    train: Part,
    validation: Part,
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
    on_epoch: Callable[[Epoch], None],
) -> list[Epoch]:
    """Train `model` in place, leave in it the weights of the best validation loss, and return all epochs.

    Raises:
        TrainerError: RM530 as soon as a loss is not finite.
    """
    order = torch.Generator().manual_seed(seed)  # on the CPU: the same batches whatever the device
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    history: list[Epoch] = []
    lowest, weights = math.inf, {}
    for number in range(1, epochs + 1):
        started = time.perf_counter()
        train_loss = run_epoch(model, optimizer, train, batch_size=batch_size, order=order)
        validation_loss = mean_squared_error(model, validation)
        require_finite(number, train_loss, validation_loss)
        seconds = time.perf_counter() - started
        epoch = Epoch(
            epoch=number,
            train_loss=train_loss,
            validation_loss=validation_loss,
            seconds=seconds,
            rows_per_second=len(train) / seconds,
            best=validation_loss < lowest,
        )
        if epoch.best:
            lowest = validation_loss
            weights = {name: value.clone() for name, value in model.state_dict().items()}
        history.append(epoch)
        on_epoch(epoch)
    model.load_state_dict(weights)
    return history


def run_epoch(
    model: nn.Module, optimizer: torch.optim.Optimizer, train: Part, *, batch_size: int, order: torch.Generator
) -> float:
    """Take one optimizer step per batch of a fresh permutation; return the mean loss over all rows.

    The sum is over rows and stays on the device: the last batch may be smaller, so a mean of the
    batches' means would be another number, and reading it each step would stall the device.
    """
    model.train()
    total = torch.zeros((), device=train.targets.device)
    shuffled = torch.randperm(len(train), generator=order).to(train.targets.device)
    for rows in shuffled.split(batch_size):
        loss = nn.functional.mse_loss(model(train.inputs[rows]), train.targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach() * len(rows)
    return total.item() / len(train)


@torch.no_grad()
def mean_squared_error(model: nn.Module, part: Part) -> float:
    """Return the mean squared error over all rows of `part`."""
    model.eval()
    return nn.functional.mse_loss(model(part.inputs), part.targets).item()


def require_finite(epoch: int, train_loss: float, validation_loss: float) -> None:
    """Raise RM530 where a loss is infinite or not a number."""
    if not (math.isfinite(train_loss) and math.isfinite(validation_loss)):
        raise TrainerError(
            "RM530", what=f"training loss {train_loss}, validation loss {validation_loss}", where=f"epoch {epoch}"
        )
