"""The tasks. `./invokew --list` names them; each is one call into rocmatrix."""

from typing import Any

from invoke.context import Context
from invoke.parser.argument import Argument
from invoke.tasks import Task, task

TYPED = {"where": "in", "companions": "with"}


class Verbatim(str):
    """A flag's name that invoke leaves as it is; it would turn underscores into dashes."""

    def lstrip(self, chars: str | None = None, /) -> "Verbatim":
        return self

    rstrip = lstrip

    def replace(self, *_: Any) -> "Verbatim":
        return self


class FlagTask(Task[Any]):
    """A task whose options may also be written with underscores, and some of which have another name when typed.

    `in` and `with` are words of Python's own, so no parameter can have these names.
    """

    def get_arguments(self, *args: Any, **kwargs: Any) -> list[Argument]:
        arguments = super().get_arguments(*args, **kwargs)
        for argument in arguments:
            argument.names = tuple(TYPED.get(name, name) for name in argument.names)
            argument.names += tuple(Verbatim(name.replace("-", "_")) for name in argument.names if "-" in name)
        return arguments

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for parameter, typed in TYPED.items():
            if typed in kwargs:
                kwargs[parameter] = kwargs.pop(typed)
        return super().__call__(*args, **kwargs)


REQUEST = {
    "rocm": "ROCm version, such as 6.3",
    "torch": "PyTorch version, such as 2.7.1",
    "gpu": "gfx1100, a card such as 'RX 7900 XT', cpu, or auto: this machine's card",
    "cell": "a cell by name; `./invokew cells` lists them",
    "base": "another base image, for a mirror or an air-gapped site",
    "force": "override a rule that calls the request broken; the rule is printed, and named in the image's label",
    "dry_run": "print exactly what would run, and run nothing",
}
JOB = {"where": "container, native, or auto: the image where an AMD card and an engine are found"}


def _request(rocm: str, torch: str, gpu: str, cell: str) -> Any:
    from rocmatrix.resolve import Request

    return Request(rocm=rocm or None, torch=torch or None, gpu=gpu or None, cell=cell or None)


def _wanted(
    program: Any, request: Any, where: str, options: dict[str, Any], base: str, *, dry_run: bool, force: bool
) -> Any:
    from rocmatrix.job import Wanted

    return Wanted(
        program=program,
        request=request,
        where=where,
        options=options,
        base=base or None,
        dry_run=dry_run,
        force=force,
    )


@task
def cells(c: Context) -> None:
    """List the cells of the matrix: card, ROCm, PyTorch and why."""
    from rocmatrix import commands

    commands.cells()


@task(
    klass=FlagTask,
    auto_shortflags=False,
    help={axis: REQUEST[axis] for axis in ("rocm", "torch", "gpu", "cell")}
    | {"json": "print the argument as JSON, for programs"},
)
def explain(c: Context, rocm: str = "", torch: str = "", gpu: str = "", cell: str = "", json: bool = False) -> None:
    """Argue a verdict: the cell or the refusal, every rule that speaks, and its sources."""
    from rocmatrix import commands

    commands.explain(_request(rocm, torch, gpu, cell), as_json=json)


@task(
    auto_shortflags=False,
    help={"json": "print the grid as JSON, for programs", "html": "write a page with the argument behind each square"},
)
def matrix(c: Context, json: bool = False, html: str = "") -> None:
    """Show every architecture with every release: verdict, cell, lock and recommendation."""
    from pathlib import Path

    from rocmatrix import commands

    commands.matrix(as_json=json, html=Path(html) if html else None)


@task(
    auto_shortflags=False,
    help={
        "online": "ask the indexes of the recommended cells as well; one that does not answer is only named",
        "json": "print it as JSON, for programs",
    },
)
def outdated(c: Context, online: bool = False, json: bool = False) -> None:
    """List expired rules, and releases newer than the recommended ones."""
    from rocmatrix import commands

    commands.outdated(online=online, as_json=json)


@task(help={"check": "change nothing; fail when a file differs from what the matrix renders"})
def render(c: Context, check: bool = False) -> None:
    """Write images/, compose/, the README's tables and docs/errors.md from matrix.yaml."""
    from rocmatrix import commands

    commands.render(check=check)


