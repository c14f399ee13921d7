"""Options of the tasks that show what the matrix knows, and write what is committed."""

from __future__ import annotations

from dataclasses import dataclass

from rocmatrix.cli.options.common import Axes
from rocmatrix.runtime.option import option, positional


@dataclass(frozen=True, kw_only=True)
class Cell(Axes):
    """Options of `cell`."""

    action: str = positional("add")


@dataclass(frozen=True, kw_only=True)
class Explain(Axes):
    """Options of `explain`."""

    python: str = option("Python version, such as 3.12")
    json: bool = option("print the argument as JSON, for programs", default=False)


@dataclass(frozen=True, kw_only=True)
class Outdated:
    """Options of `outdated`."""

    statements: bool = option("list every statement instead, with its sources and its age, oldest first", default=False)
    online: bool = option(
        "ask the indexes of the recommended cells as well; one that does not answer is only named", default=False
    )
    json: bool = option("print it as JSON, for programs", default=False)


@dataclass(frozen=True, kw_only=True)
class Lock:
    """Options of `lock`."""

    cell: str = option("one cell (default: every release that cells use)")
    all: bool = option("every release with every Python it was built for", default=False)
    upgrade: bool = option("take the newest versions; recorded ones are kept otherwise", default=False)
