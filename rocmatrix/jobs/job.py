"""A trainer job, made ready and run: its command, its environment, and a text for the person.

A dry run is made ready too, but nothing is installed, made or asked of the engine for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rocmatrix.containers import allocator, emit, engine, least_privilege, runspec
from rocmatrix.containers import device_selection as choice
from rocmatrix.containers.settings import Environment
from rocmatrix.host.hardware import Hardware
from rocmatrix.images import native_env
from rocmatrix.jobs import callback_mounts, contained, input_mounts
from rocmatrix.jobs import runner as launch
from rocmatrix.jobs.cards import ranks
from rocmatrix.jobs.programs import DEFAULT_OUTPUT, Program, commit, flags, listed, probes_by_cards, provenance
from rocmatrix.jobs.runner import Decision, Event, Finished, Job
from rocmatrix.matrix.matrix import Cell, Matrix
from rocmatrix.matrix.resolver.resolve import Request
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import ROOT, TRAINER_PROBES

SCRATCH = ROOT / ".rocmatrix" / "smoke"  # probes and benchmarks write nothing, but every run has a folder of its own


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """A job as a person asked for it. `options` are the trainer's own, by their names with underscores.

    `forced` are the rules that the resolver found to be overridden. With `as_json` its events are printed for programs;
    with `use_installed_torch` a native run takes the torch that this machine has.
    """

    program: Program
    request: Request
    where: str
    options: Mapping[str, Any]
    base: str | None = None
    dry_run: bool = False
    force: bool = False
    wheelhouse: str | None = None
    cards: tuple[int, ...] = ()
    expandable_segments: bool = False
    forced: tuple[str, ...] = ()
    as_json: bool = False
    use_installed_torch: bool = False

    @property
    def output(self) -> Path:
        """The folder on the host that takes results: as named, else TRAINING; the folder of a named file."""
        named = _absolute(self.options.get(self.program.output_option or "") or DEFAULT_OUTPUT)
        return named.parent if self.program.output_is_file else named

    @property
    def whole(self) -> bool:
        """Whether every part of a suite is asked for."""
        return not self.options.get(self.program.parts_option or "")

    @property
    def names_a_card(self) -> bool:
        """Whether a person named what a CPU cannot be: a card, a cell, or a ROCm version."""
        return any((self.request.gpu not in (None, "auto"), self.request.cell, self.request.rocm))

    @property
    def data(self) -> Path | None:
        """The data on the host, where some was named."""
        return _absolute(self.options["data"]) if self.options.get("data") else None


def _absolute(path: str) -> Path:
    """Return an absolute path that keeps its links: what a link means differs between the nodes of a cluster."""
    return Path(os.path.abspath(path))  # noqa: PTH100 -- resolve() follows links


def decide(requested: str, hardware: Hardware) -> Decision:
    """Choose container or native; the engine is asked only where its answer matters."""
    matters = requested == "container" or (requested == "auto" and hardware.architectures)
    obstacle = engine.obstacle() if matters else None
    why_none = hardware.unusable or hardware.reason
    return launch.decide(requested, cards=hardware.architectures, engine=obstacle, why_none=why_none)


def native_job(job_request: JobRequest, *, matrix: Matrix, cell: Cell, hardware: Hardware) -> Job:
    """Make a job for this machine's own Python, installing the locked wheels where needed. Raises RM016, RM403."""
    refuse_companions(cell)
    runner = native_runner(job_request, matrix=matrix, cell=cell)
    chosen = runner.cell or cell
    options, note = probes_for(job_request, cell=chosen, hardware=hardware)
    arguments = [
        job_request.program.name,
        *flags(options | output_here(job_request) | expected(job_request, cell)),
        *native_provenance(job_request, runner=runner, requested=cell),
    ]
    shown = visible(job_request, cell=chosen, hardware=hardware)
    if chosen.architecture:
        fitting = sum(card.gfx == chosen.architecture for card in hardware.cards)
        ranks.check(job_request.options, cards=len(set(job_request.cards or ())) or fitting)
    return Job(
        argv=launch.native_argv(runner.python, arguments),
        environment=launch.native_environment(
            ROOT,
            {
                **without_second_filters(os.environ, shown),
                **shown,
                **{row.name: row.content for row in allocator_of(job_request, matrix=matrix, cell=chosen)},
            },
        ),
        why=f"torch: {runner.why}{note}",
    )


