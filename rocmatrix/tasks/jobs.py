"""Tasks that build images and run jobs."""

from typing import Any

from invoke.context import Context
from invoke.tasks import task

from rocmatrix.tasks.flags import EVIDENCE, JOB, REQUEST, FlagTask, TrainerTask, request_of, wanted


@task(
    klass=FlagTask,
    auto_shortflags=False,
    help={
        **REQUEST,
        "evidence": EVIDENCE,
        "wheelhouse": "a folder that holds the locked wheels already",
        "companions": "packages to add, such as peft,accelerate (matrix/companions.yaml lists them)",
        "allow_unlocked": "build a cell without recorded hashes from whatever its index serves, unchecked",
    },
)
def build(
    c: Context,
    rocm: str = "",
    torch: str = "",
    gpu: str = "",
    cell: str = "",
    base: str = "",
    wheelhouse: str = "",
    companions: str = "",
    dry_run: bool = False,
    allow_unlocked: bool = False,
    force: bool = False,
    evidence: str = "",
) -> None:
    """Build a cell's image: wheels fetched once and checked, then installed offline."""
    from rocmatrix.commands import jobs, keeping

    keeping.use(evidence)
    jobs.build(
        request=request_of(rocm, torch, gpu, cell),
        base=base or None,
        wheelhouse=wheelhouse or None,
        dry_run=dry_run,
        allow_unlocked=allow_unlocked,
        force=force,
        companions=companions,
    )


@task(klass=TrainerTask, auto_shortflags=False, help={**REQUEST, **JOB, "evidence": EVIDENCE})
def train(
    c: Context,
    rocm: str = "",
    torch: str = "",
    gpu: str = "",
    cell: str = "",
    where: str = "auto",
    base: str = "",
    wheelhouse: str = "",
    cards: str = "",
    expandable_segments: bool = False,
    dry_run: bool = False,
    force: bool = False,
    evidence: str = "",
    options: dict[str, Any] | None = None,
) -> None:
    """Train on market bars into TRAINING/<run>/: in the cell's image or natively, and say why."""
    from rocmatrix.commands import jobs, keeping

    keeping.use(evidence)
    jobs.train(
        wanted(
            "train",
            request_of(rocm, torch, gpu, cell),
            where,
            options or {},
            base,
            dry_run=dry_run,
            force=force,
            wheelhouse=wheelhouse,
            cards=cards,
            expandable_segments=expandable_segments,
        )
    )


@task(
    klass=FlagTask,
    auto_shortflags=False,
    iterable=["probe"],
    help={
        **REQUEST,
        **JOB,
        "evidence": EVIDENCE,
        "probe": "one probe, may be repeated (default: all)",
        "timeout": "seconds for each probe (default: each probe's own limit, see --list)",
        "listing": "list the probes with the cards they take and their limits, and run none",
    },
)
def smoke(
    c: Context,
    rocm: str = "",
    torch: str = "",
    gpu: str = "",
    cell: str = "",
    where: str = "auto",
    base: str = "",
    wheelhouse: str = "",
    cards: str = "",
    expandable_segments: bool = False,
    probe: list[str] | None = None,
    timeout: str = "",
    listing: bool = False,
    dry_run: bool = False,
    force: bool = False,
    evidence: str = "",
) -> None:
    """Prove that card, libraries and torch work, alone and by twos; fail closed."""
    from rocmatrix.commands import jobs, keeping

    if listing:
        return jobs.list_probes(probe or ())
    keeping.use(evidence)
    options = {"probe": probe, "timeout": timeout}
    jobs.smoke(
        wanted(
            "smoke",
            request_of(rocm, torch, gpu, cell),
            where,
            options,
            base,
            dry_run=dry_run,
            force=force,
            wheelhouse=wheelhouse,
            cards=cards,
            expandable_segments=expandable_segments,
        )
    )


@task(
    klass=TrainerTask,
    auto_shortflags=False,
    help={**REQUEST, **JOB, "evidence": EVIDENCE, "json": "print the figures as JSON, for programs"},
)
def bench(
    c: Context,
    rocm: str = "",
    torch: str = "",
    gpu: str = "",
    cell: str = "",
    where: str = "auto",
    base: str = "",
    wheelhouse: str = "",
    cards: str = "",
    expandable_segments: bool = False,
    json: bool = False,
    dry_run: bool = False,
    force: bool = False,
    evidence: str = "",
    options: dict[str, Any] | None = None,
) -> None:
    """Measure products, memory, copies, training steps and sums over two ranks: each a median with its spread."""
    from rocmatrix.commands import bench as commands
    from rocmatrix.commands import keeping

    keeping.use(evidence)
    request = request_of(rocm, torch, gpu, cell)
    asked = wanted(
        "bench",
        request,
        where,
        options or {},
        base,
        dry_run=dry_run,
        force=force,
        wheelhouse=wheelhouse,
        cards=cards,
        expandable_segments=expandable_segments,
    )
    commands.bench(asked, as_json=json)
