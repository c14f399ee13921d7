"""Settings of a run: its folder, its ranks, its telemetry and callbacks, and its provenance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

from trainer.config.batch_schedule import MOST_ROWS
from trainer.config.checkpoint_policy import (
    EVERY_MINUTE,
    LAST_TWO,
    Interval,
    Retention,
    parse_interval,
    parse_retention,
)
from trainer.config.choices import COMMS, COMPRESSIONS, EXPORTS, PARALLEL, TRACKERS
from trainer.config.parsing import (
    Reader,
    callbacks,
    json_object,
    names,
    number,
    one_of,
    path,
    ranks_or_auto,
    run_name,
    seconds_or_word,
    some_of,
    switch,
    text,
    whole,
)
from trainer.config.setting import Flag, OnResume

BY_HOST = "provenance"  # records that the host program gives; no person types them, and no recipe holds them
_interval = Reader(parse_interval, "INT|TIME")
_ranks = partial(Flag, recipe="ranks")
_host = partial(Flag, recipe=BY_HOST)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The run's folder, its checkpoints, and what it writes."""

    title: ClassVar[str] = "Run"
    output: Annotated[Path, Flag("folder in which the run's folder is made", path, "run", common=True)] = Path(
        "TRAINING"
    )
    run: Annotated[
        str | None, Flag("name of the run (default: UTC time and a suffix)", run_name, "run", common=True)
    ] = None
    resume: Annotated[str | None, Flag("resume an unfinished run: its name, or auto", run_name, "run", common=True)] = (
        None
    )
    checkpoint_every: Annotated[
        Interval,
        Flag("steps (500) or time (60s, 10m); 0: never", _interval, "checkpoint", common=True),
    ] = EVERY_MINUTE
    keep: Annotated[
        Retention, Flag("checkpoints to keep", Reader(parse_retention, "last=INT,best=INT,every=INT"), "checkpoint")
    ] = LAST_TWO
    export: Annotated[tuple[str, ...], Flag("also export the model in these formats", some_of(*EXPORTS), "model")] = ()
    skip_gpu_cleanup: Annotated[
        bool, Flag("accepted for compatibility, without effect: memory is always released at the end", switch, "run")
    ] = False


@dataclass(frozen=True, kw_only=True)
class DistributedConfig:
    """Several ranks: how they share the work, talk to each other, and what is done where one hangs."""

    title: ClassVar[str] = "Ranks"
    ranks: Annotated[
        int | str,
        _ranks(
            "processes to start, one per card; auto: one or all, as measured; not needed under torchrun",
            ranks_or_auto,
            common=True,
        ),
    ] = 1
    parallel: Annotated[
        str,
        _ranks(
            "what is split among ranks: ddp: rows; fsdp2: weights; pipeline: layers; sequence: tokens of a row",
            one_of(*PARALLEL),
            alike=True,
        ),
    ] = "ddp"
    comms: Annotated[
        str, _ranks("transport between ranks; auto: the first that passes a probe", one_of(*COMMS), alike=True)
    ] = "auto"
    gradient_compression: Annotated[
        str, _ranks("send gradients as bf16: half the bytes", one_of(*COMPRESSIONS), alike=True)
    ] = "none"
    max_restarts: Annotated[int, _ranks("restarts of the ranks after a hang or a crash", whole(0, 1000))] = 3
    hang_timeout: Annotated[
        float | str | None,
        _ranks("seconds in one section before a rank counts as hung; auto: 600 among ranks", seconds_or_word),
    ] = "auto"
    hang_floor: Annotated[float, _ranks("shortest time limit in seconds that the watchdog may learn", number(1e6))] = (
        30.0
    )


@dataclass(frozen=True, kw_only=True)
class TelemetryConfig:
    """Settings of trackers, callbacks and the NaN guard."""

    title: ClassVar[str] = "Telemetry"
    track: Annotated[
        tuple[str, ...], Flag("also send the figures to these trackers", some_of(*TRACKERS), "telemetry")
    ] = ()
    callback: Annotated[
        tuple[str, ...],
        Flag(
            "your own callbacks, or none; see docs/training.md",
            callbacks,
            "telemetry",
            resume=OnResume.KEPT,
            sparse=True,
            alike=True,
        ),
    ] = ()
    nan_guard: Annotated[int, Flag("check for NaN every N steps; 0: off", whole(0, MOST_ROWS), "telemetry")] = 100


@dataclass(frozen=True, kw_only=True)
class ProvenanceConfig:
    """Provenance that the host program passes to be recorded; the trainer cannot determine it."""

    title: ClassVar[str] = "Provenance"
    cell: Annotated[str | None, _host("name of the matrix cell, to be recorded", text)] = None
    cell_absent: Annotated[str | None, _host("why there is no cell, to be recorded", text)] = None
    forced: Annotated[tuple[str, ...], _host("rules of the matrix that were overridden, to be recorded", names)] = ()
    image: Annotated[str | None, _host("digest of the container image, to be recorded", text)] = None
    commit: Annotated[str | None, _host("git commit of the project, to be recorded", text)] = None
    rank_choice: Annotated[
        str | None, _host("what --ranks auto measured, as JSON, to be recorded", json_object, sparse=True)
    ] = None
