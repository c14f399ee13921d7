"""The commands as tasks of invoke, for `./invokew`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from invoke.collection import Collection
from invoke.context import Context
from invoke.parser.argument import Argument
from invoke.tasks import Task

from rocmatrix.cli.options.command import Command, Flag, known
from rocmatrix.cli.options.number_option import checked


class CommandTask(Task[Any]):
    """A task that hands what was typed to a command; its flags are the command's."""

    def __init__(self, command: Command) -> None:
        def body(_: Context, **typed: Any) -> None:
            command.run(typed)

        body.__doc__ = command.about
        super().__init__(body, name=command.name, positional=[])
        self.command = command

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        """Return the command's flags as invoke reads them."""
        return [checked(_argument(flag), task=self.name) for flag in self.command.flags]


def collection(commands: Iterable[Command] | None = None) -> Collection:
    """Return a task for each of `commands`; None: for every one that there is."""
    tasks = Collection()
    for each in known().values() if commands is None else commands:
        tasks.add_task(CommandTask(each))
    return tasks


def _argument(flag: Flag) -> Argument:
    return Argument(
        names=(flag.name, *([flag.short] if flag.short else [])),
        kind=flag.kind,
        default=flag.default,
        help=flag.help,
        positional=flag.positional,
        optional=flag.optional,
        attr_name=flag.key if flag.key != flag.name else None,
    )