def native_runner(job_request: JobRequest, *, matrix: Matrix, cell: Cell) -> native_env.Native:
    """Return the Python of a native job, with the locked wheels where they are asked for.

    Raises RM403 where a card was named and only the CPU build fits this machine.
    """
    if job_request.use_installed_torch:
        runner = native_env.installed()
    else:
        runner = native_env.prepare(matrix, ROOT, cell=cell, install_wheels=not job_request.dry_run)
    chosen = runner.cell or cell
    if cell.release.rocm and chosen.release.rocm is None and job_request.names_a_card:
        raise RocmatrixError(
            "RM403",
            what=f"{cell.name} was asked for, but only the CPU build fits here",
            why=runner.why,
            next="use a Python that the cell's wheels are locked for, --in container, or --gpu cpu",
        )
    return runner


def output_here(job_request: JobRequest) -> dict[str, str]:
    """Return the option that names where a native run writes, if its program writes anything."""
    option = job_request.program.output_option
    if option is None:
        return {}
    named = (
        str(Path(job_request.options[option]).resolve())
        if job_request.program.output_is_file
        else str(job_request.output)
    )
    return {option: named}


def refuse_companions(cell: Cell) -> None:
    """Raise RM016 for a cell with companions where a run has no image: a native environment holds the cell's own."""
    if cell.companions:
        advice = "Give --in container, or on a cluster --under docker or apptainer; or install them yourself."
        raise RocmatrixError("RM016", what=f"{cell.name}, run natively", next=advice)


def container_job(
    job_request: JobRequest, *, cell: Cell, hardware: Hardware, image: str, variables: Sequence[Environment] = ()
) -> Job:
    """Make a job for the cell's image, its run folder and data mounted where the trainer looks. Raises RM404.

    Args:
        image: tag of the image; where the job is not a dry run, the id behind it is used.
        variables: set next to the cell's own.
    """
    folder = job_request.output if job_request.program.output_option else SCRATCH
    digest = None
    if job_request.data is not None and not job_request.data.exists():
        raise RocmatrixError("RM404", what="--data names nothing that exists", where=str(job_request.data))
    input_mounts.require(job_request.options)
    if not job_request.dry_run:
        folder.mkdir(parents=True, exist_ok=True)
        digest = engine.image_id(image)
    options, note = probes_for(job_request, cell=cell, hardware=hardware)
    recorded = provenance(job_request.program, cell=cell, image=digest, forced=job_request.forced)
    inside = [*flags(options | expected(job_request, cell) | places(job_request)), *recorded]
    chosen = runspec.Chosen(
        image=digest or image,  # a tag may be moved before the container is made
        command=[job_request.program.name, *inside],
        run_folder=folder,
        data=job_request.data,
        cards=job_request.cards or None,
        user=f"{os.getuid()}:{os.getgid()}",
        rootless=engine.is_rootless(),
    )
    spec = runspec.run_spec(cell, hardware, chosen)
    files = (
        *least_privilege.recipe(recipe_file(job_request)),
        *least_privilege.callbacks(callback_mounts.files(callbacks(job_request))),
        *input_mounts.mounts(job_request.options),
    )
    spec = replace(spec, settings=(*spec.settings, *variables, *files))
    return Job(
        argv=emit.docker_run_argv(spec), environment=None, why=f"image: {image}{note}; {mounted(job_request, folder)}"
    )


def run(
    argv: list[str],
    *,
    environment: Mapping[str, str] | None = None,
    show: Callable[[Event], None],
    log: Path | None = None,
) -> Finished:
    """Run a job to its end: a `docker run` through its container, which is inspected.

    Raises Interrupted on a signal, RM201 without a client of the engine.

    Args:
        argv: the whole command.
        environment: all variables of a native job; None for those of this process. A container has its own.
        show: called with each event as it arrives.
        log: file for all output of the job; None keeps none.
    """
    if tuple(argv[:2]) == contained.RUN:
        return contained.run(argv, show=show, log=log)
    return launch.attached(argv, environment=environment, show=show, log=log)


def allocator_of(job_request: JobRequest, *, matrix: Matrix, cell: Cell) -> tuple[Environment, ...]:
    """Return the allocator's variable where growing segments were asked for. Raises RM405 where there are none."""
    return (allocator.expandable_segments(matrix, cell),) if job_request.expandable_segments else ()


def mounted(job_request: JobRequest, folder: Path) -> str:
    """Return which places of the host the trainer's own messages mean."""
    places = {least_privilege.RUN_FOLDER: folder} | (
        {runspec.data_path(job_request.data): job_request.data} if job_request.data else {}
    )
    return "inside, " + " and ".join(f"{inside} is {outside}" for inside, outside in places.items())


def visible(job_request: JobRequest, *, cell: Cell, hardware: Hardware) -> dict[str, str]:
    """Return the variable that hides what a native run is not to see: cards not chosen, and a processor's own GPU.

    Raises RM301 or RM303 where the cards named are not here.
    """
    return choice.visible_natively(cell, hardware, job_request.cards or (), os.environ)


