"""Keys of torchtune's recipes: what each becomes here, or why nothing.

Keys and their meaning: pytorch/torchtune@HEAD of 2026-04-23, recipes/configs and the recipes that read them. Of several
rules for a key the first that matches is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FAMILIES = {
    "llama2",
    "llama3",
    "llama3_1",
    "llama3_2",
    "llama3_3",
    "mistral",
    "qwen2",
    "qwen2_5",
    "qwen3",
    "gemma",
    "code_llama2",
}
# Computed by transformers' own class: the converted recipe needs that package where it is run.
BY_OWN_CLASS = {"gemma2", "phi3", "phi4"}
ATTENTION = {"q_proj": "q_proj", "k_proj": "k_proj", "v_proj": "v_proj", "output_proj": "o_proj"}
FEED_FORWARD = ("gate_proj", "up_proj", "down_proj")
# Phi-3 and Phi-4 have one layer for query, key and value, and one for gate and up, in files of Hugging Face layout.
JOINED = dict.fromkeys(("q_proj", "k_proj", "v_proj"), "qkv_proj") | dict.fromkeys(
    ("gate_proj", "up_proj"), "gate_up_proj"
)
JOINS = {"phi3", "phi4"}
PRECISIONS = {"bf16": "bf16", "fp16": "fp16", "fp32": "fp32"}
LOSSES = {"LinearCrossEntropyLoss", "CEWithChunkedOutputLoss", "CrossEntropyLoss"}
# torchtune's own where a recipe has none; the trainer's differ.
DEFAULTS = {"dataset.packed": False, "dataset.train_on_input": True, "model.lora_rank": 8, "model.lora_alpha": 16}
HELD_OUT = "a share of the rows is held out: --validation-share"
ALPACA = ("alpaca_dataset", "alpaca_cleaned_dataset")  # whose prompts carry loss unless the recipe states otherwise
# Keys that only recipes of other kinds of training have.
OTHER_TRAINING = {
    "teacher_model": "distillation from a teacher",
    "policy_model": "reinforcement learning (PPO)",
    "ref_policy_checkpointer": "reinforcement learning",
    "reward_functions": "reinforcement learning (GRPO)",
    "grpo_samples": "reinforcement learning (GRPO)",
    "orchestration": "reinforcement learning (GRPO)",
    "ref_checkpointer": "DPO of all weights against a second model; here the reference is the model's base",
}


@dataclass(frozen=True, kw_only=True)
class Became:
    """Conversion of a key: settings by name, and a note; without settings the trainer does the same anyway."""

    settings: Mapping[str, Any]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Left:
    """A key that was not converted, and why."""

    why: str


Rule = Callable[[Any, Mapping[str, Any]], Became | Left]


def setting(name: str, note: str = "") -> Rule:
    """Return the rule of a key that is a setting under another name; null is left to the trainer's default."""

    def rule(value: Any, recipe: Mapping[str, Any]) -> Became | Left:
        return Became(settings={name: value}, note=note) if value is not None else Became(settings={}, note="none set")

    return rule


def left(why: str) -> Rule:
    """Return the rule of a key that nothing here corresponds to."""
    return lambda value, recipe: Left(why=why)


def only(value: Any, note: str, why: str) -> Rule:
    """Return the rule of a key of which the trainer does one value anyway, and no other.

    Args:
        value: what the trainer does.
        note: how it is done.
        why: reason for which other values are left out.
    """
    return lambda given, recipe: Became(settings={}, note=note) if given == value else Left(why=why)


def last_name(value: Any) -> str:
    """Return the last part of a dotted name."""
    return str(value).rpartition(".")[2]


