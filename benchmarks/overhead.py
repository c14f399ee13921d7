"""What the loop costs against one written by hand, what a checkpoint a minute costs, and how soon a resume steps.

    python benchmarks/overhead.py --device cpu
    python benchmarks/overhead.py --device cuda

The hand-written loop takes the same batches of the same model with the same optimizer and does nothing else. Both
are timed in turns, in blocks of steps, because other work on the machine comes and goes; the figure is the median
over the pairs. Raw results go to benchmarks/results/overhead-<device>.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
from torch import nn  # noqa: E402

from trainer.config.checkpoint_policy import Interval, Retention  # noqa: E402
from trainer.data.loading.placement import TensorPartition  # noqa: E402
from trainer.data.loading.sampler import Sampler  # noqa: E402
from trainer.device.accelerator import choose, make_reproducible  # noqa: E402
from trainer.engine.callbacks.callback_list import Callbacks  # noqa: E402
from trainer.engine.loop import run_epoch  # noqa: E402
from trainer.engine.training import Plan, Training, new_training  # noqa: E402
from trainer.models.mlp import mlp  # noqa: E402
from trainer.run.checkpoint_writer import Checkpointer  # noqa: E402

INPUTS, STEP_SECONDS = 64, 0.005


def data(rows: int, device: str) -> TensorPartition:
    """Random rows: only the time they take is looked at."""
    generator = torch.Generator().manual_seed(0)
    inputs, targets = (torch.randn(rows, width, generator=generator).to(device) for width in (INPUTS, 1))
    return TensorPartition(inputs=inputs, targets=targets)


def wait(device: str) -> None:
    """Wait for the device: what it was given is not done when the host is."""
    if device != "cpu":
        torch.cuda.synchronize()


class Bare:
    """The loop that one would write by hand; its state is a model and an optimizer."""

    def __init__(self, part: TensorPartition, width: int, batch: int) -> None:
        torch.manual_seed(0)
        self.part = part
        self.model = mlp(INPUTS, (width, width)).to(part.targets.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        self.sampler, self.epoch = Sampler(rows=len(part), batch_size=batch, seed=0), 0

    def run_epoch(self) -> None:
        """Take one step a batch."""
        self.model.train()
        total = torch.zeros((), device=self.part.targets.device)
        for rows in self.sampler.order(self.epoch).to(self.part.targets.device).split(self.sampler.batch_size):
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(self.part.inputs[rows]), self.part.targets[rows])
            loss.backward()
            self.optimizer.step()
            total += loss.detach() * len(rows)
        self.epoch += 1


def ours(part: TensorPartition, width: int, batch: int, keeper: Checkpointer | None = None) -> Training:
    """Return the trainer's run on the same work, guarded as on an accelerator."""
    torch.manual_seed(0)
    model = mlp(INPUTS, (width, width)).to(part.targets.device)
    plan = Plan(epochs=10**6, batch_size=batch, learning_rate=1e-4, seed=0)
    return new_training(model, part, part, plan, callbacks=Callbacks([keeper] if keeper else []))


def one_epoch(training: Training) -> None:
    """Take the epoch's steps, then begin the next one, without measuring on the validation part."""
    run_epoch(training)
    training.state.epoch, training.state.batch = training.state.epoch + 1, 0
    training.state.chain.cut()


def processor_seconds(work: Any) -> float:
    """Return this thread's processor time in `work`: other work on the machine does not stretch it much."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


def loop_seconds(work: Any, device: str) -> float:
    """Return the processor time on a CPU, where the loop is one thread, and the clock's on a card."""
    return processor_seconds(work) if device == "cpu" else seconds(work, device)


def seconds(work: Any, device: str) -> float:
    """Return how long `work` takes."""
    wait(device)
    began = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - began


def rows_for_five_milliseconds(width: int, device: str) -> tuple[int, float]:
    """Return the batch size at which a bare step takes about 5 ms, and what it took."""
    batch = 16
    while True:
        bare = Bare(data(batch * 20, device), width, batch)
        bare.run_epoch()
        step = min(loop_seconds(bare.run_epoch, device) for _ in range(3)) / 20
        if step >= STEP_SECONDS or batch >= 2**17:
            return batch, step
        batch *= 2


