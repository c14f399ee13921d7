"""The command line of evaluate, generate, chat, merge, gguf, show-data and plan; imports nothing heavy."""

from __future__ import annotations

from argparse import SUPPRESS
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainer.config.choices import BAD_RECORDS, LM, METHODS, OPTIMIZERS, PLANNED, RECOMPUTE, STOP_TOKEN, TOO_LONG
from trainer.config.parsing import number, one_of, switch, whole, zero_or_more
from trainer.config.sections.decoder import MOST_RANK
from trainer.config.sections.tokens import MOST_SEQUENCE

_FOLDER = "folder in Hugging Face layout, or of an adapter"
_MODEL: dict[str, tuple[Callable[[str], Any], str, bool]] = {
    "model": (Path, _FOLDER, True),
    "base": (Path, "an adapter's base model (default: the folder that the adapter names)", False),
}
_SAMPLING: dict[str, tuple[Callable[[str], Any], str, bool]] = {
    "most": (whole(1), "new tokens at most (default: 128)", False),
    "temperature": (zero_or_more(100), "0: the most likely token (default: 0.8)", False),
    "top_k": (whole(0), "draw from so many tokens, 0: all (default: 50)", False),
    "seed": (whole(0, 2**32 - 1), "seed of the draws (default: 0)", False),
}
COMMANDS: dict[str, tuple[str, dict[str, tuple[Callable[[str], Any], str, bool]]]] = {
    "evaluate": (
        "measure loss, perplexity and bits per byte of a language model on a text",
        {
            **_MODEL,
            "data": (Path, "text, or JSONL with the field text", True),
            "sequence": (whole(1), "tokens of a window (default: 256)", False),
        },
    ),
    "generate": (
        "continue a prompt with a language model",
        {**_MODEL, "prompt": (str, "text to continue", True), **_SAMPLING},
    ),
    "chat": ("answer the lines of the standard input with a language model", {**_MODEL, **_SAMPLING}),
    "merge": (
        "write an adapter and its base model as one model",
        {**_MODEL, "output": (Path, "folder to make", True)},
    ),
    "gguf": (
        "write a language model as a GGUF file",
        {
            **_MODEL,
            "output": (Path, "file to write", True),
            "kind": (one_of("f16", "q8_0"), "f16 or q8_0 (default: q8_0)", False),
        },
    ),
    "show-data": (
        "write a page that colours the trained tokens of rows",
        {
            "data": (Path, "text or JSONL, as for training", True),
            "model": (Path, "folder with tokenizer and chat template (default: bytes and ChatML)", False),
            "output": (Path, "HTML file (default: the data's name with .tokens.html, in the working folder)", False),
            "samples": (whole(1, 1000), "rows shown (default: 20)", False),
            "sequence": (whole(8), "tokens of a row (default: 256)", False),
            "method": (one_of(*METHODS), "pretrain, sft, dpo, or auto (default: auto)", False),
            "bad_rows": (one_of(*BAD_RECORDS), "stop or drop, as for training (default: stop)", False),
            "too_long": (one_of(*TOO_LONG), "stop, drop or cut, as for training (default: stop)", False),
            "stop_token": (one_of(*STOP_TOKEN), "require or append, as for training (default: require)", False),
            "train_on_prompts": (switch, "true: prompts carry loss, too (default: false)", False),
        },
    ),
    "convert-recipe": (
        "write a recipe of torchtune as one of this trainer, with what could not be carried over",
        {
            "recipe": (Path, "YAML file of torchtune", True),
            "output": (Path, "YAML file to write", True),
        },
    ),
    "plan": (
        "plan the training of a language model on any card, present or not",
        {
            "model": (str, "folder in Hugging Face layout, a config.json, or a shape such as qwen2.5-1.5b", True),
            "gpu": (str, 'card, such as "RX 7900 XTX" or "MI50 32 GB"', True),
            "method": (one_of("full", "lora", "qlora", "dpo"), "full, lora, qlora or dpo (default: three)", False),
            "sequence": (whole(8, MOST_SEQUENCE), "tokens of a row (default: 1024)", False),
            "micro_batch": (whole(1, 4096), "rows at a time (default: the largest that fit)", False),
            "precision": (one_of("auto", "fp32", "bf16", "fp16"), "number format (default: the card's)", False),
            "activation_checkpointing": (one_of(*RECOMPUTE), "as for training (default: off and full)", False),
            "lora_rank": (whole(1, MOST_RANK), "rank of an adapter (default: 16)", False),
            "rows": (one_of("text", "packed"), "packed: rows of conversations, attention has a mask", False),
            "cards": (whole(1, 64), "cards that compute rows of a batch each (default: 1)", False),
            "parallel": (
                one_of(*PLANNED),
                "of several cards: ddp: the whole model on each; fsdp2: shards (default: ddp)",
                False,
            ),
            "memory_gib": (number(4096), "memory of a card (default: that of its kind)", False),
            "experimental_attention": (switch, "true: AOTriton's experimental kernels are switched on", False),
            "fast": (one_of("auto", "off"), "auto or off, as for training (default: auto)", False),
            "optimizer": (one_of(*OPTIMIZERS), "as for training (default: adamw)", False),
            "task": (one_of(LM), "lm", False),
        },
    ),
}


def add_commands(commands: Any) -> None:
    """Add the parsers of the commands to the trainer's."""
    for command, (meaning, options) in COMMANDS.items():
        job = commands.add_parser(command, help=meaning, allow_abbrev=False)
        for name, (read, text, needed) in options.items():
            flag = "--" + name.replace("_", "-")
            job.add_argument(flag, dest=name, type=read, required=needed, default=SUPPRESS, help=text)


def listed() -> list[dict[str, str]]:
    """Return the options of every command as other programs read them: command, name, kind and help."""
    return [
        {"command": command, "name": name, "kind": "text", "help": text}
        for command, (_, options) in COMMANDS.items()
        for name, (_, text, _) in options.items()
    ]


def run(command: str, arguments: dict[str, Any]) -> int:
    """Run one of the commands by its name."""
    if command == "plan":
        from trainer.analysis.language.plan import PlanRequest, plan

        return plan(PlanRequest(**arguments))
    if command == "convert-recipe":
        from trainer.analysis.language.recipe_conversion import convert

        return convert(**arguments)
    from trainer.analysis.language import command as commands

    status: int = getattr(commands, command.replace("-", "_"))(**arguments)
    return status
