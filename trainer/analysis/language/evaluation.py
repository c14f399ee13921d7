"""Loss, perplexity and bits per byte of a model on a text."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trainer.analysis.language.loading import Loaded
from trainer.data.tokens.corpus import TokenStream, in_memory
from trainer.models.language.model import LanguageModel
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import progress_line

TOGETHER = 4096  # tokens


@torch.no_grad()
def evaluate(loaded: Loaded, path: Path, *, sequence: int) -> dict[str, Any]:
    """Return the figures of a text in windows of `sequence` tokens; each token but the first is predicted once.

    Args:
        path: text file.
        sequence: tokens of a window.

    Raises:
        TrainerError: RM714 for a text of fewer than two tokens, RM711 for windows beyond learned positions.
    """
    model, stream = loaded.made.model, in_memory(path, loaded.tokenizer)
    limit = model.config.positions
    if limit is not None and sequence > limit:
        next = f"Give --sequence {limit} or less."
        raise TrainerError("RM711", what=f"--sequence {sequence}, but the model has {limit} positions", next=next)
    if len(stream) < 2:
        raise TrainerError("RM714", what=f"{len(stream)} tokens", where=str(path))
    measured, total, count = LanguageModel(model).eval(), 0.0, 0
    with progress_line(sys.stderr, total=len(stream) - 1, desc="evaluate", unit=" tokens", leave=False) as line:
        for tokens, labels in batches(stream, sequence):
            total += measured(tokens, labels).item()
            count += labels.numel()
            line.update(labels.numel())
    loss = total / count
    bits = total / math.log(2) / stream.text_bytes
    return {"tokens": count, "loss": loss, "perplexity": math.exp(min(loss, 700.0)), "bits_per_byte": bits}


def batches(stream: TokenStream, sequence: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield tokens and their labels, (rows, tokens) each: windows of `sequence` tokens, the shorter last one alone.

    Several windows are computed together: one of a small model leaves most of a processor's time to its overhead.

    Args:
        stream: tokens of the text.
        sequence: tokens of a window.
    """
    end = len(stream) - 1
    begin, most = 0, max(1, TOGETHER // sequence)
    while begin < end:
        rows = max(1, min(most, (end - begin) // sequence))
        length = min(rows * sequence, end - begin)
        ids = torch.from_numpy(stream.window(begin, begin + length + 1))
        yield ids[:-1].view(rows, -1), ids[1:].view(rows, -1)
        begin += length