def relied_on(recipe: Mapping[str, Any], *, adapter: bool) -> dict[str, Any]:
    """Return the defaults of torchtune, by key, that a recipe relies on and the trainer's differ from.

    Args:
        recipe: values by dotted key.
        adapter: whether an adapter is trained.
    """
    alpaca = last_name(recipe.get("dataset._component_")) in ALPACA
    matters = {"model": adapter, "dataset.train_on_input": alpaca}
    found = {key: value for key, value in DEFAULTS.items() if recipe.get(key) is None}
    return {key: value for key, value in found.items() if matters.get(key, matters.get(key.partition(".")[0], True))}


def _family_and_builder(value: Any) -> tuple[str, str]:
    """Return the two last parts of torchtune.models.FAMILY.BUILDER."""
    parts = str(value).split(".")
    return (parts[-2], parts[-1]) if len(parts) > 1 else ("", parts[-1])


def _family(recipe: Mapping[str, Any]) -> str:
    return _family_and_builder(recipe.get("model._component_"))[0]


def _model(value: Any, recipe: Mapping[str, Any]) -> Became | Left:
    family, builder = _family_and_builder(value)
    if family not in FAMILIES | BY_OWN_CLASS or "vision" in builder or "classifier" in builder:
        return Left(why=f"no network of the kind {value} is built in")
    quantised = builder.startswith("qlora") or recipe.get("model.quantize_base") is True
    adapter = "qlora" if quantised else "lora" if builder.startswith("lora") else "none"
    note = "sizes are those of the model folder's config.json"
    if family in BY_OWN_CLASS:
        note += "; computed by transformers' own class, which has to be installed"
    return Became(settings={"adapter": adapter}, note=note)


def _adapted(layers: Sequence[str], recipe: Mapping[str, Any]) -> Became:
    """Return the layers of an adapter by the names that the model folder has for them."""
    if _family(recipe) not in JOINS:
        return Became(settings={"lora_targets": list(layers)})
    joined = list(dict.fromkeys(JOINED.get(each, each) for each in layers))
    note = "one adapter for query, key and value together, and one for gate and up, as the folder has their layers"
    return Became(settings={"lora_targets": joined}, note=note)


def _attention(value: Any, recipe: Mapping[str, Any]) -> Became | Left:
    unknown = [each for each in value if each not in ATTENTION] if isinstance(value, list) else [value]
    if unknown:
        return Left(why=f"no layer is called {unknown[0]}")
    targets = [ATTENTION[each] for each in value]
    targets += FEED_FORWARD if recipe.get("model.apply_lora_to_mlp") is True else ()
    return _adapted(targets, recipe) if targets else Left(why="an adapter of no layer")


def _feed_forward(value: Any, recipe: Mapping[str, Any]) -> Became | Left:
    attention = recipe.get("model.lora_attn_modules")
    if value is True and not isinstance(attention, list):
        return _adapted(FEED_FORWARD, recipe)
    return Became(settings={}, note="counted in lora_targets")


def _packed(value: Any, recipe: Mapping[str, Any]) -> Became | Left:
    if value is True and _family(recipe) in BY_OWN_CLASS:
        return Left(why="rows of a network that transformers' own class computes are not packed")
    return setting("packing")(value, recipe)


def _loss(value: Any, recipe: Mapping[str, Any]) -> Became | Left:
    if last_name(value) == "DPOLoss":
        return Became(settings={"method": "dpo"})
    if last_name(value) in LOSSES:
        return Became(settings={}, note="the trainer's loss is chunked")
    return Left(why="the trainer has cross entropy and DPO")


def _optimizer(value: Any, recipe: Mapping[str, Any]) -> Became | Left:
    if last_name(value) in ("AdamW8bit", "PagedAdamW8bit"):
        return Became(settings={"optimizer": "adamw8bit"}, note="the trainer's own, in plain torch; nothing is paged")
    if last_name(value) != "AdamW":
        return Left(why="the trainer has AdamW, 8-bit AdamW and Muon, and takes AdamW in place of this")
    if "optimizer.weight_decay" in recipe:
        return Became(settings={}, note="AdamW is the trainer's")
    return Became(settings={"weight_decay": 0.01}, note="AdamW is the trainer's; 0.01 is torch's default")


