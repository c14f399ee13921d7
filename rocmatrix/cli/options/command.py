"""A command as data: its name, help, options and body, written together where it is defined.

    @command(Topology, about="Draw cards, the links between them, and NUMA nodes.")
    def topology(args: Topology) -> None: ...

Both command lines are made of this table: the tasks of `./invokew` (`invoke_tasks`) and `python -m rocmatrix`
(`argparse_program`). The trainer states the options of its own commands (`python -m trainer options`, kept in
options.json by `./invokew render`), so that each is written once, where it works.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeVar

from rocmatrix.cli import commands
from rocmatrix.cli.options.common import JobOptions, Kept
from rocmatrix.runtime.console import edge
from rocmatrix.runtime.option import Option, options_of
from rocmatrix.runtime.paths import TRAINER_OPTIONS
from rocmatrix.runtime.registry import modules

Body = TypeVar("Body", bound=Callable[..., None])
TrainerOptions = Mapping[str, Any]  # options of the trainer that were typed: name in Python to value
NUMBERS: Mapping[type, str] = {int: "a whole number", float: "a number"}
METAVARS: Mapping[type, str] = {str: "TEXT", list: "TEXT", int: "INT", float: "FLOAT", bool: ""}
_KINDS: Mapping[str, tuple[type, Any]] = {"flag": (str, False), "text": (str, ""), "list": (list, None)}
_COMMANDS: dict[str, Command] = {}


@dataclass(frozen=True, kw_only=True)
class Flag:
    """An option as it is typed: `name` has dashes within. `kind`: str, int, float, bool (a switch), list (repeated).

    `metavar` stands for its value in help; a switch has none. A `positional` one may be typed without its name, and has
    no default. One whose value is `optional` is True where it is typed alone: a switch of the trainer, which also takes
    true or false. The trainer's command does not run without one that is `required`.
    """

    name: str
    help: str
    kind: type
    default: Any
    metavar: str
    short: str = ""
    positional: bool = False
    optional: bool = False
    required: bool = False

    @property
    def key(self) -> str:
        """The name under which its value is handed on: with underscores."""
        return self.name.replace("-", "_")


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command. `trainer` names the trainer's command whose options it also takes, `job` the options of its job."""

    name: str
    about: str
    body: Callable[..., None]
    options: type
    trainer: str = ""
    job: type[JobOptions] | None = None
    examples: tuple[str, ...] = ()

    @cached_property
    def own(self) -> Mapping[str, Option]:
        """The options that are declared here rather than by the trainer, by their names in Python."""
        return {**(options_of(self.job) if self.job else {}), **options_of(self.options)}

    @cached_property
    def described(self) -> Mapping[str, Mapping[str, Any]]:
        """What the trainer states about its options that this command takes, by name; own ones take their place."""
        return {each["name"]: each for each in trainer_options(self.trainer) if each["name"] not in self.own}

    @cached_property
    def flags(self) -> tuple[Flag, ...]:
        """Every option: the command's own, then the trainer's."""
        return (*map(_declared, self.own.values()), *map(_foreign, self.described.values()))

    def run(self, typed: Mapping[str, Any]) -> None:
        """Call the body with what was typed; the file that a person named for the evidence is used from here on."""
        arguments = self.arguments(typed)
        for each in arguments:
            if isinstance(each, Kept):
                edge(each.use)()
        self.body(*arguments)

    def arguments(self, typed: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return what the body is called with, from values under their flags' `key`; others have their defaults.

        A job (`JobRequest`) comes first where the command has one, then an object of `options`, then a mapping of the
        trainer's options where these are no job's.
        """
        names = {each.typed: name for name, each in self.own.items()}
        known = {names.get(key, key): value for key, value in typed.items()}
        args, foreign = _object(self.options, known), {key: known[key] for key in known if key not in self.own}
        if self.job:
            shared = {key: value for key, value in known.items() if key not in options_of(self.options)}
            return _object(self.job, shared).job_request(self.trainer, foreign), args
        return (args, foreign) if self.trainer else (args,)


def command(
    options: type,
    *,
    about: str,
    name: str = "",
    trainer: str = "",
    job: type[JobOptions] | None = None,
    examples: tuple[str, ...] = (),
) -> Callable[[Body], Body]:
    """Return the decorator that registers a function as the body of a command, with readable errors at its edge.

    It raises ValueError for a name that is taken.

    Args:
        options: dataclass whose fields are the options, each made by `option` or `positional`.
        about: help; its first line stands in the list of commands.
        name: what is typed; empty for the function's name.
        trainer: the trainer's command whose options are taken, too; empty for none.
        job: the options of a job that the body runs; None for no job.
        examples: of how it is called, for the end of its help.
    """

    def register(body: Body) -> Body:
        guarded = edge(body)
        typed = name or body.__name__
        if typed in _COMMANDS:
            raise ValueError(f"{typed} is the command of {_COMMANDS[typed].body.__module__}")
        _COMMANDS[typed] = Command(
            name=typed, about=about, body=guarded, options=options, trainer=trainer, job=job, examples=examples
        )
        return guarded

    return register


@cache
def known() -> Mapping[str, Command]:
    """Return every command of every topic in `rocmatrix.cli.commands`, by name."""
    for _ in modules(commands):
        pass  # each registers its own
    return dict(sorted(_COMMANDS.items()))


@cache
def trainer_options(name: str) -> tuple[dict[str, Any], ...]:
    """Return the options of a command of the trainer: name (with underscores), help, and kind: text, flag or list.

    Those of `train` and `features` also have the type of their value, the section of help, and whether it is common.
    """
    known: list[dict[str, Any]] = json.loads(TRAINER_OPTIONS.read_text(encoding="utf-8"))
    return tuple(option for option in known if option["command"] == name)


def dashed(word: str, known: Collection[str]) -> str:
    """Return a word of the command line; a known flag that was typed with underscores gets its dashes."""
    flag, equals, value = word.partition("=")
    written = flag.replace("_", "-")
    return written + equals + value if flag.startswith("--") and written in known else word


def _declared(each: Option) -> Flag:
    name = each.typed.replace("_", "-")
    if each.required:
        return Flag(name=name, help=each.help, kind=str, default=None, metavar=each.metavar, positional=True)
    kind, default = (list, None) if each.repeated else (type(each.default), each.default)
    metavar = each.metavar or METAVARS[kind]
    return Flag(name=name, help=_with_default(each), kind=kind, default=default, metavar=metavar, short=each.short)


def _with_default(each: Option) -> str:
    """Return the help of an option; a default that it does not state itself is added."""
    states_it = "default" in each.help or each.default in ("", 0, False, ())
    return each.help if states_it else f"{each.help} (default: {each.default})"


def _foreign(each: Mapping[str, Any]) -> Flag:
    kind, default = _KINDS[each["kind"]]
    name, metavar = each["name"].replace("_", "-"), each.get("type", METAVARS[kind])
    return Flag(
        name=name,
        help=each["help"],
        kind=kind,
        default=default,
        metavar=metavar,
        optional=each["kind"] == "flag",
        required=bool(each.get("required")),
    )


def _object(declared: type, known: Mapping[str, Any]) -> Any:
    """Return an object of a dataclass of options."""
    return declared(**{name: known[name] for name in options_of(declared) if name in known})
