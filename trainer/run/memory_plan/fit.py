"""Fit on a card: the largest micro-batch of a program, and the time of its step as a range."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from trainer.run.memory_plan.allocator import DoesNotFitError
from trainer.run.memory_plan.cards import GIB, Card
from trainer.run.memory_plan.depth import between, estimated
from trainer.run.memory_plan.program import Footprint, measured, settings_of
from trainer.run.memory_plan.shapes import Program
from trainer.tasks.language.network import build

LOSS_TOKENS = 4096  # from so many tokens on memory grows evenly with the rows: the loss's chunks are full
MOST_ROWS = 4096
# Of more tokens at a time a run of all blocks takes minutes (2,048 rows of 2,048, shape of 0.5B: 280 s on a busy CPU,
# 2026-11-28), and larger micro-batches are no faster: there only what is clearly within the budget counts as fitting.
MOST_EXACT = 2**18
TOKENS, LONGEST = 128, 2**17  # a longest row is given in multiples of the first, and up to the second
# What the allocator holds beyond tensors near a card's limit, where it gives unused segments back, as a share of them.
# The simulated allocator held 0 to 10 % more without a limit in the recorded configurations of benchmarks.plan_error.
REST = 1.06
# Where the estimate is nearer to the budget than this, a run of all blocks decides: an estimate is up to 5 % off, and
# the rest without a limit is below 25 % and a few segments.
BELOW, ABOVE, SEGMENTS = 0.95, 1.25, 64 * 2**20
# Shares of a card's peak that training reaches: an assumption, wide since no AMD card was measured. On an NVIDIA H200
# they were 0.23 (DPO) to 0.46, as derived: steps per second of 2026-11-22 (benchmarks/results/language_speed.json)
# times this plan's FLOPs of a step, by 989 TFLOPS; `python -m benchmarks.plan_error --record` writes `share_of_peak`.
SHARES = (0.15, 0.50)


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A program at `rows`, what it takes, and tokens a second at least and at most; None without a known peak."""

    program: Program
    footprint: Footprint
    need: int
    budget: int
    rate: tuple[float, float] | None

    @property
    def fits(self) -> bool:
        """Whether what is needed is within the budget."""
        return self.need <= self.budget

    def facts(self) -> dict[str, Any]:
        """Return the numbers as JSON holds them."""
        program = self.program
        names = ("adapter", "method", "precision", "rows", "sequence", "checkpointing", "optimizer", "shards")
        return {
            **{name: getattr(program, name) for name in names},
            "bytes": self.footprint.largest.allocated,
            "needed_bytes": self.need,
            "parts": self.footprint.largest.parts,
            "fits": self.fits,
            "tokens_per_second": None if self.rate is None else [round(each) for each in self.rate],
        }


def fit(program: Program, card: Card, *, cards: int = 1) -> Fit:
    """Return what the program takes on the card as it is: extrapolated over depth, near the budget exactly.

    Args:
        program: what is trained, with its rows.
        card: the card; each of several computes its own rows, with the whole model or a shard.
        cards: how many.
    """
    return _decided(_estimate(program, card, cards), card, cards)


def exact_fit(program: Program, card: Card, *, cards: int = 1) -> Fit:
    """Return the same from a run of all blocks, with the simulated allocator under the card's limit.

    Args:
        program: what is trained, with its rows.
        card: the card; each of several computes its own rows, with the whole model or a shard.
        cards: how many.
    """
    found = _fit(program, measured(program), card, cards)
    need = found.footprint.reserved
    if found.footprint.largest.allocated <= found.budget < need:
        if program.shards == 1:
            with contextlib.suppress(DoesNotFitError):
                need = measured(program, limit=found.budget).reserved
        else:  # no step has run sharded: what holds no more than the whole on one card takes no more than that
            whole = exact_fit(replace(program, shards=1), card)
            if found.footprint.largest.allocated <= whole.footprint.largest.allocated:
                need = min(need, whole.need)
    return replace(found, need=need)


def _estimate(program: Program, card: Card, cards: int) -> Fit:
    return _fit(program, estimated(program), card, cards)


def _fit(program: Program, footprint: Footprint, card: Card, cards: int) -> Fit:
    more = 4 * footprint.trained if cards > program.shards else 0  # the buckets in which ddp sums gradients
    return Fit(
        program=program,
        footprint=footprint,
        need=round(REST * footprint.largest.allocated),
        budget=card.budget - more,
        rate=_rate(program, footprint, card, cards),
    )


