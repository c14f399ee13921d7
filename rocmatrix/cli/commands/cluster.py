"""Commands that hand a job to the scheduler of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmatrix.cli.commands import common, run
from rocmatrix.runtime.console import edge, say
from rocmatrix.runtime.errors import RocmatrixError

if TYPE_CHECKING:
    from rocmatrix.jobs.job import Wanted


@edge
def submit(wanted: Wanted, *, groups: str, explain: bool, **place: Any) -> None:
    """Send a job to Slurm or Kubernetes, and print what that answered: the job's number or name.

    `groups` are numbers with commas between; `place` are the other fields of `cluster.Destination`.
    With `explain`, nothing is sent: each setting of the job's container is printed with its reason and source.
    """
    from rocmatrix.jobs import cluster as submitting
    from rocmatrix.jobs import runner as launch

    to = submitting.Destination(groups=_numbers(groups), **place)
    matrix, hardware = common.known_matrix(), common.hardware_here()
    choice = common.choose(matrix, wanted.request, hardware, force=wanted.force)
    job = submitting.prepare(wanted, to, matrix=matrix, cell=choice.cell, hardware=hardware)
    say(job.why)
    if explain:
        run.print_rows(job.rows)
        return
    print(job.words if wanted.dry_run else launch.send(job))


def _numbers(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isdecimal() for word in words):
        what = f"--groups takes numbers such as 44,992, not {text!r}: a name is another number on another machine"
        raise RocmatrixError("RM404", what=what)
    return tuple(map(int, words))
