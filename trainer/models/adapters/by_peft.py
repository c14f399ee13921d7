"""Adapters by the package peft itself, for methods that are not built in: DoRA, AdaLoRA, prompt tuning and others.

The network is then computed by transformers' class, see `pretrained.own_class`.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trainer.models.adapters import adalora, peft_format, peft_record
from trainer.models.pretrained.own_class import OwnClassDecoder
from trainer.runtime.errors import TrainerError


def read_config(path: Path) -> dict[str, Any]:
    """Return the content of an adapter_config.json.

    Raises:
        TrainerError: RM712 where it cannot be read, or changes the base model.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise TrainerError("RM712", what=f"{path.name} cannot be read", where=str(path), why=str(error)) from None
    kind = str(content.get("peft_type")).upper() if isinstance(content, dict) else "None"
    if not isinstance(content, dict) or "peft_type" not in content:
        raise TrainerError("RM712", what=f"{path.name} names no peft_type", where=str(path))
    peft_record.require_base_kept({**content, "peft_type": kind}, str(path))
    return content


def is_by_peft(folder: Path) -> bool:
    """Return whether an adapter's folder is of a method that is not built in, or of LoRA on an embedding or head."""
    if not peft_record.is_own(peft_record.read(folder)):
        return True
    named = peft_format.tensor_names(folder) if (folder / peft_format.WEIGHTS).is_file() else set()
    return any(peft_format.EMBEDDING.search(name) for name in named)


def _require_known(config: Mapping[str, Any], where: str) -> None:
    """Raise RM712 for an option that is set and that peft, as installed, would pass over with a warning."""
    kind = str(config.get("peft_type")).upper()
    made = _peft().mapping.PEFT_TYPE_TO_CONFIG_MAPPING.get(kind)
    if made is None:
        raise TrainerError("RM712", what=f"peft {_peft().__version__} has no peft_type {kind}", where=where)
    known = {each.name for each in dataclasses.fields(made)}
    unknown = sorted(key for key, value in config.items() if value and key not in known)
    if unknown:
        what = f"{unknown[0]} = {config[unknown[0]]!r}: peft {_peft().__version__} has no such option of {kind}"
        raise TrainerError("RM712", what=what, where=where)


def wrapped(decoder: OwnClassDecoder, config: Mapping[str, Any], *, seed: int) -> None:
    """Put an adapter on the model, its first weights drawn from `seed`; all else is frozen.

    Args:
        decoder: changed in place.
        config: content of an adapter_config.json.
        seed: of the first weights.

    Raises:
        TrainerError: RM716 without the package, RM712 for a configuration that it does not take.
    """
    peft = _peft()
    _require_known(config, "--peft-config")
    known = {key: value for key, value in config.items() if key not in ("inference_mode", "base_model_name_or_path")}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            made = peft.get_peft_config({"task_type": "CAUSAL_LM", **known})
            before = _changed_in_place(decoder, known)
            decoder.causal = peft.get_peft_model(decoder.causal, made)
        except (ValueError, TypeError, KeyError, AttributeError, RuntimeError) as error:
            raise _not_made(decoder, config, error) from None
    if adalora.is_adalora(config):
        decoder.budget = adalora.RankBudget(decoder.causal.base_model)
    _keep_base(decoder, before)
    decoder.look_at_head()


def _not_made(decoder: OwnClassDecoder, config: Mapping[str, Any], error: Exception) -> TrainerError:
    """Return the error of an adapter that peft does not make, also where it reads weights that are not there yet."""
    if next(decoder.parameters()).is_meta and isinstance(error, RuntimeError) and "meta" in str(error).lower():
        what = f"peft makes {config.get('peft_type')} from values of the weights, which come later"
        why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        next_ = "Take another method, such as LORA with use_dora, LOKR or OFT."
        return TrainerError("RM712", what=what, where="--peft-config", why=why, next=next_)
    return TrainerError("RM712", what=f"peft does not take the configuration: {type(error).__name__}: {error}"[:300])


def load(decoder: OwnClassDecoder, folder: Path) -> None:
    """Put the adapter of a folder on the model.

    Args:
        decoder: changed in place.
        folder: of the adapter.

    Raises:
        TrainerError: RM716 without the package, RM712 for a folder that it does not take.
    """
    peft, path = _peft(), str(folder / peft_record.CONFIG)
    record = peft_record.read(folder)
    _require_known(record, path)
    peft_record.require_base_kept(record, path)
    stored = peft_format.tensor_names(folder)
    before = _changed_in_place(decoder, record, stored)
    try:
        decoder.causal = peft.PeftModel.from_pretrained(decoder.causal, str(folder), local_files_only=True)
    except Exception as error:  # its methods raise anything for a value that they do not expect
        what = f"peft does not read it: {type(error).__name__}: {' '.join(str(error).split())}"[:300]
        raise TrainerError("RM712", what=what, where=str(folder)) from None
    _require_all_read(decoder, stored, folder)
    _keep_base(decoder, before)
    decoder.look_at_head()


