"""Merge an adapter into its base model, and check that the logits stay the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trainer.analysis.language.loading import TEMPLATE, Loaded
from trainer.models.adapters import by_peft
from trainer.models.adapters.lora import merge
from trainer.models.pretrained import folder as pretrained
from trainer.runtime.errors import TrainerError
from trainer.storage.output_file import whole

CHECKED_TOKENS = 64
# Relative to the largest logit: weights are rounded once to the base's dtype, and so differ by half a last place.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}


def merge_to(loaded: Loaded, output: Path) -> dict[str, Any]:
    """Write the merged model to the folder `output`, and return how far its logits are from the adapter's.

    Raises:
        TrainerError: RM500 where there is no adapter or the folder exists, RM718 where the logits differ.
    """
    if not loaded.adapted:
        raise TrainerError("RM500", what="--model is no adapter, so there is nothing to merge")
    if output.exists():
        raise TrainerError("RM500", what=f"--output {output} exists", next="Give a folder that does not exist.")
    model = loaded.made.model
    before = _logits(loaded)
    (by_peft.merge if by_peft.is_wrapped(model) else merge)(model)
    after = _logits(loaded)
    dtype = next(model.parameters()).dtype
    difference = ((after - before).abs().max() / before.abs().max()).item()
    if not difference <= TOLERANCE[dtype]:
        what = f"logits differ by {difference:.2g} of the largest, {TOLERANCE[dtype]:.2g} is allowed for {dtype}"
        raise TrainerError("RM718", what=what)
    with whole(output) as partial:
        files = _write(loaded, partial)
    return {"folder": str(output), "files": files, "largest_difference": difference, "tokens": CHECKED_TOKENS}


def _write(loaded: Loaded, folder: Path) -> list[str]:
    """Write the model's folder and return the names of its files."""
    files = pretrained.write(folder, loaded.made)
    if loaded.template is not None and Path(loaded.template.source).parent != loaded.made.source:  # the adapter's own
        (folder / TEMPLATE).write_text(loaded.template.text, encoding="utf-8")
        files += [TEMPLATE] if TEMPLATE not in files else []
    return files


@torch.no_grad()
def _logits(loaded: Loaded) -> Tensor:
    model = loaded.made.model
    generator = torch.Generator().manual_seed(0)
    most = min(CHECKED_TOKENS, model.config.positions or CHECKED_TOKENS)
    tokens = torch.randint(model.config.vocabulary, (1, most), generator=generator)
    logits: Tensor = model(tokens)
    return logits.double()