def overhead(width: int, device: str, pairs: int) -> dict[str, Any]:
    """Return both loops' time a step, taken in turns, and how much longer ours is."""
    batch, _ = rows_for_five_milliseconds(width, device)
    part = data(batch * 50, device)
    bare, training = Bare(part, width, batch), ours(part, width, batch)
    bare.run_epoch()
    one_epoch(training)
    timed = []
    for turn in range(pairs):
        works = [bare.run_epoch, lambda: one_epoch(training)]
        order = (0, 1) if turn % 2 else (1, 0)
        took = {index: loop_seconds(works[index], device) / 50 for index in order}
        timed.append((took[0], took[1]))
    same = all(
        torch.equal(one, other) for one, other in zip(bare.model.parameters(), training.model.parameters(), strict=True)
    )
    return {
        "width": width,
        "batch": batch,
        "bare_ms": round(1000 * statistics.median(first for first, _ in timed), 4),
        "ours_ms": round(1000 * statistics.median(second for _, second in timed), 4),
        "overhead_percent": round(100 * statistics.median(second / first - 1 for first, second in timed), 2),
        "same_weights": same,
        "pairs_ms": [[round(1000 * value, 4) for value in pair] for pair in timed],
    }


def host_cost(device: str, pairs: int) -> dict[str, Any]:
    """Return the host's processor microseconds a step that ours takes more, on a step that is next to nothing."""
    part, found = data(32 * 200, device), {}
    for guarded in (False, True):
        bare, training = Bare(part, 16, 32), ours(part, 16, 32)
        training.guarded = guarded
        bare.run_epoch()
        one_epoch(training)
        more = [
            processor_seconds(lambda: one_epoch(training)) - processor_seconds(bare.run_epoch)  # noqa: B023
            for _ in range(pairs)
        ]
        found["guarded" if guarded else "unguarded"] = round(1e6 * statistics.median(more) / 200, 2)
    return found


def checkpoint_cost(width: int, device: str, minutes: float) -> dict[str, Any]:
    """Return what a checkpoint costs: the stall of the loop, and the time it adds to a run in all."""
    batch, step = rows_for_five_milliseconds(width, device)
    part = data(batch * 50, device)
    with tempfile.TemporaryDirectory() as folder:
        keeper = Checkpointer(run=Path(folder), interval=Interval(), retention=Retention())
        training = ours(part, width, batch, keeper)
        one_epoch(training)
        stalls: list[float] = []
        plain: list[float] = []
        kept: list[float] = []
        ends = time.monotonic() + 60 * minutes
        while time.monotonic() < ends or len(kept) < 5:
            keeper.on_train_end(training)
            plain.append(seconds(lambda: one_epoch(training), device))
            stalls.append(seconds(lambda: keeper.on_checkpoint(training), device))
            kept.append(seconds(lambda: one_epoch(training), device))  # while the checkpoint is being written
        keeper.on_train_end(training)
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) // 2
    added = statistics.median(stalls) + max(0.0, statistics.median(kept) - statistics.median(plain))
    return {
        "parameters": sum(value.numel() for value in training.model.parameters()),
        "bytes_of_a_checkpoint": size,
        "step_ms": round(1000 * step, 3),
        "stall_ms_median": round(1000 * statistics.median(stalls), 3),
        "stall_ms_max": round(1000 * max(stalls), 3),
        "added_ms_median": round(1000 * added, 3),
        "percent_of_a_minute": round(100 * added / 60, 4),
        "checkpoints": len(stalls),
    }


def resume_seconds(device: str) -> dict[str, Any]:
    """Return the time from the start of a process to its first step's checkpoint on the disk, three times."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "trainer", "train", "--output", folder, "--run", "one", "--resume", "auto"]
        command += ["--device", device, "--epochs", "100000", "--checkpoint-every", "1"]
        for _ in range(4):
            began = time.monotonic()
            run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            assert run.stdout is not None
            while json.loads(run.stdout.readline())["event"] != "checkpoint":
                pass
            found.append(round(time.monotonic() - began, 3))
            run.kill()
            run.wait()
    return {"first_start": found[0], "resumes": found[1:]}


def main() -> int:
    """Measure and write the raw results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--width", type=int, help="of both hidden layers (default: 512 on a CPU, 8192 on a card)")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=0.5, help="of measuring checkpoints")
    options = parser.parse_args()
    make_reproducible(seed=0, threads=1)
    accelerator = choose(options.device)
    width = options.width or (512 if accelerator.kind == "cpu" else 8192)
    result: dict[str, Any] = {
        "machine": f"{accelerator.name} ({accelerator.arch}), {platform.machine()}, {os.cpu_count()} CPUs",
        "torch": torch.__version__,
        "load_before": os.getloadavg()[0],
        "overhead": overhead(width, accelerator.device, options.pairs),
        "host_microseconds_a_step": host_cost(accelerator.device, options.pairs),
        "checkpoint": checkpoint_cost(width, accelerator.device, options.minutes),
        "start_to_first_step_seconds": resume_seconds(accelerator.device),
    }
    path = ROOT / "benchmarks" / "results" / f"overhead-{accelerator.kind}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    del result["overhead"]["pairs_ms"]
    print(json.dumps(result, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
