"""`./invokew build`: a cell's image, built where something has changed, and recorded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rocmatrix.cli.commands import common
from rocmatrix.cli.options.command import command
from rocmatrix.cli.options.common import ALLOW_UNLOCKED, BASE, DRY_RUN, FORCE, WHEELHOUSE, Kept, WithCompanions
from rocmatrix.diagnosis import explain_failure
from rocmatrix.evidence import recorder
from rocmatrix.runtime.console import say
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.option import option
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.images.build import Built
    from rocmatrix.matrix.resolver.resolve import Choice


# host:port/path:tag@digest, not checked further: the engine does
_REFERENCE = re.compile(r"[\w\[][\w.\-/:@+\[\]]*", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Build(WithCompanions, Kept):
    """Options of `build`."""

    base: str = option(BASE, metavar="IMAGE")
    wheelhouse: str = option(WHEELHOUSE, metavar="PATH")
    dry_run: bool = option(DRY_RUN, default=False)
    allow_unlocked: bool = option(ALLOW_UNLOCKED, default=False)
    force: bool = option(FORCE, default=False)


@command(Build, about="Build a cell's image: wheels fetched once and checked, then installed offline.")
def build(args: Build) -> None:
    """Build the image of the cell that a request resolves to, with the companion packages that it names."""
    choice = common.choose(
        common.known_matrix(),
        args.request,
        common.hardware_here(),
        force=args.force,
        allow_unlocked=args.allow_unlocked,
    )
    built = built_image(
        choice,
        base=args.base or None,
        wheelhouse=args.wheelhouse or None,
        dry_run=args.dry_run,
        allow_unlocked=args.allow_unlocked,
    )
    if built.image and built.moved_to:
        what = f"{built.tag} names {built.moved_to}, not the image that was built, {built.image.id}"
        raise RocmatrixError("RM223", what=what)


def built_image(
    choice: Choice, *, base: str | None, wheelhouse: str | None, dry_run: bool, allow_unlocked: bool = False
) -> Built:
    """Build the image of the chosen cell where something has changed, and record the result. Raises RM404.

    Args:
        base: name of the image to use in place of the cell's base; None for the cell's own.
        wheelhouse: folder that holds the locked wheels; None for the checkout's, where missing ones are downloaded.
        dry_run: print the command and start no build; the files that it names are written.
        allow_unlocked: build a cell without recorded hashes from what its index serves, unchecked.
    """
    from rocmatrix.images import build as building

    cell = choice.cell
    if base and not _REFERENCE.fullmatch(base):
        what = f"--base takes the name of an image, such as docker.io/library/debian:bookworm-slim, not {base[:200]!r}"
        raise RocmatrixError("RM404", what=what, next="`docker image ls` lists those that are here.")
    if wheelhouse and not Path(wheelhouse).is_dir():
        raise RocmatrixError("RM404", what="--wheelhouse names no folder", where=str(Path(wheelhouse).resolve()))
    # even for a dry run: the command that it prints names the folder of these files
    cell = common.prepared_cell(common.known_matrix(), cell, ROOT)
    forced = tuple(rule.id for rule in choice.forced)
    with (
        recorder.failed_build(cell),
        explain_failure.explained(building.log_file(cell, ROOT), cell=cell),
    ):
        built = building.build(
            cell,
            root=ROOT,
            base=base,
            wheelhouse=Path(wheelhouse).resolve() if wheelhouse else None,
            dry_run=dry_run,
            allow_unlocked=allow_unlocked,
            forced=forced,
        )
    say(built.summary)
    if cell.unlocked_because:
        say(f"unlocked: {cell.unlocked_because}; it has what its index serves, unchecked")
    recorder.record_build(cell, built)
    return built
