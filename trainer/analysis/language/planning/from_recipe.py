"""A request of a plan from a recipe of `train`: what a run of the recipe would do is what is planned."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trainer.analysis.language.planning.request import METHODS, PlanRequest, peft_content
from trainer.config.choices import LM, PLANNED
from trainer.config.recipe import find, resolve
from trainer.config.sections.decoder import DecoderConfig
from trainer.config.sections.tokens import TokensConfig
from trainer.config.train import TrainConfig
from trainer.data.tokens.tokenizer import ByteTokenizer
from trainer.run.memory_plan.start_size import step_settings
from trainer.runtime.errors import TrainerError
from trainer.tasks.language.network import new_config, planned_adapter

# First line of the recipes that come with the trainer: number of cards, card, shape of the model.
PLANNED_FOR = re.compile(r"# planned for: (\d+) x (.+), (\S+)\s*")
SAME = (
    "sequence",
    "micro_batch",
    "activation_checkpointing",
    "lora_rank",
    "fast",
    "optimizer",
    "parallel",
    "peft_config",
)
PRECISIONS = ("auto", "fp32", "bf16", "fp16")


def requested(recipe: str | None = None, **options: Any) -> PlanRequest:
    """Return the request of the command's options, by name. Raises TrainerError as `from_recipe`."""
    return PlanRequest(**options) if recipe is None else from_recipe(recipe, options)


def from_recipe(recipe: str, options: Mapping[str, Any]) -> PlanRequest:
    """Return the request of a recipe, in which options of `plan` that were given stand before the recipe's settings.

    Args:
        recipe: a file, or the name of one that comes with the trainer.
        options: those that were given, by name.

    Raises:
        TrainerError: RM500 for a recipe of other tasks or without a card, RM502 to RM505, and those of `PlanRequest`.
    """
    config = resolve({"recipe": recipe, **typed(options)})
    data, decoder = config.data, config.model
    if not isinstance(data, TokensConfig) or not isinstance(decoder, DecoderConfig):
        what = f"--recipe {recipe} trains no language model (task: {LM})"
        raise TrainerError(
            "RM500", what=what, next="Give a recipe with task: lm below data; other networks have no plan."
        )
    first = find(recipe).read_text(encoding="utf-8").partition("\n")[0]
    assumed = PLANNED_FOR.fullmatch(first)
    gpu = options.get("gpu") or (assumed and assumed[2])
    model = options.get("model") or (str(decoder.model) if decoder.model else None) or (assumed and assumed[3])
    cards = options.get("cards") or ranks_of(config)
    require_planned(config, adapted=decoder.adapter.adapter != "none", model=model)
    own = ("memory_gib", "experimental_attention", "longest", "task")
    packed = options.get("rows", "packed" if data.packing and data.method == "sft" else "text")
    return PlanRequest(
        model=model,
        raw=None if model else new_config(decoder, data.sequence, ByteTokenizer()),
        gpu=gpu,
        sequence=data.sequence,
        micro_batch=config.compute.micro_batch,
        precision=config.compute.precision,
        activation_checkpointing=config.compute.activation_checkpointing,
        lora_rank=decoder.adapter.lora_rank,
        rows=packed,
        cards=cards,
        parallel=config.distributed.parallel,
        fast=decoder.fast,
        optimizer=config.optimizer.optimizer,
        peft_config=decoder.adapter.peft_config,
        step=step_of(config, data, decoder),
        step_rows=-(-batch_of(config) // cards),
        notes=notes(recipe, config, data, options=options, assumed=assumed and assumed[0].removeprefix("# ")),
        **{name: options[name] for name in own if name in options},
    )


def typed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of `plan` as the settings of `train` that they are."""
    found = {name: options[name] for name in SAME if name in options}
    found |= {"ranks": options["cards"]} if "cards" in options else {}
    found |= {"precision": options["precision"]} if "precision" in options else {}
    if "peft_config" in options:
        found["adapter"] = "peft"
    if method := options.get("method"):
        chosen = METHODS[method]
        if method in ("dpo", "kto"):
            return found | {"method": method}
        return found | {"adapter": chosen["adapter"]}
    return found


def step_of(config: TrainConfig, data: TokensConfig, decoder: DecoderConfig) -> dict[str, Any]:
    """Return the fields of `Program` that a recipe decides and an option of `plan` does not.

    Args:
        config: of the run; data, decoder: its sections.
    """
    settings = step_settings(config)
    found = planned_adapter(decoder) | {name: settings[name] for name in ("clip_norm", "best")}
    found |= {"method": "pretrain" if data.method == "auto" else data.method, "group": data.kto_group}
    if decoder.adapter.adapter == "peft":
        found["peft"] = peft_content(decoder.adapter.peft_config, steps=config.loop.max_steps)
    return found


def batch_of(config: TrainConfig) -> int:
    """Return the rows of the largest optimizer step over all cards."""
    return max(config.loop.batch_size, *(rows for _, rows in config.loop.batch_schedule.changes), 1)


def ranks_of(config: TrainConfig) -> int:
    """Return how many cards a recipe asks for; `auto`, which a run measures, is one."""
    return config.distributed.ranks if isinstance(config.distributed.ranks, int) else 1


def require_planned(config: TrainConfig, *, adapted: bool, model: str | None) -> None:
    """Raise RM500 for settings that no plan is made of.

    Args:
        config: of the run.
        adapted: whether an adapter is trained.
        model: base model, None for a new decoder.
    """
    if config.compute.precision not in PRECISIONS:
        what = f"train.precision {config.compute.precision}: a plan is made for {', '.join(PRECISIONS)}"
        raise TrainerError("RM500", what=what, next="Give one of these as --precision.")
    if config.distributed.parallel not in PLANNED:
        what = f"ranks.parallel {config.distributed.parallel}: a plan counts {' and '.join(PLANNED)}"
        raise TrainerError("RM500", what=what, next="Give --parallel ddp to plan the whole model on each card.")
    if adapted and model is None:
        what = "the recipe has an adapter and no language.model: the base of an adapter has to be there"
        raise TrainerError("RM500", what=what, next="Give --model: a folder, a config.json, or a shape.")


def notes(
    recipe: str, config: TrainConfig, data: TokensConfig, *, options: Mapping[str, Any], assumed: str | None
) -> tuple[str, ...]:
    """Return what was taken from where, and what of the recipe is not counted.

    Args:
        recipe: as it was named.
        config: of the run.
        data: its section of rows.
        options: options of `plan` that were given.
        assumed: the recipe's first line, where it names card and model.
    """
    found = [f"recipe  {recipe}, with the defaults of train where it has no setting"]
    if assumed and not ("gpu" in options and "model" in options):
        found.append(f"        its first line: {assumed}; --gpu and --model plan another card and model")
    if data.method == "auto" and "rows" not in options:
        found.append("        language.method auto is by the data, planned as a text; --rows packed for conversations")
    if config.distributed.ranks == "auto" and "cards" not in options:
        found.append("        ranks.ranks auto is measured by a run, planned as 1; give --cards")
    uncounted = {"model.compile": config.compute.compile == "on", "train.step": config.compute.step == "graph"}
    found += [f"        not counted: {name}" for name, given in uncounted.items() if given]
    if config.compute.micro_batch is None:
        found.append("        micro_batch auto: planned as a run starts, see `train --micro-batch auto`")
    return tuple(found)
