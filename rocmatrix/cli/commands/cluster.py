"""`./invokew submit`: hand a job to the scheduler of a cluster."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from typing import TYPE_CHECKING

from rocmatrix.cli.commands import common, run
from rocmatrix.cli.options.command import command
from rocmatrix.cli.options.common import JobOptions
from rocmatrix.jobs.schedulers.scheduler import Nodes, known
from rocmatrix.runtime.console import say
from rocmatrix.runtime.option import one_of, option

if TYPE_CHECKING:
    from rocmatrix.jobs.job import JobRequest


@dataclass(frozen=True, kw_only=True)
class Submit(Nodes):
    """Options of `submit`; those of each scheduler are added below."""

    engine: str = option("scheduler that the job is handed to", metavar=one_of(known()))
    explain: bool = option(
        "send nothing; print each setting of the container with its reason and source", default=False
    )


_BASES: tuple[type, ...] = (Submit, *(each.options for each in known().values()))
_SUBMIT = make_dataclass("Submit", [], bases=_BASES, frozen=True, kw_only=True)


@command(
    _SUBMIT,
    job=JobOptions,
    trainer="train",
    about="Submit a training to Slurm or Kubernetes: the same job, on one machine or several.",
)
def submit(job_request: JobRequest, args: Submit) -> None:
    """Send a job to a scheduler, and print what that answered: the job's number or name."""
    from rocmatrix.jobs import cluster
    from rocmatrix.jobs.schedulers import scheduler

    to = scheduler.destination(args.engine, args)
    common.require_settings(job_request)
    matrix, hardware = common.known_matrix(), common.hardware_here()
    choice = common.choose(matrix, job_request.request, hardware, force=job_request.force)
    job = cluster.prepare(job_request, to, matrix=matrix, cell=choice.cell, hardware=hardware)
    say(job.why)
    if args.explain:
        run.print_rows(job.rows)
        return
    print(job.summary if job_request.dry_run else cluster.send(job))
