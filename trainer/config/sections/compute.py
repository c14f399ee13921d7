"""Settings of the computation: device, number format, micro-batches, kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from trainer.config.choices import COMPILE, FEEDS, GATES, PRECISIONS, RECOMPUTE, STEPS
from trainer.config.other_programs import WORDS
from trainer.config.parsing import Reader, one_of, or_auto, switch, whole
from trainer.config.setting import Flag, OnResume


@dataclass(frozen=True, kw_only=True)
class ComputeConfig:
    """Device, number format, and ways to the same result."""

    title: ClassVar[str] = "Computation"
    device: Annotated[
        str,
        Flag(
            "cuda also selects AMD cards (ROCm)",
            Reader(str, "auto|cpu|cuda|cuda:N"),
            "run",
            OnResume.ROUNDING,
            common=True,
        ),
    ] = "auto"
    threads: Annotated[
        int, Flag("CPU threads; the count changes rounding", whole(1, 1024), "run", OnResume.ROUNDING, common=True)
    ] = 1
    precision: Annotated[
        str,
        Flag(
            "number format; auto: the best that passes a self-test",
            one_of(*PRECISIONS, also=WORDS["precision"]),
            resume=OnResume.FIXED,
            common=True,
        ),
    ] = "fp32"
    use_mixed_precision: Annotated[bool, Flag("the same as --precision auto", switch)] = False
    micro_batch: Annotated[
        int | None,
        Flag("rows per forward and backward pass; auto: as many as fit (default: auto)", or_auto(whole(1)), alike=True),
    ] = None
    step: Annotated[
        str,
        Flag(
            "eager: step by step; graph: CUDA/HIP graph; direct: CPU without autograd; auto: fastest bit-identical one",
            one_of(*STEPS),
            resume=OnResume.KEPT,
        ),
    ] = "auto"
    compile: Annotated[
        str,
        Flag(
            "torch.compile; auto: kept if the results are equal and it is faster",
            one_of(*COMPILE, also=WORDS["compile"]),
            "model",
        ),
    ] = "off"
    gates: Annotated[
        str,
        Flag(
            "try number format, attention, 4-bit weights, adapters and compiled code in a child process first; "
            "auto: on cards",
            one_of(*GATES),
            "run",
            sparse=True,
        ),
    ] = "auto"
    activation_checkpointing: Annotated[
        str,
        Flag(
            "compute activations again in the backward pass: less memory, more time; offloaded: full, and what is kept "
            "waits in the host's memory",
            one_of(*RECOMPUTE, also=WORDS["activation_checkpointing"]),
            "model",
            alike=True,
        ),
    ] = "off"
    feed: Annotated[str, Flag("where the rows are held; auto: on the device if they fit", one_of(*FEEDS), "data")] = (
        "auto"
    )
    loader_workers: Annotated[
        int, Flag("threads that prefetch rows from the host; 0: all rows are on the device", whole(0, 64), "data")
    ] = 0
