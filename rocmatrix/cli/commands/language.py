"""The commands for language models next to training: natively, with the locked CPU wheels or the active environment."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from rocmatrix.cli.commands.models import after_training
from rocmatrix.cli.options.command import TrainerOptions, command
from rocmatrix.cli.options.common import TrainerCommandOptions

# Each command of the trainer, and its help.
COMMANDS: Mapping[str, str] = {
    "generate": "Continue a prompt with a language model; with an adapter, next to the base model's text.",
    "chat": "Chat with a language model: it answers each line of the standard input, until Ctrl-D.",
    "evaluate": "Measure a language model on a text: loss, perplexity and bits per byte, with and without an adapter.",
    "merge": "Merge an adapter into its base model: one model folder, with the logits compared.",
    "gguf": "Write a language model as a GGUF file for llama.cpp: read again and compared. Needs the package gguf.",
    "show-data": "Write a page that colours the trained tokens of rows: with every row that is refused.",
    "convert-recipe": "Convert a torchtune recipe to one of this trainer: what could not be converted is listed.",
    "plan": "Plan the training of a language model on any card: memory by part, and what fits.",
}


def run(program: str, args: TrainerCommandOptions, options: TrainerOptions) -> None:
    """Run a command of the trainer by its name.

    Args:
        program: name of the trainer's command.
        options: values by the name of the option; None is left out.
    """
    after_training(program, [], options, args)


for _name, _about in COMMANDS.items():
    command(TrainerCommandOptions, name=_name, trainer=_name, about=_about)(partial(run, _name))
