"""Tasks that build images and run jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from invoke.context import Context
from invoke.tasks import task

from rocmatrix.cli.tasks.flags import EVIDENCE, REQUEST, FlagTask, JobTask, request_of

if TYPE_CHECKING:
    from rocmatrix.jobs.job import Wanted


@task(
    klass=FlagTask,
    auto_shortflags=False,
    help={
        **REQUEST,
        "evidence": EVIDENCE,
        "wheelhouse": "a folder that holds the locked wheels already",
        "allow_unlocked": "build a cell without recorded hashes from whatever its index serves, unchecked",
    },
)
def build(
    c: Context,
    rocm: str = "",
    torch: str = "",
    gpu: str = "",
    cell: str = "",
    python: str = "",
    companions: str = "",
    base: str = "",
    wheelhouse: str = "",
    dry_run: bool = False,
    allow_unlocked: bool = False,
    force: bool = False,
    evidence: str = "",
) -> None:
    """Build a cell's image: wheels fetched once and checked, then installed offline."""
    from rocmatrix.cli.commands import jobs
    from rocmatrix.evidence import recorder as keeping

    keeping.use(evidence)
    jobs.build(
        request=request_of(rocm, torch, gpu, cell, python=python, companions=companions),
        base=base or None,
        wheelhouse=wheelhouse or None,
        dry_run=dry_run,
        allow_unlocked=allow_unlocked,
        force=force,
    )


@task(klass=JobTask, auto_shortflags=False, help={"evidence": EVIDENCE})
def train(c: Context, wanted: Wanted, evidence: str = "") -> None:
    """Train on market bars into TRAINING/<run>/: in the cell's image or natively, and say why."""
    from rocmatrix.cli.commands import jobs
    from rocmatrix.evidence import recorder as keeping

    keeping.use(evidence)
    jobs.train(wanted)


train.examples = (
    "train                                    the sample",
    "train --data=bars.csv --horizon=10 --epochs=20",
    "train --data=houses.csv --target=price   a column of a table",
    "train --task=lm --data=book.txt --max-steps=500",
    "train --gpu=gfx1100 --in=container --dry-run",
)


@task(
    klass=JobTask,
    auto_shortflags=False,
    iterable=["probe"],
    help={
        "evidence": EVIDENCE,
        "probe": "one probe, may be repeated (default: all)",
        "timeout": "seconds for each probe (default: each probe's own limit, see --list)",
        "listing": "list the probes with the cards they take and their limits, and run none",
    },
)
def smoke(
    c: Context,
    wanted: Wanted,
    probe: list[str] | None = None,
    timeout: str = "",
    listing: bool = False,
    evidence: str = "",
) -> None:
    """Prove that card, libraries and torch work, alone and by twos; fail closed."""
    from rocmatrix.cli.commands import jobs
    from rocmatrix.evidence import recorder as keeping

    if listing:
        return jobs.list_probes(probe or ())
    keeping.use(evidence)
    jobs.smoke(replace(wanted, options={"probe": probe, "timeout": timeout}))


@task(
    klass=JobTask,
    auto_shortflags=False,
    help={"evidence": EVIDENCE, "json": "print the figures as JSON, for programs"},
)
def bench(c: Context, wanted: Wanted, json: bool = False, evidence: str = "") -> None:
    """Measure products, memory, copies, training steps and sums over two ranks: each a median with its spread."""
    from rocmatrix.cli.commands import bench as commands
    from rocmatrix.evidence import recorder as keeping

    keeping.use(evidence)
    commands.bench(wanted, as_json=json)
