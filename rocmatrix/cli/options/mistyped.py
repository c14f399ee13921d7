"""Words that stand wrong on the command line: a flag with another dash, blanks around `=`, a file without a flag."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from rocmatrix.cli.options.command import known

_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d"  # what editors and web pages make of `--`
_FEW = 3  # tasks that are named


def intended(word: str, typed: Sequence[str]) -> str:
    """Return what a word that no parser takes was meant to be, as advice; empty where that is not known.

    Args:
        word: the word, of a flag without its value.
        typed: the words of the command line.
    """
    if (place := _after_equals(word, typed)) > 0:
        return f"no blank stands around `=`: {typed[place - 2]}={word}"
    tasks = [task for task in typed if word.removeprefix("--") in _flags(task)]
    if word.startswith("--"):
        return f"a flag stands behind its task: ./invokew {tasks[0]} {word}" if tasks else ""
    flags = {f"--{name}" for task in _before(word, typed) for name in _flags(task)}
    found = next((flag for each in _candidates(word, typed) if (flag := _with_two(each)) in flags), "")
    return f"a flag begins with two `-`: {found}" if found else ""


def _before(word: str, typed: Sequence[str]) -> Sequence[str]:
    """Return the words in front of one that begins with a letter: elsewhere it is no flag; all words for another."""
    places = [place for place, each in enumerate(typed) if each.partition("=")[0] == word]
    return typed[: places[0]] if places and word[0] not in _DASHES else typed


def _flags(task: str) -> set[str]:
    return {flag.name for flag in known()[task].flags} if task in known() else set()


def _after_equals(word: str, typed: Sequence[str]) -> int:
    """Return the place of a word behind `--flag =`; 0 for another."""
    places = (place for place, each in enumerate(typed) if each == word and place > 1)
    return next((place for place in places if typed[place - 1] == "=" and typed[place - 2].startswith("--")), 0)


def _candidates(word: str, typed: Sequence[str]) -> list[str]:
    """Return the word, and for one letter those words behind a single dash that a parser split into letters."""
    if not re.fullmatch(r"-\w", word):
        return [word]
    return [each for each in typed if re.match(r"-\w\w", each) and word[1] in each]


def _with_two(word: str) -> str:
    return f"--{word.partition('=')[0].lstrip(_DASHES)}"


def owners(flag: str) -> str:
    """Return which tasks take a flag that the task in question does not, as advice; empty for none, or for many."""
    found = [task for task in known() if flag.removeprefix("--") in _flags(task)]
    return f"it is a flag of {', '.join(found)}" if 0 < len(found) <= _FEW else ""


def no_task(word: str, typed: Sequence[str]) -> str:
    """Return what is meant by `help`, and by a file or a card without a flag, as advice; empty for another word.

    Args:
        word: what is no task.
        typed: the words of the command line.
    """
    if word == "help":
        return "./invokew lists the tasks, ./invokew --help TASK explains one"
    if not re.search(r"[.\d]", word):
        return ""
    before = typed[: typed.index(word)] if word in typed else []
    flags = _flags(next((each for each in reversed(before) if each in known()), ""))
    if Path(word).suffix:
        return f"a file stands behind its flag: --data {shlex.quote(word)}" if "data" in flags else ""
    if "gpu" in flags and re.search(r"\d", word):
        return f"a card stands behind its flag: --gpu {shlex.quote(word)}"
    return ""
