"""adapter_config.json of peft: what of it is computed here, what goes through peft itself, and what is refused.

Options are those of peft 0.21. One that is not known here and is set may change the computation, so it is refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainer.runtime.errors import TrainerError

CONFIG = "adapter_config.json"
# Options of peft that change the computation and are not implemented, with the values that leave it unchanged.
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "use_dora": (False, None),
    "bias": ("none", None),
    "lora_bias": (False, None),
    "modules_to_save": (None, [], ()),
    "alpha_pattern": (None, {}),
    "layer_replication": (None,),
    "target_parameters": (None, [], ()),
    "trainable_token_indices": (None, [], {}),
    "alora_invocation_tokens": (None, []),
    "use_qalora": (False, None),
    "use_bdlora": (None, False),
    "corda_config": (None,),
    "arrow_config": (None,),
    "velora_config": (None,),
    "monteclora_config": (None,),
    "kasa_config": (None,),
}
# Options that are read, or that change nothing once the weights are there: which layers are adapted is in the weights.
READ = frozenset(
    (
        *("peft_type", "r", "lora_alpha", "lora_dropout", "use_rslora", "rank_pattern", "init_lora_weights"),
        *("target_modules", "exclude_modules", "layers_to_transform", "layers_pattern", "fan_in_fan_out"),
        *("task_type", "auto_mapping", "peft_version", "base_model_name_or_path", "revision", "inference_mode"),
        *("megatron_config", "megatron_core", "runtime_config", "qalora_group_size", "ensure_weight_tying"),
        *("loftq_config", "eva_config", "lora_ga_config"),
    )
)
# Options that peft computes and that are computed wrongly around it, with why and what to do.
LEFT_OUT = {
    "layer_replication": (
        "makes a model of other layers than the base has",
        "Write a model folder with the layers repeated, and train an adapter of that model.",
    ),
    "alora_invocation_tokens": (
        "has the adapter act from those tokens on, which losses and the cache of generation here do not follow",
        "Use it with peft itself, or train LoRA without them.",
    ),
}
# First weights of an adapter that are drawn, or that leave the base as it is; all others take a part out of the base.
BASE_KEPT = (True, False, None, "gaussian", "orthogonal", "eva")


def read(folder: Path) -> dict[str, Any]:
    """Return the content of a folder's adapter_config.json.

    Raises:
        TrainerError: RM712 where it is missing or no JSON object.
    """
    path = folder / CONFIG
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TrainerError("RM712", what=f"{CONFIG} is missing", where=str(folder)) from None
    except (OSError, ValueError, RecursionError) as error:
        raise TrainerError("RM712", what=f"{CONFIG} is not valid JSON", where=str(path), why=str(error)) from None
    if not isinstance(record, dict):
        raise TrainerError("RM712", what=f"{CONFIG} holds no JSON object", where=str(path))
    return record


def is_own(record: Mapping[str, Any]) -> bool:
    """Return whether an adapter is computed here: LoRA, with no option that only peft has."""
    unset = all(record.get(key) in values for key, values in NEUTRAL.items())
    return record.get("peft_type") == "LORA" and unset and not unknown(record)


def unknown(record: Mapping[str, Any]) -> list[str]:
    """Return the options that are set and not known here."""
    return sorted(key for key, value in record.items() if value and key not in READ and key not in NEUTRAL)


def require_lora(folder: Path) -> dict[str, Any]:
    """Return the record of a LoRA adapter that is computed here.

    Raises:
        TrainerError: RM712 for another method, or for an option that is not implemented.
    """
    record, path = read(folder), str(folder / CONFIG)
    if record.get("peft_type") != "LORA":
        raise TrainerError("RM712", what=f"peft_type is {record.get('peft_type')!r}; LORA is read", where=path)
    for key in [*(key for key, neutral in NEUTRAL.items() if record.get(key) not in neutral), *unknown(record)]:
        raise TrainerError("RM712", what=f"{key} = {record[key]!r} is not implemented", where=path)
    require_base_kept(record, path)
    return record


def require_base_kept(record: Mapping[str, Any], where: str) -> None:
    """Raise RM712 where the adapter's first weights were taken out of the base, as by PiSSA, OLoRA or LoftQ.

    Such an adapter belongs to what was left of the base, which its folder does not hold; and without the adapter the
    model is not the base. What `LEFT_OUT` names is refused, too. `where` is the file, for the message.
    """
    for key, (why, instead) in LEFT_OUT.items():
        if record.get(key):
            raise TrainerError("RM712", what=f"{key} = {record[key]!r} {why}", where=where, next=instead)
    given = record.get("init_lora_weights", True)
    if record.get("peft_type") != "LORA" or given in BASE_KEPT:
        return
    what = f"init_lora_weights = {given!r} changes the base model's weights"
    next = (
        "Save it as an adapter of the unchanged base: save_pretrained(…, path_initial_model_for_weight_conversion=…)."
    )
    raise TrainerError("RM712", what=what, where=where, next=next)


def number(record: Mapping[str, Any], key: str, folder: Path, *, least: float = 0, most: float = math.inf) -> Any:
    """Return a number of the record that is at least `least` and less than `most`.

    Args:
        record: content of adapter_config.json.
        key: name of the number.
        folder: of the adapter, for the message.
        least: smallest value.
        most: first value that is too large.

    Raises:
        TrainerError: RM712 for what is none.
    """
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < most:
        raise TrainerError("RM712", what=f"{key} = {value!r} is no valid number", where=str(folder / CONFIG))
    return value


def rank_of(record: Mapping[str, Any], module: str) -> int:
    """Return the rank that peft gives a module: that of the first pattern that its name matches, or `r`."""
    patterns = record.get("rank_pattern") or {}
    return int(next((rank for key, rank in patterns.items() if _matches(key, module)), record["r"]))


def is_targeted(record: Mapping[str, Any], module: str) -> bool:
    """Return whether peft adapts a module, as far as names say: False where layers are chosen by number, too."""
    targets, left_out = record.get("target_modules"), record.get("exclude_modules")
    if record.get("layers_to_transform") is not None or not targets or targets == "all-linear":
        return False
    return _named(targets, module) and not (left_out and _named(left_out, module))


def _named(targets: Any, module: str) -> bool:
    if isinstance(targets, str):
        return re.fullmatch(targets, module) is not None
    return any(module == each or module.endswith(f".{each}") for each in targets)


def _matches(pattern: str, module: str) -> bool:
    return re.match(rf"(.*\.)?({pattern})$", module) is not None
