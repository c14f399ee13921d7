"""Loss, perplexity and bits per byte of a model on a text."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import torch

from trainer.analysis.language.loading import Loaded
from trainer.data.tokens.corpus import in_memory
from trainer.models.language.model import LanguageModel
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import progress_line


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
        raise TrainerError("RM711", what=f"--sequence {sequence}, but the model has {limit} positions")
    if len(stream) < 2:
        raise TrainerError("RM714", what=f"{len(stream)} tokens", where=str(path))
    measured, total, count = LanguageModel(model).eval(), 0.0, 0
    with progress_line(sys.stderr, total=len(stream) - 1, desc="evaluate", unit=" tokens", leave=False) as line:
        for begin in range(0, len(stream) - 1, sequence):
            ids = torch.from_numpy(stream.window(begin, min(begin + sequence + 1, len(stream))))
            total += measured(ids[None, :-1], ids[None, 1:]).item()
            count += len(ids) - 1
            line.update(len(ids) - 1)
    loss = total / count
    bits = total / math.log(2) / stream.text_bytes
    return {"tokens": count, "loss": loss, "perplexity": math.exp(min(loss, 700.0)), "bits_per_byte": bits}
