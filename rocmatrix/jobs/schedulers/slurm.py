"""Slurm: a batch script for sbatch, whose nodes run the trainer natively, in Docker, in Apptainer or in Pyxis."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rocmatrix.jobs.destination import Destination, Submission
from rocmatrix.jobs.schedulers.scheduler import Nodes, Scheduler
from rocmatrix.runtime.errors import RocmatrixError, suggestion
from rocmatrix.runtime.option import comma_separated, one_of, option

if TYPE_CHECKING:
    from rocmatrix.containers.emit import sbatch_script
    from rocmatrix.containers.emit.cluster.slurm_request import SlurmRequest
    from rocmatrix.containers.runspec import Explanation
    from rocmatrix.jobs.job import JobRequest
    from rocmatrix.jobs.runner import Job
    from rocmatrix.matrix.matrix import Cell

UNDER = ("native", "docker", "apptainer", "pyxis")
NODES_OWN = "looked up on each node, for it differs between machines"


@dataclass(frozen=True, kw_only=True)
class SlurmOptions(Nodes):
    """Options that only Slurm takes."""

    under: str = option(
        "Slurm: what runs the trainer on a node; native: the Python of this checkout",
        default="native",
        metavar=one_of(UNDER),
    )
    checkout: str = option("native: path of this checkout on the nodes (default: as here)", metavar="PATH")
    python: str = option(
        "native: path of the Python with the cell's wheels on the nodes (default: as here)", metavar="PATH"
    )
    partition: str = option("Slurm's partition", metavar="NAME")
    time: str = option(
        "Slurm's time limit, such as 4:00:00; before it a checkpoint is saved and the job is queued again",
        metavar="TIME",
    )
    account: str = option("Slurm's account", metavar="NAME")
    qos: str = option("Slurm's quality of service", metavar="NAME")
    reservation: str = option("Slurm's reservation", metavar="NAME")
    constraint: str = option("Slurm's --constraint: features that a node must have, such as mi300x", metavar="FEATURES")
    gres: str = option("Slurm's --gres, such as gpu:mi300x:8 (default: gpu:CARDS)", metavar="GRES")
    gpus_per_node: str = option(
        "Slurm's --gpus-per-node, such as mi300x:8, where a site requires it in place of --gres", metavar="[TYPE:]INT"
    )
    modules: str = option("environment modules to load on the nodes, such as slurm,apptainer/1.3", metavar="MODULE,...")
    sbatch: str = option(
        "further options of sbatch, such as 'exclude=n7,n8 hint=nomultithread exclusive'", metavar="OPTIONS"
    )


def _no_request() -> SlurmRequest:
    from rocmatrix.containers.emit.cluster.slurm_request import SlurmRequest

    return SlurmRequest()


@dataclass(frozen=True, kw_only=True)
class SlurmDestination(Destination):
    """A cluster of Slurm. `checkout` and `python` are the paths of a native job's nodes (None: the same as here)."""

    under: str = "native"
    checkout: str | None = None
    python: str | None = None
    slurm: SlurmRequest = field(default_factory=_no_request)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.under not in UNDER:
            raise RocmatrixError("RM404", what=f"--under takes no {self.under!r}", why=suggestion(self.under, UNDER))
        if ":" in (self.checkout or ""):  # it goes into PYTHONPATH, where a colon ends a path
            raise RocmatrixError("RM404", what=f"--checkout {self.checkout!r}: Python finds no code below a colon")
        if self.cards and self.slurm.cards not in (None, self.cards):
            raise RocmatrixError("RM404", what=f"--cards is {self.cards}, Slurm's options ask for {self.slurm.cards}")

    @property
    def cards_named(self) -> int | None:
        """Cards of each node, named with --cards or in Slurm's own words."""
        return self.cards or self.slurm.cards

    def job(self, submission: Submission) -> Job:
        """Return the batch script and its sbatch. Raises what making a native job raises."""
        return self.readable(_job(self, submission))


def _destination(options: SlurmOptions) -> SlurmDestination:
    from rocmatrix.containers.emit.cluster.slurm_request import SlurmRequest

    names = ("partition", "account", "qos", "reservation", "constraint", "cpus", "gres", "gpus_per_node", "memory")
    request = SlurmRequest(
        time_limit=options.time or None,
        modules=comma_separated(options.modules),
        further=tuple(options.sbatch.split()),
        **options.named(*names),
    )
    return SlurmDestination(**options.about_nodes, **options.named("under", "checkout", "python"), slurm=request)


SCHEDULER = Scheduler(name="slurm", options=SlurmOptions, destination=_destination)


@dataclass(frozen=True, kw_only=True)
class _LaunchPlan:
    """Launch of the trainer on a node: its launcher, the trainer's arguments, and why each setting."""

    launcher: sbatch_script.Launcher
    arguments: tuple[str, ...]
    rows: tuple[Explanation, ...] = ()


def _job(to: SlurmDestination, submission: Submission) -> Job:
    from rocmatrix.containers.emit import sbatch_script
    from rocmatrix.jobs.runner import Job

    job_request, cards = submission.job_request, submission.cards
    under = _native_batch(to, submission) if to.under == "native" else _contained(to, submission)
    name = str(job_request.options["run"])
    batch = sbatch_script.Batch(
        name=name,
        arguments=under.arguments,
        log=str(job_request.output / f"{name}-%j.log"),
        nodes=to.nodes,
        processes=to.ranks(cards),
        cards=cards,
        request=to.slurm,
    )
    path = job_request.output / f"{name}.sbatch"
    return Job(
        argv=["sbatch", "--parsable", str(path)],
        environment=None,
        why=f"slurm: {to.nodes} node(s) of {batch.processes} process(es), under {to.under}; log {batch.log}",
        files={path: sbatch_script.sbatch_script(batch, under.launcher)},
        rows=under.rows,
    )


