"""How tasks take their options: with dashes or underscores, under words of Python's own, and the trainer's."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any

from invoke.parser.argument import Argument
from invoke.tasks import Task

from rocmatrix.cli.number_option import checked
from rocmatrix.runtime.console import edge
from rocmatrix.runtime.paths import TRAINER_OPTIONS

if TYPE_CHECKING:
    from rocmatrix.jobs.job import Wanted
    from rocmatrix.matrix.resolver.resolve import Request

TYPED = {"where": "in", "companions": "with", "target": "for", "take": "import", "listing": "list"}

REQUEST = {
    "rocm": "ROCm version, such as 6.3",
    "torch": "PyTorch version, such as 2.7.1",
    "gpu": "gfx1100, a card such as 'RX 7900 XT', cpu, or auto: this machine's card",
    "cell": "a cell by name; `./invokew cells` lists them",
    "python": "Python version of the image, such as 3.12 (default: the usual one, or the one that is locked)",
    "companions": "packages to add, such as peft,accelerate (matrix/companions.yaml lists them)",
    "base": "another base image, for a mirror or an air-gapped site",
    "force": "override a rule that calls the request broken; the rule is printed, and named in the image's label",
    "dry_run": "print exactly what would run, and run nothing",
}
EVIDENCE = "the file of the evidence (default: ROCMATRIX_EVIDENCE, else .rocmatrix/evidence.db)"
JOB = {
    "where": "container, native, or auto: the image where an AMD card and an engine are found",
    "wheelhouse": "a folder that holds the locked wheels already",
    "cards": "cards by number, such as 0,1 (default: all that the cell is built for)",
    "expandable_segments": "let the allocator's segments grow, by the variable this torch reads; off by default",
}


class Verbatim(str):
    """A flag's name that invoke leaves as it is; it would turn underscores into dashes."""

    def lstrip(self, chars: str | None = None, /) -> Verbatim:
        return self

    rstrip = lstrip

    def replace(self, *_: Any) -> Verbatim:
        return self


class FlagTask(Task[Any]):
    """A task whose options may also be written with underscores, and some of which have another name when typed.

    `in`, `with`, `for` and `import` are words of Python's own, so no parameter can have these names.
    """

    def own(self, body: Callable[..., Any]) -> dict[str, Parameter]:
        """Return the options that are declared here rather than by the trainer, by their names in Python."""
        return dict([*signature(body).parameters.items()][1:])

    def get_arguments(self, *args: Any, **kwargs: Any) -> list[Argument]:
        arguments = super().get_arguments(*args, **kwargs)
        own = self.own(self.body)  # an option of the trainer keeps its name, whatever it is
        for argument in arguments:
            argument.names = tuple(TYPED.get(name, name) if name in own else name for name in argument.names)
            argument.names += tuple(Verbatim(name.replace("-", "_")) for name in argument.names if "-" in name)
        return [checked(argument, task=self.name) for argument in arguments]

    def for_body(self, typed: dict[str, Any]) -> dict[str, Any]:
        """Return what the body is called with for the options that were typed."""
        names = {TYPED.get(name, name): name for name in self.own(self.body)}
        return {names.get(name, name): value for name, value in typed.items()}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **self.for_body(kwargs))


