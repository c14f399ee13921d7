"""Flags of other programs that mean what an option of the trainer means; options.json lists them with each option."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache

from rocmatrix.cli.options.command import trainer_options

ADVICE = "advice"  # stands for the command in entries of options.json that are no options
TRAINING = ("train", "submit")  # commands that take the options of `train`
_YES, _NO = ("true", "1", "yes"), ("false", "0", "no")
# What stands before a dot in flags of other programs and is about training, as `trainer.config.synonyms` has it.
SECTIONS = frozenset(
    (
        *("train", "trainer", "training", "model", "data", "dataset", "optimizer", "optim", "lr-scheduler"),
        *("args", "peft", "lora", "policy", "checkpointer"),
    )
)


@cache
def _same(command: str = "train") -> Mapping[str, tuple[str, str]]:
    """Return our flag and, for a switch, the value that it stands for, by the other flag."""
    rows = ((each["name"], each.get("also", {})) for each in trainer_options(command))
    return {_flag(other): (_flag(name), value) for name, also in rows for other, value in also.items()}


@cache
def _rows() -> Mapping[str, str]:
    """Return what to give in place of a flag, by its name or, with `*`, its beginning."""
    return {str(row["name"]).replace("_", "-"): str(row["help"]) for row in trainer_options(ADVICE)}


def names_of(flag: str) -> tuple[str, ...]:
    """Return the names under which a flag may be known, with dashes: --model.lr is model-lr, else lr."""
    name = flag.removeprefix("--").replace("_", "-")
    section, dot, last = name.rpartition(".")
    alone = (last,) if section in SECTIONS else ()
    return (name.replace(".", "-"), *alone) if dot else (name,)


def advice(flag: str) -> str:
    """Return what to give in place of a flag of another program, nothing for one that is not known."""
    names = dict.fromkeys((*names_of(flag), *names_of(flag.removeprefix("--").removeprefix("no-"))))
    return next((text for name in names if (text := _advice_on(name))), "")


def _advice_on(name: str) -> str:
    families = [each for each in _rows() if each.endswith("*") and name.startswith(each[:-1])]
    return _rows().get(name, "") or (_rows()[max(families, key=len)] if families else "")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def translated(argv: list[str], known: Collection[str]) -> list[str]:
    """Return a command line in which flags of other programs stand as ours; a flag that is known stays.

    Args:
        argv: as typed, with the command's name among them; of commands other than those of training, only earlier names
            of their own options are replaced.
        known: the flags of the commands.
    """
    if {*argv} & {*TRAINING}:
        return list(_each(argv, known))
    earlier = {other: ours for command in {*argv} for other, (ours, _) in _same(command).items()}
    return [_renamed(word, earlier) for word in argv] if earlier else argv


def _renamed(word: str, earlier: Mapping[str, str]) -> str:
    flag, equals, value = word.partition("=")
    return earlier.get(flag, flag) + equals + value


def _ours(flag: str, known: Collection[str]) -> tuple[str, str] | None:
    """Return our flag for one of another program, and for a switch its value; None where it is none of ours."""
    for name in names_of(flag):
        if "." in flag and f"--{name}" in known:
            return f"--{name}", ""
        if name in _rows():
            return None
        if (found := _same().get(f"--{name}")) is not None:
            return found
    return None


def _is_off(flag: str, known: Collection[str]) -> bool:
    """Return whether a flag switches off what is off here: --no-use-wandb."""
    _, switched = _same().get(f"--{flag.removeprefix('--no-')}", ("", ""))
    return flag.startswith("--no-") and flag not in known and bool(switched) and "{}" not in switched


def _each(argv: list[str], known: Collection[str]) -> Iterator[str]:
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        flag, equals, value = word.partition("=")
        written = flag.replace("_", "-")
        found = None if written in known or not written.startswith("--") else _ours(written, known)
        if found is None:
            if equals or not _is_off(written, known):
                yield word
            continue
        ours, switched = found
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
