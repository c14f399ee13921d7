"""An option of the command line whose number is checked where it is typed."""

from __future__ import annotations

from typing import Any

from invoke.exceptions import ParseError
from invoke.parser.argument import Argument
from invoke.parser.context import ParserContext

from rocmatrix.cli.options.command import NUMBERS


class NumberOption(Argument):
    """An option that takes a number; `task` is the task it belongs to, none for one of the program's own."""

    def __init__(self, *, task: str | None = None, **facts: Any) -> None:
        super().__init__(**facts)
        self.task = task

    def set_value(self, value: Any, cast: bool = True) -> None:
        """Take a value. Raises ParseError for what is no number: invoke lets the ValueError through."""
        try:
            super().set_value(value, cast)
        except ValueError:
            what = f"--{self.names[0]} takes {NUMBERS[self.kind]}, not {value!r}"
            raise ParseError(what, ParserContext(self.task)) from None


def checked(argument: Argument, *, task: str | None = None) -> Argument:
    """Return the same option, as one that is checked where it takes a number."""
    if argument.kind not in NUMBERS:
        return argument
    return NumberOption(
        task=task,
        names=argument.names,
        kind=argument.kind,
        default=argument.default,
        help=argument.help,
        positional=argument.positional,
        optional=argument.optional,
        incrementable=argument.incrementable,
        attr_name=argument.attr_name,
    )
