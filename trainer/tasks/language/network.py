"""The network that the settings describe: new or from a folder, quantised and adapted where asked."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trainer.config.sections.decoder import AdapterConfig, DecoderConfig
from trainer.data.tokens.tokenizer import Tokenizer
from trainer.models.adapters import adalora, by_peft
from trainer.models.adapters.lora import LoraConfig, LoraLinear, add_lora, linear_modules
from trainer.models.adapters.nf4 import NF4Linear, quantize_linear_layers
from trainer.models.decoder.model import Decoder
from trainer.models.decoder.skip_init import SkipInit
from trainer.models.language.model import JudgedModel, LanguageModel, PreferenceModel
from trainer.models.pretrained import folder as pretrained
from trainer.models.pretrained import own_class
from trainer.models.pretrained.families import decoder_config
from trainer.runtime.errors import TrainerError

HEAD_WIDTH = 32
MOST_WORKERS = 16  # threads that quantise: each holds a few megabytes


def new_config(config: DecoderConfig, sequence: int, tokenizer: Tokenizer) -> dict[str, Any]:
    """Return config.json of a new decoder: Llama's structure, tied embeddings, a vocabulary of full tiles.

    Args:
        sequence: tokens of a row.
    """
    width = config.decoder_width
    if width % HEAD_WIDTH:
        raise TrainerError("RM500", what=f"--decoder-width {width} is no multiple of {HEAD_WIDTH}")
    return {
        "model_type": "llama",
        "vocab_size": -(-tokenizer.size // 64) * 64,
        "hidden_size": width,
        "intermediate_size": -(-width * 8 // 3 // 64) * 64,
        "num_hidden_layers": config.decoder_layers,
        "num_attention_heads": width // HEAD_WIDTH,
        "num_key_value_heads": width // HEAD_WIDTH,
        "hidden_act": "silu",
        "max_position_embeddings": sequence,
        "rms_norm_eps": 1e-5,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "tie_word_embeddings": True,
        "initializer_range": 0.02,
        "bos_token_id": None,
        "eos_token_id": list(tokenizer.stops),
        "pad_token_id": None,
    }


def pretrained_vocabulary(raw: Mapping[str, Any], tokenizer: Tokenizer) -> None:
    """See that every token, and what ends a text, has an embedding. Raises TrainerError RM704."""
    of_text = raw.get("text_config")  # of a model of pictures or sound as well
    most = int(raw.get("vocab_size") or (of_text.get("vocab_size") if isinstance(of_text, dict) else None) or 0)
    if tokenizer.size > most:
        what = f"the tokenizer has {tokenizer.size} tokens, the model's embedding {most}"
        raise TrainerError("RM704", what=what)
    if beyond := [stop for stop in tokenizer.stops if stop >= most]:
        what = f"eos_token_id {beyond[0]} is beyond the {most} tokens of the model's embedding"
        next = "Correct eos_token_id in generation_config.json and config.json."
        raise TrainerError("RM704", what=what, next=next)


def lora_of(config: AdapterConfig) -> LoraConfig:
    """Return the adapter that the settings describe."""
    return LoraConfig(
        rank=config.lora_rank,
        alpha=config.lora_alpha,
        dropout=config.lora_dropout,
        targets=config.lora_targets,
        rank_stabilized=config.lora_stabilized,
    )


def planned_adapter(config: DecoderConfig) -> dict[str, Any]:
    """Return the fields of `run.memory_plan.shapes.Program` that an adapter's settings decide."""
    own = config.adapter
    names = {"adapter": own.adapter, "rank": own.lora_rank, "targets": list(own.lora_targets)}
    return {**names, "dropout": own.lora_dropout}


def build(
    raw: Mapping[str, Any],
    config: DecoderConfig,
    method: str,
    *,
    seed: int,
    unset: bool | None = None,
    peft: Mapping[str, Any] | None = None,
    longest: int = 0,
) -> nn.Module:
    """Return the model with fresh weights from torch's generator, or with unset ones, and its adapter's.

    Args:
        raw: content of the model's config.json.
        method: pretrain, sft, dpo or kto.
        seed: seed of an adapter's weights.
        unset: leave the base's weights unset; None for where a folder is given, whose weights are then loaded.
        peft: of --adapter peft, see `peft_config_of`.
        longest: tokens of the longest document.

    Raises:
        TrainerError: RM500 where that is beyond the model's table of positions.
    """
    unset = config.model is not None if unset is None else unset
    by_class = by_own_class(raw, config)
    decoder: Any = own_class.made(raw) if by_class else _decoder(raw, unset=unset)
    require_positions(decoder.config.positions, longest)
    if peft is not None:
        by_peft.wrapped(decoder, peft, seed=seed)
    if config.adapter.adapter == "qlora":
        quantize_linear_layers(decoder, list(linear_modules(decoder)), empty=unset)
    if config.adapter.adapter in ("lora", "qlora"):
        add_lora(decoder, lora_of(config.adapter), seed=seed)
    model = _with_loss(decoder, config, method)
    return adalora.with_penalty(model) if peft is not None and adalora.is_adalora(peft) else model