class TrainerTask(FlagTask):
    """A task that also takes every option of the trainer's command of its name, handed on in `options`.

    The trainer states what it takes (`python -m trainer options`, kept in trainer_options.json by
    `./invokew render`), so that an option is written down once, where it works.
    """

    command = ""  # the trainer's command, where it has another name than the task
    examples: tuple[str, ...] = ()  # of how it is called, for the end of its help

    def described(self) -> dict[str, dict[str, Any]]:
        """Return what the trainer states about its options by name, for help in sections."""
        return {option["name"]: option for option in self._foreign(self.body)}

    def own(self, body: Callable[..., Any]) -> dict[str, Parameter]:
        return {name: parameter for name, parameter in super().own(body).items() if name != "options"}

    def argspec(self, body: Callable[..., Any]) -> Signature:
        kind, defaults = Parameter.KEYWORD_ONLY, {"flag": False, "text": "", "list": None}
        foreign = [Parameter(o["name"], kind, default=defaults[o["kind"]]) for o in self._foreign(body)]
        return Signature([parameter.replace(kind=kind) for parameter in self.own(body).values()] + foreign)

    def get_arguments(self, *args: Any, **kwargs: Any) -> list[Argument]:
        foreign = self._foreign(self.body)
        self.help = {option["name"]: option["help"] for option in foreign} | dict(self.help)
        self.iterable = {*self.iterable, *(option["name"] for option in foreign if option["kind"] == "list")}
        return super().get_arguments(*args, **kwargs)

    def _foreign(self, body: Callable[..., Any]) -> list[dict[str, Any]]:
        own = self.own(body)
        return [option for option in trainer_options(self.command or _typed(body)) if option["name"] not in own]

    def for_body(self, typed: dict[str, Any]) -> dict[str, Any]:
        own, known = self.own(self.body), super().for_body(typed)
        options = {name: value for name, value in known.items() if name not in own}
        return {name: value for name, value in known.items() if name in own} | {"options": options}


class JobTask(TrainerTask):
    """A task that also takes the options that `wanted` does, and whose body is handed one `Wanted` for them all.

    `shared` names those that are taken; the body's own parameter of such a name stands in its place.
    """

    shared = (*REQUEST, *JOB)

    def own(self, body: Callable[..., Any]) -> dict[str, Parameter]:
        given = {name: parameter for name, parameter in super().own(body).items() if name != "wanted"}
        return {name: signature(wanted).parameters[name] for name in self.shared} | given

    def get_arguments(self, *args: Any, **kwargs: Any) -> list[Argument]:
        self.help = {name: text for name, text in (REQUEST | JOB).items() if name in self.shared} | dict(self.help)
        return super().get_arguments(*args, **kwargs)

    def for_body(self, typed: dict[str, Any]) -> dict[str, Any]:
        known, given = super().for_body(typed), signature(self.body).parameters
        asked = {name: value for name, value in known.items() if name not in given}
        options = asked.pop("options")
        job = wanted(self.command or self.name, options, **asked)
        return {name: value for name, value in known.items() if name in given} | {"wanted": job}


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


def request_of(rocm: str, torch: str, gpu: str, cell: str, *, python: str = "", companions: str = "") -> Request:
    """Return the axes as a request, with the packages to add; an empty axis is open."""
    from rocmatrix.matrix.resolver.resolve import Request

    return Request(
        rocm=rocm or None,
        torch=torch or None,
        gpu=gpu or None,
        cell=cell or None,
        python=python or None,
        companions=tuple(word.strip() for word in companions.split(",") if word.strip()),
    )


@edge
def wanted(
    program: Any,
    options: dict[str, Any],
    *,
    rocm: str = "",
    torch: str = "",
    gpu: str = "",
    cell: str = "",
    python: str = "",
    companions: str = "",
    where: str = "auto",
    base: str = "",
    wheelhouse: str = "",
    cards: str = "",
    expandable_segments: bool = False,
    dry_run: bool = False,
    force: bool = False,
) -> Wanted:
    """Return a job as a person asked for it; the names and defaults here are those of the options of a `JobTask`.

    Raises RM404 where numbers are none.
    """
    from rocmatrix.containers.device_selection import card_numbers
    from rocmatrix.jobs.job import Wanted

    return Wanted(
        program=program,
        request=request_of(rocm, torch, gpu, cell, python=python, companions=companions),
        where=where,
        options=options,
        base=base or None,
        dry_run=dry_run,
        force=force,
        wheelhouse=wheelhouse or None,
        cards=card_numbers(cards),
        expandable_segments=expandable_segments,
    )
