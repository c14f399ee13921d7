"""A request of a plan, and the programs that it asks for."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainer.config.choices import PLANNED
from trainer.models.adapters import adalora, by_peft
from trainer.models.pretrained.families import decoder_config
from trainer.run.memory_plan.cards import Card, card_of
from trainer.run.memory_plan.shapes import Program, config_of
from trainer.runtime.errors import TrainerError
from trainer.tasks.language.network import require_positions

METHODS = {
    "full": {"adapter": "none", "method": "pretrain"},
    "lora": {"adapter": "lora", "method": "pretrain"},
    "qlora": {"adapter": "qlora", "method": "pretrain"},
    "dpo": {"adapter": "lora", "method": "dpo"},
    "kto": {"adapter": "lora", "method": "kto"},
    "peft": {"adapter": "peft", "method": "pretrain"},
}
PREFERENCES = ("dpo", "kto")
TABLE = ("full", "lora", "qlora")
CHECKPOINTING = ("off", "full")
MOST_TOKENS = 2**25  # of a micro-batch
STEPS = 10_000  # of a run whose length is not known; AdaLoRA's memory does not depend on it


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """Request of a plan, by the names of the options.

    model: name of a shape, a model folder, or a config.json. gpu: card's name, such as "RX 7900 XTX" or "MI50 32 GB".
    method: a key of METHODS; None for all of TABLE. micro_batch: rows at a time; None for the largest that fit.
    activation_checkpointing: None for off and full. rows: text, or packed for rows of conversations, whose attention
    has a mask. cards: each computes its own rows of a batch, with the whole model (parallel ddp) or a shard (fsdp2).
    memory_gib: of a card, where it differs from the table's. longest: give the longest row that fits, too.
    experimental_attention: whether TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1 is set. peft_config: of a method by peft.

    Of a recipe, see `from_recipe`: raw: config.json of a new decoder, in place of `model`; step: fields of `Program`
    that the recipe decides, adapter and method among them; step_rows: rows of an optimizer step on a card; notes:
    sentences on what was taken from where.
    """

    model: str | None = None
    gpu: str | None = None
    method: str | None = None
    sequence: int = 1024
    micro_batch: int | None = None
    precision: str = "auto"
    activation_checkpointing: str | None = None
    lora_rank: int = 16
    rows: str = "text"
    cards: int = 1
    parallel: str = "ddp"
    memory_gib: float | None = None
    experimental_attention: bool = False
    fast: str = "auto"
    optimizer: str = "adamw"
    task: str = "lm"
    longest: bool = False
    peft_config: Path | None = None
    raw: Mapping[str, Any] | None = None
    step: Mapping[str, Any] = field(default_factory=dict)
    step_rows: int | None = None
    notes: tuple[str, ...] = ()

    def card(self) -> Card:
        """Return the card. Raises TrainerError RM500 without one, RM738."""
        if self.gpu is None:
            raise TrainerError("RM500", what="--gpu is missing", next='Name the card, such as --gpu "RX 7900 XTX".')
        return card_of(self.gpu, self.memory_gib)

    @property
    def name(self) -> str:
        """What the model is called."""
        return self.model or "a new decoder"

    def programs(self, card: Card) -> list[Program]:
        """Return what is asked for on a card.

        Raises:
            TrainerError: RM500, RM563, RM712, RM716, RM736, and those of `config_of`.
        """
        if (self.micro_batch or 1) * self.sequence > MOST_TOKENS:
            what = f"--micro-batch {self.micro_batch} of --sequence {self.sequence}: more than {MOST_TOKENS:,} tokens"
            raise TrainerError("RM500", what=what, next="No card of the table holds so many at a time; give fewer.")
        require_adapters(self.kinds(), self.parallel)
        raw = self.config()
        require_positions(decoder_config(raw).positions, self.sequence)
        precision = card.precision if self.precision == "auto" else self.precision
        program = Program(
            raw=raw,
            precision=precision,
            sequence=self.sequence,
            rank=self.lora_rank,
            attention=card.attention(flag=self.experimental_attention, precision=precision),
            packed=self.rows == "packed",
            fast=self.fast != "off",
            optimizer=self.optimizer,
            compiler=card.compiler,
        )
        choices = [self.activation_checkpointing] if self.activation_checkpointing else list(CHECKPOINTING)
        program = sharded(program, self.cards) if self.parallel == "fsdp2" else program
        return [replace(program, checkpointing=each, **kind) for kind in self.kinds() for each in choices]

    def config(self) -> Mapping[str, Any]:
        """Return config.json's content. Raises TrainerError as `config_of`, and RM500 without a model."""
        if self.raw is not None:
            return self.raw
        if self.model is None:
            what = "--model is missing"
            raise TrainerError("RM500", what=what, next="Give a folder, a config.json, a shape, or a --recipe.")
        return config_of(self.model)

    def kinds(self) -> list[dict[str, Any]]:
        """Return the fields of `Program` that differ between methods."""
        if self.step:
            return [dict(self.step)]
        if self.peft_config is None and self.method != "peft":
            return [METHODS[kind] for kind in ([self.method] if self.method else TABLE)]
        if self.method in ("full", "lora", "qlora"):
            what = f"--method {self.method} with --peft-config, which is a method itself"
            raise TrainerError("RM500", what=what, next="Leave --method out, or give --method dpo or kto.")
        own = METHODS["peft"] | ({"method": self.method} if self.method in PREFERENCES else {})
        return [own | {"peft": peft_content(self.peft_config, steps=None)}]


