"""The command convert-recipe: a recipe of torchtune as one of this trainer, with what could not be carried over."""

from __future__ import annotations

import os
import re
from argparse import ArgumentTypeError
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainer.analysis.language.torchtune_keys import OTHER_TRAINING, Left, relied_on, rule_of
from trainer.config.recipe import from_recipe, keys
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import emit, say

REFERENCE = re.compile(r"\$\{([^${}]+)\}")
MOST_REFERENCES = 8  # within one another
NEEDED = ("model", "optimizer")


@dataclass(frozen=True, kw_only=True)
class Line:
    """A key of the recipe with its value, what it became, and why."""

    key: str
    value: Any
    settings: Mapping[str, Any]
    why: str


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """All keys of a recipe, in one of two lists, and the settings that they make.

    added: keys without a value in the recipe, with torchtune's default, where the trainer's is another.
    """

    carried: tuple[Line, ...]
    left: tuple[Line, ...]
    added: tuple[Line, ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """The settings by name, with the task."""
        made: dict[str, Any] = {"task": "lm"}
        for line in (*self.carried, *self.added):
            made |= line.settings
        return made


def leaves(tree: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every key that has no keys below it, dotted, with its value; an empty mapping is a value."""
    if isinstance(tree, dict) and tree:
        for name, below in tree.items():
            yield from leaves(below, f"{prefix}.{name}" if prefix else str(name))
    else:
        yield prefix, tree


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a named pipe without a writer counts as empty, where `open` would wait for one."""
    opened = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(opened, True)
    return opened


def read(path: Path) -> dict[str, Any]:
    """Return a recipe's keys and values, references to other keys put in.

    Raises:
        TrainerError: RM721 for what is no YAML mapping, RM722 for a recipe of another kind of training, RM723 for a
            reference to a key that is not there.
    """
    import yaml

    try:
        with open(path, encoding="utf-8", opener=_without_waiting) as file:
            tree = yaml.safe_load(file)
        flat = dict(leaves(tree))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:  # ValueError: a date of no calendar, too
        raise TrainerError("RM721", what=str(error).splitlines()[0], where=str(path)) from None
    if not isinstance(tree, dict):
        raise TrainerError("RM721", what="the file is no mapping of keys to values", where=str(path))
    _require_training(tree, path)
    network = rule_of("model._component_")(flat.get("model._component_"), flat)
    if isinstance(network, Left):  # without it the rest would train something else
        raise TrainerError("RM722", what=network.why, where=str(path))
    return {key: _put_in(value, flat, f"{path}: {key}") for key, value in flat.items()}


def _require_training(tree: Mapping[str, Any], path: Path) -> None:
    found = next((key for key in OTHER_TRAINING if key in tree), None)
    if found:
        raise TrainerError("RM722", what=f"{found}: {OTHER_TRAINING[found]}", where=str(path))
    missing = [name for name in NEEDED if name not in tree]
    if missing:
        raise TrainerError("RM722", what=f"it has no {missing[0]}, and so trains nothing", where=str(path))


def _put_in(value: Any, flat: Mapping[str, Any], where: str, deep: int = 0) -> Any:
    """Return a value with the values of the keys that it names as ${key}; `deep` counts references and lists."""
    if not isinstance(value, list) and not (isinstance(value, str) and REFERENCE.search(value)):
        return value
    if deep > MOST_REFERENCES:
        raise TrainerError("RM723", what=f"references go in a circle, or more than {MOST_REFERENCES} deep", where=where)
    if isinstance(value, list):
        return [_put_in(each, flat, where, deep + 1) for each in value]

    def named(found: re.Match[str]) -> Any:
        if found[1] not in flat:
            raise TrainerError("RM723", what=f"there is no key {found[1]!r}", where=where)
        return _put_in(flat[found[1]], flat, where, deep + 1)

    whole = REFERENCE.fullmatch(value)
    return named(whole) if whole else REFERENCE.sub(lambda found: str(named(found)), value)


def converted(recipe: Mapping[str, Any]) -> Conversion:
    """Return what a recipe's keys become, by dotted key. Every key is in one of the two lists."""
    carried, left = [], []
    for key, value in recipe.items():
        became = _became(key, value, recipe)
        if isinstance(became, Left):
            left.append(Line(key=key, value=value, settings={}, why=became.why))
        else:
            carried.append(Line(key=key, value=value, settings=became.settings, why=became.note))
    found = Conversion(carried=tuple(carried), left=tuple(left))
    defaults = relied_on(recipe, adapter=found.settings.get("adapter", "none") != "none")
    return replace(found, added=tuple(_default(key, value, recipe) for key, value in defaults.items()))


def _default(key: str, value: Any, recipe: Mapping[str, Any]) -> Line:
    return Line(key=key, value=value, settings=_became(key, value, recipe).settings, why="torchtune's default")


def _became(key: str, value: Any, recipe: Mapping[str, Any]) -> Any:
    """Return what a key becomes; a value that the setting does not take is left out, with its limits as the reason."""
    try:
        became = rule_of(key)(value, recipe)
        if not isinstance(became, Left):
            known = {each.name: each for each in keys().values()}
            for name, given in became.settings.items():
                known[name].parse(_text(given))
        return became
    except (TypeError, ValueError, OverflowError, ArgumentTypeError) as error:
        return Left(why=f"the value is not taken: {error}")


def _text(value: Any) -> str:
    """Return a value as a recipe writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def written(conversion: Conversion, source: str) -> str:
    """Return the recipe as YAML, with what was left out as comments.

    Args:
        source: name of the recipe that was converted.
    """
    import json

    names = {each.name: each.key for each in keys().values()}
    sections: dict[str, list[str]] = {}
    for name, value in conversion.settings.items():
        section, _, short = names[name].partition(".")
        sections.setdefault(section, []).append(f"  {short}: {json.dumps(_text(value), ensure_ascii=False)}")
    body = "".join(f"{section}:\n" + "\n".join(lines) + "\n" for section, lines in sections.items())
    notes = "".join(f"#   {_one_line(line.key)}: {_one_line(line.value)} -- {line.why}\n" for line in conversion.left)
    return f"# converted from torchtune's {_one_line(source)}\n{body}# left out:\n{notes}"


def _one_line(value: Any) -> str:
    """Return a value or key as a comment can hold it: a line break would end the comment and begin a setting."""
    return " ".join("".join(each if each.isprintable() else " " for each in str(value)).split())


def convert(recipe: Path, output: Path) -> int:
    """Write the recipe and print both lists; return the exit status.

    Args:
        recipe: a YAML file of torchtune.
        output: file to write.

    Raises:
        TrainerError: RM721 to RM723, RM724 where the file is there already.
    """
    conversion = converted(read(recipe))
    if output.exists():
        raise TrainerError("RM724", what="the file to write is there already", where=str(output))
    output.write_text(written(conversion, recipe.name), encoding="utf-8")
    from_recipe(output)  # what was written can be read
    lists = {"carried": conversion.carried, "added": conversion.added, "left": conversion.left}
    emit(
        "converted",
        recipe=recipe.name,
        output=str(output),
        **{name: [each.key for each in of] for name, of in lists.items()},
    )
    for name, lines in lists.items():
        say(f"{name}  {len(lines)} keys")
        for line in lines:
            became = ", ".join(f"{key} {_text(value)}" for key, value in line.settings.items())
            say(
                f"  {_one_line(line.key)}: {_one_line(line.value)}"
                + (f" -> {became}" if became else "")
                + (f"  ({line.why})" if line.why else "")
            )
    say(f"written  {output}: ./invokew train --recipe {output} --data FILE")
    return 0
