"""The task that lists features, or computes them into a file."""

from __future__ import annotations

from typing import Any

from invoke.context import Context
from invoke.tasks import task

from rocmatrix.tasks.flags import JOB, REQUEST, TrainerTask, request_of, wanted


@task(klass=TrainerTask, auto_shortflags=False, help={**REQUEST, **JOB})
def features(
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
    options: dict[str, Any] | None = None,
) -> None:
    """List the 54 features of intraday bars (--list), or compute them from --data into the Arrow file --out."""
    from rocmatrix.commands import features as commands

    options = options or {}
    if options.get("list"):
        commands.show()
        return
    commands.compute(
        wanted(
            "features",
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
