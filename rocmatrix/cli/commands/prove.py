"""`./invokew prove`: print a proof's findings, and return the exit status."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rocmatrix.cli.commands.common import choose, hardware_here, known_matrix, prepared_cell, print_json, today
from rocmatrix.cli.options.command import command
from rocmatrix.cli.options.common import Kept, WithCompanions
from rocmatrix.evidence import recorder
from rocmatrix.runtime.console import say, table
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.input.named_path import expanded
from rocmatrix.runtime.option import comma_separated, option
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.matrix.matrix import Cell, Matrix
    from rocmatrix.verify.proof import Proof


@dataclass(frozen=True, kw_only=True)
class Prove(WithCompanions, Kept):
    """Options of `prove`."""

    image: str = option("another image than the cell's own", metavar="IMAGE")
    tree: str = option("a folder in place of an image: only its device code is checked", metavar="PATH")
    only: str = option(
        "with --tree: the kernel libraries that must be there, such as rocBLAS,hipBLASLt", metavar="LIBRARY,..."
    )
    wheelhouse: str = option(
        "another folder with the locked wheels to compare the installed files with", metavar="PATH"
    )
    accept_size: str = option(
        "why the image's size is accepted; later images are compared with this size", metavar="REASON"
    )
    rebuild: bool = option("build the image once more without a cache, and compare; not recorded", default=False)
    json: bool = option("print the proof as JSON, for programs", default=False)


@command(
    Prove,
    about="Compare an image with its cell: every file byte by byte, and the device code. Needs no card.",
)
def prove(args: Prove) -> None:
    """Prove an image of a cell, or the device code in a folder. Raises RM210 where anything is wrong."""
    from rocmatrix.images import build
    from rocmatrix.verify import proof

    _refuse_unused(args)
    matrix = known_matrix()
    # a rule against the cell is no reason against looking into its image
    chosen = choose(matrix, args.request, hardware_here(), force=True).cell
    if chosen.companions and not args.tree:
        chosen = prepared_cell(matrix, chosen)
    if args.tree:
        proven = proof.of_tree(matrix, chosen, Path(args.tree), only=comma_separated(args.only))
    else:
        wheels = expanded(args.wheelhouse).resolve() if args.wheelhouse else None
        proven = _of_image(matrix, chosen, args.image or build.tag(chosen), wheels=wheels, args=args)
    if args.json:
        print_json(proven.described())
    else:
        _show(proven)
    if not proven.proven:
        raise _unproven(proven)
    say(f"{proven.subject} holds what {proven.cell} claims: by its files; nothing was run on a card")


def _refuse_unused(args: Prove) -> None:
    """Raise RM404 for options that would have no effect: those of an image with a folder, and the reverse."""
    of_images = ("image", "wheelhouse", "accept_size", "rebuild")
    given = [f"--{name.replace('_', '-')}" for name in of_images if getattr(args, name)]
    if args.tree and given:
        what = f"--tree names a folder, and {', '.join(given)} {'needs' if len(given) == 1 else 'need'} an image"
        raise RocmatrixError("RM404", what=what, next="Leave --tree out to prove the cell's image.")
    if args.only and not args.tree:
        raise RocmatrixError("RM404", what="--only names what a folder must hold, and --tree names none")


def _of_image(matrix: Matrix, cell: Cell, name: str, *, wheels: Path | None, args: Prove) -> Proof:
    """Prove the image that `name` means now, by its id: a tag may be moved meanwhile."""
    from rocmatrix.containers import engine
    from rocmatrix.evidence import baseline
    from rocmatrix.verify import proof, rebuild

    with closing(engine.connect()) as client:
        image = engine.image(client, name)
    if image is None:
        raise RocmatrixError("RM203", what=f"the engine holds no image {name}")
    with recorder.proving(cell, image) as keep:
        recorded = baseline.recorded(recorder.evidence_file(), cell, image)
        proven = proof.of_image(
            matrix, cell, image.id, today=today(), root=ROOT, wheels=wheels, recorded=recorded, accept=args.accept_size
        )
        proven = replace(proven, subject=f"image {name} ({image.id})")
        keep(proven)
    if not args.rebuild:
        return proven
    # Not on record: an archive that moved or is out of reach says nothing of the image, whose files were proven above.
    again = rebuild.check(cell, image.id, root=ROOT, wheels=wheels)
    return replace(proven, checks=(*proven.checks, again))


def _show(proven: Proof) -> None:
    from rocmatrix.verify import kernel_code

    rows = [row for check in proven.checks for row in kernel_code.described_rows(check)]
    if rows:
        cells = (
            (r["library"], r["target"], str(r["files"]), _mb(r["stored"]), _mb(r["loaded"]), ", ".join(r["evidence"]))
            for r in rows
        )
        table(("LIBRARY", "TARGET", "FILES", "STORED", "LOADED", "SOURCE"), cells)
    table(("CHECK", "STATUS", "COMPARED"), ((check.name, check.status, check.summary) for check in proven.checks))
    for check in proven.checks:
        for note in check.notes:
            say(f"note: {note}")


def _mb(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size else "-"


def _unproven(proven: Proof) -> RocmatrixError:
    what = "\n".join(finding.summary for finding in proven.findings) or "no check applied to it"
    return RocmatrixError("RM210", what=what, where=proven.subject)
