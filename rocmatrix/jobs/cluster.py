"""A job for several machines: a file for a scheduler, and the command that hands it over.

A scheduler is reached by `send` alone, which hands over what `prepare` makes. A run keeps its name, and
`--resume=auto` restores it from its newest checkpoint when the scheduler starts it again. What is made holds
nothing of the machine that submits but the places that a person names. What differs between schedulers stands in
`rocmatrix.jobs.schedulers`.
"""

from __future__ import annotations

import secrets
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rocmatrix.containers.portable_spec import Places, elsewhere_spec
from rocmatrix.containers.runspec import RunSpec
from rocmatrix.host.hardware import Hardware
from rocmatrix.jobs import programs
from rocmatrix.jobs.cards import ranks
from rocmatrix.jobs.destination import Destination, Submission
from rocmatrix.jobs.job import JobRequest
from rocmatrix.jobs.runner import Job
from rocmatrix.matrix.matrix import Cell, Matrix
from rocmatrix.runtime.errors import RocmatrixError


def prepare(job_request: JobRequest, to: Destination, *, matrix: Matrix, cell: Cell, hardware: Hardware) -> Job:
    """Return the job as files and the command that hands them over.

    `hardware` is this machine's; of it, only how many cards of the cell's kind there are is used, where `to` does
    not state it. Raises RM404 for data or a place that a node cannot have, RM422 without a claim, RM423 where no option
    states what the nodes have, RM424 for what the scheduler has no word for, RM426 for a file that no pod has, and
    what making a native job raises.
    """
    named = _named(job_request)
    cards = _count(cell, to, hardware)
    ranks.check({**named.options, "ranks": to.processes}, cards=cards, flag="--processes")
    ranks.check_of_scheduler(named.options, processes=to.ranks(cards), nodes=to.nodes)
    with _carried():
        return to.job(Submission(job_request=named, matrix=matrix, cell=cell, hardware=hardware, cards=cards))


def send(job: Job) -> str:
    """Write the job's files, hand it to its scheduler, and return what that answered.

    Raises RM420 where the scheduler's command is not installed, RM421 with its words where it refuses the job.
    """
    program = job.argv[0]
    if shutil.which(program) is None:
        raise RocmatrixError("RM420", what=f"there is no `{program}` command on the PATH")
    for path, text in job.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    done = subprocess.run(job.argv, env=job.environment, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise RocmatrixError(
            "RM421", what=f"`{shlex.join(job.argv)}` ended with {done.returncode}", why=done.stderr.strip()
        )
    return done.stdout.strip()


def command(submission: Submission, options: Mapping[str, Any]) -> list[str]:
    """Return the trainer's command for a container, with the provenance that it cannot know itself."""
    job_request = submission.job_request
    provenance = programs.provenance(job_request.program, cell=submission.cell, image=None, forced=job_request.forced)
    return [job_request.program.name, *programs.flags(options), *provenance]


def spec(
    to: Destination,
    cell: Cell,
    *,
    places: Places,
    command: Sequence[str],
    user: str | None = None,
    groups: Sequence[int] = (),
) -> RunSpec:
    """Return the container of a job on another machine.

    Args:
        command: the trainer's command and its arguments.
        user: user and group as numbers, such as 1000:1000; None where the nodes' own is not known here.
        groups: numbers of the groups that own the device nodes there; empty where they are not known here.
    """
    image = to.image or f"rocmatrix:{cell.name}"
    return elsewhere_spec(
        cell, image=image, command=command, places=places, user=user, groups=groups, nodes=to.nodes, rdma=to.rdma
    )


def _count(cell: Cell, to: Destination, hardware: Hardware) -> int:
    """Return how many cards a node has: as named, else as many as are here. Raises RM423 where neither states it."""
    if cell.architecture is None:
        _refuse_cards_of_cpu(cell, to)
        return 0
    count = to.cards_named or sum(card.gfx == cell.architecture for card in hardware.cards)
    if not count:
        what = f"{cell.name} needs cards of {cell.architecture}, and none is here"
        raise RocmatrixError("RM423", what=what, next="give the number of cards of a node: --cards N")
    return count


def _refuse_cards_of_cpu(cell: Cell, to: Destination) -> None:
    """Raise RM404 where cards of the nodes are named and the cell uses none: a machine to log in often has no card."""
    if to.cards_named:
        what = f"--cards {to.cards_named} names cards, and {cell.name} uses none"
        raise RocmatrixError("RM404", what=what, next="Name the nodes' card: --gpu gfx942; or leave --cards out.")


def _named(job_request: JobRequest) -> JobRequest:
    """Return the job with a fixed name, resuming the run of that name unless it was given another `resume`."""
    name = (
        job_request.options.get("run")
        or f"train-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(2)}"
    )
    return replace(
        job_request, options={**job_request.options, "run": name, "resume": job_request.options.get("resume") or "auto"}
    )


@contextmanager
def _carried() -> Iterator[None]:
    """Turn an emitter's refusal into one for a person."""
    try:
        yield
    except ValueError as error:
        raise RocmatrixError("RM424", what=str(error)) from error
