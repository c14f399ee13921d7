"""The tasks that watch over the whole matrix."""

from invoke.context import Context
from invoke.tasks import task

from rocmatrix.cli.tasks.flags import EVIDENCE, REQUEST, FlagTask


@task(
    klass=FlagTask,
    auto_shortflags=False,
    help={
        "cells": "cells or architectures with commas between (default: every cell that is locked and not broken)",
        "cell": "the same, for one",
        "companions": "packages to add to each of them, such as peft,accelerate",
        "jobs": "how many cells are built side by side",
        "budget": "GB that its own images and its builder's cache may take",
        "builder": "a buildx builder of your own: only its cache is pruned (default: the engine's, never pruned)",
        "wheelhouse": "a folder that holds the locked wheels already",
        "night": "a name for the night (default: the date and a number)",
        "fresh": "begin another night, although one of the same cells and inputs has not ended",
        "base": REQUEST["base"],
        "dry_run": "print the commands and their bake files, and run nothing",
        "evidence": EVIDENCE,
    },
)
def nightly(
    c: Context,
    cells: str = "",
    cell: str = "",
    companions: str = "",
    jobs: int = 2,
    budget: int = 200,
    builder: str = "",
    wheelhouse: str = "",
    night: str = "",
    fresh: bool = False,
    base: str = "",
    dry_run: bool = False,
    evidence: str = "",
) -> None:
    """Build, prove and smoke the matrix, move tags after smoke only, and say what regressed since the last good night.

    A night that was killed goes on where it was.
    """
    from pathlib import Path

    from rocmatrix.cli.commands import nightly as command
    from rocmatrix.evidence import recorder as keeping

    keeping.use(evidence)
    command.nightly(
        command.Choices(
            cells=tuple(word.strip() for word in f"{cells},{cell}".split(",") if word.strip()),
            companions=tuple(word.strip() for word in companions.split(",") if word.strip()),
            jobs=max(jobs, 1),
            budget=budget * 10**9,
            base=base or None,
            builder=builder or None,
            wheels=Path(wheelhouse).resolve() if wheelhouse else None,
            name=night or None,
            fresh=fresh,
            dry_run=dry_run,
        )
    )


@task(
    klass=FlagTask,
    auto_shortflags=False,
    help={
        "gpu": REQUEST["gpu"],
        "probe": "the probe that broke, such as blas",
        "good": "a cell that is known to be good, where it is not on record",
        "bad": "a later cell that is known to be bad",
        "card": "only records of this card, as `./invokew evidence` names it",
        "base": REQUEST["base"],
        "dry_run": "print what is known and what would be asked, and run nothing",
        "evidence": EVIDENCE,
    },
)
def bisect(
    c: Context,
    gpu: str = "",
    probe: str = "",
    good: str = "",
    bad: str = "",
    card: str = "",
    base: str = "",
    dry_run: bool = False,
    evidence: str = "",
) -> None:
    """Find the versions between which a probe broke on a card: from records, then by building and smoking others."""
    from rocmatrix.cli.commands import bisect as command
    from rocmatrix.evidence import recorder as keeping

    keeping.use(evidence)
    command.bisect(gpu=gpu, probe=probe, good=good, bad=bad, base=base, card=card, dry_run=dry_run)
