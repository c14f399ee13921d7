"""One rank of the two-rank step; torchrun starts two of these (see `two_gpu_step`).

Each rank writes what it found to `<report>/rank<N>.jsonl`, one line for each phase it reaches. The findings
do not travel through the collectives, which are what is being judged, and after a hang the last phase of
each rank shows where it stopped.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.device.compiler_import import avoid_compiler_import
from trainer.diagnostics.probes import numerics, placement
from trainer.distributed.transports.transport import HOST
from trainer.runtime.leaving import leave_after_gloo

if TYPE_CHECKING:
    import torch
    from torch.nn.parallel import DistributedDataParallel

    Shard = tuple[torch.Tensor, torch.Tensor]
    Phases = Callable[[int, torch.device, int], Iterator[tuple[str, dict[str, Any]]]]

WORLD = 2
ROUTE = "TRAINER_PROBE_ROUTE"  # set in a retry on cards: the name of the way, see `cause_search`
CARDS = "TRAINER_PROBE_CARDS"  # torch's numbers of the two ranks' cards, with a comma between; by default 0,1
STEPS = 8
SHARD, FEATURES, WIDTH, OUTPUTS = 64, 16, 32, 4


def main(argv: Sequence[str] | None = None) -> int:
    """Compare gradients and weights of DDP. Returns 0; failures raise."""
    return take_part(argv, phases)


def phases(rank: int, device: torch.device, seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the findings of DDP, one after the other.

    Args:
        rank: 0 or 1.
        device: where this rank computes: cuda:RANK, or cpu for ranks without cards.
        seed: seed of the random numbers.
    """
    yield "gradients", compare_gradients(rank, device, seed)
    started = time.monotonic()
    found = compare_weights(rank, device, seed)
    yield "weights", {**found, "seconds": time.monotonic() - started}


def take_part(argv: Sequence[str] | None, find: Phases) -> int:
    """Join the group and write each phase that `find` yields to the report. Returns 0; failures raise."""
    import torch.distributed as dist

    arguments = parse_arguments(argv)
    rank = int(os.environ["RANK"])
    report = arguments.report / f"rank{rank}.jsonl"
    note(report, "started", pid=os.getpid())
    device = choose_device(arguments.backend)
    numerics.strict_fp32()
    started = time.monotonic()
    dist.init_process_group(arguments.backend, timeout=datetime.timedelta(seconds=arguments.timeout))
    card = placement.card_ids()[device.index] if device.type == "cuda" else None
    seconds = time.monotonic() - started
    note(report, "joined", world=dist.get_world_size(), device=str(device), card=card, seconds=seconds)
    for phase, found in find(rank, device, arguments.seed):
        note(report, phase, **found)
    dist.destroy_process_group()
    note(report, "done")
    return 0


