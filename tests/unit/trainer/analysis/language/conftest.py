"""A base model and an adapter of it."""

from __future__ import annotations

import json

import pytest
import torch

from tests.fixtures.decoders import RAWS, folder_of
from trainer.models.adapters import peft_format
from trainer.models.adapters.lora import LoraConfig, add_lora, lora_modules
from trainer.models.pretrained.folder import read


@pytest.fixture
def base(tmp_path):
    return folder_of(tmp_path / "base", RAWS["llama"])


@pytest.fixture
def adapter(tmp_path, base):
    model, config = read(base).model, LoraConfig(rank=2)
    add_lora(model, config, seed=0)
    with torch.no_grad():
        for _, module in lora_modules(model):
            module.lora_B.normal_(std=0.5, generator=torch.Generator().manual_seed(1))
    (tmp_path / "adapter").mkdir()
    for name, content in peft_format.files(model, config, family="llama", base=str(base)).items():
        (tmp_path / "adapter" / name).write_bytes(content)
    return tmp_path / "adapter"


@pytest.fixture
def rows(tmp_path):
    def write(*lines, name="rows.jsonl"):
        path = tmp_path / name
        path.write_text("\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines) + "\n")
        return path

    return write
