"""Adapters in peft's file format: adapter_config.json and adapter_model.safetensors, both ways."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor, nn

from trainer.models.adapters import peft_record
from trainer.models.adapters.lora import LoraConfig, insert, linear_modules, lora_modules
from trainer.models.adapters.peft_record import CONFIG, number
from trainer.models.pretrained.families import file_module
from trainer.models.pretrained.shards import require_finite
from trainer.runtime.errors import TrainerError

WEIGHTS = "adapter_model.safetensors"
PREFIX = "base_model.model."
# Layers that peft adapts and `lora` does not: its files hold embeddings, their heads or both.
EMBEDDING = re.compile(r"\.(embed_tokens|lm_head|wte)\.")


def files(model: nn.Module, config: LoraConfig, *, family: str, base: str) -> dict[str, bytes]:
    """Return an adapter's files by name. `base` is the name or folder of the base model, as a record.

    Args:
        model: model with adapters.
        family: name of the model family, such as "llama".
        base: name or folder of the base model, as a record.
    """
    modules = dict(lora_modules(model))
    weights = {}
    for name, module in modules.items():
        stored = PREFIX + file_module(family, name)
        weights[f"{stored}.lora_A.weight"] = module.lora_A.detach().cpu().contiguous()
        weights[f"{stored}.lora_B.weight"] = module.lora_B.detach().cpu().contiguous()
    record = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": config.rank,
        "lora_alpha": int(config.alpha) if config.alpha == int(config.alpha) else config.alpha,
        "lora_dropout": config.dropout,
        "use_rslora": config.rank_stabilized,
        "target_modules": _targets(model, list(modules), family),
        "fan_in_fan_out": family == "gpt2",
        "bias": "none",
        "inference_mode": True,
        "init_lora_weights": True,
        "modules_to_save": None,
    }
    text = json.dumps(record, indent=2, sort_keys=True) + "\n"
    return {CONFIG: text.encode(), WEIGHTS: save(weights, metadata={"format": "pt"})}


def _targets(model: nn.Module, adapted: list[str], family: str) -> list[str]:
    """Return last names where they identify the adapted layers, full names otherwise."""
    stored = [file_module(family, name) for name in adapted]
    bases = [name.removesuffix(".base") for name in linear_modules(model)]
    everything = [file_module(family, name) for name in bases]
    leaves = sorted({name.rsplit(".", 1)[-1] for name in stored})
    matching = [name for name in everything if name.rsplit(".", 1)[-1] in leaves]
    return leaves if sorted(matching) == sorted(stored) else sorted(stored)


def read(model: nn.Module, folder: Path, *, family: str) -> LoraConfig:
    """Put the folder's adapter on the model and return its configuration.

    Args:
        model: base model, changed in place.
        folder: folder of the adapter.
        family: name of the model family, such as "llama".

    Raises:
        TrainerError: RM712 for a folder that cannot be used, RM713 where the adapter does not fit.
    """
    record = peft_record.require_lora(folder)
    pairs = _pairs(_weights(folder), folder)
    config = LoraConfig(
        rank=int(number(record, "r", folder, least=1)),
        alpha=float(number(record, "lora_alpha", folder)),
        dropout=float(number({"lora_dropout": 0.0, **record}, "lora_dropout", folder, most=1)),
        rank_stabilized=bool(record.get("use_rslora", False)),
    )
    _require_whole(model, pairs, record, family, folder)
    _put(model, pairs, config, family, folder)
    return config


def _require_whole(
    model: nn.Module, pairs: Mapping[str, Mapping[str, Tensor]], record: Mapping[str, Any], family: str, folder: Path
) -> None:
    """Raise RM713 where weights are of another rank than their record's, or a layer that it names has none."""
    for name, pair in pairs.items():
        rank = peft_record.rank_of(record, name)
        if len(pair["A"]) != rank:
            what = f"{name} has rank {len(pair['A'])}, and {CONFIG} gives it {rank}"
            raise TrainerError("RM713", what=what, where=str(folder))
    named = [file_module(family, name) for name in linear_modules(model)]
    targeted = [name for name in named if peft_record.is_targeted(record, name)]
    missing = [name for name in targeted if name not in pairs]
    if missing or not pairs:
        first = f", first {missing[0]}" if missing else ""
        what = f"{WEIGHTS} lacks {len(missing)} of the {len(targeted)} layers that {CONFIG} names{first}"
        raise TrainerError("RM713", what=what, where=str(folder))


def tensor_names(folder: Path) -> set[str]:
    """Return the names of the tensors of an adapter's file.

    Raises:
        TrainerError: RM712 where it is missing or cannot be read.
    """
    path = folder / WEIGHTS
    if not path.is_file():
        next = "Load the adapter with peft and save it again with save_pretrained()."
        raise TrainerError("RM712", what=f"{WEIGHTS} is missing", where=str(folder), next=next)
    try:
        with safe_open(path, framework="pt") as file:
            return set(file.keys())
    except (SafetensorError, OSError, ValueError) as error:
        raise TrainerError("RM712", what=f"{WEIGHTS} cannot be read", where=str(path), why=str(error)) from None


def _weights(folder: Path) -> dict[str, Tensor]:
    path = folder / WEIGHTS
    tensor_names(folder)
    try:
        weights: dict[str, Tensor] = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise TrainerError("RM712", what=f"{WEIGHTS} cannot be read", where=str(path), why=str(error)) from None
    for name, value in weights.items():
        require_finite(value, name, path)
    return weights


def _pairs(weights: Mapping[str, Tensor], folder: Path) -> dict[str, dict[str, Tensor]]:
    """Return A and B of each module by its name in the files."""
    pairs: dict[str, dict[str, Tensor]] = {}
    for name, value in weights.items():
        match = re.fullmatch(re.escape(PREFIX) + r"(.+)\.lora_(A|B)(?:\.default)?\.weight", name)
        if match is None or not value.is_floating_point():
            what = f"tensor {name} ({value.dtype}) is no LoRA weight"
            raise TrainerError("RM712", what=what, where=str(folder / WEIGHTS))
        pairs.setdefault(match[1], {})[match[2]] = value
    for name, pair in pairs.items():
        if set(pair) != {"A", "B"}:
            raise TrainerError("RM712", what=f"{name} has only one of lora_A and lora_B", where=str(folder / WEIGHTS))
    return pairs


def _put(
    model: nn.Module, pairs: Mapping[str, Mapping[str, Tensor]], config: LoraConfig, family: str, folder: Path
) -> None:
    layers = {file_module(family, name): name for name in linear_modules(model)}
    ranks = {}
    for stored, pair in pairs.items():
        if stored not in layers:
            raise TrainerError("RM713", what=f"the model has no layer {stored}", where=str(folder))
        layer = linear_modules(model)[layers[stored]]
        given = (tuple(pair["A"].shape), tuple(pair["B"].shape))
        rank = pair["A"].shape[0] if pair["A"].ndim == 2 else 0
        if given != ((rank, layer.in_features), (layer.out_features, rank)):
            shape = f"{layer.out_features} by {layer.in_features}"
            what = f"{stored}: lora_A {list(given[0])} and lora_B {list(given[1])} do not fit a layer of {shape}"
            raise TrainerError("RM713", what=what, where=str(folder))
        ranks[layers[stored]] = rank
    insert(model, ranks, config)
    by_name = dict(lora_modules(model))
    with torch.no_grad():
        for stored, pair in pairs.items():
            module = by_name[layers[stored]]
            module.lora_A.copy_(pair["A"])
            module.lora_B.copy_(pair["B"])
