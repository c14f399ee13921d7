"""The command line of evaluate, generate, chat, merge and gguf; imports nothing heavy."""

from __future__ import annotations

from argparse import SUPPRESS
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainer.config.parsing import one_of, whole, zero_or_more

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
}


def add_commands(commands: Any) -> None:
    """Add the parsers of the commands to the trainer's."""
    for command, (meaning, options) in COMMANDS.items():
        job = commands.add_parser(command, help=meaning, allow_abbrev=False)
        for name, (read, text, needed) in options.items():
            flag = "--" + name.replace("_", "-")
            job.add_argument(flag, dest=name, type=read, required=needed, default=SUPPRESS, help=text)


def run(command: str, arguments: dict[str, Any]) -> int:
    """Run one of the commands by its name."""
    from trainer.analysis.language import command as commands

    status: int = getattr(commands, command)(**arguments)
    return status
