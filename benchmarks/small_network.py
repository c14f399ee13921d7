"""Rows per second of a small network here and in a plain DataLoader loop, side by side, with the losses of both.

    python -m benchmarks.small_network --device cpu
    python -m benchmarks.small_network --device cuda

The network is 54 -> 32 -> 16 -> 1 (2,305 parameters) on random rows: only time and equal losses are looked at. The
plain loop is what one writes first: TensorDataset, DataLoader with its default collate function, forward, backward,
AdamW as it comes. It gets the same rows in the same order, with 0 and with 2 workers, and the faster one counts.
Ours is timed as `train` runs it, with chain, guard against NaN and telemetry. All take turns. Raw results go to
benchmarks/results/small_network-<device>.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from trainer.data.loading.placement import TensorPartition  # noqa: E402
from trainer.data.loading.sampler import Sampler  # noqa: E402
from trainer.device.accelerator import choose, make_reproducible  # noqa: E402
from trainer.engine.callbacks.callback_list import Callbacks  # noqa: E402
from trainer.engine.callbacks.measurements import Measurements  # noqa: E402
from trainer.engine.callbacks.nan_check import NanCheck  # noqa: E402
from trainer.engine.loop import forward_backward, run_epoch, step_optimizer  # noqa: E402
from trainer.engine.measurement import close_epoch  # noqa: E402
from trainer.engine.steps.step_strategy import Choice, choose_step  # noqa: E402
from trainer.engine.training import Plan, Training, new_training  # noqa: E402
from trainer.models.mlp import mlp  # noqa: E402
from trainer.telemetry.nan_guard import NanGuard, RecomputeHooks  # noqa: E402
from trainer.telemetry.recorder import Telemetry  # noqa: E402

FEATURES, HIDDEN, RATE, SEED = 54, (32, 16), 1e-3, 0
# Relative, of the first epoch's mean loss. The plain loop's AdamW rounds differently, and rounding grows with the
# steps, so losses are held together in fp64 besides, where there is room for it to grow.
TOLERANCE, TOLERANCE_FP64, EPOCHS_FP64, ROWS_FP64 = 1e-5, 1e-9, 2, 8192
WAYS = ("plain, 0 workers", "plain, 2 workers", "ours, eager", "ours")


def data(rows: int) -> TensorPartition:
    """Rows with something to learn in them."""
    generator = torch.Generator().manual_seed(SEED)
    inputs = torch.randn(rows, FEATURES, generator=generator)
    noise = torch.randn(rows, 1, generator=generator)
    return TensorPartition(inputs=inputs, targets=inputs[:, :4].sum(1, keepdim=True) + noise)


def network(device: str, dtype: torch.dtype = torch.float32) -> nn.Sequential:
    """The same weights for all."""
    torch.manual_seed(SEED)
    return mlp(FEATURES, HIDDEN).to(device, dtype)


class Order(torch.utils.data.Sampler[int]):
    """The trainer's order of rows, for the DataLoader."""

    def __init__(self, sampler: Sampler) -> None:
        self.sampler, self.epoch = sampler, 0

    def __len__(self) -> int:
        return self.sampler.rows

    def __iter__(self) -> Iterator[int]:
        return iter(self.sampler.order(self.epoch).tolist())


class Plain:
    """The loop with a DataLoader."""

    def __init__(self, part: TensorPartition, batch: int, device: str, workers: int) -> None:
        self.model, self.device, self.rows = network(device, part.inputs.dtype), device, len(part)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=RATE)
        self.order = Order(Sampler(rows=len(part), batch_size=batch, seed=SEED))
        self.loader = DataLoader(
            TensorDataset(part.inputs, part.targets),
            batch_size=batch,
            sampler=self.order,
            num_workers=workers,
            persistent_workers=workers > 0,
            pin_memory=device != "cpu",
        )
        self.losses: list[float] = []

    def run_epoch(self) -> None:
        """Take one step a batch; the loss is summed up on the device."""
        self.model.train()
        total = torch.zeros((), device=self.device, dtype=torch.float64)
        for inputs, targets in self.loader:
            here, there = (value.to(self.device, non_blocking=True) for value in (inputs, targets))
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(here), there)
            loss.backward()
            self.optimizer.step()
            total += loss.detach() * len(here)
        self.losses.append(total.item() / self.rows)
        self.order.epoch += 1


class Ours:
    """The trainer's loop with its callbacks."""

    def __init__(self, part: TensorPartition, batch: int, device: str, step: str, folder: Path) -> None:
        here = TensorPartition(inputs=part.inputs.to(device), targets=part.targets.to(device))
        few = TensorPartition(inputs=here.inputs[:1000], targets=here.targets[:1000])
        plan = Plan(epochs=10**6, batch_size=batch, learning_rate=RATE, seed=SEED)
        self.training = new_training(network(device, part.inputs.dtype), here, few, plan)
        self.choice: Choice = choose_step(step, self.training)
        self.training.callbacks = observed(self.training, folder / f"{step}-{batch}.jsonl")
        self.losses: list[float] = []

    def run_epoch(self) -> None:
        """Take the epoch's steps, and measure 1,000 rows as validation."""
        run_epoch(self.training)
        measured = close_epoch(self.training)
        assert measured is not None  # without --eval-every there is one at each end of an epoch
        self.losses.append(measured.train_loss)