def _native_batch(to: SlurmDestination, submission: Submission) -> _LaunchPlan:
    """Make the launcher of a Python and a checkout that all nodes have; by default, at the paths they have here."""
    from rocmatrix.containers import least_privilege
    from rocmatrix.containers.emit import sbatch_script
    from rocmatrix.jobs import job
    from rocmatrix.runtime.paths import ROOT

    job_request, cell = submission.job_request, submission.cell
    # What points into the image's own cache folder, or says what the image holds, has no meaning outside of it.
    kept = (row for row in cell.environment if row.name != least_privilege.PROMISES)
    variables = {row.name: row.value for row in kept if not row.value.startswith(least_privilege.CACHE_FOLDER)}
    variables |= {"PYTHONPATH": to.checkout or str(ROOT), "PYTHONSAFEPATH": "1"}
    python, arguments = to.python, _unproven(job_request)
    if python is None:
        made = job.native_job(job_request, matrix=submission.matrix, cell=cell, hardware=submission.hardware)
        python, arguments = made.argv[0], made.argv[made.argv.index(job_request.program.name) :]
    launcher = sbatch_script.native_launcher(python, variables, cards=cell.architecture is not None)
    return _LaunchPlan(launcher=launcher, arguments=tuple(arguments))


def _unproven(job_request: JobRequest) -> list[str]:
    """Return the trainer's arguments for a Python of the nodes, whose wheels are unknown here."""
    from rocmatrix.jobs import programs

    options = {**job_request.options, "output": str(job_request.output)}
    unproven = {"cell_absent": "the nodes' own Python, named with --python", "commit": programs.commit()}
    return [job_request.program.name, *programs.flags(options | unproven)]


def _contained(to: SlurmDestination, submission: Submission) -> _LaunchPlan:
    from rocmatrix.containers import runspec
    from rocmatrix.containers.emit import sbatch_script
    from rocmatrix.containers.emit.cluster.pyxis import in_pyxis
    from rocmatrix.containers.portable_spec import Places
    from rocmatrix.jobs import callback_mounts, cluster, input_mounts, job

    _require_file(to, submission.cell)
    job_request, cards = submission.job_request, bool(submission.cards)
    target = runspec.data_path(job_request.data) if job_request.data else None
    places = Places(
        results=str(job_request.output),
        data=str(job_request.data),
        data_target=target,
        recipe=job.recipe_file(job_request),
        callbacks=tuple(callback_mounts.files(job.callbacks(job_request))),
        inputs=tuple(input_mounts.mounts(job_request.options)),
    )
    command = cluster.command(submission, {**job_request.options, **job.places(job_request)})
    spec = cluster.spec(to, submission.cell, places=places, command=command)
    makers = {"docker": sbatch_script.in_docker, "apptainer": sbatch_script.in_apptainer, "pyxis": in_pyxis}
    rows = tuple(_on_node(cards=cards)) if to.under == "docker" else ()
    launcher = makers[to.under](spec, cards=cards, rdma=to.rdma)
    return _LaunchPlan(launcher=launcher, arguments=spec.command, rows=(*rows, *runspec.explain(spec)))


@dataclass(frozen=True, kw_only=True)
class _OwnFile:
    """What --image names for a program without an engine's tags, and how the file is made."""

    pattern: re.Pattern[str]
    takes: str
    made: str


# an absolute path, or an address that is fetched from: a name alone is a file where the job happens to start, or, to
# Pyxis, an image of Docker's own registry
_OWN_FILES = {
    "apptainer": _OwnFile(
        pattern=re.compile(r"/.|(?:docker|oras|library|shub|https?)://."),
        takes="docker:// and a registry's address",
        made="apptainer build /shared/{cell}.sif docker-daemon:rocmatrix:{cell}",
    ),
    "pyxis": _OwnFile(
        pattern=re.compile(r"/.|dockerd://.|[^/#\s]+#."),
        takes="REGISTRY#IMAGE:TAG",
        made="enroot import --output /shared/{cell}.sqsh dockerd://rocmatrix:{cell}",
    ),
}


def _require_file(to: SlurmDestination, cell: Cell) -> None:
    """Raise RM404 where Apptainer or Pyxis would be given the tag of an engine, which they read as something else."""
    own = _OWN_FILES.get(to.under)
    if own and not own.pattern.match(to.image or ""):
        what = f"--under {to.under} needs --image: a file that all nodes have, or {own.takes}"
        made = own.made.format(cell=cell.name)
        raise RocmatrixError("RM404", what=what, next=f"Make the file where the image is: {made}")


def _on_node(*, cards: bool) -> Iterator[Explanation]:
    """Yield the settings that each node adds to the container by itself."""
    from rocmatrix.containers.least_privilege import AMD
    from rocmatrix.containers.runspec import Explanation

    rows = [
        ("--user", "the job's own user and group there", "Slurm, sbatch"),
        ("--mount=type=volume", "compiled kernels outlive the container: a volume a cell and user", "Slurm, sbatch"),
    ]
    rows += [
        ("--device", "/dev/kfd and the render nodes of a node that the job has alone", AMD),
        ("--group-add", "the owners of those nodes, by number", AMD),
        ("--env=ROCR_VISIBLE_DEVICES", "Slurm chooses the cards; nothing replaces its choice", "Slurm, gres.conf"),
    ] * cards
    for flag, why, source in rows:
        yield Explanation(flag=flag, value=None, reason=f"{why}; {NODES_OWN}", source=source)
