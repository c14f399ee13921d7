"""Ranks of a training held against the cards that it is given, wherever their number is named: flag, --set or recipe.

The trainer decides the same way once it runs; here it is decided before an image is built.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import ROOT

KEYS = {"ranks": "ranks.ranks", "device": "run.device"}  # option: section and name in a recipe
MOST_BYTES = 1 << 20


def check(options: Mapping[str, Any], *, cards: int, flag: str = "--ranks") -> None:
    """Raise RM404 for more ranks than cards where no device is named: the trainer refuses it, too, after the build.

    Args:
        options: the trainer's own options as typed, by their names with underscores.
        cards: cards that the run is given; 0 for none, which asks for no card.
        flag: the option that `ranks` was typed with, such as the --processes of a scheduler.
    """
    ranks, source = named(options, "ranks")
    device, _ = named(options, "device")
    shown = flag if source == "--ranks" else f"{source}: ranks"
    if cards and ranks.isascii() and ranks.isdecimal() and int(ranks) > cards and device in ("", "auto"):
        raise RocmatrixError(
            "RM404",
            what=f"{shown} {ranks}, and {cards} card(s) for them",
            why="each rank takes a card of its own; with too few, the trainer refuses to start",
            next=f"Take {flag} {cards} or fewer; or --device cpu.",
        )


def check_of_scheduler(options: Mapping[str, Any], *, processes: int, nodes: int) -> None:
    """Raise RM404 for a typed number of ranks that is not what torchrun starts: on the nodes it would have no effect.

    A recipe's number is for the machine that the recipe is for, and gives way without a word here.

    Args:
        options: the trainer's own options as typed.
        processes: processes that torchrun starts on each node.
        nodes: machines.
    """
    ranks, source = named(options, "ranks")
    if not source.startswith("--") or not ranks.isascii() or not ranks.isdecimal():
        return
    if int(ranks) not in (processes, processes * nodes):
        raise RocmatrixError(
            "RM404",
            what=f"{source} {ranks}, and torchrun starts {processes} rank(s) on each of {nodes} node(s)",
            why="ranks that torchrun has started start no others",
            next=f"Leave it out; --processes {ranks} starts as many on each node.",
        )


def named(options: Mapping[str, Any], name: str) -> tuple[str, str]:
    """Return a setting as text and where it is named; both empty where nothing names it. A flag comes before a recipe.

    Args:
        options: the trainer's own options as typed.
        name: `ranks` or `device`.
    """
    if options.get(name) not in (None, ""):
        return str(options[name]).strip(), f"--{name}"
    assigned = [text.partition("=") for text in _listed(options.get("set"))]
    for key, _, value in reversed(assigned):
        if key.strip() == KEYS[name]:
            return value.strip(), f"--set {KEYS[name]}"
    return next(_of_recipe(str(options.get("recipe") or ""), KEYS[name]), ("", ""))


def _listed(value: Any) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list | tuple) else [str(value)] if value else []


def _of_recipe(recipe: str, key: str) -> Iterator[tuple[str, str]]:
    """Yield a setting of a recipe's file; nothing of one that cannot be read, which the trainer refuses by its line."""
    section, _, name = key.partition(".")
    path = next((path for path in (ROOT / "recipes" / f"{recipe}.yaml", Path(recipe)) if path.is_file()), None)
    if not recipe or path is None:
        return
    try:
        with path.open("rb") as file:
            read = yaml.safe_load(file.read(MOST_BYTES))
    except (OSError, ValueError, yaml.YAMLError):
        return
    settings = read.get(section) if isinstance(read, dict) else None
    if isinstance(settings, dict) and settings.get(name) is not None:
        yield str(settings[name]).strip(), f"recipe {path.name}"
