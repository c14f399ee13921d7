"""What the NaN guard and the telemetry cost a step: the trainer's loop with and without them, in turns.

    python -m benchmarks.watch_overhead --device cpu --widths 1024,1024 --steps 400 --output FILE.json

Rows are random numbers: nothing is learned here, only timed.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from trainer.config.sections.run import TelemetryConfig
from trainer.data.loading.placement import TensorPartition
from trainer.device.accelerator import choose
from trainer.engine.callbacks.callback_list import Callbacks
from trainer.engine.callbacks.progress import Progress
from trainer.engine.instrumentation import callbacks_of
from trainer.engine.loop import run_epoch
from trainer.engine.training import Plan, Training, new_training
from trainer.models.mlp import mlp
from trainer.storage.run_folder import folder_of

FEATURES, TURNS = 54, 5


def main() -> None:
    """Time the turns and print or write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--widths", default="1024,1024")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    figures = measured(arguments)
    text = json.dumps(figures, indent=1) + "\n"
    print(text, end="")
    if arguments.output:
        arguments.output.write_text(text)


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the median milliseconds a step of each kind, and what watching adds."""
    hidden = [int(width) for width in arguments.widths.split(",")]
    took: dict[str, list[float]] = {"bare": [], "guard and telemetry": []}
    with tempfile.TemporaryDirectory() as folder:
        kinds = {name: made(arguments, hidden, Path(folder), watched=name != "bare") for name in took}
        for training in kinds.values():
            timed(training)  # the first turn warms up
        for _ in range(TURNS):
            for name, training in kinds.items():
                took[name].append(timed(training) * 1000 / arguments.steps)
    middle = {name: statistics.median(times) for name, times in took.items()}
    fastest = {name: min(times) for name, times in took.items()}
    return {
        "device": torch.cuda.get_device_name(arguments.device)
        if "cuda" in arguments.device
        else f"CPU {platform.machine()}",
        "torch": torch.__version__,
        "widths": hidden,
        "batch": arguments.batch,
        "steps_a_turn": arguments.steps,
        "median_ms_a_step": middle,
        "fastest_ms_a_step": fastest,
        "added_by_fastest": fastest["guard and telemetry"] / fastest["bare"] - 1,
        "ms_a_step_of_each_turn": took,
    }


def made(arguments: argparse.Namespace, hidden: list[int], folder: Path, *, watched: bool) -> Training:
    """Return a run over random rows, an epoch of which takes the wanted number of steps."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rows = arguments.batch * arguments.steps
    model = mlp(FEATURES, hidden).to(arguments.device)
    part = TensorPartition(
        inputs=torch.randn(rows, FEATURES, device=arguments.device),
        targets=torch.randn(rows, 1, device=arguments.device),
    )
    plan = Plan(epochs=1, batch_size=arguments.batch, learning_rate=1e-4, seed=0)
    training = new_training(model, part, part, plan)
    if watched:
        run = folder_of(folder, "watched")
        run.partial.mkdir()
        widths = {"kind": "mlp", "widths": [FEATURES, *hidden, 1], "activation": "ReLU"}
        own = callbacks_of(training, TelemetryConfig(), run, choose(arguments.device), widths, {})
        training.callbacks = Callbacks([each for each in own if not isinstance(each, Progress)])
    return training


def timed(training: Training) -> float:
    """Return the seconds of one epoch's steps, the device's work included.

    On a CPU it is this process's processor time, which other work on the machine hardly changes.
    """
    clock = time.process_time if training.device.type == "cpu" else time.perf_counter
    training.state.batch = 0
    synchronize(training.device)
    began = clock()
    run_epoch(training)
    training.callbacks.on_losses_ready(training)
    synchronize(training.device)
    return clock() - began


def synchronize(device: torch.device) -> None:
    """Wait for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    main()
