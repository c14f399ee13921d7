"""The command line of predict, compress and report; imports nothing heavy."""

from __future__ import annotations

from typing import Any

from trainer.analysis import command_table
from trainer.analysis.command_table import CommandOption, Table
from trainer.config.parsing import column_roles, names, path, share, whole
from trainer.config.sections.network import widths

_RUN = "folder of a finished run, TRAINING/<run>"
_COLUMNS = "columns by role: date=NAME,close=NAME (default: those that the run was given)"
_OWN_DATA = "the run's data (default: the path that the run had)"
_OWN_JOIN = "the run's file with the VIX (default: the path that the run had)"
_SEED = whole(0, 2**32 - 1)
COMMANDS: Table = {
    "predict": (
        "forecast with a finished run's model",
        {
            "model": CommandOption(path, _RUN, required=True),
            "data": CommandOption(path, "file of bars or a table, as for training", required=True),
            "output": CommandOption(path, "CSV of the forecasts (default: standard output)"),
            "join": CommandOption(path, "file with the VIX, joined as the run's was"),
            "columns": CommandOption(column_roles, _COLUMNS),
        },
    ),
    "compress": (
        "make a finished run's model smaller",
        {
            "model": CommandOption(path, _RUN, required=True),
            "data": CommandOption(path, _OWN_DATA),
            "join": CommandOption(path, _OWN_JOIN),
            "columns": CommandOption(column_roles, _COLUMNS),
            "output": CommandOption(path, "folder for the results (default: next to the run's)"),
            "how": CommandOption(names, "distill, prune, int8 (default: all three)"),
            "student_layers": CommandOption(widths, "the student's hidden widths (default: half of the model's)"),
            "sparsity": CommandOption(share, "share of weights pruned (default: 0.8)"),
            "epochs": CommandOption(whole(1), "epochs of fine-tuning (default: the run's own)"),
            "seed": CommandOption(_SEED, "seed of weights and of the order of rows (default: 0)"),
        },
    ),
    "report": (
        "write a page on a finished run",
        {
            "data": CommandOption(path, _OWN_DATA),
            "join": CommandOption(path, _OWN_JOIN),
            "columns": CommandOption(column_roles, _COLUMNS),
            "output": CommandOption(path, "HTML file (default: report.html in the folder)"),
            "repeats": CommandOption(whole(1, 1000), "shuffles of each feature (default: 5)"),
            "seed": CommandOption(_SEED, "seed of the shuffles (default: 0)"),
        },
    ),
}


def add_commands(commands: Any) -> None:
    """Add the parsers of the commands to the trainer's."""
    made = command_table.add_commands(commands, COMMANDS)
    made["report"].add_argument("run", type=path, metavar="RUN", help=_RUN)


def flags_of(command: str) -> list[str]:
    """Return the flags of a command, with dashes."""
    return command_table.flags_of(COMMANDS, command)


def listed() -> list[dict[str, Any]]:
    """Return the options of every command as other programs read them."""
    return command_table.listed(COMMANDS)
