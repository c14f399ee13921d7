"""The micro-batch that a run of --micro-batch auto starts with: the largest that the plan finds room for.

The plan is made in a process of its own, without the card: it cannot disturb the run's random numbers or compiled
code, and where it fails the run starts as it would without, with all rows. Running out of memory is recovered from
either way.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainer.config.sections.decoder import DecoderConfig
from trainer.config.train import TrainConfig
from trainer.device import architectures
from trainer.device.accelerator import Accelerator
from trainer.device.capacity import free_memory
from trainer.runtime.child_process import run_limited

SECONDS = 240.0
FLAG = "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL"


@dataclass(frozen=True, kw_only=True)
class StartSize:
    """Rows at a time to start with, None for all of a step; what was planned in bytes, and why."""

    rows: int | None
    why: str
    needed_bytes: int | None = None
    budget_bytes: int | None = None

    def facts(self) -> dict[str, Any]:
        """Return what metadata.json holds."""
        return asdict(self)


def step_settings(config: TrainConfig) -> dict[str, Any]:
    """Return the fields of `Program` that settings of the run decide and the network does not.

    best: whether steps follow a measurement, after which a copy of the best weights stays on the device. Of a run whose
    length is given in steps alone it is not known when the first epoch ends.
    """
    loop, model = config.loop, config.model
    measured_within = loop.eval_every is not None or (loop.max_steps is None and loop.epochs > 1)
    return {
        "checkpointing": config.compute.activation_checkpointing,
        "clip_norm": config.optimizer.clip_norm,
        "optimizer": config.optimizer.optimizer,
        "fast": not isinstance(model, DecoderConfig) or model.fast != "off",
        "best": measured_within and loop.best_on == "device",
    }


def start_size(
    planned: Mapping[str, Any], *, rows: int, accelerator: Accelerator, precision: str, how: Mapping[str, Any]
) -> StartSize:
    """Return the size to start with on a card; all rows where no plan is made.

    Args:
        planned: fields of `Program` that the network decides.
        rows: of a step on this card.
        accelerator: the card.
        precision: number format of the products.
        how: further fields of `Program`: checkpointing, clip_norm, fast.
    """
    free = free_memory(accelerator.device)
    request = {
        "program": {**planned, **how, "precision": precision, "units": _units(accelerator)},
        "rows": rows,
        "card": {"name": accelerator.name, "arch": accelerator.arch, "memory": free, "hip": accelerator.kind == "rocm"},
    }
    return size_by_process(request)


def size_by_process(request: Mapping[str, Any]) -> StartSize:
    """Return the size that a process of its own plans.

    Args:
        request: program, rows and card, as `start_size` makes them; JSON's own types.
    """
    argv = [sys.executable, "-P", "-m", __name__, json.dumps(request)]
    # The folder that holds the trainer is on the path of this process, perhaps by its working directory alone.
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([each or str(Path.cwd()) for each in sys.path])
    try:
        done = run_limited(argv, seconds=SECONDS, env=environment)
        if done.returncode == 0:
            return _read(done.stdout)
        how = done.signal_name or ("timeout" if done.timed_out else f"exit status {done.returncode}")
        failed = f"{how}: {done.stderr_tail(1)}"
    except (OSError, ValueError) as error:  # a network too large for a command line, a full /tmp
        failed = str(error)
    return StartSize(rows=None, why=f"no plan was made: {failed}"[:300])


def _read(stdout: str) -> StartSize:
    """Return the plan that a process printed; libraries may print to the same stream. Raises ValueError for none."""
    for line in reversed(stdout.splitlines()):
        with contextlib.suppress(ValueError, TypeError):
            return StartSize(**json.loads(line))
    raise ValueError("the process printed no plan")


def _units(accelerator: Accelerator) -> int:
    """Return the multiprocessors of an NVIDIA card; 0 for others, see `PlannedAttention`."""
    if accelerator.kind != "cuda":
        return 0
    import torch

    return int(torch.cuda.get_device_properties(accelerator.device).multi_processor_count)


def planned_size(request: Mapping[str, Any]) -> StartSize:
    """Plan, and return the largest size that fits.

    Args:
        request: see `size_by_process`.
    """
    from trainer.run.memory_plan.cards import Card
    from trainer.run.memory_plan.fit import first_size, gib
    from trainer.run.memory_plan.shapes import Program

    own, rows = request["card"], int(request["rows"])
    card = Card(
        name=own["name"],
        arch=own["arch"],
        memory=own["memory"],
        why="free at the start",
        fused=architectures.KNOWN.get(own["arch"], {}).get("attention", "no" if own["hip"] else "yes"),
        precision="bf16",
    )
    precision = request["program"]["precision"]
    kernels = card.attention(flag=os.environ.get(FLAG) == "1", precision=precision)
    program = Program(**request["program"], attention=kernels, compiler=card.compiler, rows=rows)
    found = first_size(program, card, rows)
    size, bytes_ = found.program.rows, {"needed_bytes": found.need, "budget_bytes": found.budget}
    of = f"{gib(found.need)} of {gib(found.budget)} GiB"
    if found.fits and found.program.pieces == program.pieces:
        return StartSize(rows=None, why=f"all {rows:,} rows of a step: {of} planned", **bytes_)
    if not found.fits:
        return StartSize(rows=1, why=f"one row is planned to take {of}; it is tried", **bytes_)
    return StartSize(rows=size, why=f"the largest power of two that fits: {of} planned", **bytes_)


if __name__ == "__main__":
    print(json.dumps(planned_size(json.loads(sys.argv[1])).facts()))
