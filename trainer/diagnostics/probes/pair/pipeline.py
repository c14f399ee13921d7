"""Probe `two_gpu_step_pipeline`: two ranks that hold half of the layers each step like one process.

Rows flow through in micro-batches, by torch.distributed.pipelining.
"""

from __future__ import annotations

import inspect
import sys

from trainer.diagnostics.probes import entry, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair.ranks import cause_search, compare_steps
from trainer.diagnostics.probes.verdict import Verdict, absent
from trainer.distributed.transports.transport import GLOO

PROBE = "two_gpu_step_pipeline"
RANK_MODULE = "trainer.diagnostics.probes.pair.ranks.pipeline_rank"
# Not gloo alone: its send and receive take a tensor's address for one of host memory (torch's ProcessGroupGloo.cpp).
TRANSPORTS = tuple(transport for transport in cause_search.TRANSPORTS if transport != GLOO)
SINCE = "2.5"  # a stage whose shapes are inferred while it runs


def measure(request: Request) -> Verdict:
    """Run two ranks, each of which compares its half with that of one process.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device = placement.place(request.expect)
    if reason := why_not():
        return absent(probe=PROBE, reason=reason, device=device, versions=placement.versions())
    did = "split the layers and stepped like one process"
    return compare_steps.measure(PROBE, RANK_MODULE, request, did, TRANSPORTS)


def why_not() -> str:
    """Return why this torch has no pipeline that the probe can use, in a sentence; empty if it has."""
    import torch

    try:
        from torch.distributed.pipelining import PipelineStage

        inspect.signature(PipelineStage).bind(None, 0, 2, "cpu")  # without example inputs
    except (ImportError, TypeError):
        return f"The pipeline was not tried: torch {torch.__version__} infers no shapes in it; {SINCE} and later do."
    return ""


if __name__ == "__main__":
    sys.exit(entry.main(PROBE, measure))
