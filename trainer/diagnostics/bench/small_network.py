"""Benchmark `small_network`: rows/s of training 54-32-16-1 (2,305 parameters) by the trainer's own loop.

Steps are taken as `train --step auto` takes them (without autograd on a CPU, as a captured graph on a card), with its
settings: one thread, deterministic kernels. Each sample is an epoch with its validation. The rows are synthetic.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from trainer.diagnostics.bench import timing
from trainer.diagnostics.probes import entry, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import Check, Device, Number, Verdict, at_most, conclude

if TYPE_CHECKING:
    from trainer.data.loading.placement import TensorPartition
    from trainer.engine.training import Training

FEATURES, HIDDEN, RATE, SEED = 54, (32, 16), 1e-3, 0
ROWS, VALIDATION = 32_768, 1_000
BATCHES = (256, 1024)
FALLS_TO = 0.9  # of the first epoch's loss, at most: the rows have something to learn in them


def measure(request: Request) -> Verdict:
    """Train for a while with each size of batch.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    from trainer.device.accelerator import make_reproducible

    device = placement.place(request.expect)
    make_reproducible(seed=SEED, threads=1)
    checks: list[Check] = []
    numbers: list[Number] = []
    steps: list[str] = []
    for batch in BATCHES:
        found = trained(device, batch, request.seconds / len(BATCHES))
        checks, numbers, steps = [*checks, found[0]], [*numbers, *found[1]], [*steps, f"{found[2]} by {batch}"]
    return conclude(
        probe="small_network",
        summary=f"54-32-16-1 trained on synthetic rows, steps {', '.join(steps)}, {timing.place_text(device)}.",
        checks=checks,
        numbers=numbers,
        device=device,
        versions=placement.versions(),
    )


def trained(device: Device, batch: int, share: float) -> tuple[Check, list[Number], str]:
    """Train in batches of `batch` rows; return whether the loss fell, rows/s, and how steps were taken.

    Args:
        batch: rows of a batch.
        share: measuring time in seconds.
    """
    from trainer.engine.loop import run_epoch
    from trainer.engine.measurement import close_epoch
    from trainer.engine.steps.step_strategy import choose_step

    training = training_of(device, batch)
    step, losses = choose_step("auto", training).name, []

    def epoch() -> None:
        run_epoch(training)
        measured = close_epoch(training)
        assert measured is not None
        losses.append(measured.train_loss)

    name = f"batches of {batch}"
    taken = timing.samples(epoch, device.torch_type, share)
    check = at_most(f"{name}, loss", losses[-1], FALLS_TO * losses[0], "of the last epoch")
    return check, timing.rate(name, "rows/s", float(ROWS), taken), step


def training_of(device: Device, batch: int) -> Training:
    """Return a run at its beginning, its rows on the device."""
    import torch

    from trainer.engine.training import Plan, new_training
    from trainer.models.mlp import mlp

    torch.manual_seed(SEED)
    model = mlp(FEATURES, HIDDEN).to(device.torch_type)
    plan = Plan(epochs=10**9, batch_size=batch, learning_rate=RATE, seed=SEED)
    return new_training(model, rows(device, ROWS), rows(device, VALIDATION), plan)


def rows(device: Device, count: int) -> TensorPartition:
    """Return random rows whose target is a sum of four features and noise: (count, FEATURES) and (count, 1)."""
    import torch

    from trainer.data.loading.placement import TensorPartition

    generator = torch.Generator().manual_seed(SEED)
    inputs = torch.randn(count, FEATURES, generator=generator)
    noise = torch.randn(count, 1, generator=generator)
    targets = inputs[:, :4].sum(1, keepdim=True) + noise
    return TensorPartition(inputs=inputs.to(device.torch_type), targets=targets.to(device.torch_type))


if __name__ == "__main__":
    sys.exit(entry.main("small_network", measure))
