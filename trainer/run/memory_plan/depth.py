"""A deep network's footprint from two shallow ones: every block adds the same, within each segment of a step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trainer.models.pretrained.families import decoder_config
from trainer.run.memory_plan.live_memory import Peak
from trainer.run.memory_plan.program import DEPTH, Footprint, measured
from trainer.run.memory_plan.shapes import Program

FEW, MORE = 3, 6  # blocks of the shallow networks


def estimated(program: Program) -> Footprint:
    """Return the footprint of a step, extrapolated over the blocks where there are more than `MORE`, all alike.

    Raises:
        TrainerError: as `measured`.
    """
    name = next((each for each in DEPTH if each in program.raw), DEPTH[0])
    depth = int(program.raw.get(name, 0))
    if depth <= MORE or len(set(decoder_config(program.raw).windows)) > 1:
        return measured(program)
    few, more = (measured(replace(program, raw=_cut({**program.raw, name: blocks}, blocks))) for blocks in (FEW, MORE))

    return between(few, more, (depth - FEW) / (MORE - FEW))


def between(one: Footprint, other: Footprint, share: float) -> Footprint:
    """Return the footprint on the line through two, `share` of the way from one to the other, or beyond.

    Args:
        share: 0 at the first, 1 at the second.
    """

    def line(begin: float, end: float) -> float:
        return max(0.0, begin + (end - begin) * share)

    return Footprint(
        peaks={segment: _peak(one.peaks[segment], other.peaks[segment], line) for segment in one.peaks},
        flops=line(one.flops, other.flops),
        wide_flops=line(one.wide_flops, other.wide_flops),
        trained=round(line(one.trained, other.trained)),
        all=round(line(one.all, other.all)),
    )


def _cut(raw: dict[str, Any], blocks: int) -> dict[str, Any]:
    """Return config.json with what it lists for each layer cut to so many."""
    return {**raw, "layer_types": raw["layer_types"][:blocks]} if raw.get("layer_types") else raw


def _peak(few: Peak, more: Peak, line: Any) -> Peak:
    parts = {part: round(line(few.parts.get(part, 0), more.parts.get(part, 0))) for part in more.parts}
    return Peak(
        allocated=round(line(few.allocated, more.allocated)),
        reserved=round(line(few.reserved, more.reserved)),
        parts=parts,
    )