def leave(status: int, argv: Sequence[str]) -> None:
    """End this process, with gloo without torch's destructors; see `leave_after_gloo`.

    Args:
        status: exit status.
        argv: the program's arguments.
    """
    if "gloo" in argv:
        leave_after_gloo(status)
    sys.exit(status)


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the arguments that `two_gpu_step` gives to each rank."""
    parser = argparse.ArgumentParser(description="One rank of the two-rank step.")
    parser.add_argument("--backend", choices=("gloo", "nccl"), required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--timeout", type=float, required=True)
    return parser.parse_args(argv)


def note(report: Path, phase: str, **found: Any) -> None:
    """Append one phase to the rank's report.

    Args:
        report: file that the rank reports in.
        phase: name of the phase.
        found: JSON values that it found.
    """
    with report.open("a") as lines:
        lines.write(json.dumps({"phase": phase, **found}) + "\n")


def choose_device(backend: str) -> torch.device:
    """Return a card for each rank with `nccl` (RCCL on ROCm), the CPU with `gloo` but for a retry on cards."""
    import torch

    if backend == "gloo" and ROUTE not in os.environ:
        return torch.device("cpu")
    cards = os.environ.get(CARDS, "0,1").split(",")
    device = torch.device("cuda", int(cards[int(os.environ["LOCAL_RANK"])]))
    torch.cuda.set_device(device)
    return device


def through_host() -> bool:
    """Return whether this is the retry in which all that travels between the ranks is staged through host memory."""
    return os.environ.get(ROUTE) == HOST.name


def compare_gradients(rank: int, device: torch.device, seed: int) -> dict[str, float]:
    """Return the relative error of DDP's gradients of a linear model against the analytic mean over both shards.

    Each rank starts from weights of its own, which DDP replaces by those of rank 0.

    Args:
        rank: 0 or 1.
        device: where this rank computes: cuda:RANK, or cpu for ranks without cards.
        seed: seed of the random numbers.
    """
    import torch

    torch.manual_seed(seed + rank)
    model = wrap(torch.nn.Linear(FEATURES, OUTPUTS).to(device), device)
    torch.manual_seed(seed)
    weight, bias = torch.nn.Linear(FEATURES, OUTPUTS).parameters()
    shards = draw_shards(seed, step=0)
    backward(model, shards[rank], device)
    analytic = [analytic_gradient(weight.detach(), bias.detach(), shard) for shard in shards]
    error = numerics.relative_error(flat_gradients(model), torch.stack(analytic).mean(dim=0))
    return {"error": error}


def analytic_gradient(weight: torch.Tensor, bias: torch.Tensor, shard: Shard) -> torch.Tensor:
    """Return the gradient of the mean squared error of x W^T + b in fp64, by its closed form: weight's, then bias's.

    With the residual r = x W^T + b - y of shape (n, o): dL/dW = 2/(n o) r^T x and dL/db = 2/(n o) sum of r.

    Args:
        weight: shape (outputs, inputs).
        bias: shape (outputs,).
    """
    import torch

    x, y = (tensor.double() for tensor in shard)
    residual = x @ weight.double().t() + bias.double() - y  # (batch, output)
    scaled = residual * (2 / residual.numel())
    return torch.cat([(scaled.t() @ x).flatten(), scaled.sum(dim=0)])


def compare_weights(rank: int, device: torch.device, seed: int) -> dict[str, Any]:
    """Train an MLP with DDP, and alone on the joined batches; compare the weights that come of it.

    Args:
        rank: 0 or 1.
        device: where this rank computes: cuda:RANK, or cpu for ranks without cards.
        seed: seed of the random numbers.
    """

    shared = wrap(seeded_mlp(seed + rank).to(device), device)
    alone, start = seeded_mlp(seed).to(device), flat_weights(seeded_mlp(seed))
    train(shared, [draw_shards(seed, step)[rank] for step in range(STEPS)], device)
    train(alone, [joined(draw_shards(seed, step)) for step in range(STEPS)], device)
    weights, reference = flat_weights(shared), flat_weights(alone).double()
    return {
        "error": numerics.relative_error(weights, reference),
        "moved": numerics.relative_error(reference, start.double()),
        "sha256": hashlib.sha256(weights.numpy().tobytes()).hexdigest(),
    }


def seeded_mlp(seed: int) -> torch.nn.Module:
    """Return a small MLP whose weights follow from `seed`."""
    import torch

    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(FEATURES, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, OUTPUTS))


def wrap(model: torch.nn.Module, device: torch.device) -> DistributedDataParallel:
    """Wrap `model` in DDP on its device."""
    from torch.nn.parallel import DistributedDataParallel

    shared = DistributedDataParallel(model, device_ids=None if device.type == "cpu" else [device.index])
    if through_host():
        from trainer.distributed.transports.reduce import ddp_hook, summation

        shared.register_comm_hook(None, ddp_hook(summation(on_host=True, compression="none"), WORLD))
    return shared


def draw_shards(seed: int, step: int) -> list[Shard]:
    """Return both ranks' inputs (batch, feature) and targets (batch, output) of one step; every rank can draw all."""
    import torch

    generator = torch.Generator().manual_seed(seed + 1000 * (step + 1))
    sizes = (SHARD, FEATURES), (SHARD, OUTPUTS)
    return [
        (torch.randn(sizes[0], generator=generator), torch.randn(sizes[1], generator=generator)) for _ in range(WORLD)
    ]


def joined(shards: Sequence[Shard]) -> Shard:
    """Return the shards as one batch."""
    import torch

    inputs, targets = zip(*shards, strict=True)
    return torch.cat(inputs), torch.cat(targets)


def train(model: torch.nn.Module, batches: Sequence[Shard], device: torch.device) -> None:
    """Take one SGD step a batch.

    Args:
        model: model to train, in place.
        batches: inputs and targets of each step.
        device: device of the model.
    """
    import torch

    avoid_compiler_import()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for batch in batches:
        optimizer.zero_grad()
        backward(model, batch, device)
        optimizer.step()


def backward(model: torch.nn.Module, batch: Shard, device: torch.device) -> None:
    """Compute the gradients of the mean squared error on `batch`.

    Args:
        model: model that receives the gradients.
        device: device of the model.
    """
    import torch

    x, y = (tensor.to(device) for tensor in batch)
    torch.autograd.backward(torch.nn.functional.mse_loss(model(x), y))


def flat_gradients(model: torch.nn.Module) -> torch.Tensor:
    """Return all gradients in one dimension, on the CPU."""
    import torch

    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).cpu()


def flat_weights(model: torch.nn.Module) -> torch.Tensor:
    """Return all weights in one dimension, on the CPU."""
    import torch

    return torch.cat([p.detach().flatten() for p in model.parameters()]).cpu()


if __name__ == "__main__":
    leave(main(), sys.argv)