def require_positions(table: int | None, longest: int) -> None:
    """Raise RM500 for a document that is longer than the model's table of learned positions, None without one."""
    if table is not None and longest > table:
        what = f"a row of {longest:,} tokens, and the model has learned {table:,} positions"
        raise TrainerError("RM500", what=what, next=f"Give --sequence {table}; --too-long decides on longer rows.")


def _with_loss(decoder: Any, config: DecoderConfig, method: str) -> nn.Module:
    if method == "dpo":
        return PreferenceModel(decoder, beta=config.dpo_beta)
    if method == "kto":
        return JudgedModel(decoder, beta=config.dpo_beta, weights=(config.kto_good_weight, config.kto_bad_weight))
    return LanguageModel(decoder, drop_ignored=method == "sft")


def by_own_class(raw: Mapping[str, Any], config: DecoderConfig) -> bool:
    """Return whether transformers' class computes the network: no family of ours, or an adapter by peft.

    Args:
        raw: content of the model's config.json.
        config: settings of the network.
    """
    return own_class.is_own_class(raw) or config.adapter.adapter == "peft"


def peft_config_of(config: DecoderConfig, *, steps: int) -> dict[str, Any]:
    """Return what --peft-config names, for a run of so many steps.

    Raises:
        TrainerError: RM500 where it is not given, RM712 for a file that cannot be used.
    """
    if config.adapter.peft_config is None:
        what = "--adapter peft without --peft-config: which method it is"
        next = 'Give a file such as {"peft_type": "LORA", "use_dora": true, "r": 16, "target_modules": "all-linear"}.'
        raise TrainerError("RM500", what=what, next=next)
    content = by_peft.read_config(config.adapter.peft_config)
    return adalora.scheduled(content, steps) if adalora.is_adalora(content) else content


def load_for_peft(model: nn.Module, device: str = "cpu", *, folder: Path, peft: Mapping[str, Any], seed: int) -> None:
    """Have the model be the folder's with its adapter made anew: first weights of some, as DoRA's, are the base's.

    Args:
        model: network, changed in place.
        device: not used: nothing is quantised.
        folder: of the base model.
        peft: see `peft_config_of`.
        seed: of the adapter's first weights.

    Raises:
        TrainerError: RM700 to RM703, RM712.
    """
    decoder: Any = model.decoder
    frozen = next(weight for weight in decoder.parameters() if not weight.requires_grad)
    source = own_class.read(folder, pretrained.read_config(folder), frozen.dtype)
    by_peft.wrapped(source, peft, seed=seed)
    decoder.causal, decoder.plain_head, decoder.budget = source.causal, source.plain_head, source.budget


def _decoder(raw: Mapping[str, Any], *, unset: bool) -> Decoder:
    with SkipInit() if unset else contextlib.nullcontext():
        decoder = Decoder(decoder_config(raw))
    if not unset:
        decoder.initialize()
    return decoder


def load_weights(model: nn.Module, device: str = "cpu", *, folder: Path) -> None:
    """Put a folder's weights into the model on the host; an adapted layer's go to its base, quantised where that is.

    As many layers at a time as there are processors, each by one thread: no sum is shared, so the bits do not depend
    on how many.

    Args:
        model: network, changed in place.
        device: where weights are quantised: a card takes seconds for what a host takes a minute for.
        folder: of the base model.

    Raises:
        TrainerError: RM700 to RM703.
    """
    decoder: Any = model.decoder
    source = pretrained.read(folder).model
    decoder.plain_head = source.plain_head
    weights = source.state_dict()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(max_workers=min(MOST_WORKERS, len(os.sched_getaffinity(0)))) as pool:
            list(pool.map(partial(_put, decoder, torch.device(device)), weights, weights.values()))
    finally:
        torch.set_num_threads(threads)


@torch.no_grad()
def _put(decoder: nn.Module, device: torch.device, name: str, value: Tensor) -> None:
    module_name, _, kind = name.rpartition(".")
    module = decoder.get_submodule(module_name)
    base = module.base if isinstance(module, LoraLinear) else module
    if isinstance(base, NF4Linear) and kind == "weight":
        base.load(value, device)
    else:
        getattr(base, kind).copy_(value)
