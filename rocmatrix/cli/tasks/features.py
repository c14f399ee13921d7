"""The task that lists features, or computes them into a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from invoke.context import Context

from rocmatrix.cli.tasks.flags import JobTask, command

if TYPE_CHECKING:
    from rocmatrix.jobs.job import JobRequest


@dataclass(frozen=True, kw_only=True)
class Features:
    """`features` has no option next to a job's and the trainer's."""


@command(Features, klass=JobTask)
def features(c: Context, wanted: JobRequest, asked: Features) -> None:
    """List the features of intraday bars (--list), or compute them from --data into the Arrow file --out."""
    from rocmatrix.cli.commands import features

    if wanted.options.get("list"):
        features.show()
        return
    features.compute(wanted)
