"""Flags of other programs: those that mean what one of ours means are taken, others are answered with the right one.

The tables are in `other_programs`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from trainer.config.absent_flags import ABSENT
from trainer.config.other_programs import INSTEAD, TAKEN


def _by_name(table: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name: text for text, names in table for name in names.split()}


# name, without dashes before it and with underscores: the setting it is, or the setting with its value, whose `{}`
# stands for what is given.
SAME: Mapping[str, str] = {name: ours for ours, names in TAKEN for name in names.split() if name != ours}
# name, or its beginning with `*`: what to give, and why it is not taken as it is; or that nothing stands in for it.
OTHERWISE: Mapping[str, str] = _by_name(INSTEAD) | _by_name(ABSENT)
_YES, _NO = ("true", "1", "yes"), ("false", "0", "no")


# What stands before a dot in flags of other programs and is about training: --trainer.max_epochs, --train.epochs.
SECTIONS = frozenset(
    (
        *("train", "trainer", "training", "model", "data", "dataset", "optimizer", "optim", "lr_scheduler"),
        *("args", "peft", "lora", "policy", "checkpointer"),
    )
)


def bare(flag: str) -> str:
    """Return a flag's name without dashes before it and with underscores."""
    return flag.removeprefix("--").replace("-", "_")


def names_of(flag: str) -> tuple[str, ...]:
    """Return the names under which a flag may be in the tables: model.lr is model_lr, else lr."""
    name = bare(flag)
    section, dot, last = name.rpartition(".")
    alone = (last,) if section in SECTIONS else ()
    return (name.replace(".", "_"), *alone) if dot else (name,)


def _same(flag: str, known: Collection[str]) -> str | None:
    """Return the setting that a flag of another program is, with its value for a switch; None where it is none."""
    for name in names_of(flag):
        own = f"--{name.replace('_', '-')}"
        if "." in flag and own in known:
            return name
        if name in OTHERWISE:
            return None
        if (ours := SAME.get(name)) and f"--{ours.partition('=')[0].replace('_', '-')}" in known:
            return ours
    return None


def _is_off(flag: str) -> bool:
    """Return whether a flag switches off what is off here: --no-use-wandb."""
    name = bare(flag)
    ours = SAME.get(name.removeprefix("no_"), "") if name.startswith("no_") else ""
    return "=" in ours and "{}" not in ours


def translated(argv: list[str], known: Collection[str]) -> list[str]:
    """Return a command line in which flags of other programs stand as ours; a flag that is known stays.

    Args:
        argv: words as typed.
        known: our flags, such as --learning-rate.
    """
    words, done = list(argv), []
    while words:
        word = words.pop(0)
        flag = word.partition("=")[0]
        other = flag.startswith("--") and flag.replace("_", "-") not in known
        ours = _same(flag, known) if other else None
        if ours is not None:
            done += _stated(ours, word, words)
        elif not (other and word == flag and _is_off(flag)):
            done.append(word)
    return done


def _stated(ours: str, word: str, rest: list[str]) -> list[str]:
    """Return our words for a flag of another program; its value may be the first of `rest`, and is taken from there.

    Args:
        ours: the setting, with its value for a switch, or `{}` where a value goes.
        word: the flag as typed, perhaps with its value.
        rest: words behind it.
    """
    _, equals, value = word.partition("=")
    if "{}" in ours:
        stated = value if equals else rest.pop(0) if rest and not rest[0].startswith("-") else ""
        return [_written(ours.format(stated)) if stated else word]
    if "=" not in ours:
        return [f"{_written(ours)}{equals}{value}"]
    stated = value if equals else rest.pop(0) if rest and rest[0].lower() in (*_YES, *_NO) else "true"
    if stated.lower() not in (*_YES, *_NO):
        return [word]
    return [_written(ours)] if stated.lower() in _YES else []


def _written(ours: str) -> str:
    name, equals, value = ours.partition("=")
    return f"--{name.replace('_', '-')}{equals}{value}"


def advice(flag: str) -> str:
    """Return what to give in place of a flag of another program, nothing for one that is not known."""
    positive = bare(flag).removeprefix("no_")
    names = dict.fromkeys((*names_of(flag), *names_of(positive)))
    return next((text for name in names if (text := _advice_on(name))), "")


def _advice_on(name: str) -> str:
    if ours := SAME.get(name):
        takes = "takes true or false" if "=" in ours and "{}" not in ours else "takes a value"
        return f"--{name} stands for {_written(ours.replace('{}', 'N'))} and {takes}"
    return OTHERWISE.get(name, "") or _of_family(name)


def _of_family(name: str) -> str:
    """Return the advice of the longest beginning that a name has."""
    beginnings = [each for each in OTHERWISE if each.endswith("*") and name.startswith(each[:-1])]
    return OTHERWISE[max(beginnings, key=len)] if beginnings else ""
