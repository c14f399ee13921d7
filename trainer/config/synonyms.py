"""Flags of other programs: those that mean what one of ours means are taken, others are answered with the right one.

The tables are in `other_programs`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from trainer.config.other_programs import ABSENT, INSTEAD, TAKEN


def _by_name(table: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name: text for text, names in table for name in names.split()}


# name, without dashes before it and with underscores: the setting it is, or the setting with its value, whose `{}`
# stands for what is given.
SAME: Mapping[str, str] = {name: ours for ours, names in TAKEN for name in names.split() if name != ours}
# name, or its beginning with `*`: what to give, and why it is not taken as it is; or that nothing stands in for it.
OTHERWISE: Mapping[str, str] = _by_name(INSTEAD) | _by_name(ABSENT)
_YES, _NO = ("true", "1", "yes"), ("false", "0", "no")


def bare(flag: str) -> str:
    """Return a flag's name without dashes before it and with underscores."""
    return flag.removeprefix("--").replace("-", "_")


def translated(argv: list[str], known: Collection[str]) -> list[str]:
    """Return a command line in which flags of other programs stand as ours; a flag that is known stays.

    Args:
        argv: words as typed.
        known: our flags, such as --learning-rate.
    """
    words, done = list(argv), []
    while words:
        word = words.pop(0)
        flag, equals, value = word.partition("=")
        ours = SAME.get(bare(flag)) if flag.startswith("--") and flag.replace("_", "-") not in known else None
        if ours is None or f"--{ours.partition('=')[0].replace('_', '-')}" not in known:
            done.append(word)
        elif "{}" in ours:
            stated = value if equals else words.pop(0) if words and not words[0].startswith("-") else ""
            done.append(_written(ours.format(stated)) if stated else word)
        elif "=" not in ours:
            done.append(f"{_written(ours)}{equals}{value}")
        else:
            stated = value if equals else words.pop(0) if words and words[0].lower() in (*_YES, *_NO) else "true"
            done += (
                [word] if stated.lower() not in (*_YES, *_NO) else [_written(ours)] if stated.lower() in _YES else []
            )
    return done


def _written(ours: str) -> str:
    name, equals, value = ours.partition("=")
    return f"--{name.replace('_', '-')}{equals}{value}"


def advice(flag: str) -> str:
    """Return what to give in place of a flag of another program, nothing for one that is not known."""
    name = bare(flag)
    if ours := SAME.get(name):
        takes = "takes true or false" if "=" in ours and "{}" not in ours else "takes a value"
        return f"--{name} stands for {_written(ours.replace('{}', 'N'))} and {takes}"
    return OTHERWISE.get(name, "") or _of_family(name)


def _of_family(name: str) -> str:
    """Return the advice of the longest beginning that a name has."""
    beginnings = [each for each in OTHERWISE if each.endswith("*") and name.startswith(each[:-1])]
    return OTHERWISE[max(beginnings, key=len)] if beginnings else ""
