"""Cells to file contents, purely: no clock, no environment, no host.

`files` maps relative paths to text for every cell; writing and comparing them is the thin edge below.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmatrix import emit, runspec, views
from rocmatrix.errors import RocmatrixError
from rocmatrix.lock import TRAINER_REQUIREMENTS
from rocmatrix.matrix import Cell, Matrix

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).parent.parent / "templates"


def files(matrix: Matrix) -> dict[str, str]:
    """Return every generated file of the matrix as {path below the checkout: text}."""
    rendered: dict[str, str] = {}
    for cell in matrix.cells:
        rendered |= cell_files(cell)
    return rendered


def cell_files(cell: Cell) -> dict[str, str]:
    """Return the files of one cell: Dockerfile, lock, description and compose file."""
    lock = requirements_lock(cell)
    return {
        f"images/{cell.name}/Dockerfile": dockerfile(cell, lock=lock),
        f"images/{cell.name}/requirements.lock": lock,
        f"images/{cell.name}/cell.json": cell_json(cell),
        f"compose/{cell.name}.yaml": emit.compose(runspec.portable_spec(cell)),
    }


def write_recipe(cell: Cell, folder: Path) -> None:
    """Write what an image of `cell` is built from into `folder`: for a cell that the matrix lacks."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in cell_files(cell).items():
        if path.startswith("images/"):
            (folder / Path(path).name).write_text(text, encoding="utf-8")


def dockerfile(cell: Cell, *, lock: str) -> str:
    """Render the Dockerfile. `lock` is the text of the cell's requirements.lock."""
    rocm = cell.release.rocm
    cards = f" for {', '.join(cell.cards)}" if cell.cards else ""
    return _template("Dockerfile.j2").render(
        cell=cell,
        base_reference=cell.base.reference,
        packages=" ".join(cell.base.packages),
        rocm=rocm or "none",
        architecture=cell.architecture or "none",
        description=f"PyTorch {cell.release.torch}, {'ROCm ' + rocm if rocm else 'CPU only'}{cards}",
        lock_sha256=hashlib.sha256(lock.encode()).hexdigest(),
    )


def requirements_lock(cell: Cell) -> str:
    """Render the lock: every wheel with its hash, or plain requirements and why there are no hashes yet."""
    return _template("requirements.lock.j2").render(cell=cell, trainer=TRAINER_REQUIREMENTS)


def cell_json(cell: Cell) -> str:
    """Describe the cell for programs: axes, cards, environment, rules and wheels with their evidence.

    Cautions stay out of it: it is an input of the image, and a new one of them must not rebuild every image.
    """
    description: dict[str, Any] = {
        "schema": 1,
        "cell": cell.name,
        "torch": cell.release.torch,
        "rocm": cell.release.rocm,
        "architecture": cell.architecture,
        "python": cell.python,
        "layout": cell.release.device_code.layout,
        "unlocked_because": cell.unlocked_because,
        "cards": list(cell.cards),
        "base": cell.base.reference,
        "recommended": cell.recommended,
        "why": cell.why,
        "evidence": cell.evidence.model_dump(),
        "environment": [variable.model_dump(exclude_none=True) for variable in cell.environment],
        "verdict": cell.verdict,
        "rules": [rule.model_dump(exclude_none=True) for rule in cell.rules if rule.decides],
        "wheels": {file: wheel.sha256 for file, wheel in cell.wheels},
    }
    if cell.companions:
        description["companions"] = list(cell.companions)
    return json.dumps(description, indent=2, ensure_ascii=False) + "\n"


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )


@cache
def _template(name: str) -> jinja2.Template:
    return _environment().get_template(name)


def write(matrix: Matrix, root: Path) -> list[str]:
    """Write what differs and remove what no cell renders any more. Returns the paths touched."""
    wanted = files(matrix) | views.files(matrix, root)
    touched = [path for path, text in wanted.items() if _read(root / path) != text]
    for path in touched:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(wanted[path], encoding="utf-8")
    stale = strays(wanted, root)
    for path in stale:
        (root / path).unlink()
    return touched + stale


def check(matrix: Matrix, root: Path) -> int:
    """Compare the checkout with what the matrix renders. Returns the number compared, raises RM101."""
    wanted = files(matrix) | views.files(matrix, root)
    drifted = [path for path, text in wanted.items() if _read(root / path) != text] + strays(wanted, root)
    if drifted or not wanted:
        raise RocmatrixError("RM101", what="\n".join(drifted) or "nothing was rendered", where=str(root))
    return len(wanted)


def strays(wanted: dict[str, str], root: Path) -> list[str]:
    """Return files below images/ and compose/ that no cell of the matrix renders."""
    found = [path for folder in ("images", "compose") for path in (root / folder).rglob("*") if path.is_file()]
    return sorted(name for path in found if (name := path.relative_to(root).as_posix()) not in wanted)


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
