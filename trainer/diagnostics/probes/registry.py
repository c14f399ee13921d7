"""Registry of probes: a name, the module to run, a time limit and what it proves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FULL_LOAD = 60.0


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One probe. `timeout_seconds` is generous: the first use of a card loads kernels from disk.

    `cards` is how many the subject takes: with fewer, a probe of two reports it or runs two ranks on the CPU.
    One that is a part of another's subject names it in `part_of` and is run with it. `may_be_absent` is set where
    an image that promises a card does not promise the subject: a compiler, or what only newer torches have.
    """

    name: str
    module: str
    summary: str
    timeout_seconds: float
    cards: Literal[1, 2] = 1
    part_of: str = ""
    may_be_absent: bool = False


def _probe(name: str, timeout: float, summary: str, *, module: str = "", **more: object) -> Probe:
    """Return a probe whose module is `module` of this package; by default the one in `single` that has its name."""
    place = f"trainer.diagnostics.probes.{module or f'single.{name}'}"
    return Probe(name=name, module=place, summary=summary, timeout_seconds=timeout, **more)  # type: ignore[arg-type]


PROBES: tuple[Probe, ...] = (
    _probe("device", 90, "the cards are there, have memory, and return what was sent to them"),
    _probe("blas", 180, "matrix products agree with fp64, through torch's back ends and through the C interface"),
    _probe("convert", 90, "fp32, bf16 and fp16 become each other with the right bits, on the card and on the way"),
    _probe("transfer", 120, "copies to the card and back keep every bit, also in a loop with workers"),
    _probe("attention", 180, "each attention kernel agrees with fp64, forward and backward, causal and padded"),
    _probe("conv", 300, "convolutions agree with fp64, forward and backward, in each mode of finding a kernel"),
    _probe(
        "gradients",
        180,
        "gradients agree with difference quotients, and a network learns as on the CPU",
        module="learning.gradients",
    ),
    _probe("amp", 120, "mixed precision trains, and an overflow skips exactly its own step"),
    _probe("compile", 240, "a compiled model trains like an eager one", may_be_absent=True),
    _probe("allocator", 180, "batches of changing size neither overlap in memory nor fill it with holes"),
    _probe(
        "memory",
        240,
        "patterns over nearly all of the card's free memory keep every bit, and its bandwidth is a sound card's",
        module="memory.probe",
    ),
    _probe("rng", 120, "the same seed gives the same numbers, and a state can be gone back to"),
    _probe("thermal", FULL_LOAD + 90, "a minute of load: what clock, heat and power do, and that results stay right"),
    _probe("checkpoint", 120, "a training that was killed goes on from its checkpoint to the same bits"),
    _probe("p2p", 150, "copies from card to card keep every bit, both ways", cards=2, module="pair.p2p"),
    _probe("collectives", 300, "two ranks add, gather and broadcast correctly", cards=2, module="pair.collectives"),
    _probe(
        "two_gpu_step",
        300,
        "two ranks reduce gradients to their mean and step like one process (DDP)",
        cards=2,
        module="pair.ddp",
    ),
    _probe(
        "two_gpu_step_data_parallel",
        240,
        "DataParallel over two cards steps like one card",
        cards=2,
        module="pair.data_parallel",
        part_of="two_gpu_step",
    ),
    _probe(
        "two_gpu_step_fsdp2",
        300,
        "two ranks that share out every weight step like one process (FSDP2)",
        cards=2,
        module="pair.fsdp2",
        part_of="two_gpu_step",
        may_be_absent=True,
    ),
    _probe(
        "two_gpu_step_pipeline",
        300,
        "two ranks that hold half of the layers each step like one process",
        cards=2,
        module="pair.pipeline",
        part_of="two_gpu_step",
        may_be_absent=True,
    ),
)
