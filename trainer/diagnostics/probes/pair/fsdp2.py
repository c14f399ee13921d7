"""Probe `two_gpu_step_fsdp2`: two ranks that share out every weight step like one process (FSDP2, `fully_shard`)."""

from __future__ import annotations

import sys

from trainer.diagnostics.probes import entry, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair.ranks import compare_steps
from trainer.diagnostics.probes.verdict import Verdict, absent

PROBE = "two_gpu_step_fsdp2"
RANK_MODULE = "trainer.diagnostics.probes.pair.ranks.fsdp2_rank"
SINCE = "2.6"  # torch.distributed.fsdp.fully_shard; before, it was under _composable and behaved otherwise


def measure(request: Request) -> Verdict:
    """Run two ranks, which compare their shards with one process's weights.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device = placement.place(request.expect)
    if reason := why_not():
        return absent(probe=PROBE, reason=reason, device=device, versions=placement.versions())
    return compare_steps.measure(PROBE, RANK_MODULE, request, "shared out every weight and stepped like one process")


def why_not() -> str:
    """Return why this torch has no FSDP2, in a sentence; empty if it has."""
    import torch

    try:
        from torch.distributed.fsdp import fully_shard  # noqa: F401
    except ImportError:
        return f"FSDP2 was not tried: torch {torch.__version__} has no fully_shard; {SINCE} and later have."
    return ""


if __name__ == "__main__":
    sys.exit(entry.main(PROBE, measure))
