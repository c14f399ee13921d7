"""The trainer's own callbacks of a run: heartbeat, NaN guard, telemetry with trackers, and progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from trainer.config.sections.run import TelemetryConfig
from trainer.data.loading.batch import count
from trainer.device.accelerator import Accelerator
from trainer.distributed.watchdog.guard import Launch
from trainer.engine.callbacks.callback import Callback
from trainer.engine.callbacks.heartbeat import Heartbeat
from trainer.engine.callbacks.measurements import Measurements
from trainer.engine.callbacks.nan_check import NanCheck
from trainer.engine.callbacks.progress import Progress
from trainer.engine.loop import forward_backward, step_optimizer
from trainer.engine.training import Training
from trainer.storage.run_folder import RunFolder
from trainer.telemetry import peaks, trackers
from trainer.telemetry.flops import flops_per_row
from trainer.telemetry.health.watch import HealthWatch
from trainer.telemetry.nan_guard import MOST_BYTES, NanGuard, RecomputeHooks
from trainer.telemetry.recorder import Telemetry, ThroughputReference, device_memory
from trainer.telemetry.sensors import sensor, utilization


def callbacks_of(
    training: Training,
    config: TelemetryConfig,
    folder: RunFolder,
    accelerator: Accelerator,
    architecture: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> list[Callback]:
    """Return the trainer's own callbacks of `training` in their order; telemetry and progress are rank 0's alone.

    Args:
        architecture: metadata.json's description of the network.
        settings: the run's settings by name, for the trackers.

    Raises:
        TrainerError: RM507 where a tracker does not start.
    """
    made: list[Callback] = [Heartbeat()] if training.ranks.heartbeat else []
    if config.nan_guard:
        made.append(NanCheck(guard_of(training, config.nan_guard, folder, architecture)))
    if not training.ranks.is_main:
        return made
    telemetry = Telemetry(
        file=folder.partial / "telemetry.jsonl",
        trackers=trackers.start(config.track, folder.partial, folder.name, settings),
        sensor=sensor(accelerator.device),
        memory=device_memory(accelerator.device),
        reference=throughput_reference(training, accelerator),
        checkpoint_age=age_of_checkpoint(training),
    )
    if accelerator.device.startswith("cuda"):
        telemetry.follow_health(HealthWatch())
        telemetry.follow_utilization(utilization(cards_of(training, accelerator.device)))
    telemetry.resume(training.state.step)
    return [*made, Measurements(telemetry), Progress(telemetry)]


def cards_of(training: Training, device: str) -> list[str]:
    """Return torch's names of the cards that the run's ranks on this machine compute on; `device` is this rank's.

    Args:
        device: name of this rank's device, such as "cuda:0" or "cpu".
    """
    if training.ranks.world_size == 1 or not device.startswith("cuda"):
        return [device]
    return [f"cuda:{number}" for number in range(Launch.from_environment().local_world)]


def guard_of(training: Training, every: int, folder: RunFolder, architecture: Mapping[str, Any]) -> NanGuard:
    """Return the guard. On several ranks it finds the step, and does not search for the layer.

    A search would compute steps again, which on several ranks all would have to do together.

    Args:
        every: steps between two checks; 0 for none.
        architecture: metadata.json's description of the network.
    """
    ranks, alone = training.ranks, training.ranks.world_size == 1
    again = RecomputeHooks(
        fetch=lambda rows: training.train.rows(rows, training.device),
        compute=lambda inputs, targets: forward_backward(
            training, inputs, targets, rows=count(inputs), weight=count(inputs)
        ),
        advance=lambda: step_optimizer(training),
        stateful=[each for each in (training.optimizer, training.scaler, training.scheduler) if each is not None],
        scaled=training.scaler is not None,
    )
    return NanGuard(
        training.model,
        again,
        architecture=architecture,
        folder=folder.final.parent / f"{folder.name}-nan{'' if alone else f'-rank-{ranks.rank}'}",
        every=every,
        most_bytes=MOST_BYTES if alone else 0,
        agree=lambda bad: bool(ranks.any_rank(bad)[0]),
    )


def throughput_reference(training: Training, accelerator: Accelerator) -> ThroughputReference:
    """Return what rates are measured against: the model's FLOPs and the peak of all ranks' cards, taken as alike."""
    sharded = training.ranks.lockstep  # counting runs a copy of the model, and a sharded one cannot be copied
    found = peaks.find(accelerator.name, accelerator.arch)
    peak = found.flops(training.precision.name) if found else None
    flops = None if sharded or peak is None else counted(training)  # to count imports torch's compiler, for seconds
    if sharded:
        why = "the operations of a sharded model are not counted, so there is no MFU"
    elif found is None:
        why = f"no peak is known for {accelerator.name} ({accelerator.arch}), so there is no MFU"
    elif peak is None:
        why = f"{accelerator.name} has no {training.precision.name} peak on record, so there is no MFU"
    elif flops is None:
        why = "torch cannot count the operations of this model"
    else:
        why = f"{found.names[0]}: {found.source} ({found.confidence})"
    ranks = training.ranks.world_size
    return ThroughputReference(flops_per_row=flops, peak=peak and peak * ranks, why=why, ranks=ranks)


def counted(training: Training) -> float | None:
    """Return the FLOPs of a row of the training part, None where torch cannot count the model's operations."""
    row, _ = training.train.rows(torch.zeros(1, dtype=torch.long), training.device)
    return flops_per_row(training.model, row)


def age_of_checkpoint(training: Training) -> Callable[[], float | None]:
    """Return a function for the seconds since a checkpoint was last written, None before the first."""
    times = [each for each in training.callbacks.all if hasattr(each, "written_at")]

    def age() -> float | None:
        written = times[0].written_at if times else None
        return None if written is None else time.monotonic() - written

    return age
