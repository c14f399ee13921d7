"""Log-probabilities of preferences under the reference, computed once: its weights are those of no adapter."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import torch

from trainer.data.tokens.partition import JudgedPartition, PairPartition
from trainer.device.memory import OutOfMemory
from trainer.tasks.task import Evaluation

Preferences = TypeVar("Preferences", PairPartition, JudgedPartition)


@torch.no_grad()
def with_reference(part: Preferences, evaluation: Evaluation) -> Preferences:
    """Return rows with the log-probabilities of their answers under the reference.

    Raises OutOfMemory where not even one row fits.

    Args:
        part: pairs, or groups of answers.
        evaluation: how they are computed; so many rows at a time, or fewer where memory runs out.
    """
    training = evaluation.forward.training
    evaluation.forward.eval()
    wide = torch.promote_types(evaluation.dtype, torch.float32)
    values = torch.zeros(part.tokens.shape[:-1], dtype=wide, device=evaluation.device)
    share = torch.arange(len(part))[evaluation.rank_slice(len(part))]
    rows = evaluation.rows
    while len(share):
        numbers = share[:rows]
        try:
            inputs, _ = part.rows(numbers, evaluation.device)
            with evaluation.autocast():
                values[numbers.to(values.device)] = evaluation.forward(**inputs, reference_alone=True)
        except OutOfMemory:
            if rows == 1:
                raise
            rows = -(-rows // 2)
            continue
        share = share[rows:]
    evaluation.forward.train(training)
    return replace(part, reference=evaluation.sum(values).cpu())
