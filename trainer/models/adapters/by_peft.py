"""Adapters by the package peft itself, for methods that are not built in: DoRA, prompt tuning, IA3 and others.

The network is then computed by transformers' class, see `pretrained.own_class`. AdaLoRA is left out: which ranks it
keeps is decided from numbers that no checkpoint has, so that a resumed run would not be the same one.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from trainer.models.adapters import peft_record
from trainer.models.pretrained.own_class import OwnClassDecoder
from trainer.runtime.errors import TrainerError

REFUSED = {"ADALORA": "AdaLoRA decides on ranks from numbers that no checkpoint has"}


def read_config(path: Path) -> dict[str, Any]:
    """Return the content of an adapter_config.json.

    Raises:
        TrainerError: RM712 where it cannot be read, or is of a method that is left out.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise TrainerError("RM712", what=f"{path.name} cannot be read", where=str(path), why=str(error)) from None
    kind = str(content.get("peft_type")).upper() if isinstance(content, dict) else "None"
    if not isinstance(content, dict) or "peft_type" not in content:
        raise TrainerError("RM712", what=f"{path.name} names no peft_type", where=str(path))
    if kind in REFUSED:
        raise TrainerError("RM712", what=f"peft_type {kind} is not trained here", where=str(path), why=REFUSED[kind])
    peft_record.require_base_kept({**content, "peft_type": kind}, str(path))
    return content


def is_by_peft(folder: Path) -> bool:
    """Return whether an adapter's folder is of a method that is not built in."""
    return not peft_record.is_own(peft_record.read(folder))


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
            decoder.causal = peft.get_peft_model(decoder.causal, made)
        except (ValueError, TypeError, KeyError, AttributeError, NotImplementedError) as error:
            what = f"peft does not take the configuration: {type(error).__name__}: {error}"[:300]
            raise TrainerError("RM712", what=what) from None
    decoder.look_at_head()


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
    try:
        decoder.causal = peft.PeftModel.from_pretrained(decoder.causal, str(folder), local_files_only=True)
    except Exception as error:  # its methods raise anything for a value that they do not expect
        raise TrainerError("RM712", what=f"peft does not read it: {error}"[:300], where=str(folder)) from None
    decoder.look_at_head()


def merge(decoder: OwnClassDecoder) -> None:
    """Write the adapter into the weights.

    Args:
        decoder: changed in place.

    Raises:
        TrainerError: RM712 for a method that adds something else than weights.
    """
    if decoder.has_prompt or not hasattr(decoder.causal, "merge_and_unload"):
        raise TrainerError("RM712", what="learned tokens are no part of the weights, and cannot be merged")
    decoder.causal = decoder.causal.merge_and_unload()


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
    decoder.causal.save_pretrained(str(folder), save_embedding_layers=False)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix != ".md"}


def _peft() -> Any:
    try:
        import peft
    except ImportError:
        raise TrainerError("RM716", what="--adapter peft needs the package peft, which is not installed") from None
    return peft