def largest_fit(program: Program, card: Card, *, cards: int = 1, most_rows: int = MOST_ROWS) -> Fit | None:
    """Return the largest power of two of rows that fits, None where one row does not.

    Where the weights alone do not fit nothing is run. Else two sizes are run, and a line is drawn through their
    footprints; below the smaller one it is a little too high. What it gives is run as it is where it is near the
    budget, and halved until it fits.

    Args:
        program: what is trained; its rows are not read.
        card: the card to plan for.
        cards: how many cards.
        most_rows: rows that are not passed; 0 gives None.
    """
    if most_rows < 1 or least_bytes(program) > card.budget:
        return None
    base = max(1, -(-LOSS_TOKENS // program.sequence))
    low, high = (_estimate(replace(program, rows=rows), card, cards) for rows in (base, 2 * base))
    each = max(1, (high.need - low.need) / base)
    most = int(base + (low.budget - low.need) / each)
    rows = 1 << max(1, min(most, most_rows)).bit_length() - 1
    while rows:
        each_row = between(low.footprint, high.footprint, (rows - base) / base)
        found = _fit(replace(program, rows=rows), each_row, card, cards)
        if found.program.tokens <= MOST_EXACT or not _is_near(found):
            found = _decided(found, card, cards)
            if found.fits:
                return found
        rows //= 2
    return None


def first_size(program: Program, card: Card, rows: int, *, cards: int = 1) -> Fit:
    """Return what a run of --micro-batch auto starts with, whether it fits or not.

    All rows of a step where they fit, else the largest power of two, or a single row, in pieces of a step.

    Args:
        program: what is trained; its rows are not read.
        card: the card to plan for.
        rows: of a step on a card.
        cards: how many cards.
    """
    whole = fit(replace(program, rows=rows), card, cards=cards)
    if whole.fits:
        return whole
    pieces = replace(program, pieces=2)
    found = largest_fit(pieces, card, cards=cards, most_rows=rows - 1)
    return found or exact_fit(replace(pieces, rows=1), card, cards=cards)


def least_bytes(program: Program) -> int:
    """Return what a card holds at least: all weights in fp32, where all are trained and none is sharded; 0 else."""
    if program.adapter != "none" or program.shards > 1:
        return 0
    with torch.device("meta"):
        model = build(program.raw, settings_of(program), program.method, seed=0, unset=True)
    return 4 * sum(weight.numel() for weight in model.parameters())


def longest_row(program: Program, card: Card, *, cards: int = 1) -> int:
    """Return the most tokens of a row, a multiple of TOKENS, with which one row fits; 0 where none does.

    By estimates of two lengths, a line through them, and where attention keeps the scores of all pairs of tokens of a
    third, for their square. Below the shortest of these it is a little too low.

    Args:
        program: what is trained; its rows and sequence are not read.
        card: the card to plan for.
        cards: how many cards.
    """
    most = most_tokens(program.raw)
    squares = program.packed or program.attention[0] == "math"
    shares = (1 / 4, 1 / 2, 1) if squares else (1 / 2, 1)
    largest = min(most, LOSS_TOKENS * (4 if squares else 2))
    lengths = sorted({max(1, round(largest * share)) for share in shares})
    found = [_estimate(replace(program, rows=1, sequence=length), card, cards) for length in lengths]
    reach = int(_root(lengths, [each.need - each.budget for each in found], most))
    while reach:
        whole = reach if reach == most else reach // TOKENS * TOKENS
        if whole and fit(replace(program, rows=1, sequence=whole), card, cards=cards).fits:
            return whole
        reach = max(0, whole - max(TOKENS, whole // 16))  # near the budget the whole network decides
    return 0


def _root(lengths: Sequence[int], over: Sequence[float], most: int) -> float:
    """Return where a line or parabola through points passes 0, within 0 to `most`.

    Args:
        lengths: places, rising.
        over: values there.
        most: largest place.
    """

    def value(at: float) -> float:
        total = 0.0
        for one, height in zip(lengths, over, strict=True):
            total += height * math.prod((at - other) / (one - other) for other in lengths if other != one)
        return total

    low, high = 0.0, float(most)
    if value(high) <= 0:
        return high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if value(middle) <= 0 else (low, middle)
    return low


def most_tokens(raw: Mapping[str, Any]) -> int:
    """Return the longest row that is planned: what the model's positions are made for, and LONGEST at most.

    Args:
        raw: content of config.json.
    """
    found = raw.get("max_position_embeddings") or raw.get("n_positions") or LONGEST
    return max(1, min(int(found), LONGEST))


def _decided(found: Fit, card: Card, cards: int) -> Fit:
    """Return an estimate that is far from the budget as it is, and for a near one the exact plan."""
    return exact_fit(found.program, card, cards=cards) if _is_near(found) else found


def _is_near(found: Fit) -> bool:
    """Return whether an estimate is so near to the budget that it does not decide."""
    size = found.footprint.largest.allocated
    return BELOW * size <= found.budget < ABOVE * size + SEGMENTS


def _rate(program: Program, footprint: Footprint, card: Card, cards: int) -> tuple[float, float] | None:
    peak, wide = card.flops(program.precision), card.flops("fp32")
    if not peak or not wide:
        return None
    ideal = footprint.flops / peak + footprint.wide_flops / wide
    low, high = (share * cards * program.tokens / ideal for share in SHARES)
    return low * (0.9 if cards > 1 else 1.0), high


def gib(size: float) -> str:
    """Return bytes as GiB."""
    return f"{size / GIB:,.1f}"
