"""The command line of predict, compress and report; imports nothing heavy."""

from __future__ import annotations

from argparse import SUPPRESS
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainer.config.parsing import column_roles, names, share, whole
from trainer.config.sections.network import widths

_RUN = "folder of a finished run, TRAINING/<run>"
_COLUMNS = "columns by role: date=NAME,close=NAME (default: those that the run was given)"
_OWN_DATA = "its data (default: where the run had them)"
_OWN_JOIN = "the run's file with the VIX (default: where the run had it)"
_SEED = whole(0, 2**32 - 1)
# command -> what it does, and by option how it is read, its help, and whether it is needed
COMMANDS: dict[str, tuple[str, dict[str, tuple[Callable[[str], Any], str, bool]]]] = {
    "predict": (
        "forecast with a finished run's model",
        {
            "model": (Path, _RUN, True),
            "data": (Path, "file of bars or a table, as for training", True),
            "output": (Path, "CSV of the forecasts (default: standard output)", False),
            "join": (Path, "file with the VIX, joined as the run's was", False),
            "columns": (column_roles, _COLUMNS, False),
        },
    ),
    "compress": (
        "make a finished run's model smaller",
        {
            "model": (Path, _RUN, True),
            "data": (Path, _OWN_DATA, False),
            "join": (Path, _OWN_JOIN, False),
            "columns": (column_roles, _COLUMNS, False),
            "output": (Path, "folder for the results (default: next to it)", False),
            "how": (names, "distill, prune, int8 (default: all three)", False),
            "student_layers": (widths, "the student's widths (default: halves)", False),
            "sparsity": (share, "share of weights pruned (default: 0.8)", False),
            "epochs": (whole(1), "passes of tuning (default: the run's own)", False),
            "seed": (_SEED, "seed of weights and order (default: 0)", False),
        },
    ),
    "report": (
        "write a page on a finished run",
        {
            "data": (Path, "the run's data (default: where the run had them)", False),
            "join": (Path, _OWN_JOIN, False),
            "columns": (column_roles, _COLUMNS, False),
            "output": (Path, "HTML file (default: report.html in the folder)", False),
            "repeats": (whole(1, 1000), "shuffles of each feature (default: 5)", False),
            "seed": (_SEED, "seed of the shuffles (default: 0)", False),
        },
    ),
}


def add_commands(commands: Any) -> None:
    """Add the parsers of the commands to the trainer's."""
    for command, (meaning, options) in COMMANDS.items():
        job = commands.add_parser(command, help=meaning, allow_abbrev=False)
        if command == "report":
            job.add_argument("run", type=Path, metavar="RUN", help=_RUN)
        for name, (read, text, needed) in options.items():
            default = None if needed else SUPPRESS
            job.add_argument(_flag(name), type=read, required=needed, default=default, help=text)


def flags_of(command: str) -> list[str]:
    """Return the flags of a command, with dashes."""
    return [_flag(name) for name in COMMANDS[command][1]]


def listed() -> list[dict[str, str]]:
    """Return the options of every command as other programs read them: command, name, kind and help."""
    return [
        {"command": command, "name": name, "kind": "text", "help": text}
        for command, (_, options) in COMMANDS.items()
        for name, (_, text, _) in options.items()
    ]


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
