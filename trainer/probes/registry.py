"""Which probes there are: a name, the module to run, a time limit and what it proves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One probe. `timeout_seconds` is generous: the first use of a card loads kernels from disk."""

    name: str
    module: str
    summary: str
    timeout_seconds: float


PROBES: tuple[Probe, ...] = (
    Probe(
        name="device",
        module="trainer.probes.device",
        summary="the cards are there, have memory, and return what was sent to them",
        timeout_seconds=90,
    ),
    Probe(
        name="blas",
        module="trainer.probes.blas",
        summary="matrix products agree with fp64, through torch's back ends and through the C interface",
        timeout_seconds=180,
    ),
    Probe(
        name="amp",
        module="trainer.probes.amp",
        summary="mixed precision trains, and an overflow skips exactly its own step",
        timeout_seconds=120,
    ),
    Probe(
        name="two_gpu_step",
        module="trainer.probes.two_gpu_step",
        summary="two ranks reduce gradients to their mean and step like one process on the joined batch",
        timeout_seconds=180,
    ),
)
