"""The commands for language models next to training: natively, with the locked CPU wheels or the active environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rocmatrix.cli.commands.predict import after_training
from rocmatrix.runtime.console import edge
from rocmatrix.runtime.errors import RocmatrixError

NEEDED = {
    "generate": ("model", "prompt"),
    "chat": ("model",),
    "evaluate": ("model", "data"),
    "merge": ("model", "output"),
    "gguf": ("model", "output"),
    "show-data": ("data",),
    "plan": ("model", "gpu"),
}
WHAT = {
    "model": "a model folder, or a finished run TRAINING/<run>",
    "data": "a text or a JSONL file",
    "output": "the place to write to",
    "prompt": "the text to continue",
    "gpu": "the card to plan for",
}


@edge
def run(command: str, options: Mapping[str, Any], *, dry_run: bool) -> None:
    """Run a command of the trainer by its name; what it cannot do without is asked for before wheels are installed.

    Args:
        command: name of the trainer's command.
        options: values by the name of the option; None is left out.
        dry_run: print the command and run nothing.
    """
    missing = [name for name in NEEDED[command] if not options.get(name)]
    if missing:
        needs = ", and ".join(f"--{name}, {WHAT[name]}" for name in missing)
        raise RocmatrixError("RM404", what=f"{command} needs {needs}", next=f"See ./invokew --help {command}.")
    after_training(command, [], options, dry_run=dry_run)
