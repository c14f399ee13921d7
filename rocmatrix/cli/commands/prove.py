"""`./invokew prove`: what a person reads of a proof, and how it ends."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rocmatrix.cli.commands.common import known_matrix, made_ready, print_json, today, with_companions
from rocmatrix.cli.options.command import command
from rocmatrix.cli.options.common import CELL, REQUIREMENTS, Kept, added_packages
from rocmatrix.evidence import recorder
from rocmatrix.runtime.console import say, table
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.option import option, words
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.matrix.matrix import Cell, Matrix
    from rocmatrix.verify.proof import Proof


@dataclass(frozen=True, kw_only=True)
class Prove(Kept):
    """Options of `prove`."""

    cell: str = option(CELL)
    companions: str = option("the packages that were added to it, as for `build`", typed="with")
    with_requirements: str = option(REQUIREMENTS)
    image: str = option("another image than the cell's own")
    tree: str = option("a folder in place of an image: its device code alone is looked into")
    only: str = option("with --tree: the kernel libraries that must be there, such as rocBLAS,hipBLASLt")
    wheelhouse: str = option("another folder of the locked wheels, which the installed files are compared with")
    accept_size: str = option("the reason to take the image's size as it is; later images are compared with it")
    json: bool = option("print the proof as JSON, for programs", default=False)

    @property
    def packages(self) -> tuple[str, ...]:
        """What is added, as for `build`. Raises RM017."""
        return added_packages(self.companions, self.with_requirements)


@command(
    Prove,
    about="Compare what an image really holds with its cell: every file by its bytes, and device code. Needs no card.",
)
def prove(asked: Prove) -> None:
    """Prove an image of a cell, or the device code in a folder. Raises RM210 where anything is wrong."""
    from rocmatrix.images import build
    from rocmatrix.verify import proof

    if not asked.cell:
        raise RocmatrixError("RM404", what="prove needs a cell", next="Give --cell; `./invokew cells` lists them.")
    matrix = known_matrix()
    chosen = with_companions(matrix, matrix.cell(asked.cell), asked.packages)
    if chosen.companions and not asked.tree:
        chosen = made_ready(matrix, chosen)
    if asked.tree:
        proven = proof.of_tree(matrix, chosen, Path(asked.tree), only=words(asked.only))
    else:
        wheels = Path(asked.wheelhouse).expanduser().resolve() if asked.wheelhouse else None
        proven = _of_image(matrix, chosen, asked.image or build.tag(chosen), wheels=wheels, accept=asked.accept_size)
    if asked.json:
        print_json(proven.described())
    else:
        _show(proven)
    if not proven.proven:
        raise _unproven(proven)
    say(f"{proven.subject} holds what {proven.cell} claims: by its files; nothing was run on a card")


def _of_image(matrix: Matrix, cell: Cell, name: str, *, wheels: Path | None, accept: str) -> Proof:
    """Prove the image that `name` means now, by its id: a tag may be moved meanwhile."""
    from rocmatrix.containers import engine
    from rocmatrix.evidence import baseline
    from rocmatrix.verify import proof

    with closing(engine.connect()) as client:
        image = engine.image(client, name)
    if image is None:
        raise RocmatrixError("RM203", what=f"the engine holds no image {name}")
    with recorder.proving(cell, image) as keep:
        recorded = baseline.recorded(recorder.evidence_file(), cell, image)
        proven = proof.of_image(
            matrix, cell, image.id, today=today(), root=ROOT, wheels=wheels, recorded=recorded, accept=accept
        )
        proven = replace(proven, subject=f"image {name} ({image.id})")
        keep(proven)
    return proven


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
    what = "\n".join(finding.words for finding in proven.findings) or "no check applied to it"
    return RocmatrixError("RM210", what=what, where=proven.subject)
