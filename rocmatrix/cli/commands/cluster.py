"""The command that hands a job to the scheduler of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocmatrix.cli.commands import common, run
from rocmatrix.runtime.console import edge, say

if TYPE_CHECKING:
    from rocmatrix.jobs.job import JobRequest
    from rocmatrix.jobs.schedulers.scheduler import Nodes


@edge
def submit(wanted: JobRequest, *, engine: str, nodes: Nodes, explain: bool) -> None:
    """Send a job to a scheduler, and print what that answered: the job's number or name.

    Args:
        engine: the scheduler, as `--engine` takes it.
        nodes: options of the nodes, with those of the scheduler.
        explain: send nothing; print each setting of the job's container with its reason and source.
    """
    from rocmatrix.jobs import cluster as submitting
    from rocmatrix.jobs import runner as launch
    from rocmatrix.jobs.schedulers import scheduler

    to = scheduler.destination(engine, nodes)
    matrix, hardware = common.known_matrix(), common.hardware_here()
    choice = common.choose(matrix, wanted.request, hardware, force=wanted.force)
    job = submitting.prepare(wanted, to, matrix=matrix, cell=choice.cell, hardware=hardware)
    say(job.why)
    if explain:
        run.print_rows(job.rows)
        return
    print(job.words if wanted.dry_run else launch.send(job))