def _schedule(value: Any, recipe: Mapping[str, Any]) -> Became | Left:
    if "cosine" in last_name(value):
        return Became(settings={"schedule": "cosine"})
    return Left(why="the trainer has constant, cosine, linear, wsd and inverse-sqrt; constant is taken")


def _batch(value: Any, recipe: Mapping[str, Any]) -> Became | Left:
    pieces = int(recipe.get("gradient_accumulation_steps") or 1)
    note = "of all ranks together here, of each rank there: on several, multiply it by their number"
    return Became(settings={"batch_size": int(value) * pieces, "micro_batch": int(value)}, note=note)


def _epochs(value: Any, recipe: Mapping[str, Any]) -> Became | Left:
    if recipe.get("max_steps_per_epoch") is not None:
        return Became(settings={}, note="counted in max_steps")
    return Became(settings={"epochs": value})


def _steps(value: Any, recipe: Mapping[str, Any]) -> Became | Left:
    if value is None:
        return Became(settings={}, note="none set")
    return Became(settings={"max_steps": int(value) * int(recipe.get("epochs") or 1)}, note="times epochs")


def _length(value: Any, recipe: Mapping[str, Any]) -> Became | Left:
    if value is None:
        return Left(why="null is no limit; rows here have a length: give --sequence")
    return Became(settings={"sequence": value})


def _seed(value: Any, recipe: Mapping[str, Any]) -> Became | Left:
    return Left(why="null draws one at each start; here it is 0") if value is None else Became(settings={"seed": value})


def _checkpointing(value: Any, recipe: Mapping[str, Any]) -> Became | Left:
    selective = value is True and recipe.get("ac_mode") == "selective"
    return Became(settings={"activation_checkpointing": "selective" if selective else "full" if value else "off"})


def _precision(value: Any, recipe: Mapping[str, Any]) -> Became | Left:
    if value not in PRECISIONS:
        return Left(why="no such number format")
    note = "" if value == "fp32" else "trained weights are held in fp32 here, and in 16 bits there"
    return Became(settings={"precision": PRECISIONS[value]}, note=note)


def _compile(value: Any, recipe: Mapping[str, Any]) -> Became | Left:
    return Became(settings={"compile": "auto" if value is True else "off"}, note="blocks are compiled by --fast auto")


def _data(value: Any, recipe: Mapping[str, Any]) -> Became | Left:
    if isinstance(value, str) and "://" not in value:
        return Became(settings={"data": value})
    return Left(why="rows come from one local file: give --data")


def _split(value: Any, recipe: Mapping[str, Any]) -> Became | Left:
    """Return the share that is held out, where the rows of training and validation are the parts of one file."""
    percent = re.fullmatch(r"train\[:(\d{1,2})%\]", str(value))
    if percent is None or recipe.get("dataset_val.split") != f"train[{percent[1]}%:]":
        return Left(why=HELD_OUT)
    note = "drawn from all rows by the seed, where there they are the last"
    return Became(settings={"validation_share": (100 - int(percent[1])) / 100}, note=note)


