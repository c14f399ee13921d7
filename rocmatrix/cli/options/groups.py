"""The tasks in groups, by what a person wants to do; `./invokew` alone prints them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping

from rocmatrix.cli.options import task_help

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Start here": ("demo", "doctor", "train", "watch"),
    "Versions": ("explain", "cells", "matrix", "outdated", "topology"),
    "Images": ("build", "prove", "smoke", "bench", "run", "devcontainer", "submit"),
    "After training": ("predict", "report", "compress"),
    "Bars": ("features",),
    "Language models": ("plan", "generate", "chat", "evaluate", "merge", "gguf", "show-data", "convert-recipe"),
    "When something fails": ("diagnose", "bisect"),
    "Evidence": ("evidence", "dashboard", "nightly"),
    "Develop rocmatrix": ("test", "lint", "render", "lock", "pins", "cell"),
}
REST = "Others"


def grouped(summaries: Mapping[str, str]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each group with its tasks and their summaries; what is in no group comes last.

    Args:
        summaries: what each task is for, by its name.
    """
    placed = {name for names in GROUPS.values() for name in names}
    rest = tuple(name for name in summaries if name not in placed)
    for title, names in (*GROUPS.items(), (REST, rest)):
        if found := [(name, _short(summaries[name])) for name in names if name in summaries]:
            yield title, found


def _short(summary: str) -> str:
    return re.split(r"[:;]", summary)[0].rstrip(".")


def text(summaries: Mapping[str, str], *, width: int) -> str:
    """Return the groups as lines.

    Args:
        summaries: what each task is for, by its name.
        width: columns of the terminal.
    """
    ends = textwrap.wrap("./invokew TASK --help explains one; docs/commands.md has examples.", width)
    return task_help.in_sections("Usage: ./invokew TASK [--options]", "", [*grouped(summaries)], ends=ends, width=width)
