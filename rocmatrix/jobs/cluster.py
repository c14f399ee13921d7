"""The same job for several machines: a batch script for Slurm, a Job or a TrainJob for Kubernetes.

Nothing is asked of a scheduler here; `rocmatrix.jobs.runner.send` hands over what is made. A run keeps its name, and
`--resume=auto` lets it go on from its newest checkpoint when the scheduler starts it again.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rocmatrix.containers import least_privilege as policy
from rocmatrix.containers import runspec
from rocmatrix.containers.emit import kubernetes, slurm
from rocmatrix.containers.runspec import Explanation, RunSpec
from rocmatrix.containers.settings import Device
from rocmatrix.host.hardware import Card, Hardware
from rocmatrix.host.sysfs import DeviceNode
from rocmatrix.jobs import job
from rocmatrix.jobs.job import Wanted
from rocmatrix.jobs.runner import Job
from rocmatrix.matrix.matrix import Cell, Matrix
from rocmatrix.runtime.errors import RocmatrixError, suggestion

ENGINES = ("slurm", "kubernetes")
UNDER = ("native", "docker", "apptainer")
IMAGE_USER = "10001:10001"  # the image's own: root of the machine that submits is nobody in a cluster
DEVICE_MODE = 0o660


@dataclass(frozen=True, kw_only=True)
class Destination:
    """Where a job is sent. `cards` and `processes` are each node's; None means: as many as this machine has.

    `groups` are the numeric owners of the nodes' devices, where this machine is not like them. `image` is what
    the nodes call the cell's image. `partition` and `time_limit` are Slurm's, `claim` and `namespace` Kubernetes'.
    """

    engine: str
    nodes: int = 1
    processes: int | None = None
    cards: int | None = None
    groups: tuple[int, ...] = ()
    under: str = "native"
    image: str | None = None
    partition: str | None = None
    time_limit: str | None = None
    claim: str | None = None
    namespace: str | None = None

    def __post_init__(self) -> None:
        for flag, word, known in (("--engine", self.engine, ENGINES), ("--under", self.under, UNDER)):
            if word not in known:
                raise RocmatrixError("RM404", what=f"{flag} takes no {word!r}", why=suggestion(word, known))
        for flag, number in (("--nodes", self.nodes), ("--processes", self.processes), ("--cards", self.cards)):
            if number is not None and number < 1:
                raise RocmatrixError("RM404", what=f"{flag} takes a whole number from 1, not {number}")


@dataclass(frozen=True, kw_only=True)
class Under:
    """What runs the trainer on a node of Slurm: its launcher, the trainer's arguments, cards, and why each setting."""

    launcher: slurm.Launcher
    arguments: tuple[str, ...]
    cards: int
    rows: tuple[Explanation, ...] = ()


def prepare(wanted: Wanted, to: Destination, *, matrix: Matrix, cell: Cell, hardware: Hardware) -> Job:
    """Return the job as files and the command that hands them over.

    `hardware` is this machine's; where it has no card of the cell's kind, `to` says what the nodes have.
    Raises RM404 for data or a place that a node cannot have, RM422 without a claim, RM423 where nobody says what
    the nodes have, RM424 for what the scheduler has no word for, and what making a native job raises.
    """
    wanted = _named(wanted)
    with _carried():
        if to.engine == "kubernetes":
            return _for_kubernetes(wanted, to, cell=cell, hardware=hardware)
        return _for_slurm(wanted, to, matrix=matrix, cell=cell, hardware=hardware)


def _for_kubernetes(wanted: Wanted, to: Destination, *, cell: Cell, hardware: Hardware) -> Job:
    if to.claim is None:
        raise RocmatrixError("RM422", what="no claim is named for the results")
    if wanted.options.get("data"):
        raise RocmatrixError("RM424", what="--data names a file of this machine, which no pod has")
    host = node_hardware(cell, to, hardware)
    spec = _spec(wanted, to, cell=cell, hardware=host, run_folder=Path(policy.RUN_FOLDER))
    placement = kubernetes.Placement(
        name=_label(str(wanted.options["run"])),
        claim=to.claim,
        nodes=to.nodes,
        processes=to.processes or max(1, _cards(spec)),
        namespace=to.namespace,
    )
    emit = kubernetes.kubernetes_job if to.nodes == 1 else kubernetes.train_job
    path = wanted.output / f"{placement.name}.yaml"
    kind = "Job" if to.nodes == 1 else "TrainJob (Kubeflow Trainer)"
    return Job(
        argv=["kubectl", "apply", f"--filename={path}"],
        environment=None,
        why=f"kubernetes: a {kind} on {to.nodes} node(s) of {placement.processes} process(es); image {spec.image}",
        files={path: emit(spec, placement)},
        rows=kubernetes.kubernetes_rows(spec, placement),
    )


def _for_slurm(wanted: Wanted, to: Destination, *, matrix: Matrix, cell: Cell, hardware: Hardware) -> Job:
    make: Callable[..., Under] = _natively if to.under == "native" else _contained
    under = make(wanted, to, matrix=matrix, cell=cell, hardware=hardware)
    name = str(wanted.options["run"])
    batch = slurm.Batch(
        name=name,
        arguments=under.arguments,
        log=str(wanted.output / f"{name}-%j.log"),
        nodes=to.nodes,
        processes=to.processes or max(1, under.cards),
        cards=under.cards,
        partition=to.partition,
        time_limit=to.time_limit,
    )
    path = wanted.output / f"{name}.sbatch"
    return Job(
        argv=["sbatch", "--parsable", str(path)],
        environment=None,
        why=f"slurm: {to.nodes} node(s) of {batch.processes} process(es), under {to.under}; log {batch.log}",
        files={path: slurm.sbatch_script(batch, under.launcher)},
        rows=under.rows,
    )