RULES: dict[str, Rule] = {
    "model._component_": _model,
    "model.lora_rank": setting("lora_rank"),
    "model.lora_alpha": setting("lora_alpha"),
    "model.lora_dropout": setting("lora_dropout"),
    "model.lora_attn_modules": _attention,
    "model.apply_lora_to_mlp": _feed_forward,
    "model.apply_lora_to_output": only(False, "the head has no adapter", "the head has no adapter here"),
    "model.use_dora": only(False, "no DoRA", "plain LoRA is trained; DoRA is --adapter peft with a --peft-config"),
    "model": left("sizes are those of the model folder's config.json"),
    "model.quantize_base": lambda value, recipe: Became(settings={}, note="counted in adapter"),
    "tokenizer.max_seq_len": _length,
    "tokenizer": left("the tokenizer is the model folder's"),
    "checkpointer._component_": only(
        "torchtune.training.FullModelHFCheckpointer",
        "a folder in Hugging Face layout",
        "models are read in Hugging Face layout alone: convert this one, or give such a folder as --model",
    ),
    "checkpointer.checkpoint_dir": setting("model"),
    "checkpointer": left("a run's own files are written and kept as --checkpoint-every and --keep state"),
    "checkpointer.checkpoint_files": left("all shards that the folder's index names are read"),
    "checkpointer.recipe_checkpoint": only(None, "no run is resumed", "another program's state is not resumed"),
    "checkpointer.adapter_checkpoint": only(None, "no run is resumed", "another program's state is not resumed"),
    "checkpointer.output_dir": left("a place of one run: --output and --run"),
    "checkpointer.model_type": left("config.json names the family"),
    "resume_from_checkpoint": only(False, "no run is resumed", "give --resume with a run of the trainer's"),
    "dataset.packed": _packed,
    "dataset.split": _split,
    "dataset.train_on_input": setting("train_on_prompts"),
    "dataset.data_files": _data,
    "dataset": left("data sets of a hub are not fetched: give --data, a local text or JSONL file"),
    "dataset_val": left(HELD_OUT),
    "seed": _seed,
    "shuffle": only(True, "rows are always shuffled", "rows are always shuffled here"),
    "epochs": _epochs,
    "max_steps_per_epoch": _steps,
    "batch_size": _batch,
    "gradient_accumulation_steps": lambda value, recipe: Became(settings={}, note="counted in batch_size"),
    "optimizer._component_": _optimizer,
    "optimizer.lr": setting("learning_rate"),
    "optimizer.weight_decay": setting("weight_decay"),
    "optimizer.fused": left("the trainer chooses"),
    "optimizer_in_bwd": only(False, "the optimizer steps after backward", "the optimizer steps after backward here"),
    "lr_scheduler._component_": _schedule,
    "lr_scheduler.num_warmup_steps": setting("warmup_steps"),
    "loss._component_": _loss,
    "loss.beta": setting("dpo_beta"),
    "loss.label_smoothing": only(0, "no smoothing", "labels are not smoothed here"),
    "device": left("chosen where it runs: --device"),
    "dtype": _precision,
    "enable_activation_checkpointing": _checkpointing,
    "ac_mode": lambda value, recipe: Became(settings={}, note="counted in activation_checkpointing"),
    "ac_option": left("selective keeps products and attention"),
    "enable_activation_offloading": only(False, "nothing is offloaded", "activations are not offloaded here"),
    "compile": _compile,
    "clip_grad_norm": setting("clip_norm"),
    "custom_sharded_layers": left("sharding is --parallel fsdp2, which wraps blocks"),
    "fsdp": left("sharding is --parallel fsdp2"),
    "tensor_parallel_plan": left("single layers are not split over cards"),
    "tensor_parallel_dim": left("single layers are not split over cards"),
    "batch_size_val": left("as many rows at a time as in training"),
    "fsdp_cpu_offload": only(False, "nothing is offloaded", "states are not offloaded to the host here"),
    "save_adapter_weights_only": only(True, "the adapter alone is written", "the adapter alone is written; see merge"),
    "run_val_every_n_steps": setting("eval_every"),
    "quantizer": left("quantisation-aware training is not built in"),
    "output_dir": left("a place of one run: --output and --run"),
    "metric_logger": left("metrics are in metrics.jsonl; --track for a tracker"),
    "log_": left("the trainer's own telemetry"),
    "profiler": left("the trainer has no profiler of this kind"),
}


def rule_of(key: str) -> Rule:
    """Return the rule of a key: its own, its section's, or that there is none."""
    parts = key.split(".")
    for count in range(len(parts), 0, -1):
        if rule := RULES.get(".".join(parts[:count])):
            return rule
    if key.startswith("log_"):
        return RULES["log_"]
    return left("the trainer has no setting of this kind")