def peft_content(path: Path | None, *, steps: int | None) -> dict[str, Any]:
    """Return the content of an adapter_config.json as a run of so many steps has it, None for one of unknown length.

    Raises:
        TrainerError: RM500 without a path, RM712 for a file that cannot be used, RM716 without the packages.
    """
    if path is None:
        next = (
            'Give --peft-config FILE, such as {"peft_type": "LORA", "use_dora": true, "target_modules": "all-linear"}.'
        )
        raise TrainerError("RM500", what="a method of peft without --peft-config: which one it is", next=next)
    content = by_peft.read_config(path)
    require_packages()
    if not adalora.is_adalora(content):
        return content
    ends = [content.get(name) for name in ("tinit", "tfinal")]
    known = steps or content.get("total_step") or STEPS + sum(each for each in ends if isinstance(each, int))
    return adalora.scheduled(content, known)


def require_packages() -> None:
    """Raise RM716 where peft, or transformers, whose class computes the network then, is not installed."""
    missing = [name for name in ("peft", "transformers") if importlib.util.find_spec(name) is None]
    if missing:
        what = f"a method by peft is planned from peft's own modules; not installed: {' and '.join(missing)}"
        next = f"Install natively: .venv/bin/python -m pip install {' '.join(missing)}; or plan --method lora without."
        raise TrainerError("RM716", what=what, next=next)


def require_adapters(kinds: list[dict[str, Any]], parallel: str) -> None:
    """Raise RM500 or RM563 for adapters that `train` refuses with a method, or among shards.

    Args:
        kinds: see `PlanRequest.kinds`.
        parallel: value of --parallel.
    """
    if parallel not in PLANNED:
        what = f"--parallel {parallel}: a plan counts {' and '.join(PLANNED)}"
        raise TrainerError("RM500", what=what, next="Give --parallel ddp to plan the whole model on each card.")
    for kind in kinds:
        if kind["method"] in PREFERENCES and kind["adapter"] == "none":
            what = f"--method {kind['method']} without an adapter: the reference is the model with its adapter off"
            raise TrainerError("RM500", what=what, next="Give a recipe with --adapter lora or qlora.")
        if parallel == "fsdp2" and kind.get("peft") and adalora.is_adalora(kind["peft"]):
            what = "AdaLoRA decides from whole gradients, and with fsdp2 each rank holds a part"
            raise TrainerError("RM563", what=what, next="Use --parallel ddp.")


def sharded(program: Program, cards: int) -> Program:
    """Return the program as the ranks of `train --parallel fsdp2` run it: blocks are then plain torch."""
    return replace(program, shards=cards, fast=False) if cards > 1 else program


def name_of(program: Program) -> str:
    """Return a program's method: what is trained, for preferences with theirs."""
    content = program.peft or {}
    own = "dora" if content.get("use_dora") else str(content.get("peft_type", "peft")).lower()
    kind = {"none": "full", "peft": own}.get(program.adapter, program.adapter)
    if program.method not in PREFERENCES:
        return kind
    return program.method if kind == "lora" and program.peft is None else f"{program.method} {kind}"
