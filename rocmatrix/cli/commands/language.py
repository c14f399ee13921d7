"""The commands for language models next to training: natively, with the locked CPU wheels or the active environment."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from rocmatrix.cli.commands.predict import after_training
from rocmatrix.cli.options.command import TrainerOptions, command
from rocmatrix.cli.options.common import TrainerCommandOptions
from rocmatrix.runtime.errors import RocmatrixError

# Each command of the trainer: what it cannot do without, and its help.
COMMANDS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "generate": (
        ("model", "prompt"),
        "Continue a prompt with a language model; with an adapter, the base model's text stands next to it.",
    ),
    "chat": (("model",), "Answer each line of the standard input with a language model, until Ctrl-D."),
    "evaluate": (
        ("model", "data"),
        "Measure loss, perplexity and bits per byte of a language model on a text, with and without an adapter.",
    ),
    "merge": (
        ("model", "output"),
        "Write an adapter and its base model as one model folder, with the logits compared.",
    ),
    "gguf": (
        ("model", "output"),
        "Write a language model as a GGUF file for llama.cpp, read again and compared. Needs the package gguf.",
    ),
    "show-data": (
        ("data",),
        "Write a page that colours the trained tokens of rows for a language model, with every row that is refused.",
    ),
    "convert-recipe": (
        ("recipe", "output"),
        "Write a recipe of torchtune as one of this trainer, with what was carried over and what was not.",
    ),
    "plan": (
        ("model", "gpu"),
        "Plan the training of a language model on any card, present or not: memory by part, and what fits.",
    ),
}
WHAT = {
    "model": "a model folder, or a finished run TRAINING/<run>",
    "data": "a text or a JSONL file",
    "output": "the place to write to",
    "prompt": "the text to continue",
    "gpu": "the card to plan for",
    "recipe": "a YAML file of torchtune",
}


def run(program: str, args: TrainerCommandOptions, options: TrainerOptions) -> None:
    """Run a command of the trainer by its name; what it cannot do without is asked for before wheels are installed.

    Args:
        program: name of the trainer's command.
        options: values by the name of the option; None is left out.
    """
    missing = [name for name in COMMANDS[program][0] if not options.get(name)]
    if missing:
        needs = ", and ".join(f"--{name}, {WHAT[name]}" for name in missing)
        raise RocmatrixError("RM404", what=f"{program} needs {needs}", next=f"See ./invokew --help {program}.")
    after_training(program, [], options, dry_run=args.dry_run, as_json=args.as_json)


for _name, (_, _about) in COMMANDS.items():
    command(TrainerCommandOptions, name=_name, trainer=_name, about=_about)(partial(run, _name))