def without_second_filters(environment: Mapping[str, str], shown: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a shell without those that choose cards, where the run's own choose them.

    HIP counts what ROCr leaves from 0, so that card 1 of a shell would be none of one card that is left (D305).

    Args:
        environment: variables of the shell by name.
        shown: variables by which the run chooses its cards; empty where it leaves that to the shell.
    """
    return {name: value for name, value in environment.items() if not (shown and name in choice.VISIBILITY)}


def check_cards(job_request: JobRequest, *, cell: Cell, hardware: Hardware) -> None:
    """Raise RM201, RM301, RM302, RM303 or RM404 where a container could not be given its cards, before a build."""
    chosen = choice.choose_cards(cell, hardware, job_request.cards or None)
    if chosen:
        ranks.check(job_request.options, cards=len(chosen))
        engine.require_cards()
    user = f"{os.getuid()}:{os.getgid()}"
    rootless = bool(chosen) and engine.is_rootless()
    passed = choice.handed(hardware, chosen, all_shown=rootless)
    choice.usable_nodes(hardware, passed, user=user, rootless=rootless)


def places(job_request: JobRequest) -> dict[str, str]:
    """Return the options that name a place, as the trainer finds it inside the container."""
    option, recipe = job_request.program.output_option, recipe_file(job_request)
    named = f"/{Path(job_request.options[option]).name}" if option and job_request.program.output_is_file else ""
    output = {option: least_privilege.RUN_FOLDER + named} if option else {}
    data = {"data": runspec.data_path(job_request.data)} if job_request.data else {}
    found = {"recipe": least_privilege.recipe_path(recipe)} if recipe else {}
    return {
        **output,
        **data,
        **found,
        **callback_mounts.inside(callbacks(job_request)),
        **input_mounts.inside(job_request.options),
    }


def callbacks(job_request: JobRequest) -> str:
    """Return the value of --callback, empty where there is none; no other program than `train` takes it."""
    return str(job_request.options.get("callback") or "")


def recipe_file(job_request: JobRequest) -> Path | None:
    """Return the recipe on the host, where --recipe names a file; the project's own are in the image."""
    named = str(job_request.options.get("recipe") or "")
    if not named or (ROOT / "recipes" / f"{named}.yaml").is_file() or not Path(named).is_file():
        return None
    return Path(named).resolve()


def probes_for(job_request: JobRequest, *, cell: Cell, hardware: Hardware) -> tuple[dict[str, Any], str]:
    """Return the options and a note: on one card the probes of two are left out, as they could only fail."""
    options, option = dict(job_request.options), job_request.program.parts_option
    fitting = [card.index for card in hardware.cards if card.gfx == cell.architecture]
    # those named with --cards, else all of the cell's, else those that an old kernel leaves unnamed
    unnamed = [card.index for card in hardware.cards if card.gfx is None and not card.integrated]
    cards = tuple(dict.fromkeys(job_request.cards)) or tuple(fitting or unnamed)
    if option is None or not (
        job_request.program.parts_listed and job_request.whole and cell.architecture and len(cards) == 1
    ):
        return options, ""
    fit, left_out = probes_by_cards(len(cards))
    return {**options, option: list(fit)}, f"; one card, so the probes of two are left out: {', '.join(left_out)}"


def requested_probes(job_request: JobRequest, *, cell: Cell, hardware: Hardware) -> tuple[str, ...]:
    """Return the probes or benchmarks that a job owes a verdict on; a probe that is named brings its parts."""
    option = job_request.program.parts_option
    if option is None:
        return ()
    named = listed(probes_for(job_request, cell=cell, hardware=hardware)[0].get(option))
    if not job_request.program.parts_listed:
        return tuple(named)
    probes = json.loads(TRAINER_PROBES.read_text(encoding="utf-8"))
    return tuple(p["probe"] for p in probes if not named or {p["probe"], p["part_of"]} & {*named})


def expected(job_request: JobRequest, cell: Cell) -> dict[str, str]:
    """Return the device that a program must find where a person named none: the card that the cell is for."""
    option = job_request.program.device_option
    return {option: "rocm"} if option and cell.release.rocm and not job_request.options.get(option) else {}


def native_provenance(job_request: JobRequest, *, runner: native_env.Native, requested: Cell) -> list[str]:
    """Return the provenance of a native run: no cell where the wheels are another environment's.

    Rules were overridden for the cell that was asked for, and do not hold for another cell's wheels.
    """
    if not job_request.program.takes_provenance:
        return provenance(job_request.program, cell=requested, image=None)
    if runner.cell is None:
        return flags({"cell_absent": f"{runner.why}, whose wheels no cell locked", "commit": commit()})
    forced = job_request.forced if runner.cell.name == requested.name else ()
    return provenance(job_request.program, cell=runner.cell, image=None, forced=forced)
