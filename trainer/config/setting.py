"""A setting: a field of a section with its help, its reader, and what resuming a run does with it.

A section is a frozen dataclass whose fields are settings, `Annotated[type, Flag(...)]`, or further sections. Every
setting has the name of its field and is the flag of that name; names are unique over all sections of a program.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, cast, get_type_hints

from trainer.config.name_list import written
from trainer.config.parsing import Reader, text

Section = TypeVar("Section")


class OnResume(StrEnum):
    """What resuming an unfinished run does with a setting.

    FIXED: it decides the weights, so another value than the run began with is refused with RM551.
    LENGTH: it decides how long the run is: the run's own unless given. Where the learning rate of every step depends on
        the number of all steps it is fixed.
    KEPT: the run's own unless given, and may be another one.
    ROUNDING: as KEPT, and another value is reported: it rounds differently from here on.
    NEW: of this attempt alone: what is given now, else the default.
    """

    FIXED = "fixed"
    LENGTH = "length"
    KEPT = "kept"
    ROUNDING = "rounding"
    NEW = "new"


@dataclass(frozen=True)
class Flag:
    """The annotation of a setting's field.

    Args:
        help: one line for people; the choices are added by the reader's metavar, the default by the program.
        parse: reads the text of a flag or a recipe.
        recipe: the field's place in a recipe and in `--set recipe.name=value`.
        resume: what resuming a run does with it.
        common: `--help` lists it; the others are listed by `--help=all`.
        sparse: recorded only where it is not the default, as runs of earlier trainers do not have it.
        alike: has to be the same on all ranks although a resume may change it; what is FIXED or LENGTH always has to.
    """

    help: str
    parse: Reader = text
    recipe: str = "train"
    resume: OnResume = OnResume.NEW
    common: bool = False
    sparse: bool = False
    alike: bool = False


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One field of a section as people meet it; `title` is the section's."""

    name: str
    title: str
    default: Any
    is_switch: bool
    about: Flag

    @property
    def flag(self) -> str:
        """The setting's flag, with dashes."""
        return "--" + self.name.replace("_", "-")

    @property
    def key(self) -> str:
        """The setting's place in a recipe: section.name."""
        return f"{self.about.recipe}.{self.name}"

    @property
    def resume(self) -> OnResume:
        """What resuming a run does with it."""
        return self.about.resume

    @property
    def sparse(self) -> bool:
        """Whether only other values than the default are recorded."""
        return self.about.sparse

    def parse(self, text: str) -> Any:
        """Return the value of a text; raises ArgumentTypeError."""
        return self.about.parse(text)

    def recorded(self, value: Any) -> bool:
        """Return whether metadata and recipes hold this value: all do, but for defaults of sparse settings."""
        return not self.sparse or value != self.default


def shown(value: Any) -> str:
    """Return a value as a flag would take it."""
    if isinstance(value, tuple):
        return written(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def settings_of(*sections: Any) -> dict[str, Setting]:
    """Return the settings of sections and of those within them by name, in the order of their fields."""
    return {each.name: each for section in sections for each in _settings_of(section)}


@cache
def _settings_of(section: Any) -> tuple[Setting, ...]:
    hints = get_type_hints(section, include_extras=True)
    found: list[Setting] = []
    for each in fields(section):
        hint = hints[each.name]
        if is_dataclass(hint):
            found += _settings_of(cast(Any, hint))
        elif about := _flag_of(hint):
            title = _title(section, each.name)
            switch = hint.__origin__ is bool
            found.append(Setting(name=each.name, title=title, default=each.default, is_switch=switch, about=about))
    return tuple(found)


def _flag_of(hint: Any) -> Flag | None:
    return next((each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Flag)), None)


def _title(section: Any, name: str) -> str:
    """Return the title of the class, of `section` and its bases, that declares the field."""
    owner = next(each for each in section.__mro__ if name in inspect.get_annotations(each))
    return str(owner.title)


def built(section: type[Section], values: Mapping[str, Any]) -> Section:
    """Return a section made of values by name; what is not among them is the default, what is not its own is unused."""
    hints = _nested(cast(Any, section))
    made = {name: built(hint, values) for name, hint in hints.items()}
    own = {each.name for each in fields(section) if each.name not in hints}  # type: ignore[arg-type]
    return section(**made, **{name: value for name, value in values.items() if name in own})


@cache
def _nested(section: Any) -> dict[str, type[Any]]:
    hints = get_type_hints(section, include_extras=True)
    return {each.name: hints[each.name] for each in fields(section) if is_dataclass(hints[each.name])}


def values_in(sections: Iterable[Any]) -> dict[str, Any]:
    """Return the values of sections, and of those within them, by the names of their settings."""
    return dict(pair for section in sections for pair in _pairs(section))


def _pairs(section: Any) -> Iterator[tuple[str, Any]]:
    for each in fields(section):
        value = getattr(section, each.name)
        if is_dataclass(value) and each.name in _nested(cast(Any, type(section))):
            yield from _pairs(value)
        else:
            yield each.name, value