def _require_all_read(decoder: OwnClassDecoder, stored: set[str], folder: Path) -> None:
    """Raise RM713 where a tensor of the file was passed over, or a part of the adapter kept its first weights.

    peft only warns of the second, and does not report the first.
    """
    state = _peft().get_peft_model_state_dict
    own = state(decoder.causal, save_embedding_layers=False)
    found = {value.data_ptr() for name, value in own.items() if name in stored}
    missing = sorted(name for name, value in own.items() if name not in stored and value.data_ptr() not in found)
    extra = sorted(stored - set(own) - set(state(decoder.causal, save_embedding_layers=True)))
    if missing or extra:
        lacking = f"lacks {len(missing)} of the adapter's tensors, first {missing[0]}" if missing else ""
        unused = f"has tensors that no part of the model takes: {len(extra)}, first {extra[0]}" if extra else ""
        what = f"{peft_format.WEIGHTS} {' and '.join(filter(None, (lacking, unused)))}"
        next = "Give the base and the adapter_config.json that the adapter was trained with, or save it again by peft."
        raise TrainerError("RM713", what=what, where=str(folder), next=next)


def _changed_in_place(
    decoder: OwnClassDecoder, record: Mapping[str, Any], stored: Collection[str] = ()
) -> list[tuple[nn.Parameter, Tensor]]:
    """Return weights of the base that an adapter changes where they are, each with its value.

    These are biases where `bias` asks for them, and embeddings that the adapter's file brings along. peft's
    `disable_adapter` leaves them changed.
    """
    biases = record.get("bias") not in (None, False, "none")
    embeddings = any(re.search(r"\.(embed_tokens|lm_head|wte)\.(base_layer\.)?weight$", name) for name in stored)
    both = (decoder.causal.get_input_embeddings(), decoder.causal.get_output_embeddings()) if embeddings else ()
    weights = {id(module.weight): module.weight for module in both if module is not None}
    named = decoder.causal.named_parameters() if biases else ()
    weights |= {id(value): value for name, value in named if name.endswith("bias")}
    return [(weight, weight.detach().clone()) for weight in weights.values()]


def _keep_base(decoder: OwnClassDecoder, before: list[tuple[nn.Parameter, Tensor]]) -> None:
    """Have `adapters_disabled` put the base's values back. Names are kept, as parameters may be replaced later."""
    names = {id(value): name for name, value in decoder.named_parameters()}
    decoder.base_values = {names[id(weight)]: value for weight, value in before if id(weight) in names}


def merge(decoder: OwnClassDecoder) -> None:
    """Write the adapter into the weights.

    Args:
        decoder: changed in place.

    Raises:
        TrainerError: RM712 for a method that adds something else than weights.
    """
    if decoder.has_prompt or not hasattr(decoder.causal, "merge_and_unload"):
        what = "learned tokens are no part of the weights, and cannot be merged"
        next = "Use the adapter with its base: `generate` and `chat` take --model ADAPTER."
        raise TrainerError("RM712", what=what, next=next)
    _untie(decoder)
    decoder.causal = decoder.causal.merge_and_unload()


def _untie(decoder: OwnClassDecoder) -> None:
    """Give the head a weight of its own where LoRA is on it or on the embedding that it shares its weight with.

    What is merged into the one would change the other too.
    """
    given, head = decoder.base.get_input_embeddings(), decoder.base.get_output_embeddings()
    inner = getattr(head, "base_layer", head)
    shared = inner is not None and inner.weight is getattr(given, "base_layer", given).weight
    if shared and any(hasattr(module, "lora_A") for module in (given, head)):
        inner.weight = nn.Parameter(inner.weight.detach().clone(), requires_grad=False)
        decoder.base.config.tie_word_embeddings = False


def is_wrapped(model: nn.Module) -> bool:
    """Return whether a decoder has an adapter by peft."""
    return isinstance(model, OwnClassDecoder) and hasattr(model.causal, "get_base_model")


def files(decoder: OwnClassDecoder, folder: Path, *, base: str) -> dict[str, bytes]:
    """Return an adapter's files by name, as peft writes them.

    Args:
        decoder: with its adapter, on the host.
        folder: empty, for peft to write to.
        base: folder of the base model, as a record.
    """
    for config in decoder.causal.peft_config.values():
        config.base_model_name_or_path = base
        if decoder.budget is not None:  # what is kept may be the weights of an earlier step, with its ranks
            config.rank_pattern = decoder.budget.pattern()
    decoder.causal.save_pretrained(str(folder), save_embedding_layers=False)
    written = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix != ".md"}
    return written | {peft_record.CONFIG: _in_order(written[peft_record.CONFIG])}


def _in_order(config: bytes) -> bytes:
    """Return adapter_config.json with names of layers in order: peft holds them as sets, which each process orders."""
    record = json.loads(config)
    for name in ("target_modules", "exclude_modules", "modules_to_save"):
        if isinstance(record.get(name), list):
            record[name].sort()
    return (json.dumps(record, indent=2, sort_keys=True) + "\n").encode()


def _peft() -> Any:
    try:
        import peft
    except ImportError:
        raise TrainerError("RM716", what="--adapter peft needs the package peft, which is not installed") from None
    return peft
