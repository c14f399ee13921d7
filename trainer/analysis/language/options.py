"""The command line of evaluate, generate, chat, merge, gguf, show-data and plan; imports nothing heavy."""

from __future__ import annotations

from typing import Any

from trainer.analysis import command_table
from trainer.analysis.command_table import CommandOption, Table
from trainer.config.choices import BAD_RECORDS, LM, METHODS, OPTIMIZERS, PLANNED, RECOMPUTE, STOP_TOKEN, TOO_LONG
from trainer.config.parsing import Reader, number, one_of, path, renames, switch, text, whole, zero_or_more
from trainer.config.sections.decoder import MOST_RANK
from trainer.config.sections.tokens import MOST_SEQUENCE

_FOLDER = "model folder in Hugging Face layout, an adapter's, or a finished run, TRAINING/<run>"
_PLANNED_MODEL = "folder in Hugging Face layout, a config.json, or a shape such as qwen2.5-1.5b"
_MODEL = {
    "model": CommandOption(path, _FOLDER, required=True),
    "base": CommandOption(path, "an adapter's base model (default: the folder that the adapter names)"),
}
_SAMPLING = {
    "max_new_tokens": CommandOption(whole(1), "largest number of new tokens (default: 128)", also="most"),
    "temperature": CommandOption(
        zero_or_more(100), "sampling temperature; 0: always the most likely token (default: 0.8)"
    ),
    "top_k": CommandOption(whole(0), "sample from the K most likely tokens; 0: from all (default: 50)"),
    "seed": CommandOption(whole(0, 2**32 - 1), "seed of sampling (default: 0)"),
}
COMMANDS: Table = {
    "evaluate": (
        "measure loss, perplexity and bits per byte of a language model on a text",
        {
            **_MODEL,
            "data": CommandOption(path, "text, or JSONL with the field text", required=True),
            "sequence": CommandOption(whole(1), "tokens of a window (default: 256)"),
        },
    ),
    "generate": (
        "continue a prompt with a language model",
        {**_MODEL, "prompt": CommandOption(text, "text to continue", required=True), **_SAMPLING},
    ),
    "chat": ("answer the lines of the standard input with a language model", {**_MODEL, **_SAMPLING}),
    "merge": (
        "write an adapter and its base model as one model",
        {**_MODEL, "output": CommandOption(path, "folder to write", required=True)},
    ),
    "gguf": (
        "write a language model as a GGUF file",
        {
            **_MODEL,
            "output": CommandOption(path, "file to write", required=True),
            "kind": CommandOption(one_of("f16", "q8_0"), "type of the weights in the file (default: q8_0)"),
        },
    ),
    "show-data": (
        "write a page that colours the trained tokens of rows",
        {
            "data": CommandOption(path, "text or JSONL, as for training", required=True),
            "model": CommandOption(path, "folder with tokenizer and chat template (default: bytes and ChatML)"),
            "output": CommandOption(
                path, "HTML file (default: the data's name with .tokens.html, in the working folder)"
            ),
            "samples": CommandOption(whole(1, 1000), "rows shown (default: 20)"),
            "sequence": CommandOption(whole(8), "tokens of a row (default: 256)"),
            "method": CommandOption(one_of(*METHODS), "as for training (default: auto)"),
            "rename": CommandOption(renames, "as for training (default: none)"),
            "bad_rows": CommandOption(one_of(*BAD_RECORDS), "as for training (default: stop)"),
            "too_long": CommandOption(one_of(*TOO_LONG), "as for training (default: stop)"),
            "stop_token": CommandOption(one_of(*STOP_TOKEN), "as for training (default: require)"),
            "train_on_prompts": CommandOption(switch, "whether prompts carry loss, too (default: false)"),
        },
    ),
    "convert-recipe": (
        "write a recipe of torchtune as one of this trainer, with what could not be carried over",
        {
            "recipe": CommandOption(path, "YAML file of torchtune", required=True),
            "output": CommandOption(path, "YAML file to write", required=True),
        },
    ),
    "plan": (
        "plan the training of a language model on any card, present or not",
        {
            "model": CommandOption(text, _PLANNED_MODEL, required=True, unless="recipe"),
            "gpu": CommandOption(
                Reader(str, "GPU"), 'card, such as "RX 7900 XTX" or "MI50 32 GB"', required=True, unless="recipe"
            ),
            "recipe": CommandOption(
                Reader(str, "FILE"),
                "recipe of train, by name or file, with all its settings; options given here stand before them",
            ),
            "method": CommandOption(
                one_of("full", "lora", "qlora", "dpo", "kto", "peft"), "way of training (default: full, lora and qlora)"
            ),
            "peft_config": CommandOption(path, "adapter_config.json of a method by peft, as for training"),
            "sequence": CommandOption(whole(8, MOST_SEQUENCE), "tokens of a row (default: 1024)", also="seq"),
            "micro_batch": CommandOption(whole(1, 4096), "rows at a time on a card (default: the largest that fits)"),
            "precision": CommandOption(one_of("auto", "fp32", "bf16", "fp16"), "number format (default: the card's)"),
            "activation_checkpointing": CommandOption(one_of(*RECOMPUTE), "as for training (default: off and full)"),
            "lora_rank": CommandOption(whole(1, MOST_RANK), "rank of an adapter (default: 16)"),
            "rows": CommandOption(
                one_of("text", "packed"),
                "packed: several conversations share a row, so attention has a mask (default: text)",
            ),
            "cards": CommandOption(whole(1, 64), "cards, each with rows of its own (default: 1)"),
            "parallel": CommandOption(
                one_of(*PLANNED), "several cards: ddp: the whole model on each; fsdp2: shards (default: ddp)"
            ),
            "memory_gib": CommandOption(number(4096), "memory of a card in GiB (default: that of its model)"),
            "experimental_attention": CommandOption(
                switch, "whether AOTriton's experimental kernels are switched on (default: false)"
            ),
            "fast": CommandOption(one_of("auto", "off"), "as for training (default: auto)"),
            "optimizer": CommandOption(one_of(*OPTIMIZERS), "as for training (default: adamw)"),
            "longest": CommandOption(switch, "whether to give the longest row that fits, too (default: false)"),
            "task": CommandOption(one_of(LM), "as for training; there is no other here"),
        },
    ),
}


def add_commands(commands: Any) -> None:
    """Add the parsers of the commands to the trainer's."""
    command_table.add_commands(commands, COMMANDS)


def listed() -> list[dict[str, Any]]:
    """Return the options of every command as other programs read them."""
    return command_table.listed(COMMANDS)


def run(command: str, arguments: dict[str, Any]) -> int:
    """Run one of the commands by its name."""
    if command == "plan":
        from trainer.analysis.language.plan import plan
        from trainer.analysis.language.planning.from_recipe import requested

        return plan(requested(**arguments))
    if command == "convert-recipe":
        from trainer.analysis.language.recipe_conversion import convert

        return convert(**arguments)
    from trainer.analysis.language import command as commands

    status: int = getattr(commands, command.replace("-", "_"))(**arguments)
    return status
