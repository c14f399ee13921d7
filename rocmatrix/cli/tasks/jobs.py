"""Tasks that build images and run jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from invoke.context import Context

from rocmatrix.cli.options.common import Kept
from rocmatrix.cli.options.jobs import Bench, Build, Smoke
from rocmatrix.cli.tasks.flags import JobTask, command

if TYPE_CHECKING:
    from rocmatrix.jobs.job import JobRequest


@command(Build)
def build(c: Context, asked: Build) -> None:
    """Build a cell's image: wheels fetched once and checked, then installed offline."""
    from rocmatrix.cli.commands import jobs
    from rocmatrix.evidence import recorder

    recorder.use(asked.evidence)
    jobs.build(asked)


@command(Kept, klass=JobTask)
def train(c: Context, wanted: JobRequest, asked: Kept) -> None:
    """Train on bars, a table or text into TRAINING/<run>/: in the cell's image or natively, with the reason."""
    from rocmatrix.cli.commands import jobs
    from rocmatrix.evidence import recorder

    recorder.use(asked.evidence)
    jobs.train(wanted)


train.examples = (
    "train                                    the sample",
    "train --data=bars.csv --horizon=10 --epochs=20",
    "train --data=houses.csv --target=price   a column of a table",
    "train --task=lm --data=book.txt --max-steps=500",
    "train --gpu=gfx1100 --in=container --dry-run",
)


@command(Smoke, klass=JobTask)
def smoke(c: Context, wanted: JobRequest, asked: Smoke) -> None:
    """Prove that card, libraries and torch work, alone and by twos; fail closed."""
    from rocmatrix.cli.commands import jobs
    from rocmatrix.evidence import recorder

    if asked.listing:
        return jobs.list_probes(asked.probe)
    recorder.use(asked.evidence)
    jobs.smoke(replace(wanted, options={"probe": asked.probe, "timeout": asked.timeout}))


@command(Bench, klass=JobTask)
def bench(c: Context, wanted: JobRequest, asked: Bench) -> None:
    """Measure products, memory, copies, training steps and sums over two ranks: each a median with its spread."""
    from rocmatrix.cli.commands import bench
    from rocmatrix.evidence import recorder

    recorder.use(asked.evidence)
    bench.bench(wanted, as_json=asked.as_json)
