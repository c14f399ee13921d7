"""How tasks take their options: from a dataclass (`rocmatrix.cli.options`), and from the trainer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from inspect import Parameter, Signature
from typing import Any

from invoke.parser.argument import Argument
from invoke.tasks import Task, task

from rocmatrix.cli.number_option import checked
from rocmatrix.cli.options.common import Job, Sent
from rocmatrix.runtime.option import Option, options_of
from rocmatrix.runtime.paths import TRAINER_OPTIONS

TrainerOptions = dict[str, Any]  # options of the trainer that were typed: name in Python to value


class FlagTask(Task[Any]):
    """A task whose options are the fields of a dataclass; its body takes the context and one object of that class."""

    examples: tuple[str, ...] = ()  # of how it is called, for the end of its help

    def __init__(self, body: Callable[..., Any], *args: Any, asks: type, **kwargs: Any) -> None:
        self.asks = asks
        super().__init__(body, *args, **kwargs)

    @property
    def own(self) -> Mapping[str, Option]:
        """The options that are declared here rather than by the trainer, by their names in Python."""
        return options_of(self.asks)

    def argspec(self, body: Callable[..., Any]) -> Signature:
        return _signature(_parameter(name, each) for name, each in self.own.items())

    def get_arguments(self, *args: Any, **kwargs: Any) -> list[Argument]:
        self.help = {name: each.help for name, each in self.own.items()} | dict(self.help)
        self.iterable = {*self.iterable, *(name for name, each in self.own.items() if each.repeated)}
        arguments = super().get_arguments(*args, **kwargs)
        for argument in arguments:  # an option of the trainer keeps its name, whatever it is
            argument.names = tuple(self._typed(name) for name in argument.names)
        return [checked(argument, task=self.name) for argument in arguments]

    def _typed(self, name: str) -> str:
        declared = self.own.get(name.replace("-", "_"))
        return declared.typed.replace("_", "-") if declared else name

    def known(self, typed: Mapping[str, Any]) -> dict[str, Any]:
        """Return what was typed, by the names that the dataclass and the trainer have for it."""
        names = {each.typed: name for name, each in self.own.items()}
        return {names.get(name, name): value for name, value in typed.items()}

    def asked(self, known: Mapping[str, Any], declared: type) -> Any:
        """Return an object of a dataclass of options."""
        return declared(**{name: known[name] for name in options_of(declared) if name in known})

    def for_body(self, typed: dict[str, Any]) -> tuple[Any, ...]:
        """Return what the body is called with for the options that were typed."""
        return (self.asked(self.known(typed), self.asks),)

    def __call__(self, context: Any, **typed: Any) -> Any:
        return super().__call__(context, *self.for_body(typed))


class TrainerTask(FlagTask):
    """A task that also takes every option of the trainer's command of its name, handed on as a mapping.

    The trainer states what it takes (`python -m trainer options`, kept in options.json by `./invokew render`), so that
    an option is written down once, where it works.
    """

    command = ""  # the trainer's command, where it has another name than the task

    def described(self) -> dict[str, dict[str, Any]]:
        """Return what the trainer states about its options by name, for help in sections."""
        return {option["name"]: option for option in self._foreign(self.body)}

    def argspec(self, body: Callable[..., Any]) -> Signature:
        defaults = {"flag": False, "text": "", "list": None}
        foreign = (
            Parameter(each["name"], Parameter.KEYWORD_ONLY, default=defaults[each["kind"]])
            for each in self._foreign(body)
        )
        return _signature([*super().argspec(body).parameters.values(), *foreign])

    def get_arguments(self, *args: Any, **kwargs: Any) -> list[Argument]:
        foreign = self._foreign(self.body)
        self.help = {each["name"]: each["help"] for each in foreign} | dict(self.help)
        self.iterable = {*self.iterable, *(each["name"] for each in foreign if each["kind"] == "list")}
        return super().get_arguments(*args, **kwargs)

    def _foreign(self, body: Callable[..., Any]) -> list[dict[str, Any]]:
        own = self.own
        return [each for each in trainer_options(self.command or _typed(body)) if each["name"] not in own]

    def options(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """Return the trainer's options among those that were typed."""
        own = self.own
        return {name: value for name, value in known.items() if name not in own}

    def for_body(self, typed: dict[str, Any]) -> tuple[Any, ...]:
        known = self.known(typed)
        return self.asked(known, self.asks), self.options(known)


class JobTask(TrainerTask):
    """A task that also takes the options of a job, and whose body is given one `JobRequest` for them all, then its own.

    A task's own option stands in place of a job's of the same name.
    """

    job: type[Sent] = Job

    @property
    def own(self) -> Mapping[str, Option]:
        return {**options_of(self.job), **options_of(self.asks)}

    def for_body(self, typed: dict[str, Any]) -> tuple[Any, ...]:
        known, own = self.known(typed), options_of(self.asks)
        sent = self.asked({name: value for name, value in known.items() if name not in own}, self.job)
        return sent.wanted(self.command or self.name, self.options(known)), self.asked(known, self.asks)


def command(asks: type, *, klass: type[FlagTask] = FlagTask, **facts: Any) -> Callable[[Callable[..., Any]], FlagTask]:
    """Return the decorator of a task whose options are the fields of `asks`.

    Args:
        asks: dataclass whose fields are the options, each made by `option` or `positional`.
        klass: class of the task; TrainerTask and JobTask add the trainer's options and those of a job.
        facts: further keywords of invoke's `task`, such as name or default.
    """
    made: Callable[[Callable[..., Any]], FlagTask] = task(klass=klass, asks=asks, auto_shortflags=False, **facts)
    return made


def _parameter(name: str, each: Option) -> Parameter:
    default = Parameter.empty if each.required else None if each.repeated else each.default
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default)


def _signature(parameters: Any) -> Signature:
    return Signature(list(parameters))


def _typed(body: Callable[..., Any]) -> str:
    """Return a task's name as it is typed, which is the trainer's command: `show-data` for `show_data`."""
    return body.__name__.replace("_", "-")


@cache
def trainer_options(command: str) -> tuple[dict[str, Any], ...]:
    """Return the options of a command of the trainer: name (with underscores), help, and kind: text, flag or list.

    Those of `train` and `features` also have the type of their value, the section of help, and whether it is common.
    """
    known: list[dict[str, Any]] = json.loads(TRAINER_OPTIONS.read_text(encoding="utf-8"))
    return tuple(option for option in known if option["command"] == command)
