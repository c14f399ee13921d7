"""`./invokew nightly`: start or resume a night, report regressions, and return the exit status."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rocmatrix.cli.commands import common
from rocmatrix.cli.options.command import command
from rocmatrix.cli.options.common import BASE, REQUIREMENTS, WHEELHOUSE, Kept, added_packages
from rocmatrix.evidence import recorder
from rocmatrix.runtime.console import say, table
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.kernel_lock import HeldError, held
from rocmatrix.runtime.option import comma_separated, option
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.evidence.compare import Change
    from rocmatrix.images.labels import OtherBase
    from rocmatrix.matrix.matrix import Cell
    from rocmatrix.nightly.journal import Journal
    from rocmatrix.nightly.night import Running


GB = 10**9


@dataclass(frozen=True, kw_only=True)
class Nightly(Kept):
    """Options of `nightly`."""

    cells: str = option(
        "cells or architectures with commas between (default: every cell that is locked and not broken)",
        metavar="CELL,...",
    )
    cell: str = option("one cell or architecture, in addition to --cells", metavar="CELL")
    companions: str = option(
        "packages to add to each of them, such as peft,accelerate", typed="with", metavar="NAME,..."
    )
    with_requirements: str = option(REQUIREMENTS, metavar="PATH")
    jobs: int = option("cells to build in parallel", default=2)
    budget: int = option("disk for its images and its builder's cache, in GB", default=200, metavar="GB")
    builder: str = option(
        "a buildx builder of your own: only its cache is pruned (default: the engine's, never pruned)",
        metavar="NAME",
    )
    wheelhouse: str = option(WHEELHOUSE, metavar="PATH")
    night: str = option("a name for the night (default: the date and a number)", metavar="NAME")
    fresh: bool = option("begin another night, although one of the same cells and inputs has not ended", default=False)
    base: str = option(BASE, metavar="IMAGE")
    dry_run: bool = option("print the commands and their bake files, and run nothing", default=False)

    @property
    def packages(self) -> tuple[str, ...]:
        """What is added, as for `build`. Raises RM017."""
        return added_packages(self.companions, self.with_requirements)

    @property
    def names(self) -> tuple[str, ...]:
        """Cells or architectures, as named either way."""
        return comma_separated(f"{self.cells},{self.cell}")


@command(
    Nightly,
    about="Build, prove and smoke the matrix: tags move after smoke only, regressions since the last good night are "
    "reported, and a night that was killed is resumed.",
)
def nightly(args: Nightly) -> None:
    """Build, prove, smoke and promote cells, resuming a killed night. Raises RM630 where one failed."""
    from rocmatrix.images.base import refuse_known
    from rocmatrix.nightly import plan

    _check_name(args.night)
    matrix = common.known_matrix()
    cells, left_out = plan.choose(matrix, args.names)
    for line in left_out:
        say(f"left out {line}")
    packages = args.packages
    cells = [common.prepared_cell(matrix, common.with_companions(matrix, cell, packages)) for cell in cells]
    for cell in cells:
        refuse_known(cell, args.base)
    if args.dry_run:
        _print(cells, args)
        return
    path = recorder.evidence_file()
    try:
        with exclusive_night(path), exclusive_on_engine(cells):
            _night(cells, args, path)
    except sqlite3.Error as error:
        raise RocmatrixError("RM621", what=f"the journal cannot be kept: {error}", where=str(path)) from error


def _check_name(night: str) -> None:
    """Raise RM404 for a name that no record can bear, before anything is built: its records would all be lost."""
    from rocmatrix.evidence.record import is_name

    if night and not is_name(night):
        advice = (
            "Letters, digits and . _ + -, at most 200, the first one a letter or a digit: 2026-11-22.1, driver-6.16."
        )
        raise RocmatrixError("RM404", what=f"--night takes a name, not {night[:80]!r}", next=advice)


@contextmanager
def exclusive_night(path: Path) -> Iterator[None]:
    """Keep other nights of this checkout, and those that record in the file `path`, out. Raises RM621, RM671.

    The locks are the kernel's: they go with the night, however it ends.
    """
    with ExitStack() as stack:
        for lock in (ROOT / ".rocmatrix" / "nightly" / "night.lock", path.with_name(f"{path.name}.night")):
            try:
                stack.enter_context(held(lock))
            except HeldError as error:
                raise RocmatrixError("RM671", what=f"{error} works on it", where=str(path)) from None
            except OSError as error:
                what = f"the journal cannot be kept: {error.strerror}"
                raise RocmatrixError("RM621", what=what, where=str(lock)) from error
        yield


@contextmanager
def exclusive_on_engine(cells: list[Cell]) -> Iterator[None]:
    """Keep nights of other checkouts on this engine off the same cells: the first one goes on. Raises RM201, RM671.

    What jobs left on it whose program was killed is removed first.
    """
    from rocmatrix.containers import engine, engine_lock, orphan_cleanup
    from rocmatrix.nightly import bake

    with ExitStack() as stack:
        client = stack.enter_context(closing(engine.connect()))
        for name in sorted(bake.candidate(cell) for cell in cells):
            try:
                stack.enter_context(engine_lock.exclusive(client, name))
            except HeldError as error:
                what = f"{error}, of another checkout on this engine, works on {name}"
                raise RocmatrixError("RM671", what=what, where=engine.address()) from None
        orphan_cleanup.sweep(client)
        yield


def _night(cells: list[Cell], args: Nightly, path: Path) -> None:
    from rocmatrix.host import simulated
    from rocmatrix.images import build
    from rocmatrix.nightly import bake
    from rocmatrix.nightly.journal import Journal
    from rocmatrix.nightly.night import Running
    from rocmatrix.nightly.plan import Plan
    from rocmatrix.nightly.stages import OnEngine

    base = _base(args.base or None)
    inputs = tuple(build.input_hash(cell, ROOT, base=base.counted if base else None) for cell in cells)
    journal = Journal(path)
    names = tuple(cell.name for cell in cells)
    planned = Plan(cells=names, inputs=inputs, base=args.base or None, simulated=simulated.root() is not None)
    night, resumed = journal.begin(planned, name=args.night or None, fresh=args.fresh)
    say(f"night {night.name} {'resumes' if resumed else 'begins'}: {len(cells)} cells, {_jobs(args)} at a time")
    os.environ[recorder.NIGHT] = night.name
    recorder.settle()
    stages = OnEngine(
        matrix=common.known_matrix(), root=ROOT, night=night.name, hardware=common.hardware_here(),
        needed=tuple(bake.candidate(cell) for cell in cells), evidence=path, budget=args.budget * GB,
        today=common.today(), base=args.base or None, wheels=_wheels(args), builder=args.builder or None,
    )  # fmt: skip
    running = Running(name=night.name, cells=cells, stages=stages, journal=journal, jobs=_jobs(args))
    running.run()
    report(running, path)


def _jobs(args: Nightly) -> int:
    return max(args.jobs, 1)


def _wheels(args: Nightly) -> Path | None:
    return Path(args.wheelhouse).resolve() if args.wheelhouse else None


def _base(name: str | None) -> OtherBase | None:
    """Return the base that was named, with its id. Raises RM201, and RM204 for one that cannot be had."""
    if not name:
        return None
    from rocmatrix.containers import engine
    from rocmatrix.images.base import chosen

    with closing(engine.connect()) as client:
        return chosen(client, name, None)


def report(running: Running, path: Path) -> None:
    """Print every stage and every change against the last good night. Raises RM630 for a failure."""
    from rocmatrix.nightly.plan import STAGES

    rows = []
    for cell in running.cells:
        results = [running.results.get((cell.name, stage)) for stage in STAGES]
        notes = "; ".join(
            result.summary for result in results if result and result.summary and result.state != "passed"
        )
        rows.append((cell.name, *(result.state if result else "-" for result in results), notes or "-"))
    table(("CELL", *(stage.upper() for stage in STAGES), "WHY"), rows)
    changes = [change for cell in running.cells for change in changes_of(running.journal, running.name, cell.name)]
    for change in changes:
        say(change.summary)
    failed = [
        f"{result.cell}: {result.stage} failed: {result.summary}"
        for result in running.results.values()
        if result.state == "failed"
    ]
    failed += [change.summary for change in changes if change.failure]
    if failed:
        raise RocmatrixError("RM630", what="\n".join(failed), where=f"night {running.name}, {path}")


def changes_of(journal: Journal, night: str, cell: str) -> list[Change]:
    """Return what changed in a cell since its last good night; nothing where there was none.

    Args:
        night: name of the night, such as 2026-11-22.1.
        cell: the cell\'s whole name, such as rocm7.2-torch2.12.1-gfx1100.
    """
    from rocmatrix.evidence import store
    from rocmatrix.evidence.compare import compare

    good = journal.last_good(cell, before=night)
    if good is None:
        say(f"{cell}: no earlier good night to compare with")
        return []
    records = store.read(journal.path, cell=cell, logs=False)
    return compare(cell, [r for r in records if r.night == good], [r for r in records if r.night == night])


def _print(cells: list[Cell], args: Nightly) -> None:
    """Print each wave's command, and as JSON the file that it reads."""
    from rocmatrix.images import wheelhouse
    from rocmatrix.nightly import bake, plan

    folders = {cell.name: _wheels(args) or wheelhouse.default_folder(ROOT, cell) for cell in cells}
    file = ROOT / ".rocmatrix" / "nightly" / "NIGHT.json"
    for wave in plan.waves(cells, _jobs(args)):
        argv = bake.argv(file, [bake.target(cell) for cell in wave], builder=args.builder or None)
        say(f"$ {shlex.join(argv)}")
        content = bake.bake_file(wave, root=ROOT, wheelhouses=folders, night="NIGHT", base=args.base or None)
        print(json.dumps(content, indent=1))
