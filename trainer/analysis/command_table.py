"""The options of commands as one table, from which argparse's parsers and the host program's list are made."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainer.config.parsing import Reader


@dataclass(frozen=True)
class CommandOption:
    """An option: how its value is read, one line of help with the default, and whether it must be given.

    `also` is an earlier or shorter name, which is taken too; with `unless`, another option, it need not be given.
    """

    read: Reader
    help: str
    required: bool = False
    also: str = ""
    unless: str = ""


# command -> what it does, and its options by name with underscores
Table = Mapping[str, tuple[str, Mapping[str, CommandOption]]]


def add_commands(commands: Any, table: Table) -> dict[str, ArgumentParser]:
    """Add a parser for each command of `table` to the trainer's, and return them by name."""
    made: dict[str, ArgumentParser] = {}
    for command, (about, options) in table.items():
        made[command] = commands.add_parser(command, help=about, allow_abbrev=False)
        for name, each in options.items():
            made[command].add_argument(
                *spellings(name, each),
                dest=name,
                type=each.read,
                metavar=each.read.metavar,
                required=each.required and not each.unless,
                default=None if each.required and not each.unless else SUPPRESS,
                help=each.help,
            )
    return made


def flags_of(table: Table, command: str) -> list[str]:
    """Return the flags of a command, with dashes.

    Args:
        command: name of the command in `table`.
    """
    return [spelling for name, each in table[command][1].items() for spelling in spellings(name, each)]


def listed(table: Table) -> list[dict[str, Any]]:
    """Return the options of every command as other programs read them: command, name, kind, help and type."""
    return [
        {
            "command": command,
            "name": name,
            "kind": "text",
            "help": each.help,
            "type": each.read.metavar,
            **({"required": True} if each.required else {}),
            **({"unless": each.unless} if each.unless else {}),
            **({"also": {each.also: ""}} if each.also else {}),
        }
        for command, (_, options) in table.items()
        for name, each in options.items()
    ]


def spellings(name: str, option: CommandOption) -> list[str]:
    """Return the flags that an option is typed as.

    Args:
        name: the option's name, with underscores.
    """
    return ["--" + each.replace("_", "-") for each in (name, option.also) if each]
