"""The same job for several machines: a batch script for Slurm, a Job or a TrainJob for Kubernetes.

Nothing is asked of a scheduler here; `rocmatrix.jobs.runner.send` hands over what is made. A run keeps its name, and
`--resume=auto` lets it go on from its newest checkpoint when the scheduler starts it again. What is made holds
nothing of the machine that submits but the places that a person names.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from rocmatrix.containers import least_privilege as policy
from rocmatrix.containers import runspec
from rocmatrix.containers.elsewhere import Places, elsewhere_spec
from rocmatrix.containers.emit import kubernetes, slurm
from rocmatrix.containers.runspec import Explanation, RunSpec
from rocmatrix.host.hardware import Hardware
from rocmatrix.jobs import callback_mounts, job
from rocmatrix.jobs.destination import Destination
from rocmatrix.jobs.job import Wanted
from rocmatrix.jobs.runner import Job
from rocmatrix.matrix.matrix import Cell, Matrix
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import ROOT

NODES_OWN = "looked up on each node, for it differs between machines"
ON_NODE = (
    ("--user", "the job's own user and group there", "Slurm, sbatch"),
    ("--mount=type=volume", "compiled kernels outlive the container: a volume a cell and user", "Slurm, sbatch"),
)
ON_NODE_CARDS = (
    ("--device", "/dev/kfd and the render nodes of a node that the job has alone", policy.AMD),
    ("--group-add", "the owners of those nodes, by number", policy.AMD),
    ("--env=ROCR_VISIBLE_DEVICES", "Slurm chooses the cards; nothing replaces its choice", "Slurm, gres.conf"),
)


@dataclass(frozen=True, kw_only=True)
class Under:
    """What runs the trainer on a node of Slurm: its launcher, the trainer's arguments, and why each setting."""

    launcher: slurm.Launcher
    arguments: tuple[str, ...]
    rows: tuple[Explanation, ...] = ()


def prepare(wanted: Wanted, to: Destination, *, matrix: Matrix, cell: Cell, hardware: Hardware) -> Job:
    """Return the job as files and the command that hands them over.

    `hardware` is this machine's; of it, only how many cards of the cell's kind there are is used, where `to` does
    not say it. Raises RM404 for data or a place that a node cannot have, RM422 without a claim, RM423 where nobody
    states what the nodes have, RM424 for what the scheduler has no word for, RM426 for a file that no pod has, and
    what making a native job raises.
    """
    wanted = _named(wanted)
    cards = _count(cell, to, hardware)
    with _carried():
        if to.engine == "kubernetes":
            return _for_kubernetes(wanted, to, cell=cell, cards=cards)
        return _for_slurm(wanted, to, matrix=matrix, cell=cell, hardware=hardware, cards=cards)


def _for_kubernetes(wanted: Wanted, to: Destination, *, cell: Cell, cards: int) -> Job:
    if to.site.claim is None:
        raise RocmatrixError("RM422", what="no claim is named for the results")
    if cards and to.groups is None:
        what = "who owns /dev/kfd and the render nodes on the cluster's nodes"
        raise RocmatrixError("RM423", what=f"nobody says {what}", next=_GROUPS)
    on_claim = _on_claim(wanted)
    if to.rdma and to.site.rdma is None:
        what = "--rdma on Kubernetes takes the name of the adapters' resource"
        raise RocmatrixError("RM424", what=what, next="Name it: --rdma-resource, as `kubectl describe node` lists it.")
    target = f"{policy.DATA_FOLDER}/{PurePosixPath(on_claim).name}" if on_claim else None
    places = Places(results=policy.RUN_FOLDER, data=on_claim, data_target=target)
    options = {**wanted.options, "output": policy.RUN_FOLDER, "data": target}
    spec = _spec(to, cell=cell, places=places, user=to.user, command=_command(wanted, cell, options))
    placement = kubernetes.Placement(
        name=_label(str(wanted.options["run"])),
        site=to.site,
        nodes=to.nodes,
        processes=to.processes or max(1, cards),
        cards=cards,
    )
    emit = kubernetes.kubernetes_job if to.nodes == 1 else kubernetes.train_job
    path = wanted.output / f"{placement.name}.yaml"
    return Job(
        argv=["kubectl", "apply", f"--filename={path}"],
        environment=None,
        why=_said_of_pods(to, placement, spec=spec, data=on_claim),
        files={path: emit(spec, placement)},
        rows=kubernetes.kubernetes_rows(spec, placement),
    )


def _said_of_pods(to: Destination, placement: kubernetes.Placement, *, spec: RunSpec, data: str | None) -> str:
    kind = "Job" if to.nodes == 1 else "TrainJob (Kubeflow Trainer)"
    text = f"kubernetes: a {kind} on {to.nodes} node(s) of {placement.processes} process(es); image {spec.image}"
    if to.image is None:
        text += ", a tag of this machine's engine: nodes that cannot pull it need --image"
    return text + (f"; data: {data} on claim {to.site.data_claim or to.site.claim}" if data else "")