@task(
    auto_shortflags=False,
    help={
        "cell": "one cell (default: every release that cells use)",
        "all": "every release with every Python it was built for",
        "upgrade": "take the newest versions; recorded ones are kept otherwise",
    },
)
def lock(c: Context, cell: str = "", all: bool = False, upgrade: bool = False) -> None:
    """Resolve the wheels of cells or releases and write them with their hashes to matrix/."""
    from rocmatrix import commands

    commands.lock(cell=cell or None, everything=all, upgrade=upgrade)


@task
def pins(c: Context) -> None:
    """Compile requirements/*.in into hash-locked requirements/*.txt."""
    from rocmatrix import commands

    commands.pins()


@task(
    klass=FlagTask,
    auto_shortflags=False,
    help={
        **REQUEST,
        "wheelhouse": "a folder that holds the locked wheels already",
        "companions": "packages to add, such as peft,accelerate (matrix/companions.yaml lists them)",
        "allow_unlocked": "build a cell without recorded hashes from whatever its index serves, unchecked",
    },
)
def build(
    c: Context,
    rocm: str = "",
    torch: str = "",
    gpu: str = "",
    cell: str = "",
    base: str = "",
    wheelhouse: str = "",
    companions: str = "",
    dry_run: bool = False,
    allow_unlocked: bool = False,
    force: bool = False,
) -> None:
    """Build a cell's image: wheels fetched once and checked, then installed offline."""
    from rocmatrix import commands

    commands.build(
        request=_request(rocm, torch, gpu, cell),
        base=base or None,
        wheelhouse=wheelhouse or None,
        dry_run=dry_run,
        allow_unlocked=allow_unlocked,
        force=force,
        companions=companions,
    )


@task(
    klass=FlagTask,
    auto_shortflags=False,
    help={
        **REQUEST,
        **JOB,
        "data": "CSV of bars; default: the S&P 500 and VIX sample that comes with the project",
        "output": "folder for runs (default TRAINING)",
        "run": "name of the run (default: from the time)",
        "hidden_layers": "widths, such as 32,16",
        "device": "auto, cpu, cuda or cuda:N (ROCm answers to cuda)",
        "threads": "CPU threads; the result may depend on it",
        "data_fraction": "share of the rows to use, from the newest back",
        "horizon": "bars to look ahead",
    },
)
def train(
    c: Context,
    rocm: str = "",
    torch: str = "",
    gpu: str = "",
    cell: str = "",
    where: str = "auto",
    base: str = "",
    data: str = "",
    output: str = "",
    run: str = "",
    epochs: str = "",
    batch_size: str = "",
    learning_rate: str = "",
    hidden_layers: str = "",
    seed: str = "",
    device: str = "",
    threads: str = "",
    data_fraction: str = "",
    horizon: str = "",
    dry_run: bool = False,
    force: bool = False,
) -> None:
    """Train on market bars into TRAINING/<run>/: in the cell's image or natively, and say why."""
    from rocmatrix import commands

    options = {
        "data": data,
        "output": output,
        "run": run,
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "hidden_layers": hidden_layers,
        "seed": seed,
        "device": device,
        "threads": threads,
        "data_fraction": data_fraction,
        "horizon": horizon,
    }
    commands.train(
        _wanted("train", _request(rocm, torch, gpu, cell), where, options, base, dry_run=dry_run, force=force)
    )


@task(
    klass=FlagTask,
    auto_shortflags=False,
    iterable=["probe"],
    help={**REQUEST, **JOB, "probe": "one probe, may be repeated (default: all)", "timeout": "seconds for each probe"},
)
def smoke(
    c: Context,
    rocm: str = "",
    torch: str = "",
    gpu: str = "",
    cell: str = "",
    where: str = "auto",
    base: str = "",
    probe: list[str] | None = None,
    timeout: str = "",
    dry_run: bool = False,
    force: bool = False,
) -> None:
    """Prove that the card, BLAS, AMP and a two-rank step really work; fail closed."""
    from rocmatrix import commands

    options = {"probe": probe, "timeout": timeout}
    commands.smoke(
        _wanted("smoke", _request(rocm, torch, gpu, cell), where, options, base, dry_run=dry_run, force=force)
    )


@task(
    positional=[],
    help={"paths": "test files or folders (default: all)", "only": "run tests whose name matches, as pytest -k does"},
)
def test(c: Context, paths: str = "", only: str = "") -> None:
    """Run every test this machine can run, and count what was left out and why."""
    from rocmatrix import commands

    commands.test(paths=paths, only=only)


@task
def lint(c: Context) -> None:
    """Run linter, formatter check, type checker and the drift check of generated files."""
    from rocmatrix import commands

    commands.lint()
