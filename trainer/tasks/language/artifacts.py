"""The files of a finished run of a language model, next to those of the adapters' own format."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from trainer.data.tokens.partition import WindowRows
from trainer.data.tokens.tokenizer import Tokenizer
from trainer.models.pretrained import folder as pretrained


def generation_of(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return generation_config.json of a new model."""
    return {"eos_token_id": list(tokenizer.stops), "do_sample": True, "temperature": 0.8, "top_k": 50}


def folder_bytes(made: pretrained.Pretrained) -> dict[str, bytes]:
    """Return the files of a model folder by name."""
    with tempfile.TemporaryDirectory() as temporary:
        names = pretrained.write(Path(temporary), made)
        return {name: (Path(temporary) / name).read_bytes() for name in names}


def companions(folder: Path | None) -> dict[str, bytes]:
    """Return the base model's tokenizer files, so that an adapter's folder can be chatted with."""
    if folder is None:
        return {}
    paths = [folder / name for name in pretrained.COMPANIONS]
    return {path.name: path.read_bytes() for path in paths if path.is_file()}


def text_bytes(rows: WindowRows, tokenizer: Tokenizer) -> int:
    """Return how many bytes of text the labels of all rows stand for."""
    total = 0
    for number in range(len(rows)):
        ids = rows.window(number)[1:].tolist()
        total += len(tokenizer.decode(ids).encode())
    return max(total, 1)