def _on_claim(wanted: Wanted) -> str | None:
    """Return the data's path on its claim, relative to the claim's root. Raises RM426 for a file of this machine."""
    recipe = job.recipe_file(wanted)
    named = str(wanted.options.get("data") or "")
    path = PurePosixPath(named)
    if recipe is not None:
        raise RocmatrixError("RM426", what=f"--recipe names {recipe}", next="Say its settings with --set.")
    if code := callback_mounts.files(job.callbacks(wanted)):
        advice = "Put the class into a module of the image, and give --callback module:Class."
        raise RocmatrixError("RM426", what=f"--callback names {code[0]}", next=advice)
    if named and (path.is_absolute() or ".." in path.parts or not path.name):
        raise RocmatrixError("RM426", what=f"--data names {named}")
    return str(path) if named else None


def _for_slurm(wanted: Wanted, to: Destination, *, matrix: Matrix, cell: Cell, hardware: Hardware, cards: int) -> Job:
    if to.under == "native":
        under = _natively(wanted, to, matrix=matrix, cell=cell, hardware=hardware)
    else:
        under = _contained(wanted, to, cell=cell, cards=cards)
    name = str(wanted.options["run"])
    batch = slurm.Batch(
        name=name,
        arguments=under.arguments,
        log=str(wanted.output / f"{name}-%j.log"),
        nodes=to.nodes,
        processes=to.processes or max(1, cards),
        cards=cards,
        request=to.slurm,
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
    """Make the launcher of a Python and a checkout that all nodes have; by default, at the paths they have here."""
    # What points into the image's own cache folder, or says what the image holds, has no meaning outside of it.
    rows = (row for row in cell.environment if row.name != policy.PROMISES)
    variables = {row.name: row.value for row in rows if not row.value.startswith(policy.CACHE_FOLDER)}
    variables |= {"PYTHONPATH": to.checkout or str(ROOT), "PYTHONSAFEPATH": "1"}
    python, arguments = to.python, _unproven(wanted)
    if python is None:
        made = job.natively(wanted, matrix=matrix, cell=cell, hardware=hardware)
        python, arguments = made.argv[0], made.argv[made.argv.index(wanted.program) :]
    launcher = slurm.natively(python, variables, cards=cell.architecture is not None)
    return Under(launcher=launcher, arguments=tuple(arguments))


def _unproven(wanted: Wanted) -> list[str]:
    """Return the trainer's arguments for a Python of the nodes, whose wheels nobody has looked at here."""
    options = {**wanted.options, "output": str(wanted.output)}
    told = {"cell_absent": "the nodes' own Python, named with --python", "commit": job.commit()}
    return [wanted.program, *job.flags(options | told)]


def _contained(wanted: Wanted, to: Destination, *, cell: Cell, cards: int) -> Under:
    recipe, data = job.recipe_file(wanted), wanted.data
    target = runspec.data_path(data) if data else None
    called = tuple(callback_mounts.files(job.callbacks(wanted)))
    places = Places(results=str(wanted.output), data=str(data), data_target=target, recipe=recipe, callbacks=called)
    command = _command(wanted, cell, {**wanted.options, **job.places(wanted)})
    spec = _spec(to, cell=cell, places=places, user=None, command=command)
    make = slurm.in_docker if to.under == "docker" else slurm.in_apptainer
    rows = _on_node(cards=bool(cards)) if to.under == "docker" else ()
    launcher = make(spec, cards=bool(cards), rdma=to.rdma)
    return Under(launcher=launcher, arguments=spec.command, rows=(*rows, *runspec.explain(spec)))


def _on_node(*, cards: bool) -> tuple[Explanation, ...]:
    rows = ON_NODE + (ON_NODE_CARDS if cards else ())
    return tuple(
        Explanation(flag=flag, value=None, reason=f"{why}; {NODES_OWN}", source=src) for flag, why, src in rows
    )


def _command(wanted: Wanted, cell: Cell, options: dict[str, object]) -> list[str]:
    told = job.provenance(wanted.program, cell=cell, image=None, forced=wanted.forced)
    return [wanted.program, *job.flags(options), *told]


def _spec(to: Destination, *, cell: Cell, places: Places, user: str | None, command: list[str]) -> RunSpec:
    return elsewhere_spec(
        cell,
        image=to.image or f"rocmatrix:{cell.name}",
        command=command,
        places=places,
        user=user,
        groups=(to.groups or ()) if to.engine == "kubernetes" else (),
        nodes=to.nodes,
        rdma=to.rdma,
    )


_GROUPS = (
    "Say it: --groups with what `stat -c %g /dev/kfd /dev/dri/renderD*` prints there, or --groups none where the "
    "nodes' runtime gives devices to the pod's user (containerd: device_ownership_from_security_context)."
)


def _count(cell: Cell, to: Destination, hardware: Hardware) -> int:
    """Return how many cards a node has: as named, else as many as are here. Raises RM423 where neither states it."""
    if cell.architecture is None:
        return 0
    count = to.cards_named or sum(card.gfx == cell.architecture for card in hardware.cards)
    if not count:
        what = f"{cell.name} needs cards of {cell.architecture}, and none is here"
        raise RocmatrixError("RM423", what=what, next="say how many a node has: --cards N")
    return count


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