def observed(training: Training, file: Path) -> Callbacks:
    """The guard against NaN and the telemetry, as `train` has them."""
    again = RecomputeHooks(
        fetch=lambda rows: training.train.rows(rows, training.device),
        compute=lambda inputs, targets: forward_backward(
            training, inputs, targets, rows=len(inputs), weight=len(inputs)
        ),
        advance=lambda: step_optimizer(training),
        stateful=[training.optimizer],
    )
    guard = NanGuard(training.model, again, architecture={}, folder=file.parent, agree=bool)
    return Callbacks([NanCheck(guard), Measurements(Telemetry(file=file))])


def seconds(work: Callable[[], None], device: str) -> float:
    """Return how long `work` takes, the device's part included."""
    began = time.perf_counter()
    work()
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def differences(found: list[float], expected: list[float]) -> list[float]:
    """Return by how much losses differ, epoch by epoch, relative."""
    return [abs(one - other) / abs(other) for one, other in zip(found, expected, strict=True)]


def in_fp64(part: TensorPartition, batch: int, device: str, folder: Path) -> float:
    """Return how far the losses are apart where both loops compute in fp64."""
    few = TensorPartition(inputs=part.inputs[:ROWS_FP64].double(), targets=part.targets[:ROWS_FP64].double())
    plain, ours = Plain(few, batch, device, 0), Ours(few, batch, device, "auto", folder)
    for _ in range(EPOCHS_FP64):
        plain.run_epoch()
        ours.run_epoch()
    return max(differences(ours.losses, plain.losses))


def compare(part: TensorPartition, batch: int, device: str, turns: int, folder: Path) -> dict[str, Any]:
    """Return rows per second of all ways over the same batches, in turns, and how far the losses are apart."""
    ours = {
        "ours, eager": Ours(part, batch, device, "eager", folder),
        "ours": Ours(part, batch, device, "auto", folder),
    }
    plain = {name: Plain(part, batch, device, workers) for name, workers in zip(WAYS, (0, 2), strict=False)}
    loops: dict[str, Plain | Ours] = {**plain, **ours}
    timed: dict[str, list[float]] = {name: [] for name in WAYS}
    of_cpu: dict[str, list[float]] = {name: [] for name in WAYS}
    for turn in range(turns + 1):
        for name in WAYS if turn % 2 else WAYS[::-1]:
            before = time.process_time()
            took = seconds(loops[name].run_epoch, device)
            if turn:  # the first epoch starts workers and loads libraries
                timed[name].append(took)
                of_cpu[name].append(time.process_time() - before)
    rate = {name: round(len(part) / statistics.median(took)) for name, took in timed.items()}
    faster = max(WAYS[:2], key=rate.__getitem__)
    apart = differences(loops["ours"].losses, loops[faster].losses)
    apart_fp64 = in_fp64(part, batch, device, folder)
    return {
        "batch": batch,
        "step": vars(ours["ours"].choice),
        "rows_per_second": rate,
        "times_the_faster_plain_loop": round(rate["ours"] / rate[faster], 2),
        "times_turn_by_turn": [round(one / own, 2) for one, own in zip(timed[faster], timed["ours"], strict=True)],
        "times_least_by_least": round(min(timed[faster]) / min(timed["ours"]), 2),
        "times_plain_0_workers_in_cpu_time": round(min(of_cpu[WAYS[0]]) / min(of_cpu["ours"]), 2),
        "least_of_any_turn": round(min(timed[faster]) / max(timed["ours"]), 2),
        "us_a_step": {name: round(1e6 * batch / each, 1) for name, each in rate.items()},
        "losses_apart_first_epoch": apart[0],
        "losses_apart_most": max(apart),
        "losses_apart_fp64": apart_fp64,
        "losses_equal_to_tolerance": apart[0] <= TOLERANCE and apart_fp64 <= TOLERANCE_FP64,
        "same_losses_as_our_eager_loop": ours["ours"].losses == ours["ours, eager"].losses,
        "losses": {name: loop.losses for name, loop in loops.items()},
        "seconds": timed,
        "cpu_seconds_of_this_process": of_cpu,
    }


def main() -> int:
    """Measure and write the raw results; fails where the losses differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", type=int, default=32_768)
    parser.add_argument("--batches", default="32,256,1024,4096")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--conditions", default="not stated", help="who else uses the machine, for the raw results")
    options = parser.parse_args()
    make_reproducible(seed=SEED, threads=1)
    load_before = os.getloadavg()[0]
    accelerator, part = choose(options.device), data(options.rows)
    with tempfile.TemporaryDirectory() as folder:
        found = [
            compare(part, int(batch), accelerator.device, options.turns, Path(folder))
            for batch in options.batches.split(",")
        ]
    result = {
        "machine": f"{accelerator.name} ({accelerator.arch}), {platform.machine()}, {os.cpu_count()} CPUs",
        "torch": torch.__version__,
        "conditions": options.conditions,
        "load_before": load_before,
        "load_after": os.getloadavg()[0],
        "parameters": sum(value.numel() for value in network("cpu").parameters()),
        "rows": options.rows,
        "data": "random rows from a seed",
        "tolerance": {"fp32, first epoch": TOLERANCE, "fp64": TOLERANCE_FP64},
        "batches": found,
    }
    path = ROOT / "benchmarks" / "results" / f"small_network-{accelerator.kind}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    for each in found:
        print(
            json.dumps({name: value for name, value in each.items() if not isinstance(value, dict) or name == "step"})
        )
    return 0 if all(each["losses_equal_to_tolerance"] for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
