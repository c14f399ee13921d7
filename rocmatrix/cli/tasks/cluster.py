"""The task that sends jobs to a cluster."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from typing import TYPE_CHECKING

from invoke.context import Context

from rocmatrix.cli.options.common import Sent
from rocmatrix.cli.tasks.flags import JobTask, command
from rocmatrix.jobs.schedulers.scheduler import Nodes, known
from rocmatrix.runtime.option import option

if TYPE_CHECKING:
    from rocmatrix.jobs.job import JobRequest


@dataclass(frozen=True, kw_only=True)
class Submit(Nodes):
    """Options of `submit`; those of each scheduler are added below."""

    engine: str = option(" or ".join(known()))
    explain: bool = option(
        "send nothing; print each setting of the container with its reason and source", default=False
    )


_BASES: tuple[type, ...] = (Submit, *(each.options for each in known().values()))
_SUBMIT = make_dataclass("Submit", [], bases=_BASES, frozen=True, kw_only=True)


class TrainingTask(JobTask):
    """A task of another name that takes the options of `train`, but for those of one machine."""

    command = "train"
    job = Sent


@command(_SUBMIT, klass=TrainingTask)
def submit(c: Context, wanted: JobRequest, asked: Submit) -> None:
    """Train on several machines: hand the same job to Slurm or Kubernetes."""
    from rocmatrix.cli.commands import cluster

    cluster.submit(wanted, engine=asked.engine, nodes=asked, explain=asked.explain)