def _natively(wanted: Wanted, to: Destination, *, matrix: Matrix, cell: Cell, hardware: Hardware) -> Under:
    """Make the launcher of this checkout's own Python, which all nodes have to see at the same path."""
    made = job.natively(wanted, matrix=matrix, cell=cell, hardware=hardware)
    # What points into the image's own cache folder, or says what the image holds, has no meaning outside of it.
    rows = (row for row in cell.environment if row.name != policy.PROMISES)
    variables = {row.name: row.value for row in rows if not row.value.startswith(policy.CACHE_FOLDER)}
    assert made.environment is not None
    variables |= {name: made.environment[name] for name in ("PYTHONPATH", "PYTHONSAFEPATH")}
    cards = _count(cell, to, hardware)
    arguments = tuple(made.argv[made.argv.index(wanted.program) :])
    return Under(launcher=slurm.natively(made.argv[0], variables), arguments=arguments, cards=cards)


def _contained(wanted: Wanted, to: Destination, *, matrix: Matrix, cell: Cell, hardware: Hardware) -> Under:
    if cell.architecture is not None and len(_fitting(cell, hardware)) < (to.cards or 1):
        why = "device nodes are named one by one, and only a machine like the nodes knows their names"
        raise RocmatrixError(
            "RM423", what=f"too few cards of {cell.architecture} are here", why=why, next="submit from such a node"
        )
    spec = _spec(wanted, to, cell=cell, hardware=hardware, run_folder=wanted.output)
    if to.nodes > 1:
        spec = slurm.on_the_nodes_network(spec)
    make = slurm.in_docker if to.under == "docker" else slurm.in_apptainer
    return Under(launcher=make(spec), arguments=spec.command, cards=_cards(spec), rows=runspec.explain(spec))


def _spec(wanted: Wanted, to: Destination, *, cell: Cell, hardware: Hardware, run_folder: Path) -> RunSpec:
    options = {**wanted.options, **job.places(wanted)}
    command = [wanted.program, *job.flags(options), *job.provenance(wanted.program, cell=cell, image=None)]
    return runspec.run_spec(
        cell,
        hardware,
        image=to.image or f"rocmatrix:{cell.name}",
        command=command,
        run_folder=run_folder,
        data=wanted.data,
        user=_user(to),
        cards=_fitting(cell, hardware)[: to.cards] if to.cards else None,
        features=("network",) if to.nodes > 1 else (),
    )


def _user(to: Destination) -> str:
    own = f"{os.getuid()}:{os.getgid()}"
    return IMAGE_USER if to.engine == "kubernetes" and own.startswith("0:") else own


def node_hardware(cell: Cell, to: Destination, here: Hardware) -> Hardware:
    """Return what a node has: as told with --cards and --groups, else as this machine.

    Raises RM423 where neither says it.
    """
    like_here = not to.groups and len(_fitting(cell, here)) >= (to.cards or 1)
    if cell.architecture is None or like_here:
        return here
    if to.cards is None or not to.groups:
        raise RocmatrixError("RM423", what=f"{cell.name} needs cards of {cell.architecture}, and none is here")
    first, *others = to.groups
    cards = tuple(_told(cell.architecture, index, gid=(others or [first])[-1]) for index in range(to.cards))
    return replace(here, cards=cards, kfd=_node("/dev/kfd", gid=first), memory_bytes=None)


def _told(architecture: str, index: int, *, gid: int) -> Card:
    minor = 128 + index
    unknown: Mapping[str, Any] = dict.fromkeys(
        ("memory_bytes", "compute_units", "unique_id", "gpu_id", "device_id", "pci_address")
    )
    node = _node(f"/dev/dri/renderD{minor}", gid=gid)
    about: dict[str, Any] = {"index": index, "node": index, "gfx": architecture, "integrated": False}
    return Card(**about, **unknown, render_minor=minor, render=node)


def _node(path: str, *, gid: int) -> DeviceNode:
    return DeviceNode(path=path, uid=0, gid=gid, mode=DEVICE_MODE)


def _fitting(cell: Cell, hardware: Hardware) -> list[int]:
    return [card.index for card in hardware.cards if card.gfx == cell.architecture]


def _count(cell: Cell, to: Destination, hardware: Hardware) -> int:
    if cell.architecture is None:
        return 0
    count = to.cards or len(_fitting(cell, hardware))
    if not count:
        what = f"{cell.name} needs cards of {cell.architecture}, and none is here"
        raise RocmatrixError("RM423", what=what, next="say how many a node has: --cards N")
    return count


def _cards(spec: RunSpec) -> int:
    return sum(device.container.startswith("/dev/dri/") for device in spec.of(Device))


def _named(wanted: Wanted) -> Wanted:
    """Return the job with a name that stays, and told to go on where it was."""
    name = wanted.options.get("run") or f"train-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(2)}"
    return replace(wanted, options={**wanted.options, "run": name, "resume": wanted.options.get("resume") or "auto"})


def _label(name: str) -> str:
    """Return a run's name as Kubernetes takes one: small letters, digits and dashes, a letter first."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return (plain if plain[:1].isalpha() else f"run-{plain}")[:63].rstrip("-")


@contextmanager
def _carried() -> Iterator[None]:
    """Turn an emitter's refusal into one for a person."""
    try:
        yield
    except ValueError as error:
        raise RocmatrixError("RM424", what=str(error)) from error
