"""Recipes: named settings in YAML, read with the line of every mistake, and joined with what was typed.

A recipe holds sections, and these the settings of TrainConfig; `recipes/` has those that come with the project.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.config.name_list import written
from trainer.config.sections.decoder import defaults_of
from trainer.config.sections.run import BY_HOST
from trainer.config.setting import Setting, shown
from trainer.config.train import TrainConfig, settings
from trainer.runtime.errors import TrainerError, suggestion
from trainer.runtime.paths import RECIPES

if TYPE_CHECKING:
    import yaml

NOT_IN_RECIPE = (BY_HOST, "run.run", "run.output", "run.resume")  # with these it would not fit the next run


@dataclass(frozen=True, kw_only=True)
class Given:
    """One given value, and where: a flag, `--set`, or a line of a recipe."""

    name: str
    value: Any
    where: str


def resolve(typed: Mapping[str, Any]) -> TrainConfig:
    """Return the configuration of what was typed: flags by name, and perhaps `recipe` and a list `set`.

    Raises:
        TrainerError: RM502 to RM505, naming the file and line where there is one.
    """
    flags = [
        Given(name=name, value=value, where="flag") for name, value in typed.items() if name not in ("recipe", "set")
    ]
    read = from_recipe(find(typed["recipe"])) if "recipe" in typed else []
    top = _without_contradiction([*flags, *(from_assignment(text) for text in typed.get("set", ()))])
    chosen = {given.name: given for given in (*read, *top)}  # the last one of a name wins
    _mixed_precision(chosen)
    values = {name: given.value for name, given in chosen.items()}
    for name, value in defaults_of(values).items():
        chosen[name] = Given(name=name, value=value, where="default of --task lm")
    values = {name: given.value for name, given in chosen.items()}
    return TrainConfig.of(**values, origin={name: given.where for name, given in chosen.items()})


def _mixed_precision(chosen: dict[str, Given]) -> None:
    """Turn the familiar flag into `precision: auto`, which picks by evidence; a precision given by name wins."""
    requested = chosen.get("use_mixed_precision")
    if requested and requested.value and "precision" not in chosen:
        chosen["precision"] = Given(name="precision", value="auto", where=f"use_mixed_precision, by {requested.where}")


def find(recipe: str) -> Path:
    """Return the file that `--recipe` means: a path, or the name of one in `recipes/`.

    Raises:
        TrainerError: RM502, naming the nearest recipe.
    """
    for path in (RECIPES / f"{recipe}.yaml", Path(recipe)):
        if path.is_file() and (path.parent == RECIPES or path == Path(recipe)):
            return path
    raise TrainerError("RM502", what=f"there is no recipe {recipe!r}", why=suggestion(recipe, names()))


def names() -> list[str]:
    """Return the names of the recipes that come with the trainer."""
    return sorted(path.stem for path in RECIPES.glob("*.yaml"))


def from_recipe(path: Path) -> list[Given]:
    """Read a recipe.

    Raises:
        TrainerError: RM502 for what is no YAML of sections, RM503 for an unknown key, RM504 for a bad value,
            RM505 for a key that stands there twice; each with its line.
    """
    seen: dict[str, Given] = {}
    for line, key, text in _lines(path):
        where = f"{path}:{line}"
        setting = _known(key, where)
        if setting.name in seen:
            raise TrainerError(
                "RM505", what=f"{key} is given twice", where=where, why=f"first in {seen[setting.name].where}"
            )
        place = f"recipe {path.name}:{line}"
        seen[setting.name] = Given(name=setting.name, value=_value(setting, text, where), where=place)
    return list(seen.values())


def from_assignment(text: str) -> Given:
    """Read `section.name=value` of `--set`.

    Raises:
        TrainerError: RM503 for an unknown key, RM504 for a value that it does not take, or no `=`.
    """
    key, equals, value = text.partition("=")
    if not equals:
        raise TrainerError("RM504", what=f"--set takes section.name=value, not {text!r}")
    setting = _known(key.strip(), "--set")
    return Given(name=setting.name, value=_value(setting, value.strip(), f"--set {key}"), where="--set")


def as_recipe(config: TrainConfig) -> str:
    """Return the settings as a recipe that repeats them, without what belongs to one run or one host alone."""
    sections: dict[str, list[str]] = {}
    values = config.complete()
    for setting in keys().values():
        section, _, name = setting.key.partition(".")
        value = values[setting.name]
        if (
            setting.key not in NOT_IN_RECIPE
            and setting.recorded(value)
            and not (isinstance(value, Path) and value == setting.default)
        ):
            text = _written(setting, value)
            line = f"  {name}: {text if value is None or value == () else _quoted(text)}"
            sections.setdefault(section, []).append(line)
    return "".join(f"{section}:\n" + "\n".join(lines) + "\n" for section, lines in sections.items())


def _written(setting: Setting, value: Any) -> str:
    """Return a value as `setting` reads it: no names are an empty text, no hidden layers are `none`."""
    if value == ():
        return "none" if setting.name == "hidden_layers" else '""'
    return "null" if value is None else shown(value)


def keys() -> dict[str, Setting]:
    """Return the settings that recipes and `--set` may give, by section.name."""
    return {each.key: each for each in settings().values() if each.key.partition(".")[0] not in NOT_IN_RECIPE}


def _quoted(text: str) -> str:
    import json

    inner = text[:1].isalnum() and text.replace(",", "").replace(".", "").replace("-", "").isalnum()
    return text if inner and text.lower() != "null" else json.dumps(text, ensure_ascii=False)


def _known(key: str, where: str) -> Setting:
    known = keys()
    if key not in known:
        same_name = [each for each in known if each.partition(".")[2] == key.rpartition(".")[2]]
        why = f"did you mean {same_name[0]}?" if same_name else suggestion(key, known)
        raise TrainerError("RM503", what=f"there is no setting {key!r}", where=where, why=why)
    return known[key]


def _value(setting: Setting, text: str | None, where: str) -> Any:
    if text is None:
        if setting.default is None:
            return None
        raise TrainerError("RM504", what=f"{setting.key} has no value", where=where)
    try:
        return setting.parse(text)
    except ArgumentTypeError as error:
        raise TrainerError("RM504", what=f"{setting.key}: {error}", where=where) from None


def _without_contradiction(given: Iterable[Given]) -> list[Given]:
    first: dict[str, Given] = {}
    for each in given:
        other = first.setdefault(each.name, each)
        if other.value != each.value:
            what = f"{each.name} is {shown(other.value)} by {other.where}, and {shown(each.value)} by {each.where}"
            raise TrainerError("RM505", what=what)
    return list(first.values())


def _lines(path: Path) -> Iterator[tuple[int, str, str | None]]:
    """Yield line, section.name and the text of each value; None where it is null."""
    root = _document(path)
    for section, body in _pairs(root, path, "sections"):
        for name, node in _pairs(body, path, f"settings below {section.value}"):
            yield name.start_mark.line + 1, f"{section.value}.{name.value}", _text(node, path)


def _document(path: Path) -> yaml.Node | None:
    import yaml

    try:
        return yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (yaml.MarkedYAMLError, yaml.reader.ReaderError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise TrainerError("RM502", what=getattr(error, "problem", None) or str(error), where=where) from None
    except RecursionError:
        raise TrainerError("RM502", what="it is nested deeper than sections and settings", where=str(path)) from None


def _pairs(node: yaml.Node | None, path: Path, what: str) -> list[tuple[Any, Any]]:
    import yaml

    if node is None or (isinstance(node, yaml.ScalarNode) and node.value == ""):
        return []
    if not isinstance(node, yaml.MappingNode):
        where = f"{path}:{node.start_mark.line + 1}"
        raise TrainerError("RM502", what=f"here should stand {what}, as `name: value`", where=where)
    pairs: list[tuple[Any, Any]] = node.value
    return pairs


def _text(node: yaml.Node, path: Path) -> str | None:
    import yaml

    where = f"{path}:{node.start_mark.line + 1}"
    if isinstance(node, yaml.ScalarNode):
        return None if node.tag == "tag:yaml.org,2002:null" else str(node.value)
    if isinstance(node, yaml.SequenceNode) and all(isinstance(item, yaml.ScalarNode) for item in node.value):
        return written(item.value for item in node.value)
    raise TrainerError("RM504", what="a value is a word, a number or a list of these", where=where)
