"""`python -m rocmatrix COMMAND`: the commands as argparse reads them, with the flags and the help of `./invokew`."""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Sequence
from typing import Any

from rocmatrix.cli.options import mistyped, task_help
from rocmatrix.cli.options.command import NUMBERS, Command, Flag, dashed, known
from rocmatrix.cli.options.synonyms import TRAINING, advice, translated
from rocmatrix.runtime import console
from rocmatrix.runtime.console import edge
from rocmatrix.runtime.errors import RocmatrixError, suggestion

PROGRAM = "python -m rocmatrix"
HELP = ("-h", "--help", "--help=all")


@edge
def main(argv: Sequence[str]) -> None:
    """Run the command that `argv` names first, with the flags after it; without one, list the commands.

    Raises RM404 for what no command takes, with the nearest names.
    """
    own = argv[: argv.index("--")] if "--" in argv else argv
    width = shutil.get_terminal_size().columns
    if not own or own[0] in (*HELP, "--list"):
        print(listing(width))
        return
    name, *typed = own
    if name not in known():
        raise RocmatrixError("RM404", what=f"{name} is no command", next=suggestion(name, known()))
    command = known()[name]
    if help_options := [word for word in typed if word in HELP]:
        everything = help_options[-1] == HELP[-1] or "all" in typed[typed.index(help_options[-1]) + 1 :][:1]
        print(task_help.page(command, program=PROGRAM, everything=everything, width=width))
        return
    typed_flags = parsed(command, typed)
    console.offer(f"--{flag.name}" for flag in command.flags)
    command.run(typed_flags)


def listing(width: int) -> str:
    """Return the commands with the first line of their help.

    Args:
        width: columns of the terminal, of which the last one stays free.
    """
    rows = [(each.name, each.about.partition("\n")[0]) for each in known().values()]
    return task_help.table(f"Usage: {PROGRAM} COMMAND [--options]", "Commands:", rows, width=width)


def parsed(command: Command, argv: Sequence[str]) -> dict[str, Any]:
    """Return the values of a command's flags, each under its `key`. Raises RM404.

    Args:
        argv: what was typed after the command's name, up to `--`.
    """
    see = f"{PROGRAM} {command.name} --help"
    try:
        found, rest = parser_of(command).parse_known_args(_joined(command, argv))
    except argparse.ArgumentError as error:
        raise RocmatrixError("RM404", what=_message(error), next=see) from error
    if rest:
        raise _unknown(command, rest[0], argv, see)
    values = vars(found)
    missing = [flag.name for flag in command.flags if flag.positional and flag.key not in values]
    if missing:
        raise RocmatrixError("RM404", what=f"{command.name} needs {' and '.join(missing)}", next=see)
    return values


def parser_of(command: Command) -> argparse.ArgumentParser:
    """Return the parser of a command's flags, made from its table."""
    parser = argparse.ArgumentParser(prog=command.name, add_help=False, allow_abbrev=False, exit_on_error=False)
    for flag in command.flags:
        names = (f"--{flag.name}", *([f"-{flag.short}"] if flag.short else []))
        parser.add_argument(*names, dest=flag.key, **_action(flag))
        if flag.positional:
            parser.add_argument(flag.key, nargs="?", default=argparse.SUPPRESS)
    return parser


def _action(flag: Flag) -> dict[str, Any]:
    if flag.positional:
        return {"default": argparse.SUPPRESS}
    if flag.kind is bool:
        return {"action": "store_true", "default": flag.default}
    if flag.optional:
        return {"nargs": "?", "const": True, "default": flag.default}
    if flag.kind is list:
        return {"action": "append", "default": []}
    return {"type": _number(flag.kind) if flag.kind in NUMBERS else str, "default": flag.default}


def _number(kind: type) -> Any:
    def read(text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"takes {NUMBERS[kind]}, not {text!r}") from None

    return read


def _joined(command: Command, argv: Sequence[str]) -> list[str]:
    """Return the words with each flag and its value as one: argparse refuses a value that begins with a dash."""
    flags = {f"--{flag.name}": flag for flag in command.flags}
    flags |= {f"-{flag.short}": flag for flag in command.flags if flag.short}
    rest = translated([command.name, *(dashed(word, flags) for word in argv)], flags)[1:]
    joined = []
    while rest:
        word = rest.pop(0)
        value = rest.pop(0) if rest and _takes(flags.get(word), rest[0]) else None
        joined.append(word if value is None else f"{word}={value}" if word.startswith("--") else word + value)
    return joined


def _takes(flag: Flag | None, value: str) -> bool:
    """Return whether the word behind a flag is its value: a value that is optional does not begin with a dash."""
    if flag is None or flag.kind is bool:
        return False
    return not (flag.optional and value.startswith("-"))


def _unknown(command: Command, word: str, typed: Sequence[str], see: str) -> RocmatrixError:
    if not word.startswith("-"):
        intended_flag = mistyped.intended(word.partition("=")[0], [command.name, *typed])
        return RocmatrixError("RM404", what=f"{command.name} takes no word {word!r}", next=intended_flag or see)
    flag = word.partition("=")[0]
    flags = [f"--{each.name}" for each in command.flags]
    instead = mistyped.intended(flag, [command.name, *typed])
    instead = instead or (advice(flag) if command.name in TRAINING else "") or mistyped.owners(flag)
    return RocmatrixError("RM404", what=f"{flag} is no flag of {command.name}", next=instead or suggestion(flag, flags))


def _message(error: argparse.ArgumentError) -> str:
    """Return argparse's message on a wrong value as `./invokew` has them."""
    name = (error.argument_name or "").split("/")[0]
    if switched := re.fullmatch(r"ignored explicit argument (.*)", error.message):
        return f"{name} takes no value, and was given {switched[1]}"
    return f"{name} needs a value" if error.message == "expected one argument" else f"{name} {error.message}"
