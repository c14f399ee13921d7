"""Checks and probes that must have passed before a proof or a suite shows something.

The trainer counts a probe whose subject is absent neither way, and a suite passes with a single one that ran. Of these
none can lack its subject in a cell's image, so a suite without them is one that did not look. So is a proof of an
older program, which had fewer checks; a first size alone has nothing to be compared with.
"""

from __future__ import annotations

from collections.abc import Sequence

from rocmatrix.evidence.record import Record

PASSED = ("pass", "passed")
ON_ANY_DEVICE = (
    "device", "blas", "convert", "transfer", "attention", "conv", "gradients", "amp", "allocator", "rng", "checkpoint",
)  # fmt: skip
ON_A_CARD = (*ON_ANY_DEVICE, "memory")
OF_A_PROOF = (
    "labels", "settings", "device code", "packages", "hygiene", "files", "trainer", "system", "byte code",
)  # fmt: skip


def why_not(record: Record) -> str | None:
    """Return why a proof or a whole suite that passed shows nothing, None where it does and for other runs."""
    if record.kind == "prove":
        unlooked = lacking(record, OF_A_PROOF)
        return f"its proof has no pass of {', '.join(unlooked)}" if unlooked else None
    if record.kind != "smoke" or not record.whole:
        return None
    absent = lacking(record, ON_ANY_DEVICE if record.hardware.device == "cpu" else ON_A_CARD)
    return f"its suite has no pass of {', '.join(absent)}" if absent else None


def lacking(record: Record, probes: Sequence[str]) -> tuple[str, ...]:
    """Return those of `probes` that did not pass in a run.

    Args:
        probes: names of probes.
    """
    passed = {verdict.probe for verdict in record.verdicts if verdict.status in PASSED}
    return tuple(probe for probe in probes if probe not in passed)
