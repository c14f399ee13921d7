"""The task that lists features, or computes them into a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from invoke.context import Context
from invoke.tasks import task

from rocmatrix.cli.tasks.flags import JobTask

if TYPE_CHECKING:
    from rocmatrix.jobs.job import Wanted


@task(klass=JobTask, auto_shortflags=False)
def features(c: Context, wanted: Wanted) -> None:
    """List the 54 features of intraday bars (--list), or compute them from --data into the Arrow file --out."""
    from rocmatrix.cli.commands import features as commands

    if wanted.options.get("list"):
        commands.show()
        return
    commands.compute(wanted)
