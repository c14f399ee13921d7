"""One rank of `scaling`; torchrun starts two. Rank 0 trains alone while the other waits, then both train together.

The ranks meet as those of `train` do: votes over gloo, tensors over the transport that passes its trial.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainer.diagnostics.bench import timing
from trainer.diagnostics.probes import placement
from trainer.diagnostics.probes.pair.ranks import ddp_rank

if TYPE_CHECKING:
    import torch

    from trainer.data.loading.placement import TensorPartition
    from trainer.distributed.collectives import Ranks
    from trainer.engine.training import Training

SECONDS = "TRAINER_BENCH_SECONDS"  # measuring time of the whole
LEAST, MOST = 5, 100  # samples of a figure
BATCHES = 8  # of an epoch, which is a sample
VALIDATION, RATE, SEED = 64, 1e-3, 0


@dataclass(frozen=True, kw_only=True)
class Case:
    """A network by its widths, inputs first, and the rows of a batch."""

    widths: tuple[int, ...]
    batch: int

    @property
    def name(self) -> str:
        """The widths and the batch."""
        return f"{'-'.join(map(str, (*self.widths, 1)))} by {self.batch}"


SMALL, WIDE, WIDE_CPU = (54, 32, 16), (512, 2048, 2048, 2048), (64, 256, 256)
ON_CARDS = tuple(Case(widths=widths, batch=batch) for widths in (SMALL, WIDE) for batch in (256, 4096, 65536))
ON_CPU = (Case(widths=SMALL, batch=256), Case(widths=WIDE_CPU, batch=256))


def cases_of(torch_type: str) -> tuple[Case, ...]:
    """Return the cases by type of device, "cuda" or "cpu"."""
    return ON_CPU if torch_type == "cpu" else ON_CARDS


def main(argv: Sequence[str] | None = None) -> int:
    """Measure each case and write it to the report. Returns 0; failures raise."""
    from trainer.device.accelerator import make_reproducible
    from trainer.distributed.parallel.join import connect, join

    arguments = ddp_rank.parse_arguments(argv)
    report = arguments.report / f"rank{os.environ['RANK']}.jsonl"
    ddp_rank.note(report, "started", pid=os.getpid())
    device = ddp_rank.choose_device(arguments.backend)
    make_reproducible(seed=SEED, threads=1)
    bootstrap = connect()
    ranks = join(bootstrap, str(device), report=lambda *_, **__: None)
    try:
        ddp_rank.note(report, "joined", **place_of(ranks, device))
        for case in cases_of(device.type):
            ddp_rank.note(report, case.name, **compared(case, ranks, device, share()))
        ddp_rank.note(report, "done")
    finally:
        ranks.release()
        bootstrap.close()
    return 0


def share() -> float:
    """Return the measuring time of one way of one case in seconds."""
    return float(os.environ.get(SECONDS, "1.5")) / (3 * len(ON_CARDS))


def place_of(ranks: Ranks, device: torch.device) -> dict[str, Any]:
    """Return the number of ranks, this one's device and card, and the transport between the ranks."""
    card = placement.card_ids()[device.index] if device.type == "cuda" else None
    comms = getattr(ranks, "member").choice.transport.name  # noqa: B009 -- a world of one has none
    return {"world": ranks.world_size, "device": str(device), "card": card, "comms": comms}


def compared(case: Case, ranks: Ranks, device: torch.device, budget: float) -> dict[str, Any]:
    """Return the seconds of each epoch alone on rank 0, of both, and of both with twice the batch; and the outcome.

    Args:
        device: where this rank computes.
        budget: measuring time of each in seconds.
    """
    found: dict[str, Any] = {}
    if ranks.is_main:
        found = train_alone(case, device, budget)
    ranks.barrier()
    found |= together("together", case, case.batch, ranks, device, budget)
    found |= together("doubled", case, ranks.world_size * case.batch, ranks, device, budget)
    return found


def train_alone(case: Case, device: torch.device, budget: float) -> dict[str, Any]:
    """Return the seconds of epochs of one rank, steps taken as `train --step auto` takes them.

    Args:
        device: where this rank computes.
        budget: measuring time in seconds.
    """
    from trainer.distributed.collectives import Ranks
    from trainer.engine.steps.step_strategy import choose_step

    training = training_of(case, case.batch, Ranks(), device)
    step = choose_step("auto", training).name
    losses, epoch = epochs_of(training)
    taken = timing.samples(epoch, device.type, budget)
    return {
        "alone": taken[-MOST:],
        "alone_rows": BATCHES * case.batch,
        "alone_losses": [losses[0], losses[-1]],
        "step": step,
    }


def together(way: str, case: Case, batch: int, ranks: Ranks, device: torch.device, budget: float) -> dict[str, Any]:
    """Return the seconds of epochs of all ranks, which agree on their number: by the clock each would stop elsewhere.

    Args:
        way: name of the figures.
        batch: rows of a batch over all ranks.
        device: where this rank computes.
        budget: measuring time in seconds.
    """
    training = training_of(case, batch, ranks, device)
    losses, epoch = epochs_of(training)
    pace = max(timing.elapsed(epoch, device.type, 1) for _ in range(2))  # the first does not count: kernels are loaded
    count = ranks.broadcast(max(LEAST, min(MOST, round(budget / pace))))
    taken = [timing.elapsed(epoch, device.type, 1) for _ in range(count)]
    slower = [max(each) for each in zip(*ranks.gather(taken), strict=True)]
    return {
        way: slower,
        f"{way}_rows": BATCHES * batch,
        f"{way}_losses": [losses[0], losses[-1]],
        "sha256": weights_of(training.model),
    }


def epochs_of(training: Training) -> tuple[list[float], Callable[[], None]]:
    """Return the list that takes each epoch's training loss, and the function that trains one epoch."""
    from trainer.engine.loop import run_epoch
    from trainer.engine.measurement import close_epoch

    losses: list[float] = []

    def epoch() -> None:
        run_epoch(training)
        measured = close_epoch(training)
        assert measured is not None
        losses.append(measured.train_loss)

    return losses, epoch


def training_of(case: Case, batch: int, ranks: Ranks, device: torch.device) -> Training:
    """Return a run at its beginning, its rows on the device.

    Args:
        batch: rows of a batch over all ranks.
        device: where this rank computes.
    """
    import torch

    from trainer.engine.training import Plan, new_training
    from trainer.models.mlp import mlp

    torch.manual_seed(SEED)
    model = mlp(case.widths[0], case.widths[1:]).to(device)
    plan = Plan(epochs=10**6, batch_size=batch, learning_rate=RATE, seed=SEED)
    data = [rows(count, case.widths[0], device) for count in (BATCHES * batch, VALIDATION)]
    return new_training(model, data[0], data[1], plan, ranks=ranks, device=device)


def rows(count: int, features: int, device: torch.device) -> TensorPartition:
    """Return random rows whose target is a sum of four features and noise: (count, features) and (count, 1).

    Args:
        count: number of rows.
        features: number of inputs.
        device: where the rows are held.
    """
    import torch

    from trainer.data.loading.placement import TensorPartition

    generator = torch.Generator(device).manual_seed(SEED)
    inputs = torch.randn(count, features, generator=generator, device=device)
    noise = torch.randn(count, 1, generator=generator, device=device)
    return TensorPartition(inputs=inputs, targets=inputs[:, :4].sum(1, keepdim=True) + noise)


def weights_of(model: torch.nn.Module) -> str:
    """Return the SHA-256 of all weights."""
    return hashlib.sha256(ddp_rank.flat_weights(model).numpy().tobytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
