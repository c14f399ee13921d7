"""An option of the command line as a field of a dataclass: name, type, default and help are written there alone.

    @dataclass(frozen=True, kw_only=True)
    class Build(Request):
        wheelhouse: str = option("a folder that holds the locked wheels already")

`rocmatrix.cli.options.command` makes the flags of a command from such a class, and calls its body with one object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

HELP, TYPED, SHORT, METAVAR = "help", "typed", "short", "metavar"


def option(help: str, *, default: Any = "", typed: str = "", short: str = "", metavar: str = "") -> Any:
    """Return the field of an option.

    Args:
        help: one line for `--help`.
        default: its type is the option's: text, a number, False for a switch, () for one that may be repeated.
        typed: the flag's name where it is a word of Python's own, such as `in`.
        short: the one letter that may be typed for it; empty for none.
        metavar: what stands for its value in help, such as PATH; empty for INT, FLOAT or TEXT by the type.
    """
    return field(default=default, metadata={HELP: help, TYPED: typed, SHORT: short, METAVAR: metavar})


def positional(help: str, *, metavar: str) -> Any:
    """Return the field of a word that is typed without a flag, and that must be there.

    Args:
        help: one line for `--help`.
        metavar: what stands for the word in help, such as RUN.
    """
    return field(metadata={HELP: help, TYPED: "", SHORT: "", METAVAR: metavar})


def one_of(words: Iterable[str]) -> str:
    """Return what stands in help for a value that is one of `words`."""
    return "{" + ",".join(words) + "}"


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option as declared: `name` is the field's, `typed` the flag's with underscores; MISSING has no default."""

    name: str
    typed: str
    help: str
    default: Any
    short: str = ""
    metavar: str = ""

    @property
    def required(self) -> bool:
        """Whether it is a word that must be typed."""
        return self.default is MISSING

    @property
    def repeated(self) -> bool:
        """Whether it may be typed more than once."""
        return isinstance(self.default, tuple)


def options_of(declared: type) -> Mapping[str, Option]:
    """Return the options of a dataclass by their fields' names, in order; fields that are no option are left out."""
    return {each.name: _option(each) for each in fields(declared) if HELP in each.metadata}


def _option(each: Field[Any]) -> Option:
    about = each.metadata
    typed = about[TYPED] or each.name
    return Option(
        name=each.name,
        typed=typed,
        help=about[HELP],
        default=each.default,
        short=about[SHORT],
        metavar=about[METAVAR],
    )


def comma_separated(text: str) -> tuple[str, ...]:
    """Return what commas separate, without blanks."""
    return tuple(word.strip() for word in text.split(",") if word.strip())
