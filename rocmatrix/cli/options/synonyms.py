"""Flags of other programs that mean what an option of the trainer means; options.json lists them with each option."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache

from rocmatrix.cli.options.command import trainer_options

ADVICE = "advice"  # stands for the command in entries of options.json that are no options
TRAINING = ("train", "submit")  # commands that take the options of `train`
_YES, _NO = ("true", "1", "yes"), ("false", "0", "no")


@cache
def _same() -> Mapping[str, tuple[str, str]]:
    """Return our flag and, for a switch, the value that it stands for, by the other flag."""
    rows = ((each["name"], each.get("also", {})) for each in trainer_options("train"))
    return {_flag(other): (_flag(name), value) for name, also in rows for other, value in also.items()}


def advice(flag: str) -> str:
    """Return what to give in place of a flag of another program, nothing for one that is not known."""
    rows = {str(row["name"]).replace("_", "-"): str(row["help"]) for row in trainer_options(ADVICE)}
    name = flag.removeprefix("--").replace("_", "-")
    families = [each for each in rows if each.endswith("*") and name.startswith(each[:-1])]
    return rows.get(name, "") or (rows[max(families, key=len)] if families else "")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def translated(argv: list[str], known: Collection[str]) -> list[str]:
    """Return a command line in which flags of other programs stand as ours; a flag that is known stays.

    Args:
        argv: as typed, with the command's name among them; other commands than those of training stay as they are.
        known: the flags of the commands.
    """
    return list(_each(argv, known)) if {*argv} & {*TRAINING} else argv


def _each(argv: list[str], known: Collection[str]) -> Iterator[str]:
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        flag, equals, value = word.partition("=")
        written = flag.replace("_", "-")
        if written in known or written not in _same():
            yield word
            continue
        ours, switched = _same()[written]
        if not switched:
            yield ours + equals + value
            continue
        if "{}" in switched:
            yield f"{ours}={switched.format(value if equals else rest.pop(0) if rest else '')}"
            continue
        stated = value if equals else rest.pop(0) if rest and rest[0].lower() in (*_YES, *_NO) else "true"
        if stated.lower() in _YES:
            yield f"{ours}={switched}"
        elif stated.lower() not in _NO:
            yield word
